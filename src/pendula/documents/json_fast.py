"""Fast JSON reading with the interpreter's parser, used only for texts without any fault.

It has no places and stops at the first fault. Every text that it does not accept is read again by `json_text`, which
reports the faults or finds the value.
"""

import json
import sys
from re import compile as regex
from typing import Any, NoReturn

from pendula.documents.numbers import decimal_reader, integer_digits
from pendula.documents.tree import DocumentLimits
from pendula.kernel.canonical import Json

_SURROGATE = regex(r"\\u[dD][89a-fA-F]")
_PAIR = regex(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]")


class NotClean(Exception):
    """The text may have a fault."""


def read_clean(text: str, limits: DocumentLimits) -> Json:
    """The value of a text without faults; raises `NotClean` otherwise, and in rare undecided cases."""
    if _most_values(text) > limits.nodes or not _surrogates_paired(text):
        raise NotClean
    try:
        value: Json = _decoder(limits).decode(text)
    except (ValueError, RecursionError):
        raise NotClean from None
    _measure(value, limits)
    return value


def _decoder(limits: DocumentLimits) -> json.JSONDecoder:
    most = limits.digits
    own = sys.get_int_max_str_digits()
    # The parser's own integer conversion is fastest and includes the interpreter's digit limit.
    return json.JSONDecoder(
        parse_int=None if own and own <= most else _integer_reader(most),
        parse_float=decimal_reader(most),
        parse_constant=_no_constant,
        object_pairs_hook=_members,
    )


def _integer_reader(most: int) -> Any:
    longest = integer_digits(most)

    def read(text: str) -> int:
        if len(text) - text.startswith("-") > longest:
            raise NotClean
        return int(text)

    return read


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotClean
    return members


def _no_constant(_: str) -> NoReturn:
    raise NotClean


def _most_values(text: str) -> int:
    """An upper bound of the number of values in a valid text, checked before parsing takes gigabytes.

    One, plus one per comma and per non-empty container; such characters in strings raise the bound.
    """
    openings = text.count("[") + text.count("{")
    return 1 + text.count(",") + openings - text.count("[]") - text.count("{}")


def _surrogates_paired(text: str) -> bool:
    """Whether every escaped surrogate is paired; False if an escaped backslash makes this uncertain."""
    if "\\ud" not in text and "\\uD" not in text:
        return True
    surrogates = len(_SURROGATE.findall(text))
    return not surrogates or ("\\\\" not in text and surrogates == 2 * len(_PAIR.findall(text)))


def _measure(value: Json, limits: DocumentLimits) -> None:
    """Raise `NotClean` if the value is too deep or has too many nodes; level by level, without recursion."""
    level: list[Any] = [value] if type(value) is dict or type(value) is list else []
    depth, nodes = 0, 1
    while level:
        depth += 1
        inner: list[Any] = []
        for container in level:
            nodes += len(container)
            children = container.values() if type(container) is dict else container
            inner += [child for child in children if type(child) is dict or type(child) is list]
        level = inner
        if depth > limits.depth or nodes > limits.nodes:
            raise NotClean
