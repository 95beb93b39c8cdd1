"""Views of a fleet over HTTP: its map, its state after a tick, its tasks and streams.

Lengths are whole millimetres, angles milliradians, times milliseconds of the fleet. Everything is read from the engine,
so that the page needs no rules.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter

from msgspec import UNSET, Struct, UnsetType

from pendula.fleet import explain
from pendula.fleet.contracts import (
    ClosedPlace,
    HoldReason,
    LockResult,
    Phase,
    RobotHealth,
    RobotState,
    RobotStatus,
    TaskState,
)
from pendula.fleet.engine import FleetEngine
from pendula.fleet.map.network import Edge, Node
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile, envelope_of
from pendula.fleet.model import COMPILER_VERSION, Code, MoveStyle, Severity
from pendula.fleet.runs import results_of, robots_of
from pendula.fleet.sentences import cause_sentence, trouble_sentence
from pendula.fleet.tasks import Dispatch
from pendula.fleet.tasks.book import Flow, Task
from pendula.fleet.tick import reasons
from pendula.fleet.tick.health import is_fresh, yaw_to_turn_to
from pendula.fleet.tick.observing import STANDING_UM_S
from pendula.fleet.tick.orders import awaits_person, check_release, releasable
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.snapshot import closings_form
from pendula.kernel.canonical import Json

MOST_TASKS = 200
MOST_OVER = 50
UM_PER_MM = 1000


class MapNode(Struct, frozen=True):
    """`radius`: of the turning zone, 0 without one."""

    id: str
    x: int
    y: int
    station: bool
    parking: bool
    radius: int


class MapEdge(Struct, frozen=True):
    """A directed edge as a polyline; `s` are the positions of its points along it."""

    key: str
    start: int
    end: int
    forward: bool
    points: list[tuple[int, int]]
    s: list[int]


class Outline(Struct, frozen=True):
    """The extent of a truck from its pivot: ahead, behind, to each side."""

    front: int
    rear: int
    side: int


class ProfileView(Struct, frozen=True):
    profile_id: str
    body: Outline
    envelope: Outline


class SectionView(Struct, frozen=True):
    """A critical section: stretches of edges as (edge, from, to)."""

    id: str
    capacity: int
    stretches: list[tuple[int, int, int]]


class MapView(Struct, frozen=True):
    """What does not change while a fleet is served. `simulated`: whether its trucks are, and can be given faults."""

    map_id: str
    simulated: bool
    compiled_hash: str
    low: tuple[int, int]
    high: tuple[int, int]
    nodes: list[MapNode]
    edges: list[MapEdge]
    sections: list[SectionView]
    profiles: list[ProfileView]


class PointView(Struct, frozen=True):
    x: int
    y: int
    yaw: int


class Bands(Struct, frozen=True):
    """Stretches of edges as (edge, from, to): where the truck may be, its grant, and its request beyond that."""

    occupied: list[tuple[int, int, int]]
    granted: list[tuple[int, int, int]]
    requested: list[tuple[int, int, int]]


class TruckNow(Struct, frozen=True):
    """One truck. `stop`: its stop line; `refuge`: the end of its grant; `because`: the chain of blocking trucks.
    `silent`: it does not report and is not marked absent; `needs_person`: it waits for an operator, or was stopped
    `waitAlertMs` ago; `clearable`: it has a fault that an operator may clear; `removable`: it cannot move and may be
    taken out of the hall; `releasable`: resources that FORCE_RELEASE may free, none while it may move and never those
    where it stands; `report_age`: None before its first report; `obstructed`: it reports an obstacle."""

    robot_id: str
    profile_id: str
    park_node_id: str
    at: PointView | None
    speed: int
    turning: bool
    obstructed: bool
    status: RobotStatus
    health: RobotHealth
    phase: Phase
    load: bool
    paused: bool
    silent: bool
    absent: bool
    needs_person: bool
    clearable: bool
    removable: bool
    releasable: list[str]
    task_id: str | None
    report_age: int | None
    hold_reason: HoldReason
    code: str
    sentence: str
    wait: int
    blocker: str | None
    because: list[str]
    cycle: list[str]
    stop: PointView | None
    refuge: PointView | None
    bands: Bands
    zones: list[int]


class TaskNow(Struct, frozen=True):
    task_id: str
    stream_id: str | None
    state: TaskState
    cause: str
    pick_node_id: str
    drop_node_id: str
    priority: int
    created: int
    since: int
    robot_id: str | None
    loaded: bool


class DroppedNow(Struct, frozen=True):
    """A dropped report. `now`: when it was dropped, by the clock of the fleet; `at`: the time of the report; `ahead`:
    the difference, negative if the report is older."""

    code: str
    now: int
    at: int | None
    ahead: int | None


class StreamNow(Struct, frozen=True):
    """A stream and its progress; after `last` it creates no task."""

    stream_id: str
    pick_node_ids: list[str]
    drop_node_ids: list[str]
    priority: int
    most: int
    open: int
    made: int
    last: int | None


class FleetNow(Struct, frozen=True):
    """A fleet after a tick; `n` is the record of the journal, None before the first tick. `degraded`: why the journal
    is not written at present. `last_dropped`: the last dropped report of each truck, known or not, until one is
    accepted; not for past ticks."""

    n: int
    tick: int
    now: int
    override: bool
    trucks: list[TruckNow]
    tasks: list[TaskNow]
    over: list[TaskNow]
    more_tasks: int
    streams: list[StreamNow]
    counts: dict[str, int]
    broken: list[str]
    # Places that operators have closed.
    closings: list[ClosedPlace]
    degraded: str | None
    last_dropped: dict[str, DroppedNow] | UnsetType = UNSET


class RobotList(Struct, frozen=True):
    """Every truck that has reported, after a tick."""

    tick: int
    nowMs: int
    robots: tuple[RobotState, ...]


class ReportFinding(Struct, frozen=True):
    code: Code
    severity: Severity
    message: str
    details: dict[str, Json]
    remedy: str | UnsetType = UNSET


class CompileReport(Struct, frozen=True):
    """Warnings and notes of the compiler; a map with errors is not served."""

    mapId: str
    mapHash: str
    compiledMapHash: str
    robotProfileHash: str
    compilerVersion: str
    findings: list[ReportFinding]


class LockResultList(Struct, frozen=True):
    """The grant of every truck in a tick, with the reason for its limit."""

    tick: int
    nowMs: int
    lockResults: tuple[LockResult, ...]


# The contract


def robots_form(engine: FleetEngine) -> RobotList:
    return RobotList(engine.traffic.tick_number, engine.traffic.now_ms, robots_of(engine))


def results_form(engine: FleetEngine) -> LockResultList:
    return LockResultList(engine.traffic.tick_number, engine.traffic.now_ms, results_of(engine))


def report_of_compiler(engine: FleetEngine) -> CompileReport:
    """The compile report of the map of a fleet."""
    site = engine.site
    return CompileReport(
        mapId=site.map_id,
        mapHash=site.map_hash,
        compiledMapHash=site.compiled_hash,
        robotProfileHash=site.profile_hash,
        compilerVersion=COMPILER_VERSION,
        findings=[
            ReportFinding(finding.code, finding.severity, finding.message, finding.details, finding.remedy or UNSET)
            for finding in site.findings
        ],
    )


# The map


def map_of(engine: FleetEngine, *, simulated: bool) -> MapView:
    site = engine.site
    network = site.network
    xs = [x for edge in network.edges for x in edge.path.x] or [node.at.x_um for node in network.nodes]
    ys = [y for edge in network.edges for y in edge.path.y] or [node.at.y_um for node in network.nodes]
    return MapView(
        map_id=site.map_id,
        simulated=simulated,
        compiled_hash=site.compiled_hash,
        low=(_mm(min(xs)), _mm(min(ys))),
        high=(_mm(max(xs)), _mm(max(ys))),
        nodes=[_node(one, site) for one in network.nodes],
        edges=[_edge(one) for one in network.edges],
        sections=_sections(site),
        profiles=[_profile(one) for one in engine.config.profiles],
    )


def _mm(um: int) -> int:
    return (um + UM_PER_MM // 2) // UM_PER_MM


def _node(node: Node, site: CompiledMap) -> MapNode:
    radius = _mm(site.zones.radius_um) if node.turning else 0
    return MapNode(node.id, _mm(node.at.x_um), _mm(node.at.y_um), node.station, node.parking, radius)


def _edge(edge: Edge) -> MapEdge:
    path = edge.path
    points = [(_mm(x), _mm(y)) for x, y in zip(path.x, path.y, strict=True)]
    return MapEdge(edge.key, edge.start, edge.end, edge.style is MoveStyle.FORWARD, points, [_mm(s) for s in path.s])


def _sections(site: CompiledMap) -> list[SectionView]:
    stretches: dict[int, list[tuple[int, int, int]]] = {}
    for edge, found in site.sections_of_edge.items():
        for number, low, high in found:
            stretches.setdefault(number, []).append((edge, _mm(low), _mm(high)))
    return [SectionView(one.id, one.capacity, stretches.get(i, [])) for i, one in enumerate(site.sections)]


def _profile(profile: RobotProfile) -> ProfileView:
    around = envelope_of(profile)
    return ProfileView(
        profile.profile_id,
        Outline(_mm(profile.head_um), _mm(profile.tail_um), _mm(profile.width_um // 2)),
        Outline(_mm(around.front_um), _mm(around.rear_um), _mm(around.side_um)),
    )


# The state after a tick


def now_of(engine: FleetEngine, n: int) -> FleetNow:
    traffic, book = engine.traffic, engine.dispatch.book
    open_tasks = sorted(book.open.values(), key=lambda task: (task.created_ms, task.task_id))
    return FleetNow(
        n=n,
        tick=traffic.tick_number,
        now=traffic.now_ms,
        override=traffic.override,
        trucks=[_truck(engine, *pair) for pair in zip(traffic.records, traffic.whys(), strict=True)],
        tasks=[_task(task) for task in open_tasks[:MOST_TASKS]],
        over=[_task(task) for task in list(book.over)[-MOST_OVER:]],
        more_tasks=max(0, len(open_tasks) - MOST_TASKS),
        streams=[_stream(flow) for flow in book.flows.values()],
        counts={state.value: count for state, count in sorted(book.counts.items())},
        broken=list(engine.broken()),
        closings=list(closings_form(traffic.closings)),
        degraded=None if engine.trouble is None else trouble_sentence(engine.trouble),
        last_dropped={
            name: DroppedNow(report.code, report.now_ms, report.at_ms, report.ahead_ms)
            for name, report in sorted(engine.dropped.items())
        }
        or UNSET,
    )


def _truck(engine: FleetEngine, record: Record, reason: reasons.Reason) -> TruckNow:
    traffic, driver = engine.traffic, engine.dispatch.drivers[record.number]
    plan = None if record.track is None else record.track.plan
    task = engine.dispatch.task_of(record.number)
    turning = reason.hold_reason is HoldReason.NONE and record.v_um_s < STANDING_UM_S
    turning = turning and yaw_to_turn_to(record, engine.config.traffic) is not None
    return TruckNow(
        robot_id=record.robot_id,
        profile_id=record.profile.profile_id,
        park_node_id=record.site.network.nodes[record.rest].id,
        at=_place(record),
        speed=_mm(record.v_um_s),
        turning=turning,
        obstructed=record.obstructed,
        status=record.status,
        health=record.health,
        phase=driver.shown_phase,
        load=record.load,
        paused=record.paused,
        silent=not (record.absent or record.is_out or is_fresh(record, traffic.now_ms, engine.config.traffic)),
        absent=record.absent,
        needs_person=awaits_person(record, traffic.now_ms, engine.config.traffic),
        clearable=record.latched is not None,
        removable=check_release(record, traffic.now_ms, engine.config.traffic) is None,
        releasable=releasable(record, traffic.now_ms, engine.config.traffic),
        task_id=None if task is None else task.task_id,
        report_age=None if record.pose is None else traffic.now_ms - record.report_ms,
        hold_reason=reason.hold_reason,
        code=reason.code or explain.UNDER_WAY,
        sentence=explain.with_dropped(
            _sentence(record, reason, engine.dispatch, turning), reason, engine.dropped.get(record.robot_id)
        ),
        wait=reason.wait_ms,
        blocker=reason.blocker,
        because=list(reason.chain),
        cycle=list(reason.cycle),
        stop=_on(plan, record.hold_um),
        refuge=_on(plan, record.grant_um),
        bands=_bands(record, engine.config.traffic.lookahead_um),
        zones=_zones(record),
    )


def _sentence(record: Record, reason: reasons.Reason, dispatch: Dispatch, turning: bool) -> str:
    """Why a truck stands; loading and unloading take precedence over an obstacle or a turn."""
    sentence = explain.sentence_of(reason, dispatch)
    if dispatch.phase(record.number) in (Phase.LOADING, Phase.UNLOADING):
        return sentence
    if record.obstructed and not record.v_um_s and reason.code in (None, reasons.GOING_TO_PARK):
        return f"{record.robot_id} waits: it reports an obstacle."
    return f"{record.robot_id} turns on the spot." if turning else sentence


def _place(record: Record) -> PointView | None:
    """The reported position, or before the first report the assumed one; None for a removed truck."""
    if record.is_out:
        return None
    if record.pose is not None:
        return PointView(_mm(record.pose.x_um), _mm(record.pose.y_um), _mm(record.pose.yaw_urad))
    if record.track is not None and record.track.plan.segments:
        return _on(record.track.plan, record.at_um)
    at = record.site.network.nodes[record.node].at
    return PointView(_mm(at.x_um), _mm(at.y_um), 0)


def _on(plan: RoutePlan | None, s_um: int) -> PointView | None:
    if plan is None or not plan.segments:
        return None
    pose = plan.pose_at(min(s_um, plan.length_um))
    return PointView(_mm(pose.x_um), _mm(pose.y_um), _mm(pose.yaw_urad))


def _bands(record: Record, lookahead_um: int) -> Bands:
    end = record.grant_um
    return Bands(
        occupied=list(_stretches(record, record.bound_um, record.at_um)),
        granted=list(_stretches(record, record.at_um, end)),
        requested=list(_stretches(record, end, max(end, record.at_um + lookahead_um))),
    )


def _stretches(record: Record, low_um: int, high_um: int) -> Iterator[tuple[int, int, int]]:
    """A stretch of the route of a truck, edge by edge."""
    segments = () if record.track is None else record.track.segments
    # A route has up to hundreds of segments, and a stretch touches a few.
    first = bisect_right(segments, low_um, key=attrgetter("route_s0_um")) - 1
    for segment in islice(segments, max(0, first), None):
        begin = segment.route_s0_um
        low, high = max(low_um, begin), min(high_um, begin + segment.length_um)
        if begin >= high_um:
            return
        if low < high:
            yield segment.edge, _mm(low - begin), _mm(high - begin)


def _zones(record: Record) -> list[int]:
    """The nodes that the truck has locked."""
    first, beyond = record.site.zone(0), record.site.token(0)
    return sorted(resource - first for resource in record.keeps if first <= resource < beyond)


def _task(task: Task) -> TaskNow:
    return TaskNow(
        task_id=task.task_id,
        stream_id=task.order.stream_id,
        state=task.state,
        cause=cause_sentence(task.cause, task.by),
        pick_node_id=task.order.pick_node_id,
        drop_node_id=task.order.drop_node_id,
        priority=task.order.priority,
        created=task.created_ms,
        since=task.since_ms,
        robot_id=task.robot_id,
        loaded=task.loaded,
    )


def _stream(flow: Flow) -> StreamNow:
    stream = flow.stream
    return StreamNow(
        stream_id=stream.stream_id,
        pick_node_ids=list(stream.pick_node_ids),
        drop_node_ids=list(stream.drop_node_ids),
        priority=stream.priority,
        most=flow.most,
        open=flow.open,
        made=flow.made,
        last=stream.last_ms,
    )
