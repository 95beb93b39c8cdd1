"""A route as the locks see it: what a truck uses from where to where, where it may stand, where it has to act.

Positions are micrometres of the pivot from the start of the route's first edge. A `Use` is a resource that must be held
from one position until the release bound has passed another. A `Track` reaches to the rest node: the part behind the
goal is never granted on this route, but it belongs to what the truck still needs.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.driving.params import NodeLockPolicy
from pendula.fleet.exclusion.critical_sections import EXIT_CLEARANCE_UM
from pendula.fleet.network.transitions import truck_yaw
from pendula.fleet.routing.planner import AtNode
from pendula.fleet.routing.route_plan import RoutePlan, Segment
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.traffic.demand import Demand

Ints = NDArray[np.int64]

# A position that no route reaches: what is held there is never passed.
NEVER_UM = 1 << 62
_FORBIDDEN = 2


@dataclass(frozen=True, slots=True)
class Use:
    resource: int
    need_um: int
    free_um: int


@dataclass(frozen=True, slots=True)
class Act:
    """A node in which the truck does something before it goes on: it turns towards `yaw_urad`, or it has arrived."""

    s_um: int
    node: int
    stop: bool
    yaw_urad: int | None


@dataclass(frozen=True, eq=False, slots=True)
class Track:
    plan: RoutePlan
    segments: tuple[Segment, ...]
    begins: tuple[int, ...]
    acts: tuple[Act, ...]
    # Sorted by where they are needed, then by resource.
    uses: tuple[Use, ...]
    needs: tuple[int, ...]
    # Position 0 is the end of the grant the track was made for, the last one is at rest.
    stands: tuple[int, ...]
    # For every position what a truck that stands there has passed for certain.
    bounds: tuple[int, ...]
    demand: Demand
    goal_um: int
    # What the truck held when the track was made, with the positions at which it is passed.
    carried: tuple[tuple[int, int], ...] = ()

    @property
    def end_um(self) -> int:
        return self.stands[-1]

    def segment_at(self, s_um: int) -> int:
        """The segment a position is on; a node belongs to the segment that ends in it."""
        at = bisect_left(self.begins, s_um) - 1
        return max(at, 0)

    def taken(self, after_um: int, upto_um: int) -> tuple[Use, ...]:
        """The uses that begin in an interval: what the unit between two positions takes."""
        return self.uses[bisect_left(self.needs, after_um) : bisect_left(self.needs, upto_um)]

    def position_of(self, s_um: int) -> int:
        """The last standing position that does not lie beyond `s_um`; 0 where all do."""
        return max(0, bisect_right(self.stands, s_um) - 1)


@dataclass(frozen=True, eq=False, slots=True)
class EdgeCells:
    """An edge as tracks need it: its cells with start and end, the same ends and the standing marks as arrays, and the
    stretches that lie in sections."""

    rows: tuple[tuple[int, int, int], ...]
    ends: Ints
    marks: Ints
    stretches: tuple[tuple[int, int, int], ...]


class Ground:
    """What all tracks of a site share; edges are taken apart once."""

    def __init__(
        self, site: CompiledMap, policy: NodeLockPolicy = NodeLockPolicy.TURNING, buffer_um: int = 100_000
    ) -> None:
        self.site = site
        self.policy = policy
        # How far before the end of its grant a truck is sent that only waits there.
        self.buffer_um = buffer_um
        self._edges: dict[int, EdgeCells] = {}
        self._marks = np.array(site.standing.marks, dtype=np.int64)

    def edge(self, number: int) -> EdgeCells:
        found = self._edges.get(number)
        if found is None:
            found = self._edges[number] = self._taken_apart(number)
        return found

    def _taken_apart(self, number: int) -> EdgeCells:
        site, own = self.site, self.site.cells.of_edge(number)
        s0 = site.cells.s0[own.start : own.stop]
        s1 = site.cells.s1[own.start : own.stop]
        rows = tuple(zip(own, s0.tolist(), s1.tolist(), strict=True))
        stretches = site.sections_of_edge.get(number, ())
        return EdgeCells(rows, s1.astype(np.int64), self._marks[own.start : own.stop], stretches)


def track_of(ground: Ground, plan: RoutePlan, short_um: int, granted_um: int, carried: Mapping[int, int]) -> Track:
    """The track of a route for a truck that is granted up to `granted_um` and holds `carried`, resources with the
    positions at which they are passed."""
    whole = plan.whole
    stops = _stop_places(plan)
    acts = _acts(ground.site, plan, whole, stops)
    held = [Use(resource, -NEVER_UM, free) for resource, free in sorted(carried.items())]
    # What lies before the end of the grant is held, or has to be taken with the very next unit.
    uses = [
        one if one.need_um >= granted_um or one.resource in carried else Use(one.resource, granted_um, one.free_um)
        for one in _uses(ground, plan, whole, acts)
    ]
    uses.sort(key=attrgetter("need_um", "resource"))
    stands, unwanted = _stands(ground, whole, acts, uses, granted_um)
    acting = np.array([act.s_um for act in acts], dtype=np.int64)
    at = np.array(stands, dtype=np.int64)
    # What was passed stays passed.
    bounds = np.maximum.accumulate(at - short_um - np.where(np.isin(at, acting), 0, ground.buffer_um))
    demand = _demand([*held, *uses], at, bounds, unwanted, sorted(carried))
    return Track(
        plan=plan,
        segments=whole,
        begins=tuple(one.route_s0_um for one in whole),
        acts=acts,
        uses=tuple(uses),
        needs=tuple(one.need_um for one in uses),
        stands=stands,
        bounds=tuple(bounds.tolist()),
        demand=demand,
        goal_um=plan.length_um,
        carried=tuple(sorted(carried.items())),
    )


def held_from_the_start(ground: Ground, plan: RoutePlan) -> dict[int, int]:
    """What a truck holds that stands where a route starts, in the middle of an edge, with where it is passed."""
    whole = plan.whole
    acts = _acts(ground.site, plan, whole, _stop_places(plan))
    return {one.resource: one.free_um for one in _uses(ground, plan, whole, acts) if one.need_um <= plan.start_um}


def _stop_places(plan: RoutePlan) -> frozenset[int]:
    """Places of segments at whose end the truck has arrived somewhere: goal, further stops, rest."""
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


def _uses(ground: Ground, plan: RoutePlan, whole: tuple[Segment, ...], acts: tuple[Act, ...]) -> list[Use]:
    site = ground.site
    uses: list[Use] = []
    runs: dict[int, list[tuple[int, int]]] = {}
    for place, segment in enumerate(whole):
        edge = ground.edge(segment.edge)
        begin = segment.route_s0_um
        # The end of an edge belongs to its last cell.
        start = min(plan.start_um, segment.length_um - 1) if place == 0 else 0
        uses += [Use(cell, begin + s0, begin + s1) for cell, s0, s1 in edge.rows if s1 > start]
        for section, low, high in edge.stretches:
            if high > start:
                _join(runs.setdefault(section, []), begin + low, begin + high)
    uses += _zone_uses(ground, whole, acts)
    uses += [
        Use(site.token(section), low, _clear_of(site, whole, high))
        for section, stretches in sorted(runs.items())
        for low, high in stretches
    ]
    return uses


def _join(stretches: list[tuple[int, int]], low: int, high: int) -> None:
    if stretches and stretches[-1][1] == low:
        stretches[-1] = (stretches[-1][0], high)
    else:
        stretches.append((low, high))


def _clear_of(site: CompiledMap, whole: tuple[Segment, ...], end_um: int) -> int:
    """Where the whole envelope is outside a section that ends at a position; never where the way ends before."""
    last = whole[-1].route_s0_um + whole[-1].length_um
    place = next((k for k, one in enumerate(whole) if one.route_s0_um + one.length_um > end_um), len(whole) - 1)
    trail = site.envelope.trail_um(site.network.edges[whole[place].edge].style)
    clear = end_um + trail + EXIT_CLEARANCE_UM
    return clear if clear <= last else NEVER_UM


def _zone_uses(ground: Ground, whole: tuple[Segment, ...], acts: tuple[Act, ...]) -> list[Use]:
    site = ground.site
    acting = {act.s_um for act in acts}
    uses = []
    if acts and acts[0].s_um == 0:
        uses.append(Use(site.zone(acts[0].node), -NEVER_UM, left_um(site, whole, 0, acts[0].node)))
    for place, segment in enumerate(whole):
        end = segment.route_s0_um + segment.length_um
        if end in acting or ground.policy is NodeLockPolicy.EVERY:
            node = site.network.edges[segment.edge].end
            need = segment.route_s0_um + _approach_um(site, segment.edge, node)
            uses.append(Use(site.zone(node), need, left_um(site, whole, place + 1, node)))
    return uses


def _approach_um(site: CompiledMap, edge: int, node: int) -> int:
    """The start of the first cell, on an edge into a node, from which on the envelope meets the node's disc."""
    last = int(site.cells.first[edge + 1]) - 1
    cells = [one.cell0 for one in site.zones.by_node[node] if one.edge == edge and one.cell1 == last]
    return int(site.cells.s0[min(cells, default=last)])


