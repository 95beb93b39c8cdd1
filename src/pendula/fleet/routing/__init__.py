"""The cheapest way, where on it a truck is, and when it may look for another.

planner       the cheapest way for one truck: integer costs, total order, no tie left to chance
progress      how far a truck has come: one value that only grows, to extend what it holds, and a lower bound
replanning    when a truck that waits may look for another route, and when the other route is worth taking
route_plan    A route: ordered segments with their place on the route, the pose at any position
snapping      where on the map a pose is: an anchor on an edge or in a node, never simply the nearest node
"""
