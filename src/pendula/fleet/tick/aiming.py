"""The command of every truck after the grants: hold point, rolling target and speed, or to turn or stop."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Protocol, overload

from msgspec import UNSET, Struct, structs

from pendula.fleet.contracts import (
    Blocker,
    CommandMode,
    CorridorRequest,
    HoldComponents,
    HoldPoint,
    HoldReason,
    LockResult,
    PoseContract,
    RollingTargetCommand,
)
from pendula.fleet.map.network import Edge
from pendula.fleet.map.routes import Pose, RoutePlan
from pendula.fleet.map.trucks import RobotProfile, allowed_speed_um_s, spacing_um
from pendula.fleet.model import CONTRACT_VERSION, MoveStyle
from pendula.fleet.tick import reasons
from pendula.fleet.tick.health import yaw_to_turn_to
from pendula.fleet.tick.observing import STANDING_UM_S, position
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.reasons import held_against
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.snapshot import corridor_request
from pendula.fleet.tick.track import Track
from pendula.fleet.units import half_up, metres

# Command numbers: strictly increasing for each truck; an older command never replaces a newer one.


def following(last: int) -> int:
    """The number of the next command."""
    return last + 1


def acknowledged(seq: int, last_ack: int) -> bool:
    """Whether a truck has acknowledged a command, or a later one that replaced it."""
    return last_ack >= seq


def newer(seq: int, last: int) -> bool:
    """Whether a gateway accepts a command; a repeated one changes nothing."""
    return seq > last


# How fast a truck may go and still stop in time, limited by its profile and its edges.

# Commands contain speeds in whole millimetres a second.
_STEP_UM_S = 1_000


def speed_limit_um_s(profile: RobotProfile, edges: Sequence[Edge], left_um: int) -> int:
    """The least of `vMax`, the limits of the edges up to the target, and the speed from which the truck stops within
    `left_um`; the last in whole millimetres a second, half up."""
    limits = [edge.max_speed_um_s for edge in edges if edge.max_speed_um_s is not None]
    return min([half_up(allowed_speed_um_s(profile, left_um), _STEP_UM_S) * _STEP_UM_S, *limits])


# The hold point of a truck: the largest pivot position it may reach, its place on the map, and its explanation.


class Components(Struct, frozen=True):
    """Limits before rounding to cells, None if nothing limits: the end of a grant never lies beyond them."""

    grants_um: int
    following_um: int | None = None
    node_um: int | None = None
    section_um: int | None = None

    def form(self) -> HoldComponents:
        return HoldComponents(
            grantsS=metres(self.grants_um),
            followingS=_metres(self.following_um),
            nodeS=_metres(self.node_um),
            criticalSectionS=_metres(self.section_um),
        )


def steady_um(before_um: int, grant_um: int, reached: bool, hysteresis_um: int) -> int:
    """The hold point to send: it follows the end of the grant forward in steps of the hysteresis at least, at once when
    a goal or node is reached, and back at once."""
    if grant_um <= before_um or reached or grant_um - before_um >= hysteresis_um:
        return grant_um
    return before_um


def pose_form(pose: Pose) -> PoseContract:
    return PoseContract(x=metres(pose.x_um), y=metres(pose.y_um), yaw=metres(pose.yaw_urad))


def hold_point(plan: RoutePlan, s_um: int, node_awaited: int | None = None) -> HoldPoint:
    """A position of a route in the form of the contract. It is a node entry if it lies in the node, or if the truck
    waits for the lock of the node ahead (`node_awaited`)."""
    place = plan.segment_at(s_um)
    segment = plan.segments[place]
    on = s_um - segment.route_s0_um
    edge = plan.site.network.edges[segment.edge]
    return HoldPoint(
        kind="AT_NODE_ENTRY" if on == segment.length_um or edge.end == node_awaited else "ON_EDGE",
        edgeKey=edge.key,
        sM=metres(on),
        world=pose_form(plan.pose_at(s_um)),
        sOnRouteM=metres(s_um),
    )


def _metres(value_um: int | None) -> Decimal | None:
    # Explanations are in whole millimetres.
    return None if value_um is None else metres(half_up(value_um, 1_000) * 1_000)


# The rolling target of a truck: a point on its route, never beyond the stop line, and its command.
# A tick uses integers. The command in the form of the contract, with decimals and a path slice, costs more than the
# decision, so it is built only when read.

# A point in metres.
PointM = tuple[Decimal, Decimal]


class Aim(Struct, frozen=True):
    """A command in integers, as decided, compared and checked. `stop_um`: the stop line; `turn_urad`: the yaw to turn
    to; a truck without a route stays at its `pose`."""

    robot_id: str
    seq: int
    now_ms: int
    mode: CommandMode
    hold_reason: HoldReason
    at_um: int
    target_um: int
    stop_um: int
    valid_ms: int
    plan: RoutePlan | None
    pose: Pose | None = None
    speed_um_s: int = 0
    turn_urad: int | None = None
    # Whether it drives straight to the target from its pose beside its route.
    straight: bool = False

    def command(self) -> RollingTargetCommand:
        """The command in the form of the contract, built on demand."""
        if self.plan is None or not self.plan.segments:
            return _standing_command(self)
        return _command_on(self, self.plan)


class CommandBatch(Sequence[RollingTargetCommand]):
    """The commands of a tick, each built when it is read."""

    def __init__(self, aims: tuple[Aim, ...]) -> None:
        self.aims = aims

    def __len__(self) -> int:
        return len(self.aims)

    @overload
    def __getitem__(self, at: int) -> RollingTargetCommand: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[RollingTargetCommand, ...]: ...

    def __getitem__(self, at: int | slice) -> RollingTargetCommand | tuple[RollingTargetCommand, ...]:
        return tuple(map(self.form, self.aims[at])) if isinstance(at, slice) else self.form(self.aims[at])

    def form(self, aim: Aim) -> RollingTargetCommand:
        return aim.command()


class Lookahead(Struct, frozen=True):
    ahead_um: int
    advance_um: int
    buffer_um: int


def target_um(at_um: int, stop_um: int, before_um: int, exact: bool, params: Lookahead) -> int:
    """The target: `ahead_um` before the truck, short of the stop line by the buffer unless the truck acts there
    (`exact`), not behind the last target, at most one advance farther, and never behind the truck."""
    if stop_um <= at_um:
        return at_um
    # From here on `last` is at or beyond the truck.
    last = stop_um if exact else max(at_um, stop_um - params.buffer_um)
    if at_um + params.ahead_um >= last:
        wanted = last
    else:
        wanted = max(at_um + params.ahead_um, min(before_um, last))
    step = (before_um if before_um > at_um else at_um) + params.advance_um
    return wanted if wanted < step else step


def limit_um_s(plan: RoutePlan, profile: RobotProfile, at_um: int, target_um: int, stop_um: int) -> int:
    """How fast a truck may go from a position to its target and still stop before its stop line."""
    first, last = _segments(plan, at_um, target_um)
    edges = [plan.site.network.edges[one.edge] for one in plan.segments[first : last + 1]]
    return speed_limit_um_s(profile, edges, stop_um - at_um)


def _command_on(aim: Aim, plan: RoutePlan) -> RollingTargetCommand:
    first, last = _segments(plan, aim.at_um, aim.target_um)
    return RollingTargetCommand(
        contractVersion=CONTRACT_VERSION,
        robotId=aim.robot_id,
        seq=aim.seq,
        nowMs=aim.now_ms,
        mode=aim.mode,
        holdReason=aim.hold_reason,
        routeId=plan.route_id,
        revision=plan.revision,
        currentS=metres(aim.at_um),
        targetS=metres(aim.target_um),
        stopLineS=metres(aim.stop_um),
        target=pose_form(plan.pose_at(aim.target_um)),
        pathSlice=_straight(aim, plan) if aim.straight else _slice(plan, first, last, aim.at_um, aim.target_um),
        movestyle=_style(plan, first),
        speedLimitMps=metres(aim.speed_um_s),
        validForMs=aim.valid_ms,
        targetYaw=UNSET if aim.turn_urad is None else metres(aim.turn_urad),
    )


def _standing_command(aim: Aim) -> RollingTargetCommand:
    """The command of a truck without a route: it stays where it is."""
    assert aim.pose is not None, f"{aim.robot_id} has no route and no pose"
    return RollingTargetCommand(
        contractVersion=CONTRACT_VERSION,
        robotId=aim.robot_id,
        seq=aim.seq,
        nowMs=aim.now_ms,
        mode=aim.mode,
        holdReason=aim.hold_reason,
        routeId="" if aim.plan is None else aim.plan.route_id,
        revision=0 if aim.plan is None else aim.plan.revision,
        currentS=metres(aim.at_um),
        targetS=metres(aim.target_um),
        stopLineS=metres(aim.stop_um),
        target=pose_form(aim.pose),
        pathSlice=(),
        movestyle=MoveStyle.FORWARD,
        speedLimitMps=metres(0),
        validForMs=aim.valid_ms,
    )


def _segments(plan: RoutePlan, at_um: int, target_um: int) -> tuple[int, int]:
    """The segments from a position to the target. A truck that leaves a node is on the segment that begins; so is one
    reported shortly before a node where the driving style changes, since no target lies beyond before it has acted
    there (FLT-RTP-4)."""
    last = plan.segment_at(target_um)
    first = min(plan.segment_at(at_um + 1) if target_um > at_um else plan.segment_at(at_um), last)
    while first < last and _style(plan, first) is not _style(plan, last):
        first += 1
    return first, last


def _style(plan: RoutePlan, segment: int) -> MoveStyle:
    return plan.site.network.edges[plan.segments[segment].edge].style


def _straight(aim: Aim, plan: RoutePlan) -> tuple[PointM, ...]:
    assert aim.pose is not None
    end = plan.pose_at(aim.target_um)
    return _point_m((aim.pose.x_um, aim.pose.y_um)), _point_m((end.x_um, end.y_um))


def _slice(plan: RoutePlan, first: int, last: int, at_um: int, target_um: int) -> tuple[PointM, ...]:
    """The path from a position to the target, as a line in metres; a vertex shared by two edges appears once."""
    points: list[PointM] = []
    for segment in plan.segments[first : last + 1]:
        path = plan.site.network.edges[segment.edge].path
        low, high = max(0, at_um - segment.route_s0_um), min(segment.length_um, target_um - segment.route_s0_um)
        begin = _point_m(path.point(low))
        if not points or points[-1] != begin:
            points.append(begin)
        points += plan.site.vertices_m(segment.edge)[path.vertices_between(low, high)]
        points.append(_point_m(path.point(high)))
    return tuple(points)


def _point_m(point: tuple[int, int]) -> PointM:
    return _coordinate(point[0]), _coordinate(point[1])


@lru_cache(1 << 16)
def _coordinate(micros: int) -> Decimal:
    """Metres, cached: most points are vertices of edges and appear again and again."""
    return metres(micros)


# Explanation of the end of a grant: limits before rounding to the cells of the relation (FLT-EVO-8).


def components(record: Record, records: list[Record]) -> Components:
    """The limits up to the next node in which the truck acts."""
    track = record.track
    assert track is not None
    act = record.act
    end = track.end_um if act is None else act.s_um
    return Components(
        grants_um=record.grant_um,
        following_um=_following_um(record, track, end, records),
        node_um=_node_um(record, track, end),
        section_um=_section_um(record, track, end),
    )


def place_of(record: Record) -> tuple[int, int] | None:
    """The edge of a truck and its position on it; in a node, the edge it came by, if any."""
    track = record.track
    if track is None or not track.segments or record.at_um < 0:
        return None
    segment = track.segments[track.segment_at(record.at_um)]
    return segment.edge, record.at_um - segment.route_s0_um


def _following_um(record: Record, track: Track, end_um: int, records: list[Record]) -> int | None:
    """The nearest truck ahead on the route, less the spacing of the two: the trailing end of the leader's type, the
    leading end of the follower's, and the follower's gap (FLT-RES-15). Cells are sized for the largest type of the
    map."""
    edges = record.site.network.edges
    begins = {segment.edge: segment.route_s0_um for segment in reversed(track.segments) if segment.route_s0_um < end_um}
    nearest: tuple[int, str, MoveStyle, int] | None = None
    for other in records:
        place = place_of(other)
        if other is record or place is None or place[0] not in begins:
            continue
        at = begins[place[0]] + place[1]
        leader = (at, other.robot_id, edges[place[0]].style, other.number)
        if at > record.at_um and (nearest is None or leader < nearest):
            nearest = leader
    if nearest is None:
        return None
    own = edges[track.segments[track.segment_at(record.at_um + 1)].edge].style
    return nearest[0] - spacing_um(records[nearest[3]].profile, nearest[2], record.profile, own)


def _node_um(record: Record, track: Track, end_um: int) -> int | None:
    """The start of the window of the first node whose lock is needed and not granted."""
    site = record.site
    first, beyond = len(site.cells), site.token(0)
    for use in track.taken(record.grant_um, end_um):
        if not first <= use.resource < beyond or use.resource in record.held:
            continue
        segment = track.segments[track.segment_at(use.need_um + 1)]
        windows = [window.s0 for window in site.zones.by_node[use.resource - first] if window.edge == segment.edge]
        begin = segment.route_s0_um
        return max((begin + s0 for s0 in windows), default=use.need_um)
    return None


def _section_um(record: Record, track: Track, end_um: int) -> int | None:
    tokens = record.site.token(0)
    return next(
        (
            use.need_um
            for use in track.taken(record.grant_um, end_um)
            if use.resource >= tokens and use.resource not in record.held
        ),
        None,
    )


# A truck that waits sets out for less than this only when nothing was added for a while.
_FIRST_STEP_UM = 2_000_000
_PATIENCE_MS = 10_000
# It stands at its hold point when it is this near: the buffer before it, and how far trucks stop short.
_STANDS_UM = 300_000
# How fast a truck drives back to its line.
CREEP_UM_S = 100_000


def aim(record: Record, now_ms: int, params: TrafficParams) -> Aim:
    """Sets hold point and target of a truck and says what its command is."""
    track = record.track
    record.seq = following(record.seq)
    if track is None or not track.plan.segments:
        return _stay(record, now_ms, params)
    act = record.act
    grant_um = record.grant_um
    reached = grant_um == track.goal_um or grant_um in track.acting
    step_um = _first_step_um(record, now_ms, params)
    # Never behind a truck that is where it may be: one in a node it leaves is seen a little beyond it.
    before = max(record.hold_um, min(record.at_um, grant_um))
    record.hold_um = steady_um(before, grant_um, reached, step_um)
    record.farthest_um = max(record.farthest_um, record.hold_um)
    stop = record.hold_um if act is None else min(record.hold_um, act.s_um)
    reason = reasons.hold_reason(record)
    back = record.rejoin_um
    if record.stop_code is not None and back is not None:
        return _rejoining(record, now_ms, params, reason, max(back, record.at_um))
    if record.stop_code is not None:
        return _command(record, now_ms, params, CommandMode.STOP, reason, target=record.at_um, stop=record.at_um)
    exact = stop == track.goal_um or (act is not None and stop == act.s_um)
    ahead = Lookahead(params.rtp_lookahead_um, params.rtp_max_advance_um, params.safety_buffer_um)
    record.target_um = target_um(record.at_um, stop, record.target_um, exact, ahead)
    # It must stand before it turns.
    yaw = yaw_to_turn_to(record, params) if record.v_um_s < STANDING_UM_S else None
    if yaw is not None:
        return _command(record, now_ms, params, CommandMode.TURN, reason, target=record.at_um, stop=stop, yaw=yaw)
    mode = CommandMode.GO if record.target_um > record.at_um else CommandMode.HOLD
    return _command(record, now_ms, params, mode, reason, target=record.target_um, stop=stop)


def _first_step_um(record: Record, now_ms: int, params: TrafficParams) -> int:
    """The least distance the hold point moves. A truck that waits at its hold point does not start for every freed
    cell: a short way is granted only after a while, or once no truck is in its way."""
    stands = record.v_um_s < STANDING_UM_S and record.hold_um - record.at_um <= _STANDS_UM
    patient = record.waiting is not None and now_ms - record.last_grant_ms < _PATIENCE_MS
    return _FIRST_STEP_UM if stands and patient else params.hold_hysteresis_um


def stopped(record: Record, now_ms: int, params: TrafficParams) -> Aim:
    """The stop command of a truck in a failed tick."""
    record.seq = following(record.seq)
    if record.track is None or not record.track.plan.segments:
        return _stay(record, now_ms, params, CommandMode.STOP)
    at = max(record.at_um, 0)
    return _command(record, now_ms, params, CommandMode.STOP, HoldReason.SAFETY_STOP, target=at, stop=at)


def _stay(record: Record, now_ms: int, params: TrafficParams, mode: CommandMode = CommandMode.HOLD) -> Aim:
    mode = mode if record.stop_code is None else CommandMode.STOP
    at = record.site.network.nodes[record.node].at
    return Aim(
        robot_id=record.robot_id,
        seq=record.seq,
        now_ms=now_ms,
        mode=mode,
        hold_reason=reasons.hold_reason(record),
        at_um=0,
        target_um=0,
        stop_um=0,
        valid_ms=params.rtp_timeout_ms,
        plan=None if record.track is None else record.track.plan,
        pose=record.pose or Pose(at.x_um, at.y_um, 0),
    )


def _rejoining(record: Record, now_ms: int, params: TrafficParams, reason: HoldReason, back_um: int) -> Aim:
    """The command of a truck that drives back to its line: straight to a point on it, at creep speed at most."""
    aim = _command(record, now_ms, params, CommandMode.GO, reason, target=back_um, stop=back_um)
    return structs.replace(aim, speed_um_s=min(aim.speed_um_s, CREEP_UM_S), pose=record.pose, straight=True)


def _command(
    record: Record,
    now_ms: int,
    params: TrafficParams,
    mode: CommandMode,
    reason: HoldReason,
    *,
    target: int,
    stop: int,
    yaw: int | None = None,
) -> Aim:
    assert record.track is not None
    plan = record.track.plan
    goes = mode is CommandMode.GO
    return Aim(
        robot_id=record.robot_id,
        seq=record.seq,
        now_ms=now_ms,
        mode=mode,
        hold_reason=reason,
        at_um=record.at_um,
        target_um=target,
        stop_um=stop,
        valid_ms=params.rtp_timeout_ms,
        plan=plan,
        speed_um_s=limit_um_s(plan, record.profile, record.at_um, target, stop) if goes else 0,
        turn_urad=yaw,
    )


def result(record: Record, records: list[Record], now_ms: int, place: int | None) -> LockResult:
    """Granted, or blocked with hold point and blocker."""
    waiting, track, since = record.waiting, record.track, record.stands_since_ms
    ok = waiting is None and record.stop_code is None
    against = held_against(record, records)
    requested = reasons.requested_id(record)
    cycle = () if waiting is None or record.stop_code is not None else waiting.cycle
    at = record.at_um if record.stop_code is not None else record.hold_um
    site = record.site
    return LockResult(
        contractVersion=CONTRACT_VERSION,
        robotId=record.robot_id,
        ok=ok,
        holdReason=reasons.hold_reason(record),
        reasonCode=reasons.stands_for(record),
        blocker=None if against is None else Blocker(against.by.robot_id, reasons.resource_id(site, against.resource)),
        holdPoint=None
        if track is None or not track.plan.segments
        else hold_point(track.plan, at, _node_awaited(record)),
        queuePosition=place,
        waitMs=0 if since is None else now_ms - since,
        holdComponents=UNSET if waiting is None else components(record, records).form(),
        requestedResourceId=UNSET if requested is None else requested,
        cycle=tuple(records[number].robot_id for number in cycle) or UNSET,
    )


def _node_awaited(record: Record) -> int | None:
    """The node whose lock a truck waits for: requested, or held by its blocker."""
    waiting, first, beyond = record.waiting, len(record.site.cells), record.site.token(0)
    if waiting is None or record.stop_code is not None:
        return None
    locks = (
        resource - first
        for resource in (waiting.resource, waiting.theirs)
        if resource is not None and first <= resource < beyond
    )
    return next(locks, None)


# Replaceable parts of a tick, each a Protocol with its default implementation.
# They change their arguments only where their docstring says so.


class ProgressEstimator(Protocol):
    def project(self, record: Record, params: TrafficParams) -> int | None:
        """The position of the pose on the track, in micrometres; None if it fits none."""


class CorridorBuilder(Protocol):
    def build(self, record: Record, now_ms: int, params: TrafficParams) -> CorridorRequest | None:
        """The units a truck requests beyond its grant; None without a route."""


class RtpController(Protocol):
    def compute(self, record: Record, now_ms: int, params: TrafficParams) -> Aim:
        """Hold point, target and speed of a truck for this tick; sets its hold point and command number."""


class PoseProjection:
    def project(self, record: Record, params: TrafficParams) -> int | None:
        return position(record, params)


class UnitCorridor:
    def build(self, record: Record, now_ms: int, params: TrafficParams) -> CorridorRequest | None:
        return corridor_request(record, now_ms, params)


class RollingTarget:
    def compute(self, record: Record, now_ms: int, params: TrafficParams) -> Aim:
        return aim(record, now_ms, params)


@dataclass(frozen=True, slots=True)
class TickPorts:
    progress: ProgressEstimator = field(default_factory=PoseProjection)
    corridor: CorridorBuilder = field(default_factory=UnitCorridor)
    rtp: RtpController = field(default_factory=RollingTarget)
