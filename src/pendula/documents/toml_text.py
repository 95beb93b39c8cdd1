"""TOML as a document with places; a fault has the line of its statement.

The interpreter's parser gives values without lines. Statements end with a line, so a text cut after a statement is
valid TOML: a member belongs to the first statement with which it appears.
"""

import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from io import StringIO
from pathlib import Path
from re import DOTALL, VERBOSE
from re import compile as regex
from typing import Any

from msgspec import UNSET

from pendula.documents import NOWHERE, Document, DocumentRefused, Fault, Place
from pendula.documents import Path as Steps
from pendula.documents.faults import DocumentUnreadable, Spot
from pendula.documents.tree import decimal_reader, integer_digits
from pendula.kernel.limits import DOCUMENT_BYTES, DOCUMENT_FAULTS, INTEGER_DIGITS, MIB

BYTES_MOST = MIB
_PROBLEM = regex(r"(?P<problem>.*) \(at (?:line (?P<line>[0-9]+), column (?P<column>[0-9]+)|end of document)\)")
# What begins or ends a value of several lines; strings and comments hide the rest.
_TOKEN = regex(
    r"""
    \"{3} (?: [^"\\]++ | \\. | "{1,2}(?!") )*+ "{3,5} | '{3} .*? '{3,5}
    | "(?: [^"\\\n]++ | \\. )*+" | '[^'\n]*+' | \#[^\n]*+ | [\[\]{}\n]
    """,
    DOTALL | VERBOSE,
)
_DIGITS = regex(r"[0-9](?:_?[0-9])*+")


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
    except tomllib.TOMLDecodeError as error:
        place, problem = _problem(str(error), text)
        raise _refusal_of("toml_syntax", place, problem, name) from None
    except RecursionError:
        line, content = _line_that_fails(text)
        place = Place(line, len(content) - len(content.lstrip()) + 1)
        raise _refusal_of("toml_syntax", place, "the values are nested too deeply", name) from None
    except ValueError:
        line, content = _line_that_fails(text)
        column = max((len(digits[0]), digits.start() + 1) for digits in _DIGITS.finditer(content))[1]
        allowed = (f"{integer_digits(INTEGER_DIGITS.default)} digits",)
        place = Place(line, column)
        raise _refusal_of(INTEGER_DIGITS.code, place, "the number is too long", name, allowed) from None
    return Document(value, _locator(text), name, DOCUMENT_FAULTS.default)


def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text, parse_float=decimal_reader(INTEGER_DIGITS.default))


def _line_that_fails(text: str) -> tuple[int, str]:
    """The first line that the parser cannot read for another reason than a fault of syntax, and its number."""
    lines = _lines(text)
    low, high = 0, len(lines)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _parsed("".join(lines[:middle]))
            low = middle
        except tomllib.TOMLDecodeError:
            low = middle  # the text ends inside a statement
        except (ValueError, RecursionError):
            high = middle
    return high, lines[high - 1]


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
    lines, ends = _lines(text), _statement_ends(text)

    @cache
    def beginning(statements: int) -> dict[str, Any]:
        return _parsed("".join(lines[: ends[statements]]))

    def place(spot: Spot) -> Place:
        steps = spot.path
        # An absent member has the place of its owner.
        while not _holds(beginning(len(ends) - 1), steps):
            steps = steps[:-1]
        if not steps:
            return Place(1, 1)
        # No statements, that is an empty text, come first in `ends`.
        low, high = 0, len(ends) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if _holds(beginning(middle), steps):
                high = middle
            else:
                low = middle
        first = lines[ends[high - 1]]
        return Place(ends[high - 1] + 1, len(first) - len(first.lstrip()) + 1)

    return lambda spots: [place(spot) for spot in spots]


def _lines(text: str) -> list[str]:
    return StringIO(text, newline="\n").readlines()


def _statement_ends(text: str) -> list[int]:
    """How many lines each beginning of a valid text has that does not end inside a statement; 0 is the first."""
    ends, line, depth = [0], 0, 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if depth == 0:
                line += 1
                ends.append(line)
            case inside:
                line += inside.count("\n")
    if text and not text.endswith("\n"):
        ends.append(line + 1)
    return ends


def _holds(value: Any, steps: Steps) -> bool:
    for step in steps:
        there = step in value if isinstance(value, dict) else isinstance(value, list) and step in range(len(value))
        if not there:
            return False
        value = value[step]
    return value is not None
