"""Which truck takes which task, or why none does: of the free trucks the one that reaches the pick first.

Tasks are looked at by priority, age and id, or by how many trucks are on their way to their stations where they may
overtake; trucks by the time they need and by id: no tie is left to chance. A task that no truck can take blocks no
other task.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from msgspec import Struct

from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.map.planner import OPEN, Anchor, AtNode, Closed, OnEdge, Planner
from pendula.fleet.map.routes import (
    RoutePlan,
    Segment,
    avoidance_us,
    committed,
    continued,
    one_way_us,
    opposite_edges,
    plan_route,
    splice,
)
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.model import Stream
from pendula.fleet.sentences import task_sentence
from pendula.fleet.tasks.book import DRIVING, OPERATING, OPERATION_TIMEOUT, Driver, Task, TaskBook, UnderWay
from pendula.fleet.tasks.model import DispatchParams, Operation, TaskAlert, TaskOrder, TaskStream, TruckView
from pendula.fleet.traffic.lock_state import Closing
from pendula.fleet.units import half_up
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal

# Routes for tasks: over pick and drop to rest, avoiding lanes that others will drive in the opposite direction.
# A planner is made for each kind of truck that prefers the direction in which the streams go round. What was admitted
# once is driven leg by leg, edge by edge as it was planned.

# The planner of routes, the replaceable part of tasks.


class RoutePlanner(Protocol):
    def plan_route(
        self,
        planner: Planner,
        robot_id: str,
        route_id: str,
        start: Anchor,
        stops: tuple[int, ...],
        rest: int | None = None,
        reason: str = "TASK_ASSIGNED",
        closed: Closed = OPEN,
    ) -> RoutePlan | Refusal:
        """A route to the first stop and over the others to rest; `planner` has the costs of this truck on this map.
        Traffic checks it like any other."""


class CheapestRoutes:
    def plan_route(
        self,
        planner: Planner,
        robot_id: str,
        route_id: str,
        start: Anchor,
        stops: tuple[int, ...],
        rest: int | None = None,
        reason: str = "TASK_ASSIGNED",
        closed: Closed = OPEN,
    ) -> RoutePlan | Refusal:
        return plan_route(planner, robot_id, route_id, start, stops, rest=rest, reason=reason, closed=closed)


def one_way(
    site: CompiledMap, planner: Planner, streams: Iterable[TaskStream], rests: Iterable[int], params: DispatchParams
) -> Planner:
    """A planner that prefers the direction of most streams."""
    if not params.opposition_milli:
        return planner
    return planner.with_extra_costs(against_the_stream_us(site, planner, streams, rests, params.one_way_milli))


def against_the_stream_us(
    site: CompiledMap, planner: Planner, streams: Iterable[TaskStream], rests: Iterable[int], milli: int
) -> dict[int, int]:
    """Extra cost of edges against the direction of most trips between picks, drops and rest."""
    number = site.node_number
    trips: dict[int, list[int]] = {}
    ordered = sorted(streams, key=lambda stream: stream.stream_id)
    drops = sorted({number[name] for stream in ordered for name in stream.drop_node_ids})
    for stream in ordered:
        picks = [number[name] for name in stream.pick_node_ids]
        for name in stream.drop_node_ids:
            trips.setdefault(number[name], []).extend(picks)
        for pick in picks:
            trips[pick] = trips.get(pick, []) + drops
    for rest in rests:
        trips.setdefault(rest, []).extend(drops)
    return one_way_us(planner, opposite_edges(site), trips, milli)


class Ways:
    """Plans for all drivers. `views` belong to the present step."""

    def __init__(self, site: CompiledMap, drivers: Sequence[Driver], params: DispatchParams) -> None:
        self._site = site
        self._drivers = drivers
        self._params = params
        self._opposite = opposite_edges(site)
        self.views: Sequence[TruckView] = ()
        # Replaceable.
        self.route_planner: RoutePlanner = CheapestRoutes()

    def view(self, driver: Driver) -> TruckView:
        """The last view of a truck; one without a view, as after a restart, is not `ok`."""
        seen = self.views[driver.number : driver.number + 1]
        return seen[0] if seen else TruckView(driver.number, driver.robot_id, ok=False)

    def eta_ms(self, driver: Driver, order: TaskOrder) -> int | None:
        """Time to a pick for a truck that is free or can turn round on its way to rest; None if it cannot reach it."""
        pick, view = self._site.node_number[order.pick_node_id], self.view(driver)
        kept: tuple[Segment, ...] = ()
        here = driver.here(view)
        if driver.phase is Phase.TO_PARK:
            assert driver.route is not None
            kept, here = driver.route.segments[: committed(driver.route, view.bound_um)], driver.route.start
        if kept:
            cost_us = driver.planner.onward_us(kept[-1].edge, pick, driver.closed)
        else:
            cost_us = driver.planner.cost_us(here, pick, driver.closed)
        return None if cost_us is None else half_up(cost_us, 1000)

    def reaches(self, driver: Driver, order: TaskOrder) -> bool:
        """Whether a truck gets from rest over pick and drop back to rest."""
        return self._comes_back(driver, order.pick_node_id, order.drop_node_id, driver.closed)

    def would_reach(self, driver: Driver, order: TaskOrder, closed: Closed) -> bool:
        """The same, with other places closed."""
        return self._comes_back(driver, order.pick_node_id, order.drop_node_id, closed)

    def still_does(self, driver: Driver, order: TaskOrder) -> bool:
        """Whether a truck on its way to a pick gets from its position over pick and drop to rest."""
        assert driver.route is not None
        number, planner, closed = self._site.node_number, driver.planner, driver.closed
        pick, drop = number[order.pick_node_id], number[order.drop_node_id]
        kept = driver.route.segments[: committed(driver.route, self.view(driver).bound_um)]
        if kept and self._site.network.edges[kept[-1].edge].end == pick:
            there: int | None = 0
        elif kept:
            there = planner.onward_us(kept[-1].edge, pick, closed)
        else:
            there = planner.cost_us(driver.route.start, pick, closed)
        legs = (there, planner.cost_us(AtNode(pick), drop, closed), planner.cost_us(AtNode(drop), driver.rest, closed))
        return None not in legs

    def may_turn_round(self, driver: Driver) -> bool:
        """Whether a truck on its way to rest can still leave it at a node."""
        view = self.view(driver)
        if driver.phase is not Phase.TO_PARK or not driver.admitted or not driver.drives(view):
            return False
        assert driver.route is not None
        return committed(driver.route, view.bound_um) < len(driver.route.segments)

    def set_out(self, driver: Driver, stops: tuple[int, ...], reason: str) -> RoutePlan | None:
        """A new route from where a truck stands, if there is one."""
        made = self.route_planner.plan_route(
            self._keeping_off(driver),
            driver.robot_id,
            driver.next_route_id(),
            driver.here(self.view(driver)),
            stops,
            rest=driver.rest,
            reason=reason,
            closed=driver.closed,
        )
        return made if isinstance(made, RoutePlan) else None

    def turn_round(self, driver: Driver, stops: tuple[int, ...], reason: str) -> RoutePlan | None:
        """A route that leaves the present one at the next possible node."""
        route, bound, name = driver.route, self.view(driver).bound_um, driver.next_route_id()
        assert route is not None
        # First without the other trucks, which is cheap: while failed trucks close routes, every task is tried with
        # every truck in every step.
        plain = splice(driver.planner, route, bound, stops, name, reason, closed=driver.closed)
        if not isinstance(plain, RoutePlan):
            return None
        made = splice(self._keeping_off(driver), route, bound, stops, name, reason, closed=driver.closed)
        return made if isinstance(made, RoutePlan) else None

    def leaves_um(self, driver: Driver) -> int:
        """The position of the next node at which a truck can leave its route."""
        assert driver.route is not None
        kept = driver.route.segments[: committed(driver.route, self.view(driver).bound_um)]
        return kept[-1].route_s0_um + kept[-1].length_um if kept else 0

    def go_on(self, driver: Driver, reason: str) -> RoutePlan:
        """The onward route that was admitted with the route in force."""
        assert driver.kept is not None
        yaw = self.view(driver).yaw_urad
        return continued(driver.planner, driver.kept, driver.next_route_id(), yaw, reason)

    def keep_to(self, driver: Driver) -> RoutePlan:
        """The route in force with a new revision, in place of one that was not admitted."""
        assert driver.kept is not None
        assert driver.route is not None
        return replace(driver.kept, revision=max(driver.kept.revision, driver.route.revision) + 1)

    def undoable(self, streams: Iterable[Stream], closed: Sequence[Closed] | None = None) -> list[Refusal]:
        """A refusal for every pick and drop of which no truck that may serve them comes back to rest. There is none on
        a map that is LIVE for the fleet, unless every node is locked that a truck passes. `closed`: to each of the
        trucks, where that is not what is now."""
        pairs = (
            (stream, pick, drop) for stream in streams for pick in stream.pick_node_ids for drop in stream.drop_node_ids
        )
        return [
            Refusal("UNREACHABLE", {"streamId": stream.stream_id, "pickNodeId": pick, "dropNodeId": drop})
            for stream, pick, drop in pairs
            if not any(
                self._comes_back(driver, pick, drop, driver.closed if closed is None else closed[driver.number])
                for driver in self._may_serve(stream.robot_ids)
            )
        ]

    def _may_serve(self, robot_ids: tuple[str, ...]) -> list[Driver]:
        return [driver for driver in self._drivers if not robot_ids or driver.robot_id in robot_ids]

    def _comes_back(self, driver: Driver, pick: str, drop: str, closed: Closed) -> bool:
        stops = self._site.node_number[pick], self._site.node_number[drop]
        home = AtNode(driver.rest)
        made = plan_route(driver.planner, driver.robot_id, "", home, stops, rest=driver.rest, closed=closed)
        return isinstance(made, RoutePlan)

    def _keeping_off(self, driver: Driver) -> Planner:
        """A planner with extra cost for lanes that others will drive in the opposite direction."""
        milli = self._params.opposition_milli
        if not milli:
            return driver.planner
        ahead = [self._ahead(other) for other in self._drivers if other is not driver]
        return driver.planner.with_extra_costs(avoidance_us(driver.planner, self._opposite, ahead, milli), once=True)

    def _ahead(self, driver: Driver) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The edges ahead of a truck: on its route, and onward to rest."""
        route, view = driver.route, self.view(driver)
        if route is None or driver.at_rest:
            return (), ()
        return route.ahead(route.passed(view.at_um) if driver.drives(view) else 0)


