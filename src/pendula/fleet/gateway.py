"""The connection between a fleet and its trucks, independent of their protocol.

A gateway only transports commands and reports, in metres, radians, metres per second and milliseconds. It may lose or
delay them, but not invent them. The simulator implements it, and so does a connection to real trucks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol, TypeAlias, overload

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from pendula.fleet.contracts import (
    Acknowledgement,
    CommandMode,
    Phase,
    PoseContract,
    ProgressContract,
    RobotState,
    RollingTargetCommand,
    TaskView,
)
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.map.trucks import Capability, RobotProfile, kept_out
from pendula.fleet.model import CONTRACT_VERSION, MAJOR, NAME_BYTES, Verb
from pendula.fleet.tasks import Operation, OperationDone
from pendula.fleet.tick.aiming import Aim, CommandBatch
from pendula.fleet.tick.observing import TruckReport, unreadable
from pendula.fleet.tick.records import Record
from pendula.fleet.units import FARTHEST_M, MILLION, metres, micro
from pendula.kernel.errors import InputRefused


class Received(Struct, frozen=True):
    """What arrived since the last poll. `done`: completed operations; the name of a truck alone means the last
    operation that its gateway got."""

    reports: Sequence[RobotState] = ()
    done: tuple[str | OperationDone, ...] = ()

    @property
    def over(self) -> tuple[OperationDone, ...]:
        return tuple([OperationDone(done) if isinstance(done, str) else done for done in self.done])


class Gateway(Protocol):
    def send(self, commands: Sequence[RollingTargetCommand]) -> None:
        """Send commands. A truck obeys the newest by `seq` and acknowledges it in its reports; without a new one for
        `validForMs` it stops by itself, before its last stop line."""

    def announce(self, routes: Sequence[RoutePlan]) -> None:
        """Send the routes that commands refer to. A truck that only follows `pathSlice` needs none."""

    def operate(self, operations: Sequence[Operation]) -> None:
        """Let trucks load or unload in their current nodes. A known id is a repetition."""

    def poll(self) -> Received:
        """What has arrived. Reports may repeat; outdated ones are dropped later."""


# The operation that a report without an operation id refers to: the last one sent to the gateway of the truck.
# So a repeated completion cannot end an operation that the gateway does not know yet.

# No operation has this id.
NO_OPERATION = ""


class IssuedOperations:
    """The last operation of each truck that its gateway knows."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def note(self, operations: Iterable[Operation]) -> None:
        self._last.update((operation.robot_id, operation.operation_id) for operation in operations)

    def last_of(self, robot_id: str) -> str:
        return self._last.get(robot_id, NO_OPERATION)

    def with_ids(self, done: Iterable[str | OperationDone]) -> tuple[OperationDone, ...]:
        """Completions with the ids of their operations."""
        return tuple(map(self._with_id, done))

    def _with_id(self, done: str | OperationDone) -> OperationDone:
        if isinstance(done, OperationDone) and done.operation_id is not UNSET:
            return done
        robot_id = done if isinstance(done, str) else done.robot_id
        return OperationDone(robot_id, self.last_of(robot_id))


# Admission of truck types: only those that can be stopped.


class RobotRefused(InputRefused):
    """A truck type that is not admitted. Facts: `profileId`."""

    code = "robot_refused"


def register(profiles: Iterable[RobotProfile]) -> dict[str, frozenset[Capability]]:
    """The capabilities of each type. Raises `RobotRefused` for one that cannot be stopped (FLT-RTP-13)."""
    return {profile.profile_id: _capabilities(profile) for profile in profiles}


def _capabilities(profile: RobotProfile) -> frozenset[Capability]:
    for _, problem in kept_out(profile):
        raise RobotRefused(problem, profileId=profile.profile_id)
    return frozenset(Capability(name) for name in profile.capabilities)


# Reduce commands to the capabilities of each truck (FLT-RTP-13).
# This is the last step before a gateway: traffic and the journal do not depend on capabilities.

