"""A compiled map as one picture: lanes with their directions, cells by where a truck may stand, turning discs,
conflicts, waiting places, stations and parking. A self-contained SVG; the same map gives the same bytes.

Layers are drawn from the floor up. Every part of the map has a tooltip with its id.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby

from pendula import svg
from pendula.fleet.exclusion.standing import plain_passage
from pendula.fleet.model import COMPILER_VERSION, CurveKind, MoveStyle
from pendula.fleet.network.graph import Edge
from pendula.fleet.pictures import sheet as ink
from pendula.fleet.pictures.highlight import (
    Highlight,
    Reasons,
    Spans,
    conflict_cells,
    edge_words,
    highlight_of,
    node_words,
    numbers,
    trucks,
)
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import MILLION, plain
from pendula.svg import Dot


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