# Tours of trucks over pick and drop to rest, and what happens to a task when its truck cannot go on.
# A task that is not loaded goes back when its truck fails or gets no route, or when an operator withdraws it. One
# that is loaded, or being loaded, stays with its truck and is held until the truck goes on.

ROBOT_FAILED = "ROBOT_FAILED"
# A rejected route is requested again after this time if the truck has no other.
_RETRY_MS = 1_000


@dataclass(slots=True)
class Sent:
    """Output of one step."""

    routes: list[RoutePlan] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    alerts: list[TaskAlert] = field(default_factory=list)


class Tours:
    """The tours of all drivers. `now_ms` and `sent` belong to the present step."""

    def __init__(
        self, site: CompiledMap, drivers: Sequence[Driver], book: TaskBook, ways: Ways, params: DispatchParams
    ) -> None:
        self._site = site
        self._drivers = drivers
        self._book = book
        self._ways = ways
        self._params = params
        self.now_ms = 0
        self.sent = Sent()

    def follow(self, driver: Driver, view: TruckView, operated: bool, trouble: str | None) -> None:
        """One step of one truck. `operated`: it has loaded or unloaded; `trouble`: why it could not."""
        driver.operated = driver.phase in OPERATING and (driver.operated or operated)
        if view.failed:
            self._fail(driver)
        elif driver.task is not None and driver.task.state is TaskState.HELD:
            self._recover(driver, view, driver.task)
        elif driver.phase in DRIVING:
            self._drive(driver, view)
        elif driver.phase in OPERATING and driver.task is not None:
            self._work(driver, driver.task, trouble)

    def park(self, driver: Driver) -> None:
        """Send a truck without a task to its rest node: on its admitted route, or straight if that leads elsewhere."""
        if driver.kept is not None and len(driver.kept.onward_stops) == 1:
            self.give(driver, Phase.TO_PARK, self._ways.go_on(driver, "PARKING"))
            return
        route = self._ways.set_out(driver, (driver.rest,), "PARKING")
        if route is not None:
            self.give(driver, Phase.TO_PARK, route)

    def wants_to_park(self, driver: Driver) -> bool:
        view = self._ways.view(driver)
        away = driver.node != driver.rest or isinstance(driver.anchor, OnEdge)
        return driver.is_free and away and view.ok and not driver.gone

    def give(self, driver: Driver, phase: Phase, route: RoutePlan) -> None:
        driver.phase, driver.route, driver.since_ms = phase, route, self.now_ms
        driver.admitted, driver.rejected = False, None
        self.sent.routes.append(route)

    def recall(self, driver: Driver) -> None:
        """A truck lost its task before loading: it goes to rest, leaving its route where it can."""
        driver.task = None
        if driver.phase in OPERATING or driver.route is None:
            driver.phase = Phase.IDLE
        elif driver.admitted:
            driver.phase = Phase.TO_PARK
            self.turn_home(driver)
        elif driver.called_off:
            driver.again_ms = self.now_ms + self._params.asked_again_ms
            self.give(driver, Phase.TO_PARK, self._ways.keep_to(driver))
        else:
            self.park(driver)

    def turn_home(self, driver: Driver) -> None:
        """Send a truck to rest from the next node at which it can leave its route."""
        if self._ways.may_turn_round(driver):
            route = self._ways.turn_round(driver, (driver.rest,), "PARKING")
            if route is not None:
                self.give(driver, Phase.TO_PARK, route)

    def _drive(self, driver: Driver, view: TruckView) -> None:
        self._leave_the_way_to_rest(driver, view)
        if not driver.admitted:
            self._wait(driver, view)
        elif driver.drives(view) and view.at_goal:
            self._arrive(driver)

    def _leave_the_way_to_rest(self, driver: Driver, view: TruckView) -> None:
        """Start a task in the node where the truck leaves its way to rest."""
        task = driver.task
        pending = task is not None and task.state is TaskState.PENDING_PREEMPT
        there = view.at_um >= driver.leaves_um or view.at_goal
        if task is not None and pending and driver.admitted and driver.drives(view) and there:
            self._book.move(task, TaskState.IN_PROGRESS, self.now_ms, "LEFT_THE_WAY_TO_REST")

    def _arrive(self, driver: Driver) -> None:
        assert driver.route is not None
        driver.node, driver.anchor = driver.route.goal, None
        if driver.phase is Phase.TO_PARK:
            driver.phase, driver.again_ms = Phase.IDLE, 0
            return
        assert driver.task is not None
        self._operate(driver, driver.task, Phase.LOADING if driver.phase is Phase.TO_PICK else Phase.UNLOADING)

    def _operate(self, driver: Driver, task: Task, phase: Phase) -> None:
        driver.phase, driver.since_ms, driver.operated = phase, self.now_ms, False
        self.sent.operations.append(self.operation(driver, task))

    def operation(self, driver: Driver, task: Task) -> Operation:
        """The operation of a truck in its node."""
        loading = driver.phase is Phase.LOADING
        kind, ms = ("LOAD", task.order.pick_ms) if loading else ("UNLOAD", task.order.drop_ms)
        node = self._site.network.nodes[driver.node].id
        return Operation(driver.robot_id, kind, node, ms, task.operation_id(kind))

    def _work(self, driver: Driver, task: Task, trouble: str | None) -> None:
        if driver.operated and driver.phase is Phase.LOADING:
            self._after_loading(driver, task)
        elif driver.operated:
            self._book.move(task, TaskState.DONE, self.now_ms, "UNLOADED")
            driver.task, driver.phase = None, Phase.IDLE
        elif trouble is not None or self.now_ms - driver.since_ms > self._params.operation_timeout_ms:
            self._break_down(driver, task, trouble)

    def _after_loading(self, driver: Driver, task: Task) -> None:
        self._book.loaded(task)
        if self._site.node_number[task.order.drop_node_id] == driver.node:
            self._operate(driver, task, Phase.UNLOADING)
        else:
            self.give(driver, Phase.TO_DROP, self._ways.go_on(driver, "TASK_ASSIGNED"))

    def _break_down(self, driver: Driver, task: Task, trouble: str | None) -> None:
        """A failed or timed-out operation is a fault of the truck."""
        driver.faulty = True
        cause = OPERATION_TIMEOUT if trouble is None else "OPERATION_FAILED"
        self._book.move(task, TaskState.HELD, self.now_ms, cause)
        details = driver.not_done(self._params.operation_timeout_ms) or {}
        if trouble is not None:
            details["reason"] = trouble
        self.sent.alerts.append(TaskAlert("ROBOT_FAULT", "ERROR", driver.robot_id, details))

    def _fail(self, driver: Driver) -> None:
        """A truck failed: its task goes back if it has not begun to load it, otherwise it is held."""
        task = driver.task
        if task is None or task.state is TaskState.HELD:
            return
        if driver.phase is Phase.TO_PICK:
            self._book.move(task, TaskState.READY, self.now_ms, ROBOT_FAILED)
            driver.task, driver.phase = None, Phase.TO_PARK
        else:
            self._book.move(task, TaskState.HELD, self.now_ms, ROBOT_FAILED)

    def _recover(self, driver: Driver, view: TruckView, task: Task) -> None:
        """A recovered truck continues its task and repeats an unfinished operation."""
        if not view.ok or driver.faulty or not (driver.redo or task.cause == ROBOT_FAILED):
            return
        again, driver.redo = driver.redo, False
        self._book.move(task, TaskState.IN_PROGRESS, self.now_ms, "ROBOT_RECOVERED")
        driver.since_ms = self.now_ms
        if again and driver.phase in OPERATING:
            task.begin_again()
            self._operate(driver, task, driver.phase)

    def _wait(self, driver: Driver, view: TruckView) -> None:
        """A truck whose route is not admitted goes on to rest after `patience_ms`, unless it is there."""
        waited = self.now_ms - driver.since_ms
        if driver.phase is not Phase.TO_PICK:
            self._keep_asking(driver, view, waited)
        elif driver.rejected is not None or (waited >= self._params.patience_ms and _is_in_the_way(driver, view)):
            assert driver.task is not None
            self._book.move(driver.task, TaskState.READY, self.now_ms, driver.rejected or "ROUTE_NOT_ADMITTED")
            if driver.node == driver.rest and not driver.called_off:
                driver.task, driver.phase, driver.route, driver.admitted = None, Phase.IDLE, driver.kept, True
                driver.again_ms = self.now_ms + self._params.asked_again_ms
            else:
                self.recall(driver)

    def _keep_asking(self, driver: Driver, view: TruckView, waited_ms: int) -> None:
        """A truck with a load, or on its way to rest: it uses a route admitted before, or asks again."""
        kept, route = driver.kept, driver.route
        assert route is not None
        impatient = waited_ms >= self._params.patience_ms
        if driver.phase is Phase.TO_PARK and kept is not None and impatient and route.onward != kept.onward:
            if view.route_id == kept.route_id and not view.at_goal:
                self.give(driver, Phase.TO_PARK, self._ways.keep_to(driver))
                return
            if kept.onward_stops:
                self.give(driver, Phase.TO_PARK, self._ways.go_on(driver, "PARKING"))
                return
        if driver.rejected is not None and driver.phase is Phase.TO_PARK and _is_in_force(kept, view):
            # It still has its previous route, and asks again from its end.
            driver.route, driver.admitted = kept, True
        elif driver.rejected is not None and waited_ms >= _RETRY_MS:
            self.give(driver, driver.phase, replace(route, revision=route.revision + 1))


