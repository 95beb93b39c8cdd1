"""Checks of routes that do not depend on the position of the truck or on other trucks.

A refusal here is final: asking again does not help.
"""

from collections.abc import Iterable, Mapping

from pendula.fleet.driving.records import Record
from pendula.fleet.routing.planner import AtNode, Closed
from pendula.fleet.routing.route_plan import RoutePlan


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
