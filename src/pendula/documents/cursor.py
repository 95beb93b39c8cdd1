"""Reads plain values into models; an invalid value is noted as a fault and reading continues.

    def definition(at: Cursor) -> Definition:
        members = at.object(required={"effort", "minutes"}, optional={"locks"})
        return Definition(
            effort=members["effort"].choice(Effort),
            minutes=members["minutes"].integer(min=1),
            locks=members["locks"].list_of(name, default=()),
        )

    definitions = document.read(lambda root: root.map_of(definition))

An invalid value is replaced by a stand-in of the right type, so that the rest is read too; `Document.read` returns the
model only if there were no faults.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from enum import Enum, StrEnum
from re import Pattern, sub
from re import compile as regex
from typing import Any, Literal, TypeAlias, TypeVar, overload

from msgspec import UNSET

from pendula.documents.faults import Finding, Findings, Path, Spot, Step
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import shown, suggestion

T = TypeVar("T")
D = TypeVar("D")
E = TypeVar("E", bound=StrEnum)


# Inside the class, `object` is the method.
NameCheck: TypeAlias = Callable[["Cursor"], object]


class _Lack(Enum):
    """Why there is no value."""

    ABSENT = "the member is absent"
    REFUSED = "a fault is already noted"
    NO_DEFAULT = "no default"


_ABSENT, _REFUSED, NO_DEFAULT = _Lack.ABSENT, _Lack.REFUSED, _Lack.NO_DEFAULT


class Reading:
    """State shared by all cursors of one reading."""

    __slots__ = ("changing", "closed", "context", "findings", "ignore", "locate", "source_name", "text_numbers")

    def __init__(self, findings: Findings, context: Any = None) -> None:
        self.findings = findings
        self.context = context
        # Called for each unknown member of an object; unknown members are then no faults.
        self.ignore: Callable[[Cursor, str], None] | None = None
        # Whether text is a number where a decimal is expected, as for msgspec.
        self.text_numbers = False
        # Whether absent members keep the values of a present object.
        self.changing = False
        # Whether members that a struct does not know are faults also where it ignores them.
        self.closed = False


class Cursor:
    """One value of a document and its path. Every reading method takes a `default` for an absent member."""

    __slots__ = ("_at_key", "_parent", "_step", "_value", "reading")

    def __init__(
        self, reading: Reading, value: Any, parent: "Cursor | None" = None, step: Step = "", at_key: bool = False
    ) -> None:
        self.reading = reading
        self._value = value
        self._parent = parent
        self._step = step
        self._at_key = at_key

    @property
    def path(self) -> Path:
        steps: list[Step] = []
        cursor = self
        while cursor._parent is not None:
            steps.append(cursor._step)
            cursor = cursor._parent
        return tuple(reversed(steps))

    @property
    def given(self) -> bool:
        """Whether there is a value, even null."""
        return not isinstance(self._value, _Lack)

    @property
    def is_null(self) -> bool:
        return self._value is None

    @property
    def is_text(self) -> bool:
        return isinstance(self._value, str)

    @property
    def is_list(self) -> bool:
        return isinstance(self._value, list | tuple)

    @property
    def is_object(self) -> bool:
        return isinstance(self._value, dict)

    @property
    def context(self) -> Any:
        """What the caller of the reading gave for readers that depend on more than the document."""
        return self.reading.context

    @context.setter
    def context(self, context: object) -> None:
        self.reading.context = context

    @property
    def count_of_faults(self) -> int:
        """How many faults the reading has noted so far."""
        return len(self._findings)

    @property
    def absent(self) -> "Cursor":
        """A cursor whose value was refused already: its readers give stand-ins without further faults."""
        return self._with(_REFUSED)

    def unless_null(self) -> "Cursor":
        """A cursor at the same place for which null counts as absent."""
        return self._with(_ABSENT) if self._value is None else self

    def refuse(self, message: str, *, code: str = "invalid_field", allowed: Sequence[str] = ()) -> None:
        """Note a fault of this value."""
        self._note(code, message, allowed=tuple(allowed))

    def any(self) -> Json:
        """The plain value; null if absent."""
        value: Json = None if isinstance(self._value, _Lack) else self._value
        return value

    @overload
    def text(
        self, *, min: int = 0, max: int | None = None, pattern: str | Pattern[str] = "", form: str = ""
    ) -> str: ...
    @overload
    def text(
        self, *, min: int = 0, max: int | None = None, pattern: str | Pattern[str] = "", form: str = "", default: D
    ) -> str | D: ...
    def text(
        self,
        *,
        min: int = 0,
        max: int | None = None,
        pattern: str | Pattern[str] = "",
        form: str = "",
        default: Any = NO_DEFAULT,
    ) -> Any:
        """A string of `min` to `max` characters that fully matches `pattern`; `form` describes the pattern."""
        value = self._value
        if not isinstance(value, str):
            return self._wrong_kind(default, "", "text", _span("characters", min or None, max))
        if len(value) < min or (max is not None and len(value) > max):
            size = f"{shown(value)} has {len(value)} characters"
            return self._instead(default, "", size, (_span("characters", min or None, max),))
        if pattern and not regex(pattern).fullmatch(value):
            wanted = form or (pattern if isinstance(pattern, str) else pattern.pattern)
            return self._instead(default, "", f"{shown(value)} does not have the right form", (wanted,))
        return value

    @overload
    def integer(self, *, min: int | None = None, max: int | None = None) -> int: ...
    @overload
    def integer(self, *, min: int | None = None, max: int | None = None, default: D) -> int | D: ...
    def integer(self, *, min: int | None = None, max: int | None = None, default: Any = NO_DEFAULT) -> Any:
        """An integer; `3.0`, `"3"` and `true` are refused."""
        value = self._value
        if type(value) is not int:
            return self._wrong_kind(default, min or 0, "an integer", _span("", min, max))
        return self._within(value, min, max, default, min or 0)

    @overload
    def decimal(self, *, min: int | Decimal | None = None, max: int | Decimal | None = None) -> Decimal: ...
    @overload
    def decimal(
        self, *, min: int | Decimal | None = None, max: int | Decimal | None = None, default: D
    ) -> Decimal | D: ...
    def decimal(
        self, *, min: int | Decimal | None = None, max: int | Decimal | None = None, default: Any = NO_DEFAULT
    ) -> Any:
        """An exact number, with or without a fraction."""
        value = self._value
        if self.reading.text_numbers and isinstance(value, str):
            with suppress(InvalidOperation):
                return Decimal(value)
        if type(value) is not int and not (isinstance(value, Decimal) and value.is_finite()):
            return self._wrong_kind(default, Decimal(min or 0), "a number", _span("", min, max))
        return self._within(Decimal(value), min, max, default, Decimal(min or 0))

    @overload
    def boolean(self) -> bool: ...
    @overload
    def boolean(self, *, default: D) -> bool | D: ...
    def boolean(self, *, default: Any = NO_DEFAULT) -> Any:
        if isinstance(self._value, bool):
            return self._value
        return self._wrong_kind(default, False, "true or false")

    @overload
    def choice(self, kind: type[E]) -> E: ...
    @overload
    def choice(self, kind: type[E], *, default: D) -> E | D: ...
    def choice(self, kind: type[E], *, default: Any = NO_DEFAULT) -> Any:
        """A member of an enumeration, in its exact spelling."""
        allowed = tuple(member.value for member in kind)
        if isinstance(self._value, str) and self._value in allowed:
            return kind(self._value)
        stand_in = next(iter(kind))
        if isinstance(self._value, _Lack):
            return self._lacking(default, stand_in)
        hint = suggestion(self._value, allowed) if isinstance(self._value, str) and not self._findings.full else ""
        message = f"{shown(self._value)} is not {_with_article(kind.__name__)}{hint}"
        return self._instead(default, stand_in, message, allowed, code="invalid_enum")

    def one_of(self, words: Sequence[str], *, default: Any = NO_DEFAULT, noun: str = "one of the allowed words") -> Any:
        """One of these words, in its exact spelling; they are data, not an enumeration."""
        if isinstance(self._value, str) and self._value in words:
            return self._value
        stand_in = words[0] if words else ""
        if isinstance(self._value, _Lack):
            return self._lacking(default, stand_in)
        hint = suggestion(self._value, words) if isinstance(self._value, str) and not self._findings.full else ""
        message = f"{shown(self._value)} is not {noun}{hint}"
        return self._instead(default, stand_in, message, tuple(words), code="invalid_enum")

    @overload
    def parsed(self, parse: Callable[[str], T], *, stand_in: T) -> T: ...
    @overload
    def parsed(self, parse: Callable[[str], T], *, stand_in: T, default: D) -> T | D: ...
    def parsed(self, parse: Callable[[str], T], *, stand_in: T, default: Any = NO_DEFAULT) -> Any:
        """Text converted by `parse`; the code and message of its `InputRefused` become the fault."""
        if not isinstance(self._value, str):
            return self._wrong_kind(default, stand_in, "text")
        try:
            return parse(self._value)
        except InputRefused as error:
            return self._instead(default, stand_in, error.message, (), code=error.code)

    def object(
        self,
        *,
        required: Collection[str] = (),
        optional: Collection[str] = (),
        unknown: Literal["refuse", "keep"] = "refuse",
    ) -> "Members":
        """The members of an object. Unknown ones are faults, or kept in `Members.extra`."""
        if not isinstance(self._value, dict):
            self._wrong_kind(NO_DEFAULT, None, "an object")
            return Members(self, dict.fromkeys((*required, *optional), _REFUSED), {})
        members = {name: self._value.get(name, _ABSENT) for name in (*required, *optional)}
        self._refuse_missing([name for name in required if members[name] is _ABSENT], members)
        extra: dict[str, Json] = {}
        if not self._value.keys() <= members.keys():
            extra = {name: value for name, value in self._value.items() if name not in members}
        if unknown == "refuse":
            self._refuse_unknown(extra, members)
        return Members(self, members, extra)

    def inside(self, *steps: Step) -> "Cursor":
        """The cursor of one value inside this one; reads no other, so each of many costs the same."""
        at = self
        for step in steps:
            if isinstance(step, str) and isinstance(at._value, dict):
                at = at._at(step, at._value.get(step, _ABSENT))
            elif isinstance(step, str):
                at = at.object(optional=(step,))[step]
            else:
                at = at._at(step, at._value[step])
        return at

    @overload
    def list_of(self, read: Callable[["Cursor"], T], *, min: int = 0, max: int | None = None) -> tuple[T, ...]: ...
    @overload
    def list_of(
        self, read: Callable[["Cursor"], T], *, min: int = 0, max: int | None = None, default: D
    ) -> tuple[T, ...] | D: ...
    def list_of(
        self, read: Callable[["Cursor"], Any], *, min: int = 0, max: int | None = None, default: Any = NO_DEFAULT
    ) -> Any:
        """Every element, read by `read`, in order."""
        if not self.is_list:
            return self._wrong_kind(default, (), "a list", _span("elements", min or None, max))
        if len(self._value) < min or (max is not None and len(self._value) > max):
            return self._instead(default, (), shown(self._value), (_span("elements", min or None, max),))
        return tuple(read(element) for element in self._elements())

    @overload
    def map_of(self, read: Callable[["Cursor"], T], *, key: "NameCheck | None" = None) -> dict[str, T]: ...
    @overload
    def map_of(
        self, read: Callable[["Cursor"], T], *, key: "NameCheck | None" = None, default: D
    ) -> dict[str, T] | D: ...
    def map_of(
        self,
        read: Callable[["Cursor"], Any],
        *,
        key: "NameCheck | None" = None,
        default: Any = NO_DEFAULT,
    ) -> Any:
        """Every member's value, read by `read`, in the order of the text; `key` can check the names."""
        if not isinstance(self._value, dict):
            return self._wrong_kind(default, {}, "an object")
        if key is not None:
            for name in self._value:
                key(Cursor(self.reading, name, self, name, at_key=True))
        return {name: read(self._at(name, value)) for name, value in self._value.items()}

    @property
    def _findings(self) -> Findings:
        return self.reading.findings

    def _with(self, value: Any) -> "Cursor":
        return Cursor(self.reading, value, self._parent, self._step, self._at_key)

    def _at(self, step: Step, value: Any) -> "Cursor":
        return Cursor(self.reading, value, self, step)

    def _elements(self) -> Iterator["Cursor"]:
        return (self._at(index, value) for index, value in enumerate(self._value))

    def _within(self, value: Any, least: Any, most: Any, default: Any, stand_in: Any) -> Any:
        if (least is None or value >= least) and (most is None or value <= most):
            return value
        return self._instead(default, stand_in, f"{shown(value)} is out of range", (_span("", least, most),))

    def _wrong_kind(self, default: Any, stand_in: Any, noun: str, span: str = "") -> Any:
        if isinstance(self._value, _Lack):
            return self._lacking(default, stand_in)
        return self._instead(default, stand_in, f"{shown(self._value)} is not {noun}", (f"{noun} {span}".strip(),))

    def _lacking(self, default: Any, stand_in: Any) -> Any:
        if default is not NO_DEFAULT:
            return default
        if self._value is _ABSENT:
            self._note("missing_field", f"the member {str(self._step)!r} is missing")
            self._value = _REFUSED
        return stand_in

    def _instead(
        self, default: Any, stand_in: Any, message: str, allowed: tuple[str, ...], *, code: str = "invalid_field"
    ) -> Any:
        self._note(code, message, allowed)
        return stand_in if default is NO_DEFAULT else default

    def _note(self, code: str, message: str, allowed: tuple[str, ...] = ()) -> None:
        value = UNSET if isinstance(self._value, _Lack) else self._value
        self._findings.add(Finding(Spot(self.path, self._at_key), code, message, value, allowed))

    def _refuse_missing(self, missing: list[str], members: dict[str, Any]) -> None:
        # Names may be given as a set; the order of faults must not depend on its order.
        for name in sorted(missing):
            members[name] = _REFUSED
            self._at(name, _ABSENT)._note("missing_field", f"the member {name!r} is missing")

    def _refuse_unknown(self, extra: dict[str, Json], members: dict[str, Any]) -> None:
        names = tuple(sorted(members)) if extra else ()
        for name in extra:
            hint = "" if self._findings.full else suggestion(name, names)
            member = Cursor(self.reading, name, self, name, at_key=True)
            member._note("unknown_field", f"the member {shown(name)} is not known here{hint}", names)