def _is_in_the_way(driver: Driver, view: TruckView) -> bool:
    """Whether a truck that waits for its route may block others: it is not in its rest node, or stands at the goal of
    the route it should leave. The truck that has to wait for it may be the one it is held back for."""
    ended = driver.called_off and driver.kept is not None and driver.kept.goal != driver.rest and view.at_goal
    return driver.node != driver.rest or ended


def _is_in_force(kept: RoutePlan | None, view: TruckView) -> bool:
    return kept is not None and (view.route_id, view.revision) == (kept.route_id, kept.revision) and not view.at_goal


# A task waits that no truck can do while something is closed.
WAY_CLOSED = "WAY_CLOSED"


class TaskReason(Struct, frozen=True, rename="camel"):
    """Why a task is not done yet: a code with facts, and the truck that has it."""

    task_id: str
    state: TaskState
    code: str
    facts: dict[str, Json]
    since_ms: int
    robot_id: str | None = None

    @property
    def message(self) -> str:
        return task_sentence(self.task_id, self.state.value, self.code, self.robot_id, self.facts)


class Assignment:
    """Assignment of tasks to trucks."""

    def __init__(
        self,
        site: CompiledMap,
        drivers: Sequence[Driver],
        book: TaskBook,
        ways: Ways,
        tours: Tours,
        params: DispatchParams,
        usual: Sequence[Closed] = (),
    ) -> None:
        """`usual`: what each truck must avoid while nothing else is closed."""
        self._site = site
        self._drivers = drivers
        self._book = book
        self._ways = ways
        self._tours = tours
        self._params = params
        self._usual = usual
        # Places closed by operators.
        self.closings: tuple[Closing, ...] = ()

    def assign(self, now_ms: int) -> None:
        """Assign tasks to free trucks, at most `most_a_step` in one step."""
        free = [other for other in self._drivers if self._may_be_sent(other, now_ms)]
        if not free or not self._book.ready:
            return
        under_way, tried = self._book.under_way(), set[str]()
        for _ in range(self._params.most_a_step):
            taken = self._first_handed_out(under_way, tried, free, now_ms)
            if taken is None:
                return
            task, driver = taken
            # Counts for the limits of two stations.
            under_way.take(task.order)
            free = [other for other in free if other is not driver]

    def _first_handed_out(
        self, under_way: UnderWay, tried: set[str], free: Sequence[Driver], now_ms: int
    ) -> tuple[Task, Driver] | None:
        """The first task that a free truck takes, and the truck; tasks before it are added to `tried`."""
        if not free:
            return None
        for task in self._book.in_turn(under_way, tried, self._params.overtake_ms):
            driver = None
            if self._book.exhausted(task, under_way) is None:
                driver = self._hand_out(task, free, now_ms)
            if driver is not None:
                return task, driver
            tried.add(task.task_id)
        return None

    def _hand_out(self, task: Task, free: Sequence[Driver], now_ms: int) -> Driver | None:
        """Assign a task to the nearest truck that can take it."""
        etas = sorted(
            (eta, driver.robot_id, driver.number)
            for driver in self._named(task, free)
            if (eta := self._ways.eta_ms(driver, task.order)) is not None
        )
        for eta, _, number in etas:
            if self._take(self._drivers[number], task, now_ms):
                task.eta_ms, task.candidates = eta, tuple((name, driver) for driver, name, _ in etas)
                return self._drivers[number]
        return None

    def _named(self, task: Task, drivers: Sequence[Driver]) -> list[Driver]:
        named = task.order.robot_ids
        return [driver for driver in drivers if not named or driver.robot_id in named]

    def _may_be_sent(self, driver: Driver, now_ms: int) -> bool:
        view = self._ways.view(driver)
        if not view.ok or view.paused or view.load or driver.gone or driver.faulty:
            return False
        if driver.is_free:
            return driver.node != driver.rest or now_ms >= driver.again_ms
        return now_ms >= driver.again_ms and self._ways.may_turn_round(driver)

    def _take(self, driver: Driver, task: Task, now_ms: int) -> bool:
        number = self._site.node_number
        stops = number[task.order.pick_node_id], number[task.order.drop_node_id]
        called_off = driver.phase is Phase.TO_PARK
        leaves_um = self._ways.leaves_um(driver) if called_off else 0
        made = self._ways.turn_round if called_off else self._ways.set_out
        route = made(driver, stops, "TASK_ASSIGNED")
        if route is None:
            return False
        self._tours.give(driver, Phase.TO_PICK, route)
        driver.task, driver.called_off, driver.leaves_um = task, called_off, leaves_um
        task.robot_id, task.assigned_ms = driver.robot_id, now_ms
        self._book.move(task, TaskState.PENDING_PREEMPT if called_off else TaskState.ASSIGNED, now_ms, "NEAREST")
        return True

    def why(self, task: Task, now_ms: int) -> TaskReason:
        """Why a task is in its state, as of the last step."""
        code, facts = self._reason(task, now_ms)
        return TaskReason(task.task_id, task.state, code, facts, task.since_ms, task.robot_id)

    def _reason(self, task: Task, now_ms: int) -> tuple[str, dict[str, Json]]:
        stations: dict[str, Json] = {"pickNodeId": task.order.pick_node_id, "dropNodeId": task.order.drop_node_id}
        match task.state:
            case TaskState.WAITING:
                return self._book.lacks(task) or "NEW", stations
            case TaskState.READY:
                return self._not_taken(task, self._book.under_way(), now_ms)
            case TaskState.ASSIGNED | TaskState.PENDING_PREEMPT:
                return self._not_admitted(task)
            case TaskState.HELD:
                return task.cause, self._held(task)
            case TaskState.IN_PROGRESS:
                return self._driver(task).shown_phase.value, stations
            case _:
                return task.cause, {"by": task.by}

    def _held(self, task: Task) -> dict[str, Json]:
        driver = next((driver for driver in self._drivers if driver.task is task), None)
        not_done = None if driver is None else driver.not_done(self._params.operation_timeout_ms)
        robot = None if driver is None else driver.robot_id
        return {"loaded": task.loaded, "cause": task.cause, "by": task.by, "robotId": robot, "notDone": not_done}

    def _not_taken(self, task: Task, under_way: UnderWay, now_ms: int) -> tuple[str, dict[str, Json]]:
        order = task.order
        limit = self._book.exhausted(task, under_way)
        if limit is not None:
            return limit, {}
        may = [driver for driver in self._named(task, self._drivers) if not driver.gone]
        # A failed truck also closes its own place, so do not ask whether it reaches the stations.
        failed = [driver for driver in may if self._ways.view(driver).failed]
        well = [driver for driver in may if driver not in failed]
        reaching = [driver for driver in well if self._ways.reaches(driver, order)]
        if not reaching and self._is_kept_off(task, may):
            return WAY_CLOSED, {"closed": self._closed_for(task)}
        if not reaching and failed:
            return "NO_FREE_TRUCK", {"failed": _names(failed), "others": _names(well)}
        if not reaching:
            return "UNREACHABLE", {}
        free = [driver for driver in reaching if self._may_be_sent(driver, now_ms)]
        if not free:
            return "NO_FREE_TRUCK", {"reaching": _names(reaching)}
        return "NEXT", {"free": _names(free)}

    def _is_kept_off(self, task: Task, drivers: Sequence[Driver]) -> bool:
        """Whether places closed by operators keep every truck from a task."""
        return bool(self.closings) and any(
            self._ways.would_reach(driver, task.order, self._usual[driver.number]) for driver in drivers
        )

    def _closed_for(self, task: Task) -> list[Json]:
        """The closed stations of a task; all closed places if both are open."""
        stations = (f"NODE:{task.order.pick_node_id}", f"NODE:{task.order.drop_node_id}")
        own = [closing for closing in self.closings if closing.resource in stations] or self.closings
        return [[closing.resource, closing.operator, closing.reason] for closing in own]

    def _not_admitted(self, task: Task) -> tuple[str, dict[str, Json]]:
        driver = self._driver(task)
        starving = next((view.robot_id for view in self._ways.views if view.starving), None)
        if driver.admitted:
            return "PENDING_PREEMPT", {}
        if starving is not None and starving != driver.robot_id:
            return "BARRED_BY_STARVATION", {"starving": starving}
        return "ROUTE_NOT_ADMITTED", {}

    def _driver(self, task: Task) -> Driver:
        return next(driver for driver in self._drivers if driver.task is task)


def _names(drivers: Sequence[Driver]) -> list[Json]:
    return [driver.robot_id for driver in drivers]
