"""Corridors: maximal chains of groups over nodes without branches, and the following distance of trucks in them.

The direction of a corridor is derived from the cells held; it is not a lock. The following relation contains what the
operating gap adds to the swept areas; it is a separate relation.
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
    """A chain from node A to node B; `offsets` are the starts of the groups on its axis, `along` whether the axis of a
    group runs the same way."""

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
    return _with_ids(network, chains)


def _chain(network: Network, group: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The chain through a group, from its end with the smaller number."""
    lane = network.groups[group]
    ahead_nodes, ahead_groups = _walk(network, lane.b, group, lane.a)
    if ahead_nodes and ahead_nodes[-1] == lane.a and network.degree(lane.a) == 2 and ahead_groups[-1] != group:
        return _ring([lane.a, lane.b, *ahead_nodes[:-1]], [group, *ahead_groups])
    back_nodes, back_groups = _walk(network, lane.a, group, lane.b)
    nodes = [*reversed(back_nodes), lane.a, lane.b, *ahead_nodes]
    groups = [*reversed(back_groups), group, *ahead_groups]
    reversed_chain = (tuple(reversed(nodes)), tuple(reversed(groups)))
    # Node numbers are in the order of the ids.
    return min((tuple(nodes), tuple(groups)), reversed_chain)


def _walk(network: Network, node: int, came_by: int, stop: int) -> tuple[list[int], list[int]]:
    """Follow groups from a node until they branch or end, or until the node `stop`."""
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
    """A closed ring, cut at its smallest node, towards the smaller neighbour."""
    at = nodes.index(min(nodes))
    nodes, groups = nodes[at:] + nodes[:at], groups[at:] + groups[:at]
    closed = [*nodes, nodes[0]]
    return min((tuple(closed), tuple(groups)), (tuple(reversed(closed)), tuple(reversed(groups))))


def _with_ids(network: Network, chains: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> tuple[Corridor, ...]:
    digests = [_digest(network, nodes, groups) for nodes, groups in chains]
    ends = [(nodes[0], nodes[-1]) for nodes, _ in chains]
    digits = 4
    while len({(end, digest[:digits]) for end, digest in zip(ends, digests, strict=True)}) < len(chains):
        digits += 4
    result = []
    for (nodes, groups), digest in zip(chains, digests, strict=True):
        first, last = network.nodes[nodes[0]].id, network.nodes[nodes[-1]].id
        lengths = [network.groups[group].length_um for group in groups]
        offsets = tuple(int(offset) for offset in np.cumsum([0, *lengths[:-1]]))
        along = tuple(network.groups[group].a == node for node, group in zip(nodes, groups, strict=False))
        result.append(Corridor(f"C:{first}->{last}:{digest[:digits]}", nodes, groups, offsets, along))
    return tuple(sorted(result, key=lambda corridor: corridor.id))


def _digest(network: Network, nodes: tuple[int, ...], groups: tuple[int, ...]) -> str:
    text = "|".join(network.nodes[node].id for node in nodes)
    # Parallel lanes have the same sequence of nodes, so their keys are added.
    doubled = [network.groups[group].key for group in groups if "#" in network.groups[group].key]
    return sha256("|".join([text, *doubled]).encode()).hexdigest()


def following_of(
    network: Network, cells: Cells, corridors: tuple[Corridor, ...], envelope: Envelope, conflicts: Relation
) -> Relation:
    """Pairs of cells of one corridor and direction whose pivots could come closer than the spacing, without
    conflicts."""
    parts: list[Triples] = []
    for corridor in corridors:
        for forward in (True, False):
            parts += _following(_edges_in_direction(network, corridor, forward), network, cells, envelope)
    if not parts:
        return relation(len(cells), [])
    rows = np.concatenate([part.row for part in parts])
    a, b = expanded(rows, np.concatenate([part.lo for part in parts]), np.concatenate([part.hi for part in parts]))
    new = ~conflicts.contains(a, b)
    a, b = a[new], b[new]
    return relation(len(cells), [runs(np.concatenate([a, b]), np.concatenate([b, a]))])


def _edges_in_direction(network: Network, corridor: Corridor, forward: bool) -> list[tuple[int, int]]:
    """The directed edges of a corridor in one direction, each with its start on the axis, in order."""
    total = corridor.offsets[-1] + network.groups[corridor.groups[-1]].length_um
    result = []
    for group, offset, along in zip(corridor.groups, corridor.offsets, corridor.along, strict=True):
        begin = offset if forward else total - offset - network.groups[group].length_um
        for edge in network.groups[group].edges:
            if (network.edges[edge].forward_on_axis == along) == forward:
                result.append((begin, edge))
    line = sorted(result)
    if corridor.nodes[0] == corridor.nodes[-1]:
        # A ring continues at its cut: trucks near its end follow trucks near its start.
        line += [(begin + total, edge) for begin, edge in line]
    return line


def _following(line: list[tuple[int, int]], network: Network, cells: Cells, envelope: Envelope) -> list[Triples]:
    parts = []
    begins = [begin for begin, _ in line]
    widest = max(envelope.spacing_um(leader, follower) for leader in MoveStyle for follower in MoveStyle)
    for begin, follower in line:
        own = np.arange(cells.first[follower], cells.first[follower + 1], dtype=np.int64)
        reach_from = begin + cells.s1[own]
        # Edges of one lane start at the same position: each may follow the other.
        for place in range(bisect_left(begins, begin), len(line)):
            ahead, leader = line[place]
            if ahead - int(reach_from[-1]) >= widest:
                break
            spacing = envelope.spacing_um(network.edges[leader].style, network.edges[follower].style)
            if ahead - int(reach_from[-1]) >= spacing:
                continue
            low, high = int(cells.first[leader]), int(cells.first[leader + 1])
            starts = ahead + cells.s0[low:high]
            # Leaders from the follower's own position up to the last one that is too close.
            first = low + np.searchsorted(starts, begin + cells.s0[own], side="left")
            last = low + np.searchsorted(starts, reach_from + spacing, side="left") - 1
            some = last >= first
            parts.append(Triples(own[some], first[some].astype(np.int64), last[some].astype(np.int64)))
    return parts
