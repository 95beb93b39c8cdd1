"""How much a parking spur lacks: its standing set is moved outward until nobody's way is touched any more."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.geometry.quadrangles import meet, near
from pendula.fleet.routing.planner import AtNode, Planner
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import ceil_div
from pendula.kernel.engine import Refusal

Ints = NDArray[np.int64]

STEP_UM = 100_000
_MOST_STEPS = 300
# A spur whose last cell would only just touch is long enough.
_TOUCH_UM = 10


def missing_distance_um(site: CompiledMap) -> int:
    """The distance of two rest nodes whose turning discs just do not touch, in whole steps."""
    return ceil_div(2 * site.zones.radius_um + 3, STEP_UM) * STEP_UM


def missing_length_um(site: CompiledMap, planner: Planner, start: int, goal: int, rest: int) -> int | None:
    """By how much the dead end of `rest` must be longer for the way from `start` to `goal`, in whole steps; None
    where it is no dead end, or its length is not what is wrong."""
    if site.network.degree(rest) != 1:
        return None
    way = planner.way(AtNode(start), goal)
    if isinstance(way, Refusal):
        return None
    spur = site.network.meeting[rest][0]
    quads = [_quads(site, cell) for edge in way.edges for cell in site.cells.of_edge(edge)]
    used = np.concatenate(quads)
    discs = _turning_nodes(site, way.edges, goal)
    arriving = [edge for edge in site.network.incoming[rest] if site.network.group_of[edge] == spur]
    if not arriving:
        return None
    ux, uy = _outward(site, arriving[0])
    last = np.concatenate([_last_cell(site, edge, ux, uy) for edge in arriving])
    for step in range(_MOST_STEPS):
        shift = np.rint(np.array([ux, uy]) * (step * STEP_UM)).astype(np.int64)
        if not _touches(site, last + shift, used, discs, rest, shift):
            return step * STEP_UM or None
    return None


def _quads(site: CompiledMap, cell: int) -> Ints:
    return site.cells.quads[int(site.cells.quad_first[cell]) : int(site.cells.quad_first[cell + 1])]


def _last_cell(site: CompiledMap, edge: int, ux: float, uy: float) -> Ints:
    """The last cell of an edge as if it were a whole one: a spur that is long enough then is so wherever its cells
    happen to begin."""
    cell = int(site.cells.first[edge + 1]) - 1
    own = int(site.cells.s1[cell] - site.cells.s0[cell])
    rest = site.params.cell_len_um - own - _TOUCH_UM
    quads = _quads(site, cell)
    shifted = quads - np.rint(np.array([ux, uy]) * rest).astype(np.int64)
    return shifted if rest <= 0 else np.concatenate([quads, shifted])


def _turning_nodes(site: CompiledMap, edges: tuple[int, ...], goal: int) -> list[int]:
    nodes = [goal]
    for before, after in pairwise(edges):
        k = next(k for k in site.transitions.of(before) if int(site.transitions.out[k]) == after)
        if not bool(site.transitions.tangent[k]):
            nodes.append(site.network.edges[before].end)
    return nodes


def _outward(site: CompiledMap, edge: int) -> tuple[float, float]:
    path = site.network.edges[edge].path
    dx, dy = float(path.x[-1] - path.x[-2]), float(path.y[-1] - path.y[-2])
    size = float(np.sqrt(dx * dx + dy * dy))
    return dx / size, dy / size


def _touches(site: CompiledMap, standing: Ints, used: Ints, discs: list[int], rest: int, shift: Ints) -> bool:
    radius = float(site.zones.radius_um + 1)
    home = site.network.nodes[rest].at
    x, y = home.x_um + int(shift[0]), home.y_um + int(shift[1])
    if bool(near(used, x, y, radius).any()):
        return True
    for quad in standing:
        if bool(meet(np.broadcast_to(quad, used.shape), used).any()):
            return True
    for node in discs:
        at = site.network.nodes[node].at
        dx, dy = at.x_um - x, at.y_um - y
        if dx * dx + dy * dy <= (2 * site.zones.radius_um + 2) ** 2:
            return True
        if bool(near(standing, at.x_um, at.y_um, radius).any()):
            return True
    return False
