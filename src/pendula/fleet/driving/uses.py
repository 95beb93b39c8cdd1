"""The resources of a route: cells along its edges, zones of nodes where the truck acts, tokens of sections, each held
from one position until the release bound has passed another.

The cells of an edge are the same on every route: they are computed once and only shifted.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.driving.params import NodeLockPolicy
from pendula.fleet.exclusion.critical_sections import EXIT_CLEARANCE_UM
from pendula.fleet.routing.route_plan import RoutePlan, Segment
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.site.disc_index import DiscIndex

Ints = NDArray[np.int64]
Column = tuple[int, ...]

# A position that no route reaches: what is held there is never passed.
NEVER_UM = 1 << 62


class Use(Struct, frozen=True):
    resource: int
    need_um: int
    free_um: int


class Act(Struct, frozen=True, gc=False):
    """A node in which the truck acts before it goes on: it turns to `yaw_urad`, or it has arrived."""

    s_um: int
    node: int
    stop: bool
    yaw_urad: int | None


@dataclass(frozen=True, eq=False)
class Uses:
    """Uses as columns."""

    resource: Ints
    need_um: Ints
    free_um: Ints

    @classmethod
    def of(cls, uses: list[Use]) -> "Uses":
        rows = np.array([(use.resource, use.need_um, use.free_um) for use in uses], dtype=np.int64).reshape(-1, 3)
        return cls(rows[:, 0], rows[:, 1], rows[:, 2])

    @classmethod
    def joined(cls, parts: list["Uses"]) -> "Uses":
        return cls(
            np.concatenate([part.resource for part in parts]),
            np.concatenate([part.need_um for part in parts]),
            np.concatenate([part.free_um for part in parts]),
        )

    def ready(self, granted_um: int, passed_um: int, carried: Mapping[int, int]) -> "Uses":
        """Sorted by where they are needed, then by resource, for a truck granted up to a position: what lies before it
        is held, already passed, or has to be taken with the next unit."""
        held = np.isin(self.resource, np.array(sorted(carried), dtype=np.int64))
        ahead = held | (self.free_um > passed_um)
        resource, free = self.resource[ahead], self.free_um[ahead]
        need = np.where((self.need_um >= granted_um) | held, self.need_um, granted_um)[ahead]
        order = np.lexsort((resource, need))
        return Uses(resource[order], need[order], free[order])

    @cached_property
    def every(self) -> tuple[Use, ...]:
        return self._slice(0, len(self.resource))

    def between(self, after_um: int, upto_um: int) -> tuple[Use, ...]:
        """The uses that begin in an interval; the columns are sorted by where they are needed."""
        return self._slice(bisect_left(self._lists[1], after_um), bisect_left(self._lists[1], upto_um))

    def not_passed(self, after_um: int, upto_um: int, bound_um: int) -> list[int]:
        """The resources whose uses begin in an interval and are not over at a position."""
        resource, need, free = self._lists
        first, last = bisect_left(need, after_um), bisect_left(need, upto_um)
        return [number for number, end in zip(resource[first:last], free[first:last], strict=True) if end > bound_um]

    def _slice(self, first: int, last: int) -> tuple[Use, ...]:
        return tuple(map(Use, *(column[first:last] for column in self._lists)))

    @cached_property
    def _lists(self) -> tuple[Column, Column, Column]:
        """The columns as tuples: a few entries cost less than those of an array, and the garbage collector skips tuples
        of integers."""
        return tuple(self.resource.tolist()), tuple(self.need_um.tolist()), tuple(self.free_um.tolist())


@dataclass(frozen=True, eq=False, slots=True)
class EdgeCells:
    """An edge as tracks need it: its cells with start and end, their standing marks, and the intervals in sections."""

    cells: Ints
    starts: Ints
    ends: Ints
    marks: Ints
    stretches: tuple[tuple[int, int, int], ...]


class Ground:
    """What all tracks of a site share; edges are computed once."""

    def __init__(
        self, site: CompiledMap, policy: NodeLockPolicy = NodeLockPolicy.TURNING, buffer_um: int = 100_000
    ) -> None:
        self.site = site
        self.policy = policy
        # How far before the end of its grant a truck stops that only waits there.
        self.buffer_um = buffer_um
        self._edges: dict[int, EdgeCells] = {}
        self._marks = np.array(site.standing.marks, dtype=np.int64)

    @cached_property
    def discs(self) -> DiscIndex:
        """Which resources lie around a place; built when the first truck is lost."""
        return DiscIndex.of(self.site)

    def edge(self, number: int) -> EdgeCells:
        cells = self._edges.get(number)
        if cells is None:
            cells = self._edges[number] = self._taken_apart(number)
        return cells

    def _taken_apart(self, number: int) -> EdgeCells:
        site, own = self.site, self.site.cells.of_edge(number)
        s0 = site.cells.s0[own.start : own.stop]
        s1 = site.cells.s1[own.start : own.stop]
        stretches = site.sections_of_edge.get(number, ())
        cells = np.arange(own.start, own.stop, dtype=np.int64)
        marks = self._marks[own.start : own.stop]
        return EdgeCells(cells, s0.astype(np.int64), s1.astype(np.int64), marks, stretches)


def uses_of(ground: Ground, plan: RoutePlan, whole: tuple[Segment, ...], acts: tuple[Act, ...], short_um: int) -> Uses:
    """`short_um`: how far behind a standing truck its release bound may lie."""
    site = ground.site
    parts: list[Uses] = []
    runs: dict[int, list[tuple[int, int]]] = {}
    for place, segment in enumerate(whole):
        edge = ground.edge(segment.edge)
        begin = segment.route_s0_um
        # The end of an edge belongs to its last cell.
        start = min(plan.start_um, segment.length_um - 1) if place == 0 else 0
        first = int(np.searchsorted(edge.ends, start, side="right")) if start else 0
        parts.append(Uses(edge.cells[first:], edge.starts[first:] + begin, edge.ends[first:] + begin))
        for section, low, high in edge.stretches:
            if high > start:
                _join(runs.setdefault(section, []), begin + low, begin + high)
    tokens = [
        Use(site.token(section), low, _clear_of(site, whole, high))
        for section, stretches in sorted(runs.items())
        for low, high in stretches
    ]
    return Uses.joined([*parts, Uses.of([*_zone_uses(ground, whole, acts, short_um), *tokens])])


def _join(stretches: list[tuple[int, int]], low: int, high: int) -> None:
    if stretches and stretches[-1][1] == low:
        stretches[-1] = (stretches[-1][0], high)
    else:
        stretches.append((low, high))


def _clear_of(site: CompiledMap, whole: tuple[Segment, ...], end_um: int) -> int:
    """Where the whole envelope is outside a section that ends at a position; never if the route ends before."""
    last = whole[-1].route_s0_um + whole[-1].length_um
    place = next(
        (k for k, segment in enumerate(whole) if segment.route_s0_um + segment.length_um > end_um), len(whole) - 1
    )
    trail = site.envelope.trail_um(site.network.edges[whole[place].edge].style)
    clear = end_um + trail + EXIT_CLEARANCE_UM
    return clear if clear <= last else NEVER_UM


def _zone_uses(ground: Ground, whole: tuple[Segment, ...], acts: tuple[Act, ...], short_um: int) -> list[Use]:
    site = ground.site
    acting = {act.s_um for act in acts}
    uses = []
    if acts and acts[0].s_um == 0:
        uses.append(Use(site.zone(acts[0].node), -NEVER_UM, left_um(site, whole, 0, acts[0].node, short_um)))
    for place, segment in enumerate(whole):
        end = segment.route_s0_um + segment.length_um
        if end in acting or ground.policy is NodeLockPolicy.EVERY:
            node = site.network.edges[segment.edge].end
            need = segment.route_s0_um + _approach_um(site, segment.edge, node)
            uses.append(Use(site.zone(node), need, left_um(site, whole, place + 1, node, short_um)))
    return uses


def _approach_um(site: CompiledMap, edge: int, node: int) -> int:
    """The start of the first cell, on an edge into a node, at which the envelope meets the node's disc."""
    last = int(site.cells.first[edge + 1]) - 1
    cells = [window.cell0 for window in site.zones.by_node[node] if window.edge == edge and window.cell1 == last]
    return int(site.cells.s0[min(cells, default=last)])


def left_um(site: CompiledMap, whole: tuple[Segment, ...], place: int, node: int, short_um: int) -> int:
    """Where the envelope has left the disc of a node at the start of a segment. If an edge is shorter than the window,
    the window continues along the next one.

    If the route ends before, the disc is released at rest: all that the truck covers there is in its last cell and in
    the disc of its rest node. Keeping the disc of the mouth would close to all others a way that the certificate calls
    open. Only the disc of the rest node itself is kept.
    """
    for segment in whole[place:]:
        windows = [window for window in site.zones.by_node[node] if window.edge == segment.edge and window.s0 == 0]
        if not windows:
            return segment.route_s0_um
        if windows[0].s1 < segment.length_um:
            return segment.route_s0_um + windows[0].s1
    return _at_rest_um(site, whole[place:], node, short_um)


def _at_rest_um(site: CompiledMap, left: tuple[Segment, ...], node: int, short_um: int) -> int:
    if not left or site.network.edges[left[-1].edge].end == node:
        return NEVER_UM
    return left[-1].route_s0_um + max(0, left[-1].length_um - short_um)
