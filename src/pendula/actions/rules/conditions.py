"""Conditions of modifiers and follow-ups: what has to hold in the state of the world, or in the params of an action."""

from collections.abc import Iterable, Mapping

from pendula.actions.model import Condition, Fact
from pendula.kernel.canonical import Json
from pendula.kernel.wording import suggestion

PARAMS = "params."


def holds(condition: Condition | None, facts: Mapping[str, Fact], params: Json) -> bool:
    """Whether each name has the value, or one of the values, that the condition names; without one, always."""
    return condition is None or all(_is_one_of(_value(name, facts, params), one) for name, one in condition.items())


def unknown_in(condition: Iterable[str], facts: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Names that cannot hold, each with a sentence about it: neither in `world_state` nor of the params."""
    there = sorted(facts)
    for name in condition:
        if name in there or (name.startswith(PARAMS) and name != PARAMS):
            continue
        known = ", ".join(there) or "none"
        near = suggestion(name, there)
        yield name, f"{name!r} is not a name in world_state{near}; there: {known}; of an action: `{PARAMS}<name>`"


def _value(name: str, facts: Mapping[str, Fact], params: Json) -> Json:
    if name in facts:
        return facts[name]
    return params.get(name.removeprefix(PARAMS)) if isinstance(params, Mapping) else None


def _is_one_of(value: Json, wanted: Fact | tuple[Fact, ...]) -> bool:
    """Equal, and of the same kind: 1 is not true."""
    options = wanted if isinstance(wanted, tuple) else (wanted,)
    return any(type(value) is type(option) and value == option for option in options)
