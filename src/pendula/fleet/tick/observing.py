"""Where every truck is: reports become progress along the track, an upper value to extend and a lower bound to release.

Noise does not pull the truck back, a jump does not move it. While a truck turns in a node its yaw fits no edge: it is
taken to be in the node as long as its pivot is.
"""

from collections.abc import Callable, Collection, Iterable
from operator import ge
from typing import TypeAlias

from msgspec import Struct, structs

from pendula.fleet.contracts.traffic import Phase, RobotStatus
from pendula.fleet.driving.params import TrafficParams, node_reach_um
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop
from pendula.fleet.driving.uses import Act
from pendula.fleet.geometry.angles import turn_urad
from pendula.fleet.health.places import (
    STANDING_UM_S,
    distance_um,
    doubted,
    driven_on,
    is_sure,
    leaps,
    position,
    watched,
)
from pendula.fleet.routing.progress import PoseJump, ProgressParams, advanced, started, uncertainty_um
from pendula.fleet.routing.route_plan import Pose

# Where on its track the pose of a truck lies.
Project: TypeAlias = Callable[[Record, TrafficParams], int | None]

# By so much the clock of a truck may be ahead of that of the tick.
AHEAD_MS = 200
# No number of a report is larger, in whatever unit.
_MOST = 10**15


class TruckReport(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
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
    # Something is in its way that is no truck of ours: it stands by itself, and goes on by itself.
    obstructed: bool = False
    # How sure it is of where it is, in millionths.
    confidence_ppm: int = 1_000_000


def unreadable(robot_id: str) -> TruckReport:
    """A report of which only the truck is known: it is dropped as malformed."""
    return TruckReport(robot_id, at_ms=0, x_um=2 * _MOST, y_um=0, yaw_urad=0, v_um_s=0)


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
    names = [one.robot_id for one in readable]
    if any(map(ge, names, names[1:])):
        # All members: of two that differ under one time the same one counts, whichever came first.
        readable.sort(key=structs.astuple)
    return readable, sorted(dropped, key=structs.astuple)


def _unreadable(report: TruckReport, known: Collection[str], now_ms: int) -> str | None:
    if report.robot_id not in known:
        return "UNKNOWN_ROBOT"
    numbers = (report.at_ms, report.x_um, report.y_um, report.yaw_urad, report.v_um_s, report.last_ack_seq)
    # A program may hand over anything: NaN, decimals and endless integers stop nobody but their own truck.
    for one in (*numbers, report.confidence_ppm):
        if type(one) is not int or not -_MOST <= one <= _MOST:
            return "REPORT_MALFORMED"
    if not isinstance(report.status, RobotStatus) or not isinstance(report.phase, Phase):
        return "REPORT_MALFORMED"
    return "REPORT_FROM_THE_FUTURE" if report.at_ms > now_ms + AHEAD_MS else None


def take_in(
    record: Record, report: TruckReport, params: TrafficParams, now_ms: int, project: Project = position
) -> None:
    """A report that is newer than the last one."""
    pose, before = Pose(report.x_um, report.y_um, report.yaw_urad), record.pose
    passed_ms = report.at_ms - record.report_ms
    jumped = before is not None and leaps(before, pose, passed_ms, record, params)
    driven = max(record.v_um_s, abs(report.v_um_s)) * passed_ms // 1000
    _note(record, report, pose)
    if now_ms - report.at_ms <= params.max_status_age_ms:
        # What was under way for long says nothing of where the truck is now (FLT-FAIL-14).
        record.unheard = record.absent = False
    if record.doubt is None:
        lost = _place(record, params, before != pose, project)
        if lost is None:
            _act(record, params)
            return
        # A truck that is somewhere else from one report to the next has jumped, wherever that is.
        lost = Stop.POSE_JUMP if jumped and lost is Stop.OFF_ROUTE else lost
        record.doubt = doubted(record, lost, report.at_ms, params, torn=jumped or lost is Stop.POSE_JUMP)
        # Since its last report it has driven on, wherever it says it is now.
        since = 0 if before is None else driven
        record.doubt = structs.replace(driven_on(record.doubt, since), first=before is None)
        record.latched = lost if lost is Stop.OVERRUN else record.latched
        return
    record.doubt = watched(record, record.doubt, jumped, driven, passed_ms, params)


def _note(record: Record, report: TruckReport, pose: Pose) -> None:
    """What a report says beside where the truck is."""
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
    """Takes the pose as progress; why it cannot be."""
    if not is_sure(record, params):
        return Stop.OFF_ROUTE
    if record.track is not None and record.track.segments:
        return _progress(record, params, moved, project)
    return Stop.OFF_ROUTE if distance_um(record, record.node) > node_reach_um(record.profile, params) else None


def release_bound_um(record: Record, now_ms: int) -> int:
    """What the truck has passed for certain; it never falls."""
    if record.progress is not None:
        doubt = uncertainty_um(record.profile, record.v_um_s, now_ms - record.report_ms)
        record.bound_um = max(record.bound_um, record.progress.release_um(doubt))
    return record.bound_um


def _progress(record: Record, params: TrafficParams, moved: bool, project: Project) -> Stop | None:
    # A truck that stands where it stood is where it was.
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
    # A new way may ask for a turn where the truck stands: it is not beyond that node, whatever noise said before.
    limit = record.grant_um
    if act is not None and act.s_um < limit:
        limit = act.s_um
    record.at_um = max(record.at_um, min(after.extend_um, limit))
    return None


def _stop_line_um(record: Record) -> int:
    """The farthest stop line that the truck may know of: an older one is in force until a newer is acknowledged."""
    told = record.hold_um if record.retraction is None else record.farthest_um
    return max(told, record.at_um)


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
