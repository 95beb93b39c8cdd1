"""From reports to progress along the track: an upper value to extend grants and a lower bound to release them.

Noise does not move a truck back, and a jump does not move it at all. While a truck turns in a node its yaw fits no
edge; it counts as in the node while its pivot is.
"""

from collections.abc import Callable, Collection, Iterable
from operator import ge
from typing import TypeAlias

from msgspec import Struct, structs

from pendula.fleet.contracts import Phase, RobotStatus
from pendula.fleet.map.geometry import turn_urad
from pendula.fleet.map.routes import Pose, PoseJump, ProgressParams, advanced, started, uncertainty_um
from pendula.fleet.tick.params import TrafficParams, node_reach_um
from pendula.fleet.tick.places import (
    STANDING_UM_S,
    distance_um,
    extend_doubt,
    is_jump,
    is_sure,
    new_doubt,
    position,
    update_doubt,
)
from pendula.fleet.tick.records import Record, Stop
from pendula.fleet.tick.track import Act
from pendula.kernel.canonical import Json

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
