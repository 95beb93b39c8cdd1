"""Cells: every directed edge cut into short ranges of pivot positions, each with the area its envelope may cover.

Edges come in the order of their keys and cells along their edge, so the cells of an edge are a range of numbers, and
so are most conflict sets.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.compiler.kinks import kinks_of
from pendula.fleet.compiler.swept import kink_rects, straight_rects, swept_rects
from pendula.fleet.geometry.curves import Curve
from pendula.fleet.geometry.quadrangles import boxes, corners
from pendula.fleet.model import CompileParams
from pendula.fleet.network.graph import Edge, Network
from pendula.fleet.trucks.envelope import Envelope

Ints = NDArray[np.int64]

# A rest at the end of an edge that is shorter than this joins the cell before it.
SLIVER_UM = 50_000


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """All cells as columns. The quadrangles of cell c are rows `quad_first[c]` to `quad_first[c + 1]` of `quads`."""

    edge: Ints
    s0: Ints
    s1: Ints
    # Cells of edge e are first[e] to first[e + 1].
    first: Ints
    quads: Ints
    quad_first: Ints

    def __len__(self) -> int:
        return len(self.edge)

    def of_edge(self, edge: int) -> range:
        return range(int(self.first[edge]), int(self.first[edge + 1]))

    def at(self, edge: int, s_um: int) -> int:
        """The cell in which a pivot at `s_um` is; the end of an edge belongs to its last cell."""
        low, high = int(self.first[edge]), int(self.first[edge + 1])
        return low + max(0, int(np.searchsorted(self.s0[low:high], s_um, side="right")) - 1)

    def boxes(self) -> Ints:
        """The bounding box of every cell."""
        every = boxes(self.quads)
        at = self.quad_first[:-1]
        low = np.minimum.reduceat(every[:, :2], at, axis=0)
        high = np.maximum.reduceat(every[:, 2:], at, axis=0)
        return np.concatenate([low, high], axis=1)


def boundaries(length_um: int, cell_len_um: int) -> Ints:
    """Where the cells of an edge begin, and where the last one ends."""
    whole, rest = divmod(length_um, cell_len_um)
    if whole and rest < SLIVER_UM:
        whole, rest = whole - 1, rest + cell_len_um
    return np.append(np.arange(whole + 1, dtype=np.int64) * cell_len_um, length_um)


def cut(network: Network, curves: tuple[Curve, ...], envelope: Envelope, params: CompileParams) -> Cells:
    """All cells of a network, swept."""
    edge, s0, s1, first = cut_lengths([one.path.length_um for one in network.edges], params.cell_len_um)
    if not len(edge):
        return Cells(edge, s0, s1, first, np.zeros((0, 4, 2), dtype=np.int64), np.zeros(1, dtype=np.int64))
    corner, owner = _straight_quads(network, curves, edge, s0, s1, envelope, params)
    quads, owners = [corner], [owner]
    for i, one in enumerate(network.edges):
        if curves[i].poses is not None:
            low, high = first[i], first[i + 1]
            corner, owner = swept_quads(one, curves[i], s0[low:high], s1[low:high], envelope, params)
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
    """The quadrangles of the cells of all straight edges, and those cells: in one go, as most edges are straight."""
    table = np.array(
        [
            (
                float(curve.poses is None),
                *(float(one.path.x[0]), float(one.path.y[0])),
                *curve.start_direction,
                *(float(envelope.lead_um(one.style)), float(envelope.trail_um(one.style))),
            )
            for one, curve in zip(network.edges, curves, strict=True)
        ]
    )
    rows = np.flatnonzero(table[edge, 0]).astype(np.int64)
    x, y, ux, uy, lead, trail = table[edge[rows], 1:].T
    rects = straight_rects((x, y), (ux, uy), s0[rows], s1[rows], (lead, trail), float(envelope.side_um))
    return corners(rects, params.conflict_margin_um / 2.0), rows


def cut_lengths(lengths_um: list[int], cell_len_um: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Edge, start and end of every cell, and the first cell of every edge, for edges of these lengths."""
    bounds = [boundaries(length, cell_len_um) for length in lengths_um]
    counts = np.array([len(one) - 1 for one in bounds], dtype=np.int64)
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    edge = np.repeat(np.arange(len(bounds), dtype=np.int64), counts)
    none = [np.zeros(0, dtype=np.int64)]
    s0 = np.concatenate([one[:-1] for one in bounds] or none)
    s1 = np.concatenate([one[1:] for one in bounds] or none)
    return edge, s0, s1, first


def swept_quads(
    one: Edge, curve: Curve, s0: Ints, s1: Ints, envelope: Envelope, params: CompileParams
) -> tuple[Ints, Ints]:
    """The quadrangles of the cells of one edge and the cell of each, counted from 0."""
    rects, owner = swept_rects(curve, s0, s1, one.style, envelope, params.bend_extra_um, params.max_rects_per_cell)
    # Two shapes grown by half the margin each meet when they come closer than the margin.
    return corners(rects, params.conflict_margin_um / 2.0), owner
