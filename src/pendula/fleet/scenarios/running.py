"""A run of a scenario, tick by tick: tasks, traffic, trucks and the judge. The same seed gives the same digest."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

import numpy as np
from msgspec import UNSET, Struct, structs

from pendula.fleet.checker import Disc, Judge, Poses
from pendula.fleet.commands import Commands, Config, StartPlace, Tick
from pendula.fleet.compiled_sites import put
from pendula.fleet.compiler.compile import compile_map
from pendula.fleet.contracts import OperatorAction, Phase
from pendula.fleet.engine import FleetEngine, OrdersOut, config_form
from pendula.fleet.events import FleetEvent
from pendula.fleet.gateway import Gateway, IssuedOperations, Selected, abilities, read_gateway, register
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.map.planner import Anchor, AtNode, OnEdge
from pendula.fleet.map.routes import RoutePlan, plan_route, splice
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.pictures.map import ShownTruck
from pendula.fleet.scenarios.measures import WATCHED, Measures, Outcome, needs_positions, unmet
from pendula.fleet.scenarios.model import OnLane, Robot, Scenario, ScenarioRoute
from pendula.fleet.sentences import sentence_of
from pendula.fleet.simulator.world import SimulatedGateway, Start, World
from pendula.fleet.tasks import Dispatch, OperationDone, TaskEvent, TaskSubmitted
from pendula.fleet.tasks.operators import refused
from pendula.fleet.tick import NodeLockPolicy, Reason, TickOutputs, Traffic
from pendula.fleet.tick.params import spelled_out
from pendula.fleet.tick.saving import SavedRoute, route_form
from pendula.fleet.units import MILLION, metres, plain
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome as EngineOutcome
from pendula.kernel.engine import Refusal
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import suggestion

# Unknown and duplicate names in a scenario, reported before the run starts.
# Picks and drops of streams are checked with the fleet (`liveness`). This module checks all other names, and operator
# actions that can never be applied.

# Members of events and expectations that are names, and their kinds.
_KINDS = {"robot_id": "truck", "node_id": "node", "edge_key": "edge", "group_key": "lane", "leaves_at": "node"}


class ScenarioRefused(InputRefused):
    """A scenario cannot start or continue because of an unknown or duplicate name. Facts: `findings` (sentences), or
    `robotId`."""

    code = "scenario_refused"


def name_faults(scenario: Scenario, site: CompiledMap) -> list[str]:
    """A sentence for each wrong name, in the order of the scenario."""
    known = {
        "truck": {robot.robot_id for robot in scenario.robots},
        "node": set(site.node_number),
        "edge": set(site.edge_number),
        "lane": {group.key for group in site.network.groups},
    }
    return [
        *([] if scenario.robots else ["there is no truck: name some under robots"]),
        *_duplicates("trucks", (robot.robot_id for robot in scenario.robots)),
        *_duplicates("streams", (stream.stream_id for stream in scenario.streams)),
        *_duplicates("tasks", (task.task_id for task in scenario.tasks)),
        *_robot_faults(scenario, site),
        *_task_faults(scenario, known),
        *(f"there is no node {node!r} to limit" for node in scenario.dispatch.node_limits if node not in known["node"]),
        *(
            f"there is no {kind} {name!r}{suggestion(name, sorted(known[kind]))}"
            for part in (*scenario.task_events, *scenario.events, *scenario.routes, *scenario.expect)
            for kind, name in _names_in(part)
            if name not in known[kind]
        ),
        *_action_faults(scenario, site, known["truck"]),
    ]


def _task_faults(scenario: Scenario, known: Mapping[str, Collection[str]]) -> Iterator[str]:
    for task in scenario.tasks:
        for verb, node in (("loads", task.pick_node_id), ("unloads", task.drop_node_id)):
            if node not in known["node"]:
                hint = suggestion(node, sorted(known["node"]))
                yield f"task {task.task_id!r} {verb} in {node!r}, which is not a node{hint}"
        for name in task.robot_ids:
            if name not in known["truck"]:
                hint = suggestion(name, sorted(known["truck"]))
                yield f"task {task.task_id!r} is for {name!r}, which is not a truck{hint}"


def _action_faults(scenario: Scenario, site: CompiledMap, trucks: Collection[str]) -> Iterator[str]:
    """Operator actions that would be rejected at any time."""
    for action in scenario.actions:
        refusal = refused(action, site)
        prefix = f"{action.type} at {action.ts} ms cannot be done"
        if refusal is not None:
            edge = "" if action.anchor is UNSET else action.anchor.edgeKey
            hint = suggestion(edge, tuple(site.edge_number)) if refusal.code == "UNKNOWN_PLACE" else ""
            yield f"{prefix}: {sentence_of(refusal.code, refusal.facts)}{hint}"
        elif action.robotId is not UNSET and action.robotId not in trucks:
            yield f"{prefix}: there is no truck {action.robotId!r}{suggestion(action.robotId, sorted(trucks))}"


def _duplicates(what: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"there are two {what} {name!r}"
        seen.add(name)


def _robot_faults(scenario: Scenario, site: CompiledMap) -> Iterator[str]:
    nodes, profiles = site.node_number, {profile.profile_id for profile in scenario.profiles}
    for robot in scenario.robots:
        if robot.profile_id not in profiles:
            known = ", ".join(sorted(profiles))
            sentence = f"truck {robot.robot_id!r} has the undefined profile {robot.profile_id!r}; defined are {known}"
            yield sentence + suggestion(robot.profile_id, sorted(profiles))
        if robot.park_node_id not in nodes:
            hint = suggestion(robot.park_node_id, tuple(nodes))
            yield f"truck {robot.robot_id!r} rests in {robot.park_node_id!r}, which is not a node{hint}"
        elif robot.start_node_id not in nodes:
            hint = suggestion(robot.start_node_id, tuple(nodes))
            yield f"truck {robot.robot_id!r} begins in {robot.start_node_id!r}, which is not a node{hint}"
        if robot.anchor is not None:
            yield from _anchor_faults(robot.robot_id, robot.anchor, site)


def _anchor_faults(robot_id: str, anchor: OnLane, site: CompiledMap) -> Iterator[str]:
    if anchor.edge_key not in site.edge_number:
        hint = suggestion(anchor.edge_key, tuple(site.edge_number))
        yield f"truck {robot_id!r} begins on {anchor.edge_key!r}, which is not an edge{hint}"
        return
    length = site.network.edges[site.edge_number[anchor.edge_key]].path.length_um
    if anchor.s_um > length:
        begins = f"truck {robot_id!r} begins {plain(anchor.s_um)} m along {anchor.edge_key!r}"
        yield f"{begins}, which is {plain(length)} m long"


def _names_in(named: Struct) -> Iterator[tuple[str, str]]:
    """The kinds and names in a struct and its nested structs."""
    for member, value in structs.asdict(named).items():
        if member in _KINDS and value is not None:
            yield _KINDS[member], value
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Struct):
                yield from _names_in(part)


# The engine configuration of a scenario, with which its journal begins.


def config_of(scenario: Scenario, site: CompiledMap, starts: Mapping[str, Anchor]) -> Config:
    """`starts` are the anchors of trucks that do not start at rest."""
    return Config(
        source=scenario.source,
        profiles=scenario.profiles,
        fleet=scenario.fleet,
        compiled_hash=site.compiled_hash,
        compile_params=scenario.compile_params,
        traffic=spelled_out(scenario.traffic, scenario.profiles),
        starts=tuple(_place(site, robot_id, starts[robot_id]) for robot_id in sorted(starts)),
        streams=scenario.streams,
        dispatch=scenario.dispatch,
        override=scenario.override,
        seed=scenario.seed,
    )


def _place(site: CompiledMap, robot_id: str, start: Anchor) -> StartPlace:
    match start:
        case OnEdge(edge, s_um):
            return StartPlace(robot_id, edge_key=site.network.edges[edge].key, s_um=s_um)
        case AtNode(node, yaw):
            return StartPlace(robot_id, node_id=site.network.nodes[node].id, yaw_urad=yaw)


# Routes of an external planner in a scenario, for trucks without tasks.
# Routes of the fleet itself leave the current route beyond the end of the grant. An external route may leave it
# earlier: then the truck returns resources, and keeps them until it has acknowledged.

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


_WORKING = frozenset({Phase.LOADING, Phase.UNLOADING})
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run. `form` is the document of the contract; `unmet` has sentences about unmet expectations."""

    form: dict[str, Any]
    unmet: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return not self.unmet


