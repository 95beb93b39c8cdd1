"""Where every truck is: reports become progress along the track, an upper value to extend and a lower bound to release.

Noise does not pull the truck back, a jump does not move it. While a truck turns in a node its yaw fits no edge: it is
taken to be in the node as long as its pivot is.
"""

from collections.abc import Collection, Iterable
from math import isqrt

from msgspec import Struct, structs

from pendula.fleet.contracts.traffic import Health, Phase, RobotStatus
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop
from pendula.fleet.driving.uses import Act
from pendula.fleet.geometry.angles import turn_urad
from pendula.fleet.network.transitions import truck_yaw
from pendula.fleet.routing.progress import PoseJump, ProgressParams, advanced, started, uncertainty_um
from pendula.fleet.routing.route_plan import Limits, Pose

# Slower than this a truck stands.
STANDING_UM_S = 20_000
# By so much the clock of a truck may be ahead of that of the tick.
AHEAD_MS = 200
# No number of a report is larger, in whatever unit.
_MOST = 10**15
# How far along its edge a truck is looked for first: farther than it drives between two reports.
_NEAR_UM = 1_500_000


class TruckReport(Struct, frozen=True, rename="camel"):
    """What a truck says of itself, in whole micrometres, microradians and milliseconds."""

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


class DroppedReport(Struct, frozen=True):
    """A report that was not taken in: of a truck that is not known, with numbers or words that cannot be, of a time to
    come, or older than what is known."""

    robot_id: str
    code: str


def screened(
    reports: Iterable[TruckReport], known: Collection[str], now_ms: int
) -> tuple[list[TruckReport], list[DroppedReport]]:
    """The reports that can be read, in an order that does not depend on how they came; and the others."""
    readable, dropped = [], []
    for report in reports:
        code = _unreadable(report, known, now_ms)
        if code is None:
            readable.append(report)
        else:
            dropped.append(DroppedReport(str(report.robot_id), code))
    # All members: of two that differ under one time the same one counts, whichever came first.
    return sorted(readable, key=structs.astuple), sorted(dropped, key=structs.astuple)


def _unreadable(report: TruckReport, known: Collection[str], now_ms: int) -> str | None:
    if report.robot_id not in known:
        return "UNKNOWN_ROBOT"
    numbers = (report.at_ms, report.x_um, report.y_um, report.yaw_urad, report.v_um_s, report.last_ack_seq)
    # A program may hand over anything: NaN, decimals and endless integers stop nobody but their own truck.
    if any(type(one) is not int or abs(one) > _MOST for one in numbers):
        return "REPORT_MALFORMED"
    if not isinstance(report.status, RobotStatus) or not isinstance(report.phase, Phase):
        return "REPORT_MALFORMED"
    return "REPORT_FROM_THE_FUTURE" if report.at_ms > now_ms + AHEAD_MS else None


def take_in(record: Record, report: TruckReport, params: TrafficParams) -> None:
    """A report that is newer than the last one."""
    pose = Pose(report.x_um, report.y_um, report.yaw_urad)
    moved = record.pose != pose
    record.pose = pose
    record.v_um_s = abs(report.v_um_s)
    record.report_ms = report.at_ms
    record.status = report.status
    record.phase = report.phase
    record.load = report.load
    record.ack_seq = max(record.ack_seq, min(report.last_ack_seq, record.seq))
    if record.track is not None and record.track.segments:
        _progress(record, params, moved)
    else:
        _stand_in_node(record, params)
    _act(record, params)


def release_bound_um(record: Record, now_ms: int) -> int:
    """What the truck has passed for certain; it never falls."""
    if record.progress is not None:
        doubt = uncertainty_um(record.profile, record.v_um_s, now_ms - record.report_ms)
        record.bound_um = max(record.bound_um, record.progress.release_um(doubt))
    return record.bound_um


