"""Which resources lie in a disc: for a truck whose place is in doubt, everything its envelope may cover (FAIL-5).

Boxes of cells are filed in squares of a grid, so that a query looks at the cells around it and at no others; what it
answers is decided on the areas themselves. A touch counts.
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
    """The cells of a site by the squares that their boxes touch, in compressed form: those of square k, in the order
    of `squares`, are `cells[at[k]:at[k + 1]]`."""

    site: CompiledMap
    squares: dict[tuple[int, int], int]
    at: Ints
    cells: Ints

    @classmethod
    def of(cls, site: CompiledMap) -> "DiscIndex":
        filed: dict[tuple[int, int], list[int]] = {}
        boxes = (site.cells.boxes() // SQUARE_UM).tolist() if len(site.cells) else []
        for cell, (x0, y0, x1, y1) in enumerate(boxes):
            for x in range(x0, x1 + 1):
                for y in range(y0, y1 + 1):
                    filed.setdefault((x, y), []).append(cell)
        ordered = sorted(filed)
        counts = np.array([0, *(len(filed[square]) for square in ordered)], dtype=np.int64)
        cells = np.array([cell for square in ordered for cell in filed[square]], dtype=np.int64)
        return cls(site, {square: k for k, square in enumerate(ordered)}, np.cumsum(counts), cells)

    def resources(self, x_um: int, y_um: int, radius_um: int) -> list[int]:
        """The cells whose areas, and the zones whose discs, come within a radius of a place, in ascending order."""
        return [*self._cells(x_um, y_um, radius_um), *self._zones(x_um, y_um, radius_um)]

    def meeting(self, quad: Ints) -> list[int]:
        """The same for a convex quadrangle, of shape (4, 2)."""
        owner, quads = self._proposed(*quad.min(axis=0).tolist(), *quad.max(axis=0).tolist())
        hit: list[int] = np.unique(owner[meet(quads, np.broadcast_to(quad, quads.shape))]).tolist()
        zones, nodes = self.site.zones, self.site.network.nodes
        reach = float(zones.radius_um + 1)
        turning = [number for number, node in enumerate(nodes) if node.turning]
        found = [one for one in turning if near(quad[None], nodes[one].at.x_um, nodes[one].at.y_um, reach)[0]]
        return [*hit, *(self.site.zone(number) for number in found)]

    def _cells(self, x_um: int, y_um: int, radius_um: int) -> list[int]:
        owner, quads = self._proposed(x_um - radius_um, y_um - radius_um, x_um + radius_um, y_um + radius_um)
        # One micrometre more: places are rounded, and a touch counts.
        hit: list[int] = np.unique(owner[near(quads, x_um, y_um, float(radius_um + 1))]).tolist()
        return hit

    def _proposed(self, x0_um: int, y0_um: int, x1_um: int, y1_um: int) -> tuple[Ints, Ints]:
        """The quadrangles of all cells filed in squares that a box touches, and which cell each belongs to."""
        found = [np.zeros(0, dtype=np.int64)]
        for x in range(x0_um // SQUARE_UM, x1_um // SQUARE_UM + 1):
            for y in range(y0_um // SQUARE_UM, y1_um // SQUARE_UM + 1):
                k = self.squares.get((x, y))
                if k is not None:
                    found.append(self.cells[self.at[k] : self.at[k + 1]])
        cells = self.site.cells
        proposed = np.unique(np.concatenate(found))
        first, counts = cells.quad_first[proposed], cells.quad_first[proposed + 1] - cells.quad_first[proposed]
        owner = np.repeat(proposed, counts)
        offsets = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
        return owner, cells.quads[np.repeat(first, counts) + offsets]

    def _zones(self, x_um: int, y_um: int, radius_um: int) -> list[int]:
        reach = radius_um + self.site.zones.radius_um + 1
        return [
            self.site.zone(number)
            for number, node in enumerate(self.site.network.nodes)
            if node.turning and (node.at.x_um - x_um) ** 2 + (node.at.y_um - y_um) ** 2 <= reach * reach
        ]
