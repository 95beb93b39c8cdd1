"""A fleet and its journal: order of writes, one writer, and a resumed fleet."""

import subprocess
import sys
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

from pendula.fleet import MapDamaged, compiled_sites
from pendula.fleet.commands import Tick
from pendula.fleet.engine import FleetEngine
from pendula.fleet.runs import NoFleetJournal, Recording, reading, recording_disk
from pendula.fleet.tick.observing import TruckReport
from pendula.kernel.canonical import encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import begin_recording
from pendula.kernel.engine import CommandReader
from pendula.kernel.errors import WrongUsage
from pendula.kernel.frames import read_input
from pendula.kernel.journal import FileJournal, JournalInUse
from pendula.kernel.replay import replay
from pendula.testing.tally import Tally
from tests.fleet.runs.journals import Recorded, recorded


@pytest.mark.req("FLT-OBS-2")
def test_a_tick_is_one_input_and_one_outcome_with_regular_checkpoints(tmp_path: Path) -> None:
    recorded("head-on", tmp_path, 25, snapshot_every=10)

    with reading(tmp_path) as journal:
        kinds = [record.kind for record in journal.read()]

    assert kinds == ["input", "outcome"] * 10 + ["snapshot"] + ["input", "outcome"] * 10 + ["snapshot"] + [
        "input",
        "outcome",
    ] * 5 + ["snapshot"]


@pytest.mark.req("FLT-OBS-1")
@pytest.mark.req("FLT-OBS-3", "FLT-RTP-11")
def test_a_tick_is_written_before_its_commands_are_sent(tmp_path: Path) -> None:
    made = Recorded("head-on", tmp_path)
    seen: list[tuple[int, bool]] = []
    send = made.run.world.send

    def sending(truck: int, command: object) -> None:
        # What another process finds in the directory at this moment.
        left = FileJournal.open(RealDisk(tmp_path, make=False), read_only=True)
        ticks = [record.t for record in left.read() if record.kind == "input"]
        seen.append((made.run.world.now_ms, made.run.world.now_ms in ticks))
        send(truck, command)  # type: ignore[arg-type]

    made.run.world.send = sending  # type: ignore[method-assign]
    made.step(8)
    made.recording.close()

    assert len(seen) == 16
    assert all(there for _, there in seen)


@pytest.mark.req("FLT-OBS-4")
@pytest.mark.req("FLT-TEST-50")
def test_a_journal_replays_without_a_difference(tmp_path: Path) -> None:
    recorded("hall", tmp_path, 400, snapshot_every=100)

    with reading(tmp_path) as journal:
        report = replay(journal, lambda _: FleetEngine)

    assert report.first_difference is None
    assert (report.commands, report.snapshots) == (400, 4)


def test_a_second_manager_is_refused_even_from_another_process(tmp_path: Path) -> None:
    made = Recorded("head-on", tmp_path)
    program = "import sys, pathlib, pendula.fleet.runs as runs; runs.recording_disk(pathlib.Path(sys.argv[1]))"

    with pytest.raises(JournalInUse):
        recording_disk(tmp_path)
    other = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    made.recording.close()

    assert "JournalInUse" in other.stderr
    recording_disk(tmp_path).close()


def test_a_resumed_fleet_continues_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    made = Recorded("head-on", tmp_path / "a", snapshot_every=7)
    made.step(20)
    before = made.recording.engine.state()
    made.recording.close()

    with Recording.resume(recording_disk(tmp_path / "a")) as again:
        assert again.engine.state() == before


@pytest.mark.req("FLT-FAIL-12")
def test_a_damaged_map_is_refused_and_a_missing_one_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded("head-on", tmp_path, 5)
    file = tmp_path / "site.map"
    whole = file.read_bytes()
    monkeypatch.setattr(compiled_sites, "_cache", type(compiled_sites._cache)())

    file.write_bytes(whole.replace(b'"A1"', b'"A2"').replace(b"1", b"2", 1))
    with pytest.raises(MapDamaged, match=r"site\.map"):
        Recording.resume(recording_disk(tmp_path))
    file.unlink()
    with Recording.resume(recording_disk(tmp_path)) as again:
        assert again.engine.traffic.tick_number == 5


def test_the_journal_of_another_scheduler_is_refused(tmp_path: Path) -> None:
    config = {"seed": 1}
    begin_recording(Tally.create(config), config, RealDisk(tmp_path)).close()

    with pytest.raises(NoFleetJournal), reading(tmp_path):
        pass


@pytest.mark.req("FLT-PERF-4")
def test_a_truck_costs_far_less_than_twenty_kilobytes_a_second(tmp_path: Path) -> None:
    recorded("hall", tmp_path, 300)

    written = sum(one.stat().st_size for one in tmp_path.glob("*.journal"))

    # Four trucks, thirty seconds; the checkpoint at the end is in it.
    assert written < 4 * 30 * 20_000
    assert written > 4 * 30 * 1_000


@pytest.mark.req("FLT-OBS-1")
def test_ticks_are_written_in_canonical_bytes(tmp_path: Path) -> None:
    recorded("hall", tmp_path, 200)
    read = CommandReader(FleetEngine)

    with reading(tmp_path) as journal:
        written = [bytes(read_input(one.body).command) for one in journal.read() if one.kind == "input"]

    assert [encode(read(one)) for one in written] == written
    assert len(written) == 200


class Level(IntEnum):
    ONE = 1


@pytest.mark.req("FLT-OBS-4")
@pytest.mark.parametrize(
    "odd",
    [
        {"at_ms": 1 << 70},
        {"at_ms": Level.ONE},
        {"x_um": -(1 << 63) - 1},
        {"robot_id": "\u007f \u2028 ü"},
        {"robot_id": b"R1"},
        {"phase": "IDLE"},
    ],
)
def test_odd_members_of_a_report_are_written_as_they_are_applied(tmp_path: Path, odd: dict[str, Any]) -> None:
    made = Recorded("head-on", tmp_path)
    made.step(3)
    report = TruckReport(**{"robot_id": "R1", "at_ms": 0, "x_um": 0, "y_um": 0, "yaw_urad": 0, "v_um_s": 0, **odd})
    made.recording.apply(Tick(made.run.world.now_ms, (report,)))
    made.recording.close()
    read = CommandReader(FleetEngine)

    with reading(tmp_path) as journal:
        written = [bytes(read_input(one.body).command) for one in journal.read() if one.kind == "input"]
        assert replay(journal, lambda _: FleetEngine).first_difference is None
    assert [encode(read(one)) for one in written] == written


@pytest.mark.parametrize("odd", [{"x_um": 1.0}, {"x_um": float("nan")}, {"x_um": Decimal(1)}, {"load": 1}])
def test_a_report_with_a_fraction_is_refused(tmp_path: Path, odd: dict[str, Any]) -> None:
    made = Recorded("head-on", tmp_path)
    report = TruckReport(**{"robot_id": "R1", "at_ms": 0, "x_um": 0, "y_um": 0, "yaw_urad": 0, "v_um_s": 0, **odd})

    with pytest.raises(WrongUsage, match="The tick cannot be encoded"):
        made.recording.apply(Tick(0, (report,)))
    made.recording.close()
