"""All open tasks, the streams that create them, and the last finished ones.

A stream makes one task a step while fewer than its limit are open and its conditions hold: from the first pick with
unclaimed goods to the first drop with unclaimed room. The goods of a stream without conditions never run out; its picks
and drops take turns.
"""

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import islice
from math import lcm
from typing import TypeAlias

from msgspec.structs import replace

from pendula.fleet.contracts import Phase, RobotHealth, RobotStatus, TaskState
from pendula.fleet.map.planner import Anchor, AtNode, Closed, Planner
from pendula.fleet.map.routes import Pose, RoutePlan
from pendula.fleet.tasks.model import OVER, TAKEN, Conditions, TaskOrder, TaskStream, Transition, TruckView, check
from pendula.fleet.tick.observing import STANDING_UM_S, TruckReport
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.records import FAILURES, Record
from pendula.fleet.tick.turns import starved
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal

# Reported goods and room by node, and the tasks that claim them: the oldest claim is served first.


class Claims:
    """Ids of tasks that claim what a node has, in order of arrival."""

    def __init__(self, task_ids: Iterable[str] = ()) -> None:
        self._ids = dict.fromkeys(task_ids)
        # Thousands of tasks ask this in every step, so the first ones are cached until claims or counts change.
        self._first: Set[str] = frozenset()
        self._counted: int | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._ids

    def add(self, task_id: str) -> None:
        self._ids[task_id] = None
        self._counted = None

    def remove(self, task_id: str) -> None:
        del self._ids[task_id]
        self._counted = None

    def is_among_first(self, task_id: str, count: int) -> bool:
        if self._counted != count:
            self._first, self._counted = frozenset(islice(self._ids, count)), count
        return task_id in self._first


@dataclass(slots=True)
class Stock:
    """`goods` and `room` are counts of nodes; a node of which nothing was reported has none. `limits`: how
    many tasks at most may be under way to a node at a time."""

    goods: dict[str, int] = field(default_factory=dict)
    room: dict[str, int] = field(default_factory=dict)
    picks: dict[str, Claims] = field(default_factory=dict)
    drops: dict[str, Claims] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)

    def has_goods(self, node: str) -> bool:
        """Whether there are unclaimed goods."""
        return self.goods.get(node, 0) > len(self.picks.get(node, ()))

    def has_room(self, node: str) -> bool:
        return self.room.get(node, 0) > len(self.drops.get(node, ()))

    def has_goods_for(self, order: TaskOrder) -> bool:
        """Whether there are goods for a task and for all claims before it."""
        node = order.pick_node_id
        return self.picks[node].is_among_first(order.task_id, self.goods.get(node, 0))

    def has_room_for(self, order: TaskOrder) -> bool:
        node = order.drop_node_id
        return self.drops[node].is_among_first(order.task_id, self.room.get(node, 0))

    def claim(self, order: TaskOrder) -> None:
        self.picks.setdefault(order.pick_node_id, Claims()).add(order.task_id)
        self.drops.setdefault(order.drop_node_id, Claims()).add(order.task_id)

    def picked(self, order: TaskOrder) -> None:
        """The goods of a task were picked up and are no longer counted."""
        _taken(self.picks, self.goods, order.pick_node_id, order.task_id)

    def settle(self, order: TaskOrder, dropped: bool) -> None:
        """A task is over: its unused claims are free; if it was dropped, its room is used up."""
        claims = self.picks.get(order.pick_node_id)
        if claims is not None and order.task_id in claims:
            claims.remove(order.task_id)
        if dropped:
            _taken(self.drops, self.room, order.drop_node_id, order.task_id)
        else:
            self.drops[order.drop_node_id].remove(order.task_id)


def _taken(claims: dict[str, Claims], counts: dict[str, int], node: str, task_id: str) -> None:
    claims[node].remove(task_id)
    if node in counts:
        counts[node] = max(0, counts[node] - 1)


# Finished tasks that are kept.
REMEMBERED = 100
Line: TypeAlias = tuple[int, str, str]
Place: TypeAlias = tuple[int, str]


