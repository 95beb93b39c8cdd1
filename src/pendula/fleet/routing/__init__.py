"""The cheapest way, where on it a truck is, and when it may look for another.

guiding       the cheapest ways to a goal without a look at the whole map
planner       the cheapest way for one truck: integer costs, a total order, no tie left to chance
route_plan    a route as segments: its positions, the pose at each
splicing      a route made from the one a truck drives
snapping      where on the map a pose is: on an edge or in a node, never simply the nearest node
progress      how far a truck has come: a value that only grows, and a lower bound
opposition    lanes that others are about to drive the other way are dearer
replanning    when a waiting truck may look for another route, and whether that is worth taking
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
