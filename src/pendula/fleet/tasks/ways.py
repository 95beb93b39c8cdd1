"""Routes for tasks: over pick and drop to rest, avoiding lanes that others will drive in the opposite direction.

A planner is made for each kind of truck that prefers the direction in which the streams go round. What was admitted
once is driven leg by leg, edge by edge as it was planned.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from pendula.fleet.contracts import Phase
from pendula.fleet.map.planner import OPEN, Anchor, AtNode, Closed, Planner
from pendula.fleet.map.routes import (
    RoutePlan,
    Segment,
    avoidance_us,
    committed,
    continued,
    one_way_us,
    opposite_edges,
    plan_route,
    splice,
)
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.model import Stream
from pendula.fleet.tasks.book import Driver
from pendula.fleet.tasks.model import DispatchParams, TaskOrder, TaskStream, TruckView
from pendula.fleet.units import half_up
from pendula.kernel.engine import Refusal

# The planner of routes, the replaceable part of tasks.


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


def one_way(
    site: CompiledMap, planner: Planner, streams: Iterable[TaskStream], rests: Iterable[int], params: DispatchParams
) -> Planner:
    """A planner that prefers the direction of most streams."""
    if not params.opposition_milli:
        return planner
    return planner.with_extra_costs(against_the_stream_us(site, planner, streams, rests, params.one_way_milli))


def against_the_stream_us(
    site: CompiledMap, planner: Planner, streams: Iterable[TaskStream], rests: Iterable[int], milli: int
) -> dict[int, int]:
    """Extra cost of edges against the direction of most trips between picks, drops and rest."""
    number = site.node_number
    trips: dict[int, list[int]] = {}
    ordered = sorted(streams, key=lambda stream: stream.stream_id)
    drops = sorted({number[name] for stream in ordered for name in stream.drop_node_ids})
    for stream in ordered:
        picks = [number[name] for name in stream.pick_node_ids]
        for name in stream.drop_node_ids:
            trips.setdefault(number[name], []).extend(picks)
        for pick in picks:
            trips[pick] = trips.get(pick, []) + drops
    for rest in rests:
        trips.setdefault(rest, []).extend(drops)
    return one_way_us(planner, opposite_edges(site), trips, milli)


class Ways:
    """Plans for all drivers. `views` belong to the present step."""

    def __init__(self, site: CompiledMap, drivers: Sequence[Driver], params: DispatchParams) -> None:
        self._site = site
        self._drivers = drivers
        self._params = params
        self._opposite = opposite_edges(site)
        self.views: Sequence[TruckView] = ()
        # Replaceable.
        self.route_planner: RoutePlanner = CheapestRoutes()

    def view(self, driver: Driver) -> TruckView:
        """The last view of a truck; one without a view, as after a restart, is not `ok`."""
        seen = self.views[driver.number : driver.number + 1]
        return seen[0] if seen else TruckView(driver.number, driver.robot_id, ok=False)

    def eta_ms(self, driver: Driver, order: TaskOrder) -> int | None:
        """Time to a pick for a truck that is free or can turn round on its way to rest; None if it cannot reach it."""
        pick, view = self._site.node_number[order.pick_node_id], self.view(driver)
        kept: tuple[Segment, ...] = ()
        here = driver.here(view)
        if driver.phase is Phase.TO_PARK:
            assert driver.route is not None
            kept, here = driver.route.segments[: committed(driver.route, view.bound_um)], driver.route.start
        if kept:
            cost_us = driver.planner.onward_us(kept[-1].edge, pick, driver.closed)
        else:
            cost_us = driver.planner.cost_us(here, pick, driver.closed)
        return None if cost_us is None else half_up(cost_us, 1000)

    def reaches(self, driver: Driver, order: TaskOrder) -> bool:
        """Whether a truck gets from rest over pick and drop back to rest."""
        return self._comes_back(driver, order.pick_node_id, order.drop_node_id, driver.closed)

    def would_reach(self, driver: Driver, order: TaskOrder, closed: Closed) -> bool:
        """The same, with other places closed."""
        return self._comes_back(driver, order.pick_node_id, order.drop_node_id, closed)

    def still_does(self, driver: Driver, order: TaskOrder) -> bool:
        """Whether a truck on its way to a pick gets from its position over pick and drop to rest."""
        assert driver.route is not None
        number, planner, closed = self._site.node_number, driver.planner, driver.closed
        pick, drop = number[order.pick_node_id], number[order.drop_node_id]
        kept = driver.route.segments[: committed(driver.route, self.view(driver).bound_um)]
        if kept and self._site.network.edges[kept[-1].edge].end == pick:
            there: int | None = 0
        elif kept:
            there = planner.onward_us(kept[-1].edge, pick, closed)
        else:
            there = planner.cost_us(driver.route.start, pick, closed)
        legs = (there, planner.cost_us(AtNode(pick), drop, closed), planner.cost_us(AtNode(drop), driver.rest, closed))
        return None not in legs

    def may_turn_round(self, driver: Driver) -> bool:
        """Whether a truck on its way to rest can still leave it at a node."""
        view = self.view(driver)
        if driver.phase is not Phase.TO_PARK or not driver.admitted or not driver.drives(view):
            return False
        assert driver.route is not None
        return committed(driver.route, view.bound_um) < len(driver.route.segments)

    def set_out(self, driver: Driver, stops: tuple[int, ...], reason: str) -> RoutePlan | None:
        """A new route from where a truck stands, if there is one."""
        made = self.route_planner.plan_route(
            self._keeping_off(driver),
            driver.robot_id,
            driver.next_route_id(),
            driver.here(self.view(driver)),
            stops,
            rest=driver.rest,
            reason=reason,
            closed=driver.closed,
        )
        return made if isinstance(made, RoutePlan) else None

    def turn_round(self, driver: Driver, stops: tuple[int, ...], reason: str) -> RoutePlan | None:
        """A route that leaves the present one at the next possible node."""
        route, bound, name = driver.route, self.view(driver).bound_um, driver.next_route_id()
        assert route is not None
        # First without the other trucks, which is cheap: while failed trucks close routes, every task is tried with
        # every truck in every step.
        plain = splice(driver.planner, route, bound, stops, name, reason, closed=driver.closed)
        if not isinstance(plain, RoutePlan):
            return None
        made = splice(self._keeping_off(driver), route, bound, stops, name, reason, closed=driver.closed)
        return made if isinstance(made, RoutePlan) else None

    def leaves_um(self, driver: Driver) -> int:
        """The position of the next node at which a truck can leave its route."""
        assert driver.route is not None
        kept = driver.route.segments[: committed(driver.route, self.view(driver).bound_um)]
        return kept[-1].route_s0_um + kept[-1].length_um if kept else 0

    def go_on(self, driver: Driver, reason: str) -> RoutePlan:
        """The onward route that was admitted with the route in force."""
        assert driver.kept is not None
        yaw = self.view(driver).yaw_urad
        return continued(driver.planner, driver.kept, driver.next_route_id(), yaw, reason)

    def keep_to(self, driver: Driver) -> RoutePlan:
        """The route in force with a new revision, in place of one that was not admitted."""
        assert driver.kept is not None
        assert driver.route is not None
        return replace(driver.kept, revision=max(driver.kept.revision, driver.route.revision) + 1)

    def undoable(self, streams: Iterable[Stream], closed: Sequence[Closed] | None = None) -> list[Refusal]:
        """A refusal for every pick and drop of which no truck that may serve them comes back to rest. There is none on
        a map that is LIVE for the fleet, unless every node is locked that a truck passes. `closed`: to each of the
        trucks, where that is not what is now."""
        pairs = (
            (stream, pick, drop) for stream in streams for pick in stream.pick_node_ids for drop in stream.drop_node_ids
        )
        return [
            Refusal("UNREACHABLE", {"streamId": stream.stream_id, "pickNodeId": pick, "dropNodeId": drop})
            for stream, pick, drop in pairs
            if not any(
                self._comes_back(driver, pick, drop, driver.closed if closed is None else closed[driver.number])
                for driver in self._may_serve(stream.robot_ids)
            )
        ]

    def _may_serve(self, robot_ids: tuple[str, ...]) -> list[Driver]:
        return [driver for driver in self._drivers if not robot_ids or driver.robot_id in robot_ids]

    def _comes_back(self, driver: Driver, pick: str, drop: str, closed: Closed) -> bool:
        stops = self._site.node_number[pick], self._site.node_number[drop]
        home = AtNode(driver.rest)
        made = plan_route(driver.planner, driver.robot_id, "", home, stops, rest=driver.rest, closed=closed)
        return isinstance(made, RoutePlan)

    def _keeping_off(self, driver: Driver) -> Planner:
        """A planner with extra cost for lanes that others will drive in the opposite direction."""
        milli = self._params.opposition_milli
        if not milli:
            return driver.planner
        ahead = [self._ahead(other) for other in self._drivers if other is not driver]
        return driver.planner.with_extra_costs(avoidance_us(driver.planner, self._opposite, ahead, milli), once=True)

    def _ahead(self, driver: Driver) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The edges ahead of a truck: on its route, and onward to rest."""
        route, view = driver.route, self.view(driver)
        if route is None or driver.at_rest:
            return (), ()
        return route.ahead(route.passed(view.at_um) if driver.drives(view) else 0)
