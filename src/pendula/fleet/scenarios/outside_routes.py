"""Routes from a planner outside the fleet, as a scenario tells them, for a truck that has no task.

Ways of the fleet's own leave the way in force beyond the end of what was granted. One from outside may leave it before
that: then the truck has to give something back, and keeps it until it has acknowledged.
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
    def __init__(self, told: Iterable[ScenarioRoute], engine: FleetEngine) -> None:
        self._left = sorted(told, key=lambda one: (one.at_ms, one.robot_id))
        self._engine = engine

    @property
    def are_over(self) -> bool:
        return not self._left

    def due(self, now_ms: int) -> tuple[SavedRoute, ...]:
        """The routes whose time has come. Raises `ScenarioRefused` where there is no such way."""
        due = [one for one in self._left if one.at_ms <= now_ms]
        self._left = self._left[len(due) :]
        return tuple(route_form(self._made(one)) for one in due)

    def _made(self, told: ScenarioRoute) -> RoutePlan:
        record = next(one for one in self._engine.traffic.records if one.robot_id == told.robot_id)
        driver = self._engine.dispatch.drivers[record.number]
        goal, route_id = self._engine.site.node_number[told.node_id], f"outside-{told.robot_id}-{told.at_ms}"
        old = None if record.track is None or not record.track.segments else record.track.plan
        if told.leaves_at is None or old is None:
            yaw = None if record.pose is None else record.pose.yaw_urad
            start = AtNode(record.node if old is None else old.goal, yaw)
            made = plan_route(driver.planner, told.robot_id, route_id, start, (goal,), record.rest, reason=REASON)
        else:
            made = splice(driver.planner, old, self._place_um(old, told.leaves_at), (goal,), route_id, REASON)
        if isinstance(made, Refusal):
            raise ScenarioRefused(f"there is no way for {told.robot_id!r} to {told.node_id!r} then", findings=[])
        return made

    def _place_um(self, old: RoutePlan, node_id: str) -> int:
        """Where a route comes to a node."""
        edges, node = self._engine.site.network.edges, self._engine.site.node_number[node_id]
        ends = [one.route_s0_um + one.length_um for one in old.segments if edges[one.edge].end == node]
        if not ends:
            raise ScenarioRefused(f"{node_id!r} is not on the way of {old.robot_id!r}", findings=[])
        return ends[0]
