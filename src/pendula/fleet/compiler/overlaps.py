"""Which swept areas meet, and where on every edge an envelope would enter the turning disc of a node."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from pendula.fleet.compiler.curves import Curve, Poses
from pendula.fleet.compiler.swept import Ends, Kink, kinks_of, pose_slack
from pendula.fleet.map.exclusion import Cells, Window, Zones, expanded, merged, zones_of_windows
from pendula.fleet.map.geometry import Path, boxes, distances_um, meet
from pendula.fleet.map.network import MAP_PAIRS, Edge, Network
from pendula.fleet.map.trucks import Envelope
from pendula.fleet.model import CompileParams, CurveKind

# Windows: the positions on every edge at which an envelope would enter the turning disc of a node.
# A window contains every pivot position whose envelope meets the disc. On straight pieces it is exact up to the
# outward rounding to micrometres; on curves it is widened by the slack of the poses.

# Lead, trail and side of an envelope.
Extents = tuple[float, float, float]
# Coordinates are whole micrometres and a touch counts: discs and envelopes are one micrometre larger than computed.
_GROWTH = 1.0


@dataclass(frozen=True, slots=True)
class _Disc:
    """The disc that must be free while a truck turns in a node, grown by the margin."""

    x: float
    y: float
    radius: float


def zones_of(
    network: Network, curves: tuple[Curve, ...], cells: Cells, envelope: Envelope, params: CompileParams
) -> Zones:
    """All windows and overlaps of the turning discs; raises `LimitExceeded` if too many discs overlap."""
    radius = envelope.turn_radius_um
    windows: list[Window] = []
    kinks = kinks_of(network, curves, envelope, params)
    for edge, near in _near(network, cells, radius, params.conflict_margin_um):
        for node in near:
            disc = _disc(network, node, envelope, params)
            spans = _spans(network.edges[edge], curves[edge], disc, envelope, params)
            spans += _kink_spans(network.edges[edge], kinks[edge], disc, envelope)
            windows += _windows(cells, node, edge, spans)
    windows.sort(key=lambda window: (window.node, window.edge, window.s0))
    return zones_of_windows(network, radius, tuple(windows))


def _near(network: Network, cells: Cells, radius: int, margin: int) -> list[tuple[int, list[int]]]:
    """For every edge the nodes whose discs come near its box: candidates for the exact test."""
    if not network.nodes or not network.edges:
        return []
    frame = cells.boxes()
    at = cells.first[:-1]
    low = np.minimum.reduceat(frame[:, :2], at, axis=0)
    high = np.maximum.reduceat(frame[:, 2:], at, axis=0)
    points = shapely.points([(node.at.x_um, node.at.y_um) for node in network.nodes])
    tree = shapely.STRtree(points)
    reach = radius + margin + 10
    areas = shapely.box(low[:, 0] - reach, low[:, 1] - reach, high[:, 0] + reach, high[:, 1] + reach)
    nodes_of: list[list[int]] = [[] for _ in network.edges]
    for edge, node in zip(*(column.tolist() for column in tree.query(areas)), strict=True):
        nodes_of[edge].append(node)
    return [(edge, sorted(nodes)) for edge, nodes in enumerate(nodes_of)]


def _disc(network: Network, node: int, envelope: Envelope, params: CompileParams) -> _Disc:
    centre = network.nodes[node].at
    radius = envelope.turn_radius_um + _GROWTH + params.conflict_margin_um
    return _Disc(float(centre.x_um), float(centre.y_um), radius)


def _windows(cells: Cells, node: int, edge: int, spans: list[tuple[int, int]]) -> Iterator[Window]:
    """The merged spans of an edge as windows, each with the first and the last cell it touches."""
    length = int(cells.s1[cells.first[edge + 1] - 1])
    for low, high in merged([(max(0, low), min(length, high)) for low, high in spans]):
        cell0 = cells.at(edge, low)
        if cell0 > cells.first[edge] and int(cells.s0[cell0]) == low:
            # A pivot at the end of the preceding cell is at the start of the window.
            cell0 -= 1
        yield Window(node, edge, low, high, cell0, cells.at(edge, high))


def _spans(edge: Edge, curve: Curve, disc: _Disc, envelope: Envelope, params: CompileParams) -> list[tuple[int, int]]:
    lead, trail = float(envelope.lead_um(edge.style)), float(envelope.trail_um(edge.style))
    side = envelope.side_um + _GROWTH
    spans: list[tuple[int, int]] = []
    if curve.kind is not CurveKind.BEZIER:
        spans = _leg_spans(edge.path, disc, (lead + _GROWTH, trail + _GROWTH, side))
    poses = curve.poses
    if poses is None:
        return spans
    slack = pose_slack(curve, envelope, params.bend_extra_um)
    # Between two poses of a leg the leg spans are exact; a corner is one position.
    spread = 1 if curve.kind is CurveKind.BEZIER else 0
    return spans + _pose_spans(poses, slack, disc, (lead, trail, side), spread)


def _kink_spans(edge: Edge, kinks: Ends, disc: _Disc, envelope: Envelope) -> list[tuple[int, int]]:
    """The ends of an edge at which a truck that turns through a kink meets the disc."""
    ends = ((0, kinks.start), (edge.path.length_um, kinks.end))
    return [(s, s) for s, kinks_at_end in ends if any(_kink_meets_disc(kink, disc, envelope) for kink in kinks_at_end)]


def _kink_meets_disc(kink: Kink, disc: _Disc, envelope: Envelope) -> bool:
    """Whether a truck that turns through the kink meets the disc."""
    extents = float(envelope.lead_um(kink.style)), float(envelope.trail_um(kink.style)), float(envelope.side_um)
    return bool(_pose_spans(kink.poses, kink.slack + _GROWTH, disc, extents, 0))


def _leg_spans(path: Path, disc: _Disc, extents: Extents) -> list[tuple[int, int]]:
    """On a leg the envelope slides: the window ends where its nose or its tail touches the disc."""
    lead, trail, side = extents
    radius = disc.radius
    spans = []
    for leg in range(len(path.s) - 1):
        start, end = path.s[leg], path.s[leg + 1]
        dx, dy = float(path.x[leg + 1] - path.x[leg]), float(path.y[leg + 1] - path.y[leg])
        size = float(np.sqrt(dx * dx + dy * dy))
        ux, uy = dx / size, dy / size
        ox, oy = disc.x - float(path.x[leg]), disc.y - float(path.y[leg])
        along, across = ox * ux + oy * uy, abs(oy * ux - ox * uy)
        gap = max(0.0, across - side)
        if gap > radius:
            continue
        half = float(np.sqrt(radius * radius - gap * gap))
        low = start + int(np.floor(along - half - lead))
        high = start + int(np.ceil(along + half + trail))
        if low <= end and high >= start:
            spans.append((max(low, start), min(high, end)))
    return spans


def _pose_spans(
    poses: Poses, slack: NDArray[np.float64], disc: _Disc, extents: Extents, spread: int
) -> list[tuple[int, int]]:
    """Around every pose whose grown envelope meets the disc, from `spread` poses before it to as many after."""
    lead, trail, side = extents
    ox, oy = disc.x - poses.x, disc.y - poses.y
    along = ox * poses.ux + oy * poses.uy
    across = np.abs(oy * poses.ux - ox * poses.uy)
    past = np.maximum(np.maximum(along - lead - slack, -along - trail - slack), 0.0)
    beside = np.maximum(across - side - slack, 0.0)
    hit = np.flatnonzero(past * past + beside * beside <= disc.radius * disc.radius)
    last = len(poses.s) - 1
    low = np.floor(poses.s[np.maximum(hit - spread, 0)]).astype(np.int64).tolist()
    high = np.ceil(poses.s[np.minimum(hit + spread, last)]).astype(np.int64).tolist()
    return list(zip(low, high, strict=True))


# Which swept areas meet, and the distances of the others.
# A tree of bounding boxes proposes pairs; separating axes on integers decide. The result is sorted, so it does not
# depend on the order of the tree.

Ints = NDArray[np.int64]
_FIRST_ROWS, _ROWS = 64, 2048
_PAIRS = 1_000_000


def overlapping(cells: Cells, among: Ints | None = None) -> tuple[Ints, Ints]:
    """Pairs (i, j), i < j, of cells whose swept areas meet; if `among` is given, only pairs with one of its cells.

    Raises `LimitExceeded` when a dense map has too many pairs.
    """
    found_i: list[Ints] = []
    found_j: list[Ints] = []
    frames = boxes(cells.quads)
    for i, j in _candidates(cells, among):
        hit = _meeting(cells, frames, i, j)
        found_i.append(i[hit])
        found_j.append(j[hit])
    none = [np.zeros(0, dtype=np.int64)]
    i, j = np.concatenate(found_i or none), np.concatenate(found_j or none)
    order = np.lexsort((j, i))
    return i[order], j[order]


def _candidates(cells: Cells, among: Ints | None) -> Iterator[tuple[Ints, Ints]]:
    """Pairs whose bounding boxes meet, in batches."""
    frame = cells.boxes().astype(np.float64)
    shapes = shapely.box(frame[:, 0], frame[:, 1], frame[:, 2], frame[:, 3])
    tree = shapely.STRtree(shapes)
    rows = np.arange(len(cells), dtype=np.int64) if among is None else among
    selected = np.zeros(len(cells), dtype=np.bool_)
    selected[rows] = True
    total, low, portion = 0, 0, _FIRST_ROWS
    while low < len(rows):
        part = rows[low : low + portion]
        near, other = tree.query(shapes[part])
        low += portion
        # Smaller batches where cells are dense: the answer of the tree must fit into memory before it is counted.
        portion = min(_ROWS, max(1, _PAIRS * len(part) // max(1, len(near))))
        i, j = part[near], other.astype(np.int64)
        # A pair of two selected cells occurs twice, any other pair once.
        keep = (i < j) | (~selected[j] & (i != j))
        i, j = i[keep], j[keep]
        total += len(i)
        MAP_PAIRS.check(total)
        yield np.minimum(i, j), np.maximum(i, j)


def _meeting(cells: Cells, frames: Ints, i: Ints, j: Ints) -> NDArray[np.bool_]:
    """Whether any quadrangle of cell i meets any of cell j, pair by pair."""
    counts = cells.quad_first[1:] - cells.quad_first[:-1]
    # Most pairs of curved cells meet in their middles; only the others need all combinations.
    middle = cells.quad_first[:-1] + counts // 2
    result = meet(cells.quads[middle[i]], cells.quads[middle[j]])
    size = counts[i] * counts[j]
    left = np.flatnonzero(~result & (size > 1))
    ends = np.cumsum(size[left])
    low = 0
    while low < len(left):
        base = int(ends[low] - size[left[low]])
        high = max(low + 1, int(np.searchsorted(ends, base + _PAIRS, side="right")))
        part = left[low:high]
        result[part] = _quads_meet(cells, frames, i[part], j[part], counts)
        low = high
    return result


def _quads_meet(cells: Cells, frames: Ints, i: Ints, j: Ints, counts: Ints) -> NDArray[np.bool_]:
    size = counts[i] * counts[j]
    pair, inside = expanded(np.arange(len(i), dtype=np.int64), np.zeros(len(i), dtype=np.int64), size - 1)
    of_j = counts[j][pair]
    a = cells.quad_first[i][pair] + inside // of_j
    b = cells.quad_first[j][pair] + inside % of_j
    for low, high in ((0, 2), (1, 3)):
        close = (frames[a, low] <= frames[b, high]) & (frames[b, low] <= frames[a, high])
        pair, a, b = pair[close], a[close], b[close]
    hit = np.zeros(len(i), dtype=np.bool_)
    hit[pair[meet(cells.quads[a], cells.quads[b])]] = True
    return hit


def distances(cells: Cells, i: Ints, j: Ints) -> NDArray[np.float64]:
    """The distance of the swept areas of every pair of cells, in micrometres."""
    counts = cells.quad_first[1:] - cells.quad_first[:-1]
    result = np.zeros(len(i))
    for low in range(0, len(i), _ROWS):
        first, second = i[low : low + _ROWS], j[low : low + _ROWS]
        size = counts[first] * counts[second]
        pair, inside = expanded(np.arange(len(first), dtype=np.int64), np.zeros(len(first), dtype=np.int64), size - 1)
        of_second = counts[second][pair]
        a = cells.quads[cells.quad_first[first][pair] + inside // of_second]
        b = cells.quads[cells.quad_first[second][pair] + inside % of_second]
        result[low : low + _ROWS] = np.minimum.reduceat(distances_um(a, b), np.cumsum(size) - size)
    return result
