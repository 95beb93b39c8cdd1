"""Trials: their trucks, the kept parts of a scenario, and equal results wherever they run."""

import pytest
from msgspec.structs import replace

from pendula.fleet.compiler import samples
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.runs.tuning import (
    InvalidTrial,
    Trial,
    TrialFigures,
    run_trials,
    traffic_with,
    trial_scenario,
    trials_of,
)
from pendula.fleet.scenarios import Scenario, shipped
from pendula.fleet.scenarios.model import Robot
from pendula.fleet.tasks import TaskOrder, TaskStream
from pendula.fleet.tick import TrafficParams
from pendula.spreading import TaskFailed, Where

STREAM = TaskStream("S", ("N",), ("S",), pick_ms=1_000, drop_ms=1_000, last_ms=5)
BOTH = Scenario(
    name="both",
    title="Two trucks at a crossing",
    source=samples.plus_crossing(),
    profiles=(FL_STD,),
    robots=(Robot("R2", "W"), Robot("R1", "E")),
    streams=(STREAM, TaskStream("T", ("N",), ("S",), robot_ids=("R2",))),
    tasks=(TaskOrder("once", "N", "S"),),
    duration_ms=1_000,
)


@pytest.mark.req("FLT-LIVE-11")
def test_every_combination_is_tried_with_every_seed() -> None:
    made = trials_of(BOTH, (1, 2), (0, 2000), {"starveMs": ["40000", "60000"]}, (0, 1, 2))

    assert len(made) == len({*made}) == 2 * 2 * 2 * 3


def test_a_smaller_fleet_has_the_first_trucks_by_name_and_their_streams() -> None:
    result = trial_scenario(BOTH, Trial(1, 500), 60_000)

    assert [one.robot_id for one in result.robots] == ["R1"]
    assert [(one.stream_id, one.last_ms) for one in result.streams] == [("S", None)]
    assert (result.tasks, result.expect, result.duration_ms, result.dispatch.one_way_milli) == ((), (), 60_000, 500)


def test_parameters_have_the_names_and_units_of_the_contract() -> None:
    result = traffic_with(TrafficParams(), (("lookaheadM", "9.5"), ("nodeLockPolicy", "every")))

    assert (result.lookahead_um, result.node_lock_policy.value) == (9_500_000, "every")


@pytest.mark.parametrize(
    ("trucks", "grid", "says"),
    [
        ((3,), {}, "1 to 2 can be tried"),
        ((0,), {}, "1 to 2 can be tried"),
        ((), {}, "1 to 2 can be tried"),
        ((1,), {"lookahead": ["8"]}, "did you mean"),
        ((1,), {"starveMs": ["long"]}, "starveMs=long"),
    ],
)
def test_an_invalid_trial_is_refused(trucks: tuple[int, ...], grid: dict[str, list[str]], says: str) -> None:
    with pytest.raises(InvalidTrial, match=says):
        trials_of(BOTH, trucks, (0,), grid, (0,))


@pytest.mark.campaign
@pytest.mark.req("FLT-LIVE-11")
def test_two_processes_have_the_same_figures_as_one() -> None:
    trials = trials_of(BOTH, (1, 2), (0,), {}, (0,))
    alone = run_trials(BOTH, trials, 70_000, Where(1))

    assert alone[0].tasks > 0
    assert alone == run_trials(BOTH, trials, 70_000, Where(2))


def test_the_time_trucks_load_and_wait_is_counted_by_place() -> None:
    found = run_trials(BOTH, [Trial(2, 0)], 60_000, Where(1))[0]

    assert {node for node, _ in found.busy} <= {"N", "S"}
    assert sum(ms for _, ms in found.busy) >= 1_000
    assert any(ms > 0 for _, _, ms in found.waits)


@pytest.mark.req("FLT-LIVE-11")
def test_a_fleet_for_which_the_map_is_not_live_is_a_result_and_not_an_error() -> None:
    shared = replace(BOTH, robots=(Robot("R1", "E"), Robot("R2", "E", start="W")))
    found = run_trials(shared, [Trial(2, 0)], 1_000, Where(1))[0]

    assert isinstance(found, TrialFigures)
    assert found.refused is not None
    assert "not LIVE" in found.refused or "cannot start" in found.refused


def test_a_run_that_fails_is_named_by_its_settings_and_seed() -> None:
    broken = replace(shipped("crossing"), robots=(Robot("R1", "E", "none"),))

    with pytest.raises(TaskFailed, match="The run with 1 truck, one-way 0, seed 4 failed: ScenarioRefused") as caught:
        run_trials(broken, [Trial(1, 0, seed=4)], 1_000, Where(1))
    assert caught.value.details["seed"] == 4


@pytest.mark.long
@pytest.mark.req("FLT-LIVE-11")
def test_a_dask_cluster_has_the_same_figures() -> None:
    distributed = pytest.importorskip("distributed")
    trials = trials_of(BOTH, (1, 2), (0,), {}, (0,))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as here:
        found = run_trials(BOTH, trials, 30_000, Where(dask=here.scheduler_address))

    assert found == run_trials(BOTH, trials, 30_000, Where(1))
