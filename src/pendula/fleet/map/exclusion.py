"""What excludes what on a map: a relation over numbered resources, cells, turning discs, conflicts."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.map.geometry import boxes
from pendula.fleet.map.network import MAP_OVERLAPS, Network

# A symmetric relation over numbered resources, stored as ranges of numbers.
# Row r relates to the numbers `lo[k] .. hi[k]` (both included) for k in `at[r] .. at[r + 1]`. The ranges of a row are
# sorted and do not touch, so equal relations have equal columns.

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


# Cells: every directed edge cut into short ranges of pivot positions, each with its swept area.
# Edges are in the order of their keys and cells in the order along their edge, so the cells of an edge are a range of
# numbers, and so are most conflict sets. The compiler computes the areas (`compiler/swept`).

# A shorter remainder at the end of an edge joins the cell before it.
SLIVER_UM = 50_000


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """All cells as columns. The quadrangles of cell c are rows `quad_first[c]` to `quad_first[c + 1]` of `quads`."""

    edge: Ints
    s0: Ints
    s1: Ints
    # Cells of edge e are first[e] to first[e + 1].
    first: Ints
    quads: Ints
    quad_first: Ints

    def __len__(self) -> int:
        return len(self.edge)

    def of_edge(self, edge: int) -> range:
        return range(int(self.first[edge]), int(self.first[edge + 1]))

    def at(self, edge: int, s_um: int) -> int:
        """The cell that contains the position `s_um`; the end of an edge belongs to its last cell."""
        low, high = int(self.first[edge]), int(self.first[edge + 1])
        return low + max(0, int(np.searchsorted(self.s0[low:high], s_um, side="right")) - 1)

    def boxes(self) -> Ints:
        """The bounding box of every cell."""
        every = boxes(self.quads)
        at = self.quad_first[:-1]
        low = np.minimum.reduceat(every[:, :2], at, axis=0)
        high = np.maximum.reduceat(every[:, 2:], at, axis=0)
        return np.concatenate([low, high], axis=1)


def boundaries(length_um: int, cell_len_um: int) -> Ints:
    """The starts of the cells of an edge, and the end of the last one."""
    whole, rest = divmod(length_um, cell_len_um)
    if whole and rest < SLIVER_UM:
        whole, rest = whole - 1, rest + cell_len_um
    bounds = np.append(np.arange(whole + 1, dtype=np.int64) * cell_len_um, length_um)
    if whole and rest < cell_len_um // 2:
        # A truck standing at the end holds every cell that its release bound has not passed. With a short last cell
        # these would be two, longer than one whole cell, so the last two share the remainder.
        bounds[-2] = length_um - (cell_len_um + rest) // 2
    return bounds


def cut_lengths(lengths_um: list[int], cell_len_um: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Edge, start and end of every cell, and the first cell of every edge, for edges of these lengths."""
    bounds = [boundaries(length, cell_len_um) for length in lengths_um]
    counts = np.array([len(edge_bounds) - 1 for edge_bounds in bounds], dtype=np.int64)
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    edge = np.repeat(np.arange(len(bounds), dtype=np.int64), counts)
    none = [np.zeros(0, dtype=np.int64)]
    s0 = np.concatenate([edge_bounds[:-1] for edge_bounds in bounds] or none)
    s1 = np.concatenate([edge_bounds[1:] for edge_bounds in bounds] or none)
    return edge, s0, s1, first


# Turning discs: the windows on edges in which an envelope meets the disc of a node, and which discs overlap.
# The compiler computes the windows (`compiler/overlaps`). Overlaps follow from the positions of the nodes, so
# files do not contain them.

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Window:
    """Positions `s0 .. s1` of an edge at which the envelope meets the disc of a node, and the cells of these
    positions."""

    node: int
    edge: int
    s0: int
    s1: int
    cell0: int
    cell1: int


@dataclass(frozen=True, slots=True)
class Zones:
    radius_um: int
    # Sorted by node, edge and position.
    windows: tuple[Window, ...]
    overlaps: tuple[tuple[int, ...], ...]
    by_node: tuple[tuple[Window, ...], ...]

    def inside(self, node: int, count: int) -> Bools:
        """For each of `count` cells whether it touches the window of the node."""
        marks = np.zeros(count, dtype=np.bool_)
        for window in self.by_node[node]:
            marks[window.cell0 : window.cell1 + 1] = True
        return marks


def zones_of_windows(network: Network, radius_um: int, windows: tuple[Window, ...]) -> Zones:
    """Zones from given windows."""
    by_node: list[list[Window]] = [[] for _ in network.nodes]
    for window in windows:
        by_node[window.node].append(window)
    return Zones(radius_um, windows, _overlaps(network, radius_um), tuple(map(tuple, by_node)))


