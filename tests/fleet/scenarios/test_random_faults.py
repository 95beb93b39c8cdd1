"""Random faults on random LIVE maps: no collisions, no lost tasks, and every truck recovers."""

import pytest

from pendula.fleet.scenarios import Run
from pendula.fleet.simulator import FaultKind
from pendula.fleet.tick.records import Stop
from tests.campaigns import campaign_after
from tests.fleet.scenarios.random_faults import PASSING, Operator, faulty, watched
from tests.fleet.scenarios.random_runs import failures, report, site

MINUTE_MS = 60_000
RUNS, MANY_RUNS = 200, 2_000
GRAVE = (*PASSING, FaultKind.STUCK, FaultKind.OVERRUN)


@pytest.mark.req("FLT-FAIL-1", "FLT-TEST-41", "FLT-TEST-44", "FLT-TEST-45", "FLT-TEST-48", "FLT-TEST-49", "FLT-TEST-4")
@pytest.mark.parametrize("part", campaign_after(1, range(RUNS // 10)))
def test_trucks_recover_from_random_faults_without_collisions(part: int) -> None:
    reports = (report(faulty(seed, 5, 45_000), watched) for seed in range(10 * part, 10 * part + 10))

    assert next((sentence for sentence in reports if sentence), "") == ""


@pytest.mark.long
@pytest.mark.req("FLT-FAIL-1", "FLT-TEST-41", "FLT-TEST-44", "FLT-TEST-45", "FLT-TEST-48", "FLT-TEST-49")
@pytest.mark.parametrize("part", range(MANY_RUNS // 10))
def test_trucks_recover_from_many_random_faults(part: int) -> None:
    reports = (report(faulty(seed, 10, 3 * MINUTE_MS), watched) for seed in range(1_000 + 10 * part, 1_010 + 10 * part))

    assert next((sentence for sentence in reports if sentence), "") == ""


@pytest.mark.long
@pytest.mark.req("FLT-LIVE-9", "FLT-LIVE-10", "FLT-TASK-10")
# In the first two a truck once stood at a pick for good, because it yielded to trucks that waited for it.
@pytest.mark.parametrize("seed", [1_323, 1_334, *range(1_400, 1_410)])
def test_after_the_faults_every_task_is_done(seed: int) -> None:
    case = faulty(seed, 10, 3 * MINUTE_MS)
    run = Run(case.scenario(), site(case.map_seed, case.parks))
    operator = Operator(run)
    while not run.is_over and run.now_ms < 60 * MINUTE_MS:
        operator.look(run.step().scene.records)

    assert run.is_over


@pytest.mark.req("FLT-LIVE-9", "FLT-FAIL-7")
@pytest.mark.parametrize("seed", campaign_after(0, [1_031, 1_340]))
def test_a_failed_truck_does_not_rejoin_where_it_blocks_the_way_home_of_another_failed_truck(seed: int) -> None:
    case = faulty(seed, 10, 3 * MINUTE_MS)

    assert failures(case, watched) == ()


@pytest.mark.campaign
@pytest.mark.req("FLT-LIVE-9", "FLT-FAIL-7")
def test_a_truck_rejoins_once_the_others_can_reach_their_rests() -> None:
    # R001 is offline at 129 s for 4 s. Its rejoining was checked again for a minute and a half: routes that
    # others got meanwhile hid the order in which all get home.
    case = faulty(1_702, 10, 3 * MINUTE_MS)
    run = Run(case.scenario(), site(case.map_seed, case.parks))
    run.run(133_000)
    lost = run.traffic.records[0].stop_code
    run.run(140_000)

    assert (lost, run.traffic.records[0].stop_code) == (Stop.OFFLINE, None)


@pytest.mark.campaign
@pytest.mark.req("FLT-LIVE-9", "FLT-FAIL-7", "FLT-FAIL-11")
@pytest.mark.parametrize(
    "seed",
    campaign_after(
        1,
        [
            pytest.param(1_506, id="by the way it was on, since a better one keeps the others from home"),
            pytest.param(1_694, id="on the named edge, as a truck waits close behind the node"),
        ],
    ),
)
def test_a_truck_continues_from_its_relocation(seed: int) -> None:
    case = faulty(seed, 10, 3 * MINUTE_MS)

    assert failures(case, watched) == ()


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-7", "FLT-FAIL-11")
def test_a_truck_that_was_assumed_elsewhere_waits_for_a_relocation_and_continues() -> None:
    case = faulty(1_013, 10, 3 * MINUTE_MS)
    run = Run(case.scenario(), site(case.map_seed, case.parks))
    operator = Operator(run)
    while not operator.relocated:
        operator.look(run.step().scene.records)
        assert run.now_ms < case.duration_ms
    stood = run.why("R001").code
    run.run(run.now_ms + 10_000)

    assert (operator.relocated, stood) == (["R001"], "STOP_POSE_JUMP")
    assert run.traffic.records[0].doubt is None


@pytest.mark.req("FLT-FAIL-7", "FLT-FAIL-11")
def test_only_a_truck_that_was_assumed_elsewhere_is_relocated() -> None:
    case = faulty(1_261, 10, 3 * MINUTE_MS)
    run = Run(case.scenario(), site(case.map_seed, case.parks))
    operator = Operator(run)
    jumped = {event.robot_id for event in case.stands if event.type is FaultKind.POSE_JUMP}
    while not run.is_over and run.now_ms < case.duration_ms:
        operator.look(run.step().scene.records)

    assert (jumped, operator.relocated) == ({"R001", "R002"}, ["R002"])
    assert [record.stop_code for record in run.traffic.records] == [None, None]


@pytest.mark.campaign
@pytest.mark.req("FLT-FAIL-9", "FLT-RES-13")
def test_nothing_stays_closed_behind_a_truck_that_waited_before_it_rejoined() -> None:
    case = faulty(1_227, 10, 3 * MINUTE_MS)

    assert failures(case, watched) == ()


@pytest.mark.campaign
@pytest.mark.req("FLT-LIVE-9", "FLT-TASK-8")
def test_a_waiting_route_is_kept_when_its_truck_is_rerouted() -> None:
    # A truck is rerouted around a failed one while its route to the next pick waits; no truck blocks others
    # permanently.
    case = faulty(1_336, 10, 3 * MINUTE_MS)

    assert failures(case, watched) == ()


@pytest.mark.campaign
@pytest.mark.req("FLT-TEST-47", "FLT-PLAN-15")
def test_a_truck_that_is_assumed_slightly_ahead_can_still_stop() -> None:
    # So little ahead that it can have driven there: the position is accepted, and the truck stopped if it is too near.
    case = faulty(1_388, 10, 3 * MINUTE_MS)

    assert failures(case, watched) == ()


@pytest.mark.campaign
@pytest.mark.req("FLT-FAIL-1", "FLT-TEST-41")
def test_nothing_collides_where_trucks_get_stuck_and_roll_over_their_stop_lines() -> None:
    found = [failures(faulty(seed, 5, 45_000, GRAVE)) for seed in range(300, 306)]

    assert [sentence for each in found for sentence in each if not sentence.startswith("DEADLOCK")] == []
