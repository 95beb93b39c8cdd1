"""Faults of a document, with path, place, value and what is allowed.

All faults of a document are collected and refused together. `render` is for a terminal; `DocumentRefused.details` is
the same for `--json` and HTTP. Lines and columns count from 1, columns in characters. Places are not stored while
reading: faults are found by path, a `Wanted` tree names the few paths that are needed, and a second reading notes their
offsets.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from re import compile as regex
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.limits import DOCUMENT_BYTES, DOCUMENT_DEPTH, DOCUMENT_FAULTS, DOCUMENT_NODES, INTEGER_DIGITS
from pendula.kernel.wording import LONGEST_SHOWN, cut, number_text

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]

_PLAIN_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LINE_END = regex(r"\r\n|\r|\n")


class Place(Struct, frozen=True, order=True):
    """A line and a column, both from 1; `NOWHERE` for values that do not come from text."""

    line: int
    column: int


NOWHERE = Place(0, 0)


class Spot(Struct, frozen=True):
    """The value at a path, or its member name with `at_key`."""

    path: Path
    at_key: bool = False


def path_text(path: Iterable[Step]) -> str:
    """The path as text: `$.actions[3].effort`, unusual names as `["odd name"]`."""
    return "$" + "".join(_step_text(step) for step in path)


def _step_text(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_NAME.match(step) else f"[{json.dumps(step)}]"


class Lines:
    """Converts offsets of one text to places; line starts are computed on first use."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] = []

    def place(self, offset: int) -> Place:
        if not self._starts:
            self._starts = [0, *(end.end() for end in _LINE_END.finditer(self._text))]
        # A parser may point past the end of the text.
        offset = min(offset, len(self._text))
        line = bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)


class Wanted:
    """The paths whose offsets a reading notes, as a tree that is walked along with the document."""

    __slots__ = ("children", "key_at", "value_at")

    def __init__(self) -> None:
        self.children: dict[Step, Wanted] = {}
        self.key_at: int | None = None
        self.value_at: int | None = None

    @classmethod
    def of(cls, spots: Iterable[Spot]) -> "Wanted":
        root = cls()
        for spot in spots:
            node = root
            for step in spot.path:
                node = node.children.setdefault(step, cls())
        return root

    def offset(self, spot: Spot) -> int:
        """Its offset; for a value without its own text (aliases) that of the nearest container."""
        node, found = self, self.value_at or 0
        for step in spot.path:
            node = node.children[step]
            if node.value_at is None:
                return found
            found = node.value_at
        return node.key_at if spot.at_key and node.key_at is not None else found


# Counting stops here: a hostile text can have millions of faults.
MOST_COUNTED = 10_000

CODES: dict[str, str] = {
    "document_unreadable": "The file cannot be opened or read",
    "unknown_format": "The name of the file does not say whether it is JSON or YAML",
    DOCUMENT_BYTES.code: DOCUMENT_BYTES.sentence,
    DOCUMENT_DEPTH.code: DOCUMENT_DEPTH.sentence,
    DOCUMENT_NODES.code: DOCUMENT_NODES.sentence,
    INTEGER_DIGITS.code: INTEGER_DIGITS.sentence,
    "invalid_utf8": "The bytes are not UTF-8 text",
    "byte_order_mark": "The text begins with a byte order mark",
    "control_character": "A character that must be escaped",
    "lone_surrogate": "An escape is half of a surrogate pair",
    "json_syntax": "The text is not JSON",
    "yaml_syntax": "The text is not YAML",
    "toml_syntax": "The text is not TOML",
    "repeated_member": "An object has two members with the same name",
    "not_finite": "A number is not finite",
    "explicit_tag": "A YAML tag; types are never named in documents",
    "merge_key": "A YAML merge key",
    "key_not_text": "The name of a YAML member is not plain text",
    "unknown_alias": "A YAML alias without anchor",
    "recursive_alias": "A YAML alias inside the value it refers to",
    "yaml_directive": "A YAML directive",
    "several_documents": "More than one YAML document in a file",
    "missing_field": "A required member is missing",
    "unknown_field": "A member that is not known here",
    "invalid_field": "A value of the wrong type, size or form",
    "invalid_enum": "A word that is not among the allowed ones",
    "not_unique": "A value that must be unique appears twice",
}


class Fault(Struct, frozen=True):
    """One fault; line and column are 0 if the document is not text, `value` is unset if there is none."""

    code: str
    path: str
    line: int
    column: int
    value: Json | UnsetType
    message: str
    allowed: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Json]:
        form: dict[str, Json] = {"code": self.code, "path": self.path, "line": self.line, "column": self.column}
        if self.value is not UNSET:
            form["value"] = self.value
        return {**form, "message": self.message, "allowed": list(self.allowed)}

    def text(self, source_name: str) -> str:
        """One line: `town.yaml:12:9: $.defs.repair.effort: 'hihg' is not an effort; allowed: low, medium, high`."""
        place = f"{source_name}:{self.line}:{self.column}" if self.line else source_name
        allowed = f"; allowed: {', '.join(self.allowed)}" if self.allowed else ""
        return f"{place}: {self.path}: {self.message}{allowed}"


