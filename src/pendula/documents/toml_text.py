"""TOML as a document with places; a fault has the line of its statement.

The interpreter's parser gives values without lines. Statements end with a line, so a text cut after a statement is
valid TOML: a member belongs to the first statement with which it appears.
"""

import tomllib
from collections.abc import Callable, Sequence
from decimal import Decimal
from io import StringIO
from pathlib import Path
from re import compile as regex
from typing import Any

from msgspec import UNSET

from pendula.documents import NOWHERE, Document, DocumentRefused, Fault, Place
from pendula.documents import Path as Steps
from pendula.documents.faults import DocumentUnreadable, Spot
from pendula.kernel.limits import DOCUMENT_BYTES, DOCUMENT_FAULTS, MIB

BYTES_MOST = MIB
_PROBLEM = regex(r"(?P<problem>.*) \(at (?:line (?P<line>[0-9]+), column (?P<column>[0-9]+)|end of document)\)")


def read_toml(path: Path) -> Document:
    """The document in a TOML file; raises `DocumentRefused` if it is invalid."""
    name = str(path)
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MOST + 1)
    except OSError as error:
        refused = _refusal_of("document_unreadable", NOWHERE, f"the file cannot be read: {error.strerror}", name)
        raise DocumentUnreadable(refused.faults, name) from error
    if len(data) > BYTES_MOST:
        raise _refusal_of(DOCUMENT_BYTES.code, NOWHERE, "the document is too large", name, (f"{BYTES_MOST} bytes",))
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{data[error.start]:02x} is not valid UTF-8"
        raise _refusal_of("invalid_utf8", Place(line, 1), byte, name) from None
    try:
        value = _parsed(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place, problem = _problem(str(error), text)
        raise _refusal_of("toml_syntax", place, problem, name) from None
    return Document(value, _locator(text), name, DOCUMENT_FAULTS.default)


def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text, parse_float=Decimal)


def _problem(message: str, text: str) -> tuple[Place, str]:
    match = _PROBLEM.fullmatch(message)
    if match is None:
        return NOWHERE, message
    if match["line"] is None:
        lines = text.rstrip("\n").split("\n")
        return Place(len(lines), len(lines[-1]) + 1), match["problem"]
    return Place(int(match["line"]), int(match["column"])), match["problem"]


def _refusal_of(code: str, place: Place, message: str, name: str, allowed: tuple[str, ...] = ()) -> DocumentRefused:
    fault = Fault(
        code=code, path="$", line=place.line, column=place.column, value=UNSET, message=message, allowed=allowed
    )
    return DocumentRefused([fault], name)


def _locator(text: str) -> Callable[[Sequence[Spot]], list[Place]]:
    lines = StringIO(text, newline="\n").readlines()
    parsed: dict[int, dict[str, Any] | None] = {}

    def beginning(count: int) -> dict[str, Any] | None:
        """The first lines as TOML; None if they end inside a statement."""
        if count not in parsed:
            try:
                parsed[count] = _parsed("".join(lines[:count]))
            except tomllib.TOMLDecodeError:
                parsed[count] = None
        return parsed[count]

    def statement_end(count: int) -> int:
        while count < len(lines) and beginning(count) is None:
            count += 1
        return count

    def place(spot: Spot) -> Place:
        steps = spot.path
        # An absent member has the place of its owner.
        while not _holds(beginning(len(lines)), steps):
            steps = steps[:-1]
        if not steps:
            return Place(1, 1)
        low, high = 0, len(lines)
        while high - low > 1:
            middle = (low + high) // 2
            if _holds(beginning(statement_end(middle)), steps):
                high = middle
            else:
                low = middle
        # The search ends at the first line of the statement; all its lines share the same end.
        first = lines[high - 1]
        return Place(high, len(first) - len(first.lstrip()) + 1)

    return lambda spots: [place(spot) for spot in spots]


def _holds(value: Any, steps: Steps) -> bool:
    for step in steps:
        there = step in value if isinstance(value, dict) else isinstance(value, list) and step in range(len(value))
        if not there:
            return False
        value = value[step]
    return value is not None
