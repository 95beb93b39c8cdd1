"""Conflicts: pairs of cells as relations, opposite directions of a group, and the named conflicts of two groups.

Names and windows depend only on the sorted pairs, not on how they were computed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.exclusion.cells import Cells
from pendula.fleet.exclusion.relation import Triples, expanded, merged, runs
from pendula.fleet.exclusion.turning_discs import Zones
from pendula.fleet.network.graph import Network

Ints = NDArray[np.int64]


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
