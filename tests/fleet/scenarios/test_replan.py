"""A route changed in mid-lane: the resources ahead are released only after the truck has acknowledged."""

import pytest
from msgspec.structs import replace

from pendula.fleet import RoutePlan, splice
from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator.truck import Fault, FaultKind
from pendula.fleet.tasks.book import Driver
from pendula.fleet.tick import TickInputs, TickOutputs
from pendula.fleet.tick.records import Retraction
from tests.campaigns import campaign_after
from tests.fleet.scenarios.watching import Grants, Place

# With the other seeds of the first twenty the truck that returns the spur is not the first to reach it.
SEEDS = [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 20) if seed not in (13, 16, 18))]


def sent_home(run: Run, driver: Driver) -> RoutePlan:
    """Another route for a truck on its way to a pick in a spur: it turns back at the mouth, and rests."""
    assert driver.route is not None
    assert driver.task is not None
    mouth = run.site.node_number["M"]
    ends = [segment.route_s0_um + segment.length_um for segment in driver.route.segments]
    at = next(
        end for end, segment in zip(ends, driver.route.segments, strict=True) if leads_to(run, segment.edge, mouth)
    )
    plan = splice(driver.planner, driver.route, at, (driver.rest,), "home", "OPERATOR", driver.closed)
    assert isinstance(plan, RoutePlan)
    run.dispatch.book.move(driver.task, TaskState.READY, run.now_ms, "OPERATOR")
    driver.task, driver.phase, driver.route, driver.admitted = None, Phase.TO_PARK, plan, False
    driver.since_ms = run.now_ms
    run.world.learn(0, plan)
    return plan


def leads_to(run: Run, edge: int, node: int) -> bool:
    return run.site.network.edges[edge].end == node


def with_route(run: Run, plan: RoutePlan) -> TickOutputs:
    """A tick with one more route."""
    tick = run.traffic.tick

    def more(inputs: TickInputs) -> TickOutputs:
        return tick(TickInputs(inputs.now_ms, inputs.reports, (*inputs.routes, plan)))

    run.traffic.tick = more  # type: ignore[method-assign]
    outputs = run.step()
    run.traffic.tick = tick  # type: ignore[method-assign]
    return outputs


def replanned(seed: int = 0, *troubles: Fault) -> tuple[Run, Retraction]:
    """The spur whose first truck is sent home shortly before it, while faults begin; and what it returns."""
    # It requests the spur so early that it can return it in time, and can still stop before it.
    scenario = shipped("spur")
    run = Run(replace(scenario, seed=seed, traffic=replace(scenario.traffic, rtp_lookahead_um=5_000_000)))
    token = run.site.token(0)
    since = None
    while since is None or run.now_ms < since + 2_500:
        run.step()
        since = run.now_ms if since is None and token in run.traffic._records[0].held else since
    for trouble in troubles:
        run.world.start_fault(0, trouble)
    given = with_route(run, sent_home(run, run.dispatch.drivers[0])).scene.records[0].retraction
    assert given is not None
    assert token in given.resources
    return run, given


@pytest.mark.campaign
@pytest.mark.req("FLT-RES-13", "FLT-EVO-6", "FLT-TEST-48")
def test_a_truck_replanned_in_mid_lane_releases_the_spur_after_its_acknowledgement() -> None:
    run, given = replanned()
    token = run.site.token(0)

    grants, wrong = Grants(run), list[str]()
    while token in run.traffic._records[0].keeps:
        places = [Place.of(truck) for truck in run.world.trucks]
        outputs = run.step()
        wrong += grants.lost(outputs, places)
        others = [record.robot_id for record in outputs.scene.records[1:] if token in record.keeps]
        assert not others or token not in outputs.scene.records[0].keeps
    assert run.traffic._records[0].ack_seq >= given.seq

    assert wrong == []
    assert run.run().unmet == ()


@pytest.mark.req("FLT-TEST-22", "FLT-RES-13", "FLT-RES-12")
@pytest.mark.parametrize("seed", campaign_after(1, SEEDS))
def test_a_waiting_truck_gets_returned_resources_after_a_late_acknowledgement(seed: int) -> None:
    run, given = replanned(seed, Fault(FaultKind.LATE_ACKS, 6_000, by_ms=3_000))
    token, begun_ms = run.site.token(0), run.now_ms
    waited = False
    first, second = run.step().scene.records
    while first.ack_seq < given.seq:
        assert token in first.keeps
        assert token not in second.keeps
        waited = waited or (second.waiting is not None and second.waiting.by == 0)
        first, second = run.step().scene.records
    late_ms = run.now_ms - begun_ms
    while token not in run.traffic._records[1].keeps:
        run.step()
        assert run.now_ms < begun_ms + 60_000

    assert waited
    assert late_ms >= 3_000
    assert run.run().unmet == ()
