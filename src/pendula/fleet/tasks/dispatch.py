"""Tasks and trucks, step by step: who takes which task, and what each truck does next.

The nearest free truck takes the next ready task, and the next one already in its drop. A route leads over pick and drop
to rest and is driven leg by leg. Where the route to a next task is not admitted while a truck stands in its drop, the
truck goes to rest after a while, as it was planned, and somebody else may take the task. Integers, total orders, no
clock: the same inputs give the same steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pendula.fleet.contracts.traffic import Phase, TaskState
from pendula.fleet.model import Stream, Truck
from pendula.fleet.routing.planner import Anchor, AtNode, Closed, Planner
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tasks.book import Task, TaskBook
from pendula.fleet.tasks.drivers import DRIVING, Driver
from pendula.fleet.tasks.intake import Intake
from pendula.fleet.tasks.model import (
    DispatchParams,
    DispatchStep,
    Operation,
    TaskAlert,
    TaskEvent,
    TaskStream,
    Transition,
    TruckView,
)
from pendula.fleet.tasks.ways import Ways, one_way
from pendula.fleet.tick import RefusedRoute
from pendula.fleet.trucks.profiles import RobotProfile

WAIT_SAFE_STATE = "WAIT_SAFE_STATE"
# A route that was refused for good is asked for again after this, where the truck has no other.
_RETRY_MS = 1_000


class Dispatch:
    """Drivers of all trucks in the order of their names, and the tasks they serve."""

    def __init__(
        self,
        site: CompiledMap,
        trucks: Sequence[Truck],
        profiles: Mapping[str, RobotProfile],
        closed: Mapping[str, Closed],
        streams: Sequence[TaskStream] = (),
        params: DispatchParams | None = None,
        *,
        starts: Mapping[str, Anchor] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        self.site = site
        self.params = params or DispatchParams()
        starts = starts or {}
        rests = [site.node_number[one.park_node_id] for one in trucks]
        planners = {
            name: one_way(site, Planner(site, profile), streams, rests, self.params)
            for name, profile in profiles.items()
        }
        self.drivers = [
            Driver(
                number=number,
                robot_id=one.robot_id,
                planner=planners[one.profile_id],
                closed=closed[one.robot_id],
                rest=site.node_number[one.park_node_id],
                node=_node(site, starts.get(one.robot_id), one),
                anchor=starts.get(one.robot_id),
            )
            for number, one in enumerate(sorted(trucks, key=lambda one: one.robot_id))
        ]
        self.book = TaskBook.of(streams, len(self.drivers), limits or {})
        self._numbers = {one.robot_id: one.number for one in self.drivers}
        self._ways = Ways(site, self.drivers, self.params)
        self._now_ms = 0
        self._routes: list[RoutePlan] = []
        self._operations: list[Operation] = []
        self._alerts: list[TaskAlert] = []

    def step(self, now_ms: int, trucks: Sequence[TruckView], events: Sequence[TaskEvent] = ()) -> DispatchStep:
        """What trucks do next; the routes that are to be admitted for it. `trucks` are all, in their order."""
        self._now_ms, self._ways.views = now_ms, trucks
        self._routes, self._operations, self._alerts = [], [], []
        intake = Intake(self.site, self.book, self._numbers)
        intake.take(events, now_ms)
        self.book.make(now_ms)
        self.book.look(now_ms)
        for driver in self.drivers:
            self._follow(driver, trucks[driver.number], driver.robot_id in intake.operated)
        self._assign()
        for driver in self.drivers:
            if driver.is_free and driver.node != driver.rest and trucks[driver.number].ok:
                self._park(driver)
        transitions = self.take_transitions()
        return DispatchStep(
            routes=tuple(self._routes),
            operations=tuple(self._operations),
            transitions=transitions,
            refused=tuple(intake.refused),
            alerts=tuple(self._alerts),
        )

    def settled(self, accepted: Sequence[RoutePlan], refused: Sequence[RefusedRoute] = ()) -> None:
        """What traffic said of routes; it may have changed one on the way."""
        for route in accepted:
            driver = self.drivers[self._numbers[route.robot_id]]
            if driver.route is not None and driver.route.route_id == route.route_id:
                driver.admitted, driver.kept, driver.route = True, route, route
                task = driver.task
                if task is not None and task.state is TaskState.ASSIGNED:
                    self.book.move(task, TaskState.IN_PROGRESS, self._now_ms, "ROUTE_ADMITTED")
        for one in refused:
            driver = self.drivers[self._numbers[one.robot_id]]
            asked = driver.route
            if asked is not None and (asked.route_id, asked.revision) == (one.route_id, one.revision):
                # A route that would close a circle is tried again by traffic itself.
                driver.rejected = None if one.code == WAIT_SAFE_STATE else one.code

    def take_transitions(self) -> tuple[Transition, ...]:
        """Changes of tasks that nobody was told of yet."""
        transitions, self.book.transitions = tuple(self.book.transitions), []
        return transitions

    def phase(self, number: int) -> Phase:
        return self.drivers[number].shown_phase

    def task_of(self, number: int) -> Task | None:
        return self.drivers[number].task

    def tasks(self) -> list[Task]:
        """Those that are not over, in the order in which they came."""
        return list(self.book.open.values())

    def is_over(self, now_ms: int) -> bool:
        """Whether all is done, nothing more will come by itself, and every truck is at rest."""
        return self.book.is_over(now_ms) and all(one.at_rest for one in self.drivers)

    def undoable(self, streams: Sequence[Stream]) -> list[str]:
        """A sentence for every pick and drop of which nobody comes back to rest."""
        return self._ways.undoable(streams)

    def _follow(self, driver: Driver, view: TruckView, operated: bool) -> None:
        match driver.phase:
            case Phase.TO_PICK | Phase.TO_DROP | Phase.TO_PARK:
                self._leave_the_way_to_rest(driver, view)
                if driver.admitted and driver.drives(view) and view.at_goal:
                    self._arrive(driver)
                elif not driver.admitted:
                    self._wait(driver)
            case Phase.LOADING if operated:
                assert driver.task is not None
                self._after_loading(driver, driver.task)
            case Phase.UNLOADING if operated:
                assert driver.task is not None
                self.book.move(driver.task, TaskState.DONE, self._now_ms, "UNLOADED")
                driver.task, driver.phase = None, Phase.IDLE

    def _leave_the_way_to_rest(self, driver: Driver, view: TruckView) -> None:
        """A task is taken up in the node where the truck leaves its way to rest, not before."""
        task = driver.task
        pending = task is not None and task.state is TaskState.PENDING_PREEMPT
        if task is not None and pending and driver.admitted and driver.drives(view) and view.at_um >= driver.leaves_um:
            self.book.move(task, TaskState.IN_PROGRESS, self._now_ms, "ROUTE_ADMITTED")

    def _arrive(self, driver: Driver) -> None:
        assert driver.route is not None
        driver.node, driver.anchor = driver.route.goal, None
        if driver.phase is Phase.TO_PARK:
            driver.phase = Phase.IDLE
            return
        assert driver.task is not None
        self._operate(driver, driver.task, Phase.LOADING if driver.phase is Phase.TO_PICK else Phase.UNLOADING)

    def _operate(self, driver: Driver, task: Task, phase: Phase) -> None:
        driver.phase, driver.since_ms = phase, self._now_ms
        loading = phase is Phase.LOADING
        kind, ms = ("LOAD", task.order.pick_ms) if loading else ("UNLOAD", task.order.drop_ms)
        self._operations.append(Operation(driver.robot_id, kind, self.site.network.nodes[driver.node].id, ms))

    def _after_loading(self, driver: Driver, task: Task) -> None:
        self.book.loaded(task)
        if self.site.node_number[task.order.drop_node_id] == driver.node:
            self._operate(driver, task, Phase.UNLOADING)
        else:
            self._give(driver, Phase.TO_DROP, self._ways.go_on(driver, "TASK_ASSIGNED"))

    def _wait(self, driver: Driver) -> None:
        """A truck whose route is not admitted: from a drop it goes to rest when its patience is over."""
        waited = self._now_ms - driver.since_ms
        if driver.phase is not Phase.TO_PICK:
            if driver.rejected is not None and waited >= _RETRY_MS:
                self._ask_again(driver)
            return
        if driver.rejected is None and (driver.node == driver.rest or waited < self.params.patience_ms):
            return
        assert driver.task is not None
        self.book.move(driver.task, TaskState.READY, self._now_ms, driver.rejected or "ROUTE_NOT_ADMITTED")
        driver.task = None
        if driver.called_off:
            driver.again_ms = self._now_ms + self.params.asked_again_ms
            self._give(driver, Phase.TO_PARK, self._ways.keep_to(driver))
        elif driver.node == driver.rest:
            driver.phase, driver.route, driver.admitted = Phase.IDLE, driver.kept, True
        else:
            self._park(driver)

    def _ask_again(self, driver: Driver) -> None:
        """For the same way, under a new number: the truck has no other."""
        assert driver.route is not None
        self._give(driver, driver.phase, _renumbered(driver.route))

    def _park(self, driver: Driver) -> None:
        if driver.kept is not None:
            self._give(driver, Phase.TO_PARK, self._ways.go_on(driver, "PARKING"))
            return
        route = self._ways.set_out(driver, (driver.rest,), "PARKING")
        if route is not None:
            self._give(driver, Phase.TO_PARK, route)

    def _assign(self) -> None:
        free = [one for one in self.drivers if self._may_be_sent(one)]
        if not free:
            return
        under_way = self.book.under_way()
        for task in self.book.waiting():
            if not free:
                return
            if self.book.exhausted(task, under_way) is not None:
                continue
            named = task.order.robot_ids
            costs = sorted(
                (eta, one.robot_id, one.number)
                for one in free
                if (not named or one.robot_id in named) and (eta := self._ways.eta_ms(one, task.order)) is not None
            )
            # The nearest one takes it. On a map that is not LIVE it may be that it cannot, and somebody else can.
            taken = next((number for _, _, number in costs if self._take(self.drivers[number], task)), None)
            if taken is not None:
                task.eta_ms = next(eta for eta, _, number in costs if number == taken)
                task.candidates = tuple((name, eta) for eta, name, _ in costs)
                under_way.take(task.order)
                free = [one for one in free if one.number != taken]

    def _may_be_sent(self, driver: Driver) -> bool:
        view = self._ways.views[driver.number]
        if not view.ok or view.paused or view.load:
            return False
        return driver.is_free or (self._now_ms >= driver.again_ms and self._ways.may_turn_round(driver))

    def _take(self, driver: Driver, task: Task) -> bool:
        number = self.site.node_number
        stops = number[task.order.pick_node_id], number[task.order.drop_node_id]
        called_off = driver.phase is Phase.TO_PARK
        leaves_um = self._ways.leaves_um(driver) if called_off else 0
        made = self._ways.turn_round if called_off else self._ways.set_out
        route = made(driver, stops, "TASK_ASSIGNED")
        if route is None:
            return False
        self._give(driver, Phase.TO_PICK, route)
        driver.task, driver.called_off, driver.leaves_um = task, called_off, leaves_um
        task.robot_id, task.assigned_ms = driver.robot_id, self._now_ms
        self.book.move(task, TaskState.PENDING_PREEMPT if called_off else TaskState.ASSIGNED, self._now_ms, "NEAREST")
        return True

    def _give(self, driver: Driver, phase: Phase, route: RoutePlan) -> None:
        assert phase in DRIVING
        driver.phase, driver.route, driver.since_ms = phase, route, self._now_ms
        driver.admitted, driver.rejected = False, None
        self._routes.append(route)


def _renumbered(route: RoutePlan) -> RoutePlan:
    return replace(route, revision=route.revision + 1)


def _node(site: CompiledMap, start: Anchor | None, truck: Truck) -> int:
    """The node a truck begins in, or is about to come to."""
    match start:
        case None:
            return site.node_number[truck.park_node_id]
        case AtNode(node, _):
            return node
        case _:
            return site.network.edges[start.edge].end