class Members:
    """The members of one object, each as a cursor; `extra` has the unknown ones."""

    __slots__ = ("_members", "extra", "owner", "unsound")

    def __init__(self, owner: Cursor, members: dict[str, Any], extra: dict[str, Json]) -> None:
        self.owner = owner
        self._members = members
        self.extra = extra
        self.unsound: set[str] = set()

    def __getitem__(self, name: str) -> Cursor:
        """The member's cursor, even if absent; only names given to `object` are valid."""
        return self.owner._at(name, self._members[name])

    def sound(self, *names: str) -> bool:
        """Whether all these members are given and were read without a fault (see `documents.typed`)."""
        return all(name in self and name not in self.unsound for name in names)

    def __contains__(self, name: str) -> bool:
        return name in self._members and not isinstance(self._members[name], _Lack)


def _span(unit: str, least: Any, most: Any) -> str:
    """`from 1 to 100`, `at least 1`, `at most 200 characters`."""
    if least is None and most is None:
        return ""
    if least is None:
        words = f"at most {most}"
    elif most is None:
        words = f"at least {least}"
    else:
        words = f"from {least} to {most}"
    return f"{words} {unit}".strip()


def _with_article(name: str) -> str:
    """`an effort` for the class name `Effort`, `an object type` for `ObjectType`."""
    words = sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"
