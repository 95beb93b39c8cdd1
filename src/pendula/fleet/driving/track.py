"""A route as the locks see it: the resources it uses, standing positions, and acts.

Positions are micrometres of the pivot from the start of the route's first edge. A `Use` is a resource held from one
position until the release bound has passed another. A `Track` reaches to the rest node: the part behind the goal is
never granted on this route, but the truck still needs it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.driving.params import NodeLockPolicy
from pendula.fleet.driving.uses import NEVER_UM, Act, Ground, Use, Uses, uses_of
from pendula.fleet.network.transitions import truck_yaw
from pendula.fleet.routing.planner import AtNode
from pendula.fleet.routing.route_plan import RoutePlan, Segment
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.traffic.demand import Demand

Ints = NDArray[np.int64]

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
