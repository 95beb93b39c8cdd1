"""Journals of fleets: the fleet after any tick, replayed ticks, other parameters, and exported lines."""

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pendula.fleet.commands import Tick
from pendula.fleet.contracts import OperatorAction, TickRecord
from pendula.fleet.engine import read_config
from pendula.fleet.events import HoldChanged, Ticked
from pendula.fleet.runs import (
    IncidentGroup,
    UnknownTick,
    bundle,
    compare_params,
    fleet_at,
    last_tick,
    lines,
    moments,
    reading,
    verify_ticks,
)
from pendula.fleet.runs.reading import deviation_of
from pendula.fleet.tasks import RoomReported
from pendula.kernel.canonical import decode, encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import NotReplayable
from tests.campaigns import campaign_except
from tests.fleet.runs.journals import Recorded, recorded
from tests.fleet.tasks.test_inbox import action

TICKS = 320


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first half minute of the hall, with a checkpoint every ten seconds."""
    return recorded("hall", tmp_path_factory.mktemp("hall"), TICKS, snapshot_every=100)


@pytest.mark.req("FLT-OBS-5")
@pytest.mark.parametrize("tick", campaign_except((99, 100, 101), [1, 99, 100, 101, 250, TICKS]))
def test_the_fleet_of_any_tick_equals_the_recorded_one(hall: Path, tmp_path: Path, tick: int) -> None:
    live = Recorded("hall", tmp_path)
    live.step(tick)
    live.recording.close()

    with reading(hall) as journal:
        assert fleet_at(journal, tick).state() == live.run.engine.state()


@pytest.mark.req("FLT-OBS-5")
def test_a_replay_starts_at_the_checkpoint_before_its_tick(hall: Path) -> None:
    with reading(hall) as journal:
        read = journal.read
        begun: list[int] = []

        def noting(start: int = 0) -> Iterator[Any]:
            begun.append(start)
            return read(start)

        journal.read = noting  # type: ignore[method-assign]
        next(moments(journal, 250))
        snapshots = [n for n, _ in journal.snapshots()]

    assert begun[-1] == snapshots[1] + 1


@pytest.mark.parametrize("tick", [0, TICKS + 1])
def test_an_unknown_tick_is_refused_with_the_known_range(hall: Path, tick: int) -> None:
    with reading(hall) as journal, pytest.raises(UnknownTick) as refused:
        fleet_at(journal, tick)

    assert (refused.value.details["first"], refused.value.details["last"]) == (1, TICKS)


@pytest.mark.req("FLT-OBS-7")
def test_why_answers_for_every_truck_at_any_tick(hall: Path) -> None:
    with reading(hall) as journal:
        for tick in (1, 50, 200, TICKS):
            engine = fleet_at(journal, tick)
            for robot in engine.traffic.robot_ids:
                reason = engine.why({"robot": robot})
                assert reason.facts["robotId"] == robot
                assert reason.sentence.startswith(robot)


@pytest.mark.req("FLT-OBS-4")
def test_every_tick_of_a_journal_replays_identically(hall: Path) -> None:
    with reading(hall) as journal:
        found = verify_ticks(journal)

    assert (found["firstTick"], found["lastTick"], found["ticks"]) == (1, TICKS, TICKS)
    assert found["firstDifference"] is None


def forged(source: Path, target: Path, find: bytes, put: bytes) -> int:
    """A copy of a journal in which one outcome says something else; returns its tick."""
    kept = FileJournal.open(RealDisk(source, make=False), read_only=True)
    header = kept.header
    copy = FileJournal.create(
        RealDisk(target),
        scheduler=header.scheduler,
        decisions=header.decisions,
        time_unit=header.time_unit,
        config=header.config,
    )
    tick = 0
    for record in kept.read():
        body = bytes(record.body)
        if record.kind == "outcome" and find in body and not tick:
            body = body.replace(find, put, 1)
            events: Any = decode(body)
            tick = next(one["tick"] for one in events["events"] if one["type"] == "ticked")
        copy.append(record.kind, record.t, body)
    copy.close()
    assert tick, "nothing was forged"
    return tick


@pytest.mark.req("FLT-OBS-4")
def test_a_deviation_is_named_by_tick_truck_and_field(hall: Path, tmp_path: Path) -> None:
    tick = forged(hall, tmp_path / "forged", b'"reasonCode":"WAIT_NODE"', b'"reasonCode":"WAIT_CONFLICT"')

    with reading(tmp_path / "forged") as journal:
        first = verify_ticks(journal)["firstDifference"]

    assert (first["tick"], first["field"]) == (tick, "reasonCode")
    assert first["robotId"].startswith("R")
    assert (first["recorded"], first["computed"]) == ("WAIT_CONFLICT", "WAIT_NODE")


@pytest.mark.req("FLT-OBS-4")
def test_a_difference_of_only_a_digest_names_no_truck(hall: Path) -> None:
    with reading(hall) as journal:
        _, moment = next(moments(journal, 10))
    assert moment.recorded is not None
    first = moment.recorded[0]
    assert isinstance(first, Ticked)
    other = (replace(first, locks="sha256:0"), *moment.recorded[1:])

    found = deviation_of(replace(moment, recorded=other))

    assert found is not None
    assert (found.robot_id, found.field) == (None, "locks")


@pytest.mark.req("FLT-OBS-4")
def test_a_missing_event_is_a_deviation_that_names_its_truck(hall: Path) -> None:
    with reading(hall) as journal:
        moment = next(one for _, one in moments(journal) if any(isinstance(x, HoldChanged) for x in one.computed))
    assert moment.recorded is not None
    first = moment.recorded[0]
    assert isinstance(first, Ticked)

    found = [deviation_of(replace(moment, recorded=(one,))) for one in (first, replace(first, locks="sha256:0"))]

    assert all(one is not None and one.robot_id is not None for one in found)


@pytest.mark.req("FLT-OBS-2")
def test_an_export_is_canonical_lines_of_the_contract(hall: Path) -> None:
    with reading(hall) as journal:
        result = list(lines(journal, 100, 110))

    assert [json.loads(line)["tick"] for line in result] == list(range(100, 111))
    for line in result:
        assert encode(decode(line)) == line
        record = msgspec.json.decode(line, type=TickRecord, strict=False)
        assert len(record.inputs.robotStates) == len(record.decisions.lockResults) == len(record.outputs.commands) == 4


@pytest.mark.req("FLT-OBS-1", "FLT-OBS-2")
def test_an_export_has_operator_actions_reports_and_assignments(tmp_path: Path) -> None:
    made = Recorded("hall", tmp_path)
    made.step(2)
    wanted = action("PAUSE_ROBOT", role="operator")
    now = made.run.engine.now() + 100
    made.recording.apply(Tick(now, task_events=(RoomReported("A1", 3),), operator_actions=(wanted,)))
    made.recording.close()
    with reading(tmp_path) as journal:
        result = [json.loads(line) for line in lines(journal)]

    assert [msgspec.convert(one, OperatorAction) for one in result[-1]["inputs"]["operatorActions"]] == [wanted]
    assert [one["nodeId"] for one in result[-1]["inputs"]["taskEvents"]] == ["A1"]
    assert {one["robotId"] for line in result for one in line["decisions"]["assignments"]} == {"R1", "R2", "R3", "R4"}


def test_an_export_from_a_tick_equals_the_end_of_the_full_export(hall: Path) -> None:
    with reading(hall) as journal:
        whole = list(islice(lines(journal), 130))
        part = list(lines(journal, 125, 130))

    assert part == whole[124:]


@pytest.mark.req("FLT-OBS-6")
def test_a_comparison_of_parameters_names_the_first_difference(hall: Path) -> None:
    with reading(hall) as journal:
        params = read_config(journal.header.config).traffic
        same = compare_params(journal, params)
        other = compare_params(journal, replace(params, max_admissions_per_tick=1, refuge=False))

    assert (same["ticks"], same["ticksThatDiffer"], same["first"]) == (TICKS, 0, None)
    assert same["a"] == same["b"]
    assert other["changed"] == {"refuge": [True, False], "maxAdmissionsPerTick": [2, 1]}
    assert other["ticksThatDiffer"] > 0
    # What the journal's own set came to stays as it is, and the other set has figures of its own.
    assert other["a"] == same["a"]
    assert (other["a"]["stops"], other["b"]["stops"] > 0) == (0, True)
    assert min(other["differences"][name] for name in ("grant", "holdPoint", "reasonCode")) > 0
    assert other["first"]["tick"] >= 1
    assert other["first"]["robotId"] in other["robots"]
    assert sum(other["differences"].values()) == sum(sum(one.values()) for one in other["robots"].values())


@pytest.mark.req("FLT-OBS-6", "FLT-OBS-11")
def test_other_parameters_continue_from_the_state_of_a_bundle(hall: Path, tmp_path: Path) -> None:
    with reading(hall) as journal:
        bundle(journal, IncidentGroup("inc-1", 80_000, 80_000), RealDisk(tmp_path / "cut"))
    with reading(tmp_path / "cut") as cut:
        params = read_config(cut.header.config).traffic
        same = compare_params(cut, params)
        other = compare_params(cut, replace(params, safety_buffer_um=400_000))

    assert read_config(cut.header.config).state is not msgspec.UNSET
    assert (same["ticksThatDiffer"], same["first"]) == (0, None)
    assert other["changed"] == {"safetyBufferM": [Decimal("0.1"), Decimal("0.4")]}
    assert 0 < other["ticksThatDiffer"] <= other["ticks"] < TICKS


def test_a_pruned_journal_starts_at_its_first_checkpoint_and_cannot_be_compared(tmp_path: Path) -> None:
    made = Recorded("head-on", tmp_path, snapshot_every=10, background=False)
    journal = made.recording.driver.journal
    for _ in range(6):
        made.step(10)
        journal.rotate()
    made.step(5)
    made.recording.close()
    again = FileJournal.open(RealDisk(tmp_path))
    again.prune(0)
    again.close()

    with reading(tmp_path) as kept:
        assert kept.first_n > 0
        assert last_tick(kept) == 65
        with pytest.raises(UnknownTick):
            fleet_at(kept, 1)
        assert fleet_at(kept, 64).traffic.tick_number == 64
        with pytest.raises(NotReplayable):
            compare_params(kept, read_config(kept.header.config).traffic)
