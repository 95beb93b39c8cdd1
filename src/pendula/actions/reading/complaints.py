"""Complaints of the engine's readers about a value, noted at their places in the file."""

from collections.abc import Callable, Mapping
from itertools import takewhile
from re import compile as regex
from types import EllipsisType
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from pendula.actions.rules.names import known_names
from pendula.documents import Cursor, Path
from pendula.documents.places import Step
from pendula.kernel.canonical import Json
from pendula.kernel.wording import explain_validation_error, split_place

# Replacements of faulty required values, so that the rest of the object is read, too.
STAND_INS: Mapping[str, Json] = {
    "actor": "?",
    "amount": 0,
    "base_duration_min": 1,
    "effort": "low",
    "factor": 1,
    "id": "?",
    "index": 0,
    "interruptible": True,
    "name": "?",
    "priority": 0,
    "target": "?",
    "verb": "?",
}

NO_CODES: Mapping[Step, str] = {}

_FIELD = regex(r"(?s)Object (?:missing required|contains unknown) field `(.+)`\Z")


class Complaint(Struct, frozen=True):
    """The complaint of a reader about a value."""

    code: str
    message: str
    sentence: str | None = None  # the explained message


Judge: TypeAlias = Callable[[Any], Complaint | None]


def judged_as(kind: type[Struct], code: str = "InvalidSetting") -> Judge:
    """A judge of whether a value can be read as a struct."""

    def judge(raw: Json) -> Complaint | None:
        try:
            msgspec.convert(raw, kind)
        except msgspec.ValidationError as fault:
            return Complaint(code, f"{fault}", explain_validation_error(f"{fault}", raw, kind))
        return None

    return judge


def note_all(at: Cursor, judge: Judge, skip: int = 0, codes: Mapping[Step, str] = NO_CODES) -> list[Path]:
    """Note every fault of a value at its place; returns the paths inside the value. `codes` overrides codes of fields.

    Readers stop at the first fault, so the faulty field is replaced or removed and the rest is read again.
    """
    raw: Any = at.any()
    paths: list[Path] = []
    replaced: set[object] = set()
    while (complaint := judge(raw)) is not None:
        message, inner = split_message(complaint.message, raw)
        inner = inner[skip:]
        named = _FIELD.search(message) if not inner and message.endswith("`") else None
        field = named[1] if named else inner[0] if inner else None
        if field in replaced:
            break
        code = codes.get(inner[0], complaint.code) if inner else complaint.code
        below(at, inner).refuse(complaint.sentence or message, code=code)
        paths.append(inner)
        if not isinstance(raw, dict) or field is None:
            break
        replaced.add(field)
        raw = {name: value for name, value in raw.items() if name != field}
        if isinstance(field, str) and field in STAND_INS:
            raw[field] = STAND_INS[field]
    return paths


def below(at: Cursor, steps: Path) -> Cursor:
    """The cursor of a value inside another."""
    for step in steps:
        if isinstance(step, int):
            at = at.list_of(itself)[step]
        else:
            at = at.object(optional=(step,), unknown="keep")[step]
    return at


def split_message(message: str, value: Json) -> tuple[str, Path]:
    """A message without its path, and the path, up to a member whose name msgspec does not give."""
    what, steps = split_place(message, value)
    return what, tuple(takewhile(lambda step: not isinstance(step, EllipsisType), steps))  # type: ignore[arg-type]


def known(at: Cursor, kind: type[Struct]) -> None:
    """Note unknown members of an object."""
    if at.is_object:
        at.object(optional=known_names(kind))


def elements(at: Cursor, field: str) -> tuple[Cursor, ...]:
    """The elements of a list in an object; none if either has another type."""
    inner = below(at, (field,)) if at.is_object else at
    return inner.list_of(itself) if inner is not at and inner.is_list else ()


def itself(at: Cursor) -> Cursor:
    return at
