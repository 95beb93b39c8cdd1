"""Reads a value of a document into a msgspec struct, or notes every fault. The struct is the only description.

    class Truck(Struct, frozen=True, forbid_unknown_fields=True):
        id: Annotated[str, Meta(min_length=1, max_length=64)]
        speed_um_s: Annotated[int, Read(speed), written(type="number")] = field(name="speed")
        kind: Kind = Kind.FORKLIFT

        def check(self, at: Members) -> None:
            if self.kind is Kind.TUGGER and self.speed_um_s > FASTEST_TUGGER:
                at["speed"].refuse("a tugger is slower")

    truck = read(document, Truck)

What the annotations mean:

- Members have the names of the documents: `rename=` and `field(name=…)`. A member with a default is optional; null is a
  fault unless the type allows None, or `NULL_IS_ABSENT` is in its annotation. With `NO_NULL` it is a fault in any case.
- `forbid_unknown_fields=True`, or `CLOSED` beside a struct: unknown members are faults; otherwise they are ignored.
- `Meta`: `ge`, `le`, `min_length`, `max_length`, `pattern` (with ^ and $; `extra={"form": …}` describes it). What
  msgspec cannot check, such as the range of a Decimal, or shall not, is `limits(minimum=…)` in words of JSON Schema.
- `Read(function)`: the value is read by a function of the cursor, for instance metres into micrometres.
  `Parse(function)`: text is converted by a function; its `InputRefused` becomes the fault. `written` beside them is the
  schema of the document.
- `MERGED`: of a map in a change, members that are not given keep the present values.
- `Unique()`: no element of a list is equal to another; `Unique("id")`: nor is this member of it.
- A union of tagged structs is read by its tag; any other union by the kind of the value. If the tag is wrong, the
  object is read as the struct that all of them are derived from, if there is one, so that its other faults are noted.
- `check` of a struct notes what concerns several members. It runs also if members are faulty; those have a stand-in,
  and `at.sound(…)` says whether members were read without a fault.

`note_unknown_members` looks for nothing else.

`Cursor.context` is what the caller gave as `context`, for readers that depend on more than the document.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from functools import cache, partial
from re import compile as regex
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct, UnsetType, ValidationError, convert
from msgspec.structs import FieldInfo, fields

from pendula.documents.cursor import NO_DEFAULT, Cursor, Members, Reading
from pendula.documents.faults import DocumentRefused, Fault, Findings
from pendula.documents.reading import Document
from pendula.kernel.canonical import Json

T = TypeVar("T")

_ANCHORED = regex(r"(?:\^|\\A)([\s\S]*)(?:\$|\\Z)")

# Reads a value. The arguments are its cursor and the value if it is absent.
Reader: TypeAlias = Callable[[Cursor, Any], Any]


class Read:
    """Annotation: `read` makes the value from its cursor. It runs only for a value that is given and not null."""

    __slots__ = ("read", "stand_in")

    def __init__(self, read: Callable[[Cursor], Any], stand_in: Any = None) -> None:
        self.read = read
        self.stand_in = stand_in


class Parse:
    """Annotation: the value is text, converted by `parse`; its `InputRefused` becomes the fault."""

    __slots__ = ("parse", "stand_in")

    def __init__(self, parse: Callable[[str], Any], stand_in: Any = "") -> None:
        self.parse = parse
        self.stand_in = stand_in


class Unique:
    """Annotation of a list: elements, or these members of them, differ. `noun` names an element in the message."""

    __slots__ = ("members", "noun")

    def __init__(self, *members: str, noun: str = "") -> None:
        self.members = members
        self.noun = noun


def written(**schema: Json) -> Meta:
    """Annotation beside `Read` and `Parse`: the JSON Schema of the value as documents have it."""
    return Meta(extra_json_schema={"written": schema})


def limits(**schema: Json) -> Meta:
    """Annotation: limits that documents check and msgspec does not, in words of JSON Schema: minimum, maxLength."""
    return Meta(extra_json_schema=schema)


# The words of JSON Schema for limits of `Meta`.
LIMITS = {
    "minimum": "ge",
    "maximum": "le",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
}


class _Merged:
    """Annotation of a map: in a change, members that are not given keep the present values."""


MERGED = _Merged()


class _NullIsAbsent:
    """Annotation: null means the same as a missing member."""


class _NoNull:
    """Annotation: null is a fault, although the type has None for a missing member."""


NULL_IS_ABSENT = _NullIsAbsent()
NO_NULL = _NoNull()


class _Closed:
    """Annotation of a struct that ignores unknown members elsewhere: in documents they are faults."""


CLOSED = _Closed()


def read(
    document: Document,
    form: type[T],
    *,
    context: object = None,
    present: T | None = None,
    ignore: Callable[[Cursor, str], None] | None = None,
) -> T:
    """The document as `form`; raises `DocumentRefused` with every fault. Members of `present` are the defaults.

    With `ignore`, an unknown member of a struct that forbids them is no fault: `ignore` gets the object and the name.
    """
    return document.read(lambda root: read_at(root, form, context=context, present=present, ignore=ignore))


def read_at(
    at: Cursor,
    form: type[T],
    *,
    context: object = None,
    present: T | None = None,
    ignore: Callable[[Cursor, str], None] | None = None,
) -> T:
    """The value at a cursor; faults are noted in its document, and their values replaced by stand-ins."""
    reading = at.reading
    outer, reading.changing = reading.changing, present is not None
    if context is not None:
        reading.context = context
    if ignore is not None:
        reading.ignore = ignore
    value: T = reader_of(form)(at, NO_DEFAULT if present is None else present)
    reading.changing = outer
    return value


def read_members(members: Members, form: type[Struct], names: Collection[str]) -> dict[str, Any]:
    """Some members of a struct, for a document that has them beside others; its defaults where they are not given."""
    return {
        info.name: reader_of(info.type)(members[info.encode_name], _default(info))
        for info in fields(form)
        if info.name in names
    }


def unknown_members(document: Document, read: Callable[[Cursor], object]) -> tuple[Fault, ...]:
    """Faults for the members that the structs of a reading do not know, also of structs that ignore such members."""

    def read_closed(root: Cursor) -> None:
        root.reading.closed = True
        read(root)

    try:
        document.read(read_closed)
    except DocumentRefused as refused:
        return tuple(fault for fault in refused.faults if fault.code == "unknown_field")
    return ()


def reader_of(form: Any) -> Reader:
    """The reader of a type, made once. Raises `TypeError` for a type that no document holds."""
    read: Reader = _made(form)
    return read


@cache
def _made(form: Any) -> Reader:
    marks: list[Any] = []
    if get_origin(form) is Annotated:
        form, *marks = get_args(form)
    origin = get_origin(form)
    if origin in (Union, UnionType):
        read = _union(get_args(form), tuple(marks))
    else:
        read = _marked(form, origin, marks)
    return partial(_unless_null, read) if NULL_IS_ABSENT in marks else read


def _marked(form: Any, origin: Any, marks: Sequence[Any]) -> Reader:
    for mark in marks:
        if isinstance(mark, Read):
            return partial(_by_function, mark)
        if isinstance(mark, Parse):
            return lambda at, default: at.parsed(mark.parse, stand_in=mark.stand_in, default=default)
    meta = _merged([mark for mark in marks if isinstance(mark, Meta)])
    if origin in (tuple, list, frozenset):
        unique = next((mark for mark in marks if isinstance(mark, Unique)), None)
        return _list(origin, get_args(form), meta, unique)
    if origin in (dict, Mapping) or form is dict:
        return _map(*(get_args(form) or (str, Any)), merged=MERGED in marks)
    if origin is Literal:
        words = get_args(form)
        return lambda at, default: at.one_of(words, default=default)
    if CLOSED in marks:
        return _StructReader(form, closed=True)
    return _plain(form, meta)


def _plain(form: Any, meta: Mapping[str, Any]) -> Reader:
    """Readers of values without parts, and of structs."""
    if form is str:
        options = {key: meta[name] for key, name in (("min", "min_length"), ("max", "max_length")) if name in meta}
        if "pattern" in meta:
            pattern = meta["pattern"]
            anchored = _ANCHORED.fullmatch(pattern)
            if anchored is None:
                raise TypeError(f"the pattern {pattern} is not anchored at both ends")
            options["pattern"] = regex(pattern)
            options["form"] = meta.get("form", anchored[1])
        return lambda at, default: at.text(**options, default=default)
    if form is int:
        least, most = meta.get("ge"), meta.get("le")
        return lambda at, default: at.integer(min=least, max=most, default=default)
    if form is Decimal:
        least, most = meta.get("ge"), meta.get("le")
        return lambda at, default: at.decimal(min=least, max=most, default=default)
    if form is bool:
        return lambda at, default: at.boolean(default=default)
    if form is Any or form is object:
        return lambda at, default: at.any() if at.given or default is NO_DEFAULT else default
    if isinstance(form, type) and issubclass(form, StrEnum):
        return lambda at, default: at.choice(form, default=default)
    if isinstance(form, type) and issubclass(form, Struct):
        return _StructReader(form)
    raise TypeError(f"{form!r} cannot be read from a document")


def _merged(metas: Sequence[Meta]) -> dict[str, Any]:
    """The constraints of all `Meta` of an annotation; later ones win."""
    merged: dict[str, Any] = {}
    for meta in metas:
        schema = meta.extra_json_schema or {}
        merged |= schema | {LIMITS[word]: value for word, value in schema.items() if word in LIMITS}
        merged |= meta.extra or {}
        for name in ("ge", "le", "min_length", "max_length", "pattern"):
            if (value := getattr(meta, name)) is not None:
                merged[name] = value
    return merged


def _by_function(mark: Read, at: Cursor, default: Any) -> Any:
    if at.given:
        return mark.read(at)
    return mark.stand_in if default is NO_DEFAULT else default


def _unless_null(read: Reader, at: Cursor, default: Any) -> Any:
    return read(at.unless_null(), default)


def _union(forms: tuple[Any, ...], marks: tuple[Any, ...]) -> Reader:
    """None, and one type, or tagged structs, or types of different kinds; marks of the union belong to each type."""
    nullable = NoneType in forms and NO_NULL not in marks
    inner = [form for form in forms if form not in (NoneType, UnsetType)]
    if marks:
        inner = [Annotated[(form, *marks)] for form in inner]
    if len(inner) == 1:
        choose = reader_of(inner[0])
    elif all(_tag(form) for form in inner):
        choose = _Tagged(inner)
    else:
        readers = tuple((_kinds(form), reader_of(form)) for form in inner)

        def choose(at: Cursor, default: Any) -> Any:
            value = at.any()
            for kinds, read in readers:
                if isinstance(value, kinds) and isinstance(value, bool) == (kinds is bool):
                    return read(at, default)
            return readers[0][1](at, default)

    if not nullable:
        return choose
    return lambda at, default: None if at.is_null else choose(at, default)


def _kinds(form: Any) -> Any:
    """The Python types of the values that a type of a union is for."""
    if get_origin(form) is Annotated:
        form = get_args(form)[0]
    origin = get_origin(form) or form
    if origin in (tuple, list, frozenset):
        return list | tuple
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Struct)):
        return dict
    if origin is Literal or (isinstance(origin, type) and issubclass(origin, StrEnum)):
        return str
    return int | Decimal if origin in (int, Decimal) else origin


def _tag(form: Any) -> Any:
    return isinstance(form, type) and issubclass(form, Struct) and form.__struct_config__.tag


class _Tagged:
    """The reader of a union of tagged structs."""

    def __init__(self, forms: Sequence[Any]) -> None:
        (self._tag_field,) = {form.__struct_config__.tag_field for form in forms}
        self._readers = {form.__struct_config__.tag: reader_of(form) for form in forms}
        bases = (base for base in forms[0].__mro__ if base is not Struct and issubclass(base, Struct))
        self._base = next((base for base in bases if all(issubclass(form, base) for form in forms)), None)

    def __call__(self, at: Cursor, default: Any) -> Any:
        if not at.given and default is not NO_DEFAULT:
            return default
        tag = at.object(required=(self._tag_field,), unknown="keep")[self._tag_field]
        word = tag.one_of(tuple(self._readers))
        if tag.any() == word:
            return self._readers[word](at, default)
        if self._base is not None and at.is_object:
            reader_of(self._base)(at, NO_DEFAULT)
        return None


class _StructReader:
    """The reader of one struct: its members in their order, then its own check."""

    def __init__(self, form: type[Struct], *, closed: bool = False) -> None:
        config = form.__struct_config__
        self._form = form
        self._closed = closed or config.forbid_unknown_fields
        self._closed_here = closed and not config.forbid_unknown_fields
        self._check = getattr(form, "check", None)
        self._tag_field = (config.tag_field,) if config.tag_field else ()
        infos = fields(form)
        self._required = tuple(info.encode_name for info in infos if info.required)
        self._optional = tuple(info.encode_name for info in infos if not info.required)
        # Types may refer to the struct itself, so the readers of members are made when they are first needed.
        self._infos = infos
        self._members: list[tuple[str, str, Reader, FieldInfo]] | None = None

    def __call__(self, at: Cursor, default: Any) -> Any:
        present = default if at.reading.changing and isinstance(default, self._form) else None
        if not at.given and default is not NO_DEFAULT:
            return default
        if present is None and not at.reading.closed and not self._closed_here and _is_native(self._form):
            try:
                return convert(at.any(), self._form)
            except ValidationError:
                pass  # read again, member by member, to find every fault
        if self._members is None:
            self._members = [(info.name, info.encode_name, reader_of(info.type), info) for info in self._infos]
        required, optional = self._required, self._optional
        if present is not None:
            required, optional = (), (*required, *optional)
        members = at.object(
            required=required,
            optional=(*optional, *self._tag_field),
            unknown="refuse" if at.reading.closed or (self._closed and at.reading.ignore is None) else "keep",
        )
        if self._closed and at.reading.ignore is not None:
            for name in members.extra:
                at.reading.ignore(at, name)
        values: dict[str, Any] = {}
        first = faults = at.count_of_faults
        for name, member, read, info in self._members:
            default = _default(info) if present is None else getattr(present, name)
            if default is not NO_DEFAULT and member not in members:
                values[name] = default
                continue
            values[name] = read(members[member], default)
            if self._check is not None:
                before, faults = faults, at.count_of_faults
                if faults > before:
                    members.unsound.add(member)
        try:
            made = self._form(**values)
        except ValueError as error:  # out of a `__post_init__`, which stand-ins of faulty members may mislead
            if not at.count_of_faults > first:
                at.refuse(str(error))
            return None
        if self._check is not None and at.is_object:
            self._check(made, members)
        return made


@cache
def _is_native(form: Any) -> bool:
    """Whether msgspec accepts just the values that the reader of this type accepts, and makes the same of them.

    It reads valid values many times faster. It knows nothing of the other annotations, takes text for decimals, and
    lets a pattern match before a line feed. A struct that contains itself is not native.
    """
    marks: list[Any] = []
    if get_origin(form) is Annotated:
        form, *marks = get_args(form)
    if any(not isinstance(mark, Meta) or mark.pattern is not None or _has_limits(mark) for mark in marks):
        return False
    origin, parts = get_origin(form), get_args(form)
    if origin in (Union, UnionType):
        parts = tuple(part for part in parts if part not in (NoneType, UnsetType))
        return (len(parts) == 1 or all(map(_tag, parts))) and all(map(_is_native, parts))
    if origin is dict and parts[0] is not str:
        return False
    if origin in (tuple, list, dict, frozenset):
        return all(part is Ellipsis or _is_native(part) for part in parts)
    if origin is Literal or form in (str, int, bool, Any, object):
        return True
    if isinstance(form, type) and issubclass(form, StrEnum):
        return True
    if not (isinstance(form, type) and issubclass(form, Struct)) or hasattr(form, "check"):
        return False
    return form not in _structs_within(form) and all(_is_native(info.type) for info in fields(form))


def _has_limits(meta: Meta) -> bool:
    return bool(meta.extra) or not LIMITS.keys().isdisjoint(meta.extra_json_schema or {})


def _structs_within(form: Any, seen: frozenset[Any] = frozenset()) -> frozenset[Any]:
    """The structs in the members of a struct, at any depth."""
    for info in fields(form):
        for struct in _structs_in(info.type):
            if struct not in seen:
                seen = _structs_within(struct, seen | {struct})
    return seen


def _structs_in(form: Any) -> list[type[Struct]]:
    if isinstance(form, type) and get_origin(form) is None:
        return [form] if issubclass(form, Struct) else []
    return [struct for part in get_args(form) for struct in _structs_in(part)]


def _default(info: FieldInfo) -> Any:
    if info.default_factory is not NODEFAULT:
        return info.default_factory()
    return NO_DEFAULT if info.default is NODEFAULT else info.default


def _list(origin: Any, parts: tuple[Any, ...], meta: Mapping[str, Any], unique: Unique | None) -> Reader:
    least, most = meta.get("min_length", 0), meta.get("max_length")
    if origin is tuple and not (len(parts) == 2 and parts[1] is Ellipsis):
        return _row(parts)

    def read_list(at: Cursor, default: Any) -> Any:
        if not at.given and default is not NO_DEFAULT:
            return default
        elements = at.list_of(lambda element: element, min=least, max=most)
        read = reader_of(parts[0])
        values = [read(element, NO_DEFAULT) for element in elements]
        if unique is not None:
            _refuse_repeated(unique, elements)
        return values if origin is list else origin(values)

    return read_list


def _row(parts: tuple[Any, ...]) -> Reader:
    """The reader of a list with a fixed number of elements."""

    def read_row(at: Cursor, default: Any) -> Any:
        if not at.given and default is not NO_DEFAULT:
            return default
        elements = at.list_of(lambda element: element, min=len(parts), max=len(parts))
        if len(elements) != len(parts):
            elements = tuple(at.absent for _ in parts)
        return tuple(reader_of(part)(element, NO_DEFAULT) for part, element in zip(parts, elements, strict=True))

    return read_row


def note_unknown_members(at: Cursor, form: Any) -> None:
    """Note the unknown members of a value that shall have this form, at any depth, and no other fault."""
    try:
        convert(at.any(), form)
        return
    except ValidationError:
        outer = at.reading
    at.reading = Reading(Findings(outer.findings.most), outer.context)
    read_at(at, form)
    for finding in at.reading.findings.kept:
        if finding.code == "unknown_field":
            outer.findings.add(finding)
    at.reading = outer


def _refuse_repeated(unique: Unique, elements: Sequence[Cursor]) -> None:
    """Note every element that repeats an earlier one, at its own place."""
    first: dict[Any, int] = {}
    noun = f"the {unique.noun} " if unique.noun else ""
    for index, element in enumerate(elements):
        keys = [element.any()]
        if unique.members:
            if not element.is_object:
                continue
            given = element.object(optional=unique.members, unknown="keep")
            keys = [given[name].any() for name in unique.members]
        if not all(type(key) in (str, int) for key in keys):
            continue
        if first.setdefault(tuple(keys), index) != index:
            place = given[unique.members[0]] if len(unique.members) == 1 else element
            name = " ".join(map(str, keys))
            place.refuse(f"{noun}{name!r} appears twice, first at [{first[tuple(keys)]}]", code="not_unique")


def _map(key: Any, value: Any, *, merged: bool) -> Reader:
    check = None if key is str else (lambda at: reader_of(key)(at, NO_DEFAULT))

    def read_map(at: Cursor, default: Any) -> Any:
        members = at.map_of(lambda member: reader_of(value)(member, NO_DEFAULT), key=check, default=default)
        if merged and at.reading.changing and isinstance(default, Mapping):
            return {**default, **members}
        return members

    return read_map
