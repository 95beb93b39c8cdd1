"""Reports of trucks in the form of the contract (metres, radians) and in the integers of ticks.

The conversion is exact: decimals are rounded to whole micrometres once, half to even, and a float counts as the decimal
that Python prints for it. A number out of range is rejected with its member. Task, progress on the route, profile and
health come from the fleet, not from reports.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import overload

from msgspec import UNSET, Struct

from pendula.fleet.contracts.traffic import Phase, PoseContract, ProgressContract, RobotState, TaskView
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.reading.values import MAJOR
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.units import FARTHEST_M, MILLION, metres, micro
from pendula.kernel.errors import InputRefused

# Limits of an angle and of a speed.
MOST_RAD = 1_000
MOST_MPS = 100
LAST_MS = 1 << 53
MOST_SEQ = 10**15


class ReportFault(Struct, frozen=True):
    """A value of a report that is out of range, or of another version. `path`: the members that lead to it."""

    path: tuple[str, ...]
    value: Decimal | int | str
    message: str
    allowed: str


class ReportRefused(InputRefused):
    """A report with a number out of range, or of another major version. Facts: `robotId`, `members`."""

    code = "report_refused"


def faults_of(state: RobotState) -> Iterator[ReportFault]:
    """All faults of a report."""
    pose, confidence = state.pose, _confidence(state)
    version = CONTRACT_VERSION if state.contractVersion is UNSET else state.contractVersion
    if version.split(".")[0] != MAJOR:
        yield ReportFault(("contractVersion",), version, f"version {version} is not supported", f"{MAJOR}.x.y")
    for path, length in ((("pose", "x"), pose.x), (("pose", "y"), pose.y)):
        yield from _beyond(path, length, -FARTHEST_M, FARTHEST_M, " m")
    yield from _beyond(("pose", "yaw"), pose.yaw, -MOST_RAD, MOST_RAD, " rad")
    yield from _beyond(("v",), state.v, -MOST_MPS, MOST_MPS, " m/s")
    yield from _beyond(("nowMs",), state.nowMs, 0, LAST_MS, " ms")
    if state.lastStatusMs is not UNSET:
        yield from _beyond(("lastStatusMs",), state.lastStatusMs, 0, LAST_MS, " ms")
    if state.lastAckSeq is not UNSET:
        yield from _beyond(("lastAckSeq",), state.lastAckSeq, 0, MOST_SEQ, "")
    if confidence is not None:
        yield from _beyond(("progress", "confidence"), confidence, 0, 1, "")


def report_of(state: RobotState) -> TruckReport:
    """A report for ticks; raises `ReportRefused`. The time of the measurement is `lastStatusMs`, or else `nowMs`."""
    wrong = list(faults_of(state))
    if wrong:
        members = [".".join(fault.path) for fault in wrong]
        problems = "; ".join(
            f"{member}: {fault.message}; allowed is {fault.allowed}"
            for member, fault in zip(members, wrong, strict=True)
        )
        raise ReportRefused(f"The report of {state.robotId!r} has {problems}", robotId=state.robotId, members=members)
    confidence = _confidence(state)
    return TruckReport(
        robot_id=state.robotId,
        at_ms=state.nowMs if state.lastStatusMs is UNSET else state.lastStatusMs,
        x_um=micro(state.pose.x),
        y_um=micro(state.pose.y),
        yaw_urad=micro(state.pose.yaw),
        v_um_s=micro(state.v),
        status=state.status,
        phase=state.task.phase if isinstance(state.task, TaskView) else Phase.IDLE,
        last_ack_seq=0 if state.lastAckSeq is UNSET else state.lastAckSeq,
        load=state.loadOnBoard is True,
        obstructed=state.obstructed is True,
        confidence_ppm=MILLION if confidence is None else micro(confidence),
    )


def state_of(report: TruckReport) -> RobotState:
    """A report in the form of the contract."""
    sure = report.confidence_ppm == MILLION
    return RobotState(
        contractVersion=CONTRACT_VERSION,
        robotId=report.robot_id,
        nowMs=report.at_ms,
        pose=PoseContract(metres(report.x_um), metres(report.y_um), metres(report.yaw_urad)),
        v=metres(report.v_um_s),
        status=report.status,
        task=TaskView(None, report.phase),
        progress=UNSET if sure else ProgressContract("", 0, metres(0), confidence=metres(report.confidence_ppm)),
        loadOnBoard=report.load,
        lastAckSeq=report.last_ack_seq,
        obstructed=report.obstructed,
    )


class ReportBatch(Sequence[RobotState]):
    """Reports in integers, each converted to a `RobotState` when read: simulated trucks need no decimals."""

    def __init__(self, reports: Iterable[TruckReport]) -> None:
        self.reports = tuple(reports)

    def __len__(self) -> int:
        return len(self.reports)

    @overload
    def __getitem__(self, at: int) -> RobotState: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[RobotState, ...]: ...

    def __getitem__(self, at: int | slice) -> RobotState | tuple[RobotState, ...]:
        return tuple(map(state_of, self.reports[at])) if isinstance(at, slice) else state_of(self.reports[at])


def _confidence(state: RobotState) -> Decimal | None:
    progress = state.progress
    if not isinstance(progress, ProgressContract) or progress.confidence is UNSET:
        return None
    return progress.confidence


def _beyond(path: tuple[str, ...], value: Decimal | int, least: int, most: int, unit: str) -> Iterator[ReportFault]:
    number = Decimal(value)
    if number.is_finite() and least <= number <= most:
        return
    message = f"{_short(value)} is out of range" if number.is_finite() else f"{value} is not a finite number"
    yield ReportFault(path, value, message, f"{least} to {most}{unit}")


def _digits(value: int) -> int:
    """The approximate number of digits: Python converts no integers of more than 4300 digits to text."""
    return abs(value).bit_length() * 30_103 // 100_000 + 1


def _short(value: Decimal | int) -> str:
    text = str(value) if isinstance(value, Decimal) or abs(value) < 10**30 else f"about 10^{_digits(value)}"
    return text if len(text) <= 40 else f"{text[:40]}…"
