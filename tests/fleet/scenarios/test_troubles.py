"""Scenarios with faults of trucks: silent, lost, late, noisy, unable to stop."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from pendula.fleet.contracts import CommandMode, OperatorAction, Phase
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.scenarios.model import ScenarioEvent
from pendula.fleet.simulator import Fault, FaultKind

SEEDS = range(1, 21)
# One more seed of the short ones always, another in the campaign, and twenty of all with the long ones.
SHORT = ("noise", "overrun", "pose-jump")
SHORT_MARKS = {1: (), 2: (pytest.mark.campaign,)}
NOISY = [
    pytest.param(name, seed, marks=SHORT_MARKS.get(seed, pytest.mark.long) if name in SHORT else pytest.mark.long)
    for name in ("given-back-late", "late-acks", "offline", *SHORT)
    for seed in SEEDS
]


@pytest.mark.campaign
@pytest.mark.req("FLT-TEST-14", "FLT-FAIL-9", "FLT-LIVE-9", "FLT-RES-11", "FLT-RES-12")
def test_a_silent_truck_keeps_its_place_for_the_whole_run_and_the_others_go_round_it() -> None:
    run = Run(shipped("offline"))
    run.run(83_000)
    kept = set(run.traffic.records[0].keeps)
    result = run.run()
    alert = run.measures.alerts["ROBOT_OFFLINE"][1]

    assert result.unmet == ()
    assert set(run.traffic.records[0].keeps) == kept
    assert alert.details["cutOff"] == []


@pytest.mark.campaign
@pytest.mark.req("FLT-TEST-14", "FLT-LIVE-9")
def test_a_truck_that_cannot_go_round_a_silent_one_is_named_and_waits_at_a_refuge() -> None:
    scenario = shipped("follow")
    silent = ScenarioEvent(20_000, FaultKind.OFFLINE, "R1", 600_000)
    run = Run(replace(scenario, events=(silent,), expect=(), duration_ms=120_000))
    result = run.run()
    alert = run.measures.alerts["ROBOT_OFFLINE"][1]

    assert (result.unmet, alert.details["cutOff"]) == ((), ["R2"])
    assert run.world.trucks[1].v_um_s == 0


@pytest.mark.req("FLT-TEST-15", "FLT-FAIL-4", "FLT-FAIL-5", "FLT-FAIL-6", "FLT-FAIL-7")
def test_a_jump_to_the_next_lane_stops_both_trucks_within_a_tick_and_both_continue() -> None:
    run = Run(shipped("pose-jump"))
    outputs = run.step()
    while outputs.now_ms < 14_000 or outputs.commands[0].mode is not CommandMode.STOP:
        outputs = run.step()
    # The first wrong report is sent at 14.1 s, and arrives before the next tick.
    assert outputs.now_ms <= 14_200
    assert outputs.commands[1].mode is CommandMode.STOP

    assert run.run().unmet == ()


@pytest.mark.campaign
@pytest.mark.req("FLT-TEST-22", "FLT-FAIL-18", "FLT-RES-13")
def test_trucks_with_late_acknowledgements_stop_and_continue() -> None:
    assert Run(shipped("late-acks")).run().unmet == ()


@pytest.mark.req("FLT-TEST-22", "FLT-RES-13")
def test_returned_resources_are_not_granted_before_a_late_acknowledgement() -> None:
    run = Run(shipped("given-back-late"))
    result = run.run()

    assert result.unmet == ()
    assert run.measures.gave_back_ms["R1"] >= 3_000
    assert run.measures.waits["R2"].longest_ms["WAIT_NODE"] > 3_000


@pytest.mark.campaign
@pytest.mark.req("FLT-TEST-25", "FLT-OSC-10", "FLT-OSC-1", "FLT-OSC-4", "FLT-OSC-5", "FLT-OSC-7")
def test_a_minute_of_noise_changes_nothing_for_a_truck_that_waits() -> None:
    run = Run(shipped("noise"))
    run.run(60_500)
    record = run.traffic.records[1]
    before = record.hold_um, record.track and record.track.plan.revision
    modes, holds = set(), set()
    while run.now_ms < 120_000:
        outputs = run.step()
        modes.add(outputs.commands[1].mode)
        holds.add((outputs.scene.records[1].hold_um, outputs.scene.records[1].track.plan.revision))  # type: ignore[union-attr]

    assert (modes, holds) == ({CommandMode.HOLD}, {before})
    assert run.run().unmet == ()


@pytest.mark.req("FLT-TEST-27", "FLT-RTP-10")
def test_the_cells_covered_by_an_overrun_are_not_granted() -> None:
    run = Run(shipped("overrun"))
    run.run(60_000)
    record = run.traffic.records[1]
    assert record.doubt is not None
    covered = set(record.doubt.extra)

    assert covered
    assert not set(run.traffic.records[0].keeps) & covered


@pytest.mark.campaign
@pytest.mark.req("FLT-RTP-10", "FLT-FAIL-11")
def test_a_truck_that_overran_its_stop_line_continues_after_it_is_cleared() -> None:
    run = Run(shipped("overrun"))
    result = run.run()

    assert result.unmet == ()
    assert run.measures.stops["R2", "STOP_OVERRUN"][1] > 70_000


@pytest.mark.req("FLT-TEST-14", "FLT-TEST-15", "FLT-TEST-22", "FLT-TEST-25", "FLT-TEST-27")
@pytest.mark.parametrize(("name", "seed"), NOISY)
def test_faults_have_the_same_outcome_with_any_noise(name: str, seed: int) -> None:
    assert Run(replace(shipped(name), seed=seed)).run().unmet == ()


@pytest.mark.req("FLT-OSC-6", "FLT-TEST-49")
def test_a_long_wait_for_the_same_truck_raises_a_notice_then_an_alert_once() -> None:
    run = Run(shipped("noise"))
    raised = []
    while run.now_ms < 135_000:
        out = run.step()
        raised += [(notice.code, out.now_ms - notice.sinceMs) for notice in (*out.notices, *out.alerts)]

    assert raised == [("WAIT_NOTICE", 15_000), ("WAIT_TOO_LONG", 90_000)]


@pytest.mark.req("FLT-TASK-12", "FLT-FAIL-11")
def test_a_truck_whose_loading_hangs_fails_in_time_and_continues_after_it_is_cleared() -> None:
    scenario = shipped("task-held")
    hangs = ScenarioEvent(1_000, FaultKind.OPERATION_HANGS, "R1", 119_000)
    limits = replace(scenario.dispatch, operation_timeout_ms=20_000)
    cleared = replace(scenario.actions[0], ts=130_000, type="CLEAR_FAULT", robotId="R1", taskId=UNSET)
    run = Run(replace(scenario, events=(hangs,), actions=(cleared,), dispatch=limits))
    while run.dispatch.phase(0) is not Phase.LOADING:
        run.step()
    begun = run.now_ms
    result = run.run()

    assert run.measures.stops["R1", "STOP_ROBOT_FAULT"][0] == begun + 20_000
    assert 130_000 <= run.measures.stops["R1", "STOP_ROBOT_FAULT"][1] < 133_000
    assert result.unmet == ()


@pytest.mark.req("FLT-TASK-4", "FLT-FAIL-11")
def test_a_held_task_is_not_done_until_it_is_resumed() -> None:
    run = Run(shipped("task-held"))
    run.run(89_000)
    before = run.dispatch.book.done, run.dispatch.phase(0)

    assert before == (0, Phase.IDLE)
    assert run.run().unmet == ()


@pytest.mark.req("FLT-FAIL-13", "FLT-FAIL-11", "FLT-RTP-12")
def test_a_truck_that_sticks_in_its_turn_is_named_the_other_waits_and_both_come_home_when_it_is_cleared() -> None:
    # With this seed the other truck has not passed the crossing when this one turns there.
    run = Run(replace(shipped("crossing-turn"), seed=1))
    # The first turn is the one out of its parking place.
    while run.step().commands[0].mode is not CommandMode.TURN or run.now_ms < 10_000:
        assert run.now_ms < 60_000
    run.world.start_fault(0, Fault(FaultKind.STUCK, 10_000))
    begun = run.now_ms
    while run.traffic.records[0].stop_code is None:
        run.step()
        assert run.now_ms < begun + 6_000
    alert = run.measures.alerts["ROBOT_FAULT"][1]
    assert (alert.robotId, alert.details["command"]) == ("R1", "TURN")
    while run.now_ms < begun + 15_000:
        run.step()
    run.act(OperatorAction("1.0.0", "op-1", run.now_ms, "o.anna", "CLEAR_FAULT", "a pallet under it", robotId="R1"))
    result = run.run()

    assert alert.details["cutOff"] == ["R2"]
    assert [sentence for sentence in result.unmet if "calm" not in sentence] == []
