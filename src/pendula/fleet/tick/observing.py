"""From reports to progress along the track: an upper value to extend grants and a lower bound to release them.

Noise does not move a truck back, and a jump does not move it at all. While a truck turns in a node its yaw fits no
edge; it counts as in the node while its pivot is.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from math import hypot, isqrt
from operator import ge
from typing import TypeAlias

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from pendula.fleet.contracts import Phase, RobotStatus
from pendula.fleet.map.geometry import Rects, angle_urad, corners, near, turn_urad, unit
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.map.routes import (
    Limits,
    Pose,
    PoseJump,
    ProgressParams,
    Projection,
    advanced,
    apart_um,
    started,
    uncertainty_um,
)
from pendula.fleet.map.trucks import Envelope, brakes_um
from pendula.fleet.model import MoveStyle
from pendula.fleet.tick.params import TrafficParams, node_reach_um, off_route_um
from pendula.fleet.tick.records import NOWHERE_UM, Doubt, Record, Rejoin, Stop
from pendula.fleet.tick.track import Act, Ground
from pendula.fleet.units import MILLION, PI_URAD, ceil_div, wrapped_urad
from pendula.kernel.canonical import Json

# Whether a reported position is plausible, and for how long reports have been steady.
# A position is trusted if the truck can have reached it, at its reported speed, from its last known position: speed
# does not depend on localization.

Ints = NDArray[np.int64]
# Below this speed a truck stands.
STANDING_UM_S = 20_000
# A truck is first searched this far along its edge: farther than it drives between two reports.
_NEAR_UM = 1_500_000
# No cell is longer.
_LONGEST_UM = 2_000_000


def new_doubt(record: Record, stop: Stop, now_ms: int, params: TrafficParams, *, torn: bool) -> Doubt:
    """Create a doubt from now on. After silence or a fault the truck may be anywhere in its grant; otherwise it is at
    its last position, plus what it drives from now on."""
    anywhere = stop in (Stop.OFFLINE, Stop.ROBOT_FAULT, Stop.STUCK)
    high = record.grant_um + params.stop_line_tol_um if anywhere else record.at_um
    return Doubt(stop, now_ms, record.bound_um, high + apart_um(record.profile), torn)


def is_sure(record: Record, params: TrafficParams) -> bool:
    """Whether the reported confidence of a truck is high enough."""
    return record.confidence_ppm >= params.min_confidence_milli * 1000


def update_doubt(
    record: Record, doubt: Doubt, jumped: bool, driven_um: int, passed_ms: int, params: TrafficParams
) -> Doubt:
    """Update a doubt after another report. Silence, a jump, a reported fault or low confidence restart the time of
    steadiness; a jump also invalidates a position stated by an operator."""
    well = record.status is RobotStatus.OK and not jumped and is_sure(record, params)
    silent = passed_ms > params.max_status_age_ms
    steady = record.report_ms if silent or doubt.steady_ms is None else doubt.steady_ms
    doubt = extend_doubt(doubt, driven_um)
    return structs.replace(
        doubt,
        torn=doubt.torn or jumped,
        steady_ms=steady if well else None,
        confirmed=doubt.confirmed and not jumped,
        on_map_ms=None if silent else doubt.on_map_ms,
    )


def extend_doubt(doubt: Doubt, driven_um: int) -> Doubt:
    """Extend a doubt by a driven distance and a tenth of it, because speeds are samples."""
    return structs.replace(doubt, high_um=doubt.high_um + driven_um * 11 // 10)


def is_jump(before: Pose, after: Pose, passed_ms: int, record: Record, params: TrafficParams) -> bool:
    """Whether the distance between two poses is too long for the time."""
    dx, dy = after.x_um - before.x_um, after.y_um - before.y_um
    far = record.profile.v_max_um_s * max(0, passed_ms) // 1000
    far += max(params.pose_jump_threshold_um, apart_um(record.profile))
    return dx * dx + dy * dy > far * far


def cover_reported_place(record: Record, ground: Ground, params: TrafficParams) -> Doubt:
    """Add to the doubt what the truck may cover at its reported position, unless that is plausible (FLT-FAIL-5)."""
    doubt, pose = record.doubt, record.pose
    assert doubt is not None
    if pose is None or record.report_ms < doubt.since_ms:
        return doubt
    here, overran = (pose.x_um, pose.y_um), doubt.code == Stop.OVERRUN
    stays = doubt.seen is not None and _away_um(doubt.seen, here) <= params.pose_jump_margin_um // 2
    if is_possible(record, params):
        return doubt if stays or doubt.beyond_um is None else structs.replace(doubt, beyond_um=None, seen=None)
    if stays:
        return doubt
    s_um = position(record, params) if overran else None
    resources = _beyond(record, ground, params) if overran else _around(here, ground, params)
    # A truck that returns at another place has jumped (FLT-FAIL-10).
    back = doubt.code in (Stop.OFFLINE, Stop.ROBOT_FAULT)
    return structs.replace(
        doubt,
        code=Stop.POSE_JUMP if back else doubt.code,
        torn=doubt.torn or back,
        extra=tuple(sorted({*doubt.extra, *resources})),
        seen=here,
        beyond_um=None if s_um is None else s_um - record.grant_um,
    )


def _around(here: tuple[int, int], ground: Ground, params: TrafficParams) -> list[int]:
    """Resources that the envelope may cover at any heading."""
    return ground.discs.resources(*here, ground.site.envelope.turn_radius_um + params.pose_jump_margin_um)


def _beyond(record: Record, ground: Ground, params: TrafficParams) -> list[int]:
    """Resources of a truck beyond its stop line: those that its envelope overlaps where it stands or will stop, and
    those that its route begins to use up to there."""
    assert record.track is not None
    assert record.pose is not None
    s_um = position(record, params)
    upto = record.grant_um if s_um is None else s_um + record.profile.localization_error.value_um
    used = [use.resource for use in record.track.taken(record.grant_um, upto)]
    # Computed again after it has moved by half the margin.
    margin = params.pose_jump_margin_um // 2 + brakes_um(record.profile, record.v_um_s)
    return [*used, *ground.discs.meeting(_body(record.site.envelope, record.pose, margin))]


def _body(envelope: Envelope, pose: Pose, margin_um: int) -> Ints:
    """The envelope of a truck at its pose, with a margin on every side."""
    cos, sin = unit(pose.yaw_urad)
    ahead = (envelope.front_um - envelope.rear_um) / 2
    rect = Rects(
        cx=np.array([pose.x_um + cos * ahead]),
        cy=np.array([pose.y_um + sin * ahead]),
        ux=np.array([cos]),
        uy=np.array([sin]),
        hx=np.array([(envelope.front_um + envelope.rear_um) / 2]),
        hy=np.array([float(envelope.side_um)]),
    )
    quad: Ints = corners(rect, float(margin_um))[0]
    return quad


def is_possible(record: Record, params: TrafficParams) -> bool:
    """Whether the position of a truck in doubt is plausible on its route."""
    doubt = record.doubt
    assert doubt is not None
    if doubt.low_um >= NOWHERE_UM:
        return False
    if record.track is None or not record.track.segments:
        return distance_um(record, record.node) <= node_reach_um(record.profile, params)
    s_um = position(record, params)
    return s_um is not None and can_be_at(record, doubt, s_um, params)


def can_be_at(record: Record, doubt: Doubt, s_um: int, params: TrafficParams) -> bool:
    """Whether a truck can have reached a position of its route, and holds what it occupies there."""
    beyond = record.grant_um + overshoot_um(record, params)
    # In a node a truck may report a position slightly behind the last one; it still holds that place.
    low = doubt.low_um - record.short_um
    return low <= s_um <= min(doubt.high_um, beyond) and _holds(record, s_um)


def _holds(record: Record, s_um: int) -> bool:
    """Whether a truck holds the cells of its pivot at a position of its route, as far as that is granted."""
    assert record.track is not None
    on = min(s_um, record.grant_um)
    return record.held.keys() >= set(record.track.used.not_passed(on - _LONGEST_UM, on, on))


def position(record: Record, params: TrafficParams) -> int | None:
    """The position of the pose on the track, not beyond a node with a pending act; None if the pose fits nowhere."""
    assert record.track is not None
    act = record.act
    if act is not None and record.v_um_s < STANDING_UM_S and abs(act.s_um - record.at_um) <= 2 * params.node_snap_um:
        away = distance_um(record, act.node)
        if away <= node_reach_um(record.profile, params):
            return act.s_um - away
    s_um = _near_um(record, params)
    if s_um is None or s_um > record.grant_um + overshoot_um(record, params):
        s_um = _anywhere_um(record, params)
    return s_um


def overshoot_um(record: Record, params: TrafficParams) -> int:
    """How far beyond the end of its grant an obedient truck may report itself."""
    errors = record.profile.localization_error.value_um + record.profile.tracking_error.value_um
    return errors + params.stop_line_tol_um


def distance_um(record: Record, node: int) -> int:
    assert record.pose is not None
    at = record.site.network.nodes[node].at
    return _away_um((at.x_um, at.y_um), (record.pose.x_um, record.pose.y_um))


def _away_um(a: tuple[int, int], b: tuple[int, int]) -> int:
    dx, dy = a[0] - b[0], a[1] - b[1]
    return isqrt(dx * dx + dy * dy)


def _anywhere_um(record: Record, params: TrafficParams) -> int | None:
    assert record.pose is not None
    assert record.track is not None
    limits = Limits(off_route_um(record.profile, params), params.heading_tol_urad)
    projection = record.track.plan.project(record.pose, record.at_um, limits)
    if projection is None:
        return 0 if distance_um(record, record.node) <= node_reach_um(record.profile, params) else None
    if projection.lateral_um > limits.off_route_um or abs(projection.heading_error_urad) > limits.heading_urad:
        return None
    return projection.s_on_route_um


def _near_um(record: Record, params: TrafficParams) -> int | None:
    """The position close to the last one and on the same edge; None if the pose fits none, or the rest of the route may
    fit better."""
    assert record.pose is not None
    assert record.track is not None
    plan = record.track.plan
    if not plan.segments:
        return None
    at_um = record.at_um if record.at_um > 0 else 0
    segment = plan.segments[plan.segment_at(at_um)]
    edge = record.site.network.edges[segment.edge]
    low = record.at_um - segment.route_s0_um - params.progress_regress_um
    low = low if low > 0 else 0
    high = low + _NEAR_UM if low + _NEAR_UM < segment.length_um else segment.length_um
    on, square = edge.path.nearest(record.pose.x_um, record.pose.y_um, low, high)
    if not low < on < high or square > off_route_um(record.profile, params) ** 2:
        return None
    error = turn_urad(truck_yaw(edge.path.heading(on), edge.style), record.pose.yaw_urad)
    return segment.route_s0_um + on if abs(error) <= params.heading_tol_urad else None


# A truck slightly beside its line drives back by itself if that is safe for all other trucks (a guarded rejoin).
# It drives at creep speed along a straight line to a point of its route within its grant. The rectangle that its
# envelope covers on that line, at any yaw between those at both ends, must overlap nothing that another truck holds;
# the place is reserved for the truck until it is back. Otherwise the answer names the trucks that must move.

# Distances ahead at which a truck may rejoin its line, longest first: the farther, the less it turns.
_AHEAD_UM = (3_000_000, 2_000_000, 1_000_000)
# Steepest line: one metre sideways for four metres along.
_STEEPEST = 4
# Interval at which the yaw of the line is sampled.
_EVERY_UM = 250_000
_REJOINING = frozenset({Stop.OFF_ROUTE, Stop.POSE_JUMP})


def plan_rejoin(
    record: Record, doubt: Doubt, records: Sequence[Record], ground: Ground, params: TrafficParams, *, settled: bool
) -> Doubt:
    """Add to the doubt how the truck returns to its line; `settled`: its reports have been steady."""
    if not (settled and _may_try(record, doubt)):
        return structs.replace(doubt, rejoin=None)
    back = rejoin(record, doubt, records, ground, params)
    if back is None or back.target_um is None:
        return structs.replace(doubt, rejoin=back)
    # Reserved from now on, so that no other truck gets a grant there.
    assert record.pose is not None
    around = ground.discs.meeting(_area(record, record.pose, back.target_um))
    return structs.replace(doubt, rejoin=back, extra=tuple(sorted({*doubt.extra, *around})))


def rejoin(
    record: Record, doubt: Doubt, records: Sequence[Record], ground: Ground, params: TrafficParams
) -> Rejoin | None:
    """How a truck beside its line returns to it; None if it is on the line or too far from it."""
    place, pose = beside(record, doubt, params), record.pose
    if place is None or pose is None:
        return None
    before = None if doubt.rejoin is None else doubt.rejoin.target_um
    under_way = before is not None and place.s_on_route_um + params.arrive_tol_um < before
    if place.lateral_um <= off_route_um(record.profile, params) and not under_way:
        return None
    track = record.track
    assert track is not None
    back = Rejoin(_signed(record, place, pose), track.plan.segments[place.segment].edge, place.s_on_segment_um)
    at_um = max(place.s_on_route_um, record.at_um)
    limit = min(record.grant_um, record.hold_um)
    targets = [before] if under_way else [min(limit, place.s_on_route_um + ahead) for ahead in _AHEAD_UM]
    first: tuple[tuple[int, int], ...] | None = None
    for target_um in targets:
        assert target_um is not None
        left = target_um - place.s_on_route_um
        if target_um <= at_um or target_um > limit or (left < _STEEPEST * place.lateral_um and not under_way):
            continue
        blockers = _in_the_way(record, records, ground, params, _area(record, pose, target_um))
        if not blockers:
            return structs.replace(back, target_um=target_um)
        first = blockers if first is None else first
    return structs.replace(back, blockers=first or ())


def beside(record: Record, doubt: Doubt, params: TrafficParams) -> Projection | None:
    """The projection of a truck beside its route, if it can have driven there and is no farther off than a jump."""
    track, pose = record.track, record.pose
    if pose is None or track is None or not track.plan.segments or doubt.low_um >= NOWHERE_UM:
        return None
    limits = Limits(params.pose_jump_threshold_um, params.heading_tol_urad)
    place = track.plan.project(pose, record.at_um, limits)
    if place is None or place.lateral_um > limits.off_route_um:
        return None
    fits = abs(place.heading_error_urad) <= limits.heading_urad
    return place if fits and can_be_at(record, doubt, place.s_on_route_um, params) else None


def _may_try(record: Record, doubt: Doubt) -> bool:
    """Whether the truck has no other problem, and has not jumped or an operator has confirmed its position."""
    trusted = not doubt.torn or doubt.confirmed
    well = record.status is RobotStatus.OK and record.latched is None and not record.paused
    return trusted and well and record.foreign is None and record.stop_code in _REJOINING


def _signed(record: Record, place: Projection, pose: Pose) -> int:
    """Distance of a truck from its line, positive to its left."""
    assert record.track is not None
    there = record.track.plan.pose_at(place.s_on_route_um)
    bearing = angle_urad(float(pose.x_um - there.x_um), float(pose.y_um - there.y_um))
    return place.lateral_um if turn_urad(pose.yaw_urad, bearing) >= 0 else -place.lateral_um


def _area(record: Record, pose: Pose, target_um: int) -> Ints:
    """The rectangle that the envelope covers on a straight line from the truck to a point of its route, at every yaw at
    both ends and of the route in between."""
    assert record.track is not None
    plan, site = record.track.plan, record.site
    end = plan.pose_at(target_um)
    style = site.network.edges[plan.segments[plan.segment_at(target_um)].edge].style
    dx, dy = float(end.x_um - pose.x_um), float(end.y_um - pose.y_um)
    length = hypot(dx, dy)
    along = angle_urad(dx, dy)
    yaw = along if style is MoveStyle.FORWARD else wrapped_urad(along + PI_URAD)
    ways = range(max(0, target_um - ceil_div(int(length), 1)), target_um, _EVERY_UM)
    yaws = [pose.yaw_urad, end.yaw_urad, *(plan.pose_at(s_um).yaw_urad for s_um in ways)]
    turned = max(abs(turn_urad(yaw, other)) for other in yaws)
    own = site.envelope
    far = max(own.front_um, own.rear_um)
    side = own.side_um + ceil_div(far * turned, MILLION)
    longer = ceil_div(own.side_um * turned, MILLION)
    lead, trail = own.lead_um(style) + longer, own.trail_um(style) + longer
    ux, uy = dx / length, dy / length
    middle = (length + lead - trail) / 2
    rect = Rects(
        cx=np.array([pose.x_um + ux * middle]),
        cy=np.array([pose.y_um + uy * middle]),
        ux=np.array([ux]),
        uy=np.array([uy]),
        hx=np.array([(length + lead + trail) / 2]),
        hy=np.array([float(side)]),
    )
    quad: Ints = corners(rect)[0]
    return quad


def _in_the_way(
    record: Record, records: Sequence[Record], ground: Ground, params: TrafficParams, area: Ints
) -> tuple[tuple[int, int], ...]:
    """Other trucks that hold something in an area, or may be in it, each with the first resource it holds there."""
    around = frozenset(ground.discs.meeting(area))
    blockers = []
    for other in records:
        if other is record:
            continue
        there = around.intersection(other.keeps) or _covered(other, ground, params, area)
        if there:
            blockers.append((other.number, min(there)))
    return tuple(blockers)


def _covered(other: Record, ground: Ground, params: TrafficParams, area: Ints) -> frozenset[int]:
    """Resources that a lost truck may cover, if it may be in an area."""
    doubt, pose = other.doubt, other.pose
    if doubt is None or pose is None or other.is_out or is_possible(other, params):
        return frozenset()
    radius = ground.site.envelope.turn_radius_um + params.pose_jump_margin_um
    close = near(area[None], pose.x_um, pose.y_um, float(radius))[0]
    return frozenset(doubt.extra or other.keeps) if close else frozenset()


# The last dropped report of a truck, for answers about the truck.


class LastDropped(Struct, frozen=True):
    """Why a report was dropped, when by the clock of the fleet, and its own time; None if it was malformed."""

    code: str
    now_ms: int
    at_ms: int | None

    @property
    def ahead_ms(self) -> int | None:
        """How far the report is ahead of the fleet; negative if it is behind."""
        return None if self.at_ms is None else self.at_ms - self.now_ms

    def form(self) -> Json:
        """In the names of the contract."""
        return {"code": self.code, "nowMs": self.now_ms, "reportMs": self.at_ms, "aheadMs": self.ahead_ms}


# The position of the pose of a truck on its track.
Project: TypeAlias = Callable[[Record, TrafficParams], int | None]
# How far the clock of a truck may be ahead of the tick.
AHEAD_MS = 200
# Largest number in a report, in any unit.
_MOST = 10**15


class TruckReport(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The report of a truck, in whole micrometres, microradians and milliseconds."""

    robot_id: str
    at_ms: int
    x_um: int
    y_um: int
    yaw_urad: int
    v_um_s: int
    status: RobotStatus = RobotStatus.OK
    phase: Phase = Phase.IDLE
    last_ack_seq: int = 0
    load: bool = False
    # Something outside the fleet is in its way: it stops and goes on by itself.
    obstructed: bool = False
    # Confidence of its position, in millionths.
    confidence_ppm: int = 1_000_000


