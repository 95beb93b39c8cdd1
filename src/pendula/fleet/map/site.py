"""The compiled map: all queries of the running system about a site, in integers.

Resources are numbered: cells first, edge by edge, then the turning zones of the nodes, then the sections. `excluded`
is one relation over all of them: `conflicts` has the rows of cells and zones, a section relates only to itself, and
`capacity` is the number of trucks that may hold it. `following` adds the operating gap between cells of one corridor.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from pendula.fleet.map.corridors import STANDS, Corridor, Section, Standing, on_edge, reasons
from pendula.fleet.map.exclusion import Cells, Conflict, Relation, Zones, merged
from pendula.fleet.map.network import Network, Transitions
from pendula.fleet.map.trucks import Envelope
from pendula.fleet.model import CompileParams, Finding, Stand
from pendula.fleet.units import metres


@dataclass(frozen=True, eq=False)
class CompiledMap:
    """A site for one envelope. Hashes are of the form `sha256:<64 hex>`."""

    network: Network
    params: CompileParams
    envelope: Envelope
    cells: Cells
    zones: Zones
    conflicts: Relation
    following: Relation
    named: tuple[Conflict, ...]
    corridors: tuple[Corridor, ...]
    sections: tuple[Section, ...]
    transitions: Transitions
    standing: Standing
    findings: tuple[Finding, ...]
    map_hash: str
    profile_hash: str
    compiled_hash: str = field(default="")

    @property
    def map_id(self) -> str:
        return self.network.map_id

    @cached_property
    def edge_number(self) -> dict[str, int]:
        return {edge.key: i for i, edge in enumerate(self.network.edges)}

    @cached_property
    def node_number(self) -> dict[str, int]:
        return {node.id: i for i, node in enumerate(self.network.nodes)}

    @cached_property
    def corridor_of_group(self) -> tuple[int, ...]:
        result = [0] * len(self.network.groups)
        for number, corridor in enumerate(self.corridors):
            for group in corridor.groups:
                result[group] = number
        return tuple(result)

    @cached_property
    def sections_of_cell(self) -> dict[int, tuple[int, ...]]:
        """The sections of each cell; cells without a section are missing."""
        result: dict[int, tuple[int, ...]] = {}
        for number, section in enumerate(self.sections):
            for low, high in section.cells:
                for cell in range(low, high + 1):
                    result[cell] = (*result.get(cell, ()), number)
        return result

    @cached_property
    def sections_of_edge(self) -> dict[int, tuple[tuple[int, int, int], ...]]:
        """The stretches of each edge that are in sections: the section, the start of its first cell, and the end of the
        section; in the order of the sections. Edges without a section are missing."""
        result: dict[int, list[tuple[int, int, int]]] = {}
        for number, section in enumerate(self.sections):
            for member in section.members:
                for edge in self.network.groups[member.group].edges:
                    low, high = on_edge(self.network, edge, member.s0, member.s1)
                    first = int(self.cells.s0[self.cells.at(edge, low)])
                    result.setdefault(edge, []).append((number, first, high))
        return {edge: tuple(_joined(sorted(stretches))) for edge, stretches in sorted(result.items())}

    def vertices_m(self, edge: int) -> tuple[tuple[Decimal, Decimal], ...]:
        """The vertices of an edge in metres, cached, as every command contains them."""
        vertices = self._vertices.get(edge)
        if vertices is None:
            path = self.network.edges[edge].path
            vertices = self._vertices[edge] = tuple(zip(map(metres, path.x), map(metres, path.y), strict=True))
        return vertices

    @cached_property
    def _vertices(self) -> dict[int, tuple[tuple[Decimal, Decimal], ...]]:
        return {}

    def zone(self, node: int) -> int:
        """The number of a node's turning zone among the resources."""
        return len(self.cells) + node

    def token(self, section: int) -> int:
        """The number of a section's pseudo-cell among the resources."""
        return len(self.cells) + len(self.network.nodes) + section

    def excluded(self, resource: int) -> list[tuple[int, int]]:
        """The resources that no other truck may hold together with this one, as ranges, both ends included. A section
        excludes only itself, once its capacity is used up. Raises `IndexError` for an unknown number."""
        beyond = resource - len(self.conflicts)
        if not 0 <= resource < self.token(len(self.sections)):
            raise IndexError(f"there is no resource {resource}")
        return self.conflicts.ranges(resource) if beyond < 0 else [(resource, resource)]

    def blocking(self, resource: int) -> list[int]:
        """All resources that another truck must not hold together with this one, in ascending order: what it excludes,
        and for a cell what the following gap adds. A section blocks itself once its capacity is used up."""
        ranges = self.excluded(resource)
        if resource < len(self.cells):
            ranges = merged([*ranges, *self.following.ranges(resource)])
        return [number for low, high in ranges for number in range(low, high + 1)]

    def capacity(self, resource: int) -> int:
        """How many trucks may hold a resource at a time: one, except for sections with a greater capacity."""
        beyond = resource - len(self.conflicts)
        return 1 if beyond < 0 else self.sections[beyond].capacity

    def cell_name(self, cell: int) -> str:
        edge = int(self.cells.edge[cell])
        return f"{self.network.edges[edge].key}#{cell - int(self.cells.first[edge])}"

    def resource_name(self, resource: int) -> str:
        """`LM1->LM2#7`, `NODE:LM1` or `CS:SPUR-AP1`."""
        beyond = resource - len(self.cells)
        if beyond < 0:
            return self.cell_name(resource)
        if beyond < len(self.network.nodes):
            return f"NODE:{self.network.nodes[beyond].id}"
        return f"CS:{self.sections[beyond - len(self.network.nodes)].id}"

    def standing_set(self, node: int, short_um: int = 0) -> list[int]:
        """The resources a truck holds while it rests in a node: the zone, and of each way in the last cell and all
        cells that a release bound `short_um` before the node has not passed."""
        held = []
        for edge in self.network.incoming[node]:
            bound = self.network.edges[edge].path.length_um - short_um
            own = self.cells.of_edge(edge)
            held += [cell for cell in own if int(self.cells.s1[cell]) > bound or cell == own.stop - 1]
        return [*held, self.zone(node)]

    def stand(self, cell: int) -> Stand:
        return STANDS[self.standing.marks[cell]]

    def stand_reasons(self, cell: int) -> tuple[str, ...]:
        if self.stand(cell) is Stand.FREE:
            return ()
        return reasons(
            cell,
            cells=self.cells,
            network=self.network,
            zones=self.zones,
            sections=self.sections,
            conflicts=self.named,
            transitions=self.transitions,
        )


def _joined(stretches: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Join stretches of one section that touch."""
    result: list[tuple[int, int, int]] = []
    for section, low, high in stretches:
        if result and result[-1][0] == section and low <= result[-1][2]:
            result[-1] = (section, result[-1][1], max(result[-1][2], high))
        else:
            result.append((section, low, high))
    return result