# Capabilities by truck id.
Abilities: TypeAlias = Mapping[str, frozenset[str]]


def abilities(records: Iterable[Record]) -> Abilities:
    return {record.robot_id: frozenset(record.profile.capabilities) for record in records}


class Selected(CommandBatch):
    """The commands of a tick as they are sent, each built when it is read."""

    def __init__(self, aims: Iterable[Aim], can: Abilities) -> None:
        super().__init__(tuple(_feasible(aim, can[aim.robot_id]) for aim in aims))
        self._can = can

    def form(self, aim: Aim) -> RollingTargetCommand:
        can, command = self._can[aim.robot_id], aim.command()
        return replace(
            command,
            verbs=verbs(aim.mode, can),
            speedLimitMps=command.speedLimitMps if Capability.SPEED_LIMIT in can else UNSET,
            pathSlice=command.pathSlice if Capability.PATH_SLICE in can else (),
        )


def verbs(mode: CommandMode, can: frozenset[str]) -> tuple[Verb, ...]:
    """The verbs for a mode, in order. They are idempotent, so a truck may be resumed without having been paused."""
    pauses = Capability.STOP not in can and Capability.PAUSE in can
    match mode:
        case CommandMode.STOP:
            return (Verb.PAUSE if pauses else Verb.STOP,)
        case CommandMode.HOLD:
            return (Verb.HOLD,)
        case CommandMode.GO | CommandMode.TURN:
            own = Verb(mode.value.lower())
            return (Verb.RESUME, own) if pauses and Capability.RESUME in can else (own,)


def _feasible(aim: Aim, can: frozenset[str]) -> Aim:
    """A truck that cannot turn on the spot holds in its node until it is turned by hand. A truck whose speed limit
    rounds to 0 mm/s holds too."""
    if aim.mode is CommandMode.GO and not aim.speed_um_s:
        return replace(aim, mode=CommandMode.HOLD)
    if aim.mode is not CommandMode.TURN or Capability.TURN_IN_PLACE in can:
        return aim
    return replace(aim, mode=CommandMode.HOLD, turn_urad=None)


# The newest command of each truck, its acknowledgement, and a watchdog.
# Commands are idempotent and only the newest counts, so older ones are not sent. A gateway stops trucks that have no
# watchdog when the manager sends nothing (FLT-RTP-8, FLT-RTP-9).


@dataclass(slots=True)
class _Line:
    command: RollingTargetCommand
    sent_ms: int
    acknowledged: int = 0
    stopped: bool = False


@dataclass(slots=True)
class Outbox:
    """The trucks of a gateway. All times are from the clock of the gateway."""

    _lines: dict[str, _Line] = field(default_factory=dict)

    def accept(self, command: RollingTargetCommand, now_ms: int) -> bool:
        """Whether to send a command: it is newer than all before it."""
        line = self._lines.get(command.robotId)
        if line is not None and command.seq <= line.command.seq:
            return False
        before = 0 if line is None else line.acknowledged
        self._lines[command.robotId] = _Line(command, now_ms, before)
        return True

    def acknowledge(self, ack: Acknowledgement) -> int:
        """The highest acknowledged `seq`, at most that of the last command."""
        line = self._lines.get(ack.robotId)
        if line is None:
            return 0
        line.acknowledged = max(line.acknowledged, min(ack.lastAckSeq, line.command.seq))
        return line.acknowledged

    def overdue(self, now_ms: int) -> tuple[str, ...]:
        """Trucks whose last command has expired, each returned once."""
        overdue = []
        for robot_id, line in sorted(self._lines.items()):
            if not line.stopped and now_ms - line.sent_ms > line.command.validForMs:
                line.stopped = True
                overdue.append(robot_id)
        return tuple(overdue)


