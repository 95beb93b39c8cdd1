"""Cells: every directed edge cut into short ranges of pivot positions, each with its swept area.

Edges are in the order of their keys and cells in the order along their edge, so the cells of an edge are a range of
numbers, and so are most conflict sets. The compiler computes the areas (`compiler/cell_shapes`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.geometry.quadrangles import boxes

Ints = NDArray[np.int64]
# A shorter remainder at the end of an edge joins the cell before it.
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
        """The cell that contains the position `s_um`; the end of an edge belongs to its last cell."""
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
    """The starts of the cells of an edge, and the end of the last one."""
    whole, rest = divmod(length_um, cell_len_um)
    if whole and rest < SLIVER_UM:
        whole, rest = whole - 1, rest + cell_len_um
    bounds = np.append(np.arange(whole + 1, dtype=np.int64) * cell_len_um, length_um)
    if whole and rest < cell_len_um // 2:
        # A truck standing at the end holds every cell that its release bound has not passed. With a short last cell
        # these would be two, longer than one whole cell, so the last two share the remainder.
        bounds[-2] = length_um - (cell_len_um + rest) // 2
    return bounds


def cut_lengths(lengths_um: list[int], cell_len_um: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Edge, start and end of every cell, and the first cell of every edge, for edges of these lengths."""
    bounds = [boundaries(length, cell_len_um) for length in lengths_um]
    counts = np.array([len(edge_bounds) - 1 for edge_bounds in bounds], dtype=np.int64)
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    edge = np.repeat(np.arange(len(bounds), dtype=np.int64), counts)
    none = [np.zeros(0, dtype=np.int64)]
    s0 = np.concatenate([edge_bounds[:-1] for edge_bounds in bounds] or none)
    s1 = np.concatenate([edge_bounds[1:] for edge_bounds in bounds] or none)
    return edge, s0, s1, first
