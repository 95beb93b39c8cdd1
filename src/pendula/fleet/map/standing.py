"""Where a truck may stand: free, unwanted or forbidden, with the reasons; and where to wait at a mouth."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.map.corridors import Corridor, Section
from pendula.fleet.map.exclusion import Cells, Conflict, Relation, Zones
from pendula.fleet.map.network import Network, Transitions
from pendula.fleet.model import Stand

Bools = NDArray[np.bool_]
# How many edges before a mouth waiting places are searched.
_EDGES_BACK = 4
STANDS = (Stand.FREE, Stand.UNWANTED, Stand.FORBIDDEN)


@dataclass(frozen=True, slots=True)
class Mouth:
    """The end of a corridor at a branching node. `waiting` has, for the other ways into the node, the last cells in
    which a waiting truck keeps the way out free."""

    corridor: int
    node: int
    waiting: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """`marks` has for every cell an index into `STANDS`."""

    marks: tuple[int, ...]
    mouths: tuple[Mouth, ...]


def plain_passage(network: Network, transitions: Transitions, node: int) -> bool:
    """Whether trucks only drive straight through a node: no branch, no station or parking, no turn on the spot."""
    passed_node = network.nodes[node]
    if network.degree(node) != 2 or passed_node.station or passed_node.parking:
        return False
    for edge in network.incoming[node]:
        for k in transitions.of(edge):
            back = network.group_of[int(transitions.out[k])] == network.group_of[edge]
            if not back and not bool(transitions.tangent[k]):
                return False
    return True


def standing_of(
    network: Network,
    cells: Cells,
    zones: Zones,
    sections: tuple[Section, ...],
    conflicts: tuple[Conflict, ...],
    transitions: Transitions,
    corridors: tuple[Corridor, ...],
    relation: Relation,
) -> Standing:
    marks = np.zeros(len(cells), dtype=np.int64)
    for node in range(len(network.nodes)):
        if not plain_passage(network, transitions, node):
            for window in zones.by_node[node]:
                marks[window.cell0 : window.cell1 + 1] = 1
    for conflict in conflicts:
        for edge, low, high in conflict.windows:
            marks[cells.at(edge, low) : cells.at(edge, high - 1) + 1] = 1
    for section in sections:
        for first, last in section.cells:
            marks[first : last + 1] = 2
    return Standing(tuple(marks.tolist()), _mouths(network, cells, corridors, relation, marks == 2))


def reasons(
    cell: int,
    cells: Cells,
    network: Network,
    zones: Zones,
    sections: tuple[Section, ...],
    conflicts: tuple[Conflict, ...],
    transitions: Transitions,
) -> tuple[str, ...]:
    """Why a cell is not free, as resource ids, sorted."""
    resources = {f"CS:{section.id}" for section in sections for low, high in section.cells if low <= cell <= high}
    edge, s0, s1 = int(cells.edge[cell]), int(cells.s0[cell]), int(cells.s1[cell])
    for conflict in conflicts:
        if any(on == edge and low < s1 and high > s0 for on, low, high in conflict.windows):
            resources.add(f"CONFLICT:{conflict.id}")
    for window in zones.windows:
        if window.cell0 <= cell <= window.cell1 and not plain_passage(network, transitions, window.node):
            resources.add(f"NODE:{network.nodes[window.node].id}")
    return tuple(sorted(resources))


def _mouths(
    network: Network, cells: Cells, corridors: tuple[Corridor, ...], relation: Relation, forbidden: Bools
) -> tuple[Mouth, ...]:
    mouths = []
    for number, corridor in enumerate(corridors):
        groups = set(corridor.groups)
        ways = {network.edges[edge].forward_on_axis for group in groups for edge in network.groups[group].edges}
        if len(ways) < 2:
            continue
        edges = sorted(edge for group in groups for edge in network.groups[group].edges)
        inner = [(int(cells.first[edge]), int(cells.first[edge + 1]) - 1) for edge in edges]
        for node in sorted(set(corridor.ends)):
            if network.degree(node) < 3:
                continue
            ways_in = [edge for edge in network.incoming[node] if network.group_of[edge] not in groups]
            zone = len(cells) + node
            # A waiting truck must not touch the turning disc of the mouth or a cell of the corridor, nor be in a
            # section.
            closed = forbidden | relation.related([*inner, (zone, zone)])[: len(cells)]
            mouths.append(Mouth(number, node, _waiting(network, cells, ways_in, groups, closed)))
    return tuple(mouths)


def _waiting(network: Network, cells: Cells, ways_in: list[int], groups: set[int], closed: Bools) -> tuple[int, ...]:
    """On every way in the last cell that is not closed; if an edge has none, on the edges before it."""
    waiting: list[int] = []
    seen, edges = set(ways_in), ways_in
    for _ in range(_EDGES_BACK):
        full = []
        for edge in edges:
            own = cells.of_edge(edge)
            free = np.flatnonzero(~closed[own.start : own.stop])
            if len(free):
                waiting.append(own.start + int(free[-1]))
            else:
                full.append(edge)
        before = {
            previous
            for edge in full
            for previous in network.incoming[network.edges[edge].start]
            # Exclude edges of the corridor and the way back.
            if network.group_of[previous] not in groups and network.group_of[previous] != network.group_of[edge]
        }
        edges = sorted(before - seen)
        seen |= before
    return tuple(waiting)