def unreadable(robot_id: str) -> TruckReport:
    """A malformed report of which only the truck is known; it is dropped."""
    return TruckReport(robot_id, at_ms=0, x_um=2 * _MOST, y_um=0, yaw_urad=0, v_um_s=0)


class DroppedReport(Struct, frozen=True):
    """A report that was dropped: of an unknown truck, malformed, from the future, or outdated."""

    robot_id: str
    code: str


def screened(
    reports: Iterable[TruckReport], known: Collection[str], now_ms: int
) -> tuple[list[TruckReport], list[DroppedReport]]:
    """Readable reports, in an order independent of their arrival, and the dropped ones."""
    readable, dropped = [], []
    for report in reports:
        code = _unreadable(report, known, now_ms)
        if code is None:
            readable.append(report)
        else:
            dropped.append(DroppedReport(str(report.robot_id), code))
    names = [report.robot_id for report in readable]
    if any(map(ge, names, names[1:])):
        # By all members: of two different reports with one time the same one counts, in whatever order they came.
        readable.sort(key=structs.astuple)
    return readable, sorted(dropped, key=structs.astuple)


def _unreadable(report: TruckReport, known: Collection[str], now_ms: int) -> str | None:
    if report.robot_id not in known:
        return "UNKNOWN_ROBOT"
    numbers = (report.at_ms, report.x_um, report.y_um, report.yaw_urad, report.v_um_s, report.last_ack_seq)
    # Callers may pass anything: NaN, decimals and huge integers affect only their own truck.
    for value in (*numbers, report.confidence_ppm):
        if type(value) is not int or not -_MOST <= value <= _MOST:
            return "REPORT_MALFORMED"
    if not isinstance(report.status, RobotStatus) or not isinstance(report.phase, Phase):
        return "REPORT_MALFORMED"
    return "REPORT_FROM_THE_FUTURE" if report.at_ms > now_ms + AHEAD_MS else None


