"""Conditions of modifiers and follow-ups, on facts of the world or params of an action."""

from collections.abc import Iterable, Mapping

from pendula.actions.model import Condition, Fact
from pendula.kernel.canonical import Json
from pendula.kernel.wording import suggestion

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
