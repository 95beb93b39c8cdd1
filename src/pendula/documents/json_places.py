"""The places of values in a valid JSON text; other values are skipped with the interpreter's parser."""

import json
from re import compile as regex

from pendula.documents.places import Step, Wanted

_SPACE = regex(r"[ \t\r\n]*")
# Skipped numbers are not converted; only their length matters.
_SKIP = json.JSONDecoder(parse_int=len, parse_float=len).raw_decode


def locate(text: str, wanted: Wanted) -> None:
    """Note the offsets of all wanted values in valid JSON. May raise `RecursionError`."""
    _walk(text, _past_space(text, 0), wanted)


def _past_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None, "the pattern matches the empty string"
    return space.end()


def _walk(text: str, at: int, wanted: Wanted | None) -> int:
    """Note the offsets of the value at `at` and of wanted values inside it; returns where it ends."""
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
