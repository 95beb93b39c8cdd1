"""Traffic rules that only runs show: locks that stay, stops with their reason, virtual time."""

import dataclasses
import time
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from pendula.documents import from_value
from pendula.fleet import compile_map
from pendula.fleet.compiler.generated_maps import spur_grid
from pendula.fleet.compiler.samples import FL_STD, head_on_lane
from pendula.fleet.contracts import CommandMode
from pendula.fleet.map.exclusion import Relation
from pendula.fleet.scenarios import Run, ScenarioRefused, read_scenario, shipped
from pendula.fleet.scenarios.model import ScenarioEvent
from pendula.fleet.simulator import FaultKind
from pendula.fleet.traffic.refuge import refuge
from pendula.kernel.canonical import Json
from tests.fleet.scenarios.watching import Witness
from tests.fleet.tick.yard import Yard


@pytest.mark.req("FLT-RES-11", "FLT-TEST-48")
def test_a_truck_that_stands_for_minutes_keeps_what_it_holds() -> None:
    stands = ScenarioEvent(6_000, FaultKind.STAND, "R1", 240_000)
    run = Run(replace(shipped("crossing"), events=(stands,), duration_ms=240_000))
    run.run(30_000)
    early = set(run.traffic._records[0].keeps)
    run.run(200_000)

    assert early
    assert set(run.traffic._records[0].keeps) >= early


@pytest.mark.req("FLT-GEO-16")
def test_a_truck_that_cannot_stop_in_time_is_stopped_and_the_requirement_is_named() -> None:
    run = Run(shipped("arrival"))
    run.run(20_000)
    # It reports four times its allowed speed.
    seen = run.world.latest[0]
    run.world.latest[0] = replace(seen, at_ms=run.now_ms, v_um_s=4_800_000)
    outputs = run.step()

    assert [(alert.code, alert.robotId, alert.details["requirement"]) for alert in outputs.alerts] == [
        ("SAFETY_STOP", "R1", "FLT-TEST-47")
    ]
    assert [command.mode for command in outputs.commands] == [CommandMode.STOP]
    assert run.engine.why({"robot": "R1"}).sentence == "R1 stops: it was too fast to stop before its stop line."
    run.run(run.now_ms + 2_000)
    assert run.engine.why({"robot": "R1"}).code != "STOP_INVARIANT"


def test_a_truck_that_is_too_fast_to_stop_is_reported_once() -> None:
    run = Run(shipped("arrival"))
    run.run(20_000)

    def codes(ticks: int, v_um_s: int) -> list[str]:
        found = []
        for _ in range(ticks):
            run.world.latest[0] = replace(run.world.latest[0], at_ms=run.now_ms, v_um_s=v_um_s)
            found += [alert.code for alert in run.step().alerts]
        return found

    assert codes(7, 4_800_000) == ["SAFETY_STOP"]
    assert codes(2, 0) == []
    assert codes(2, 4_800_000) == ["SAFETY_STOP"]


@pytest.mark.req("FLT-TEST-47", "FLT-COR-3")
def test_a_stop_line_that_a_truck_cannot_keep_is_detected_from_outside() -> None:
    run = Run(shipped("arrival"))
    run.run(10_000)
    outputs = run.step()
    kept = run.measures.violations["I-8"]
    truck = run.world.trucks[0]
    assert truck.v_um_s == truck.profile.v_max_um_s
    # No command about it has arrived yet.
    near = replace(outputs.aims[0], stop_um=truck.s_um + 1_000_000)
    run.measures.note(dataclasses.replace(outputs, aims=(near,)), (), (), run.world)

    assert (kept, run.measures.violations["I-8"]) == (0, 1)


@pytest.mark.req("FLT-RES-19")
def test_lanes_without_a_joint_exclude_each_other_where_they_come_too_near() -> None:
    # The first stands in the bend while the second passes.
    stands = ScenarioEvent(4_000, FaultKind.STAND, "R1", 20_000)
    run = Run(replace(shipped("tail-swing"), events=(stands,)))
    run.run()
    # What R1 holds there is its lane or the turning disc at the end of it; both lie too near to the lane of R2.
    waits = {
        name: waits.total_ms["WAIT_CONFLICT"] + waits.total_ms["WAIT_NODE"]
        for name, waits in run.measures.waits.items()
    }

    assert waits["R2"] > 15_000
    assert waits["R1"] == 0
    assert run.measures.violations == {}


def rows(relation: Relation) -> list[tuple[int, int]]:
    """Every pair of a relation."""
    return [(row, number) for row in range(len(relation)) for number in relation.members(row)]


