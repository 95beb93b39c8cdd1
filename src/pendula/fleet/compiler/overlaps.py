"""Which swept areas meet, and the distances of the others.

A tree of bounding boxes proposes pairs; separating axes on integers decide. The result is sorted, so it does not depend
on the order of the tree.
"""

from collections.abc import Iterator

import numpy as np
import shapely
from numpy.typing import NDArray

from pendula.fleet.exclusion.cells import Cells
from pendula.fleet.exclusion.relation import expanded
from pendula.fleet.geometry.quadrangles import boxes, distances_um, meet
from pendula.fleet.network.limits import MAP_PAIRS

Ints = NDArray[np.int64]
_FIRST_ROWS, _ROWS = 64, 2048
_PAIRS = 1_000_000


def overlapping(cells: Cells, among: Ints | None = None) -> tuple[Ints, Ints]:
    """Pairs (i, j), i < j, of cells whose swept areas meet; if `among` is given, only pairs with one of its cells.

    Raises `LimitExceeded` when a dense map has too many pairs.
    """
    found_i: list[Ints] = []
    found_j: list[Ints] = []
    frames = boxes(cells.quads)
    for i, j in _candidates(cells, among):
        hit = _meeting(cells, frames, i, j)
        found_i.append(i[hit])
        found_j.append(j[hit])
    none = [np.zeros(0, dtype=np.int64)]
    i, j = np.concatenate(found_i or none), np.concatenate(found_j or none)
    order = np.lexsort((j, i))
    return i[order], j[order]


def _candidates(cells: Cells, among: Ints | None) -> Iterator[tuple[Ints, Ints]]:
    """Pairs whose bounding boxes meet, in batches."""
    frame = cells.boxes().astype(np.float64)
    shapes = shapely.box(frame[:, 0], frame[:, 1], frame[:, 2], frame[:, 3])
    tree = shapely.STRtree(shapes)
    rows = np.arange(len(cells), dtype=np.int64) if among is None else among
    selected = np.zeros(len(cells), dtype=np.bool_)
    selected[rows] = True
    total, low, portion = 0, 0, _FIRST_ROWS
    while low < len(rows):
        part = rows[low : low + portion]
        near, other = tree.query(shapes[part])
        low += portion
        # Smaller batches where cells are dense: the answer of the tree must fit into memory before it is counted.
        portion = min(_ROWS, max(1, _PAIRS * len(part) // max(1, len(near))))
        i, j = part[near], other.astype(np.int64)
        # A pair of two selected cells occurs twice, any other pair once.
        keep = (i < j) | (~selected[j] & (i != j))
        i, j = i[keep], j[keep]
        total += len(i)
        MAP_PAIRS.check(total)
        yield np.minimum(i, j), np.maximum(i, j)


def _meeting(cells: Cells, frames: Ints, i: Ints, j: Ints) -> NDArray[np.bool_]:
    """Whether any quadrangle of cell i meets any of cell j, pair by pair."""
    counts = cells.quad_first[1:] - cells.quad_first[:-1]
    # Most pairs of curved cells meet in their middles; only the others need all combinations.
    middle = cells.quad_first[:-1] + counts // 2
    result = meet(cells.quads[middle[i]], cells.quads[middle[j]])
    size = counts[i] * counts[j]
    left = np.flatnonzero(~result & (size > 1))
    ends = np.cumsum(size[left])
    low = 0
    while low < len(left):
        base = int(ends[low] - size[left[low]])
        high = max(low + 1, int(np.searchsorted(ends, base + _PAIRS, side="right")))
        part = left[low:high]
        result[part] = _quads_meet(cells, frames, i[part], j[part], counts)
        low = high
    return result


def _quads_meet(cells: Cells, frames: Ints, i: Ints, j: Ints, counts: Ints) -> NDArray[np.bool_]:
    size = counts[i] * counts[j]
    pair, inside = expanded(np.arange(len(i), dtype=np.int64), np.zeros(len(i), dtype=np.int64), size - 1)
    of_j = counts[j][pair]
    a = cells.quad_first[i][pair] + inside // of_j
    b = cells.quad_first[j][pair] + inside % of_j
    for low, high in ((0, 2), (1, 3)):
        close = (frames[a, low] <= frames[b, high]) & (frames[b, low] <= frames[a, high])
        pair, a, b = pair[close], a[close], b[close]
    hit = np.zeros(len(i), dtype=np.bool_)
    hit[pair[meet(cells.quads[a], cells.quads[b])]] = True
    return hit


def distances(cells: Cells, i: Ints, j: Ints) -> NDArray[np.float64]:
    """The distance of the swept areas of every pair of cells, in micrometres."""
    counts = cells.quad_first[1:] - cells.quad_first[:-1]
    result = np.zeros(len(i))
    for low in range(0, len(i), _ROWS):
        first, second = i[low : low + _ROWS], j[low : low + _ROWS]
        size = counts[first] * counts[second]
        pair, inside = expanded(np.arange(len(first), dtype=np.int64), np.zeros(len(first), dtype=np.int64), size - 1)
        of_second = counts[second][pair]
        a = cells.quads[cells.quad_first[first][pair] + inside // of_second]
        b = cells.quads[cells.quad_first[second][pair] + inside % of_second]
        result[low : low + _ROWS] = np.minimum.reduceat(distances_um(a, b), np.cumsum(size) - size)
    return result
