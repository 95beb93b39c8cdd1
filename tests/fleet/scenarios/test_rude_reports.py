"""Trucks with the largest errors their profile allows, on long runs: none is stopped for them, and a real jump is still
detected."""

import pytest
from msgspec.structs import replace

from bench.fleet_throughput_loads import endless
from pendula.fleet import RobotProfile, compile_map
from pendula.fleet.compiler.generated_maps import live_map
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.map.routes import apart_um
from pendula.fleet.scenarios import Run
from pendula.fleet.simulator import Fault, FaultKind, WorldSettings
from pendula.fleet.tick.params import TrafficParams
from tests.campaigns import campaign_after

MINUTE_MS = 60_000
# Everything at its bound. With the tick and the period of the reports the latencies make up `controlLatencyS`.
RUDE = WorldSettings(telemetry_latency_ms=(0, 150), command_latency_ms=(0, 100))
# A truck with a larger position error, and a slow one without.
VAGUE = replace(
    FL_STD,
    localization_error=replace(FL_STD.localization_error, value_um=200_000),
    stamp_jitter_ms=200,
)
EXACT = replace(
    FL_STD,
    localization_error=replace(FL_STD.localization_error, value_um=20_000),
    tracking_error=replace(FL_STD.tracking_error, value_um=20_000),
    v_max_um_s=600_000,
)


def five_trucks(seed: int, minutes: int, profile: RobotProfile = FL_STD) -> Run:
    sample = live_map(seed, 5)
    scenario = endless(sample, "rude", minutes * MINUTE_MS, seed)
    error = profile.localization_error.value_um
    params = TrafficParams(stop_line_tol_um=max(100_000, error), progress_regress_um=max(300_000, 2 * error + 80_000))
    scenario = replace(scenario, profiles=(profile,), world=RUDE, traffic=params)
    return Run(scenario, compile_map(sample.source, (profile,)))


def stops(run: Run) -> list[str]:
    """Every stop of a run: truck, time and reason."""
    found, before = [], dict.fromkeys(run.traffic.robot_ids, None)
    while run.now_ms < run.scenario.duration_ms:
        for record in run.step().scene.records:
            if record.stop_code != before[record.robot_id] and record.stop_code is not None:
                found.append(f"{record.robot_id} {record.stop_code} at {run.now_ms} ms")
            before[record.robot_id] = record.stop_code
    return found


@pytest.mark.req("FLT-PLAN-15", "FLT-TEST-4")
@pytest.mark.parametrize("profile", campaign_after(1, [FL_STD, VAGUE, EXACT]), ids=["reference", "vague", "exact"])
def test_trucks_whose_errors_stay_within_their_profile_are_not_stopped(profile: RobotProfile) -> None:
    assert stops(five_trucks(1, 2, profile)) == []


@pytest.mark.long
@pytest.mark.req("FLT-PLAN-15", "FLT-TEST-4")
@pytest.mark.parametrize("seed", range(6))
def test_five_trucks_drive_for_hours_and_none_is_stopped(seed: int) -> None:
    assert stops(five_trucks(seed, 30)) == []


@pytest.mark.req("FLT-PLAN-15", "FLT-FAIL-4")
@pytest.mark.parametrize("way", [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_a_jump_farther_than_errors_and_driving_explain_is_detected(way: tuple[int, int]) -> None:
    run = five_trucks(1, 2)
    while run.world.trucks[0].v_um_s < 500_000 or run.world.trucks[0].on_um < 3_000_000:
        run.step()
    # Beyond the bound by both errors, which may have the opposite sign.
    far = apart_um(FL_STD) + 2 * FL_STD.v_max_um_s // 10 + 4 * FL_STD.localization_error.value_um
    run.world.start_fault(0, Fault(FaultKind.POSE_JUMP, 3_000, x_um=way[0] * far, y_um=way[1] * far))
    run.run(run.now_ms + 1_000)

    assert run.traffic.records[0].stop_code == "STOP_POSE_JUMP"
