"""Sentences of codes and facts, rendered where they are shown; no journal, state or digest contains one."""

from collections.abc import Callable, Mapping
from typing import Any

from pendula.kernel.canonical import Json

REFUSALS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "not_a_minute": lambda facts: f"A minute is a whole number, not {facts['value']}.",
    "too_far_away": lambda facts: f"Minute {facts['to']} is too far away; the last is {facts['latest']}.",
    "time_goes_forward": lambda facts: f"It is minute {facts['now']}; time does not go back to {facts['to']}.",
}


def sentence_of(code: str, facts: Mapping[str, Json]) -> str:
    """The sentence for the code of a refusal."""
    return REFUSALS[code](facts)
