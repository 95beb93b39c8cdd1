"""New routes: how one replaces the old route, and detours for waiting trucks.

The granted part stays: a new route leaves the old one in the first node beyond the end of the grant.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pendula.fleet.map.corridors import EXIT_CLEARANCE_UM
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.map.planner import OPEN, Anchor, AtNode, Closed, OnEdge, Planner
from pendula.fleet.map.routes import (
    Opposite,
    RoutePlan,
    Segment,
    SnapParams,
    Snapper,
    avoidance_us,
    cost_of,
    opposite_edges,
    plan_route,
    segments_of,
    splice,
)
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import braking_um
from pendula.fleet.tick.params import TrafficParams, off_route_um
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.track import NEVER_UM, Act, Ground, Track, left_um, track_of

# How a new or changed route replaces the old one: where they meet, what the truck still holds, and what it gives
# back.
# A route may start in the node of the truck, keep the start of the old route (a splice), or start on the present
# edge. Up to the end of the grant both must be equal. If the new one leaves it earlier, the grant is shortened to a
# standing position before which the truck can still stop; the rest is released when the truck has acknowledged.

# Checks of routes that do not depend on the position of the truck or on other trucks.
# A refusal here is final: asking again does not help.


def screened_routes(
    plans: Iterable[RoutePlan], known: Mapping[str, Record], closed: Mapping[str, Closed]
) -> tuple[list[RoutePlan], list[tuple[RoutePlan, str]]]:
    """At most one route per truck, the last in an order independent of arrival; and the refused ones with their
    codes."""
    taken: dict[str, RoutePlan] = {}
    refused = []
    for plan in sorted(plans, key=_order):
        record = known.get(plan.robot_id)
        code = "UNKNOWN_ROBOT" if record is None else _unfit_for(record, plan, closed[plan.robot_id])
        if code is not None:
            refused.append((plan, code))
            continue
        if plan.robot_id in taken:
            refused.append((taken[plan.robot_id], "ROUTE_SUPERSEDED"))
        taken[plan.robot_id] = plan
    return list(taken.values()), refused


def _order(plan: RoutePlan) -> tuple[str, int, str, tuple[int, ...]]:
    return plan.robot_id, plan.revision, plan.route_id, (*(segment.edge for segment in plan.segments), *plan.onward)


def _unfit_for(record: Record, plan: RoutePlan, closed: Closed) -> str | None:
    if plan.site is not record.site and plan.site.compiled_hash != record.site.compiled_hash:
        return "ROUTE_OF_ANOTHER_MAP"
    current = None if record.track is None else record.track.plan
    if current is not None and current.route_id == plan.route_id and plan.revision < current.revision:
        return "ROUTE_OUTDATED"
    if _last_node(plan) != record.rest or plan.rest not in (None, record.rest):
        return "ROUTE_NOT_TO_REST"
    return "ROUTE_OVER_CLOSED" if _is_closed(record, plan, closed) else None


def _last_node(plan: RoutePlan) -> int | None:
    """Where the route ends. None if it does not begin in the node of its first edge, or leads nowhere."""
    edges = plan.site.network.edges
    if plan.whole:
        first = edges[plan.whole[0].edge].start
        begins = not isinstance(plan.start, AtNode) or plan.start.node == first
        return edges[plan.whole[-1].edge].end if begins else None
    return plan.start.node if isinstance(plan.start, AtNode) else None


def _is_closed(record: Record, plan: RoutePlan, closed: Closed) -> bool:
    """Whether a route leads over rest places of other trucks, or over edges closed to this profile. The first edge is
    exempt: the truck is already on it."""
    edges = plan.site.network.edges
    ahead = plan.whole if isinstance(plan.start, AtNode) else plan.whole[1:]
    for segment in ahead:
        allowed = edges[segment.edge].allowed_profiles
        if segment.edge in closed.edges or (allowed and record.profile.profile_id not in allowed):
            return True
    return any(segment.must_stop and edges[segment.edge].end in closed.turns for segment in plan.whole)


@dataclass(frozen=True, slots=True)
class Adoption:
    """A track that fits the truck now. `shift_um`: subtract it from a position of the old track to get one of the new
    track. `continues`: the remaining route is the one the truck already had."""

    track: Track
    shift_um: int
    carried: dict[int, int]
    given_back: tuple[int, ...]
    continues: bool


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why a route does not fit the position of the truck."""

    code: str