def without_turnless_nodes(network: Network, zones: Zones) -> Zones:
    """The zones without the windows of nodes with `turning: false`."""
    windows = tuple(window for window in zones.windows if network.nodes[window.node].turning)
    return zones if len(windows) == len(zones.windows) else zones_of_windows(network, zones.radius_um, windows)


def _overlaps(network: Network, radius: int) -> tuple[tuple[int, ...], ...]:
    if not network.nodes:
        return ()
    # Nodes without turning need no free disc.
    turning = np.array([node.turning for node in network.nodes], dtype=np.bool_)
    x = np.array([node.at.x_um for node in network.nodes], dtype=np.int64)
    y = np.array([node.at.y_um for node in network.nodes], dtype=np.int64)
    far = 2 * radius + 2
    order = np.argsort(x, kind="stable")
    result: list[list[int]] = [[] for _ in network.nodes]
    ordered = x[order]
    total = 0
    for place, node in enumerate(order.tolist()):
        stop = int(np.searchsorted(ordered, ordered[place] + far, side="right"))
        others = order[place + 1 : stop]
        others = others[turning[others] & turning[node]]
        dx, dy = x[others] - x[node], y[others] - y[node]
        close = (np.abs(dy) <= far) & (dx * dx + np.where(np.abs(dy) <= far, dy * dy, 0) <= far * far)
        total += int(np.count_nonzero(close))
        MAP_OVERLAPS.check(total)
        for other in others[close].tolist():
            result[node].append(other)
            result[other].append(node)
    return tuple(tuple(sorted(nodes)) for nodes in result)


def zone_triples(zones: Zones, count: int) -> list[Triples]:
    """Relations of the zones, numbered `count + node`: to the cells in their windows, to overlapping zones, to
    themselves."""
    rows: list[int] = []
    low: list[int] = []
    high: list[int] = []
    for window in zones.windows:
        rows.append(count + window.node)
        low.append(window.cell0)
        high.append(window.cell1)
        for cell in range(window.cell0, window.cell1 + 1):
            rows.append(cell)
            low.append(count + window.node)
            high.append(count + window.node)
    for node, others in enumerate(zones.overlaps):
        for other in (node, *others):
            rows.append(count + node)
            low.append(count + other)
            high.append(count + other)
    return [Triples(np.array(rows, dtype=np.int64), np.array(low, dtype=np.int64), np.array(high, dtype=np.int64))]