class DocumentRefused(InputRefused):
    """A document with faults: `faults` in the order of their places, and the number of `more` unlisted ones."""

    code = "document_refused"

    def __init__(self, faults: Iterable[Fault], source_name: str, more: int = 0) -> None:
        self.faults: tuple[Fault, ...] = tuple(sorted(faults, key=_by_place))
        self.source_name = source_name
        self.more = more
        super().__init__(
            self._sentence(),
            source=source_name,
            faults=[fault.as_json() for fault in self.faults],
            more=more,
        )

    def __reduce__(self) -> tuple[type["DocumentRefused"], tuple[tuple[Fault, ...], str, int]]:
        return type(self), (self.faults, self.source_name, self.more)

    def _sentence(self) -> str:
        others = len(self.faults) - 1 + self.more
        rest = f" (and {_more(others)})" if others else ""
        return self.faults[0].text(self.source_name) + rest

    def render(self) -> str:
        """Every listed fault on its line."""
        return render(self.faults, self.source_name, self.more)


class DocumentUnreadable(DocumentRefused):
    """The file of a document is missing or cannot be read."""

    exit_code = 3


class FaultList:
    """Collects the faults of one text; keeps the first ones and counts the rest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.kept: list[Fault] = []
        self.more = 0

    def __bool__(self) -> bool:
        return bool(self.kept) or self.more > 0

    @property
    def full(self) -> bool:
        """Whether further faults are only counted; describing millions of faults of a hostile text takes time."""
        return len(self.kept) >= self._most

    def add(
        self,
        code: str,
        path: Path,
        place: Place,
        message: str,
        value: Json | UnsetType = UNSET,
        allowed: Sequence[str] = (),
    ) -> None:
        if self.full:
            self.more += 1
            return
        self.kept.append(
            Fault(
                code=code,
                path=path_text(path),
                line=place.line,
                column=place.column,
                value=presentable(value),
                message=message,
                allowed=tuple(allowed),
            )
        )


def render(faults: Sequence[Fault], source_name: str, more: int = 0) -> str:
    """One line per fault, at most `DOCUMENT_FAULTS`, then a line with the number of further ones."""
    most = DOCUMENT_FAULTS.default
    lines = [fault.text(source_name) for fault in faults[:most]]
    left = more + max(0, len(faults) - most)
    if left:
        lines.append(f"{source_name}: and {_more(left)}")
    return "\n".join(lines)


def _more(faults: int) -> str:
    if faults == 1:
        return "1 more fault"
    return f"{faults} more faults" if faults < MOST_COUNTED else f"at least {MOST_COUNTED} more faults"


def _by_place(fault: Fault) -> tuple[int, int, str, str, str]:
    return fault.line, fault.column, fault.path, fault.code, fault.message


def presentable(value: Any) -> Any:
    """The value as shown in a fault: scalars, cut if long; unset for other values."""
    match value:
        case None | bool():
            return value
        case str():
            return cut(value)
        case int() | Decimal():
            return cut(number_text(value)) if _too_long(value) else value
        case _:
            return UNSET


def _too_long(value: int | Decimal) -> bool:
    return value.bit_length() > 256 if isinstance(value, int) else len(value.as_tuple().digits) > LONGEST_SHOWN


Locate: TypeAlias = Callable[[Sequence[Spot]], list[Place]]


class Finding(Struct, frozen=True):
    """A fault without its line and column."""

    spot: Spot
    code: str
    message: str
    value: Json | UnsetType = UNSET
    allowed: tuple[str, ...] = ()

    def at(self, place: Place) -> Fault:
        return Fault(
            code=self.code,
            path=path_text(self.spot.path),
            line=place.line,
            column=place.column,
            value=presentable(self.value),
            message=self.message,
            allowed=self.allowed,
        )


class Findings:
    """The findings of one reading; keeps the first `most` and counts the rest."""

    __slots__ = ("kept", "more", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: list[Finding] = []
        self.more = 0

    def __len__(self) -> int:
        return len(self.kept) + self.more

    def add(self, finding: Finding) -> None:
        if self.full:
            self.more += 1
        else:
            self.kept.append(finding)

    @property
    def full(self) -> bool:
        return len(self.kept) >= self.most


def refusal(found: Findings, locate: Locate, source_name: str) -> DocumentRefused:
    """The findings with their places; the text is read once for all of them."""
    places = locate([finding.spot for finding in found.kept])
    faults = [finding.at(place) for finding, place in zip(found.kept, places, strict=True)]
    return DocumentRefused(faults, source_name, found.more)
