"""The plain dispatcher of scenarios: the nearest free truck takes the next task, and the next one already in the drop.

A route leads over pick and drop to rest, keeps off lanes that others are about to drive the other way, and is driven
leg by leg. Where the route to a next task is not admitted while a truck stands in its drop, the truck goes to rest
after a while, as it was planned, and somebody else may take the task.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pendula.fleet.contracts.traffic import Phase
from pendula.fleet.model import Fleet
from pendula.fleet.routing.opposition import against_us, one_way_us, opposite_edges
from pendula.fleet.routing.planner import Anchor, AtNode, Closed, Planner
from pendula.fleet.routing.route_plan import RoutePlan, plan_route
from pendula.fleet.routing.splicing import committed, continued, splice
from pendula.fleet.scenarios.model import Scenario, ScenarioTask
from pendula.fleet.scenarios.task_list import TaskList
from pendula.fleet.simulator.world import World
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.kernel.engine import Refusal

# How long a truck that goes to rest is not asked again after it was not let off its way.
_ASKED_AGAIN_MS = 10_000
# What a lane costs more, in thousandths, that all streams drive the other way.
_ONE_WAY_MILLI = 2_000


@dataclass(slots=True)
class Driver:
    """What a truck is about. `route` is the one it was given last, `since_ms` when."""

    robot_id: str
    planner: Planner
    closed: Closed
    rest: int
    # The node it stands in, or stood in last; where it began elsewhere than at rest, how it stood there.
    node: int
    anchor: Anchor | None = None
    phase: Phase = Phase.IDLE
    task: ScenarioTask | None = None
    route: RoutePlan | None = None
    since_ms: int = 0
    admitted: bool = True
    # The last route that was admitted.
    kept: RoutePlan | None = None
    # Whether it was on its way to rest when it was given its task, and until when it is not asked again.
    called_off: bool = False
    again_ms: int = 0
    routes: int = 0


class PlainTasks:
    """Drivers of all trucks in the order of their names, and the tasks they serve."""

    def __init__(
        self,
        site: CompiledMap,
        scenario: Scenario,
        planners: Mapping[str, Planner],
        closed: Mapping[str, Closed],
        starts: Mapping[str, Anchor],
    ) -> None:
        self.site = site
        self._patience_ms = scenario.patience_ms
        self._opposition_milli = scenario.opposition_milli
        self._lookahead_um = scenario.traffic.lookahead_um
        self._opposite = opposite_edges(site)
        number = site.node_number
        planners = {name: self._one_way(one, scenario) for name, one in planners.items()}
        self.drivers = [
            Driver(
                robot_id=one.robot_id,
                planner=planners[one.profile_id],
                closed=closed[one.robot_id],
                rest=number[one.park_node_id],
                node=number[one.start_node_id],
                anchor=starts.get(one.robot_id),
            )
            for one in sorted(scenario.robots, key=lambda one: one.robot_id)
        ]
        self.tasks = TaskList(scenario, len(self.drivers))
        self._fresh: list[RoutePlan] = []

    def step(self, now_ms: int, world: World) -> tuple[RoutePlan, ...]:
        """What trucks do next; the routes that are to be admitted for it."""
        self._fresh = []
        self.tasks.make(now_ms)
        for number, driver in enumerate(self.drivers):
            self._follow(number, driver, now_ms, world)
        self._assign(now_ms, world)
        for number, driver in enumerate(self.drivers):
            if self._is_free(driver) and driver.node != driver.rest:
                self._park(number, driver, now_ms, world)
        return tuple(self._fresh)

    @property
    def all_at_rest(self) -> bool:
        return all(self._is_free(one) and one.node == one.rest for one in self.drivers)

    def admitted(self, routes: Sequence[RoutePlan], world: World) -> None:
        """Routes that came into force; traffic may have changed one on the way."""
        for route in routes:
            number = next(i for i, one in enumerate(self.drivers) if one.robot_id == route.robot_id)
            driver = self.drivers[number]
            if driver.route is not None and driver.route.route_id == route.route_id:
                driver.admitted, driver.kept = True, route
                if route is not driver.route:
                    driver.route = route
                    world.learn(number, route)

    def _follow(self, number: int, driver: Driver, now_ms: int, world: World) -> None:
        match driver.phase:
            case Phase.TO_PICK | Phase.TO_DROP | Phase.TO_PARK:
                if driver.admitted and self._has_arrived(number, driver, world):
                    self._arrive(number, driver, world)
                elif not driver.admitted:
                    self._wait(number, driver, now_ms, world)
            case Phase.LOADING if not world.is_operating(number):
                assert driver.task is not None
                self._after_loading(number, driver, driver.task, now_ms, world)
            case Phase.UNLOADING if not world.is_operating(number):
                assert driver.task is not None
                self.tasks.finish(driver.task, now_ms)
                driver.task, driver.phase = None, Phase.IDLE

    def _has_arrived(self, number: int, driver: Driver, world: World) -> bool:
        truck = world.trucks[number]
        return driver.route is not None and truck.route is driver.route and truck.at_goal

    def _arrive(self, number: int, driver: Driver, world: World) -> None:
        assert driver.route is not None
        driver.node, driver.anchor = driver.route.goal, None
        if driver.phase is Phase.TO_PARK:
            driver.phase = Phase.IDLE
            return
        assert driver.task is not None
        loading = driver.phase is Phase.TO_PICK
        driver.phase = Phase.LOADING if loading else Phase.UNLOADING
        world.operate(number, driver.task.pick_ms if loading else driver.task.drop_ms)

    def _after_loading(self, number: int, driver: Driver, task: ScenarioTask, now_ms: int, world: World) -> None:
        drop = self.site.node_number[task.drop_node_id]
        if drop == driver.node:
            driver.phase = Phase.UNLOADING
            world.operate(number, task.drop_ms)
        else:
            self._go_on(number, driver, Phase.TO_DROP, now_ms, world)

    def _wait(self, number: int, driver: Driver, now_ms: int, world: World) -> None:
        """A truck whose route is not admitted: from a drop it goes to rest when its patience is over."""
        if driver.phase is not Phase.TO_PICK or driver.node == driver.rest:
            return
        if now_ms - driver.since_ms >= self._patience_ms and driver.task is not None:
            self.tasks.give_back(driver.task)
            driver.task = None
            if driver.called_off:
                self._back_to_rest(number, driver, now_ms, world)
            else:
                self._park(number, driver, now_ms, world)

    def _back_to_rest(self, number: int, driver: Driver, now_ms: int, world: World) -> None:
        """A truck that was to turn round on its way to rest keeps to it: the same route under a new number."""
        assert driver.kept is not None
        assert driver.route is not None
        driver.again_ms = now_ms + _ASKED_AGAIN_MS
        again = replace(driver.kept, revision=max(driver.kept.revision, driver.route.revision) + 1)
        self._give(number, driver, Phase.TO_PARK, again, now_ms, world)

    def _park(self, number: int, driver: Driver, now_ms: int, world: World) -> None:
        if driver.kept is None:
            self._go(number, driver, Phase.TO_PARK, (driver.rest,), now_ms, world)
        else:
            self._go_on(number, driver, Phase.TO_PARK, now_ms, world)

    def _is_free(self, driver: Driver) -> bool:
        return driver.phase is Phase.IDLE and driver.task is None

    def _may_turn_round(self, number: int, driver: Driver, now_ms: int, world: World) -> bool:
        """Whether a truck on its way to rest can still leave it at a node."""
        if driver.phase is not Phase.TO_PARK or not driver.admitted or now_ms < driver.again_ms:
            return False
        route = driver.route
        if route is None or world.trucks[number].route is not route:
            return False
        return committed(route, self._bound_um(number, world)) < len(route.segments)

    def _bound_um(self, number: int, world: World) -> int:
        """Up to where a truck may have been granted its way."""
        truck = world.trucks[number]
        return max(truck.s_um + self._lookahead_um, 0 if truck.order is None else truck.order.stop_line_um)

    def _assign(self, now_ms: int, world: World) -> None:
        free = [
            (i, one)
            for i, one in enumerate(self.drivers)
            if self._is_free(one) or self._may_turn_round(i, one, now_ms, world)
        ]
        for task in self.tasks.waiting() if free else ():
            if not free:
                return
            costs = [
                (cost, one.robot_id, i)
                for i, one in free
                if (not task.robot_ids or one.robot_id in task.robot_ids)
                and (cost := self._cost_us(i, one, task, world)) is not None
            ]
            # The nearest one takes it. On a map that is not LIVE it may be that it cannot, and somebody else can.
            taken = next((i for _, _, i in sorted(costs) if self._take(i, task, now_ms, world)), None)
            free = [one for one in free if one[0] != taken]

    def _take(self, number: int, task: ScenarioTask, now_ms: int, world: World) -> bool:
        driver = self.drivers[number]
        stops = self.site.node_number[task.pick_node_id], self.site.node_number[task.drop_node_id]
        called_off = driver.phase is Phase.TO_PARK
        sent = self._turn_round if called_off else self._set_out
        if not sent(number, driver, stops, now_ms, world):
            return False
        self.tasks.take(task)
        driver.task, driver.called_off = task, called_off
        return True

    def _set_out(self, number: int, driver: Driver, stops: tuple[int, ...], now_ms: int, world: World) -> bool:
        return self._go(number, driver, Phase.TO_PICK, stops, now_ms, world)

    def _turn_round(self, number: int, driver: Driver, stops: tuple[int, ...], now_ms: int, world: World) -> bool:
        """Asks for a way that leaves the one to rest at the next node at which it can."""
        assert driver.route is not None
        planner, bound = self._keeping_off(number, driver, world), self._bound_um(number, world)
        name = self._next_id(driver)
        route = splice(planner, driver.route, bound, stops, name, "TASK_ASSIGNED", closed=driver.closed)
        if isinstance(route, RoutePlan):
            self._give(number, driver, Phase.TO_PICK, route, now_ms, world)
        return isinstance(route, RoutePlan)

    def undoable(self, fleet: Fleet) -> list[str]:
        """A sentence for every pick and drop of which no truck that may serve them comes back to rest. There is none on
        a map that is LIVE for the fleet."""
        pairs = ((one, pick, drop) for one in fleet.streams for pick in one.pick_node_ids for drop in one.drop_node_ids)
        return [
            f"{one.stream_id!r}: nobody can go over {pick!r} and {drop!r} and come back to rest"
            for one, pick, drop in pairs
            if not any(self._comes_back(driver, pick, drop) for driver in self._may_serve(one.robot_ids))
        ]

    def _may_serve(self, robot_ids: tuple[str, ...]) -> list[Driver]:
        return [one for one in self.drivers if not robot_ids or one.robot_id in robot_ids]

    def _comes_back(self, driver: Driver, pick: str, drop: str) -> bool:
        stops = self.site.node_number[pick], self.site.node_number[drop]
        home = AtNode(driver.rest)
        made = plan_route(driver.planner, driver.robot_id, "", home, stops, rest=driver.rest, closed=driver.closed)
        return isinstance(made, RoutePlan)

    def _cost_us(self, number: int, driver: Driver, task: ScenarioTask, world: World) -> int | None:
        pick = self.site.node_number[task.pick_node_id]
        if driver.phase is Phase.TO_PARK:
            assert driver.route is not None
            kept = driver.route.segments[: committed(driver.route, self._bound_um(number, world))]
            way = driver.planner.onward(kept[-1].edge, pick, driver.closed)
            return None if isinstance(way, Refusal) else way.cost_us
        way = driver.planner.way(self._here(number, driver, world), pick, driver.closed)
        return None if isinstance(way, Refusal) else way.cost_us

    def _here(self, number: int, driver: Driver, world: World) -> Anchor:
        return driver.anchor or AtNode(driver.node, world.latest[number].yaw_urad)

    def _one_way(self, planner: Planner, scenario: Scenario) -> Planner:
        """A planner that prefers the direction in which the streams of a scenario go round. It knows all ways between
        picks and drops and from there to rest."""
        if not self._opposition_milli:
            return planner
        number = self.site.node_number
        trips: dict[int, list[int]] = {}
        streams = sorted(scenario.streams, key=lambda one: one.stream_id)
        drops = sorted({number[name] for one in streams for name in one.drop_node_ids})
        for one in streams:
            picks = [number[name] for name in one.pick_node_ids]
            for name in one.drop_node_ids:
                trips.setdefault(number[name], []).extend(picks)
            for pick in picks:
                trips[pick] = trips.get(pick, []) + drops
        for robot in scenario.robots:
            trips.setdefault(number[robot.park_node_id], []).extend(drops)
        return planner.dearer(one_way_us(planner, self._opposite, trips, _ONE_WAY_MILLI))

    def _keeping_off(self, number: int, driver: Driver, world: World) -> Planner:
        """A planner to which lanes are dear that others are about to drive the other way."""
        if not self._opposition_milli:
            return driver.planner
        ahead = [self._ahead(other, world) for other in range(len(self.drivers)) if other != number]
        return driver.planner.dearer(against_us(driver.planner, self._opposite, ahead, self._opposition_milli))

    def _ahead(self, number: int, world: World) -> list[int]:
        """The edges that a truck still has before it, to its rest node."""
        driver, truck = self.drivers[number], world.trucks[number]
        route = driver.route
        if route is None or (self._is_free(driver) and driver.node == driver.rest):
            return []
        passed = truck.segment if truck.route is route else 0
        return [one.edge for one in route.whole[passed:]]

    def _go(self, number: int, driver: Driver, phase: Phase, stops: tuple[int, ...], now_ms: int, world: World) -> bool:
        """Gives a truck a new route from the node it stands in; false where there is none."""
        route = plan_route(
            self._keeping_off(number, driver, world),
            driver.robot_id,
            self._next_id(driver),
            self._here(number, driver, world),
            stops,
            rest=driver.rest,
            reason="TASK_ASSIGNED" if phase is not Phase.TO_PARK else "PARKING",
            closed=driver.closed,
        )
        if isinstance(route, Refusal):
            return False
        self._give(number, driver, phase, route, now_ms, world)
        return True

    def _go_on(self, number: int, driver: Driver, phase: Phase, now_ms: int, world: World) -> None:
        """Sends a truck on along the way it was admitted to."""
        assert driver.kept is not None
        yaw = world.latest[number].yaw_urad
        reason = "TASK_ASSIGNED" if phase is not Phase.TO_PARK else "PARKING"
        route = continued(driver.planner, driver.kept, self._next_id(driver), yaw, reason)
        self._give(number, driver, phase, route, now_ms, world)

    def _next_id(self, driver: Driver) -> str:
        driver.routes += 1
        return f"route-{driver.robot_id}-{driver.routes}"

    def _give(self, number: int, driver: Driver, phase: Phase, route: RoutePlan, now_ms: int, world: World) -> None:
        driver.phase, driver.route, driver.since_ms, driver.admitted = phase, route, now_ms, False
        world.learn(number, route)
        self._fresh.append(route)
