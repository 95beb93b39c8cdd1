"""A route: ordered segments with their positions, the pose at any position, and the position of any pose.

Positions count from the start of the edge of the first segment, so they are never negative, even if the route starts in
the middle of that edge.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from msgspec import Struct

from pendula.fleet.map.geometry import turn_urad
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.map.planner import OPEN, Anchor, AtNode, Closed, OnEdge, Planner, Way
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import CONTRACT_VERSION, TransitionKind
from pendula.fleet.units import half_up, plain, root
from pendula.kernel.engine import Refusal


class Pose(Struct, frozen=True):
    x_um: int
    y_um: int
    yaw_urad: int


# There are tens of thousands of segments; gc=False, as they cannot be part of a reference cycle.
class Segment(Struct, frozen=True, gc=False):
    """One edge of a route; `turn_urad` is the turn in its end node, `must_stop` whether the truck stops there."""

    edge: int
    length_um: int
    route_s0_um: int
    must_stop: bool
    turn_urad: int
    kind: TransitionKind | None


class Projection(Struct, frozen=True, gc=False):
    """The position of a pose on a route. `confidence_ppm` is halved at either of the `Limits`."""

    segment: int
    s_on_segment_um: int
    s_on_route_um: int
    lateral_um: int
    heading_error_urad: int
    confidence_ppm: int


class Limits(Struct, frozen=True, gc=False):
    """The deviations beyond which a pose is not on the route."""

    off_route_um: int = 200_000
    heading_urad: int = 500_000


LIMITS = Limits()
# Passages of a route whose distances from a pose differ by no more than this fit equally well.
_SAME_PLACE_UM = 2_000
# Search first within this distance of the last position: less than the length of any loop.
_WINDOW_UM = 3_000_000
# A move back counts this many times as much as a move ahead.
_BACK = 3


@dataclass(frozen=True, eq=False)
class RoutePlan:
    route_id: str
    revision: int
    robot_id: str
    site: CompiledMap
    start: Anchor
    goal: int
    segments: tuple[Segment, ...]
    cost_us: int
    reason: str
    rest: int | None = None
    onward: tuple[int, ...] = ()
    # Indexes into `onward` after whose edges the truck stops: at every further stop, and at the rest node.
    onward_stops: tuple[int, ...] = ()

    @cached_property
    def whole(self) -> tuple[Segment, ...]:
        """The segments of the complete way to rest: to the goal, then of `onward`."""
        goal = len(self.segments)
        return segments_of(self.site, self._edges, {goal - 1, *(goal + place for place in self.onward_stops)})

    def passed(self, at_um: int) -> int:
        """The number of segments that end at or before a position."""
        return bisect_right(self.segments, at_um, key=lambda segment: segment.route_s0_um + segment.length_um)

    def ahead(self, passed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The edges after `passed` segments: those of the errand, up to the last stop before rest, and those of the
        final way to rest."""
        stops = self.onward_stops[:-1]
        errand = len(self.segments) + (stops[-1] + 1 if stops else 0)
        edges = self._edges
        return edges[passed:errand], edges[max(passed, errand) :]

    @cached_property
    def _edges(self) -> tuple[int, ...]:
        return (*(segment.edge for segment in self.segments), *self.onward)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(segment.route_s0_um for segment in self.segments)

    @property
    def length_um(self) -> int:
        """The position of the goal."""
        return self.segments[-1].route_s0_um + self.segments[-1].length_um if self.segments else 0

    @property
    def start_um(self) -> int:
        return self.start.s_um if isinstance(self.start, OnEdge) else 0

    def segment_at(self, s_um: int) -> int:
        """The segment of a position; a node belongs to the segment that ends in it."""
        starts = self._starts
        at = bisect_right(starts, s_um) - 1
        if at <= 0:
            return 0
        return at - 1 if starts[at] == s_um else at

    def pose_at(self, s_um: int) -> Pose:
        """The pose of the truck at a position; in a node the pose on arrival."""
        if not self.segments:
            assert isinstance(self.start, AtNode)
            at = self.site.network.nodes[self.start.node].at
            return Pose(at.x_um, at.y_um, self.start.yaw_urad or 0)
        segment = self.segments[self.segment_at(s_um)]
        edge = self.site.network.edges[segment.edge]
        on = min(max(s_um - segment.route_s0_um, 0), segment.length_um)
        x, y = edge.path.point(on)
        return Pose(x, y, truck_yaw(edge.path.heading(on), edge.style))

    def project(self, pose: Pose, near_um: int | None = None, limits: Limits = LIMITS) -> Projection | None:
        """The position of a pose; None for a route without segments.

        If `near_um`, the last known position, is given, matches near it win, so that a route that crosses itself does
        not make a truck jump. Without it the first passage wins.
        """
        if not self.segments:
            return None
        matches: list[Projection] = []
        if near_um is not None:
            matches = self._on(pose, limits, near_um - _WINDOW_UM, near_um + _WINDOW_UM)
        matches = matches or self._on(pose, limits, 0, self.length_um)
        if not matches:
            every = (self._nearest(number, pose, limits) for number in range(len(self.segments)))
            return min(every, key=lambda match: (match.lateral_um, match.segment))
        # The ends of adjacent segments are close, too: `near_um` decides only between equally good matches.
        least = min(match.lateral_um for match in matches)
        equal_matches = [match for match in matches if match.lateral_um <= least + _SAME_PLACE_UM]
        if near_um is None:
            return min(equal_matches, key=lambda match: match.s_on_route_um)
        return min(
            equal_matches, key=lambda match: (_away(match.s_on_route_um - near_um), match.lateral_um, match.segment)
        )

    def _on(self, pose: Pose, limits: Limits, low_um: int, high_um: int) -> list[Projection]:
        """Every match of the pose between two positions, within both limits."""
        matches = []
        for number in range(self.segment_at(low_um), self.segment_at(high_um) + 1):
            segment = self.segments[number]
            path = self.site.network.edges[segment.edge].path
            begin = self.start_um if number == 0 else 0
            low = max(low_um - segment.route_s0_um, begin)
            high = max(low, min(high_um - segment.route_s0_um, segment.length_um))
            for on, square in path.places(pose.x_um, pose.y_um, limits.off_route_um, low, high):
                # At the border of the window the closest position may be outside of it.
                if (on == low > begin) or (on == high < segment.length_um):
                    continue
                match = self._projected(number, on, square, pose, limits)
                if abs(match.heading_error_urad) <= limits.heading_urad:
                    matches.append(match)
        return matches

    def _nearest(self, number: int, pose: Pose, limits: Limits) -> Projection:
        path = self.site.network.edges[self.segments[number].edge].path
        on, square = path.nearest(pose.x_um, pose.y_um, self.start_um if number == 0 else 0)
        return self._projected(number, on, square, pose, limits)

    def _projected(self, number: int, on: int, square: int, pose: Pose, limits: Limits) -> Projection:
        segment = self.segments[number]
        edge = self.site.network.edges[segment.edge]
        error = turn_urad(truck_yaw(edge.path.heading(on), edge.style), pose.yaw_urad)
        lateral = root(square)
        worst = max(
            half_up(lateral * 1_000_000, limits.off_route_um), half_up(abs(error) * 1_000_000, limits.heading_urad)
        )
        return Projection(number, on, segment.route_s0_um + on, lateral, error, max(0, 1_000_000 - worst // 2))

    def form(self) -> dict[str, Any]:
        """The route in the form of the contract."""
        network = self.site.network
        return {
            "contractVersion": CONTRACT_VERSION,
            "routeId": self.route_id,
            "revision": self.revision,
            "robotId": self.robot_id,
            "compiledMapHash": self.site.compiled_hash,
            "start": anchor_form(self.site, self.start),
            "goalNodeId": network.nodes[self.goal].id,
            "restNodeId": None if self.rest is None else network.nodes[self.rest].id,
            "onwardEdgeKeys": [network.edges[edge].key for edge in self.onward],
            "onwardStops": list(self.onward_stops),
            "lengthM": plain(self.length_um),
            "costMs": half_up(self.cost_us, 1000),
            "segments": [self._segment_form(number) for number in range(len(self.segments))],
            "reason": self.reason,
        }

    def _segment_form(self, number: int) -> dict[str, Any]:
        segment = self.segments[number]
        edge = self.site.network.edges[segment.edge]
        return {
            "segmentIndex": number,
            "edgeKey": edge.key,
            "edgeGroupKey": edge.group_key,
            "lengthM": plain(segment.length_um),
            "routeS0M": plain(segment.route_s0_um),
            "movestyle": edge.style.value,
            "geometryRef": f"edge:{edge.key}",
            "endNode": {
                "nodeId": self.site.network.nodes[edge.end].id,
                "mustStop": segment.must_stop,
                "turnRad": plain(segment.turn_urad),
            },
        }


def _away(moved_um: int) -> int:
    """The implausibility of a move. Trucks do not drive back: it is noise, or the way out of a dead end."""
    return moved_um if moved_um >= 0 else _BACK * -moved_um


def anchor_form(site: CompiledMap, anchor: Anchor) -> dict[str, Any]:
    match anchor:
        case OnEdge(edge, s_um):
            return {"kind": "ON_EDGE", "edgeKey": site.network.edges[edge].key, "sM": plain(s_um)}
        case AtNode(node, _):
            return {"kind": "AT_NODE", "nodeId": site.network.nodes[node].id}


def plan_route(
    planner: Planner,
    robot_id: str,
    route_id: str,
    start: Anchor,
    stops: tuple[int, ...],
    rest: int | None = None,
    reason: str = "TASK_ASSIGNED",
    closed: Closed = OPEN,
) -> RoutePlan | Refusal:
    """A route to the first stop; its `onward` leads over the other stops to the rest node."""
    goal = stops[0]
    way = planner.way(start, goal, closed)
    if isinstance(way, Refusal):
        return way
    onward = onward_over(planner, way, start, stops, rest, closed)
    if isinstance(onward, Refusal):
        return onward
    segments = segments_of(planner.site, way.edges)
    return RoutePlan(
        route_id=route_id,
        revision=1,
        robot_id=robot_id,
        site=planner.site,
        start=start,
        goal=goal,
        segments=segments,
        cost_us=way.cost_us,
        reason=reason,
        rest=rest,
        onward=onward.edges,
        onward_stops=onward.stops,
    )


def cost_of(planner: Planner, start: Anchor, edges: tuple[int, ...]) -> int:
    site = planner.site
    cost = planner.first_turn_us(edges[0], start.yaw_urad) if isinstance(start, AtNode) else 0
    for place, edge in enumerate(edges):
        begin = start.s_um if place == 0 and isinstance(start, OnEdge) else 0
        cost += planner.drive_us(edge, site.network.edges[edge].path.length_um - begin)
        if place:
            k = next(k for k in site.transitions.of(edges[place - 1]) if int(site.transitions.out[k]) == edge)
            cost += 0 if bool(site.transitions.tangent[k]) else planner.turn_us(int(site.transitions.turn_urad[k]))
    return cost


@dataclass(frozen=True, slots=True)
class Onward:
    """The way after the goal: its edges, and the indexes of those after which the truck stops."""

    edges: tuple[int, ...]
    stops: tuple[int, ...]


def onward_over(
    planner: Planner, way: Way, start: Anchor, stops: tuple[int, ...], rest: int | None, closed: Closed
) -> Onward | Refusal:
    edges: list[int] = []
    places: list[int] = []
    last = way.edges[-1] if way.edges else None
    yaw = start.yaw_urad if isinstance(start, AtNode) else None
    at = stops[0]
    for goal in (*stops[1:], *(() if rest is None else (rest,))):
        if goal == at:
            continue
        leg = planner.way(AtNode(at, yaw), goal, closed) if last is None else planner.onward(last, goal, closed)
        if isinstance(leg, Refusal):
            return leg
        edges += leg.edges
        places.append(len(edges) - 1)
        last, at = leg.edges[-1], goal
    return Onward(tuple(edges), tuple(places))


def segments_of(site: CompiledMap, edges: tuple[int, ...], stops: Set[int] = frozenset()) -> tuple[Segment, ...]:
    """Segments in order, with the turn at the end of each; the truck stops after the last one, after those with indexes
    in `stops`, and wherever it turns on the spot."""
    result = []
    begin = 0
    for place, edge in enumerate(edges):
        length = site.network.edges[edge].path.length_um
        if place + 1 == len(edges):
            result.append(Segment(edge, length, begin, True, 0, None))
        else:
            onward = edges[place + 1]
            k = next(k for k in site.transitions.of(edge) if int(site.transitions.out[k]) == onward)
            tangent = bool(site.transitions.tangent[k])
            kind = TransitionKind.TANGENT if tangent else TransitionKind.NON_TANGENT
            must_stop = not tangent or place in stops
            result.append(Segment(edge, length, begin, must_stop, int(site.transitions.turn_urad[k]), kind))
        begin += length
    return tuple(result)


# New routes from the current one: its continuation after the goal, and another way that keeps the committed part.


def continued(planner: Planner, old: RoutePlan, route_id: str, yaw_urad: int | None, reason: str) -> RoutePlan:
    """Continue a route from its goal to its next stop, over the others to rest, on exactly the planned edges: an
    admitted way needs no second admission."""
    first = old.onward_stops[0] + 1
    network = old.site.network
    start = AtNode(old.goal, yaw_urad)
    return RoutePlan(
        route_id=route_id,
        revision=1,
        robot_id=old.robot_id,
        site=old.site,
        start=start,
        goal=network.edges[old.onward[first - 1]].end,
        segments=segments_of(old.site, old.onward[:first]),
        cost_us=cost_of(planner, start, old.onward[:first]),
        reason=reason,
        rest=old.rest,
        onward=old.onward[first:],
        onward_stops=tuple(place - first for place in old.onward_stops[1:]),
    )


def splice(
    planner: Planner,
    old: RoutePlan,
    stop_line_um: int,
    stops: tuple[int, ...],
    route_id: str,
    reason: str,
    closed: Closed = OPEN,
) -> RoutePlan | Refusal:
    """A new revision that keeps all segments up to the first node at or beyond the stop line known to the truck.

    `route_id` is used if the goal changes; otherwise the old id stays.
    """
    committed_count = committed(old, stop_line_um)
    goal = stops[0]
    if committed_count == 0:
        rest: Way | Refusal = planner.way(old.start, goal, closed)
        own: tuple[int, ...] = ()
        cost = 0
    else:
        own = tuple(segment.edge for segment in old.segments[:committed_count])
        rest = planner.onward(own[-1], goal, closed)
        cost = cost_of(planner, old.start, own)
    if isinstance(rest, Refusal):
        return rest
    edges = (*own, *rest.edges)
    whole = Way(edges, cost + rest.cost_us, ())
    onward = onward_over(planner, whole, old.start, stops, old.rest, closed)
    if isinstance(onward, Refusal):
        return onward
    name = old.route_id if goal == old.goal else route_id
    segments = segments_of(planner.site, edges)
    return RoutePlan(
        route_id=name,
        revision=old.revision + 1,
        robot_id=old.robot_id,
        site=planner.site,
        start=old.start,
        goal=goal,
        segments=segments,
        cost_us=whole.cost_us,
        reason=reason,
        rest=old.rest,
        onward=onward.edges,
        onward_stops=onward.stops,
    )


def committed(route: RoutePlan, stop_line_um: int) -> int:
    """The number of segments that a truck with this stop line will drive to their end."""
    for number, segment in enumerate(route.segments):
        if segment.route_s0_um + segment.length_um >= stop_line_um:
            # In the start node nothing is committed yet.
            at_start = number == 0 and isinstance(route.start, AtNode) and stop_line_um <= 0
            return 0 if at_start else number + 1
    return len(route.segments)


# Opposition costs (FLT-LIVE-14): lanes on which other routes run in the opposite direction cost more.
# Of two trucks that meet at a single lane one waits until the other has passed all of it. A detour with the traffic
# costs a little driving and no waiting.

Opposite: TypeAlias = tuple[tuple[int, ...], ...]
# Rounds of planning all trips, after which the directions of a map have settled.
_ROUNDS = 3
# The way to rest is often not driven, so it counts this many times less.
_PROMISED = 4


def opposite_edges(site: CompiledMap) -> Opposite:
    """For every edge the edges of its group in the opposite direction."""
    network = site.network
    edges = network.edges
    return tuple(
        tuple(
            other
            for other in network.groups[network.group_of[number]].edges
            if edges[other].forward_on_axis != edge.forward_on_axis
        )
        for number, edge in enumerate(edges)
    )


def opposition_us(planner: Planner, opposite: Opposite, routes: Iterable[Iterable[int]], milli: int) -> dict[int, int]:
    """Extra costs of edges: `milli` thousandths of the cost of an edge for every route in the opposite direction."""
    met: Counter[int] = Counter()
    for route in routes:
        met.update({other for edge in route for other in opposite[edge]})
    return {edge: planner.edge_us(edge) * milli * count // 1000 for edge, count in sorted(met.items())}


def avoidance_us(
    planner: Planner, opposite: Opposite, routes: Sequence[tuple[Sequence[int], Sequence[int]]], milli: int
) -> dict[int, int]:
    """Extra costs for routes given as (errand, way to rest). The way to rest counts less: a truck that gets its next
    task at the drop never drives it."""
    more = opposition_us(planner, opposite, [errand for errand, _ in routes], milli)
    for edge, us in opposition_us(planner, opposite, [rest for _, rest in routes], milli // _PROMISED).items():
        more[edge] = more.get(edge, 0) + us
    return more


def one_way_us(planner: Planner, opposite: Opposite, trips: Mapping[int, Sequence[int]], milli: int) -> dict[int, int]:
    """Extra costs of edges so that traffic circulates in one direction: up to `milli` thousandths of the cost, by the
    share of trips in the opposite direction. `trips` are the start nodes of the trips to each goal.

    Trips are planned goal by goal against all others, for several rounds: trips with the traffic strengthen its
    direction.
    """
    if all(_is_leaf(planner.site, edge) for edge, others in enumerate(opposite) if others):
        return {}
    ways: dict[int, Counter[int]] = {}
    flow: Counter[int] = Counter()
    for _ in range(_ROUNDS):
        for goal, starts in sorted(trips.items()):
            flow.subtract(ways.get(goal, Counter()))
            ways[goal] = _edge_uses(planner.with_extra_costs(_shares(planner, opposite, flow, milli)), goal, starts)
            flow.update(ways[goal])
    return _shares(planner, opposite, flow, milli)


def _shares(planner: Planner, opposite: Opposite, flow: Counter[int], milli: int) -> dict[int, int]:
    edges = planner.site.network.edges
    extra_us = {}
    for edge, others in enumerate(opposite):
        against = sum(flow[other] for other in others)
        if against > flow[edge]:
            cost = planner.drive_us(edge, edges[edge].path.length_um)
            extra_us[edge] = cost * milli * against // (1000 * (against + flow[edge]))
    return extra_us


def _edge_uses(planner: Planner, goal: int, starts: Sequence[int]) -> Counter[int]:
    """How often each edge is used on the ways from the start nodes to a goal."""
    uses: Counter[int] = Counter()
    for start in starts:
        way = planner.way(AtNode(start), goal)
        if isinstance(way, Way):
            uses.update(way.edges)
    return uses


def _is_leaf(site: CompiledMap, edge: int) -> bool:
    """Whether an edge leads to a dead end, so that no detour avoids it."""
    network = site.network
    directed = network.edges[edge]
    ends = (directed.start, directed.end)
    return any(len({network.edges[out].end for out in network.outgoing[node]}) == 1 for node in ends)


# Progress of a truck: one value that only grows, to extend reservations, and a lower bound, to release them.
# Noise neither moves the first back nor the second ahead. A change that the truck cannot have driven is a pose jump.


class ProgressParams(Struct, frozen=True):
    window: int = 5
    regress_um: int = 300_000
    jump_um: int = 500_000


USUAL = ProgressParams()


class Progress(Struct, frozen=True, gc=False):
    """The state of the estimator: `extend_um` is monotone, `raw_um` are the last samples, newest last."""

    at_ms: int
    extend_um: int
    raw_um: tuple[int, ...]

    def release_um(self, uncertainty_um: int) -> int:
        """`sReleaseM`: the position that the truck has certainly passed."""
        return min(self.raw_um) - uncertainty_um

    def shifted(self, back_um: int) -> "Progress":
        """The same progress on a route that begins `back_um` later."""
        return Progress(self.at_ms, self.extend_um - back_um, tuple(raw - back_um for raw in self.raw_um))


class PoseJump(Struct, frozen=True):
    """A sample that moved farther than possible."""

    moved_um: int
    possible_um: int


def started(at_ms: int, s_um: int) -> Progress:
    return Progress(at_ms, s_um, (s_um,))


def advanced(
    before: Progress, at_ms: int, s_um: int, profile: RobotProfile, params: ProgressParams = USUAL
) -> Progress | PoseJump:
    """Progress after the next sample, or a `PoseJump` that leaves the state unchanged."""
    passed_ms = max(0, at_ms - before.at_ms)
    driven = profile.v_max_um_s * passed_ms // 1000
    error = profile.localization_error.value_um
    moved = s_um - before.raw_um[-1]
    possible = max(params.jump_um, driven + apart_um(profile))
    extend = before.extend_um
    if s_um < extend - params.regress_um or abs(moved) > possible:
        return PoseJump(moved, possible)
    if s_um > extend:
        extend = min(s_um, extend + driven + error)
    return Progress(at_ms, extend, (*before.raw_um, s_um)[-params.window :])


def apart_um(profile: RobotProfile) -> int:
    """The largest difference of two reports of a healthy truck beyond the distance driven between their stamps: twice
    the localization error, the tracking error, and the distance driven within the stamp jitter."""
    jitter = profile.v_max_um_s * profile.stamp_jitter_ms // 1000
    return jitter + 2 * profile.localization_error.value_um + profile.tracking_error.value_um


def uncertainty_um(profile: RobotProfile, v_um_s: int, age_ms: int) -> int:
    """`sUncertaintyM`: the localization error and the distance the truck may have driven since its report."""
    return profile.localization_error.value_um + v_um_s * max(0, age_ms) // 1000


# The anchor of a pose: on an edge or in a node, never simply the nearest node.

_BUCKET_UM = 4_000_000
# The last position selects among passages of one edge that are farther apart than this.
_SNAP_WINDOW_UM = 3_000_000


class SnapParams(Struct, frozen=True):
    node_snap_um: int = 150_000
    heading_urad: int = 500_000
    # Beyond this the truck would leave the swept area of its cells.
    lateral_um: int = 200_000


USUAL_SNAP = SnapParams()


class Snapper:
    """Find anchors on one map, with a grid index of edges and nodes."""

    def __init__(self, site: CompiledMap, params: SnapParams = USUAL_SNAP) -> None:
        self.site = site
        self.params = params
        self._edges: dict[tuple[int, int], list[int]] = {}
        self._nodes: dict[tuple[int, int], list[int]] = {}
        for number, edge in enumerate(site.network.edges):
            path = edge.path
            buckets: set[tuple[int, int]] = set()
            for leg in range(len(path.s) - 1):
                buckets |= _buckets(path.x[leg], path.y[leg], path.x[leg + 1], path.y[leg + 1])
            for bucket in buckets:
                self._edges.setdefault(bucket, []).append(number)
        for number, node in enumerate(site.network.nodes):
            bucket = (node.at.x_um // _BUCKET_UM, node.at.y_um // _BUCKET_UM)
            self._nodes.setdefault(bucket, []).append(number)

    def anchor(
        self,
        pose: Pose,
        previous_edge: int | None = None,
        route_edges: Collection[int] = (),
        previous_s_um: int | None = None,
    ) -> Anchor | None:
        """The anchor of a pose; None if the truck is off the map or its heading matches no edge near it.

        Near a node it is the node. Otherwise, among edges whose heading matches: the edge of the last progress, then an
        edge of the route, then the smallest distance, then the edge key. On an edge that crosses itself the passage
        around `previous_s_um` wins, then the closest one whose heading matches.
        """
        node = self._node(pose)
        if node is not None:
            return AtNode(node, pose.yaw_urad)
        best: tuple[tuple[bool, bool, int, int], OnEdge] | None = None
        for number in self._near(self._edges, pose.x_um, pose.y_um, self.params.lateral_um):
            place = self._place(number, pose, previous_s_um if number == previous_edge else None)
            if place is None:
                continue
            s_um, square = place
            order = (number != previous_edge, number not in route_edges, root(square), number)
            if best is None or order < best[0]:
                best = (order, OnEdge(number, s_um))
        return None if best is None else best[1]

    def on_edge(self, pose: Pose, number: int) -> OnEdge | None:
        """The position of a pose on an edge, also near a node; None beyond its ends, or if no heading matches."""
        place = self._place(number, pose, None)
        if place is None or not 0 < place[0] < self.site.network.edges[number].path.length_um:
            return None
        return OnEdge(number, place[0])

    def _place(self, number: int, pose: Pose, previous_s_um: int | None) -> tuple[int, int] | None:
        """The position of a pose on an edge and its squared distance; None if no heading matches."""
        edge = self.site.network.edges[number]
        matches = [
            (s_um, square)
            for s_um, square in edge.path.places(pose.x_um, pose.y_um, self.params.lateral_um)
            if abs(turn_urad(truck_yaw(edge.path.heading(s_um), edge.style), pose.yaw_urad)) <= self.params.heading_urad
        ]
        if previous_s_um is not None:
            matches = [match for match in matches if abs(match[0] - previous_s_um) <= _SNAP_WINDOW_UM] or matches
        return min(matches, key=lambda match: (match[1], match[0]), default=None)

    def _node(self, pose: Pose) -> int | None:
        reach = self.params.node_snap_um
        best: tuple[int, int] | None = None
        for node in self._near(self._nodes, pose.x_um, pose.y_um, reach):
            at = self.site.network.nodes[node].at
            dx, dy = pose.x_um - at.x_um, pose.y_um - at.y_um
            square = dx * dx + dy * dy
            if square <= reach * reach and (best is None or (square, node) < best):
                best = (square, node)
        return None if best is None else best[1]

    def _near(self, table: dict[tuple[int, int], list[int]], x: int, y: int, reach: int) -> list[int]:
        numbers: set[int] = set()
        for column in range((x - reach) // _BUCKET_UM, (x + reach) // _BUCKET_UM + 1):
            for row in range((y - reach) // _BUCKET_UM, (y + reach) // _BUCKET_UM + 1):
                numbers.update(table.get((column, row), ()))
        return sorted(numbers)


def _buckets(ax: int, ay: int, bx: int, by: int) -> set[tuple[int, int]]:
    """The buckets a leg passes through, in pieces of one bucket: a long diagonal must not fill its bounding box."""
    pieces = max(abs(bx - ax), abs(by - ay)) // _BUCKET_UM + 1
    buckets = set()
    for piece in range(pieces):
        x0, x1 = sorted((ax + (bx - ax) * piece // pieces, ax + (bx - ax) * (piece + 1) // pieces))
        y0, y1 = sorted((ay + (by - ay) * piece // pieces, ay + (by - ay) * (piece + 1) // pieces))
        for column in range(x0 // _BUCKET_UM, x1 // _BUCKET_UM + 1):
            for row in range(y0 // _BUCKET_UM, y1 // _BUCKET_UM + 1):
                buckets.add((column, row))
    return buckets
