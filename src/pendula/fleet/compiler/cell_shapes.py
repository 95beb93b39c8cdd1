"""The cells of a network with the areas they cover: edges cut, envelopes swept, corners grown by half the margin."""

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.compiler.kinks import kinks_of
from pendula.fleet.compiler.swept import kink_rects, straight_rects, swept_rects
from pendula.fleet.exclusion.cells import Cells, cut_lengths
from pendula.fleet.geometry.curves import Curve
from pendula.fleet.geometry.quadrangles import corners
from pendula.fleet.model import CompileParams
from pendula.fleet.network.graph import Edge, Network
from pendula.fleet.trucks.envelope import Envelope

Ints = NDArray[np.int64]


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
