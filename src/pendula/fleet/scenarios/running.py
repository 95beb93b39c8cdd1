"""A scenario, tick by tick: tasks, traffic, trucks, and the judge that watches them. The same seed, the same digest."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

import numpy as np

from pendula.fleet.checker import Disc, Judge, Poses
from pendula.fleet.commands import Commands, Tick
from pendula.fleet.compiled_sites import put
from pendula.fleet.compiler.compile import compile_map
from pendula.fleet.contracts.traffic import OperatorAction, Phase
from pendula.fleet.engine import FleetEngine, OrdersOut, config_form
from pendula.fleet.events import FleetEvent
from pendula.fleet.gateway import Gateway, Selected, ToldOperations, abilities, heard, register
from pendula.fleet.network.transitions import truck_yaw
from pendula.fleet.pictures.moment import ShownTruck
from pendula.fleet.routing.planner import Anchor, AtNode, OnEdge
from pendula.fleet.scenarios.configuring import config_of
from pendula.fleet.scenarios.expectations import Outcome, asks_for_places, unmet
from pendula.fleet.scenarios.measures import WATCHED, Measures
from pendula.fleet.scenarios.model import Robot, Scenario
from pendula.fleet.scenarios.names import ScenarioRefused, wrong_names
from pendula.fleet.scenarios.outside_routes import OutsideRoutes
from pendula.fleet.simulator.connection import SimulatedGateway
from pendula.fleet.simulator.world import Start, World
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tasks import Dispatch, OperationDone, TaskEvent, TaskSubmitted
from pendula.fleet.tick import NodeLockPolicy, Reason, TickOutputs, Traffic
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.fleet.units import MILLION, metres
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome as EngineOutcome

_WORKING = frozenset({Phase.LOADING, Phase.UNLOADING})
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to. `form` is the document of the contract; `unmet` are expectations that did not come true."""

    form: dict[str, Any]
    unmet: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not self.unmet


class Road(Protocol):
    """The way of a tick into the engine."""

    def apply(self, command: Commands) -> EngineOutcome[FleetEvent]: ...