# Reports of trucks in the form of the contract (metres, radians) and in the integers of ticks.
# The conversion is exact: decimals are rounded to whole micrometres once, half to even, and a float counts as the
# decimal that Python prints for it. A number out of range is rejected with its member. Task, progress on the route,
# profile and health come from the fleet, not from reports.

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
    """A report for ticks; raises `ReportRefused`."""
    wrong = list(faults_of(state))
    if wrong:
        members = [".".join(fault.path) for fault in wrong]
        problems = "; ".join(
            f"{member}: {fault.message}; allowed is {fault.allowed}"
            for member, fault in zip(members, wrong, strict=True)
        )
        raise ReportRefused(f"The report of {state.robotId!r} has {problems}", robotId=state.robotId, members=members)
    return converted(state)


def converted(state: RobotState) -> TruckReport:
    """A report without faults for ticks. The time of the measurement is `lastStatusMs`, or else `nowMs`."""
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


# Validate what a gateway returns, and convert it for ticks and the journal.
# A gateway is third-party code. Bad values for a truck, such as NaN, text or half an object, affect that truck alone:
# an unreadable report is kept as such, and all other reports of the tick are applied. The result has the integers of
# the engine, exactly as a journal restores them, so that a replay decides the same.

# Entries in one tick; more than all trucks of a hall report between two ticks.
MOST_REPORTS = 10_000
# Bytes of an operation id: the id of its task and a suffix.
MOST_OPERATION = 2 * NAME_BYTES


class GatewayFailed(InputRefused):
    """A gateway returned something other than reports. Facts: `problem`."""

    code = "gateway_failed"


class GatewayInput(Struct, frozen=True):
    """Validated input from a gateway."""

    reports: tuple[TruckReport, ...] = ()
    done: tuple[str | OperationDone, ...] = ()


def read_gateway(received: object) -> GatewayInput:
    """Validate the result of `poll`; raises `GatewayFailed` if it is not a `Received`."""
    if not isinstance(received, Received):
        raise GatewayFailed(f"poll() must return a Received, not {type(received).__name__}", problem="poll")
    for name, value in (("reports", received.reports), ("done", received.done)):
        if not isinstance(value, tuple | list | ReportBatch):
            raise GatewayFailed(f"{name} of poll() must be a tuple, not {type(value).__name__}", problem=name)
        if len(value) > MOST_REPORTS:
            raise GatewayFailed(f"{name} of poll() has {len(value)} entries; at most {MOST_REPORTS}", problem=name)
    done = tuple(valid for entry in received.done if (valid := _read_done(entry)) is not None)
    if isinstance(received.reports, ReportBatch):
        return GatewayInput(received.reports.reports, done)
    return GatewayInput(tuple(map(_read, received.reports)), done)


def _read_done(entry: object) -> str | OperationDone | None:
    """A truck or an operation that can be encoded; None for anything else."""
    if isinstance(entry, str):
        return entry if is_name(entry) else None
    try:
        done = msgspec.convert(msgspec.to_builtins(entry), OperationDone)
        msgspec.json.encode(done)
    except Exception:
        return None
    fits = done.operation_id is msgspec.UNSET or len(done.operation_id) <= MOST_OPERATION
    return done if is_name(done.robot_id) and fits else None


def _read(state: object) -> TruckReport:
    """The report as a journal restores it, or an unreadable one."""
    try:
        read = msgspec.convert(msgspec.to_builtins(state, builtin_types=(Decimal,)), RobotState)
        if is_name(read.robotId):
            report = report_of(read)
            msgspec.json.encode(report)
            return report
    except Exception:
        # Reading a member of a foreign object may raise anything.
        return unreadable(_name_of(state))
    return unreadable("")


def _name_of(state: object) -> str:
    """The truck of an unreadable report; empty if that is unreadable too."""
    try:
        name = getattr(state, "robotId", "")
    except Exception:
        return ""
    return name if isinstance(name, str) and is_name(name) else ""


def is_name(value: object) -> bool:
    """Whether a value is text that can be encoded and is short enough for the name of a truck."""
    try:
        return isinstance(value, str) and len(value) <= NAME_BYTES and 0 < len(value.encode()) <= NAME_BYTES
    except UnicodeEncodeError:
        return False
