"""Routes of an external planner in a scenario, for trucks without tasks.

Routes of the fleet itself leave the current route beyond the end of the grant. An external route may leave it earlier:
then the truck returns resources, and keeps them until it has acknowledged.
"""

from collections.abc import Iterable

from pendula.fleet.engine import FleetEngine
from pendula.fleet.routing.planner import AtNode
from pendula.fleet.routing.route_plan import RoutePlan, plan_route
from pendula.fleet.routing.splicing import splice
from pendula.fleet.scenarios.model import ScenarioRoute
from pendula.fleet.scenarios.names import ScenarioRefused
from pendula.fleet.tick.saving import SavedRoute, route_form
from pendula.kernel.engine import Refusal

REASON = "OUTSIDE"


class OutsideRoutes:
    def __init__(self, routes: Iterable[ScenarioRoute], engine: FleetEngine) -> None:
        self._pending = sorted(routes, key=lambda route: (route.at_ms, route.robot_id))
        self._engine = engine

    @property
    def are_over(self) -> bool:
        return not self._pending

    def due(self, now_ms: int) -> tuple[SavedRoute, ...]:
        """Take the routes that are due. Raises `ScenarioRefused` if there is no such way."""
        due = [route for route in self._pending if route.at_ms <= now_ms]
        self._pending = self._pending[len(due) :]
        return tuple(route_form(self._plan(route)) for route in due)

    def _plan(self, outside_route: ScenarioRoute) -> RoutePlan:
        record = next(record for record in self._engine.traffic.records if record.robot_id == outside_route.robot_id)
        driver = self._engine.dispatch.drivers[record.number]
        goal, route_id = (
            self._engine.site.node_number[outside_route.node_id],
            f"outside-{outside_route.robot_id}-{outside_route.at_ms}",
        )
        old = None if record.track is None or not record.track.segments else record.track.plan
        if outside_route.leaves_at is None or old is None:
            yaw = None if record.pose is None else record.pose.yaw_urad
            start = AtNode(record.node if old is None else old.goal, yaw)
            plan = plan_route(
                driver.planner, outside_route.robot_id, route_id, start, (goal,), record.rest, reason=REASON
            )
        else:
            plan = splice(driver.planner, old, self._place_um(old, outside_route.leaves_at), (goal,), route_id, REASON)
        if isinstance(plan, Refusal):
            trip = f"{outside_route.robot_id!r} to {outside_route.node_id!r}"
            raise ScenarioRefused(f"there is no way for {trip} at {outside_route.at_ms} ms", findings=[])
        return plan

    def _place_um(self, old: RoutePlan, node_id: str) -> int:
        """The position at which a route reaches a node."""
        edges, node = self._engine.site.network.edges, self._engine.site.node_number[node_id]
        ends = [segment.route_s0_um + segment.length_um for segment in old.segments if edges[segment.edge].end == node]
        if not ends:
            raise ScenarioRefused(f"{node_id!r} is not on the way of {old.robot_id!r}", findings=[])
        return ends[0]
