"""A symmetric relation over numbered resources, stored as ranges of numbers.

Row r relates to the numbers `lo[k] .. hi[k]` (both included) for k in `at[r] .. at[r + 1]`. The ranges of a row are
sorted and do not touch, so equal relations have equal columns.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Relation:
    at: Ints
    lo: Ints
    hi: Ints

    def __len__(self) -> int:
        return len(self.at) - 1

    def ranges(self, row: int) -> list[tuple[int, int]]:
        """The ranges of a row, both ends included."""
        low, high = int(self.at[row]), int(self.at[row + 1])
        return list(zip(self.lo[low:high].tolist(), self.hi[low:high].tolist(), strict=True))

    def members(self, row: int) -> list[int]:
        return [number for low, high in self.ranges(row) for number in range(low, high + 1)]

    def holds(self, a: int, b: int) -> bool:
        low, high = int(self.at[a]), int(self.at[a + 1])
        k = low + int(np.searchsorted(self.lo[low:high], b, side="right")) - 1
        return k >= low and b <= int(self.hi[k])

    def contains(self, a: Ints, b: Ints) -> NDArray[np.bool_]:
        """`holds` for many pairs at once."""
        if not len(self.lo):
            return np.zeros(len(a), dtype=np.bool_)
        rows = np.repeat(np.arange(len(self), dtype=np.int64), self.at[1:] - self.at[:-1])
        span = max(int(self.hi.max()), int(b.max()) if len(b) else 0) + 1
        k = np.maximum(np.searchsorted(rows * span + self.lo, a * span + b, side="right") - 1, 0)
        contained: NDArray[np.bool_] = (rows[k] == a) & (self.lo[k] <= b) & (b <= self.hi[k])
        return contained

    def related(self, spans: list[tuple[int, int]]) -> NDArray[np.bool_]:
        """For every number whether a row of the spans (both ends included) relates to it."""
        steps = np.zeros(len(self) + 1, dtype=np.int64)
        for low, high in spans:
            part = slice(int(self.at[low]), int(self.at[high + 1]))
            steps += np.bincount(self.lo[part], minlength=len(steps))
            steps -= np.bincount(self.hi[part] + 1, minlength=len(steps))
        related: NDArray[np.bool_] = np.cumsum(steps[:-1]) > 0
        return related

    def sizes(self) -> Ints:
        """How many numbers each row relates to."""
        total = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.hi - self.lo + 1)])
        sizes: Ints = total[self.at[1:]] - total[self.at[:-1]]
        return sizes

    def pairs(self) -> tuple[Ints, Ints]:
        """Every related pair (a, b) with a < b."""
        rows = np.repeat(np.arange(len(self), dtype=np.int64), self.at[1:] - self.at[:-1])
        keep = self.hi > rows
        rows, lo, hi = rows[keep], np.maximum(self.lo[keep], rows[keep] + 1), self.hi[keep]
        return expanded(rows, lo, hi)


@dataclass(frozen=True, eq=False, slots=True)
class Triples:
    """Rows with one range each, in any order; ranges may overlap."""

    row: Ints
    lo: Ints
    hi: Ints


def expanded(rows: Ints, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Pairs of a row and a number, for every number in its range."""
    counts = hi - lo + 1
    total = int(counts.sum())
    starts = np.cumsum(counts) - counts
    inside = np.arange(total, dtype=np.int64) - np.repeat(starts, counts)
    return np.repeat(rows, counts), np.repeat(lo, counts) + inside


def runs(row: Ints, number: Ints) -> Triples:
    """Pairs as ranges: consecutive numbers of a row become one range."""
    order = np.lexsort((number, row))
    row, number = row[order], number[order]
    if not len(row):
        return Triples(row, number, number)
    fresh = np.ones(len(row), dtype=np.bool_)
    fresh[1:] = (row[1:] != row[:-1]) | (number[1:] > number[:-1] + 1)
    starts = np.flatnonzero(fresh)
    ends = np.append(starts[1:] - 1, len(row) - 1)
    return Triples(row[starts], number[starts], number[ends])


def relation(count: int, parts: list[Triples]) -> Relation:
    """The union of all parts as a relation over `count` resources."""
    row = np.concatenate([part.row for part in parts] or [np.zeros(0, dtype=np.int64)])
    lo = np.concatenate([part.lo for part in parts] or [np.zeros(0, dtype=np.int64)])
    hi = np.concatenate([part.hi for part in parts] or [np.zeros(0, dtype=np.int64)])
    order = np.lexsort((lo, row))
    row, lo, hi = row[order], lo[order], hi[order]
    if len(row):
        # The greatest end so far within the row; the offset of a row is larger than any number, so rows do not mix.
        span = count + 2
        reach = np.maximum.accumulate(row * span + hi) - row * span
        fresh = np.ones(len(row), dtype=np.bool_)
        fresh[1:] = (row[1:] != row[:-1]) | (lo[1:] > reach[:-1] + 1)
        starts = np.flatnonzero(fresh)
        ends = np.append(starts[1:] - 1, len(row) - 1)
        row, lo, hi = row[starts], lo[starts], reach[ends]
    at = np.searchsorted(row, np.arange(count + 1)).astype(np.int64)
    return Relation(at, lo, hi)


def merged(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of closed intervals, sorted; those that touch become one."""
    if not intervals:
        return []
    ordered = sorted(intervals)
    result = [ordered[0]]
    for low, high in ordered[1:]:
        last_low, last_high = result[-1]
        if low <= last_high:
            result[-1] = (last_low, max(last_high, high))
        else:
            result.append((low, high))
    assert all(a[1] < b[0] for a, b in pairwise(result))
    return result