def adoption(record: Record, plan: RoutePlan, ground: Ground, params: TrafficParams, now_ms: int) -> Adoption | Unfit:
    shift = _shift_um(record, plan, params)
    if shift is None:
        return Unfit("ROUTE_STARTS_ELSEWHERE")
    granted = record.grant_um - shift
    shared = _shared_um(record, plan, shift)
    given_back: tuple[int, ...] = ()
    if granted > shared:
        drawn_in = _drawn_in_um(record, shared + shift, params, now_ms)
        if drawn_in is None:
            return Unfit("ROUTE_LEAVES_TOO_EARLY")
        granted = drawn_in - shift
        given_back = _beyond(record, drawn_in)
    carried = {
        resource: free - shift
        if free < NEVER_UM // 2
        else passed_um(ground, plan.whole, resource, granted, record.short_um)
        for resource, free in record.held.items()
        if resource not in given_back
    }
    track = track_of(ground, plan, record.short_um, granted, carried)
    if _looks_away(record, track, shift):
        return Unfit("ROUTE_LEAVES_ANOTHER_WAY")
    return Adoption(track, shift, carried, given_back, not given_back and _continues(record, track, shift))


def _shift_um(record: Record, plan: RoutePlan, params: TrafficParams) -> int | None:
    """Where the new track begins on the old one; None if the truck is not on it."""
    old = record.track
    if isinstance(plan.start, AtNode) and plan.start.node == _standing_node(record, params):
        return record.grant_um
    if old is None:
        return None
    if plan.start == old.plan.start and old.segments and plan.whole:
        return 0 if plan.whole[0].edge == old.segments[0].edge or record.at_um <= 0 else None
    if isinstance(plan.start, OnEdge):
        place = old.segment_at(record.at_um)
        segment = old.segments[place] if old.segments else None
        if segment is not None and segment.edge == plan.start.edge:
            return segment.route_s0_um
    return None


def _standing_node(record: Record, params: TrafficParams) -> int | None:
    """The node of a truck at the end of its grant; None if it is elsewhere."""
    if record.track is None or not record.track.segments:
        return record.node
    for act in (record.act, turned_in(record)):
        if act is not None and act.s_um == record.grant_um and record.at_um >= act.s_um - 2 * params.node_snap_um:
            return act.node
    return None


def turned_in(record: Record) -> Act | None:
    """What the truck has finished in the node at the end of its grant, which it has not left since."""
    done = record.track.acts[record.acted - 1] if record.track is not None and record.acted else None
    return done if done is not None and done.s_um == record.grant_um else None


def _looks_away(record: Record, track: Track, shift_um: int) -> bool:
    """Whether the truck has turned in its node, and the new route passes it straight in another direction."""
    done = turned_in(record)
    if done is None or done.yaw_urad is None or done.s_um == shift_um:
        return False
    at_um = done.s_um - shift_um
    into = next((segment for segment in track.segments if segment.route_s0_um == at_um), None)
    if into is None or any(act.s_um == at_um for act in track.acts):
        return False
    edge = track.plan.site.network.edges[into.edge]
    return truck_yaw(edge.path.heading(0), edge.style) != done.yaw_urad


def _shared_um(record: Record, plan: RoutePlan, shift_um: int) -> int:
    """How far both routes are equal, on the new track."""
    if record.track is None or record.grant_um == shift_um:
        return 0
    whole = plan.whole
    shared = 0
    old = {segment.route_s0_um - shift_um: segment.edge for segment in record.track.segments}
    for segment in whole:
        if old.get(segment.route_s0_um) != segment.edge:
            break
        shared = segment.route_s0_um + segment.length_um
    return shared


