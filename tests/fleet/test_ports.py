"""Each part of a fleet can be replaced alone (FLT-API-5): with a replacement the others behave as before."""

import dataclasses
from collections.abc import Sequence
from dataclasses import replace as replace_port
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pendula.fleet import AtNode, RoutePlan
from pendula.fleet.commands import Commands, Tick
from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.contracts import CommandMode, RollingTargetCommand
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import FleetEvent
from pendula.fleet.gateway import Gateway, Received
from pendula.fleet.map.routes import segments_of
from pendula.fleet.ports import (
    Clock,
    CorridorBuilder,
    LockManager,
    LogSink,
    ProgressEstimator,
    RobotGateway,
    RoutePlanner,
    RtpController,
    TaskDispatcher,
)
from pendula.fleet.runs import Manager, Recording, recording_disk
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.scenarios.running import Applier
from pendula.fleet.simulator.truck import STILL
from pendula.fleet.tasks import DispatchStep, Operation, TaskEvent
from pendula.fleet.tasks.model import TruckView
from pendula.fleet.tick.aiming import Aim, RollingTarget
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.traffic import TickInputs, TickOutputs
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome, Refusal
from tests.fleet.sites import scene
from tests.fleet.tick.yard import Yard

UPTO_MS = 15_000


def plain_digest() -> object:
    return Run(shipped("crossing")).run(UPTO_MS).form["digest"]


class Radio:
    """RobotGateway: a custom connection that carries everything and counts it."""

    def __init__(self, inner: Gateway) -> None:
        self.inner = inner
        self.sent = 0

    def send(self, commands: Sequence[RollingTargetCommand]) -> None:
        self.sent += len(commands)
        self.inner.send(commands)

    def announce(self, routes: Sequence[RoutePlan]) -> None:
        self.inner.announce(routes)

    def operate(self, operations: Sequence[Operation]) -> None:
        self.inner.operate(operations)

    def poll(self) -> Received:
        return self.inner.poll()


@pytest.mark.req("FLT-API-5")
def test_another_gateway_changes_no_decision() -> None:
    run = Run(shipped("crossing"))
    radio = Radio(run.gateway)
    run.gateway = radio

    assert run.run(UPTO_MS).form["digest"] == plain_digest()
    assert radio.sent == 2 * UPTO_MS // 100


@pytest.mark.req("FLT-API-5", "FLT-RTP-11")
def test_another_log_changes_no_decision_and_has_every_tick_before_it_is_decided() -> None:
    written: list[tuple[int, int]] = []

    class Log:
        """LogSink: keeps records in memory, then lets the tick be decided."""

        def __init__(self, engine: FleetEngine, _: Json) -> None:
            self.engine = engine

        def apply(self, command: Commands) -> Outcome[FleetEvent]:
            assert isinstance(command, Tick)
            written.append((command.now_ms, self.engine.now()))
            return self.engine.apply(command)

    made: list[Applier] = []

    def make_applier(engine: FleetEngine, config: Json) -> Applier:
        made.append(Log(engine, config))
        return made[0]

    digest = Run(shipped("crossing"), make_applier=make_applier).run(UPTO_MS).form["digest"]

    assert digest == plain_digest()
    assert len(written) == UPTO_MS // 100
    assert all(decided_ms < tick_ms for tick_ms, decided_ms in written[1:])


@pytest.mark.req("FLT-API-5")
def test_a_fleet_reads_the_time_from_the_given_clock() -> None:
    # Without noise: in the simulator it is a function of the time.
    scenario = replace(shipped("crossing"), world=STILL)
    plain, other = Run(scenario), Run(scenario)
    other.world.now_ms += 1_000_000
    for truck, seen in enumerate(other.world.latest):
        other.world.latest[truck] = replace(seen, at_ms=seen.at_ms + 1_000_000)
    for run in (plain, other):
        for _ in range(100):
            run.step()

    assert other.now_ms - plain.now_ms == 1_000_000
    assert [record.at_um for record in plain.traffic.records] == [record.at_um for record in other.traffic.records]


@pytest.mark.req("FLT-API-5")
def test_a_route_that_no_planner_made_is_driven_like_any_other() -> None:
    site = scene("reference-hall")
    yard = Yard(site, reference_fleet(1), [FL_STD])
    (driver,) = yard.drivers.values()
    found = yard.plan(driver)
    out = site.network.outgoing[driver.rest][0]
    goal = site.network.edges[out].end
    back = next(edge for edge in site.network.outgoing[goal] if site.network.edges[edge].end == driver.rest)
    by_hand = RoutePlan(
        route_id="by-hand",
        revision=1,
        robot_id=driver.robot_id,
        site=site,
        start=AtNode(driver.node, driver.yaw),
        goal=goal,
        segments=segments_of(site, (out,)),
        cost_us=0,
        reason="BY_HAND",
        rest=driver.rest,
        onward=(back,),
        onward_stops=(0,),
    )
    assert found.goal == driver.rest

    yard.submitted[driver.robot_id] = by_hand
    yard.run(300)

    assert driver.plan is by_hand
    assert driver.s >= by_hand.length_um - 100_000


