"""The planner of routes, the replaceable part of tasks."""

from typing import Protocol

from pendula.fleet.routing.planner import OPEN, Anchor, Closed, Planner
from pendula.fleet.routing.route_plan import RoutePlan, plan_route
from pendula.kernel.engine import Refusal


class RoutePlanner(Protocol):
    def plan_route(
        self,
        planner: Planner,
        robot_id: str,
        route_id: str,
        start: Anchor,
        stops: tuple[int, ...],
        rest: int | None = None,
        reason: str = "TASK_ASSIGNED",
        closed: Closed = OPEN,
    ) -> RoutePlan | Refusal:
        """A route to the first stop and over the others to rest; `planner` has the costs of this truck on this map.
        Traffic checks it like any other."""


class CheapestRoutes:
    def plan_route(
        self,
        planner: Planner,
        robot_id: str,
        route_id: str,
        start: Anchor,
        stops: tuple[int, ...],
        rest: int | None = None,
        reason: str = "TASK_ASSIGNED",
        closed: Closed = OPEN,
    ) -> RoutePlan | Refusal:
        return plan_route(planner, robot_id, route_id, start, stops, rest=rest, reason=reason, closed=closed)