class Applier(Protocol):
    """Applies commands to an engine, for example through a journal."""

    def apply(self, command: Commands) -> EngineOutcome[FleetEvent]: ...


class Run:
    """A running scenario."""

    def __init__(
        self,
        scenario: Scenario,
        site: CompiledMap | None = None,
        make_applier: Callable[[FleetEngine, Json], Applier] | None = None,
    ) -> None:
        """`make_applier` creates the applier of commands, for example one with a journal; by default the engine
        itself."""
        self.scenario = scenario
        self.site = site or compile_map(scenario.source, scenario.profiles, scenario.compile_params)
        put(self.site)
        faults = name_faults(scenario, self.site)
        if faults:
            raise ScenarioRefused(f"{scenario.name} cannot start: {'; '.join(faults)}", findings=faults)
        self.robots = tuple(sorted(scenario.robots, key=lambda robot: robot.robot_id))
        by_id = {profile.profile_id: profile for profile in scenario.profiles}
        starts = [_start(self.site, robot, by_id[robot.profile_id]) for robot in self.robots]
        anchors = {
            robot.robot_id: _anchor(self.site, robot, start)
            for robot, start in zip(self.robots, starts, strict=True)
            if robot.anchor is not None or robot.start_node_id != robot.park_node_id
        }
        self.config = config_form(config_of(scenario, self.site, anchors))
        register(scenario.profiles)
        self.engine = FleetEngine.create(self.config)
        self.applier: Applier = self.engine if make_applier is None else make_applier(self.engine, self.config)
        self.world = World(self.site, starts, scenario.world, scenario.seed)
        # The gateway to the simulated trucks; replace it to connect real ones.
        self.gateway: Gateway = SimulatedGateway(self.world)
        self._running_operations = IssuedOperations()
        self._abilities = abilities(self.engine.traffic.records)
        names = tuple(robot.robot_id for robot in self.robots)
        self._number = {name: number for number, name in enumerate(names)}
        self.judge = Judge(names, [start.profile for start in starts])
        # The certificate does not consider ways that are closed because every node on them is locked.
        uncertain = scenario.override or scenario.traffic.node_lock_policy is NodeLockPolicy.EVERY
        faults = self.dispatch.undoable(scenario.fleet.streams) if uncertain else []
        if faults:
            raise ScenarioRefused(f"{scenario.name} cannot start: {'; '.join(faults)}", findings=faults)
        self.measures = Measures(self.site, scenario.traffic, names, keeps_places=needs_positions(scenario.expect))
        self._due_actions = sorted(scenario.actions, key=lambda action: (action.ts, action.actionId))
        self._events = sorted(scenario.events, key=lambda event: (event.at_ms, event.robot_id))
        self._routes = OutsideRoutes(scenario.routes, self.engine)
        self._task_queue: list[tuple[int, TaskEvent]] = _timed_task_events(scenario)
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
        """Whether nothing is left to do."""
        pending = self._events or self._task_queue or self._due_actions or not self._routes.are_over
        return not pending and self.dispatch.is_over(self.now_ms)

    def act(self, action: OperatorAction) -> None:
        """Add an operator action, applied at its time or in the next tick."""
        self._due_actions = sorted([*self._due_actions, action], key=lambda item: (item.ts, item.actionId))

    def step(self) -> TickOutputs:
        """Run one tick: apply the reports to the engine, send its orders, and advance the trucks."""
        now = self.world.now_ms
        self._start_faults(now)
        received = read_gateway(self.gateway.poll())
        tasks = self._task_events(now, received.done)
        actions, routes = self._actions(now), self._routes.due(now)
        outcome = self.applier.apply(Tick(now, received.reports, tasks, operator_actions=actions, routes=routes))
        outputs = self.engine.last
        assert outputs is not None
        self._send_orders(self.engine.orders_out)
        self.world.follow(outputs.scene.records)
        trace = self.world.advance(now + self.scenario.traffic.tick_period_ms)
        route, truth = Poses(*trace.route), Poses(*trace.truth)
        violations = self.judge.look(trace.at_ms, route, truth, self._discs(outputs), self.world.out)
        self.measures.note(
            outputs, violations, [*self.traffic.passed_over(), *self.traffic.falsely_blamed()], self.world
        )
        self.measures.note_events(outcome.events, now)
        self._digest(outputs)
        return outputs

    def run(self, upto_ms: int | None = None, watch: Callable[[int], None] = lambda _: None) -> Result:
        """Run up to a time, by default to the end, which is early if all tasks are done and all trucks are at rest."""
        to_the_end = upto_ms is None
        upto_ms = self.scenario.duration_ms if upto_ms is None else upto_ms
        while self.world.now_ms < upto_ms and not (to_the_end and self.is_over):
            self.step()
            watch(self.world.now_ms)
        return self.result()

    def why(self, robot_id: str) -> Reason:
        """Why a truck stands now."""
        if robot_id not in self._number:
            raise ScenarioRefused(f"there is no truck {robot_id!r}", robotId=robot_id)
        return self.traffic.why(robot_id)

    def shown_trucks(self) -> list[ShownTruck]:
        """The trucks in the hall for a picture of this moment."""
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
                name: {"checked": measures.ticks, "violations": measures.violations[name]}
                for name in sorted({*WATCHED, *measures.violations}, key=lambda name: int(name[2:]))
            },
            "violations": [
                {"atMs": breach.at_ms, "invariant": breach.invariant, "message": breach.sentence}
                for breach in measures.breaches
            ],
            "incidents": [incident.form(at_ms) for at_ms, incident in measures.incidents],
            "tasks": {"done": book.done, "held": book.held, "open": len(book.open)},
            "digest": "sha256:" + self._hash.hexdigest(),
        }
        if measures.refused_actions:
            form["refusedActions"] = [event.form(at_ms) for at_ms, event in measures.refused_actions.values()]
        return Result(form, tuple(unmet(self.outcome(), self.scenario.expect)))

    def outcome(self) -> Outcome:
        """The results that expectations are checked against."""
        nodes = self.site.network.nodes
        stands = {
            driver.robot_id: nodes[driver.node].id if driver.phase in (Phase.IDLE, *_WORKING) else None
            for driver in self.dispatch.drivers
        }
        rests = {robot.robot_id: robot.park_node_id for robot in self.robots}
        book = self.dispatch.book
        return Outcome(self.measures, book.done, len(book.open), stands, rests)

    def _metrics(self) -> dict[str, Json]:
        measures, done = self.measures, self.dispatch.book.done
        longest = sorted(max(waits.longest_ms.values(), default=0) for waits in measures.waits.values())
        stood = sum((waits.stood_ms for waits in measures.waits.values()), Counter[str]())
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

    def _start_faults(self, now_ms: int) -> None:
        while self._events and self._events[0].at_ms <= now_ms:
            event = self._events.pop(0)
            self.world.start_fault(self._number[event.robot_id], event.fault)

    def _actions(self, now_ms: int) -> tuple[OperatorAction, ...]:
        """Take the operator actions that are due, in the order of their times."""
        due = [action for action in self._due_actions if action.ts <= now_ms]
        self._due_actions = self._due_actions[len(due) :]
        return tuple(due)

    def _task_events(self, now_ms: int, done: tuple[str | OperationDone, ...]) -> tuple[TaskEvent, ...]:
        """Goods, room and tasks that are due, and completed operations."""
        events: list[TaskEvent] = []
        while self._task_queue and self._task_queue[0][0] <= now_ms:
            events.append(self._task_queue.pop(0)[1])
        return (*events, *self._running_operations.with_ids(done))

    def _send_orders(self, orders: OrdersOut) -> None:
        """Send the orders of the engine to the trucks."""
        gateway = self.gateway
        gateway.announce(orders.routes)
        gateway.operate(orders.operations)
        self._running_operations.note(orders.operations)
        gateway.send(Selected(orders.aims, self._abilities))

    def _discs(self, outputs: TickOutputs) -> list[Disc]:
        """The discs of locked nodes, each reserved for one truck."""
        nodes = self.site.network.nodes
        return [
            Disc(record.number, at.x_um / MILLION, at.y_um / MILLION)
            for record in outputs.scene.records
            for node in record.zones
            if (at := nodes[node].at)
        ]

    def _digest(self, outputs: TickOutputs) -> None:
        state = [(truck.edge, truck.on_um, truck.yaw_urad or 0, truck.v_um_s) for truck in self.world.trucks]
        grants = [
            (record.granted, record.reserved, None if record.waiting is None else record.waiting.code)
            for record in outputs.scene.records
        ]
        sent = [(aim.seq, aim.mode.value, str(metres(aim.stop_um))) for aim in outputs.aims]
        self._hash.update(np.array(state, dtype=np.int64).tobytes())
        self._hash.update(repr((outputs.now_ms, grants, sent)).encode())


