"""The resources within a disc: everything the envelope of a truck may cover while its position is in doubt (FAIL-5).

A grid indexes the bounding boxes of cells, so that a query visits only cells nearby; the areas themselves decide.
Touching counts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.geometry.quadrangles import meet, near
from pendula.fleet.site.compiled_map import CompiledMap

Ints = NDArray[np.int64]

SQUARE_UM = 4_000_000


@dataclass(frozen=True, eq=False, slots=True)
class DiscIndex:
    """The cells of a site by the grid squares that their boxes touch: those of square k, in the order of `squares`, are
    `cells[at[k]:at[k + 1]]`."""

    site: CompiledMap
    squares: dict[tuple[int, int], int]
    at: Ints
    cells: Ints

    @classmethod
    def of(cls, site: CompiledMap) -> "DiscIndex":
        indexed: dict[tuple[int, int], list[int]] = {}
        boxes = (site.cells.boxes() // SQUARE_UM).tolist() if len(site.cells) else []
        for cell, (x0, y0, x1, y1) in enumerate(boxes):
            for x in range(x0, x1 + 1):
                for y in range(y0, y1 + 1):
                    indexed.setdefault((x, y), []).append(cell)
        ordered = sorted(indexed)
        counts = np.array([0, *(len(indexed[square]) for square in ordered)], dtype=np.int64)
        cells = np.array([cell for square in ordered for cell in indexed[square]], dtype=np.int64)
        return cls(site, {square: k for k, square in enumerate(ordered)}, np.cumsum(counts), cells)

    def resources(self, x_um: int, y_um: int, radius_um: int) -> list[int]:
        """The cells whose areas, and the zones whose discs, come within a radius of a point, in ascending order."""
        return [*self._cells(x_um, y_um, radius_um), *self._zones(x_um, y_um, radius_um)]

    def meeting(self, quad: Ints) -> list[int]:
        """The cells and zones that meet a convex quadrangle of shape (4, 2), in ascending order."""
        owner, quads = self._candidates(*quad.min(axis=0).tolist(), *quad.max(axis=0).tolist())
        hit: list[int] = np.unique(owner[meet(quads, np.broadcast_to(quad, quads.shape))]).tolist()
        zones, nodes = self.site.zones, self.site.network.nodes
        reach = float(zones.radius_um + 1)
        turning = [number for number, node in enumerate(nodes) if node.turning]
        hit_nodes = [node for node in turning if near(quad[None], nodes[node].at.x_um, nodes[node].at.y_um, reach)[0]]
        return [*hit, *(self.site.zone(node) for node in hit_nodes)]

    def _cells(self, x_um: int, y_um: int, radius_um: int) -> list[int]:
        owner, quads = self._candidates(x_um - radius_um, y_um - radius_um, x_um + radius_um, y_um + radius_um)
        # One micrometre more, as positions are rounded and touching counts.
        hit: list[int] = np.unique(owner[near(quads, x_um, y_um, float(radius_um + 1))]).tolist()
        return hit

    def _candidates(self, x0_um: int, y0_um: int, x1_um: int, y1_um: int) -> tuple[Ints, Ints]:
        """The quadrangles of all cells indexed in squares that a box touches, and the cell of each."""
        parts = [np.zeros(0, dtype=np.int64)]
        for x in range(x0_um // SQUARE_UM, x1_um // SQUARE_UM + 1):
            for y in range(y0_um // SQUARE_UM, y1_um // SQUARE_UM + 1):
                k = self.squares.get((x, y))
                if k is not None:
                    parts.append(self.cells[self.at[k] : self.at[k + 1]])
        cells = self.site.cells
        candidates = np.unique(np.concatenate(parts))
        first, counts = cells.quad_first[candidates], cells.quad_first[candidates + 1] - cells.quad_first[candidates]
        owner = np.repeat(candidates, counts)
        offsets = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
        return owner, cells.quads[np.repeat(first, counts) + offsets]

    def _zones(self, x_um: int, y_um: int, radius_um: int) -> list[int]:
        reach = radius_um + self.site.zones.radius_um + 1
        return [
            self.site.zone(number)
            for number, node in enumerate(self.site.network.nodes)
            if node.turning and (node.at.x_um - x_um) ** 2 + (node.at.y_um - y_um) ** 2 <= reach * reach
        ]