def take_in(
    record: Record, report: TruckReport, params: TrafficParams, now_ms: int, project: Project = position
) -> None:
    """Take in a report that is newer than the last one."""
    pose, before = Pose(report.x_um, report.y_um, report.yaw_urad), record.pose
    passed_ms = report.at_ms - record.report_ms
    jumped = before is not None and is_jump(before, pose, passed_ms, record, params)
    driven = max(record.v_um_s, abs(report.v_um_s)) * passed_ms // 1000
    _note(record, report, pose)
    if now_ms - report.at_ms <= params.max_status_age_ms:
        # A delayed report does not show where the truck is now (FLT-FAIL-14).
        record.unheard = record.absent = False
    if record.doubt is None:
        lost = _place(record, params, before != pose, project)
        if lost is None:
            _act(record, params)
            return
        # A position that moves too far between two reports is a jump, wherever it is.
        lost = Stop.POSE_JUMP if jumped and lost is Stop.OFF_ROUTE else lost
        record.doubt = new_doubt(record, lost, report.at_ms, params, torn=jumped or lost is Stop.POSE_JUMP)
        # It has driven on since its last report, whatever position it reports now.
        since = 0 if before is None else driven
        record.doubt = structs.replace(extend_doubt(record.doubt, since), first=before is None)
        record.latched = lost if lost is Stop.OVERRUN else record.latched
        return
    record.doubt = update_doubt(record, record.doubt, jumped, driven, passed_ms, params)


