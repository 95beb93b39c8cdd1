"""What a process may wait for beside an end of its own: ends of others, minutes, knowledge; the first of several."""

from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.model import Code, Name
from pendula.actions.rules.validation import Fault, malformed
from pendula.kernel.canonical import Json
from pendula.kernel.wording import found_fact

THINGS_MOST = 1000


class Ended(Struct, frozen=True, forbid_unknown_fields=True):
    """An action is over, in whatever way."""

    ended: Name


class Minute(Struct, frozen=True, forbid_unknown_fields=True):
    """A minute of the run has come."""

    minute: int


class Known(Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody can know of an item."""

    known: Name
    by: Name


Thing = Ended | Minute | Known
KINDS: dict[str, type[Struct]] = {"ended": Ended, "minute": Minute, "known": Known}


class Wait(Struct, eq=False):
    """A process that waits for the first of several things; `came` are the places of those that have become true."""

    process: str
    number: int
    things: tuple[Thing, ...]
    came: list[int] = []
    handles: list[int] = []  # of its minutes in the queue of coming matters

    def told(self) -> list[Json]:
        """All that became true, in the order in which the process named them."""
        return [msgspec.to_builtins(self.things[place]) for place in sorted(set(self.came))]


def read_things(raw: Any) -> tuple[Thing, ...] | Fault:
    """What is waited for, or what is wrong with it."""
    if not isinstance(raw, list | tuple) or not 1 <= len(raw) <= THINGS_MOST:
        return Fault(Code.INVALID_ACTION, "wait_list", {"found": found_fact(raw), "most": THINGS_MOST})
    found: list[Thing] = []
    for one in raw:
        named = [name for name in KINDS if isinstance(one, dict) and name in one]
        if len(named) != 1:
            return Fault(Code.INVALID_ACTION, "wait_for_unknown", {"found": found_fact(one)})
        kind = KINDS[named[0]]
        try:
            found.append(msgspec.convert(one, kind))  # type: ignore[arg-type]
        except msgspec.ValidationError as fault:
            return malformed(Code.INVALID_ACTION, fault, one, kind, "malformed_wait")
    return tuple(found)
