"""Parts of a map by id, and descriptions of edges, nodes and cells.

Ids are those of the compiled map and of its findings: of nodes, edges, groups, corridors, conflicts, sections and
cells, with or without the prefix of a resource id (`NODE:`, `EDGE_GROUP:`, `CONFLICT:`, `CS:`).
"""

from collections.abc import Callable

from msgspec import Struct

from pendula.documents.faults import suggestion
from pendula.fleet.exclusion.conflicts import Conflict
from pendula.fleet.exclusion.relation import merged
from pendula.fleet.exclusion.standing import plain_passage
from pendula.fleet.model import MoveStyle, Severity, Stand
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import MILLION, plain
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import counted

Spans = tuple[tuple[int, int], ...]


class UnknownPart(InputRefused):
    """A map has no part with this id. Facts: `part`, `map_id`."""

    code = "unknown_map_part"


class Highlight(Struct, frozen=True):
    """Cells as ranges of numbers, both ends included: the part itself, cells it excludes, cells in the following
    gap."""

    sentence: str
    chosen: Spans = ()
    excluded: Spans = ()
    following: Spans = ()
    nodes: tuple[int, ...] = ()


def highlight_of(site: CompiledMap, part: str) -> Highlight:
    """The highlight of an id; raises `UnknownPart`."""
    prefix, _, rest = part.partition(":")
    find_kind = _FINDERS.get(prefix)
    if find_kind is not None and rest:
        highlight = find_kind(site, rest)
        if highlight is not None:
            return highlight
    for find in (_node, _edge, _group, _corridor, _conflict, _section, _cell):
        highlight = find(site, part)
        if highlight is not None:
            return highlight
    known = [*site.node_number, *site.edge_number, *(group.key for group in site.network.groups)]
    raise UnknownPart(
        f"The map {site.map_id!r} has no node, edge, group, corridor, conflict, section or cell {part!r}"
        f"{suggestion(part, known)}",
        part=part,
        map_id=site.map_id,
    )


def _node(site: CompiledMap, name: str) -> Highlight | None:
    number = site.node_number.get(name)
    if number is None:
        return None
    windows = [(window.cell0, window.cell1) for window in site.zones.by_node[number]]
    sentence = f"node {name}: what must be free while a truck turns there"
    return Highlight(sentence, excluded=tuple(merged(windows)), nodes=(number,))


def _edge(site: CompiledMap, key: str) -> Highlight | None:
    number = site.edge_number.get(key)
    if number is None:
        return None
    length = plain(site.network.edges[number].path.length_um)
    return Highlight(f"edge {key}, {length} m: the floor its envelope sweeps", _whole(site, number))


def _group(site: CompiledMap, key: str) -> Highlight | None:
    for group in site.network.groups:
        if group.key == key:
            spans = tuple(span for edge in group.edges for span in _whole(site, edge))
            return Highlight(f"group {key}, {plain(group.length_um)} m", spans)
    return None


def _corridor(site: CompiledMap, name: str) -> Highlight | None:
    for corridor in site.corridors:
        if corridor.id == name:
            edges = [edge for group in corridor.groups for edge in site.network.groups[group].edges]
            spans = tuple(span for edge in edges for span in _whole(site, edge))
            length = corridor.offsets[-1] + site.network.groups[corridor.groups[-1]].length_um
            return Highlight(f"corridor {name}, {plain(length)} m", spans, nodes=corridor.ends)
    return None


def _conflict(site: CompiledMap, name: str) -> Highlight | None:
    for conflict in site.named:
        if conflict.id == name:
            groups = site.network.groups
            sentence = f"conflict {name}: {groups[conflict.a].key} and {groups[conflict.b].key}"
            return Highlight(sentence, conflict_cells(site, conflict))
    return None


def _section(site: CompiledMap, name: str) -> Highlight | None:
    for section in site.sections:
        if section.id == name:
            trucks = "1 truck" if section.capacity == 1 else f"{section.capacity} trucks"
            return Highlight(f"section {name}: at most {trucks} at a time", section.cells)
    return None


def _cell(site: CompiledMap, name: str) -> Highlight | None:
    key, mark, place = name.rpartition("#")
    number = site.edge_number.get(key)
    # More digits than any edge has cells; int() rejects very long texts.
    if number is None or not mark or not place.isascii() or not place.isdigit() or len(place) > 9:
        return None
    own = site.cells.of_edge(number)
    cell = own.start + int(place)
    if cell not in own:
        return None
    count = len(site.cells)
    excluded = tuple((low, min(high, count - 1)) for low, high in site.conflicts.ranges(cell) if low < count)
    sentence = f"cell {name}: its swept area, what it excludes, and what keeps the following gap"
    return Highlight(sentence, ((cell, cell),), excluded, tuple(site.following.ranges(cell)))


