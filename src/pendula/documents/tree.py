"""Builds plain values from scanner events, and checks depth, number of values and repeated members.

The scanners of JSON and YAML use this builder, so that the same document has the same limits, faults and places in both
formats. Numbers are exact: `int`, or `Decimal` for a point or an exponent; never float. A number is too long when its
plain form, without exponent, has more digits than allowed: `1e999999999` is ten characters of text and a gigabyte of
digits.
"""

import sys
from collections.abc import Callable
from decimal import Decimal
from re import compile as regex
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from pendula.documents.faults import MOST_COUNTED, FaultList, Lines, Path, Wanted
from pendula.kernel.canonical import Json
from pendula.kernel.limits import (
    DOCUMENT_BYTES,
    DOCUMENT_DEPTH,
    DOCUMENT_FAULTS,
    DOCUMENT_NODES,
    INTEGER_DIGITS,
    Limit,
)


class DocumentLimits(Struct, frozen=True):
    """Limits of one document; the defaults are the named limits of the kernel."""

    size: int = DOCUMENT_BYTES.default
    depth: int = DOCUMENT_DEPTH.default
    nodes: int = DOCUMENT_NODES.default
    faults: int = DOCUMENT_FAULTS.default
    digits: int = INTEGER_DIGITS.default


class ScanAborted(Exception):
    """Scanning cannot continue after the fault just noted."""


class Branch:
    """An open container."""

    __slots__ = ("container", "height", "key", "key_at", "length_before", "names", "nodes_before", "wanted")

    def __init__(
        self, container: dict[str, Any] | list[Any], nodes_before: int, length_before: int, wanted: Wanted | None
    ) -> None:
        self.container = container
        self.nodes_before = nodes_before
        self.length_before = length_before
        self.wanted = wanted
        self.height = 1
        # The name of the next member; None drops its value, because the name is invalid.
        self.key: str | None = None
        self.key_at = 0
        self.names: dict[str, int] = {}


