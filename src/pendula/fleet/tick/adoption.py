"""How a new or changed route replaces the old one: where they meet, what the truck still holds, and what it gives back.

A route may start in the node of the truck, keep the start of the old route (a splice), or start on the present edge. Up
to the end of the grant both must be equal. If the new one leaves it earlier, the grant is shortened to a standing
position before which the truck can still stop; the rest is released when the truck has acknowledged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pendula.fleet.map.corridors import EXIT_CLEARANCE_UM
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.map.planner import AtNode, Closed, OnEdge
from pendula.fleet.map.routes import RoutePlan, Segment
from pendula.fleet.map.trucks import braking_um
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.track import NEVER_UM, Act, Ground, Track, left_um, track_of

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