def _note(record: Record, report: TruckReport, pose: Pose) -> None:
    """Store everything of a report but the position."""
    record.pose = pose
    record.v_um_s = abs(report.v_um_s)
    record.report_ms = report.at_ms
    record.status = report.status
    record.phase = report.phase
    record.load = report.load
    record.obstructed = report.obstructed
    record.confidence_ppm = report.confidence_ppm
    record.bad_reports = 0
    ack = max(record.ack_seq, min(report.last_ack_seq, record.seq))
    if ack > record.ack_seq:
        record.ack_seq, record.ack_ms = ack, report.at_ms


def _place(record: Record, params: TrafficParams, moved: bool, project: Project) -> Stop | None:
    """Take the pose as progress; returns why it is not plausible."""
    if not is_sure(record, params):
        return Stop.OFF_ROUTE
    if record.track is not None and record.track.segments:
        return _progress(record, params, moved, project)
    return Stop.OFF_ROUTE if distance_um(record, record.node) > node_reach_um(record.profile, params) else None


def release_bound_um(record: Record, now_ms: int) -> int:
    """Up to where the truck has certainly passed; it never decreases."""
    if record.progress is not None:
        doubt = uncertainty_um(record.profile, record.v_um_s, now_ms - record.report_ms)
        record.bound_um = max(record.bound_um, record.progress.release_um(doubt))
    return record.bound_um


