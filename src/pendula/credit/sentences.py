"""Sentences of codes and facts, rendered where they are shown; no journal, state or digest contains one."""

from collections.abc import Mapping

from pendula.kernel.canonical import Json


def sentence_of(code: str, facts: Mapping[str, Json]) -> str:
    """The sentence for the code of a refusal."""
    return str(facts.get("message", code))
