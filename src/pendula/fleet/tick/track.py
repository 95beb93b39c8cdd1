"""A route as the locks see it: the resources it uses, standing positions, and acts.

Positions are micrometres of the pivot from the start of the route's first edge. A `Use` is a resource held from one
position until the release bound has passed another. A `Track` reaches to the rest node: the part behind the goal is
never granted on this route, but the truck still needs it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.map.corridors import EXIT_CLEARANCE_UM
from pendula.fleet.map.geometry import meet, near
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.map.planner import AtNode
from pendula.fleet.map.routes import RoutePlan, Segment
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.tick.params import NodeLockPolicy
from pendula.fleet.traffic.lock_state import Demand

# The resources within a disc: everything the envelope of a truck may cover while its position is in doubt (FAIL-5).
# A grid indexes the bounding boxes of cells, so that a query visits only cells nearby; the areas themselves decide.
# Touching counts.

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


# The resources of a route: cells along its edges, zones of nodes where the truck acts, tokens of sections, each held
# from one position until the release bound has passed another.
# The cells of an edge are the same on every route: they are computed once and only shifted.

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


_FORBIDDEN = 2


@dataclass(frozen=True, eq=False, slots=True)
class Track:
    plan: RoutePlan
    segments: tuple[Segment, ...]
    begins: tuple[int, ...]
    acts: tuple[Act, ...]
    used: Uses
    # Position 0 is the end of the grant for which the track was built, the last one is at rest.
    stands: tuple[int, ...]
    # For every position what a truck standing there has certainly passed.
    bounds: tuple[int, ...]
    demand: Demand
    goal_um: int
    # What the truck held when the track was built, with the positions at which it is passed.
    carried: tuple[tuple[int, int], ...] = ()
    # Positions at which the truck acts.
    acting: frozenset[int] = frozenset()

    @property
    def uses(self) -> tuple[Use, ...]:
        """Sorted by where they are needed, then by resource."""
        return self.used.every

    @property
    def end_um(self) -> int:
        return self.stands[-1]

    def segment_at(self, s_um: int) -> int:
        """The segment of a position; a node belongs to the segment that ends in it."""
        at = bisect_left(self.begins, s_um) - 1
        return max(at, 0)

    def taken(self, after_um: int, upto_um: int) -> tuple[Use, ...]:
        """The uses that begin in an interval: what the unit between two positions takes."""
        return self.used.between(after_um, upto_um)

    def position_of(self, s_um: int) -> int:
        """The last standing position at or before `s_um`; 0 if there is none."""
        return max(0, bisect_right(self.stands, s_um) - 1)


def track_of(ground: Ground, plan: RoutePlan, short_um: int, granted_um: int, carried: Mapping[int, int]) -> Track:
    """The track of a route for a truck that is granted up to `granted_um` and holds `carried`, resources with the
    positions at which they are passed."""
    whole = plan.whole
    stops = _stop_places(plan)
    acts = _acts(ground.site, plan, whole, stops)
    passed_um = granted_um - short_um - ground.buffer_um
    used = uses_of(ground, plan, whole, acts, short_um).ready(granted_um, passed_um, carried)
    stands, unwanted = _stands(ground, whole, acts, used, granted_um)
    held = Uses.of([Use(resource, -NEVER_UM, free) for resource, free in sorted(carried.items())])
    acting = np.array([act.s_um for act in acts], dtype=np.int64)
    at = np.array(stands, dtype=np.int64)
    # Passed stays passed.
    bounds = np.maximum.accumulate(at - short_um - np.where(np.isin(at, acting), 0, ground.buffer_um))
    demand = _demand(Uses.joined([held, used]), at, bounds, unwanted, sorted(carried))
    return Track(
        plan=plan,
        segments=whole,
        begins=tuple(segment.route_s0_um for segment in whole),
        acts=acts,
        used=used,
        stands=stands,
        bounds=tuple(bounds.tolist()),
        demand=demand,
        goal_um=plan.length_um,
        carried=tuple(sorted(carried.items())),
        acting=frozenset(act.s_um for act in acts),
    )


def held_from_the_start(ground: Ground, plan: RoutePlan, short_um: int) -> dict[int, int]:
    """What a truck holds at the start of a route, within an edge or at its end, with where it is passed. At the end of
    an edge it does not yet need what begins there: nothing of the edges out of the node."""
    whole = plan.whole
    acts = _acts(ground.site, plan, whole, _stop_places(plan))
    upto = plan.start_um if whole and plan.start_um >= whole[0].length_um else plan.start_um + 1
    used = uses_of(ground, plan, whole, acts, short_um)
    return {use.resource: use.free_um for use in used.every if use.need_um < upto}


def _stop_places(plan: RoutePlan) -> frozenset[int]:
    """Segments at whose end the truck arrives: goal, further stops, rest."""
    goal = len(plan.segments)
    last = goal + len(plan.onward) - 1
    return frozenset({goal - 1, last, *(goal + place for place in plan.onward_stops)})


def _acts(site: CompiledMap, plan: RoutePlan, whole: tuple[Segment, ...], stops: frozenset[int]) -> tuple[Act, ...]:
    acts = []
    if isinstance(plan.start, AtNode):
        acts.append(Act(0, plan.start.node, not plan.segments, _yaw_into(site, whole, 0)))
    for place, segment in enumerate(whole):
        if segment.must_stop:
            end = segment.route_s0_um + segment.length_um
            node = site.network.edges[segment.edge].end
            acts.append(Act(end, node, place in stops, _yaw_into(site, whole, place + 1)))
    return tuple(acts)


def _yaw_into(site: CompiledMap, whole: tuple[Segment, ...], place: int) -> int | None:
    """The yaw of a truck at the start of a segment; None behind the last one."""
    if place >= len(whole):
        return None
    edge = site.network.edges[whole[place].edge]
    return truck_yaw(edge.path.heading(0), edge.style)


def _stands(
    ground: Ground, whole: tuple[Segment, ...], acts: tuple[Act, ...], used: Uses, granted_um: int
) -> tuple[tuple[int, ...], list[bool]]:
    """Positions where the truck may stand beyond the end of its grant: at the end of a cell in no section and in no
    node that it only passes, and wherever it arrives."""
    if not whole:
        return (granted_um,), [False]
    edges = [ground.edge(segment.edge) for segment in whole]
    at = np.concatenate([edge.ends + segment.route_s0_um for edge, segment in zip(edges, whole, strict=True)])
    marks = np.concatenate([edge.marks for edge in edges])
    allowed = marks != _FORBIDDEN
    tokens = ground.site.token(0)
    for k in np.flatnonzero(used.resource >= tokens).tolist():
        allowed &= (at <= used.need_um[k]) | (at >= used.free_um[k])
    if ground.policy is NodeLockPolicy.TURNING:
        acting = {act.s_um for act in acts}
        passed = [end for segment in whole if (end := segment.route_s0_um + segment.length_um) not in acting]
        allowed &= ~np.isin(at, np.array(passed, dtype=np.int64))
    allowed |= np.isin(at, np.array([act.s_um for act in acts if act.stop], dtype=np.int64))
    allowed &= at > granted_um
    return (granted_um, *at[allowed].tolist()), [False, *(marks[allowed] != 0).tolist()]


def _demand(uses: Uses, at: Ints, bounds: Ints, unwanted: list[bool], held: list[int]) -> Demand:
    """Rows of all positions: a use is taken with the unit in which it begins, and kept at every position up to the last
    one whose release bound has not passed it."""
    resource, free = uses.resource, np.minimum(uses.free_um, NEVER_UM)
    first = np.searchsorted(at, uses.need_um, side="right")
    beyond = np.searchsorted(bounds, free, side="left")
    within = first < len(at)
    taken = within & (first > 0)
    rows = np.concatenate([np.zeros(len(held), dtype=np.int64), first[taken]])
    names = np.concatenate([np.array(held, dtype=np.int64), resource[taken]])
    need_at, need_to = _compressed(rows, names, len(at))
    counts = np.where(within, np.maximum(beyond - first, 0), 0)
    total = int(counts.sum())
    inside = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    stand_at, stand_to = _compressed(np.repeat(first, counts) + inside, np.repeat(resource, counts), len(at))
    return Demand(need_at, need_to, stand_at, stand_to, np.array(unwanted, dtype=np.bool_))


def _compressed(rows: Ints, numbers: Ints, count: int) -> tuple[Ints, Ints]:
    """Compressed rows, each ascending and without repetitions."""
    span = int(numbers.max()) + 1 if len(numbers) else 1
    keys = np.sort(rows * span + numbers, kind="stable")
    keys = keys[np.diff(keys, prepend=-1) > 0]
    return np.searchsorted(keys, np.arange(count + 1) * span).astype(np.int64), keys % span
