"""Dispatch of tasks, step by step: which truck takes which task, and what each truck does next.

The nearest free truck takes the next ready task, and the next one already in its drop. A route leads over pick and drop
to rest and is driven leg by leg. Where the route to a next task is not admitted while a truck stands in its drop, the
truck goes to rest after a while, as planned, and another truck may take the task. Integers, total orders, no
clock: the same inputs give the same steps.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.map.planner import OPEN, Anchor, AtNode, Closed, Planner
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import Stream, Truck
from pendula.fleet.sentences import sentence_of
from pendula.fleet.tasks.assignment import WAY_CLOSED, Assignment, RoutePlanner, Sent, TaskReason, Tours, Ways, one_way
from pendula.fleet.tasks.book import OPERATING, Driver, Task, TaskBook
from pendula.fleet.tasks.model import (
    TAKEN,
    DispatchParams,
    DispatchStep,
    GoodsReported,
    Operation,
    OperationDone,
    OperationFailed,
    PriorityChanged,
    RoomReported,
    StreamEnded,
    StreamSet,
    TaskEvent,
    TaskEventRefused,
    TaskOrder,
    TaskStream,
    TaskSubmitted,
    Transition,
    TruckView,
)
from pendula.fleet.tick import RefusedRoute
from pendula.fleet.tick.new_routes import RECOVERY
from pendula.fleet.tick.orders import combine_closed
from pendula.fleet.traffic.lock_state import Closing
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal
from pendula.kernel.errors import InputRefused

# Intake of task events; invalid ones are refused with a code and change nothing.

# Each is checked when a truck is free, and is part of every checkpoint.
MOST_OPEN = 10_000
# Each is asked in every step for a new task.
MOST_STREAMS = 500


def stream_faults(site: CompiledMap, stream: TaskStream, params: DispatchParams) -> list[Refusal]:
    """What is wrong with a stream."""
    name = stream.stream_id
    missing = [node for node in (*stream.pick_node_ids, *stream.drop_node_ids) if node not in site.node_number]
    faults = [Refusal("MISSING_PICK_DROP_NODE", {"streamId": name, "nodeId": node}) for node in missing]
    both = [node for node in stream.drop_node_ids if node in stream.pick_node_ids]
    faults += [Refusal("PICK_IS_DROP", {"streamId": name, "nodeId": node}) for node in both]
    timeout_ms = params.operation_timeout_ms
    if max(stream.pick_ms, stream.drop_ms) >= timeout_ms:
        faults.append(Refusal("OPERATION_TOO_LONG", {"streamId": name, "timeoutMs": timeout_ms}))
    return faults


class Intake:
    """The events of one step. `operated`: trucks that have loaded or unloaded; `failed`: those that could not, and
    why."""

    def __init__(
        self,
        site: CompiledMap,
        book: TaskBook,
        robots: Mapping[str, int],
        params: DispatchParams,
        *,
        undoable: Callable[[TaskStream], list[Refusal]],
        under_way: Mapping[str, str],
    ) -> None:
        """`undoable`: why no truck can serve a stream; `under_way`: the operation id of each truck."""
        self._site = site
        self._book = book
        self._robots = robots
        self._params = params
        self._undoable = undoable
        self._under_way = under_way
        self.operated: set[str] = set()
        self.failed: dict[str, str] = {}
        self.refused: list[TaskEventRefused] = []

    def take(self, events: Sequence[TaskEvent], now_ms: int) -> None:
        for event in events:
            wrong = self._take(event, now_ms)
            if wrong is not None:
                self.refused.append(TaskEventRefused(event, wrong.code, wrong.facts))

    def _take(self, event: TaskEvent, now_ms: int) -> Refusal | None:
        match event:
            case GoodsReported(node, count):
                return self._count(self._book.stock.goods, node, count)
            case RoomReported(node, count):
                return self._count(self._book.stock.room, node, count)
            case TaskSubmitted(order):
                return self._submit(order, now_ms)
            case PriorityChanged(task_id, priority):
                return self._book.reprioritise(task_id, priority)
            case StreamSet(stream):
                return self._set(stream)
            case StreamEnded(stream_id):
                return self._end(stream_id, now_ms)
            case OperationDone(robot_id, operation_id):
                wrong = self._not_about(robot_id, operation_id)
                if wrong is None:
                    self.operated.add(robot_id)
                return wrong
            case OperationFailed(robot_id, reason, operation_id):
                wrong = self._not_about(robot_id, operation_id)
                if wrong is None:
                    self.failed[robot_id] = reason
                return wrong
            case _:
                assert_never(event)

    def _count(self, counts: dict[str, int], node: str, count: int) -> Refusal | None:
        if node not in self._site.node_number:
            return Refusal("MISSING_PICK_DROP_NODE", {"nodeId": node})
        if count < 0:
            return Refusal("COUNT_NEGATIVE", {"nodeId": node, "count": count})
        counts[node] = count
        return None

    def _submit(self, order: TaskOrder, now_ms: int) -> Refusal | None:
        name = order.task_id
        for node in (order.pick_node_id, order.drop_node_id):
            if node not in self._site.node_number:
                return Refusal("MISSING_PICK_DROP_NODE", {"taskId": name, "nodeId": node})
        if order.pick_node_id == order.drop_node_id:
            return Refusal("PICK_IS_DROP", {"taskId": name, "nodeId": order.pick_node_id})
        if self._book.find(name) is not None:
            return Refusal("TASK_KNOWN", {"taskId": name})
        if len(self._book.open) >= MOST_OPEN:
            return Refusal("TOO_MANY_TASKS", {"open": len(self._book.open), "allowed": MOST_OPEN})
        if order.stream_id is not None and self._book.flow(order) is None:
            return Refusal("STREAM_UNKNOWN", {"taskId": name, "streamId": order.stream_id})
        timeout_ms = self._params.operation_timeout_ms
        if max(order.pick_ms, order.drop_ms) >= timeout_ms:
            return Refusal("OPERATION_TOO_LONG", {"taskId": name, "timeoutMs": timeout_ms})
        unknown = [robot for robot in order.robot_ids if robot not in self._robots]
        if unknown:
            return Refusal("UNKNOWN_ROBOT", {"taskId": name, "robotId": unknown[0]})
        self._book.add(order, now_ms, "SUBMITTED")
        return None

    def _set(self, stream: TaskStream) -> Refusal | None:
        name, flows = stream.stream_id, self._book.flows
        if not stream.pick_node_ids or not stream.drop_node_ids:
            return Refusal("MISSING_PICK_DROP_NODE", {"streamId": name})
        faults = stream_faults(self._site, stream, self._params)
        if faults:
            return faults[0]
        unknown = [robot for robot in stream.robot_ids if robot not in self._robots]
        if unknown:
            return Refusal("UNKNOWN_ROBOT", {"streamId": name, "robotId": unknown[0]})
        if name not in flows and len(flows) >= MOST_STREAMS:
            return Refusal("TOO_MANY_STREAMS", {"streams": len(flows), "allowed": MOST_STREAMS})
        undoable = self._undoable(stream)
        if undoable:
            return undoable[0]
        self._book.set_stream(stream, len(self._robots))
        return None

    def _end(self, stream_id: str, now_ms: int) -> Refusal | None:
        flow = self._book.flows.get(stream_id)
        if flow is None:
            return Refusal("STREAM_UNKNOWN", {"streamId": stream_id})
        # Not in this tick either: the first tick has the time 0, and there is none before it.
        self._book.set_stream(replace(flow.stream, last_ms=now_ms - 1), len(self._robots))
        return None

    def _not_about(self, robot_id: str, operation_id: str | UnsetType) -> Refusal | None:
        """A repeated completion must not complete the next operation."""
        if robot_id not in self._robots:
            return Refusal("UNKNOWN_ROBOT", {"robotId": robot_id})
        now = self._under_way.get(robot_id)
        if operation_id is UNSET or operation_id == now:
            return None
        facts: dict[str, Json] = {"robotId": robot_id, "underWay": now, "operationId": operation_id}
        return Refusal("OPERATION_NOT_UNDER_WAY", facts)


WAIT_SAFE_STATE = "WAIT_SAFE_STATE"


class TasksRefused(InputRefused):
    """A fleet cannot serve its streams. Facts: `findings`, sentences of what is wrong."""

    code = "tasks_refused"


class Dispatch:
    """Drivers of all trucks by name, and the tasks they serve."""

    def __init__(
        self,
        site: CompiledMap,
        trucks: Sequence[Truck],
        profiles: Mapping[str, RobotProfile],
        closed: Mapping[str, Closed],
        streams: Sequence[TaskStream] = (),
        params: DispatchParams | None = None,
        *,
        starts: Mapping[str, Anchor] | None = None,
    ) -> None:
        """`starts`: trucks that do not start at rest. Raises `TasksRefused`."""
        self.site = site
        self.params = params or DispatchParams()
        faults = (fault for stream in streams for fault in stream_faults(site, stream, self.params))
        wrong = [f"{fault.code}: {sentence_of(fault.code, fault.facts)}" for fault in faults]
        if wrong:
            raise TasksRefused("tasks cannot start: " + "; ".join(wrong), findings=wrong)
        starts = starts or {}
        rests = [site.node_number[truck.park_node_id] for truck in trucks]
        planners = {
            name: one_way(site, Planner(site, profile), streams, rests, self.params)
            for name, profile in profiles.items()
        }
        self.drivers = [
            Driver(
                number=number,
                robot_id=truck.robot_id,
                planner=planners[truck.profile_id],
                closed=closed[truck.robot_id],
                rest=site.node_number[truck.park_node_id],
                node=_node(site, starts.get(truck.robot_id), site.node_number[truck.park_node_id]),
                anchor=starts.get(truck.robot_id),
            )
            for number, truck in enumerate(sorted(trucks, key=lambda truck: truck.robot_id))
        ]
        self._usual = [driver.closed for driver in self.drivers]
        self._barred = OPEN
        self.book = TaskBook.of(streams, len(self.drivers), self.params.node_limits)
        self._numbers = {driver.robot_id: driver.number for driver in self.drivers}
        self._ways = Ways(site, self.drivers, self.params)
        self._tours = Tours(site, self.drivers, self.book, self._ways, self.params)
        self._assignment = Assignment(
            site, self.drivers, self.book, self._ways, self._tours, self.params, usual=self._usual
        )

    @property
    def route_planner(self) -> RoutePlanner:
        """The planner of routes on which trucks set out."""
        return self._ways.route_planner

    @route_planner.setter
    def route_planner(self, planner: RoutePlanner) -> None:
        self._ways.route_planner = planner

    @property
    def now_ms(self) -> int:
        """The time of the last step."""
        return self._tours.now_ms

    def dispatch(self, now_ms: int, trucks: Sequence[TruckView], events: Sequence[TaskEvent] = ()) -> DispatchStep:
        """One step: the operations of trucks, and the routes that traffic has to admit. `trucks`: all, in order."""
        tours = self._tours
        tours.now_ms, self._ways.views = now_ms, trucks
        intake = Intake(
            self.site, self.book, self._numbers, self.params, undoable=self._unserved, under_way=self._under_way()
        )
        intake.take(events, now_ms)
        self.book.make(now_ms)
        self.book.look(now_ms)
        for driver in self.drivers:
            name = driver.robot_id
            tours.follow(driver, trucks[driver.number], name in intake.operated, intake.failed.get(name))
        if self._assignment.closings:
            self._leave_what_is_closed(now_ms)
        self._assignment.assign(now_ms)
        for driver in self.drivers:
            if tours.wants_to_park(driver):
                tours.park(driver)
        sent, tours.sent = tours.sent, Sent()
        return DispatchStep(
            routes=tuple(sent.routes),
            operations=tuple(sent.operations),
            transitions=self.take_transitions(),
            refused=tuple(intake.refused),
            alerts=tuple(sent.alerts),
        )

    def _leave_what_is_closed(self, now_ms: int) -> None:
        """Put back tasks that are not loaded and cannot be done; their trucks turn home where they can."""
        for driver in self.drivers:
            task, route = driver.task, driver.route
            if not driver.admitted or route is None:
                continue
            if task is not None:
                loading = driver.phase is Phase.TO_PICK and task.state in TAKEN
                if loading and not self._ways.still_does(driver, task.order):
                    self.book.move(task, TaskState.READY, now_ms, WAY_CLOSED)
                    driver.again_ms = now_ms + self.params.asked_again_ms
                    self._tours.recall(driver)
            elif driver.phase is Phase.TO_PARK and route.goal != driver.rest and now_ms >= driver.again_ms:
                driver.again_ms = now_ms + self.params.asked_again_ms
                self._tours.turn_home(driver)

    def _unserved(self, stream: TaskStream) -> list[Refusal]:
        """Why no truck can serve a stream, ignoring what failed trucks close now."""
        served = Stream(stream.stream_id, stream.pick_node_ids, stream.drop_node_ids, stream.robot_ids)
        return self._ways.undoable([served], self._usual)

    def driver(self, robot_id: str) -> Driver | None:
        """The driver of a truck; None for an unknown truck."""
        number = self._numbers.get(robot_id)
        return None if number is None else self.drivers[number]

    def keep_off(self, barred: Closed, closings: Sequence[Closing] = ()) -> None:
        """Set what failed trucks and operators close; new routes avoid it."""
        self._assignment.closings = tuple(closings)
        if barred == self._barred:
            return
        self._barred = barred
        for driver, usual in zip(self.drivers, self._usual, strict=True):
            driver.closed = combine_closed(usual, barred)

    def settled(self, accepted: Sequence[RoutePlan], refused: Sequence[RefusedRoute] = ()) -> None:
        """Take in the answers of traffic about routes; it may have changed an accepted route."""
        for route in accepted:
            driver = self.drivers[self._numbers[route.robot_id]]
            if route.reason == RECOVERY:
                _go_on_from_elsewhere(driver, route)
            elif driver.route is not None and driver.route.route_id == route.route_id:
                driver.admitted, driver.kept, driver.route = True, route, route
                task = driver.task
                if task is not None and task.state is TaskState.ASSIGNED:
                    self.book.move(task, TaskState.IN_PROGRESS, self.now_ms, "ROUTE_ADMITTED")
            elif driver.kept is not None and driver.kept.route_id == route.route_id:
                # The route in force was changed while another one waits.
                driver.kept = route
        for refusal in refused:
            driver = self.drivers[self._numbers[refusal.robot_id]]
            sent = driver.route
            if sent is not None and (sent.route_id, sent.revision) == (refusal.route_id, refusal.revision):
                # Traffic itself checks a route again that would close a cycle.
                driver.rejected = None if refusal.code == WAIT_SAFE_STATE else refusal.code

    def take_transitions(self) -> tuple[Transition, ...]:
        """Transitions of tasks since the last call."""
        transitions, self.book.transitions = tuple(self.book.transitions), []
        return transitions

    def phase(self, number: int) -> Phase:
        return self.drivers[number].shown_phase

    def task_of(self, number: int) -> Task | None:
        """The task of a truck, also one that it starts only at the next node."""
        return self.drivers[number].task

    def is_faulty(self, number: int) -> bool:
        """Whether a truck failed at an operation and the fault is not cleared."""
        return self.drivers[number].faulty

    def not_done(self, robot_id: str) -> dict[str, Json] | None:
        """The operation that a truck failed at, until an operator clears the fault."""
        return self.drivers[self._numbers[robot_id]].not_done(self.params.operation_timeout_ms)

    def operations(self) -> tuple[Operation, ...]:
        """The operations under way, for a sender that does not know what it has sent."""
        busy = ((driver, driver.task) for driver in self.drivers if driver.phase in OPERATING and not driver.faulty)
        return tuple(self._tours.operation(driver, task) for driver, task in busy if task is not None)

    def _under_way(self) -> dict[str, str]:
        """The operation ids under way by truck, failed ones included."""
        busy = ((driver, driver.task) for driver in self.drivers if driver.phase in OPERATING)
        return {
            driver.robot_id: self._tours.operation(driver, task).operation_id
            for driver, task in busy
            if task is not None
        }

    def tasks(self) -> list[Task]:
        """Open tasks in the order of their creation."""
        return list(self.book.open.values())

    def is_over(self, now_ms: int) -> bool:
        """Whether all tasks are done, no stream creates more, and every truck is at rest."""
        return self.book.is_over(now_ms) and all(driver.at_rest or driver.gone for driver in self.drivers)

    def undoable(self, streams: Sequence[Stream]) -> list[str]:
        """A sentence for every pick and drop from which no truck comes back to rest."""
        return [sentence_of(refusal.code, refusal.facts) for refusal in self._ways.undoable(streams)]

    def why(self, task_id: str) -> TaskReason | Refusal:
        """Why a task is not done, as of the last step; how it ended if it is over."""
        task = self.book.find(task_id)
        return _unknown(task_id) if task is None else self._assignment.why(task, self.now_ms)

    def goes_on_at(self, now_ms: int) -> None:
        """Set the time of the last step of a restored dispatch."""
        self._tours.now_ms = now_ms

    def cancel(self, task_id: str, by: str) -> Refusal | None:
        """Cancel a task. A task that is loaded, or being loaded, is refused unless it is held: then its truck keeps the
        load and gets no other task."""
        return self._take_away(task_id, TaskState.CANCELLED, "CANCELLED", by)

    def withdraw(self, task_id: str, by: str) -> Refusal | None:
        """Take a task from its truck before it loads; another truck may take it."""
        task = self.book.open.get(task_id)
        if task is not None and task.state not in TAKEN:
            return Refusal("TASK_NOT_ASSIGNED", {"taskId": task_id})
        driver = None if task is None else self._driver_of(task)
        no = self._take_away(task_id, TaskState.READY, "WITHDRAWN", by)
        if no is None and driver is not None:
            # It would still be the nearest, and take the task again at once.
            driver.again_ms = self.now_ms + self.params.asked_again_ms
        return no

    def hold(self, task_id: str, by: str) -> Refusal | None:
        """Hold a task until it is resumed."""
        return self._take_away(task_id, TaskState.HELD, "HELD", by)

    def resume(self, task_id: str, by: str) -> Refusal | None:
        """Resume a held task, with the truck that kept it or with another one."""
        task = self.book.open.get(task_id)
        if task is None or task.state is not TaskState.HELD:
            return _unknown(task_id) if task is None else _not_held(task)
        driver = self._driver_of(task)
        if driver is None:
            self.book.move(task, TaskState.READY, self.now_ms, "RESUMED", by)
        elif driver.faulty:
            return Refusal("ROBOT_FAULT", {"robotId": driver.robot_id})
        else:
            driver.redo = True
        return None

    def cleared(self, robot_id: str) -> None:
        """The fault of a truck was cleared: it repeats the failed operation."""
        driver = self.drivers[self._numbers[robot_id]]
        driver.redo = driver.faulty and driver.task is not None and driver.task.state is TaskState.HELD
        driver.faulty = False

    def removed(self, robot_id: str) -> None:
        """A truck was removed: its loaded task has failed; another truck may take one that was not loaded."""
        driver = self.drivers[self._numbers[robot_id]]
        if driver.phase in OPERATING and driver.task is not None:
            driver.task.begin_again()
        task, driver.task, driver.gone, driver.phase = driver.task, None, True, Phase.IDLE
        if task is not None:
            begun = task.loaded or task.state is TaskState.HELD
            self.book.move(task, TaskState.FAILED if begun else TaskState.READY, self.now_ms, "ROBOT_REMOVED")

    def _take_away(self, task_id: str, state: TaskState, cause: str, by: str) -> Refusal | None:
        task = self.book.open.get(task_id)
        if task is None:
            return _unknown(task_id)
        driver = self._driver_of(task)
        held = task.state is TaskState.HELD
        if driver is not None and driver.phase not in (Phase.TO_PICK, Phase.TO_PARK) and not held:
            return Refusal("TASK_LOADED", {"taskId": task_id, "robotId": driver.robot_id})
        if held and state is not TaskState.CANCELLED:
            return Refusal("TASK_HELD", {"taskId": task_id, "cause": task.cause, "by": task.by})
        self.book.move(task, state, self.now_ms, cause, by)
        if driver is not None:
            self._tours.recall(driver)
        return None

    def _driver_of(self, task: Task) -> Driver | None:
        return next((driver for driver in self.drivers if driver.task is task), None)


def _go_on_from_elsewhere(driver: Driver, route: RoutePlan) -> None:
    """Traffic gave a relocated truck a route from its true position: it drives again, and repeats its operation in the
    node it comes to."""
    driver.route = driver.kept = route
    driver.admitted, driver.rejected, driver.anchor, driver.called_off = True, None, None, False
    if driver.phase in OPERATING and driver.task is not None:
        driver.task.begin_again()
    under_way = {Phase.IDLE: Phase.TO_PARK, Phase.LOADING: Phase.TO_PICK, Phase.UNLOADING: Phase.TO_DROP}
    driver.phase = under_way.get(driver.phase, driver.phase)


def _unknown(task_id: str) -> Refusal:
    return Refusal("TASK_UNKNOWN", {"taskId": task_id})


def _not_held(task: Task) -> Refusal:
    return Refusal("TASK_NOT_HELD", {"taskId": task.task_id, "state": task.state.value})


def _node(site: CompiledMap, start: Anchor | None, rest: int) -> int:
    """The node in which a truck starts, or the next one on its edge."""
    match start:
        case None:
            return rest
        case AtNode(node, _):
            return node
        case _:
            return site.network.edges[start.edge].end