@pytest.mark.req("FLT-EVO-9")
def test_a_longer_standoff_changes_who_follows_and_nothing_else() -> None:
    far = replace(FL_STD, min_following_gap_um=3_000_000)
    usual, apart = (compile_map(head_on_lane(), (profile,)) for profile in (FL_STD, far))

    assert rows(usual.conflicts) == rows(apart.conflicts)
    assert len(rows(usual.following)) < len(rows(apart.following))


@pytest.mark.req("FLT-TEST-2")
def test_a_run_reads_no_clock_and_never_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> float:
        raise AssertionError("time is virtual")

    run = Run(shipped("crossing"))
    for name in ("time", "monotonic", "perf_counter", "sleep", "time_ns", "monotonic_ns"):
        monkeypatch.setattr(time, name, forbidden)
    result = run.run(10_000)
    monkeypatch.undo()

    assert result.form["simulatedMs"] == 10_000


@pytest.mark.campaign
@pytest.mark.req("FLT-TEST-51", "FLT-LIVE-13")
def test_the_witness_of_forty_trucks_and_more_replays_after_every_tick() -> None:
    sample = spur_grid(8, 7)
    yard = Yard(compile_map(sample.source, (FL_STD,)), sample.fleet, [FL_STD])
    yard.endless = True
    witness = Witness()
    wrong: list[str] = []
    for _ in range(60):
        yard.step()
        wrong += witness.wrong(yard.traffic._locks, yard.now)

    assert len(yard.drivers) > 39
    assert wrong == []
    assert len(yard.traffic._locks.witness) > 39


@pytest.mark.req("FLT-RTP-12", "FLT-TASK-11")
def test_trucks_that_turn_or_load_are_the_only_ones_in_their_discs() -> None:
    run = Run(shipped("spur"))
    turns = 0
    while run.now_ms < 40_000:
        turns += sum(command.mode is CommandMode.TURN for command in run.step().commands)

    assert turns > 0
    assert run.measures.violations["I-7"] == 0


@pytest.mark.campaign
@pytest.mark.req("FLT-TASK-15", "FLT-TEST-20", "FLT-DCL-18")
def test_a_truck_that_waits_for_a_pick_in_a_spur_blocks_no_other_truck() -> None:
    run = Run(shipped("spur"))
    stood = 0
    while not run.is_over:
        records = run.step().scene.records
        second, locks = records[1], run.traffic._locks
        if second.waiting is not None and second.v_um_s == 0 and second.waiting.by == 0:
            stood += 1
            assert refuge(locks, 1) == locks.truck(1).position

    assert stood > 50


SHORT_SPUR: dict[str, Json] = {
    "contractVersion": "1.0.0",
    "name": "short-spur",
    "map": {
        "contractVersion": "1.0.0",
        "mapId": "short-spur",
        "nodes": [
            {"id": "W", "x": -20, "y": 0, "kind": "ActionPoint"},
            {"id": "Q", "x": -10, "y": 0},
            {"id": "M", "x": 0, "y": 0},
            {"id": "E", "x": 12, "y": 0, "kind": "ActionPoint"},
            {"id": "P", "x": 0, "y": Decimal("3.7"), "kind": "ParkPoint"},
            {"id": "O", "x": -10, "y": 12, "kind": "ParkPoint"},
        ],
        "edges": [
            {"id": f"{start}-{end}", "start": start, "end": end, "props": {"direction": "both"}}
            for start, end in (("W", "Q"), ("Q", "M"), ("M", "E"), ("M", "P"), ("Q", "O"))
        ],
    },
    "robots": [{"robotId": "R1", "parkNodeId": "P"}, {"robotId": "R2", "parkNodeId": "O"}],
    "tasks": [
        {"taskId": "T1", "robotId": "R1", "pickNodeId": "E", "dropNodeId": "P"},
        {"taskId": "T2", "robotId": "R2", "pickNodeId": "E", "dropNodeId": "W", "atMs": 60_000},
    ],
    "durationMs": 300_000,
    "expect": [{"tasksDone": "all"}, {"allAtRest": True}],
}


@pytest.mark.campaign
@pytest.mark.req("FLT-LIVE-7", "FLT-LIVE-2")
def test_a_truck_that_has_come_home_to_a_spur_of_the_needed_length_lets_others_pass_its_mouth(tmp_path: Path) -> None:
    result = Run(read_scenario(from_value(SHORT_SPUR, "short-spur"), tmp_path)).run()

    assert result.unmet == ()


@pytest.mark.req("FLT-LIVE-7")
def test_where_locks_in_passing_close_the_only_way_the_run_is_refused(tmp_path: Path) -> None:
    locked = {**SHORT_SPUR, "params": {"nodeLockPolicy": "every"}}

    with pytest.raises(ScenarioRefused, match="no truck can go over 'E' and 'W' and come back to rest"):
        Run(read_scenario(from_value(locked, "short-spur"), tmp_path))
