"""Routing: the cheapest way, the position of a truck on it, and when to replan.

guiding       goal-directed search (A*) for the cheapest ways, without searching the whole map
planner       the cheapest way for one truck: integer costs, deterministic ties
route_plan    a route as segments: positions, and the pose at each position
splicing      a new route that continues or replaces the current one
snapping      the anchor of a pose: on an edge or in a node
progress      how far a truck has come: a value that only grows, and a lower bound
opposition    extra costs of lanes that other routes use in the opposite direction
replanning    when a waiting truck may replan, and whether a new route is worth taking
"""

from pendula.fleet.routing.planner import Anchor, AtNode, Closed, OnEdge, Planner
from pendula.fleet.routing.progress import PoseJump, Progress, advanced, started
from pendula.fleet.routing.route_plan import Pose, Projection, RoutePlan, plan_route
from pendula.fleet.routing.snapping import Snapper
from pendula.fleet.routing.splicing import splice

__all__ = [
    "Anchor",
    "AtNode",
    "Closed",
    "OnEdge",
    "Planner",
    "Pose",
    "PoseJump",
    "Progress",
    "Projection",
    "RoutePlan",
    "Snapper",
    "advanced",
    "plan_route",
    "splice",
    "started",
]
