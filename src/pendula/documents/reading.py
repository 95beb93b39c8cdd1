"""Reads bytes, files or plain values into a `Document`; all faults are reported in one refusal."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from math import isfinite
from pathlib import Path as FilePath
from typing import Any, TypeVar, assert_never

from pendula.documents import json_text
from pendula.documents.cursor import Cursor, Reading
from pendula.documents.faults import (
    NOWHERE,
    DocumentRefused,
    DocumentUnreadable,
    FaultList,
    Findings,
    Lines,
    Path,
    Place,
    Spot,
    Wanted,
    refusal,
)
from pendula.documents.json_text import NotClean, read_clean
from pendula.documents.tree import DocumentLimits, Tree
from pendula.kernel.canonical import Json
from pendula.kernel.limits import DOCUMENT_BYTES

T = TypeVar("T")

DEFAULT_LIMITS = DocumentLimits()
BYTE_ORDER_MARK = "\ufeff"


class Format(StrEnum):
    """The format of a document."""

    JSON = "json"
    JSON5 = "json5"
    YAML = "yaml"


SUFFIXES = {".json": Format.JSON, ".json5": Format.JSON5, ".yaml": Format.YAML, ".yml": Format.YAML}
CONTENT_TYPES = {
    "application/json": Format.JSON,
    "application/json5": Format.JSON5,
    "application/yaml": Format.YAML,
}


class Document:
    """A value with valid syntax, and the faults found while reading it.

    `value` is plain: dict, list, str, bool, None, int, Decimal. YAML aliases share one object; do not modify it.
    """

    def __init__(
        self, value: Json, locate: Callable[[Sequence[Spot]], list[Place]], source_name: str, most_faults: int
    ) -> None:
        self.value = value
        self.source_name = source_name
        self._locate = locate
        self._most_faults = most_faults

    @cached_property
    def _reading(self) -> Reading:
        return Reading(Findings(self._most_faults))

    def root(self) -> Cursor:
        """The cursor at the root; its faults are collected in this document."""
        return Cursor(self._reading, self.value)

    def place(self, path: Path, *, at_key: bool = False) -> Place:
        """Line and column of the value at `path`, or of its member name; each call reads the text again.

        A value without its own text (inside an alias, or absent) has the place of its container.
        """
        return self._locate([Spot(path, at_key)])[0]

    def places(self, paths: Sequence[Path]) -> list[Place]:
        """The places of several values, in order; reads the text again once."""
        return self._locate([Spot(path, False) for path in paths])

    def done(self) -> None:
        """Raise `DocumentRefused` if any faults were noted."""
        if self._reading.findings:
            raise refusal(self._reading.findings, self._locate, self.source_name)

    def read(self, read: Callable[[Cursor], T]) -> T:
        """The result of `read` for the root; raises `DocumentRefused` if it noted faults."""
        model = read(self.root())
        self.done()
        return model


def read_bytes(
    data: bytes, form: Format = Format.JSON, source_name: str = "body", limits: DocumentLimits = DEFAULT_LIMITS
) -> Document:
    """The document in `data`; raises `DocumentRefused` with every syntax fault."""
    if len(data) > limits.size:
        allowed = (f"{limits.size} bytes",)
        raise _refusal_of(DOCUMENT_BYTES.code, source_name, "the document is too large", allowed)
    if form is not Format.YAML:
        # Most texts have no fault, and need none of what finds them.
        with suppress(NotClean, UnicodeDecodeError):
            value = read_clean(data.decode(), limits)
            return Document(value, _locator(data, form, limits), source_name, limits.faults)
    faults = FaultList(limits.faults)
    text = _text(data, faults)
    value = scan(text, form, Tree(limits, faults, Lines(text)))
    if faults:
        raise DocumentRefused(faults.kept, source_name, faults.more)
    return Document(value, _locator(data, form, limits), source_name, limits.faults)


def read_file(path: FilePath | str, form: Format | None = None, limits: DocumentLimits = DEFAULT_LIMITS) -> Document:
    """The document in a file; the suffix (.json, .json5, .yaml, .yml) gives the format unless `form` does."""
    path = FilePath(path)
    form = form or SUFFIXES.get(path.suffix.lower())
    if form is None:
        message = f"the suffix {path.suffix!r} is not that of a document format"
        raise _refusal_of("unknown_format", str(path), message, tuple(SUFFIXES))
    try:
        with path.open("rb") as file:
            # Reading one byte more than allowed detects an oversized document, even from pipes and devices.
            data = file.read(limits.size + 1)
    except (OSError, ValueError) as error:
        raise refused_file(path, error) from error
    return read_bytes(data, form, str(path), limits)


def refused_file(path: FilePath, error: Exception) -> DocumentUnreadable:
    """The error for a file that cannot be opened or read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    refused = _refusal_of("document_unreadable", str(path), f"the file cannot be read: {reason}")
    return DocumentUnreadable(refused.faults, refused.source_name)