def _progress(record: Record, params: TrafficParams, moved: bool) -> None:
    # A truck that stands where it stood is where it was.
    still = None if moved or record.progress is None or record.health is not Health.HEALTHY else record.progress
    s_um = _position(record, params) if still is None else still.raw_um[-1]
    if s_um is None:
        record.lost = Stop.OFF_ROUTE
        return
    if record.progress is None:
        record.progress = started(record.report_ms, s_um)
    window = ProgressParams(params.progress_window, params.progress_regress_um)
    after = advanced(record.progress, record.report_ms, s_um, record.profile, window)
    if isinstance(after, PoseJump):
        record.lost = Stop.POSE_JUMP
        return
    record.progress = after
    # A new way may ask for a turn where the truck stands: it is not beyond that node, whatever noise said before.
    limit = record.grant_um if record.act is None else min(record.grant_um, record.act.s_um)
    record.at_um = max(record.at_um, min(after.extend_um, limit))
    record.lost = None


def _overshoot_um(record: Record, params: TrafficParams) -> int:
    """How far beyond the end of its grant a truck that obeys may say it is. Farther off it is lost, however long ago it
    was seen where it belongs."""
    errors = record.profile.localization_error.value_um + record.profile.tracking_error.value_um
    return errors + params.stop_line_tol_um


def _position(record: Record, params: TrafficParams) -> int | None:
    """The position of the pose on the track, not beyond a node in which something is still to be done."""
    assert record.pose is not None
    assert record.track is not None
    act = record.act
    slow = record.v_um_s < STANDING_UM_S
    if act is not None and slow and abs(act.s_um - record.at_um) <= 2 * params.node_snap_um:
        away = _distance_um(record, act.node)
        if away <= 2 * params.node_snap_um:
            return act.s_um - away
    near = _near_um(record, params)
    farthest = record.grant_um + _overshoot_um(record, params)
    if near is not None and near <= farthest:
        return near if act is None else min(near, act.s_um)
    limits = Limits(params.off_route_um, params.heading_tol_urad)
    found = record.track.plan.project(record.pose, record.at_um, limits)
    if found is None:
        return 0 if _distance_um(record, record.node) <= 2 * params.node_snap_um else None
    if found.lateral_um > limits.off_route_um or abs(found.heading_error_urad) > limits.heading_urad:
        return None
    if found.s_on_route_um > farthest:
        return None
    return found.s_on_route_um if act is None else min(found.s_on_route_um, act.s_um)


def _near_um(record: Record, params: TrafficParams) -> int | None:
    """The position close to the last one and on the same edge; None where the pose fits none, or another may fit
    better: then the whole route is looked at."""
    assert record.pose is not None
    assert record.track is not None
    plan = record.track.plan
    if not plan.segments:
        return None
    segment = plan.segments[plan.segment_at(max(record.at_um, 0))]
    edge = record.site.network.edges[segment.edge]
    low = max(record.at_um - segment.route_s0_um - params.progress_regress_um, 0)
    high = min(low + _NEAR_UM, segment.length_um)
    on, square = edge.path.nearest(record.pose.x_um, record.pose.y_um, low, high)
    if not low < on < high or square > params.off_route_um * params.off_route_um:
        return None
    error = turn_urad(truck_yaw(edge.path.heading(on), edge.style), record.pose.yaw_urad)
    return segment.route_s0_um + on if abs(error) <= params.heading_tol_urad else None


def _stand_in_node(record: Record, params: TrafficParams) -> None:
    record.lost = Stop.OFF_ROUTE if _distance_um(record, record.node) > 2 * params.node_snap_um else None


def _distance_um(record: Record, node: int) -> int:
    assert record.pose is not None
    at = record.site.network.nodes[node].at
    dx, dy = record.pose.x_um - at.x_um, record.pose.y_um - at.y_um
    return isqrt(dx * dx + dy * dy)


def _act(record: Record, params: TrafficParams) -> None:
    """Acts that are over: a turn when the yaw fits at standstill; a stop is over with the route."""
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