def _progress(record: Record, params: TrafficParams, moved: bool, project: Project) -> Stop | None:
    # A truck whose pose has not changed has not moved.
    still = None if moved or record.progress is None else record.progress
    s_um = project(record, params) if still is None else still.raw_um[-1]
    if s_um is None:
        return Stop.OFF_ROUTE
    act = record.act
    on = s_um if act is None else min(s_um, act.s_um)
    if record.progress is None:
        record.progress = started(record.report_ms, on)
    window = ProgressParams(params.progress_window, params.progress_regress_um, params.pose_jump_threshold_um)
    after = advanced(record.progress, record.report_ms, on, record.profile, window)
    if isinstance(after, PoseJump):
        return Stop.POSE_JUMP
    if s_um > _stop_line_um(record) + record.profile.localization_error.value_um + params.stop_line_tol_um:
        return Stop.OVERRUN
    record.progress = after
    # A new route may need a turn where the truck stands: it is not beyond that node, whatever earlier noise suggested.
    limit = record.grant_um
    if act is not None and act.s_um < limit:
        limit = act.s_um
    record.at_um = max(record.at_um, min(after.extend_um, limit))
    return None


def _stop_line_um(record: Record) -> int:
    """The farthest stop line that the truck may know: an older one is in force until a newer one is acknowledged."""
    known_um = record.hold_um if record.retraction is None else record.farthest_um
    return max(known_um, record.at_um)


def _act(record: Record, params: TrafficParams) -> None:
    """Count finished acts: a turn is finished when the yaw fits at standstill, a stop with the route."""
    act = record.act
    while act is not None and _over(record, act, params):
        record.acted += 1
        act = record.act


def _over(record: Record, act: Act, params: TrafficParams) -> bool:
    if act.stop or act.yaw_urad is None or record.pose is None:
        return False
    if record.at_um < act.s_um - params.arrive_tol_um or record.v_um_s >= STANDING_UM_S:
        return False
    return abs(turn_urad(record.pose.yaw_urad, act.yaw_urad)) <= params.turn_tol_urad
