"""Where a truck may be left standing: free, unwanted or forbidden, with the reasons; and where to wait at a mouth."""

from dataclasses import dataclass

import numpy as np

from pendula.fleet.cells import Cells
from pendula.fleet.conflicts import Conflict
from pendula.fleet.corridors import Corridor
from pendula.fleet.model import Stand
from pendula.fleet.network import Network
from pendula.fleet.relation import Relation
from pendula.fleet.sections import Section
from pendula.fleet.transitions import Transitions
from pendula.fleet.zones import Zones

STANDS = (Stand.FREE, Stand.UNWANTED, Stand.FORBIDDEN)


@dataclass(frozen=True, slots=True)
class Mouth:
    """The end of a corridor at a node where ways branch, and the last cells on the other ways in from which a waiting
    truck leaves the way out open."""

    corridor: int
    node: int
    waiting: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """For every cell its mark (a place in `STANDS`)."""

    marks: tuple[int, ...]
    mouths: tuple[Mouth, ...]


def plain_passage(network: Network, transitions: Transitions, node: int) -> bool:
    """Whether trucks only drive straight through: nothing branches, nobody loads or parks, nobody has to turn."""
    one = network.nodes[node]
    if network.degree(node) != 2 or one.station or one.parking:
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
    settled = tuple(marks.tolist())
    return Standing(settled, _mouths(network, cells, corridors, relation, settled))


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
    found = {f"CS:{one.id}" for one in sections for low, high in one.cells if low <= cell <= high}
    edge, s0, s1 = int(cells.edge[cell]), int(cells.s0[cell]), int(cells.s1[cell])
    for conflict in conflicts:
        if any(on == edge and low < s1 and high > s0 for on, low, high in conflict.windows):
            found.add(f"CONFLICT:{conflict.id}")
    for window in zones.windows:
        if window.cell0 <= cell <= window.cell1 and not plain_passage(network, transitions, window.node):
            found.add(f"NODE:{network.nodes[window.node].id}")
    return tuple(sorted(found))


def _mouths(
    network: Network, cells: Cells, corridors: tuple[Corridor, ...], relation: Relation, marks: tuple[int, ...]
) -> tuple[Mouth, ...]:
    mouths = []
    for number, corridor in enumerate(corridors):
        groups = set(corridor.groups)
        ways = {network.edges[edge].forward_on_axis for group in groups for edge in network.groups[group].edges}
        if len(ways) < 2:
            continue
        for node in sorted(set(corridor.ends)):
            if network.degree(node) < 3:
                continue
            ways_in = [edge for edge in network.incoming[node] if network.group_of[edge] not in groups]
            inner = [edge for group in sorted(groups) for edge in network.groups[group].edges]
            found = [_waiting(cells, edge, node, inner, relation, marks) for edge in ways_in]
            mouths.append(Mouth(number, node, tuple(cell for cell in found if cell is not None)))
    return tuple(mouths)


def _waiting(
    cells: Cells, edge: int, node: int, inner: list[int], relation: Relation, marks: tuple[int, ...]
) -> int | None:
    """The last cell of a way in that touches neither the turning disc of the mouth nor a cell inside."""
    zone = len(cells) + node
    for cell in reversed(cells.of_edge(edge)):
        if marks[cell] == 2:
            continue
        ranges = relation.ranges(cell)
        if any(low <= zone <= high for low, high in ranges):
            continue
        closed = any(
            low <= int(cells.first[one + 1]) - 1 and high >= int(cells.first[one])
            for one in inner
            for low, high in ranges
        )
        if not closed:
            return cell
    return None