def _timed_task_events(scenario: Scenario) -> list[tuple[int, TaskEvent]]:
    """Task events in the order of time; at equal times goods and room before tasks, in the order of the file."""
    stock = [(stock_event.at_ms, stock_event.event) for stock_event in scenario.task_events]
    tasks = [(task.at_ms, TaskSubmitted(task)) for task in sorted(scenario.tasks, key=lambda task: task.task_id)]
    return sorted([*stock, *tasks], key=lambda item: item[0])


def _start(site: CompiledMap, robot: Robot, profile: RobotProfile) -> Start:
    """The initial position of a truck: at its anchor; or in its node at the end of the first way in, from
    `came_from_id` if given; in a node without ways in, at the start of the first way out."""
    network = site.network
    node = site.node_number[robot.start_node_id]
    ways = [edge for edge in network.incoming[node] if robot.came_from_id in (None, _from(site, edge))]
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
    """The anchor of a truck that does not start at rest: on its edge, or at the end of its way in, so that it holds
    only that way."""
    return (
        OnEdge(start.edge, start.on_um)
        if start.on_um or robot.anchor is not None
        else AtNode(site.node_number[robot.start_node_id], start.yaw_urad)
    )


def _from(site: CompiledMap, edge: int) -> str:
    return site.network.nodes[site.network.edges[edge].start].id