def _whole(site: CompiledMap, edge: int) -> Spans:
    own = site.cells.of_edge(edge)
    return ((own.start, own.stop - 1),)


_FINDERS: dict[str, Callable[[CompiledMap, str], Highlight | None]] = {
    "NODE": _node,
    "EDGE_GROUP": _group,
    "CONFLICT": _conflict,
    "CS": _section,
}


def conflict_cells(site: CompiledMap, conflict: Conflict) -> Spans:
    """The cells of both lanes in the windows of a conflict."""
    return tuple((site.cells.at(edge, low), site.cells.at(edge, high - 1)) for edge, low, high in conflict.windows)


def numbers(site: CompiledMap) -> str:
    """The numbers of nodes, lanes, cells and other parts, in one line."""
    return ", ".join(
        (
            counted(len(site.network.nodes), "node"),
            counted(len(site.network.groups), "lane"),
            counted(len(site.network.edges), "directed edge"),
            counted(len(site.cells), "cell"),
            counted(len(site.corridors), "corridor"),
            counted(len(site.sections), "section"),
            counted(len(site.named), "conflict"),
            counted(sum(finding.severity is Severity.WARN for finding in site.findings), "warning"),
        )
    )


def trucks(site: CompiledMap) -> str:
    """The envelope for which the map was compiled."""
    envelope = site.envelope
    return (
        f"For trucks within {plain(envelope.front_um)} m ahead of the pivot, {plain(envelope.rear_um)} m behind, "
        f"{plain(envelope.side_um)} m to each side; turning disc {site.zones.radius_um / MILLION:.2f} m, "
        f"following gap {plain(envelope.gap_um)} m"
    )


def edge_words(site: CompiledMap, number: int) -> str:
    edge = site.network.edges[number]
    style = "" if edge.style is MoveStyle.FORWARD else ", driven backward"
    return f"{edge.key}, {plain(edge.path.length_um)} m{style}"


def node_words(site: CompiledMap, number: int) -> str:
    node = site.network.nodes[number]
    kinds = [node.kind, *(["station"] if node.station else []), *(["parking"] if node.parking else [])]
    place = f"({plain(node.at.x_um)}, {plain(node.at.y_um)})"
    return f"{node.id} {place}: {', '.join(kinds)}; {counted(site.network.degree(number), 'lane')}"


class Reasons:
    """Tooltips with the reasons why cells are not free, for many cells of one map."""

    def __init__(self, site: CompiledMap) -> None:
        self._site = site
        # For every edge the reasons of unwanted cells: resource id, first and last cell.
        self._unwanted: dict[int, list[tuple[str, int, int]]] = {}
        for number, node in enumerate(site.network.nodes):
            if not plain_passage(site.network, site.transitions, number):
                for window in site.zones.by_node[number]:
                    self._note(window.edge, f"NODE:{node.id}", window.cell0, window.cell1)
        for conflict in site.named:
            for low, high in conflict_cells(site, conflict):
                self._note(int(site.cells.edge[low]), f"CONFLICT:{conflict.id}", low, high)

    def _note(self, edge: int, name: str, low: int, high: int) -> None:
        self._unwanted.setdefault(edge, []).append((name, low, high))

    def words(self, low: int, high: int) -> str:
        """Describe neighbouring cells of one edge with the same mark: ids, metres, mark, reasons."""
        site, stand = self._site, self._site.stand(low)
        edge = int(site.cells.edge[low])
        first = int(site.cells.first[edge])
        cell_names = site.cell_name(low) + (f" to #{high - first}" if high > low else "")
        metres = f"{plain(int(site.cells.s0[low]))} to {plain(int(site.cells.s1[high]))} m"
        names: set[str] = set()
        if stand is Stand.FORBIDDEN:
            inside = {number for cell in range(low, high + 1) for number in site.sections_of_cell[cell]}
            names = {f"CS:{site.sections[number].id}" for number in inside}
        elif stand is Stand.UNWANTED:
            names = {name for name, a, b in self._unwanted.get(edge, ()) if a <= high and b >= low}
        return f"{cell_names}, {metres}: {stand.value}" + (f" ({', '.join(sorted(names))})" if names else "")