@dataclass(slots=True)
class Task:
    """One task. `loaded`: its goods are on the truck."""

    order: TaskOrder
    created_ms: int
    state: TaskState = TaskState.WAITING
    since_ms: int = 0
    cause: str = "CREATED"
    # The operator who decided it.
    by: str | None = None
    robot_id: str | None = None
    assigned_ms: int | None = None
    eta_ms: int | None = None
    # Trucks that could take it when it was assigned, with the time each needed to its pick.
    candidates: tuple[tuple[str, int], ...] = ()
    loaded: bool = False
    # How often loading, or after it unloading, was repeated.
    repeats: int = 0

    def begin_again(self) -> None:
        """The operation in a node was not finished and starts again."""
        self.repeats += 1

    def operation_id(self, kind: str) -> str:
        """The id of an operation: T1/LOAD, and T1/LOAD/2 when it is repeated."""
        name = f"{self.task_id}/{kind}"
        return name if self.repeats == 0 else f"{name}/{self.repeats + 1}"

    @property
    def task_id(self) -> str:
        return self.order.task_id

    @property
    def is_over(self) -> bool:
        return self.state in OVER


@dataclass(slots=True)
class Flow:
    """A stream with its counters. `most`: limit of open tasks."""

    stream: TaskStream
    most: int
    made: int = 0
    open: int = 0


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Tasks under way, counted by stream and by node; `calls`: stops at a node that are still ahead or under way."""

    streams: Counter[str | None]
    nodes: Counter[str]
    calls: Counter[str]

    def take(self, order: TaskOrder) -> None:
        self.streams[order.stream_id] += 1
        self.nodes.update({order.pick_node_id, order.drop_node_id})
        self.calls.update((order.pick_node_id, order.drop_node_id))


class Lines:
    """Ready tasks in lines: one line for each priority, pick and drop, by age and id. There may be thousands; only the
    first of each line needs a check."""

    def __init__(self) -> None:
        self._lines: dict[Line, list[Place]] = {}

    def join(self, order: TaskOrder, created_ms: int) -> None:
        insort(self._lines.setdefault(_line_of(order), []), (created_ms, order.task_id))

    def leave(self, order: TaskOrder, created_ms: int) -> None:
        line = _line_of(order)
        places = self._lines[line]
        del places[bisect_left(places, (created_ms, order.task_id))]
        if not places:
            del self._lines[line]

    def in_turn(self, calls: Mapping[str, int], tried: Set[str], overtake_ms: int) -> Iterator[str]:
        """Untried tasks in order of assignment: high priority first, then the
        oldest, then by id.

        Where tasks may overtake, of those made within `overtake_ms` of the oldest that goes first to whose pick,
        then to whose drop, the fewest trucks are on their way (FLT-TASK-15); so each has its turn all the same.
        """
        heads = {line: at for line, places in self._lines.items() if (at := _first(places, tried)) < len(places)}
        oldest: dict[int, int] = {}
        for line, at in heads.items():
            created_ms = self._lines[line][at][0]
            oldest[line[0]] = min(created_ms, oldest.get(line[0], created_ms))

        def turn(line: Line, place: Place) -> tuple[int, bool, int, int, Place]:
            priority, pick, drop = line
            late = place[0] - oldest[priority] >= overtake_ms
            return -priority, late, *((0, 0) if late else (calls.get(pick, 0), calls.get(drop, 0))), place

        queue = [(turn(line, self._lines[line][at]), line, at) for line, at in heads.items()]
        heapify(queue)
        while queue:
            _, line, at = heappop(queue)
            places = self._lines[line]
            yield places[at][1]
            if at + 1 < len(places):
                heappush(queue, (turn(line, places[at + 1]), line, at + 1))


def _line_of(order: TaskOrder) -> Line:
    return order.priority, order.pick_node_id, order.drop_node_id


def _first(places: list[Place], tried: Set[str]) -> int:
    """The index of the first untried task; the tried ones are before it."""
    return next((at for at, (_, task_id) in enumerate(places) if task_id not in tried), len(places))


@dataclass(slots=True)
class TaskBook:
    flows: dict[str, Flow]
    stock: Stock = field(default_factory=Stock)
    open: dict[str, Task] = field(default_factory=dict)
    # Tasks that wait for conditions or may lose them, and tasks that may be assigned.
    watched: dict[str, Task] = field(default_factory=dict)
    ready: dict[str, Task] = field(default_factory=dict)
    lines: Lines = field(default_factory=Lines)
    over: deque[Task] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    counts: Counter[TaskState] = field(default_factory=Counter)
    transitions: list[Transition] = field(default_factory=list)
    # Streams that differ from the configuration.
    changed: dict[str, TaskStream] = field(default_factory=dict)

    @classmethod
    def of(cls, streams: Iterable[TaskStream], trucks: int, limits: Mapping[str, int]) -> "TaskBook":
        ordered = sorted(streams, key=lambda stream: stream.stream_id)
        flows = {stream.stream_id: Flow(stream, stream.max_concurrent or trucks) for stream in ordered}
        return cls(flows, Stock(limits=dict(limits)))

    @property
    def done(self) -> int:
        return self.counts[TaskState.DONE]

    @property
    def held(self) -> int:
        return sum(task.state is TaskState.HELD for task in self.open.values())

    def is_over(self, now_ms: int) -> bool:
        """Whether all tasks are done and no stream creates more."""
        ended = all(flow.stream.last_ms is not None and flow.stream.last_ms < now_ms for flow in self.flows.values())
        return ended and not self.open

    def add(self, order: TaskOrder, now_ms: int, cause: str) -> Task:
        task = Task(order, now_ms)
        self.open[order.task_id] = task
        self.stock.claim(order)
        flow = self.flow(order)
        if flow is not None:
            flow.open += 1
        self._note(task, None, TaskState.WAITING, now_ms, cause)
        return task

    def put(self, task: Task) -> None:
        """Put back an existing task with its claims."""
        self.open[task.task_id] = task
        flow = self.flow(task.order)
        if flow is not None:
            flow.open += 1
        self._sort_in(task)

    def find(self, task_id: str) -> Task | None:
        """The task with an id, also a recently finished one."""
        return self.open.get(task_id) or next((task for task in self.over if task.task_id == task_id), None)

    def reprioritise(self, task_id: str, priority: int) -> Refusal | None:
        task = self.open.get(task_id)
        if task is None:
            return Refusal("TASK_UNKNOWN", {"taskId": task_id})
        ready = task_id in self.ready
        if ready:
            self.lines.leave(task.order, task.created_ms)
        task.order = replace(task.order, priority=priority)
        if ready:
            self.lines.join(task.order, task.created_ms)
        return None

    def set_stream(self, stream: TaskStream, trucks: int) -> None:
        """Add or replace a stream; its tasks stay. Streams are ordered by name."""
        before = self.flows.get(stream.stream_id, Flow(stream, 0))
        flow = Flow(stream, stream.max_concurrent or trucks, before.made, before.open)
        self.flows = dict(sorted({**self.flows, stream.stream_id: flow}.items()))
        self.changed[stream.stream_id] = stream
        for task in list(self.open.values()):
            # The conditions of unassigned tasks may have changed.
            if task.order.stream_id == stream.stream_id:
                self._sort_in(task)

    def make(self, now_ms: int) -> None:
        """Create tasks of streams, one per stream and step, so that all are served in turn."""
        for flow in self.flows.values():
            order = self._next(flow, now_ms)
            if order is not None:
                flow.made += 1
                self.add(order, now_ms, "STREAM")

    def _next(self, flow: Flow, now_ms: int) -> TaskOrder | None:
        stream = flow.stream
        if flow.open >= flow.most or (stream.last_ms is not None and now_ms > stream.last_ms):
            return None
        picks, drops = stream.pick_node_ids, stream.drop_node_ids
        # Pairs every pick with every drop in turn, also if there are equally many.
        turn = flow.made + flow.made // lcm(len(picks), len(drops))
        pick = self._place(picks, flow.made, stream.conditions.pick_has_goods, self.stock.has_goods)
        drop = self._place(drops, turn, stream.conditions.drop_has_room, self.stock.has_room)
        task_id = f"{stream.stream_id}-{flow.made + 1}"
        if pick is None or drop is None or task_id in self.open:
            return None
        return TaskOrder(
            task_id=task_id,
            pick_node_id=pick,
            drop_node_id=drop,
            at_ms=now_ms,
            robot_ids=stream.robot_ids,
            pick_ms=stream.pick_ms,
            drop_ms=stream.drop_ms,
            priority=stream.priority,
            stream_id=stream.stream_id,
        )

    def _place(self, nodes: Sequence[str], turn: int, counted: bool, has: Callable[[str], bool]) -> str | None:
        """The first listed node that has what is needed; the next one in turn if nothing is counted."""
        if not counted:
            return nodes[turn % len(nodes)]
        return next((node for node in nodes if has(node)), None)

    def in_turn(self, under_way: UnderWay, tried: Set[str], overtake_ms: int) -> Iterator[Task]:
        """Ready, untried tasks in order of assignment."""
        return (self.ready[task_id] for task_id in self.lines.in_turn(under_way.calls, tried, overtake_ms))

    def look(self, now_ms: int) -> None:
        """Update which unassigned tasks are ready."""
        for task in list(self.watched.values()):
            code = self.lacks(task)
            if task.state is TaskState.WAITING and code is None:
                self.move(task, TaskState.READY, now_ms, "CONDITIONS_HOLD")
            elif task.state is TaskState.READY and code is not None:
                self.move(task, TaskState.WAITING, now_ms, code)

    def lacks(self, task: Task) -> str | None:
        """Why a task is not ready: NO_GOODS or NO_ROOM."""
        conditions = self._conditions(task.order)
        if conditions.pick_has_goods and not self.stock.has_goods_for(task.order):
            return "NO_GOODS"
        return "NO_ROOM" if conditions.drop_has_room and not self.stock.has_room_for(task.order) else None

    def under_way(self) -> "UnderWay":
        """The tasks under way, counted for the limits."""
        tasks = [task for task in self.open.values() if task.state in TAKEN or task.loaded]
        taken = [task.order for task in tasks]
        calls = Counter(order.drop_node_id for order in taken)
        calls.update(task.order.pick_node_id for task in tasks if not task.loaded)
        return UnderWay(
            Counter(order.stream_id for order in taken),
            Counter(node for order in taken for node in {order.pick_node_id, order.drop_node_id}),
            calls,
        )

    def exhausted(self, task: Task, under_way: "UnderWay") -> str | None:
        """The limit that keeps a ready task from being assigned: of its stream, or of its pick or drop."""
        order, flow = task.order, self.flow(task.order)
        if flow is not None and under_way.streams[order.stream_id] >= flow.most:
            return "STREAM_LIMIT"
        limits = self.stock.limits
        nodes = (order.pick_node_id, order.drop_node_id)
        full = any(node in limits and under_way.nodes[node] >= limits[node] for node in nodes)
        return "NODE_LIMIT" if full else None

    def loaded(self, task: Task) -> None:
        """The goods have left their pick."""
        task.loaded, task.repeats = True, 0
        self.stock.picked(task.order)

    def move(self, task: Task, state: TaskState, now_ms: int, cause: str, by: str | None = None) -> None:
        """Change the state of a task; raises `AssertionError` for an illegal transition."""
        self._note(task, task.state, state, now_ms, cause, by)
        if state in (TaskState.READY, TaskState.WAITING):
            task.robot_id = task.assigned_ms = task.eta_ms = None
            task.candidates = ()
        if task.is_over:
            self._close(task, dropped=state is TaskState.DONE)

    def _close(self, task: Task, dropped: bool) -> None:
        del self.open[task.task_id]
        self.over.append(task)
        self.counts[task.state] += 1
        self.stock.settle(task.order, dropped=dropped)
        flow = self.flow(task.order)
        if flow is not None:
            flow.open -= 1

    def _note(
        self, task: Task, before: TaskState | None, state: TaskState, now_ms: int, cause: str, by: str | None = None
    ) -> None:
        check(before, state)
        task.state, task.since_ms, task.cause, task.by = state, now_ms, cause, by
        self.transitions.append(Transition(now_ms, task.task_id, before, state, cause, robot_id=task.robot_id, by=by))
        self._sort_in(task)

    def _sort_in(self, task: Task) -> None:
        ready = task.state is TaskState.READY
        may_change = ready and self._conditions(task.order) != Conditions()
        if ready != (task.task_id in self.ready):
            (self.lines.join if ready else self.lines.leave)(task.order, task.created_ms)
        self._place_in(self.ready, task, ready)
        self._place_in(self.watched, task, task.state is TaskState.WAITING or may_change)

    def _place_in(self, group: dict[str, Task], task: Task, belongs: bool) -> None:
        if belongs:
            group[task.task_id] = task
        else:
            group.pop(task.task_id, None)

    def _conditions(self, order: TaskOrder) -> Conditions:
        flow = self.flow(order)
        return Conditions() if flow is None else flow.stream.conditions

    def flow(self, order: TaskOrder) -> Flow | None:
        return None if order.stream_id is None else self.flows.get(order.stream_id)


# The driver of a truck: its task, its phase, its last route and the route in force.

DRIVING = frozenset({Phase.TO_PICK, Phase.TO_DROP, Phase.TO_PARK})
OPERATING = frozenset({Phase.LOADING, Phase.UNLOADING})
OPERATION_TIMEOUT = "OPERATION_TIMEOUT"


@dataclass(slots=True)
class Driver:
    """`route`: the last one sent to traffic, at `since_ms`; `kept`: the last admitted one."""

    number: int
    robot_id: str
    planner: Planner
    closed: Closed
    rest: int
    # Its node, or its last one; `anchor`: its start if that is not its rest node.
    node: int
    anchor: Anchor | None = None
    phase: Phase = Phase.IDLE
    task: Task | None = None
    route: RoutePlan | None = None
    since_ms: int = 0
    admitted: bool = True
    # Why traffic rejected the route for good.
    rejected: str | None = None
    kept: RoutePlan | None = None
    # Whether it was on its way to rest when it got its task; where it leaves that way; when it may be asked again.
    called_off: bool = False
    leaves_um: int = 0
    again_ms: int = 0
    routes: int = 0
    # An operation failed or timed out: a fault until an operator clears it.
    faulty: bool = False
    # It reported an operation done that was not processed yet: the truck may have failed meanwhile.
    operated: bool = False
    # An operator resumed its held task: it repeats the unfinished operation.
    redo: bool = False
    gone: bool = False

    def not_done(self, timeout_ms: int) -> dict[str, Json] | None:
        """The failed operation, until an operator clears the fault; `timeoutMs` if it timed out."""
        if not self.faulty:
            return None
        late = self.task is not None and self.task.cause == OPERATION_TIMEOUT
        operation = {Phase.LOADING: "LOAD", Phase.UNLOADING: "UNLOAD"}.get(self.phase)
        return {"operation": operation, "timeoutMs": timeout_ms if late else None}

    @property
    def is_free(self) -> bool:
        return self.phase is Phase.IDLE and self.task is None

    @property
    def at_rest(self) -> bool:
        return self.is_free and self.node == self.rest

    @property
    def shown_phase(self) -> Phase:
        """The phase to show: a truck that will leave its way to rest stays on it until the node where it leaves."""
        pending = self.task is not None and self.task.state is TaskState.PENDING_PREEMPT
        return Phase.TO_PARK if pending else self.phase

    def drives(self, view: TruckView) -> bool:
        """Whether its last route is in force."""
        route = self.route
        return route is not None and (view.route_id, view.revision) == (route.route_id, route.revision)

    def here(self, view: TruckView) -> Anchor:
        """The start of its next route while it stands."""
        return self.anchor or AtNode(self.node, view.yaw_urad)

    def next_route_id(self) -> str:
        self.routes += 1
        return f"route-{self.robot_id}-{self.routes}"


# Trucks as tasks see them: from what traffic knows after its last tick, and from what they report for the next.
# A truck that traffic has not heard of yet counts from its first report on, so that it can be sent somewhere before
# it is sent to rest.


def truck_views(
    records: Sequence[Record], params: TrafficParams, now_ms: int, reports: Sequence[TruckReport] = ()
) -> list[TruckView]:
    fresh = {report.robot_id: report for report in reports}
    starving = starved(list(records), now_ms, params)
    return [_view(record, params, fresh.get(record.robot_id), record is starving) for record in records]


def _view(record: Record, params: TrafficParams, report: TruckReport | None, starving: bool) -> TruckView:
    track, pose = record.track, record.pose
    healthy = record.health is RobotHealth.HEALTHY and record.stop_code is None
    if pose is None and report is not None:
        healthy, pose = report.status is RobotStatus.OK, Pose(report.x_um, report.y_um, report.yaw_urad)
    return TruckView(
        number=record.number,
        robot_id=record.robot_id,
        route_id=None if track is None else track.plan.route_id,
        revision=0 if track is None else track.plan.revision,
        at_um=record.at_um,
        bound_um=max(record.at_um + record.asked_um, record.grant_um),
        at_goal=_is_at_goal(record, params),
        yaw_urad=None if pose is None else pose.yaw_urad,
        ok=healthy and pose is not None,
        failed=record.stop_code in FAILURES,
        paused=record.paused,
        load=record.load if report is None else report.load,
        starving=starving,
    )


def _is_at_goal(record: Record, params: TrafficParams) -> bool:
    """Whether a truck stands at the end of its route, with the right to be there."""
    track = record.track
    if track is None or record.v_um_s >= STANDING_UM_S:
        return False
    return record.grant_um >= track.goal_um and record.at_um >= track.goal_um - params.arrive_tol_um