def left_um(site: CompiledMap, whole: tuple[Segment, ...], place: int, node: int) -> int:
    """Where the envelope has left the disc of a node at the start of a segment; never where the way ends before.

    An edge may be shorter than the window: then the window goes on along the next one.
    """
    for segment in whole[place:]:
        windows = [one for one in site.zones.by_node[node] if one.edge == segment.edge and one.s0 == 0]
        if not windows:
            return segment.route_s0_um
        if windows[0].s1 < segment.length_um:
            return segment.route_s0_um + windows[0].s1
    return NEVER_UM


def _stands(
    ground: Ground, whole: tuple[Segment, ...], acts: tuple[Act, ...], uses: list[Use], granted_um: int
) -> tuple[tuple[int, ...], list[bool]]:
    """Where the truck may be left standing beyond the end of its grant: at the end of a cell that is in no section and
    not in a node it only passes, and wherever it has arrived."""
    if not whole:
        return (granted_um,), [False]
    edges = [ground.edge(segment.edge) for segment in whole]
    at = np.concatenate([edge.ends + one.route_s0_um for edge, one in zip(edges, whole, strict=True)])
    marks = np.concatenate([edge.marks for edge in edges])
    allowed = marks != _FORBIDDEN
    tokens = ground.site.token(0)
    for one in uses:
        if one.resource >= tokens:
            allowed &= (at <= one.need_um) | (at >= one.free_um)
    if ground.policy is NodeLockPolicy.TURNING:
        acting = {act.s_um for act in acts}
        passed = [end for one in whole if (end := one.route_s0_um + one.length_um) not in acting]
        allowed &= ~np.isin(at, np.array(passed, dtype=np.int64))
    allowed |= np.isin(at, np.array([act.s_um for act in acts if act.stop], dtype=np.int64))
    allowed &= at > granted_um
    return (granted_um, *at[allowed].tolist()), [False, *(marks[allowed] != 0).tolist()]


def _demand(uses: list[Use], at: Ints, bounds: Ints, unwanted: list[bool], held: list[int]) -> Demand:
    """Rows of all positions at once: a use is taken with the unit in which it begins, and kept at every position from
    there to the last one whose release bound has not passed it."""
    resource = np.array([one.resource for one in uses], dtype=np.int64)
    need = np.array([one.need_um for one in uses], dtype=np.int64)
    free = np.array([min(one.free_um, NEVER_UM) for one in uses], dtype=np.int64)
    first = np.searchsorted(at, need, side="right")
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
    """Rows in compressed form, each ascending and without repetitions."""
    span = int(numbers.max()) + 1 if len(numbers) else 1
    keys = np.unique(rows * span + numbers)
    return np.searchsorted(keys // span, np.arange(count + 1)).astype(np.int64), keys % span
