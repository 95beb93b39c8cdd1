"""Reduce commands to the capabilities of each truck (FLT-RTP-13).

This is the last step before a gateway: traffic and the journal do not depend on capabilities.
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
