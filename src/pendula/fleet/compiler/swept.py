"""The area an envelope sweeps in a cell, the cells of a network with their areas, and bends in nodes."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.compiler.curves import Curve, Poses, fan_poses
from pendula.fleet.map.exclusion import Cells, cut_lengths
from pendula.fleet.map.geometry import Rects, corners, turn_urad
from pendula.fleet.map.network import Edge, Network
from pendula.fleet.map.trucks import Envelope
from pendula.fleet.model import CompileParams, CurveKind, MoveStyle

# Bends in nodes that a truck passes without stopping: it turns on one point, and both cells must contain the turn.


@dataclass(frozen=True)
class Kink:
    """The headings between two edges in their node, and by how much the envelope grows at each."""

    poses: Poses
    slack: NDArray[np.float64]
    style: MoveStyle


@dataclass(frozen=True)
class Ends:
    """The kinks in the start node and in the end node of an edge."""

    start: list[Kink]
    end: list[Kink]


def kinks_of(network: Network, curves: tuple[Curve, ...], envelope: Envelope, params: CompileParams) -> list[Ends]:
    """For every edge the kinks at both ends whose bend is within `tangentEps`."""
    ends = [Ends([], []) for _ in network.edges]
    for i, edge in enumerate(network.edges):
        for j in network.outgoing[edge.end]:
            onward = network.edges[j]
            bend = abs(turn_urad(edge.path.yaws[-1][1], onward.path.yaws[0][0]))
            if onward.style is not edge.style or not 1 < bend <= params.tangent_eps_urad:
                continue
            at = network.nodes[edge.end].at
            poses = fan_poses(float(at.x_um), float(at.y_um), curves[i].end_direction, curves[j].start_direction)
            gap = envelope.turn_radius_um * poses.turn
            slack = np.maximum(np.concatenate([gap[:1], gap]), np.concatenate([gap, gap[-1:]])) + 1.0
            kink = Kink(poses, slack, edge.style)
            ends[i].end.append(kink)
            ends[j].start.append(kink)
    return ends


# The area an envelope sweeps while the pivot is in a cell, as oriented rectangles that contain it.
# Straight edges are exact: moving a rectangle along its axis sweeps a rectangle. On curves every pose is grown by its
# slack, and neighbouring poses are merged into one rectangle around all their corners, which only enlarges it
# (MERGE).

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
# Poses in one merged rectangle: ten gaps are about 0.1 m of a curve.
GAPS_PER_RECT = 10


def sweep_slack(ds: float, curvature: float, r_corner: float, chord_error: float) -> float:
    """`sweepSlackM` of a curve of constant curvature, all in one unit of length: the least growth of a pose."""
    return ds / 2.0 * (1.0 + curvature * r_corner) + chord_error


def pose_slack(curve: Curve, envelope: Envelope, extra_um: int) -> Floats:
    """SLACK of every pose: reach, the movement of the farthest corner in the turn, and the error of the polyline.

    For constant curvature, reach is ds/2 and turn is ds * curvature: never less than `sweep_slack`.
    """
    poses = curve.poses
    assert poses is not None
    gap = poses.reach + envelope.turn_radius_um * poses.turn
    either = np.maximum(np.concatenate([gap[:1], gap]), np.concatenate([gap, gap[-1:]]))
    grown: Floats = either + (curve.chord_error + extra_um)
    return grown


def swept_rects(
    curve: Curve, s0: Ints, s1: Ints, style: MoveStyle, envelope: Envelope, extra_um: int, most: int
) -> tuple[Rects, Ints]:
    """Rectangles of every cell [s0, s1] of an edge, and the cell number (from 0) of each."""
    lead, trail = float(envelope.lead_um(style)), float(envelope.trail_um(style))
    side = float(envelope.side_um)
    if curve.poses is None:
        x, y = curve.path.x[0], curve.path.y[0]
        columns = [np.full(len(s0), float(value)) for value in (x, y, *curve.start_direction, lead, trail)]
        rects = straight_rects(
            (columns[0], columns[1]), (columns[2], columns[3]), s0, s1, (columns[4], columns[5]), side
        )
        return rects, np.arange(len(s0), dtype=np.int64)
    slack = pose_slack(curve, envelope, extra_um)
    poses = curve.poses
    if curve.kind is CurveKind.POLYLINE:
        poses, slack = _with_poses_at(poses, slack, np.unique(np.concatenate([s0, s1])))
        first, last, owner = _leg_pieces(poses, s0, s1, most)
    else:
        first, last, owner = _even_pieces(poses, s0, s1, most)
    return _merged(poses=poses, slack=slack, first=first, last=last, lead=lead, trail=trail, side=side), owner


def kink_rects(kink: Kink, envelope: Envelope) -> Rects:
    """The area an envelope covers while it turns through a kink."""
    poses, slack, style = kink.poses, kink.slack, kink.style
    first = np.arange(0, len(poses.s) - 1, GAPS_PER_RECT, dtype=np.int64)
    last = np.minimum(first + GAPS_PER_RECT, len(poses.s) - 1)
    lead, trail = float(envelope.lead_um(style)), float(envelope.trail_um(style))
    return _merged(
        poses=poses, slack=slack, first=first, last=last, lead=lead, trail=trail, side=float(envelope.side_um)
    )


def straight_rects(
    start: tuple[Floats, Floats],
    direction: tuple[Floats, Floats],
    s0: Ints,
    s1: Ints,
    reach: tuple[Floats, Floats],
    side: float,
) -> Rects:
    """Rectangles of cells of straight edges; `start`, `direction` and `reach` (lead, trail) have a row per cell."""
    (x, y), (ux, uy), (lead, trail) = start, direction, reach
    back, ahead = s0 - trail, s1 + lead
    middle = (back + ahead) / 2.0
    return Rects(x + ux * middle, y + uy * middle, ux, uy, (ahead - back) / 2.0, np.full(len(s0), side))


def _even_pieces(poses: Poses, s0: Ints, s1: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """Pieces of about ten gaps. A cell takes one more pose at both ends (OVERLAP), which covers the difference between
    the arc lengths of the curve and of its polyline."""
    low = np.maximum(np.searchsorted(poses.s, s0, side="right") - 2, 0)
    high = np.minimum(np.searchsorted(poses.s, s1, side="left") + 1, len(poses.s) - 1)
    gaps = high - low
    pieces = np.minimum(-(-gaps // GAPS_PER_RECT), most)
    owner = np.repeat(np.arange(len(s0), dtype=np.int64), pieces)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    first = low[owner] + number * gaps[owner] // pieces[owner]
    last = low[owner] + (number + 1) * gaps[owner] // pieces[owner]
    return first, last, owner


def _leg_pieces(poses: Poses, s0: Ints, s1: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """A piece for every leg and for every ten headings of a corner; evenly cut where that exceeds `most`."""
    rows: list[tuple[int, int, int]] = []
    moves = poses.s[1:] > poses.s[:-1]
    for cell in range(len(s0)):
        low = int(np.searchsorted(poses.s, s0[cell], side="left"))
        high = int(np.searchsorted(poses.s, s1[cell], side="right")) - 1
        cuts = [low]
        for at in range(low, high):
            if at > cuts[-1] and (moves[at] or moves[at - 1] or at - cuts[-1] >= GAPS_PER_RECT):
                cuts.append(at)
        cuts.append(high)
        if len(cuts) - 1 > most:
            cuts = [low + (high - low) * k // most for k in range(most + 1)]
        rows += [(a, b, cell) for a, b in pairwise(cuts)]
    table = np.array(rows, dtype=np.int64).T
    return table[0], table[1], table[2]


def _with_poses_at(poses: Poses, slack: Floats, positions: Ints) -> tuple[Poses, Floats]:
    """The poses of a polyline, with one added wherever a cell begins or ends inside a leg."""
    new = np.setdiff1d(positions, np.rint(poses.s).astype(np.int64)).astype(np.float64)
    after = np.searchsorted(poses.s, new, side="left")
    before = after - 1
    part = (new - poses.s[before]) / (poses.s[after] - poses.s[before])
    x = poses.x[before] + (poses.x[after] - poses.x[before]) * part
    y = poses.y[before] + (poses.y[after] - poses.y[before]) * part
    extended = Poses(
        s=np.insert(poses.s, after, new),
        x=np.insert(poses.x, after, x),
        y=np.insert(poses.y, after, y),
        ux=np.insert(poses.ux, after, poses.ux[before]),
        uy=np.insert(poses.uy, after, poses.uy[before]),
        reach=np.insert(poses.reach, before, 0.0),
        turn=np.insert(poses.turn, before, 0.0),
    )
    # A leg adds no slack: between two of its poses the envelope only slides.
    return extended, np.insert(slack, after, np.minimum(slack[before], slack[after]))


def _merged(poses: Poses, slack: Floats, first: Ints, last: Ints, lead: float, trail: float, side: float) -> Rects:
    """One rectangle for each run of poses, along the heading of its middle pose, around all their grown corners."""
    middle = (first + last) // 2
    mx, my = poses.x[middle], poses.y[middle]
    ux, uy = poses.ux[middle], poses.uy[middle]
    low_x = np.full(len(first), np.inf)
    low_y = np.full(len(first), np.inf)
    high_x, high_y = -low_x, -low_y
    for step in range(int((last - first).max()) + 1):
        at = np.minimum(first + step, last)
        grown = slack[at]
        tx, ty = poses.x[at] - mx, poses.y[at] - my
        px, py = tx * ux + ty * uy, ty * ux - tx * uy
        cosine = poses.ux[at] * ux + poses.uy[at] * uy
        sine = poses.uy[at] * ux - poses.ux[at] * uy
        for along in (lead + grown, -(trail + grown)):
            for across in (side + grown, -(side + grown)):
                x, y = px + along * cosine - across * sine, py + along * sine + across * cosine
                low_x, high_x = np.minimum(low_x, x), np.maximum(high_x, x)
                low_y, high_y = np.minimum(low_y, y), np.maximum(high_y, y)
    ox, oy = (low_x + high_x) / 2.0, (low_y + high_y) / 2.0
    return Rects(
        mx + ox * ux - oy * uy,
        my + ox * uy + oy * ux,
        ux,
        uy,
        (high_x - low_x) / 2.0,
        (high_y - low_y) / 2.0,
    )


# The cells of a network with the areas they cover: edges cut, envelopes swept, corners grown by half the margin.


def cut(network: Network, curves: tuple[Curve, ...], envelope: Envelope, params: CompileParams) -> Cells:
    """The cells of a network with their swept areas."""
    edge, s0, s1, first = cut_lengths([edge.path.length_um for edge in network.edges], params.cell_len_um)
    if not len(edge):
        return Cells(edge, s0, s1, first, np.zeros((0, 4, 2), dtype=np.int64), np.zeros(1, dtype=np.int64))
    corner, owner = _straight_quads(
        network=network, curves=curves, edge=edge, s0=s0, s1=s1, envelope=envelope, params=params
    )
    quads, owners = [corner], [owner]
    for i, network_edge in enumerate(network.edges):
        if curves[i].poses is not None:
            low, high = first[i], first[i + 1]
            corner, owner = swept_quads(network_edge, curves[i], s0[low:high], s1[low:high], envelope, params)
            quads.append(corner)
            owners.append(owner + low)
    margin = params.conflict_margin_um / 2.0
    for i, ends in enumerate(kinks_of(network, curves, envelope, params)):
        for cell, kinks in ((first[i], ends.start), (first[i + 1] - 1, ends.end)):
            for kink in kinks:
                corner = corners(kink_rects(kink, envelope), margin)
                quads.append(corner)
                owners.append(np.full(len(corner), cell, dtype=np.int64))
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    quad_first = np.searchsorted(owner[order], np.arange(len(edge) + 1)).astype(np.int64)
    return Cells(edge, s0, s1, first, np.concatenate(quads)[order], quad_first)


def _straight_quads(
    network: Network,
    curves: tuple[Curve, ...],
    edge: Ints,
    s0: Ints,
    s1: Ints,
    envelope: Envelope,
    params: CompileParams,
) -> tuple[Ints, Ints]:
    """The quadrangles of the cells of all straight edges, and their cells: vectorised, as most edges are straight."""
    table = np.array(
        [
            (
                float(curve.poses is None),
                *(float(network_edge.path.x[0]), float(network_edge.path.y[0])),
                *curve.start_direction,
                *(float(envelope.lead_um(network_edge.style)), float(envelope.trail_um(network_edge.style))),
            )
            for network_edge, curve in zip(network.edges, curves, strict=True)
        ]
    )
    rows = np.flatnonzero(table[edge, 0]).astype(np.int64)
    x, y, ux, uy, lead, trail = table[edge[rows], 1:].T
    rects = straight_rects((x, y), (ux, uy), s0[rows], s1[rows], (lead, trail), float(envelope.side_um))
    return corners(rects, params.conflict_margin_um / 2.0), rows


def swept_quads(
    edge: Edge, curve: Curve, s0: Ints, s1: Ints, envelope: Envelope, params: CompileParams
) -> tuple[Ints, Ints]:
    """The quadrangles of the cells of one edge and the cell number of each, from 0."""
    rects, owner = swept_rects(
        curve=curve,
        s0=s0,
        s1=s1,
        style=edge.style,
        envelope=envelope,
        extra_um=params.bend_extra_um,
        most=params.max_rects_per_cell,
    )
    # Two shapes grown by half the margin each meet when they come closer than the margin.
    return corners(rects, params.conflict_margin_um / 2.0), owner