class NoRoutes:
    """RoutePlanner: finds no route."""

    def plan_route(self, *_: object, **__: object) -> Refusal:
        return Refusal("NO_ROUTE", {"goal": "X", "blocked": []})


@pytest.mark.req("FLT-API-5")
def test_another_route_planner_plans_the_routes_of_tasks() -> None:
    run = Run(shipped("arrival"))
    planner: RoutePlanner = NoRoutes()
    run.dispatch.route_planner = planner
    run.run(20_000)

    assert [task.state.value for task in run.dispatch.tasks()] == ["READY"]
    assert run.traffic.records[0].at_um == 0


class Standing:
    """ProgressEstimator: a truck never moves."""

    def project(self, record: Record, _: TrafficParams) -> int:
        return record.at_um


@pytest.mark.req("FLT-API-5")
def test_another_progress_estimator_decides_the_progress_of_trucks() -> None:
    run = Run(shipped("arrival"))
    estimator: ProgressEstimator = Standing()
    run.traffic.ports = replace_port(run.traffic.ports, progress=estimator)
    run.run(10_000)

    (record,) = run.traffic.records
    assert record.at_um == record.track.plan.start_um if record.track else False
    assert run.world.trucks[0].on_um > record.at_um


class NoCorridor:
    """CorridorBuilder: no truck requests anything."""

    def build(self, record: Record, now_ms: int, params: TrafficParams) -> None:
        return None


@pytest.mark.req("FLT-API-5")
def test_another_corridor_builder_decides_what_trucks_request() -> None:
    run = Run(shipped("arrival"))
    run.run(5_000)
    request = run.traffic.request("R1")
    builder: CorridorBuilder = NoCorridor()
    run.traffic.ports = replace_port(run.traffic.ports, corridor=builder)

    assert request is not None
    assert run.traffic.request("R1") is None


class Still:
    """RtpController: every truck holds."""

    def compute(self, record: Record, now_ms: int, params: TrafficParams) -> Aim:
        return replace(RollingTarget().compute(record, now_ms, params), mode=CommandMode.HOLD)


@pytest.mark.req("FLT-API-5")
def test_another_controller_decides_the_targets_of_trucks() -> None:
    run = Run(shipped("arrival"))
    controller: RtpController = Still()
    run.traffic.ports = replace_port(run.traffic.ports, rtp=controller)
    run.run(4_000)

    assert {command.mode for command in run.step().commands} == {CommandMode.HOLD}
    assert run.world.trucks[0].v_um_s == 0


class Inner:
    """All parts but the replaced ones are unchanged."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Idle(Inner):
    """TaskDispatcher: assigns nothing."""

    def dispatch(self, now_ms: int, trucks: Sequence[TruckView], events: Sequence[TaskEvent] = ()) -> DispatchStep:
        return DispatchStep()


class NoNewRoutes(Inner):
    """LockManager: admits no route."""

    def tick(self, inputs: TickInputs) -> TickOutputs:
        outputs: TickOutputs = self.inner.tick(dataclasses.replace(inputs, routes=()))
        return outputs


@pytest.mark.req("FLT-API-5")
def test_another_dispatcher_decides_the_assignments() -> None:
    run = Run(shipped("arrival"))
    dispatcher: TaskDispatcher = Idle(run.engine.dispatch)
    run.engine.dispatch = dispatcher  # type: ignore[assignment]
    run.run(5_000)

    assert run.traffic.records[0].track is None


@pytest.mark.req("FLT-API-5")
def test_another_lock_manager_decides_the_grants() -> None:
    run = Run(shipped("arrival"))
    manager: LockManager = NoNewRoutes(run.engine.traffic)
    run.engine.traffic = manager  # type: ignore[assignment]
    run.run(5_000)

    assert run.traffic.records[0].track is None
    assert [task.state.value for task in run.dispatch.tasks()] == ["ASSIGNED"]


@pytest.mark.req("FLT-API-5")
def test_a_manager_uses_the_given_gateway_log_and_clock(tmp_path: Path) -> None:
    run = Run(shipped("arrival"))
    radio: RobotGateway = Radio(run.gateway)

    class Hours:
        """Clock: it is always noon."""

        def now_ms(self) -> int:
            return 43_200_000

    class MemoryLog(Inner):
        """LogSink: remembers what was written."""

        ticks: tuple[int, ...] = ()

        def write_tick(self, tick: Tick) -> Outcome[FleetEvent]:
            self.ticks = (*self.ticks, tick.now_ms)
            outcome: Outcome[FleetEvent] = self.inner.write_tick(tick)
            return outcome

    clock: Clock = Hours()
    with Recording.begin(run.engine, run.config, recording_disk(tmp_path)) as recording:
        log: LogSink = MemoryLog(recording)
        manager = Manager(log, radio, clock.now_ms)  # type: ignore[arg-type]
        manager.tick()

    assert isinstance(log, MemoryLog)
    assert log.ticks == (43_200_000,)