class Run:
    """A scenario under way."""

    def __init__(
        self,
        scenario: Scenario,
        site: CompiledMap | None = None,
        road: Callable[[FleetEngine, Json], Road] | None = None,
    ) -> None:
        """`road` makes the way to the engine: through a journal, or straight to it where nothing is said."""
        self.scenario = scenario
        self.site = site or compile_map(scenario.source, scenario.profiles, scenario.compile_params)
        put(self.site)
        wrong = wrong_names(scenario, self.site)
        if wrong:
            raise ScenarioRefused(f"{scenario.name} cannot begin: {'; '.join(wrong)}", findings=wrong)
        self.robots = tuple(sorted(scenario.robots, key=lambda one: one.robot_id))
        by_id = {one.profile_id: one for one in scenario.profiles}
        starts = [_start(self.site, one, by_id[one.profile_id]) for one in self.robots]
        elsewhere = {
            robot.robot_id: _anchor(self.site, robot, start)
            for robot, start in zip(self.robots, starts, strict=True)
            if robot.anchor is not None or robot.start_node_id != robot.park_node_id
        }
        self.config = config_form(config_of(scenario, self.site, elsewhere))
        register(scenario.profiles)
        self.engine = FleetEngine.create(self.config)
        self.road: Road = self.engine if road is None else road(self.engine, self.config)
        self.world = World(self.site, starts, scenario.world, scenario.seed)
        # The way to the trucks of this world; whoever connects real ones puts another in its place.
        self.gateway: Gateway = SimulatedGateway(self.world)
        self._told = ToldOperations()
        self._can = abilities(self.engine.traffic.records)
        names = tuple(one.robot_id for one in self.robots)
        self._number = {name: number for number, name in enumerate(names)}
        self.judge = Judge(names, [one.profile for one in starts])
        # The certificate knows nothing of ways that are closed because every node passed is locked.
        uncertain = scenario.override or scenario.traffic.node_lock_policy is NodeLockPolicy.EVERY
        wrong = self.dispatch.undoable(scenario.fleet.streams) if uncertain else []
        if wrong:
            raise ScenarioRefused(f"{scenario.name} cannot begin: {'; '.join(wrong)}", findings=wrong)
        self.measures = Measures(self.site, scenario.traffic, names, keeps_places=asks_for_places(scenario.expect))
        self._people = sorted(scenario.actions, key=lambda one: (one.ts, one.actionId))
        self._events = sorted(scenario.events, key=lambda one: (one.at_ms, one.robot_id))
        self._routes = OutsideRoutes(scenario.routes, self.engine)
        self._later: list[tuple[int, TaskEvent]] = _in_time(scenario)
        self._hash = sha256()

    @property
    def dispatch(self) -> Dispatch:
        return self.engine.dispatch

    @property
    def traffic(self) -> Traffic:
        return self.engine.traffic

    @property
    def now_ms(self) -> int:
        return self.world.now_ms

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen any more."""
        told = self._events or self._later or self._people or not self._routes.are_over
        return not told and self.dispatch.is_over(self.now_ms)

    def act(self, action: OperatorAction) -> None:
        """A person acts beside what the scenario says, in the next tick or when it is time."""
        self._people = sorted([*self._people, action], key=lambda one: (one.ts, one.actionId))

    def step(self) -> TickOutputs:
        """One tick: what the trucks report is decided upon, and they drive on to the next."""
        now = self.world.now_ms
        self._happen(now)
        came = heard(self.gateway.poll())
        tasks = self._task_events(now, came.done)
        actions, routes = self._actions(now), self._routes.due(now)
        told = self.road.apply(Tick(now, came.reports, tasks, operator_actions=actions, routes=routes))
        outputs = self.engine.last
        assert outputs is not None
        self._carry_out(self.engine.orders_out)
        self.world.follow(outputs.scene.records)
        trace = self.world.advance(now + self.scenario.traffic.tick_period_ms)
        route, truth = Poses(*trace.route), Poses(*trace.truth)
        found = self.judge.look(trace.at_ms, route, truth, self._discs(outputs), self.world.out)
        self.measures.note(outputs, found, [*self.traffic.passed_over(), *self.traffic.falsely_blamed()], self.world)
        self.measures.hear(told.events, now)
        self._digest(outputs)
        return outputs

    def run(self, upto_ms: int | None = None, watch: Callable[[int], None] = lambda _: None) -> Result:
        """Everything up to a time; to the end, which comes early when all is done and everybody is at rest."""
        to_the_end = upto_ms is None
        upto_ms = self.scenario.duration_ms if upto_ms is None else upto_ms
        while self.world.now_ms < upto_ms and not (to_the_end and self.is_over):
            self.step()
            watch(self.world.now_ms)
        return self.result()

    def why(self, robot_id: str) -> Reason:
        """Why a truck stands, as traffic sees it now."""
        if robot_id not in self._number:
            raise ScenarioRefused(f"there is no truck {robot_id!r}", robotId=robot_id)
        return self.traffic.why(robot_id)

    def shown_trucks(self) -> list[ShownTruck]:
        """Every truck in the hall as a picture of this moment shows it."""
        shown = []
        trucks = zip(self.robots, self.world.trucks, self.world.latest, self.world.out, strict=True)
        for robot, truck, seen, out in trucks:
            if out:
                continue
            reason = self.traffic.why(robot.robot_id)
            stop = None if truck.order is None or truck.route is None else truck.route.pose_at(truck.order.stop_line_um)
            shown.append(
                ShownTruck(
                    robot_id=robot.robot_id,
                    profile=truck.profile,
                    x_m=seen.x_um / MILLION,
                    y_m=seen.y_um / MILLION,
                    yaw_rad=seen.yaw_urad / MILLION,
                    stop_um=None if stop is None else (stop.x_um, stop.y_um),
                    blocker=reason.blocker,
                    sentence=f"{robot.robot_id}: {reason.code or 'on its way'}",
                )
            )
        return shown

    def result(self) -> Result:
        measures, book = self.measures, self.dispatch.book
        form = {
            "scenario": self.scenario.name,
            "seed": self.scenario.seed,
            "simulatedMs": self.world.now_ms,
            "metrics": self._metrics(),
            "invariants": {
                one: {"checked": measures.ticks, "violations": measures.violations[one]}
                for one in sorted({*WATCHED, *measures.violations}, key=lambda one: int(one[2:]))
            },
            "violations": [
                {"atMs": one.at_ms, "invariant": one.invariant, "message": one.sentence} for one in measures.breaches
            ],
            "incidents": [one.form(at_ms) for at_ms, one in measures.incidents],
            "tasks": {"done": book.done, "held": book.held, "open": len(book.open)},
            "digest": "sha256:" + self._hash.hexdigest(),
        }
        if measures.refused_actions:
            form["refusedActions"] = [one.form(at_ms) for at_ms, one in measures.refused_actions.values()]
        return Result(form, tuple(unmet(self.outcome(), self.scenario.expect)))

    def outcome(self) -> Outcome:
        """What expectations are compared with."""
        nodes = self.site.network.nodes
        stands = {
            one.robot_id: nodes[one.node].id if one.phase in (Phase.IDLE, *_WORKING) else None
            for one in self.dispatch.drivers
        }
        rests = {one.robot_id: one.park_node_id for one in self.robots}
        book = self.dispatch.book
        return Outcome(self.measures, book.done, len(book.open), stands, rests)

    def _metrics(self) -> dict[str, Json]:
        measures, done = self.measures, self.dispatch.book.done
        waits = {one: measures.waits[one].longest_ms for one in measures.waits}
        longest = sorted(max(one.values(), default=0) for one in waits.values())
        stood = sum((one.stood_ms for one in measures.waits.values()), Counter[str]())
        least = self.judge.least_m
        return {
            "tasksPerHour": done * HOUR_MS // max(self.world.now_ms, 1),
            "distanceM": measures.driven_um // MILLION,
            "longestWaitMs": longest[-1] if longest else 0,
            "medianLongestWaitMs": longest[len(longest) // 2] if longest else 0,
            "waitMsByReason": dict(sorted(stood.items())),
            "refusedRoutes": measures.refused.total(),
            "alerts": sorted(measures.alerts),
            "minEnvelopeDistanceMm": None if least is None else int(least * 1000),
            "swings": {**measures.swings.form},
        }

    def _happen(self, now_ms: int) -> None:
        while self._events and self._events[0].at_ms <= now_ms:
            event = self._events.pop(0)
            self.world.start_fault(self._number[event.robot_id], event.fault)

    def _actions(self, now_ms: int) -> tuple[OperatorAction, ...]:
        """What people do now, in the order of their times."""
        due = [one for one in self._people if one.ts <= now_ms]
        self._people = self._people[len(due) :]
        return tuple(due)

    def _task_events(self, now_ms: int, done: tuple[str | OperationDone, ...]) -> tuple[TaskEvent, ...]:
        """Goods, room and tasks whose time has come, and what trucks report done."""
        events: list[TaskEvent] = []
        while self._later and self._later[0][0] <= now_ms:
            events.append(self._later.pop(0)[1])
        return (*events, *self._told.named(done))

    def _carry_out(self, orders: OrdersOut) -> None:
        """What the engine decided reaches the trucks, each in its own time."""
        gateway = self.gateway
        gateway.announce(orders.routes)
        gateway.operate(orders.operations)
        self._told.note(orders.operations)
        gateway.send(Selected(orders.aims, self._can))

    def _discs(self, outputs: TickOutputs) -> list[Disc]:
        """Every node that is locked belongs to one truck alone."""
        nodes = self.site.network.nodes
        return [
            Disc(record.number, at.x_um / MILLION, at.y_um / MILLION)
            for record in outputs.scene.records
            for node in record.zones
            if (at := nodes[node].at)
        ]

    def _digest(self, outputs: TickOutputs) -> None:
        state = [(one.edge, one.on_um, one.yaw_urad or 0, one.v_um_s) for one in self.world.trucks]
        told = [
            (one.granted, one.reserved, None if one.waiting is None else one.waiting.code)
            for one in outputs.scene.records
        ]
        sent = [(one.seq, one.mode.value, str(metres(one.stop_um))) for one in outputs.aims]
        self._hash.update(np.array(state, dtype=np.int64).tobytes())
        self._hash.update(repr((outputs.now_ms, told, sent)).encode())


def _in_time(scenario: Scenario) -> list[tuple[int, TaskEvent]]:
    """What comes from outside about tasks, in the order of time: goods and room before tasks, as the file has them."""
    stock = [(one.at_ms, one.told) for one in scenario.task_events]
    tasks = [(one.at_ms, TaskSubmitted(one)) for one in sorted(scenario.tasks, key=lambda one: one.task_id)]
    return sorted([*stock, *tasks], key=lambda one: one[0])


def _start(site: CompiledMap, robot: Robot, profile: RobotProfile) -> Start:
    """At its anchor; or in its node at the end of the way it came by, the first one in; in a node that nobody comes
    into, ready to go."""
    network = site.network
    node = site.node_number[robot.start_node_id]
    ways = [one for one in network.incoming[node] if robot.came_from_id in (None, _from(site, one))]
    if robot.anchor is not None:
        edge, on = site.edge_number[robot.anchor.edge_key], robot.anchor.s_um
    elif ways:
        edge, on = ways[0], network.edges[ways[0]].path.length_um
    elif robot.came_from_id is None and network.outgoing[node]:
        edge, on = network.outgoing[node][0], 0
    else:
        message = f"truck {robot.robot_id!r} cannot have come to {robot.start_node_id!r} that way"
        raise ScenarioRefused(message, robotId=robot.robot_id)
    yaw = truck_yaw(network.edges[edge].path.heading(on), network.edges[edge].style)
    return Start(robot.robot_id, profile, edge, on, yaw)


def _anchor(site: CompiledMap, robot: Robot, start: Start) -> Anchor:
    """Where a truck begins that is not at rest: on its edge, or at the end of its way in, so that it holds that way
    alone."""
    return (
        OnEdge(start.edge, start.on_um)
        if start.on_um or robot.anchor is not None
        else AtNode(site.node_number[robot.start_node_id], start.yaw_urad)
    )


def _from(site: CompiledMap, edge: int) -> str:
    return site.network.nodes[site.network.edges[edge].start].id
