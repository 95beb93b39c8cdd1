"""Canonical JSON: one byte sequence per value; digests and digest chains.

Equal values give equal bytes on every machine: members sorted by code point, no spaces, UTF-8, escapes only where JSON
demands them, numbers plain (no exponent, no trailing zeros, no minus before zero). Anything else is refused with its
path: floats, NaN, keys that are not strings, lone surrogates, sets, bytes, unknown types.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from itertools import chain as chained
from json.encoder import encode_basestring
from math import isfinite
from re import compile as regex
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import astuple

from pendula.kernel.errors import NotCanonical
from pendula.kernel.limits import INTEGER_DIGITS

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | str | Decimal | Sequence["Json"] | Mapping[str, "Json"] | None
else:
    # msgspec takes no recursive alias as the type of a field, and no union of str and Decimal.
    Json = Any

T = TypeVar("T")

# The location of a value: its parent's place and the key or index in it. Rendered only for errors.
Place: TypeAlias = tuple[Any, str | int] | None

# The fast encoder itself refuses an unset value anywhere but in a struct.
# StrEnum types are added on first use.
_PLAIN: set[type] = {NoneType, bool, int, str, UnsetType}
# Lists longer than this are first tested for being all scalars, as in columns of numbers.
_MANY = 64
# Tuples of at least this length are first tested for being structs of scalars, as in tables.
_ROWS = 4
_PLAIN_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_encode_fast = msgspec.json.Encoder(order="sorted", decimal_format="number").encode
_decode_fast = msgspec.json.Decoder(float_hook=Decimal).decode


def encode(value: object) -> bytes:
    """The canonical bytes of `value`; raises `NotCanonical` with the path of the offending value.

    Accepted are None, bool, int, str, finite Decimal, list, tuple, dict with string keys, and as their builtin form
    StrEnum members and msgspec structs (with tags, renamed and unset fields, without `omit_defaults`).
    """
    try:
        if _is_plain(value):
            return _encode_fast(value)
    except (TypeError, ValueError, RecursionError):
        # Odd keys, surrogates, huge integers, cycles: `encode_carefully` encodes them or names their path.
        pass
    return encode_carefully(value)


def encode_carefully(value: object) -> bytes:
    """The same bytes as `encode`, slower, with the path of any value that is refused."""
    parts: list[str] = []
    try:
        _write(value, None, parts)
    except RecursionError:
        raise NotCanonical("The value is nested too deeply or contains itself", path="$") from None
    return "".join(parts).encode()


def decode(data: bytes) -> Json:
    """The value of canonical bytes, exactly: integers of any size, every other number as Decimal."""
    try:
        value: Json = _decode_fast(data)
    except (ValueError, RecursionError) as error:
        # Integers beyond the interpreter's digit limit are decoded here; anything else is refused.
        return _decode_carefully(data, str(error))
    return value


class Reader(Generic[T]):
    """Decodes canonical bytes into a type, exactly, including integers too long for msgspec."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind, float_hook=Decimal).decode

    def __call__(self, data: bytes | msgspec.Raw) -> T:
        """Raises `msgspec.DecodeError` for bytes of another type."""
        try:
            return self._decode(data)  # type: ignore[no-any-return]
        except (ValueError, OverflowError) as trouble:
            # A DecodeError is a ValueError too; an integer that is too long raises either.
            try:
                return msgspec.convert(decode(bytes(data)), self._kind)  # type: ignore[no-any-return]
            except (NotCanonical, msgspec.ValidationError):
                if isinstance(trouble, msgspec.DecodeError):
                    raise trouble from None
                raise msgspec.DecodeError(str(trouble)) from None


def digest(value: object) -> str:
    """The sha256 of the canonical bytes, in hexadecimal."""
    return sha256(encode(value)).hexdigest()


def digest_bytes(data: bytes) -> str:
    """The sha256 of canonical bytes, in hexadecimal."""
    return sha256(data).hexdigest()


def chain(previous: bytes, body: bytes) -> bytes:
    """The next link of a digest chain: it covers `body` and everything before it."""
    return sha256(previous + body).digest()


def first_difference(a: Json, b: Json) -> str | None:
    """The path of the first difference in canonical order, such as `$.events[2].t`; None if the values are equal."""
    left, right = encode(a), encode(b)
    if left == right:
        return None
    return _path(_first_difference(decode(left), decode(right), None))


def _is_plain(value: Any) -> bool:
    """Whether the fast encoder either writes the canonical bytes of `value` or fails."""
    kind = type(value)
    members: Collection[object]
    if kind is dict:
        members = value.values()
    elif kind is list or kind is tuple:
        members = value
    elif isinstance(value, Struct):
        if value.__struct_config__.omit_defaults:
            return False
        members = astuple(value)
    elif kind is Decimal:
        text = str(value)
        return text[-1] in "123456789" and "E" not in text and "N" not in text
    else:
        return kind in _PLAIN or _is_choice(kind)
    if len(members) > _MANY and _PLAIN.issuperset(map(type, members)):
        return True
    if kind is tuple and len(members) >= _ROWS and isinstance(value[0], Struct) and _is_table(value):
        return True
    for member in members:
        if type(member) in _PLAIN or _is_plain(member):
            continue
        return False
    return True


