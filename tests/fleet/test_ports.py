"""Each part of a fleet can be replaced alone (FLT-API-5): whoever takes its place, the others do what they did."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from pendula.fleet import AtNode, RoutePlan
from pendula.fleet.commands import Commands, Tick
from pendula.fleet.contracts.traffic import RollingTargetCommand
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import FleetEvent
from pendula.fleet.gateway import Gateway
from pendula.fleet.gateway.protocol import Received
from pendula.fleet.routing.route_plan import segments_of
from pendula.fleet.samples import FL_STD, reference_fleet
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.scenarios.running import Road
from pendula.fleet.simulator.settings import STILL
from pendula.fleet.tasks import Operation
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome
from tests.fleet.sites import scene
from tests.fleet.tick.yard import Yard

UPTO_MS = 15_000


def plain_digest() -> object:
    return Run(shipped("crossing")).run(UPTO_MS).form["digest"]


class Radio:
    """RobotGateway: a connection of somebody else's, that carries everything and tells how much."""

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

    def received(self) -> Received:
        return self.inner.received()


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
        """LogSink: writes in memory what comes, then has it decided."""

        def __init__(self, engine: FleetEngine, _: Json) -> None:
            self.engine = engine

        def apply(self, command: Commands) -> Outcome[FleetEvent]:
            assert isinstance(command, Tick)
            written.append((command.now_ms, self.engine.now()))
            return self.engine.apply(command)

    made: list[Road] = []

    def road(engine: FleetEngine, config: Json) -> Road:
        made.append(Log(engine, config))
        return made[0]

    digest = Run(shipped("crossing"), road=road).run(UPTO_MS).form["digest"]

    assert digest == plain_digest()
    assert len(written) == UPTO_MS // 100
    assert all(decided_ms < tick_ms for tick_ms, decided_ms in written[1:])


@pytest.mark.req("FLT-API-5")
def test_a_clock_is_whoever_says_what_time_it_is() -> None:
    # Without noise: in the simulator it is a function of the time.
    scenario = replace(shipped("crossing"), world=STILL)
    one, other = Run(scenario), Run(scenario)
    other.world.now_ms += 1_000_000
    for truck, seen in enumerate(other.world.latest):
        other.world.latest[truck] = replace(seen, at_ms=seen.at_ms + 1_000_000)
    for run in (one, other):
        for _ in range(100):
            run.step()

    assert other.now_ms - one.now_ms == 1_000_000
    assert [it.at_um for it in one.traffic.records] == [it.at_um for it in other.traffic.records]


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
