"""Conditions that a process can wait for: ends of actions, minutes, knowledge; the first of several."""

from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.model import Code, Name
from pendula.actions.rules.validation import Fault, malformed
from pendula.kernel.canonical import Json
from pendula.kernel.wording import found_fact

THINGS_MOST = 1000


class Ended(Struct, frozen=True, forbid_unknown_fields=True):
    """An action has ended, in any way."""

    ended: Name


class Minute(Struct, frozen=True, forbid_unknown_fields=True):
    """A minute of the run is reached."""

    minute: int


class Known(Struct, frozen=True, forbid_unknown_fields=True):
    """The actor `by` can know of an item."""

    known: Name
    by: Name


Thing = Ended | Minute | Known
KINDS: dict[str, type[Struct]] = {"ended": Ended, "minute": Minute, "known": Known}


class Wait(Struct, eq=False):
    """The wait of a process for the first of several conditions; `satisfied` holds the places of the true ones."""

    process: str
    number: int
    things: tuple[Thing, ...]
    satisfied: list[int] = []
    handles: list[int] = []  # of its minutes in the event queue

    def satisfied_conditions(self) -> list[Json]:
        """The true conditions, in the order of the process."""
        return [msgspec.to_builtins(self.things[place]) for place in sorted(set(self.satisfied))]


def read_things(raw: Any) -> tuple[Thing, ...] | Fault:
    """The conditions, or their fault."""
    if not isinstance(raw, list | tuple) or not 1 <= len(raw) <= THINGS_MOST:
        return Fault(Code.INVALID_ACTION, "wait_list", {"found": found_fact(raw), "most": THINGS_MOST})
    things: list[Thing] = []
    for thing in raw:
        named = [name for name in KINDS if isinstance(thing, dict) and name in thing]
        if len(named) != 1:
            return Fault(Code.INVALID_ACTION, "wait_for_unknown", {"found": found_fact(thing)})
        kind = KINDS[named[0]]
        try:
            things.append(msgspec.convert(thing, kind))  # type: ignore[arg-type]
        except msgspec.ValidationError as fault:
            return malformed(Code.INVALID_ACTION, fault, thing, kind, "malformed_wait")
    return tuple(things)