# Conflicts: pairs of cells as relations, opposite directions of a group, and the named conflicts of two groups.
# Names and windows depend only on the sorted pairs, not on how they were computed.


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two groups that exclude each other within `windows`: (edge, s0, s1) on the edges of both."""

    id: str
    a: int
    b: int
    windows: tuple[tuple[int, int, int], ...]
    # The least distance of the areas: 0 where they overlap, more where only the margin makes them conflict.
    gap_um: int = 0


def geometric(i: Ints, j: Ints, count: int) -> list[Triples]:
    """The pairs in both directions, and every cell with itself."""
    own = np.arange(count, dtype=np.int64)
    return [runs(np.concatenate([i, j]), np.concatenate([j, i])), Triples(own, own, own)]


def opposite_directions(network: Network, cells: Cells) -> list[Triples]:
    """All cells of one direction of a group with all cells of the other."""
    parts: list[Triples] = []
    for group in network.groups:
        forth = _spans(cells, [edge for edge in group.edges if network.edges[edge].forward_on_axis])
        back = _spans(cells, [edge for edge in group.edges if not network.edges[edge].forward_on_axis])
        parts += [_cross_product(span, other) for span in forth for other in back]
        parts += [_cross_product(span, other) for span in back for other in forth]
    return parts


def _spans(cells: Cells, edges: Iterable[int]) -> list[tuple[int, int]]:
    """The cells of edges as ranges; edges of one lane have consecutive numbers."""
    spans: list[tuple[int, int]] = []
    for edge in sorted(edges):
        low, high = int(cells.first[edge]), int(cells.first[edge + 1]) - 1
        if spans and spans[-1][1] + 1 == low:
            spans[-1] = (spans[-1][0], high)
        else:
            spans.append((low, high))
    return spans


def whole_groups(network: Network, cells: Cells, conflicts: tuple[Conflict, ...]) -> list[Triples]:
    """Granularity EDGE: groups in conflict exclude each other as wholes, unless they share a node."""
    parts: list[Triples] = []
    for conflict in conflicts:
        a, b = network.groups[conflict.a], network.groups[conflict.b]
        if {a.a, a.b} & {b.a, b.b}:
            continue
        for span in _spans(cells, a.edges):
            for other in _spans(cells, b.edges):
                parts += [_cross_product(span, other), _cross_product(other, span)]
    return parts


def _cross_product(span: tuple[int, int], other: tuple[int, int]) -> Triples:
    rows = np.arange(span[0], span[1] + 1, dtype=np.int64)
    return Triples(rows, np.full(len(rows), other[0], dtype=np.int64), np.full(len(rows), other[1], dtype=np.int64))


def named_conflicts(
    network: Network, cells: Cells, zones: Zones, i: Ints, j: Ints, gaps: NDArray[np.float64]
) -> tuple[Conflict, ...]:
    """The conflicts of two groups. Groups that share a node always overlap there, so pairs inside the windows of shared
    nodes do not count."""
    group_of = np.array(network.group_of, dtype=np.int64)[cells.edge]
    gi, gj = group_of[i], group_of[j]
    keep = gi != gj
    i, j, gi, gj, gaps = i[keep], j[keep], gi[keep], gj[keep], gaps[keep]
    if not len(i):
        return ()
    swap = gi > gj
    i, j = np.where(swap, j, i), np.where(swap, i, j)
    gi, gj = np.where(swap, gj, gi), np.where(swap, gi, gj)
    order = np.lexsort((j, i, gj, gi))
    i, j, gi, gj, gaps = i[order], j[order], gi[order], gj[order], gaps[order]
    fresh = np.ones(len(i), dtype=np.bool_)
    fresh[1:] = (gi[1:] != gi[:-1]) | (gj[1:] != gj[:-1])
    starts = np.flatnonzero(fresh)
    owner = np.cumsum(fresh) - 1
    keep = _outside_shared_nodes(
        network=network, zones=zones, count=len(cells), i=i, j=j, owner=owner, first=gi[starts], second=gj[starts]
    )
    i, j, gi, gj, gaps, owner = i[keep], j[keep], gi[keep], gj[keep], gaps[keep], owner[keep]
    bounds = [*np.flatnonzero(np.diff(owner, prepend=-1)).tolist(), len(i)]
    result = [
        _conflict(network, cells, (int(gi[low]), int(gj[low])), i[low:high], j[low:high], gaps[low:high])
        for low, high in pairwise(bounds)
    ]
    return tuple(sorted(result, key=lambda conflict: conflict.id))


def _outside_shared_nodes(
    network: Network, zones: Zones, count: int, i: Ints, j: Ints, owner: Ints, first: Ints, second: Ints
) -> NDArray[np.bool_]:
    """Which pairs of cells are not both in the window of a node that their groups share."""
    groups = network.groups
    by_node: dict[int, list[int]] = {}
    for pair, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        for node in {groups[a].a, groups[a].b} & {groups[b].a, groups[b].b}:
            by_node.setdefault(node, []).append(pair)
    bounds = np.searchsorted(owner, np.arange(len(first) + 1)).astype(np.int64)
    keep = np.ones(len(i), dtype=np.bool_)
    for node, numbers in by_node.items():
        # The cells inside a window are computed once per node, not once per pair of groups.
        inside = zones.inside(node, count)
        pairs = np.array(numbers, dtype=np.int64)
        _, rows = expanded(pairs, bounds[pairs], bounds[pairs + 1] - 1)
        keep[rows] &= ~(inside[i[rows]] & inside[j[rows]])
    return keep


def _conflict(
    network: Network, cells: Cells, pair: tuple[int, int], i: Ints, j: Ints, gaps: NDArray[np.float64]
) -> Conflict:
    spans: dict[int, list[tuple[int, int]]] = {}
    for cell in np.unique(np.concatenate([i, j])).tolist():
        spans.setdefault(int(cells.edge[cell]), []).append((int(cells.s0[cell]), int(cells.s1[cell])))
    windows = tuple((edge, low, high) for edge in sorted(spans) for low, high in merged(spans[edge]))
    keys = network.groups[pair[0]].key, network.groups[pair[1]].key
    return Conflict(conflict_id(*keys), *pair, windows, int(gaps.min()))


def conflict_id(key_a: str, key_b: str) -> str:
    """Named after its members alone, so that an unchanged part of a map keeps its ids."""
    members = sorted((f"EDGE_GROUP:{key_a}", f"EDGE_GROUP:{key_b}"))
    return "C-" + sha256("|".join(members).encode()).hexdigest()[:12]
