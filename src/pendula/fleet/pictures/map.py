"""A compiled map as one picture: lanes with their directions, cells by where a truck may stand, turning discs,
conflicts, waiting places, stations and parking. A self-contained SVG; the same map gives the same bytes.

Layers are drawn from the floor up. Every part of the map has a tooltip with its id.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from math import cos, hypot, sin

from msgspec import Struct

from pendula import svg
from pendula.fleet.map.corridors import plain_passage
from pendula.fleet.map.exclusion import Conflict, merged
from pendula.fleet.map.network import Edge
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import Envelope, RobotProfile, envelope_of
from pendula.fleet.model import COMPILER_VERSION, CurveKind, MoveStyle, Severity, Stand
from pendula.fleet.pictures import sheet as ink
from pendula.fleet.units import MILLION, plain
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import counted, suggestion
from pendula.svg import Dot

# The corners of a truck and of its safety envelope at a pose, in metres, for pictures and external checks.
# They are floats: no decision uses them.

Corners = tuple[tuple[float, float], ...]


def body_corners(profile: RobotProfile, x_m: float, y_m: float, yaw_rad: float) -> Corners:
    """The body itself: front left, rear left, rear right, front right."""
    half = profile.width_um / 2
    return _placed(profile.head_um, profile.tail_um, half, x_m, y_m, yaw_rad)


def envelope_corners(envelope: Envelope, x_m: float, y_m: float, yaw_rad: float) -> Corners:
    """The safety envelope, in the same order."""
    return _placed(envelope.front_um, envelope.rear_um, envelope.side_um, x_m, y_m, yaw_rad)


def _placed(front: float, rear: float, side: float, x: float, y: float, yaw: float) -> Corners:
    c, s = cos(yaw), sin(yaw)
    local = ((front, side), (-rear, side), (-rear, -side), (front, -side))
    return tuple((x + (a * c - b * s) / 1e6, y + (a * s + b * c) / 1e6) for a, b in local)


# Parts of a map by id, and descriptions of edges, nodes and cells.
# Ids are those of the compiled map and of its findings: of nodes, edges, groups, corridors, conflicts, sections and
# cells, with or without the prefix of a resource id (`NODE:`, `EDGE_GROUP:`, `CONFLICT:`, `CS:`).

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


class Layer(StrEnum):
    """Layers of the picture; the names are those of the command line."""

    EDGES = "edges"
    ZONES = "zones"
    CELLS = "cells"
    CONFLICTS = "conflicts"
    STANDS = "stands"
    LABELS = "labels"


EVERYTHING = tuple(Layer)
TOP = 124.0
# From these scales on (pixels per metre) cells are drawn one by one, and lanes have labels.
_CELL_BY_CELL = 16.0
_LABELLED = 16.0
# The distance of arrows on a lane.
_ARROW_EVERY_UM = 8_000_000
_MOST_LISTED = 12


def map_svg(site: CompiledMap, layers: Iterable[Layer] = EVERYTHING, highlight: Sequence[str] = ()) -> str:
    """The map as an SVG; raises `UnknownPart` for an unknown id in `highlight`."""
    highlights = [highlight_of(site, part) for part in highlight]
    return _Picture(site, frozenset(layers), highlights).drawn()


class _Picture:
    """One drawing of one map; layers are lists of shapes."""

    def __init__(self, site: CompiledMap, layers: frozenset[Layer], shown: list[Highlight]) -> None:
        self.site = site
        self.layers = layers
        self.shown = shown
        self.sheet = ink.sheet_of(*bounds(site), TOP + 16 * len(shown))
        # Both directions of a lane are drawn side by side, each on its right.
        self.aside_px = min(max(0.34 * self.sheet.scale, 3.0), 8.0)
        self.strip_px = self.aside_px * 0.95
        self.spot_px = min(max(0.3 * self.sheet.scale, 3.6), 9.0)

    def drawn(self) -> str:
        parts = [*self._head(), *ink.grid(self.sheet)]
        dimmed = "dim" if self.shown else ""
        for layer, name, shapes in (
            (Layer.EDGES, "floor", self._floors),
            (Layer.ZONES, "zones", self._zones),
            (Layer.EDGES, "lanes", self._lanes),
            (Layer.CONFLICTS, "conflicts", self._conflicts),
            (Layer.CELLS, "cells", self._strips),
            (Layer.STANDS, "stands", self._stands),
            (Layer.EDGES, "arrows", self._arrows),
        ):
            if layer in self.layers:
                parts.append(ink.layer(name, shapes(), dimmed))
        for highlight in self.shown:
            parts.append(ink.layer("highlight", self._highlighted(highlight)))
        parts.append(ink.layer("nodes", self._nodes()))
        if Layer.LABELS in self.layers:
            parts.append(ink.layer(Layer.LABELS, self._labels()))
        foot, bottom = self._foot()
        summary = f"Map {self.site.map_id}: {numbers(self.site)}"
        return ink.document(self._width, bottom, [*parts, *foot], summary)

    @property
    def _width(self) -> float:
        return max(ink.LEAST_WIDTH, self.sheet.left + self.sheet.width + ink.MARGIN)

    # Parts around the map.

    def _head(self) -> list[str]:
        site, right = self.site, self._width - ink.MARGIN
        lines = [
            svg.words(ink.MARGIN, 42, ink.shortened(site.map_id, right - ink.MARGIN - 180, 21), "h1"),
            svg.words(right, 42, f"map compiler {COMPILER_VERSION}", "soft end"),
            svg.words(ink.MARGIN, 62, numbers(site), "soft"),
            svg.words(ink.MARGIN, 78, trucks(site), "soft"),
            svg.words(ink.MARGIN, 94, site.compiled_hash, "mono soft"),
        ]
        for place, shown in enumerate(self.shown):
            at = 114 + 16 * place
            lines.append(svg.box(ink.MARGIN, at - 9, 10, 10, "chosen"))
            lines.append(svg.words(ink.MARGIN + 16, at, shown.sentence, "name"))
        return lines

    def _foot(self) -> tuple[list[str], float]:
        """Scale bar, a truck to scale, the legend and the list of conflicts; and the bottom of all this."""
        envelope, sheet = self.site.envelope, self.sheet
        left, right = float(ink.MARGIN), self._width - ink.MARGIN
        long, broad = sheet.px(envelope.front_um + envelope.rear_um), sheet.px(2 * envelope.side_um)
        middle = sheet.top + sheet.height + 36 + max(broad / 2, 10)
        bar, wide = ink.scale_bar(sheet, left + 4, middle - 3)
        at = left + wide + 28
        truck = [
            svg.box(at, middle - broad / 2, long, broad, "rest", 2),
            svg.circle((at + sheet.px(envelope.rear_um), middle), 2, "bar"),
            ink.arrow((at + long - 6, middle), (1.0, 0.0), 6, "arrow"),
            svg.words(at + long + 8, middle + 4, "a truck with its margins, to scale; the dot is its pivot", "soft"),
        ]
        signs, y = ink.legend(self._signs(), left, middle + broad / 2 + 30, right)
        conflict_lines = self._conflict_list(left, y + 6)
        return [bar, *truck, *signs, *conflict_lines], y + 6 + (16 * len(conflict_lines) + 10 if conflict_lines else 0)

    def _conflict_list(self, x: float, y: float) -> list[str]:
        if Layer.CONFLICTS not in self.layers or not self.site.named:
            return []
        groups, named = self.site.network.groups, self.site.named
        lines = [
            f"{conflict.id}: {groups[conflict.a].key} and {groups[conflict.b].key}" for conflict in named[:_MOST_LISTED]
        ]
        if len(named) > _MOST_LISTED:
            lines.append(f"and {len(named) - _MOST_LISTED} more")
        shapes = [svg.words(x, y, "CONFLICTS", "h2")]
        return shapes + [svg.words(x, y + 16 * place, line, "soft") for place, line in enumerate(lines, 1)]

    def _signs(self) -> list[tuple[str, str, float]]:
        site, has = self.site, self.layers
        marks = set(site.standing.marks)
        nodes, edges = site.network.nodes, site.network.edges

        def strip(name: str) -> str:
            return svg.path("M0 0H26", name, 6)

        every = (
            (Layer.EDGES in has, "floor that envelopes sweep", svg.box(0, -7, 26, 14, "floor"), 26),
            (Layer.CELLS in has and 0 in marks, "cell: may be left standing", strip("free"), 26),
            (Layer.CELLS in has and 1 in marks, "unwanted", strip("unwanted"), 26),
            (Layer.CELLS in has and 2 in marks, "forbidden (section)", strip("forbidden"), 26),
            (Layer.EDGES in has, "driven forward", ink.arrow((7, 0), (1.0, 0.0), 9, "arrow"), 14),
            (
                Layer.EDGES in has and any(edge.style is MoveStyle.BACKWARD for edge in edges),
                "driven backward",
                ink.arrow((7, 0), (1.0, 0.0), 9, "reverse"),
                14,
            ),
            (Layer.ZONES in has, "turning disc", svg.circle((10, 0), 9, "zone"), 20),
            (
                Layer.CONFLICTS in has and bool(site.named),
                "conflict of two lanes",
                svg.box(0, -7, 26, 14, "clash") + svg.box(0, -7, 26, 14, "rim"),
                26,
            ),
            (
                Layer.STANDS in has and any(mouth.waiting for mouth in site.standing.mouths),
                "wait here (pivot) before a corridor",
                svg.path("M3 -8V8", "hold", 3),
                8,
            ),
            (True, "node", svg.circle((6, 0), 5, "spot"), 12),
            (any(node.station for node in nodes), "station", ink.station((8, 0), 8), 16),
            (any(node.parking for node in nodes), "parking", ink.parking((8, 0), 8), 16),
            (any(shown.excluded for shown in self.shown), "excluded by it", svg.box(0, -7, 26, 14, "excluded"), 26),
            (any(shown.following for shown in self.shown), "following gap", svg.box(0, -7, 26, 14, "following"), 26),
        )
        return [(label, sign, float(wide)) for occurs, label, sign, wide in every if occurs]

    # The layers.

    def _swept(self, low: int, high: int) -> Iterator[list[Dot]]:
        """The areas of neighbouring cells of one edge; on a straight edge they are one rectangle."""
        cells = self.site.cells
        edge = self.site.network.edges[int(cells.edge[low])]
        quads = cells.quads[int(cells.quad_first[low]) : int(cells.quad_first[high + 1])].tolist()
        if edge.path.kind is CurveKind.STRAIGHT and len(quads) > 1:
            first, last = quads[0], quads[-1]
            quads = [[last[0], first[1], first[2], last[3]]]
        for quad in quads:
            yield [self.sheet.dot(x, y) for x, y in quad]

    def _areas(self, spans: Spans) -> list[list[Dot]]:
        """The areas of ranges of cells, edge by edge."""
        cells = self.site.cells
        areas: list[list[Dot]] = []
        for low, high in spans:
            for _, run in groupby(range(low, high + 1), key=lambda cell: int(cells.edge[cell])):
                own = list(run)
                areas += self._swept(own[0], own[-1])
        return areas

    def _floors(self) -> list[str]:
        return [ink.area(self._areas(((0, len(self.site.cells) - 1),)) if len(self.site.cells) else [], "floor")]

    def _zones(self) -> list[str]:
        radius = self.sheet.px(self.site.zones.radius_um)
        discs = []
        for number, node in enumerate(self.site.network.nodes):
            if not node.turning:
                continue
            calm = plain_passage(self.site.network, self.site.transitions, number)
            disc = svg.circle(self.sheet.dot(node.at.x_um, node.at.y_um), radius, "zone calm" if calm else "zone")
            discs.append(svg.tooltip(f"NODE:{node.id}, turning disc {self.site.zones.radius_um / MILLION:.3f} m", disc))
        return discs

    def _aside(self, number: int) -> float:
        """Offset of a direction to the right of its path, in micrometres; 0 for a one-way lane."""
        group = self.site.network.groups[self.site.network.group_of[number]]
        return 0.0 if len(group.edges) == 1 else self.aside_px / self.sheet.scale * MILLION

    def _line(self, edge: Edge, low: int, high: int, aside_um: float) -> list[Dot]:
        return [self.sheet.dot(*ink.beside(edge.path, s, aside_um)) for s in ink.positions(edge.path, low, high)]

    def _lanes(self) -> list[str]:
        """Without the layer of cells, every direction is a line."""
        if Layer.CELLS in self.layers:
            return []
        lines = []
        for number, edge in enumerate(self.site.network.edges):
            steps = svg.trace(self._line(edge, 0, edge.path.length_um, self._aside(number) / 2))
            lines.append(svg.tooltip(edge_words(self.site, number), svg.path(steps, "lane")))
        return lines

    def _strips(self) -> list[str]:
        """The cells of every direction; neighbours with the same mark are joined."""
        site, strips, reasons = self.site, [], Reasons(self.site)
        for number in range(len(site.network.edges)):
            for stand, run in groupby(site.cells.of_edge(number), key=site.stand):
                own = list(run)
                shape = svg.path(self._strip(number, own), stand.value, self.strip_px)
                strips.append(svg.tooltip(reasons.words(own[0], own[-1]), shape))
        return strips

    def _strip(self, number: int, own: list[int]) -> str:
        edge, cells, aside = self.site.network.edges[number], self.site.cells, self._aside(number)
        if self.sheet.scale < _CELL_BY_CELL:
            return svg.trace(self._line(edge, int(cells.s0[own[0]]), int(cells.s1[own[-1]]), aside))
        # A thin gap between two cells.
        hair = int(0.6 / self.sheet.scale * MILLION)
        bounds = [(int(cells.s0[cell]) + hair, int(cells.s1[cell]) - hair) for cell in own]
        return "".join(svg.trace(self._line(edge, s0, s1, aside)) for s0, s1 in bounds if s0 < s1)

    def _arrows(self) -> list[str]:
        arrows = []
        size = max(self.strip_px * 1.25, 6.0)
        for number, edge in enumerate(self.site.network.edges):
            length, aside = edge.path.length_um, self._aside(number)
            if Layer.CELLS not in self.layers:
                aside /= 2
            count = max(1, length // _ARROW_EVERY_UM)
            heads = []
            for k in range(count):
                s = length * (2 * k + 1) // (2 * count)
                ux, uy = ink.ahead(edge.path, s)
                tip = self.sheet.dot(*ink.beside(edge.path, s, aside))
                classes = "arrow" if edge.style is MoveStyle.FORWARD else "reverse"
                heads.append(ink.arrow(tip, (ux, -uy), size, classes))
            arrows.append(svg.tooltip(edge_words(self.site, number), *heads))
        return arrows

    def _conflicts(self) -> list[str]:
        site, groups, shapes = self.site, self.site.network.groups, []
        for conflict in site.named:
            label = f"CONFLICT:{conflict.id}: {groups[conflict.a].key} and {groups[conflict.b].key} exclude each other"
            shapes.append(svg.tooltip(label, ink.area(self._areas(conflict_cells(site, conflict)), "clash")))
        return shapes

    def _stands(self) -> list[str]:
        """A bar across the lane where a truck waits for a corridor, at the end of the waiting cell."""
        site = self.site
        waits: dict[int, list[str]] = {}
        for mouth in site.standing.mouths:
            for cell in mouth.waiting:
                waits.setdefault(cell, []).append(site.corridors[mouth.corridor].id)
        bars = []
        for cell, corridors in sorted(waits.items()):
            number = int(site.cells.edge[cell])
            path, s, aside = site.network.edges[number].path, int(site.cells.s1[cell]), self._aside(number)
            reach = self.aside_px * 1.15 / self.sheet.scale * MILLION
            ends = [self.sheet.dot(*ink.beside(path, s, aside + side * reach)) for side in (-1, 1)]
            label = f"{site.cell_name(cell)}: wait here, pivot at {plain(s)} m, for {', '.join(sorted(corridors))}"
            bars.append(svg.tooltip(label, svg.path(svg.trace(ends), "hold", max(self.strip_px * 0.45, 1.6))))
        return bars

    def _highlighted(self, highlight: Highlight) -> list[str]:
        radius = self.sheet.px(self.site.zones.radius_um)
        nodes = [self.site.network.nodes[number].at for number in highlight.nodes]
        return [
            ink.area(self._areas(highlight.excluded), "excluded"),
            ink.area(self._areas(highlight.following), "following"),
            *(svg.circle(self.sheet.dot(at.x_um, at.y_um), radius, "chosen") for at in nodes),
            ink.area(self._areas(highlight.chosen), "chosen"),
        ]

    def _nodes(self) -> list[str]:
        shapes = []
        for number, node in enumerate(self.site.network.nodes):
            at = self.sheet.dot(node.at.x_um, node.at.y_um)
            if node.station:
                shape = ink.station(at, self.spot_px)
            elif node.parking:
                shape = ink.parking(at, self.spot_px)
            else:
                shape = svg.circle(at, self.spot_px * 0.6, "spot")
            shapes.append(svg.tooltip(node_words(self.site, number), shape))
        return shapes

    def _labels(self) -> list[str]:
        """Names of nodes, stations and parking first, then lengths and sections of lanes."""
        labels, network = ink.Labels(self.sheet), self.site.network
        size = min(max(self.sheet.scale * 0.45, 8.0), 13.0)
        order = sorted(range(len(network.nodes)), key=lambda node: (not self._has_purpose(node), node))
        parts = [self._node_label(labels, number, size) for number in order]
        if self.sheet.scale < _LABELLED:
            return parts
        for number in range(len(network.groups)):
            parts.append(self._lane_label(labels, number))
        return parts

    def _has_purpose(self, number: int) -> bool:
        node = self.site.network.nodes[number]
        return node.station or node.parking

    def _node_label(self, labels: ink.Labels, number: int, size: float) -> str:
        """The name of a node, on the side with the fewest lanes."""
        network, node = self.site.network, self.site.network.nodes[number]
        ways = [ink.ahead(network.edges[edge].path, 0) for edge in network.outgoing[number]]
        ways += [ink.back(network.edges[edge].path) for edge in network.incoming[number]]
        side = min(_SIDES, key=lambda at: round(max((at[0] * x + at[1] * y for x, y in ways), default=0.0), 6))
        x, y = self.sheet.dot(node.at.x_um, node.at.y_um)
        away = self.spot_px + 4
        if network.degree(number) > 1:
            # Clear of the strips, even in a corner between two lanes.
            away = (self.aside_px + self.strip_px / 2 + 3) * (1.41 if abs(side[0]) == _HALF else 1.0)
        x, y = x + side[0] * away, y - side[1] * away + size * (0.35 if abs(side[1]) < 0.1 else 0.7 * (side[1] < 0))
        anchor = 0 if abs(side[0]) < 0.1 else 1 if side[0] > 0 else -1
        return labels.place(x, y, node.id, anchor, "name", size)

    def _lane_label(self, labels: ink.Labels, number: int) -> str:
        """The length beside the middle of a lane, and the section it belongs to."""
        site, group = self.site, self.site.network.groups[number]
        edge = site.network.edges[group.edges[0]]
        middle = edge.path.length_um // 2
        inside = site.sections_of_cell.get(site.cells.at(group.edges[0], middle), ())
        words = [
            f"{plain((group.length_um + 5_000) // 10_000 * 10_000)} m",
            *(site.sections[section].id for section in inside),
        ]
        across = abs(ink.ahead(edge.path, middle)[1]) <= 0.7
        out = site.envelope.side_um + (5 if across else 7) / self.sheet.scale * MILLION
        # Above a lane or right of it, unless fewer cells are on the other side.
        sides = sorted(
            (ink.beside(edge.path, middle, side) for side in (out, -out)), key=lambda at: at[across], reverse=True
        )
        place = min(sides, key=self._floor_at)
        x, y = self.sheet.dot(*place)
        below = place is sides[1]
        anchor = 0 if across else -1 if below else 1
        return labels.place(x, y + (3 if not across else 8 if below else 0), " · ".join(words), anchor, "soft", 10)

    def _floor_at(self, at: Dot) -> int:
        """The approximate number of cells that reach a point."""
        frame, (x, y) = self.site.cells.boxes(), at
        inside = (frame[:, 0] <= x) & (x <= frame[:, 2]) & (frame[:, 1] <= y) & (y <= frame[:, 3])
        return int(inside.sum())


_HALF = 0.7071
# Sides of a node for its name, in the order of preference.
_SIDES = (
    *((_HALF, _HALF), (1.0, 0.0), (0.0, 1.0), (_HALF, -_HALF)),
    *((0.0, -1.0), (-_HALF, _HALF), (-1.0, 0.0), (-_HALF, -_HALF)),
)


def bounds(site: CompiledMap) -> tuple[tuple[int, int], tuple[int, int]]:
    """The lower left and upper right corner of the picture, in micrometres."""
    radius = site.zones.radius_um
    x = [node.at.x_um + side for node in site.network.nodes for side in (-radius, radius)]
    y = [node.at.y_um + side for node in site.network.nodes for side in (-radius, radius)]
    if len(site.cells):
        frame = site.cells.boxes()
        x += [int(frame[:, 0].min()), int(frame[:, 2].max())]
        y += [int(frame[:, 1].min()), int(frame[:, 3].max())]
    return (min(x, default=0), min(y, default=0)), (max(x, default=0), max(y, default=0))


# A moment of a run as a picture: the map, every truck with its envelope and stop line, and an arrow to its blocker.

_END = "</svg>"
_WAITS, _GOES = "#c2410c", "#1d4ed8"


@dataclass(frozen=True, slots=True)
class ShownTruck:
    """A truck at a moment. `stop_um` is its stop line, `blocker` the blocking truck, `sentence` its tooltip."""

    robot_id: str
    profile: RobotProfile
    x_m: float
    y_m: float
    yaw_rad: float
    stop_um: tuple[int, int] | None = None
    blocker: str | None = None
    sentence: str = ""


def moment_svg(site: CompiledMap, trucks: Sequence[ShownTruck], layers: Iterable[Layer] = EVERYTHING) -> str:
    """The map with its trucks on it; the same moment gives the same bytes."""
    sheet = ink.sheet_of(*bounds(site), TOP)
    places = {truck.robot_id: sheet.dot(truck.x_m * 1e6, truck.y_m * 1e6) for truck in trucks}
    shapes = [shape for truck in trucks for shape in _truck(sheet, truck, places)]
    picture = map_svg(site, layers)
    end = picture.rindex(_END)
    return picture[:end] + ink.layer("trucks", shapes) + "\n" + picture[end:]


def _truck(sheet: ink.Sheet, truck: ShownTruck, places: dict[str, tuple[float, float]]) -> list[str]:
    colour = _GOES if truck.blocker is None else _WAITS
    pose = truck.x_m, truck.y_m, truck.yaw_rad
    around = _dots(sheet, envelope_corners(envelope_of(truck.profile), *pose))
    body = _dots(sheet, body_corners(truck.profile, *pose))
    at = places[truck.robot_id]
    shapes = [
        _outline(around, f"fill:{colour};fill-opacity:.15;stroke:{colour};stroke-dasharray:3 2"),
        _outline(body, f"fill:{colour};fill-opacity:.85"),
    ]
    # Above the envelope, where it is readable.
    top = min(y for _, y in around)
    shapes.append(svg.words(at[0], top - 4, truck.robot_id, "name halo middle"))
    drawn = [svg.tooltip(truck.sentence or truck.robot_id, *shapes)]
    if truck.stop_um is not None:
        x, y = sheet.dot(*truck.stop_um)
        drawn.append(f'<circle cx="{svg.number(x)}" cy="{svg.number(y)}" r="4" style="fill:none;stroke:{colour}"/>')
    if truck.blocker in places:
        drawn.append(_arrow(at, places[truck.blocker]))
    return drawn


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A dashed line with an arrow head just before the other truck."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    size = hypot(dx, dy) or 1.0
    ux, uy = dx / size, dy / size
    tip = end[0] - 8 * ux, end[1] - 8 * uy
    wings = [(tip[0] - 7 * ux + 4 * side * uy, tip[1] - 7 * uy - 4 * side * ux) for side in (1, -1)]
    way = svg.trace([start, tip])
    line = f'<path d="{way}" style="fill:none;stroke:{_WAITS};stroke-width:1.5;stroke-dasharray:6 3"/>'
    return line + _outline([tip, *wings], f"fill:{_WAITS}")


def _outline(dots: Sequence[tuple[float, float]], style: str) -> str:
    return f'<path d="{svg.trace(dots, closed=True)}" style="{style}"/>'


def _dots(sheet: ink.Sheet, corners: Corners) -> list[tuple[float, float]]:
    return [sheet.dot(x * 1e6, y * 1e6) for x, y in corners]
