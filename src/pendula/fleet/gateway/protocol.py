"""The interface to trucks: the simulator implements it, and so does a connection to real trucks.

A gateway only transports commands and reports, in metres, radians, metres per second and milliseconds. It may lose or
delay them, but not invent them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from msgspec import UNSET, Struct
from msgspec.structs import replace

from pendula.fleet.contracts import Acknowledgement, CommandMode, RobotState, RollingTargetCommand
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.map.trucks import Capability, RobotProfile, kept_out
from pendula.fleet.model import Verb
from pendula.fleet.tasks import Operation, OperationDone
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.targets import Aim, CommandBatch
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
