"""New routes from the current one: its continuation after the goal, and another way that keeps the committed part."""

from pendula.fleet.routing.planner import OPEN, AtNode, Closed, Planner, Way
from pendula.fleet.routing.route_plan import RoutePlan, cost_of, onward_over, segments_of
from pendula.kernel.engine import Refusal


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
