"""Missing distances of blocking trucks at rest: a standing set is moved away until it touches nothing.

A result is a distance that is sufficient: once applied, the obstacle is gone. Only straight dead ends and conflicts of
distance alone have one; in all other cases the result is None.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.exclusion.cells import boundaries
from pendula.fleet.geometry.quadrangles import meet, near
from pendula.fleet.liveness.closures import Rest, home_of, kept_sections
from pendula.fleet.model import CurveKind, Granularity
from pendula.fleet.routing.planner import AtNode, Planner, Way
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import ceil_div
from pendula.kernel.engine import Refusal

Ints = NDArray[np.int64]

STEP_UM = 100_000
_MOST_STEPS = 300
# A spur whose last cell barely touches is long enough.
_TOUCH_UM = 10
# On curves the windows of discs are wider than the areas of the cells, by the step of the poses.
_CURVE_UM = 60_000


@dataclass(frozen=True, eq=False, slots=True)
class _Spur:
    """A straight dead end: its node, outward direction, length, and the shapes and lengths of the last cells on its
    ways in."""

    rest: Rest
    x: int
    y: int
    outward: tuple[float, float]
    length_um: int
    last: tuple[tuple[Ints, int], ...]


@dataclass(frozen=True, eq=False, slots=True)
class _Used:
    """The area of a way: the shapes of all its cells, of its curved cells, and the nodes in which it turns or stops."""

    quads: Ints
    curved: Ints
    discs: list[int]


def missing_distance_um(site: CompiledMap, rest: Rest, other: Rest) -> int | None:
    """The distance at which two trucks can rest at the ends of two parallel spurs, moved apart along the line between
    them; None if the spurs are not parallel or distance is not the cause."""
    first, second = _spur(site, rest), _spur(site, other)
    if first is None or second is None or not _plain(site):
        return None
    homes = [home_of(site, rest.node), home_of(site, other.node)]
    if homes[0] is None or homes[1] is None or homes[0][0] & homes[1][0]:
        return None
    turn = first.outward[0] * second.outward[1] - first.outward[1] * second.outward[0]
    dx, dy = float(second.x - first.x), float(second.y - first.y)
    apart = float(np.sqrt(dx * dx + dy * dy))
    if abs(turn) > 1e-6 or apart < 1.0:
        return None
    own, others = _standing(site, first, 0), _standing(site, second, 0)
    least = ceil_div(int(apart), STEP_UM) * STEP_UM
    for step in range(_MOST_STEPS):
        far = least + step * STEP_UM
        shift = np.rint(np.array([dx, dy]) * (far / apart - 1.0)).astype(np.int64)
        x, y = second.x + int(shift[0]), second.y + int(shift[1])
        if not _rests_touch(site, (own, first.x, first.y), (others + shift, x, y)):
            return far
    return None


def missing_length_um(site: CompiledMap, planner: Planner, start: int, goal: int, rest: Rest) -> int | None:
    """By how much the spur of a rest must grow to free the way from `start` to `goal`, in whole steps; None if it is
    not a straight dead end or its length is not the cause."""
    spur, home = _spur(site, rest), home_of(site, rest.node)
    way = planner.way(AtNode(start), goal)
    if spur is None or home is None or not _plain(site) or isinstance(way, Refusal):
        return None
    if set(way.edges) & home[0] or goal in home[1] or _keeps_a_section_of(site, rest, way):
        return None
    used = _used(site, way, goal)
    for step in range(1, _MOST_STEPS):
        more = step * STEP_UM
        shift = np.rint(np.array(spur.outward) * more).astype(np.int64)
        x, y = spur.x + int(shift[0]), spur.y + int(shift[1])
        if not _touches(site, _standing(site, spur, more) + shift, used, x, y):
            return more
    return None


def _plain(site: CompiledMap) -> bool:
    """Whether conflicts depend on areas alone, without a conflict margin and with granularity WINDOW."""
    return site.params.conflict_margin_um == 0 and site.params.granularity is Granularity.WINDOW


def _keeps_a_section_of(site: CompiledMap, rest: Rest, way: Way) -> bool:
    sections = set(kept_sections(site, rest))
    return any(
        sections & set(site.sections_of_cell.get(cell, ())) for edge in way.edges for cell in site.cells.of_edge(edge)
    )


def _spur(site: CompiledMap, rest: Rest) -> _Spur | None:
    network = site.network
    if network.degree(rest.node) != 1:
        return None
    group = network.groups[network.meeting[rest.node][0]]
    arriving = [edge for edge in network.incoming[rest.node] if network.group_of[edge] == network.meeting[rest.node][0]]
    if not arriving or any(network.edges[edge].path.kind is not CurveKind.STRAIGHT for edge in group.edges):
        return None
    path = network.edges[arriving[0]].path
    dx, dy = float(path.x[-1] - path.x[0]), float(path.y[-1] - path.y[0])
    size = float(np.sqrt(dx * dx + dy * dy))
    at = network.nodes[rest.node].at
    last = tuple(_last_cell(site, edge) for edge in arriving)
    return _Spur(rest, at.x_um, at.y_um, (dx / size, dy / size), path.length_um, last)


def _quads(site: CompiledMap, cell: int) -> Ints:
    return site.cells.quads[int(site.cells.quad_first[cell]) : int(site.cells.quad_first[cell + 1])]


def _last_cell(site: CompiledMap, edge: int) -> tuple[Ints, int]:
    cell = int(site.cells.first[edge + 1]) - 1
    return _quads(site, cell), int(site.cells.s1[cell] - site.cells.s0[cell])


def _standing(site: CompiledMap, spur: _Spur, more_um: int) -> Ints:
    """The shapes that a truck at rest would hold if the spur were longer by `more_um`, relative to the present end: one
    whole cell back, or the cells that the release bound has not passed."""
    bounds = boundaries(spur.length_um + more_um, site.params.cell_len_um)
    held = bounds[:-1][bounds[1:] > bounds[-1] - spur.rest.short_um]
    reach = max(site.params.cell_len_um - _TOUCH_UM, int(bounds[-1] - held[0]) if len(held) else 0)
    parts = []
    for quads, own in spur.last:
        back = np.rint(np.array(spur.outward) * (reach - own)).astype(np.int64)
        parts += [quads - back] if reach <= own else [quads, quads - back]
    return np.concatenate(parts)


def _used(site: CompiledMap, way: Way, goal: int) -> _Used:
    straight: list[Ints] = []
    curved: list[Ints] = []
    for edge in way.edges:
        own = site.cells.of_edge(edge)
        part = site.cells.quads[int(site.cells.quad_first[own.start]) : int(site.cells.quad_first[own.stop])]
        (straight if site.network.edges[edge].path.kind is CurveKind.STRAIGHT else curved).append(part)
    none = np.zeros((0, 4, 2), dtype=np.int64)
    bends = np.concatenate([none, *curved])
    return _Used(np.concatenate([bends, *straight]), bends, _turning_nodes(site, way.edges, goal))


def _turning_nodes(site: CompiledMap, edges: tuple[int, ...], goal: int) -> list[int]:
    nodes = [goal]
    for before, after in pairwise(edges):
        k = next(k for k in site.transitions.of(before) if int(site.transitions.out[k]) == after)
        if not bool(site.transitions.tangent[k]):
            nodes.append(site.network.edges[before].end)
    return nodes


def _touches(site: CompiledMap, standing: Ints, used: _Used, x: int, y: int) -> bool:
    radius = float(site.zones.radius_um + 1)
    if bool(near(used.quads, x, y, radius).any()) or bool(near(used.curved, x, y, radius + _CURVE_UM).any()):
        return True
    if any(bool(meet(np.broadcast_to(quad, used.quads.shape), used.quads).any()) for quad in standing):
        return True
    for node in used.discs:
        at = site.network.nodes[node].at
        if _discs_touch(site, at.x_um - x, at.y_um - y) or bool(near(standing, at.x_um, at.y_um, radius).any()):
            return True
    return False


def _rests_touch(site: CompiledMap, first: tuple[Ints, int, int], second: tuple[Ints, int, int]) -> bool:
    radius = float(site.zones.radius_um + 1)
    if _discs_touch(site, first[1] - second[1], first[2] - second[2]):
        return True
    if bool(near(first[0], second[1], second[2], radius).any()) or bool(
        near(second[0], first[1], first[2], radius).any()
    ):
        return True
    return any(bool(meet(np.broadcast_to(quad, second[0].shape), second[0]).any()) for quad in first[0])


def _discs_touch(site: CompiledMap, dx: int, dy: int) -> bool:
    return dx * dx + dy * dy <= (2 * site.zones.radius_um + 2) ** 2
