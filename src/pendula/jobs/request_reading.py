"""Reads bodies: a request of the struct that describes it, or every fault of the body at once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from functools import cache
from re import compile as regex
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert
from msgspec.structs import FieldInfo, fields, force_setattr, replace

from pendula.jobs.model import Code, Policy, Refused, fault_clause
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.errors import NotCanonical
from pendula.kernel.limits import DOCUMENT_DEPTH, INTEGER_DIGITS

R = TypeVar("R", bound="Request")

# In a text without either, every number and level is within its limit.
LONG_NUMBER = regex(rb"[0-9]{%d}" % (INTEGER_DIGITS.default + 1))


class BadValue(ValueError):
    """The fault of one value. Facts: what is allowed, and more."""

    def __init__(self, code: Code = Code.INVALID_FIELD, **facts: Json) -> None:
        super().__init__(code.value)
        self.code = code
        self.facts = facts


Problem = tuple[str, BadValue]
NOTHING: Mapping[str, str] = {}


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members of a body or a query; `read` makes one."""

    def problems(self, policy: Policy, now: int) -> Iterable[Problem]:  # noqa: ARG002
        """What no type of a field says. A faulty member is None here."""
        return ()

    def late(self, now: int) -> Iterable[Problem]:  # noqa: ARG002
        """What is reported beside other faults only."""
        return ()

    def fill(self, policy: Policy) -> None:
        """Replace what was left out by the defaults of the policy."""


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


def read(
    kind: type[R], given: Mapping[str, Any], policy: Policy, now: int = 0, *, path: Mapping[str, str] = NOTHING
) -> R | Faults:
    """The request in a body, or every fault of it. `now` decides which times are past, `path` are members outside it.

    A sound body is converted at once; any other is read member by member.
    """
    if not path or path.keys().isdisjoint(given):
        try:
            request = convert({**given, **path} if path else given, kind, dec_hook=_own_type)
        except (ValidationError, UnicodeEncodeError):  # a lone surrogate cannot be encoded
            pass
        else:
            form = _form(kind)
            if _has_known_words(request, form, policy) and not any(request.problems(policy, now)):
                _make_plain(request, form)
                request.fill(policy)
                return request
    _, faults = _read_each(kind, given, policy, now, path)
    assert faults.entries, f"a body that is no {kind.__name__} has a fault"
    return faults


def _own_type(kind: Any, value: object) -> Any:
    return kind.read(value)


class _Form(Struct, frozen=True):
    """What a conversion leaves to do, by the names of the attributes."""

    words: tuple[tuple[str, str], ...]  # words of the policy, each with the part of its vocabulary
    own: tuple[tuple[str, Callable[[Any], Any]], ...]  # values of our own types, each with the plain type
    inside: tuple[str, ...]  # requests in the request


@cache
def _form(kind: type[Request]) -> _Form:
    members = _members(kind)
    return _Form(
        tuple((member.attribute, member.extra["words"]) for member in members if "words" in member.extra),
        tuple((member.attribute, member.form.__base__) for member in members if hasattr(member.form, "read")),
        tuple(member.attribute for member in members if member.is_request),
    )


def _has_known_words(request: Request, form: _Form, policy: Policy) -> bool:
    for name, part in form.words:
        if not _is_known(getattr(request, name), getattr(policy.vocabulary, part)):
            return False
    for name in form.inside:
        inner: Request = getattr(request, name)
        if not _has_known_words(inner, _form(type(inner)), policy):
            return False
    return True


def _is_known(value: object, words: Sequence[str]) -> bool:
    """Whether a value has only words of the vocabulary; one that is absent has none."""
    return value in words if isinstance(value, str) else not isinstance(value, tuple) or set(value) <= set(words)


def _make_plain(request: Request, form: _Form) -> None:
    """Replace values of our own types, which few other packages know, by plain ones."""
    for name, plain in form.own:
        value = getattr(request, name)
        if value is not None and value is not UNSET:
            force_setattr(request, name, plain(value))
    for name in form.inside:
        inner: Request = getattr(request, name)
        _make_plain(inner, _form(type(inner)))


