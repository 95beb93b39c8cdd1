"""The command of every truck after the grants: hold point, rolling target and speed, or to turn or stop."""

from dataclasses import dataclass, field
from typing import Protocol

from msgspec import UNSET, structs

from pendula.fleet.contracts import Blocker, CommandMode, CorridorRequest, HoldReason, LockResult
from pendula.fleet.map.routes import Pose
from pendula.fleet.map.trucks import spacing_um
from pendula.fleet.model import CONTRACT_VERSION, MoveStyle
from pendula.fleet.tick import reasons
from pendula.fleet.tick.health import yaw_to_turn_to
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.places import STANDING_UM_S, position
from pendula.fleet.tick.reasons import held_against
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.snapshot import corridor_request
from pendula.fleet.tick.targets import (
    Aim,
    Components,
    Lookahead,
    following,
    hold_point,
    limit_um_s,
    steady_um,
    target_um,
)
from pendula.fleet.tick.track import Track

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
