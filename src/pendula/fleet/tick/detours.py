"""Detours for waiting trucks: to the same stops, avoiding what the truck waits for.

The granted part stays: the new route leaves the old one in the first node beyond the end of the grant.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from pendula.fleet.map.planner import OPEN, Anchor, AtNode, Closed, OnEdge, Planner
from pendula.fleet.map.progress import SnapParams, Snapper
from pendula.fleet.map.routes import (
    Opposite,
    RoutePlan,
    avoidance_us,
    cost_of,
    opposite_edges,
    plan_route,
    segments_of,
    splice,
)
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.tick.adoption import turned_in
from pendula.fleet.tick.params import TrafficParams, off_route_um
from pendula.fleet.tick.records import Record

# The reason of a route for a relocated truck.
RECOVERY = "RECOVERY"
# Extra cost of a lane for every truck about to drive it in the opposite direction, in thousandths (FLT-LIVE-14).
_AGAINST_MILLI = 3_000


def detour(record: Record, planner: Planner, closed: Closed) -> RoutePlan | None:
    """A new revision of the route; None if there is no other route."""
    track, waiting = record.track, record.waiting
    if track is None or waiting is None or waiting.resource is None:
        return None
    barred = Closed(closed.edges | _edges_of(record.site, waiting.resource), closed.turns, usual=closed)
    return _other_way(record, track.plan, planner, barred, "DEADLOCK")


def around(record: Record, planner: Planner, closed: Closed) -> RoutePlan | None:
    """A new revision of the route that avoids what is closed, if any."""
    track = record.track
    return None if track is None else _other_way(record, track.plan, planner, closed, "BLOCKED")


def home(record: Record, planner: Planner, closed: Closed) -> RoutePlan | None:
    """A new revision without stops, straight to rest, if any."""
    track = record.track
    return None if track is None else _other_way(record, track.plan, planner, closed, "BLOCKED", (record.rest,))


def _other_way(
    record: Record, old: RoutePlan, planner: Planner, closed: Closed, reason: str, straight: tuple[int, ...] = ()
) -> RoutePlan | None:
    stops = straight or _stops(old)
    done = turned_in(record)
    if done is None:
        plan = splice(planner, old, record.grant_um, stops, old.route_id, reason, closed=closed)
    else:
        # The truck has turned in its node: an older route straight through it would not turn it back.
        start = AtNode(done.node, done.yaw_urad)
        plan = plan_route(planner, record.robot_id, old.route_id, start, stops, old.rest, reason=reason, closed=closed)
    if not isinstance(plan, RoutePlan):
        return None
    edges = [segment.edge for segment in plan.whole]
    if edges == [segment.edge for segment in old.whole][-len(edges) :]:
        return None
    return replace(plan, revision=old.revision + 1)


def afresh(record: Record, planner: Planner, closed: Closed, anchor: Anchor) -> RoutePlan | None:
    """A route from the true position of a truck to the stops of its last route, if any."""
    driven = None if record.track is None else record.track.plan
    old = driven if record.pending is None else record.pending
    stops = (record.rest,) if old is None else _stops(old)
    name = f"{record.robot_id}-back-{record.seq}" if old is None else old.route_id
    plan = plan_route(planner, record.robot_id, name, anchor, stops, record.rest, reason=RECOVERY, closed=closed)
    if not isinstance(plan, RoutePlan):
        return None
    return replace(plan, revision=1 if old is None else old.revision + 1)


def the_rest(record: Record, planner: Planner, anchor: Anchor) -> RoutePlan | None:
    """The route of a truck from farther along it, as a new revision; None if the place is not on it, or if another
    route is pending."""
    track = record.track
    if track is None or record.pending is not None or not isinstance(anchor, OnEdge):
        return None
    old = track.plan
    passed = old.passed(record.at_um)
    edges = tuple(segment.edge for segment in old.segments[passed:])
    if anchor.edge not in edges:
        return None
    edges = edges[edges.index(anchor.edge) :]
    return replace(
        old,
        revision=old.revision + 1,
        start=anchor,
        segments=segments_of(record.site, edges),
        cost_us=cost_of(planner, anchor, edges),
        reason=RECOVERY,
    )


class Wayfinder:
    """Routes for trucks under way, each avoiding what its truck must avoid."""

    def __init__(self, site: CompiledMap, closed: Mapping[str, Closed], params: TrafficParams) -> None:
        self._site = site
        self._closed = closed
        self._params = params
        self._planners: dict[str, Planner] = {}
        self._snappers: dict[SnapParams, Snapper] = {}
        # Places closed by operators.
        self.shut = OPEN

    def detour(self, record: Record) -> RoutePlan | None:
        """A detour that avoids what the truck waits for."""
        return detour(record, self._planner(record), self._off(record))

    def compared(self, record: Record, others: Iterable[Record]) -> tuple[RoutePlan, int] | None:
        """A detour, and the cost of the route in force by the same measure. For both, lanes that other trucks will
        drive in the opposite direction cost more: the planner of the route in force avoided them, and a route against
        the stream looks short but only moves the wait to another place."""
        plain, track = self._planner(record), record.track
        ahead = [_ahead(other) for other in others if other is not record]
        planner = plain.with_extra_costs(avoidance_us(plain, self._opposite, ahead, _AGAINST_MILLI), once=True)
        plan = detour(record, planner, self._off(record))
        if plan is None or track is None:
            return None
        return plan, cost_of(planner, track.plan.start, tuple(segment.edge for segment in track.plan.segments))

    def around(self, record: Record, closed: Closed) -> RoutePlan | None:
        """A detour that also avoids what is closed."""
        usual = self._closed[record.robot_id]
        whole = Closed(usual.edges | closed.edges, usual.turns | closed.turns)
        return around(record, self._planner(record), whole)

    def home(self, record: Record, closed: Closed) -> RoutePlan | None:
        """A route straight to rest that also avoids what is closed."""
        usual = self._closed[record.robot_id]
        whole = Closed(usual.edges | closed.edges, usual.turns | closed.turns)
        return home(record, self._planner(record), whole)

    def _off(self, record: Record) -> Closed:
        """What a truck must avoid now."""
        usual, shut = self._closed[record.robot_id], self.shut
        return Closed(usual.edges | shut.edges, usual.turns | shut.turns) if shut else usual

    def anchor(self, record: Record) -> Anchor | None:
        """The position on the map that a truck reports; first on the edge an operator named, since an anchor in a node
        would keep all edges into it, where other trucks may be close behind."""
        if record.pose is None:
            return None
        edges = () if record.track is None else [segment.edge for segment in record.track.segments]
        edge = None if record.doubt is None else record.doubt.edge
        snapper = self._snapper(record)
        named = None if edge is None else snapper.on_edge(record.pose, edge)
        return named or snapper.anchor(record.pose, edge, edges)

    def back(self, record: Record, anchor: Anchor) -> Iterator[RoutePlan]:
        """Routes from there to the goal of the truck: the best first, then the one it was on, on which all trucks are
        known to get home."""
        planner = self._planner(record)
        best = afresh(record, planner, self._off(record), anchor)
        if best is not None:
            yield best
        rest = the_rest(record, planner, anchor)
        if rest is not None:
            yield rest

    def _planner(self, record: Record) -> Planner:
        name = record.profile.profile_id
        if name not in self._planners:
            self._planners[name] = Planner(self._site, record.profile)
        return self._planners[name]

    @cached_property
    def _opposite(self) -> Opposite:
        return opposite_edges(self._site)

    def _snapper(self, record: Record) -> Snapper:
        """One for all trucks with the same largest distance from their routes."""
        params = self._params
        snap = SnapParams(params.node_snap_um, params.heading_tol_urad, off_route_um(record.profile, params))
        if snap not in self._snappers:
            self._snappers[snap] = Snapper(self._site, snap)
        return self._snappers[snap]


def _ahead(record: Record) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The edges ahead of a truck: on its route, and onward to rest."""
    plan = None if record.track is None else record.track.plan
    return ((), ()) if plan is None else plan.ahead(plan.passed(record.at_um))


def _stops(plan: RoutePlan) -> tuple[int, ...]:
    """The goal and the stops behind it, without rest, which is implied."""
    edges = plan.site.network.edges
    return (plan.goal, *(edges[plan.onward[place]].end for place in plan.onward_stops[:-1]))


def _edges_of(site: CompiledMap, resource: int) -> frozenset[int]:
    """The edges that lead over a cell, into a node, or through a section."""
    if resource < len(site.cells):
        return frozenset({int(site.cells.edge[resource])})
    if resource < site.token(0):
        return frozenset(site.network.incoming[resource - len(site.cells)])
    section = resource - site.token(0)
    cells = (cell for cell, sections in site.sections_of_cell.items() if section in sections)
    return frozenset(int(site.cells.edge[cell]) for cell in cells)
