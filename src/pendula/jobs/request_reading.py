"""Reads the members of a body one by one, and collects every fault instead of stopping at the first."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from decimal import Decimal
from re import compile as regex
from typing import Any

from pendula.jobs.model import MILLION, SECOND, Code, Refused, fault_clause
from pendula.kernel.canonical import Json, encode
from pendula.kernel.errors import InputRefused, NotCanonical
from pendula.kernel.time import parse_utc

_UNFIT = regex(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters and lone surrogates


class Faults:
    """The faults of one body, field by field."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[dict[str, Json]] = []

    def add(self, field: str, code: Code, **facts: Json) -> None:
        self.entries.append({"field": field, "code": code.value, **facts})

    def refusal(self, message: str | None = None, **details: Json) -> Refused:
        """The refusal for all faults; a single fault gives it its code."""
        only = self.entries[0] if len(self.entries) == 1 else None
        code = Code(str(only["code"])) if only else Code.VALIDATION_FAILED
        text = message or (fault_clause(only) if only else f"{len(self.entries)} fields are invalid")
        return Refused(code, text, {**details, "fields": list(self.entries)})


class BodyReader:
    """One body and its faults; each method returns a value, or records a fault and returns None."""

    __slots__ = ("_given", "faults")

    def __init__(self, given: Mapping[str, Any], known: AbstractSet[str]) -> None:
        self._given = given
        self.faults = Faults()
        if not given.keys() <= known:
            for name in given:
                if name not in known:
                    self.faults.add(name, Code.UNKNOWN_FIELD, allowed=sorted(known))

    def has(self, name: str) -> bool:
        return self._given.get(name) is not None

    def bad(self, name: str, code: Code = Code.INVALID_FIELD, **facts: Json) -> None:
        self.faults.add(name, code, **facts)

    def required(self, name: str) -> bool:
        if name in self._given:
            return True
        self.faults.add(name, Code.MISSING_FIELD)
        return False

    def text(self, name: str, most: int, *, trimmed: bool = False) -> str | None:
        value = self._given.get(name)
        if value is None and name not in self._given:
            return None
        if (
            not isinstance(value, str)
            or not 1 <= len(value) <= most
            or _UNFIT.search(value) is not None
            or (trimmed and value != value.strip())
        ):
            self.bad(name, allowed=f"1 to {most} characters without control characters")
            return None
        return value

    def word(self, name: str, allowed: Collection[str]) -> str | None:
        value = self._given.get(name)
        if value is None and name not in self._given:
            return None
        if not isinstance(value, str) or value not in allowed:
            self.bad(name, Code.INVALID_ENUM, allowed=list(allowed))
            return None
        return value

    def words(self, name: str, allowed: Collection[str]) -> tuple[str, ...]:
        """A list of words, not empty; empty when it is not given."""
        value = self._given.get(name)
        if value is None:
            return ()
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            self.bad(name, allowed=list(allowed))
            return ()
        if any(not isinstance(word, str) or word not in allowed for word in value):
            self.bad(name, Code.INVALID_ENUM, allowed=list(allowed))
            return ()
        return tuple(value)

    def integer(self, name: str, least: int, most: int, code: Code = Code.INVALID_FIELD) -> int | None:
        value = self._given.get(name)
        if value is None:
            return None
        if type(value) is not int or not least <= value <= most:
            self.bad(name, code, allowed=f"an integer from {least} to {most}")
            return None
        return value

    def flag(self, name: str) -> bool | None:
        value = self._given.get(name)
        if value is None and name not in self._given:
            return None
        if not isinstance(value, bool):
            self.bad(name, allowed="true or false")
            return None
        return value

    def time(self, name: str) -> int | None:
        value = self._given.get(name)
        if value is None:
            return None
        if isinstance(value, datetime):
            value = value.isoformat()
        try:
            return parse_utc(value)
        except InputRefused as wrong:
            self.bad(name, Code(wrong.code))
            return None

    def seconds(self, name: str, most: int) -> int | None:
        """A number of seconds, as whole microseconds."""
        return self._number(name, most, SECOND)

    def fraction(self, name: str) -> int | None:
        """A number from 0 to 1, in whole millionths."""
        return self._number(name, 1, MILLION)

    def _number(self, name: str, most: int, parts: int) -> int | None:
        value = self._given.get(name)
        if value is None and name not in self._given:
            return None
        if isinstance(value, float):
            value = Decimal(str(value))
        if isinstance(value, Decimal) and not value.is_finite():
            value = None
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value <= most:
            self.bad(name, allowed=f"a number from 0 to {most}")
            return None
        return int(value * parts)

    def json(self, name: str, most: int) -> str | None:
        """The canonical text of any JSON value; None where it is absent or null."""
        value = self._given.get(name)
        if value is None:
            return None
        try:
            text = canonical(value)
        except NotCanonical as wrong:
            self.bad(name, allowed="a JSON value", path=str(wrong.details.get("path", "$")))
            return None
        if len(text) > most:
            self.bad(name, allowed=f"a JSON value of at most {most} bytes", bytes=len(text))
            return None
        return text.decode()


def canonical(value: object) -> bytes:
    """The canonical bytes of a JSON value, floats as the decimal numbers they are written as. Raises `NotCanonical`."""
    try:
        return encode(value)
    except NotCanonical:
        try:
            return encode(_exact(value))
        except RecursionError:
            raise NotCanonical("The value is nested too deeply or contains itself", path="$") from None


def _exact(value: object) -> object:
    """The same with decimals for floats; NaN and infinities stay, and are refused."""
    match value:
        case float():
            written = Decimal(repr(value))
            return written if written.is_finite() else value
        case Mapping():
            return {name: _exact(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_exact(inner) for inner in value]
        case _:
            return value
