"""What a truck can do selects what it is told: a command has nothing in it that its truck cannot obey (FLT-RTP-13).

Traffic decides the same for all, and a journal has what it decided; this is the last step before a gateway.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import UNSET
from msgspec.structs import replace

from pendula.fleet.contracts.traffic import CommandMode, RollingTargetCommand
from pendula.fleet.driving.records import Record
from pendula.fleet.gateway.registration import Capability
from pendula.fleet.model import Verb
from pendula.fleet.targets.rolling_target import Aim, CommandBatch

# What every truck can do, by its id.
Abilities: TypeAlias = Mapping[str, frozenset[str]]


def abilities(records: Iterable[Record]) -> Abilities:
    return {one.robot_id: frozenset(one.profile.capabilities) for one in records}


class Selected(CommandBatch):
    """The commands of a tick as trucks are told them, each made when it is read."""

    def __init__(self, aims: Iterable[Aim], can: Abilities) -> None:
        super().__init__(tuple(_obeyed(one, can[one.robot_id]) for one in aims))
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
    """What a truck that can do so much is told for a mode, in this order. Told again they change nothing: who was not
    there when a truck was paused may still resume it."""
    pauses = Capability.STOP not in can and Capability.PAUSE in can
    match mode:
        case CommandMode.STOP:
            return (Verb.PAUSE if pauses else Verb.STOP,)
        case CommandMode.HOLD:
            return (Verb.HOLD,)
        case CommandMode.GO | CommandMode.TURN:
            own = Verb(mode.value.lower())
            return (Verb.RESUME, own) if pauses and Capability.RESUME in can else (own,)


def _obeyed(aim: Aim, can: frozenset[str]) -> Aim:
    """A truck that cannot turn on the spot stays in its node, and is stuck there until somebody has turned it. One
    whose line is so near that it may go at no speed, told in millimetres a second, holds."""
    if aim.mode is CommandMode.GO and not aim.speed_um_s:
        return replace(aim, mode=CommandMode.HOLD)
    if aim.mode is not CommandMode.TURN or Capability.TURN_IN_PLACE in can:
        return aim
    return replace(aim, mode=CommandMode.HOLD, turn_urad=None)