class Tree:
    """The document read so far. `key`, `leaf`, `open` and `close` follow the text; offsets count characters."""

    def __init__(self, limits: DocumentLimits, faults: FaultList, lines: Lines, wanted: Wanted | None = None) -> None:
        self.limits = limits
        self.faults = faults
        self.lines = lines
        self.root: Json = None
        self.nodes = 0
        # Bytes of scalars and names, counted at each use of an alias; a format without aliases leaves it at 0.
        self.length = 0
        self.stack: list[Branch] = []
        self._wanted = wanted

    def path(self) -> Path:
        """The path of the current or next value."""
        steps: list[str | int] = []
        for branch in self.stack:
            if isinstance(branch.container, list):
                steps.append(len(branch.container))
            elif branch.key is not None:
                steps.append(branch.key)
        return tuple(steps)

    def container_path(self) -> Path:
        """The path of the innermost open container."""
        path = self.path()
        inner = self.stack[-1] if self.stack else None
        return path[:-1] if inner and (isinstance(inner.container, list) or inner.key is not None) else path

    def fault(
        self,
        code: str,
        offset: int,
        message: str,
        value: Json | UnsetType = UNSET,
        allowed: tuple[str, ...] = (),
        path: Path | None = None,
    ) -> None:
        if self.faults.full:
            self.count_fault()
            return
        where = self.path() if path is None else path
        self.faults.add(code, where, self.lines.place(offset), message, value, allowed)

    def count_fault(self) -> None:
        """Count a fault that is not listed; abort the scan after too many."""
        self.faults.more += 1
        if self.faults.more >= MOST_COUNTED:
            raise ScanAborted

    def key(self, name: str | None, offset: int) -> None:
        """Set the name of the next member; a repeated name is a fault and its value is dropped."""
        branch = self.stack[-1]
        branch.key, branch.key_at = name, offset
        if name is None:
            return
        first = branch.names.setdefault(name, offset)
        if first != offset:
            before = self.lines.place(first)
            message = f"the member appears a second time; the first is at {before.line}:{before.column}"
            self.fault("repeated_member", offset, message, name)

    def leaf(self, value: Json, offset: int, *, nodes: int = 1, height: int = 0) -> None:
        """Add a complete value: a scalar, or the value of an alias."""
        self._count(nodes, offset)
        if len(self.stack) + height > self.limits.depth:
            self._passed(DOCUMENT_DEPTH, self.limits.depth, offset)
        if self._wanted is not None:
            self._note(offset)
        self._attach(value)
        if self.stack and height >= self.stack[-1].height:
            self.stack[-1].height = height + 1

    def open(self, container: dict[str, Any] | list[Any], offset: int) -> None:
        self._count(1, offset)
        if len(self.stack) >= self.limits.depth:
            self._passed(DOCUMENT_DEPTH, self.limits.depth, offset)
        wanted = self._note(offset) if self._wanted is not None else None
        self.stack.append(Branch(container, self.nodes - 1, self.length, wanted))

    def close(self) -> Branch:
        branch = self.stack.pop()
        self._attach(branch.container)
        if self.stack and branch.height >= self.stack[-1].height:
            self.stack[-1].height = branch.height + 1
        return branch

    def _attach(self, value: Json) -> None:
        if not self.stack:
            self.root = value
            return
        branch = self.stack[-1]
        if isinstance(branch.container, list):
            branch.container.append(value)
        elif branch.key is not None:
            branch.container.setdefault(branch.key, value)
            branch.key = None

    def _note(self, offset: int) -> Wanted | None:
        """Note the offset of the next value if it is wanted."""
        if not self.stack:
            assert self._wanted is not None
            self._wanted.value_at = offset
            return self._wanted
        branch = self.stack[-1]
        if branch.wanted is None:
            return None
        in_list = isinstance(branch.container, list)
        step = len(branch.container) if in_list else branch.key
        spot = branch.wanted.children.get(step) if step is not None else None
        if spot is not None:
            spot.value_at = offset
            spot.key_at = None if in_list else branch.key_at
        return spot

    def _count(self, nodes: int, offset: int) -> None:
        self.nodes += nodes
        if self.nodes > self.limits.nodes:
            self._passed(DOCUMENT_NODES, self.limits.nodes, offset)
        if self.length > self.limits.size:
            self._passed(DOCUMENT_BYTES, self.limits.size, offset, " when its aliases are written out")

    def _passed(self, limit: Limit, most: int, offset: int, how: str = "") -> None:
        self.fault(limit.code, offset, limit.sentence.lower() + how, allowed=(limit.counted(most),))
        raise ScanAborted


NUMBER = regex(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z")

# Exponents with more digits exceed every limit; Decimal itself fails at 18.
_EXPONENT_DIGITS = 9


class NumberTooLong(ValueError):
    """The plain form of the number has more digits than allowed."""


def integer_digits(most: int) -> int:
    """The effective limit: the interpreter has a limit for integers, too."""
    own = sys.get_int_max_str_digits()
    return min(most, own) if own else most


def number(text: str, most: int) -> int | Decimal | None:
    """The value of the text, None if it is not a JSON number; raises `NumberTooLong`."""
    shape = NUMBER.match(text)
    if shape is None:
        return None
    if shape[1] is None and shape[2] is None:
        return _integer(text, most)
    return decimal_reader(most)(text)


def _integer(text: str, most: int) -> int:
    if len(text) - text.startswith("-") > integer_digits(most):
        raise NumberTooLong(text)
    return int(text)


def decimal_reader(most: int) -> Callable[[str], Decimal]:
    """A function that converts texts known to be JSON numbers; created once per document for speed."""

    def read(text: str) -> Decimal:
        # The common case: a plain number has at most as many digits as characters.
        if len(text) <= most and "e" not in text and "E" not in text:
            return Decimal(text)
        return _checked(text, most)

    return read


def _checked(text: str, most: int) -> Decimal:
    exponent = text.lower().partition("e")[2].lstrip("+-").lstrip("0")
    if len(exponent) > _EXPONENT_DIGITS:
        raise NumberTooLong(text)
    value = Decimal(text)
    if _plain_digits(value) > most:
        raise NumberTooLong(text)
    return value


def _plain_digits(value: Decimal) -> int:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return len(digits) + exponent if exponent >= 0 else max(len(digits), 1 - exponent)
