"""Where the values of a sound JSON text lie: what nobody asks about is skipped by the interpreter's own parser."""

import json
from re import compile as regex

from pendula.documents.places import Step, Wanted

_SPACE = regex(r"[ \t\r\n]*")
# Skipped numbers are never converted: their length will do.
_SKIP = json.JSONDecoder(parse_int=len, parse_float=len).raw_decode


def locate(text: str, wanted: Wanted) -> None:
    """Notes the offsets of all that is wanted; `text` must be JSON without faults. May raise `RecursionError`."""
    _walk(text, _past_space(text, 0), wanted)


def _past_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None, "no space at all matches too"
    return space.end()


def _walk(text: str, at: int, wanted: Wanted | None) -> int:
    """Notes where the value at `at` and all that is wanted inside it lie; answers where it ends."""
    if wanted is not None:
        wanted.value_at = at
        if wanted.children and text[at] in "{[":
            return _walk_container(text, at, wanted)
    return _SKIP(text, at)[1]


def _walk_container(text: str, at: int, wanted: Wanted) -> int:
    is_list = text[at] == "["
    index = 0
    at = _past_space(text, at + 1)
    while text[at] not in "]}":
        key_at = at
        name: Step = index
        if not is_list:
            name, at = _SKIP(text, at)
            at = _past_space(text, _past_space(text, at) + 1)
        child = wanted.children.get(name)
        if child is not None and not is_list:
            child.key_at = key_at
        at = _past_space(text, _walk(text, at, child))
        if text[at] == ",":
            at = _past_space(text, at + 1)
        index += 1
    return at + 1