class _Member(Struct, frozen=True):
    """A member of a body, as the struct describes it. `form` is its type without null and annotations."""

    name: str
    attribute: str
    annotation: Any
    form: Any
    required: bool
    extra: Mapping[str, Any]
    limits: Meta

    @property
    def is_request(self) -> bool:
        return isinstance(self.form, type) and issubclass(self.form, Request)

    def absent(self, policy: Policy) -> BadValue:
        return self.bad(None, policy) if "code" in self.extra else BadValue(Code.MISSING_FIELD)

    def bad(self, value: object, policy: Policy) -> BadValue:
        """The fault of a value that is not of its type."""
        if hasattr(self.form, "read"):
            try:
                self.form.read(value)
            except BadValue as bad:
                return bad
        words = self._words(policy)
        is_list = get_origin(self.form) is tuple
        is_word = words is not None and (not is_list or (isinstance(value, list | tuple) and len(value) > 0))
        code = self.extra.get("code", Code.INVALID_ENUM if is_word else Code.INVALID_FIELD)
        facts = {name: self.extra[name] for name in ("allowed", "hint") if name in self.extra}
        return BadValue(code, **{"allowed": self._allowed(policy) if words is None else words, **facts})

    def _words(self, policy: Policy) -> list[Json] | None:
        if "words" in self.extra:
            return [*getattr(policy.vocabulary, self.extra["words"])]
        if get_origin(self.form) is Literal:
            return [*get_args(self.form)]
        return [*self.form] if isinstance(self.form, type) and issubclass(self.form, StrEnum) else None

    def _allowed(self, policy: Policy) -> str:
        if self.form is bool:
            return "true or false"
        if self.form is int:
            most = getattr(policy, self.extra["most"]) if "most" in self.extra else self.limits.le
            return f"an integer from {self.limits.ge} to {most}"
        return f"1 to {self.limits.max_length} characters without control characters"


@cache
def _members(kind: type[Request]) -> tuple[_Member, ...]:
    return tuple(_member(entry, entry.type, Meta()) for entry in fields(kind))


def _member(entry: FieldInfo, annotation: Any, limits: Meta, **extra: Any) -> _Member:
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *marks = get_args(annotation)
        for mark in marks:
            extra |= mark.extra or {}
        return replace(_member(entry, inner, marks[0], **extra), annotation=annotation)
    if origin in (Union, UnionType):
        kept = [part for part in get_args(annotation) if part is not UnsetType]
        return replace(_member(entry, kept[0], limits, **extra), annotation=Union[tuple(kept)])  # noqa: UP007
    return _Member(entry.encode_name, entry.name, annotation, annotation, entry.required, extra, limits)


def _read_each(
    kind: type[R], given: Mapping[str, Any], policy: Policy, now: int, path: Mapping[str, str] = NOTHING
) -> tuple[R, Faults]:
    """The request as far as its members are sound, and every fault."""
    members, faults, inside = _members(kind), Faults(), Faults()
    known = sorted(member.name for member in members if member.name not in path)
    for name in given:
        if name not in known:
            faults.add(name, Code.UNKNOWN_FIELD, allowed=[*known])
    values: dict[str, Any] = {member.attribute: None for member in members if member.required}
    bad: dict[str, BadValue] = {}
    for member in members:
        name, value = member.name, (path if member.name in path else given).get(member.name)
        if name not in given and name not in path:
            if member.required:
                bad[name] = member.absent(policy)
        elif member.is_request and isinstance(value, Mapping):
            values[member.attribute], inner = _read_each(member.form, value, policy, now)
            inside.entries += [{**fault, "field": f"{name}.{fault['field']}"} for fault in inner.entries]
        else:
            try:
                values[member.attribute] = convert(value, member.annotation, dec_hook=_own_type)
            except (ValidationError, UnicodeEncodeError):
                bad[name] = member.bad(value, policy)
    sound = kind(**values)
    for name, part in _form(kind).words:
        if not _is_known(values.get(name), getattr(policy.vocabulary, part)):
            bad[name] = next(member for member in members if member.name == name).bad(given[name], policy)
    faulty = {str(fault["field"]).partition(".")[0] for fault in inside.entries}
    bad = {**{name: fault for name, fault in sound.problems(policy, now) if name not in faulty}, **bad}
    for member in members:
        if (fault := bad.get(member.name)) is not None:
            faults.add(member.name, fault.code, **fault.facts)
    faults.entries += inside.entries
    if faults.entries:
        for name, fault in sound.late(now):
            faults.add(name, fault.code, **fault.facts)
    return sound, faults


def canonical(value: object) -> bytes:
    """The canonical bytes of a JSON value, floats as the decimal numbers they are written as.

    Raises `NotCanonical`, also for numbers and levels beyond those of a document: they could be stored, and then fail
    every reply that shows them.
    """
    try:
        try:
            text = encode(value)
        except NotCanonical:
            text = encode(_exact(value))
        if text.count(b"[") + text.count(b"{") > DOCUMENT_DEPTH.default or LONG_NUMBER.search(text):
            _check_limits(decode(text), DOCUMENT_DEPTH.default)
    except RecursionError:
        raise NotCanonical("The value is nested too deeply or contains itself", path="$") from None
    return text


def _check_limits(value: Json, levels: int) -> None:
    match value:
        case bool() | str() | None:
            pass
        case int() if abs(value) >= 10**INTEGER_DIGITS.default:
            most = f"with integers of at most {INTEGER_DIGITS.default} digits"
            raise NotCanonical("A number is too long", path="$", allowed=f"a JSON value {most}")
        case Mapping() | list():
            if levels == 0:
                most = f"of at most {DOCUMENT_DEPTH.default} levels"
                raise NotCanonical("The value is nested too deeply", path="$", allowed=f"a JSON value {most}")
            for inner in value.values() if isinstance(value, Mapping) else value:
                _check_limits(inner, levels - 1)


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
