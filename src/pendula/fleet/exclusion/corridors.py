"""Corridors: maximal chains of groups over nodes in which nothing branches; and how far apart trucks follow in them.

The direction of a corridor is a view on the cells held, never a lock. The following relation holds what the operating
gap adds to the swept areas; it is kept apart from them.
"""

from bisect import bisect_left
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.exclusion.cells import Cells
from pendula.fleet.exclusion.relation import Relation, Triples, expanded, relation, runs
from pendula.fleet.model import MoveStyle
from pendula.fleet.network.graph import Network
from pendula.fleet.trucks.envelope import Envelope

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Corridor:
    """A chain from node A to node B; `offsets` is where on the axis each group begins, `along` whether the group's
    own axis runs the same way."""

    id: str
    nodes: tuple[int, ...]
    groups: tuple[int, ...]
    offsets: tuple[int, ...]
    along: tuple[bool, ...]

    @property
    def ends(self) -> tuple[int, int]:
        return self.nodes[0], self.nodes[-1]


def corridors_of(network: Network) -> tuple[Corridor, ...]:
    """All corridors, sorted by id; every group is in exactly one."""
    seen: set[int] = set()
    chains: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for group in range(len(network.groups)):
        if group not in seen:
            nodes, groups = _chain(network, group)
            seen.update(groups)
            chains.append((nodes, groups))
    return _named(network, chains)


def _chain(network: Network, group: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The chain through a group, from its smaller end."""
    one = network.groups[group]
    ahead_nodes, ahead_groups = _walk(network, one.b, group, one.a)
    if ahead_nodes and ahead_nodes[-1] == one.a and network.degree(one.a) == 2 and ahead_groups[-1] != group:
        return _ring([one.a, one.b, *ahead_nodes[:-1]], [group, *ahead_groups])
    back_nodes, back_groups = _walk(network, one.a, group, one.b)
    nodes = [*reversed(back_nodes), one.a, one.b, *ahead_nodes]
    groups = [*reversed(back_groups), group, *ahead_groups]
    turned = (tuple(reversed(nodes)), tuple(reversed(groups)))
    # Numbers of nodes are in the order of their ids.
    return min((tuple(nodes), tuple(groups)), turned)


def _walk(network: Network, node: int, came_by: int, stop: int) -> tuple[list[int], list[int]]:
    """Onward from a node over groups until something branches, ends, or the node `stop` is reached."""
    nodes: list[int] = []
    groups: list[int] = []
    while network.degree(node) == 2:
        first, second = network.meeting[node]
        came_by = second if first == came_by else first
        group = network.groups[came_by]
        node = group.b if group.a == node else group.a
        nodes.append(node)
        groups.append(came_by)
        if node == stop:
            break
    return nodes, groups


def _ring(nodes: list[int], groups: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A closed ring, cut at its smallest node, running towards the smaller neighbour."""
    at = nodes.index(min(nodes))
    nodes, groups = nodes[at:] + nodes[:at], groups[at:] + groups[:at]
    closed = [*nodes, nodes[0]]
    return min((tuple(closed), tuple(groups)), (tuple(reversed(closed)), tuple(reversed(groups))))


def _named(network: Network, chains: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> tuple[Corridor, ...]:
    digests = [_digest(network, nodes, groups) for nodes, groups in chains]
    ends = [(nodes[0], nodes[-1]) for nodes, _ in chains]
    digits = 4
    while len({(end, digest[:digits]) for end, digest in zip(ends, digests, strict=True)}) < len(chains):
        digits += 4
    result = []
    for (nodes, groups), digest in zip(chains, digests, strict=True):
        first, last = network.nodes[nodes[0]].id, network.nodes[nodes[-1]].id
        lengths = [network.groups[group].length_um for group in groups]
        offsets = tuple(int(one) for one in np.cumsum([0, *lengths[:-1]]))
        along = tuple(network.groups[group].a == node for node, group in zip(nodes, groups, strict=False))
        result.append(Corridor(f"C:{first}->{last}:{digest[:digits]}", nodes, groups, offsets, along))
    return tuple(sorted(result, key=lambda one: one.id))


def _digest(network: Network, nodes: tuple[int, ...], groups: tuple[int, ...]) -> str:
    text = "|".join(network.nodes[node].id for node in nodes)
    # Two lanes between the same nodes have the same sequence of nodes.
    doubled = [network.groups[group].key for group in groups if "#" in network.groups[group].key]
    return sha256("|".join([text, *doubled]).encode()).hexdigest()


def following_of(
    network: Network, cells: Cells, corridors: tuple[Corridor, ...], envelope: Envelope, conflicts: Relation
) -> Relation:
    """Cells of one corridor and direction whose pivots could come closer than the spacing, beyond what conflicts."""
    parts: list[Triples] = []
    for corridor in corridors:
        for forward in (True, False):
            parts += _following(_lined_up(network, corridor, forward), network, cells, envelope)
    if not parts:
        return relation(len(cells), [])
    rows = np.concatenate([part.row for part in parts])
    a, b = expanded(rows, np.concatenate([part.lo for part in parts]), np.concatenate([part.hi for part in parts]))
    new = ~conflicts.contains(a, b)
    a, b = a[new], b[new]
    return relation(len(cells), [runs(np.concatenate([a, b]), np.concatenate([b, a]))])


def _lined_up(network: Network, corridor: Corridor, forward: bool) -> list[tuple[int, int]]:
    """The directed edges of a corridor that run one way, each with where it begins, in order."""
    total = corridor.offsets[-1] + network.groups[corridor.groups[-1]].length_um
    result = []
    for group, offset, along in zip(corridor.groups, corridor.offsets, corridor.along, strict=True):
        begin = offset if forward else total - offset - network.groups[group].length_um
        for edge in network.groups[group].edges:
            if (network.edges[edge].forward_on_axis == along) == forward:
                result.append((begin, edge))
    line = sorted(result)
    if corridor.nodes[0] == corridor.nodes[-1]:
        # A ring goes on where it was cut: whoever is near its end follows those near its beginning.
        line += [(begin + total, edge) for begin, edge in line]
    return line


def _following(line: list[tuple[int, int]], network: Network, cells: Cells, envelope: Envelope) -> list[Triples]:
    parts = []
    begins = [begin for begin, _ in line]
    widest = max(envelope.spacing_um(one, other) for one in MoveStyle for other in MoveStyle)
    for begin, follower in line:
        own = np.arange(cells.first[follower], cells.first[follower + 1], dtype=np.int64)
        reach_from = begin + cells.s1[own]
        # Edges of one lane begin at the same place: each may follow the other.
        for place in range(bisect_left(begins, begin), len(line)):
            ahead, leader = line[place]
            if ahead - int(reach_from[-1]) >= widest:
                break
            spacing = envelope.spacing_um(network.edges[leader].style, network.edges[follower].style)
            if ahead - int(reach_from[-1]) >= spacing:
                continue
            low, high = int(cells.first[leader]), int(cells.first[leader + 1])
            starts = ahead + cells.s0[low:high]
            # Leaders from the follower's own place on, up to the last one that is too close.
            first = low + np.searchsorted(starts, begin + cells.s0[own], side="left")
            last = low + np.searchsorted(starts, reach_from + spacing, side="left") - 1
            some = last >= first
            parts.append(Triples(own[some], first[some].astype(np.int64), last[some].astype(np.int64)))
    return parts