def _drawn_in_um(record: Record, upto_um: int, params: TrafficParams, now_ms: int) -> int | None:
    """The farthest standing position to which the grant can be shortened: at or before `upto_um`, and far enough for
    the truck to stop there."""
    if record.retraction is not None or now_ms - record.last_grant_ms < params.min_hold_ms:
        return None
    assert record.track is not None
    position = record.track.position_of(upto_um)
    at = record.track.stands[position]
    if at > upto_um or at < record.at_um + braking_um(record.profile, record.v_um_s):
        return None
    return at


def _beyond(record: Record, upto_um: int) -> tuple[int, ...]:
    """What is held only for the part of the grant beyond a position."""
    assert record.track is not None
    later = {use.resource for use in record.track.taken(upto_um, record.grant_um)}
    kept = {
        use.resource
        for use in record.track.taken(-NEVER_UM, upto_um)
        if record.held.get(use.resource, -NEVER_UM) >= use.free_um > record.bound_um
    }
    return tuple(sorted((later - kept) & record.held.keys()))


def passed_um(ground: Ground, whole: tuple[Segment, ...], resource: int, granted_um: int, short_um: int) -> int:
    """The last node of the new route that the old one never passed, with the section around it. There the route leaves
    beyond the end of the grant; it may have come from there before."""
    site = ground.site
    node = resource - len(site.cells)
    if 0 <= node < len(site.network.nodes):
        leaving = (k for k, segment in enumerate(whole) if site.network.edges[segment.edge].start == node)
        place = next((k for k in leaving if whole[k].route_s0_um >= granted_um), None)
        return NEVER_UM if place is None else left_um(site, whole, place, node, short_um)
    if not whole or resource < len(site.cells):
        return NEVER_UM if not whole else 0
    end = _end_of_section_um(ground, whole, resource - site.token(0), granted_um)
    return end + max(site.envelope.front_um, site.envelope.rear_um) + EXIT_CLEARANCE_UM


def _end_of_section_um(ground: Ground, whole: tuple[Segment, ...], section: int, start_um: int) -> int:
    """How far a route stays within a section, from a position on."""
    end = start_um
    for segment in whole:
        if segment.route_s0_um + segment.length_um <= start_um:
            continue
        begin = max(start_um - segment.route_s0_um, 0)
        stretches = ground.edge(segment.edge).stretches
        inside = [high for number, low, high in stretches if number == section and low <= begin < high]
        if not inside or end < segment.route_s0_um:
            break
        end = segment.route_s0_um + inside[0]
    return end


def goes_on(record: Record, plan: RoutePlan) -> bool:
    """Whether a route is, edge by edge, the rest of the present one: true for all that continue it."""
    old = record.track
    if old is None:
        return False
    ahead = [segment.edge for segment in old.segments if segment.route_s0_um + segment.length_um > record.grant_um]
    own = [segment.edge for segment in plan.whole]
    return own[len(own) - len(ahead) :] == ahead


def is_done(act: Act, done: Act, shift_um: int) -> bool:
    """Whether an act of a new route is already done; `done`: the last one on the old route. A new route may ask for a
    stop, or another turn, in a node where the truck has already turned."""
    at_um = done.s_um - shift_um
    return act.s_um < at_um or (act.s_um == at_um and (act.stop, act.yaw_urad) == (False, done.yaw_urad))


def _continues(record: Record, track: Track, shift_um: int) -> bool:
    old = record.track
    if old is None:
        return False
    mine = tuple(at + shift_um for at in track.stands)
    same_way = [segment.edge for segment in track.segments] == [
        segment.edge for segment in old.segments if segment.route_s0_um + segment.length_um > shift_um
    ]
    return same_way and mine == old.stands[record.granted :]


# Detours for waiting trucks: to the same stops, avoiding what the truck waits for.
# The granted part stays: the new route leaves the old one in the first node beyond the end of the grant.

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
