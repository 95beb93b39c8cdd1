"""Conditions: of modifiers and follow-ups on facts or params; of processes on ends, minutes, knowledge."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.model import Code, Condition, Fact, Name
from pendula.actions.rules.validation import Fault, malformed
from pendula.kernel.canonical import Json
from pendula.kernel.wording import found_fact, suggestion

PARAMS = "params."


def is_met(condition: Condition | None, facts: Mapping[str, Fact], params: Json) -> bool:
    """Whether every name has its value, or one of its values. No condition is always met."""
    return condition is None or all(
        _is_one_of(_value(name, facts, params), allowed) for name, allowed in condition.items()
    )


def unknown_in(condition: Iterable[str], facts: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Names that are neither in `world_state` nor params, each with an error message."""
    known = sorted(facts)
    for name in condition:
        if name in known or (name.startswith(PARAMS) and name != PARAMS):
            continue
        near = suggestion(name, known)
        listed = ", ".join(known) or "none"
        yield name, f"{name!r} is not a name in world_state{near}; known are {listed}; of an action: `{PARAMS}<name>`"


def _value(name: str, facts: Mapping[str, Fact], params: Json) -> Json:
    if name in facts:
        return facts[name]
    return params.get(name.removeprefix(PARAMS)) if isinstance(params, Mapping) else None


def _is_one_of(value: Json, allowed: Fact | tuple[Fact, ...]) -> bool:
    """Equal, and of the same kind: 1 is not true."""
    options = allowed if isinstance(allowed, tuple) else (allowed,)
    return any(type(value) is type(option) and value == option for option in options)


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


class ProcessWait(Struct, eq=False):
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