def from_value(value: Json, source_name: str = "value", limits: DocumentLimits = DEFAULT_LIMITS) -> Document:
    """A document of plain values, checked by the same code as files; it has no places.

    A float counts as the decimal that Python prints for it: 0.1 is 0.1, as in a file.
    """
    return Document(
        _exact(value) if _has_floats(value) else value, lambda spots: [NOWHERE] * len(spots), source_name, limits.faults
    )


def _has_floats(value: object) -> bool:
    match value:
        case dict():
            return any(map(_has_floats, value.values()))
        case list() | tuple():
            return any(map(_has_floats, value))
        case _:
            return isinstance(value, float)


def _exact(value: Any) -> Json:
    """A copy with decimals for floats; floats that are not finite stay and are refused later."""
    match value:
        case dict():
            return {name: _exact(member) for name, member in value.items()}
        case list() | tuple():
            return [_exact(member) for member in value]
        case float() if isfinite(value):
            return Decimal(float.__repr__(value))
        case _:
            found: Json = value
            return found


def _refusal_of(code: str, source_name: str, message: str, allowed: tuple[str, ...] = ()) -> DocumentRefused:
    faults = FaultList(1)
    faults.add(code, (), NOWHERE, message, allowed=allowed)
    return DocumentRefused(faults.kept, source_name)


def _text(data: bytes, faults: FaultList) -> str:
    """The text without byte order mark; invalid UTF-8 is a fault and read as U+FFFD, to find further faults."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode().removeprefix(BYTE_ORDER_MARK)
        byte = data[error.start]
        faults.add("invalid_utf8", (), Lines(before).place(len(before)), f"byte 0x{byte:02x} is not valid UTF-8")
        text = data.decode(errors="replace")
    if text.startswith(BYTE_ORDER_MARK):
        faults.add("byte_order_mark", (), Place(1, 1), "the text begins with a byte order mark; leave it out")
        text = text.removeprefix(BYTE_ORDER_MARK)
    return text


def scan(text: str, form: Format, tree: Tree) -> Json:
    """Read `text` with places; its faults are in `tree.faults`."""
    match form:
        case Format.JSON:
            json_text.scan(text, tree)
        case Format.JSON5:
            json_text.scan5(text, tree)
        case Format.YAML:
            # PyYAML is slow to import, and most programs never read YAML.
            from pendula.documents import yaml_text

            yaml_text.scan(text, tree)
        case _:
            assert_never(form)
    return tree.root


def _locator(data: bytes, form: Format, limits: DocumentLimits) -> Callable[[Sequence[Spot]], list[Place]]:
    def locate(spots: Sequence[Spot]) -> list[Place]:
        if not spots:
            return []
        text = data.decode()
        lines, wanted = Lines(text), Wanted.of(spots)
        try:
            if form is Format.JSON:
                json_text.locate(text, wanted)
        except RecursionError:
            # The limits may allow more levels than the interpreter's stack; the scanner does not recurse.
            wanted.value_at = None
        if wanted.value_at is None:
            scan(text, form, Tree(limits, FaultList(0), lines, wanted))
        return [lines.place(wanted.offset(spot)) for spot in spots]

    return locate