def _is_table(rows: tuple[Any, ...]) -> bool:
    """Whether all rows are structs of one type with only scalars. Testing them together takes half as long as one by
    one, and truck reports are encoded in every tick."""
    if len(set(map(type, rows))) > 1 or rows[0].__struct_config__.omit_defaults:
        return False
    return _PLAIN.issuperset(map(type, chained.from_iterable(map(astuple, rows))))


def _is_choice(kind: type) -> bool:
    """Whether a type is a StrEnum; such types are added to `_PLAIN`."""
    if not issubclass(kind, StrEnum):
        return False
    _PLAIN.add(kind)
    return True


def _write(value: Any, place: Place, parts: list[str]) -> None:
    kind = type(value)
    if kind is str:
        parts.append(_string(value, place))
    elif kind is int:
        parts.append(_integer_text(value))
    elif kind is Decimal:
        parts.append(_decimal_text(value, place))
    elif isinstance(value, dict):
        _write_dict(value, place, parts)
    elif isinstance(value, list | tuple):
        _write_list(value, place, parts)
    elif isinstance(value, Struct):
        _write_struct(value, place, parts)
    elif kind is bool:
        parts.append("true" if value else "false")
    elif value is None:
        parts.append("null")
    elif isinstance(value, StrEnum):
        parts.append(_string(value.value, place))
    elif isinstance(value, float) and not isfinite(value):
        raise _refusal(f"{value!r} is not a finite number", place)
    elif isinstance(value, float):
        raise _refusal(f"{value!r} is a binary float, which is not exact: write Decimal({str(value)!r})", place)
    else:
        raise _refusal(f"A value of type {kind.__name__} cannot be written as JSON", place)


def _write_list(values: Iterable[object], place: Place, parts: list[str]) -> None:
    before = "["
    for index, value in enumerate(values):
        parts.append(before)
        _write(value, (place, index), parts)
        before = ","
    parts.append("[]" if before == "[" else "]")


def _write_dict(members: dict[Any, object], place: Place, parts: list[str]) -> None:
    for key in members:
        if not isinstance(key, str):
            raise _refusal(f"The key {key!r} is not a string", place)
    before = "{"
    for key in sorted(members, key=str.__str__):
        parts.append(before)
        parts.append(_string(str.__str__(key), (place, key)))
        parts.append(":")
        _write(members[key], (place, key), parts)
        before = ","
    parts.append("{}" if before == "{" else "}")


def _write_struct(value: Struct, place: Place, parts: list[str]) -> None:
    config = value.__struct_config__
    if config.omit_defaults:
        # msgspec omits a member that is identical (`is`) to the default: equal structs would get unequal bytes.
        raise _refusal(f"{type(value).__name__} has omit_defaults, which depends on object identity", place)
    if config.array_like:
        _write_list(astuple(value) if config.tag is None else (config.tag, *astuple(value)), place, parts)
        return
    members = dict(zip(value.__struct_encode_fields__, astuple(value), strict=True))
    if config.tag is not None:
        members[str(config.tag_field)] = config.tag
    _write_dict({name: member for name, member in members.items() if member is not UNSET}, place, parts)


def _string(text: str, place: Place) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            lone = f"U+{ord(text[error.start]):04X}"
            raise _refusal(f"The string has the lone surrogate {lone} at position {error.start}", place) from None
    return encode_basestring(text)


def _integer_text(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        # The interpreter does not print integers of more than 4300 digits; Decimal does, exactly.
        return format(Decimal(value), "f")


def _decode_carefully(data: bytes, reason: str) -> Json:
    try:
        value: Json = json.loads(data, parse_int=lambda digits: int(Decimal(digits)), parse_float=Decimal)
        if encode(value) == data:
            return value
    except (ValueError, RecursionError, NotCanonical):
        pass
    raise NotCanonical(f"The bytes are not canonical JSON: {reason}", path="$")


def _decimal_text(value: Decimal, place: Place) -> str:
    if not value.is_finite():
        raise _refusal(f"Decimal {value} is not a finite number", place)
    if not value:
        return "0"
    longest = INTEGER_DIGITS.default
    if not -longest <= value.as_tuple().exponent <= longest:  # type: ignore[operator]
        raise _refusal(f"Decimal {value} has more than {longest} digits without an exponent", place)
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _first_difference(a: Any, b: Any, place: Place) -> Place:
    """The place of the first difference between two decoded values that differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            if key not in a or key not in b:
                return (place, key)
            if encode(a[key]) != encode(b[key]):
                return _first_difference(a[key], b[key], (place, key))
    elif isinstance(a, list) and isinstance(b, list):
        for index, (left, right) in enumerate(zip(a, b, strict=False)):
            if encode(left) != encode(right):
                return _first_difference(left, right, (place, index))
        return (place, min(len(a), len(b)))
    return place


def _refusal(message: str, place: Place) -> NotCanonical:
    path = _path(place)
    return NotCanonical(f"{message}, at {path}", path=path)


def _path(place: Place) -> str:
    steps: list[str] = []
    while place is not None:
        place, step = place
        if isinstance(step, int):
            steps.append(f"[{step}]")
        elif _PLAIN_NAME.match(step):
            steps.append(f".{step}")
        else:
            steps.append(f"[{json.dumps(step)}]")
    return "$" + "".join(reversed(steps))
