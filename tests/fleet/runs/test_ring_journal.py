"""A failing disk degrades logging, and never traffic."""

import threading
from pathlib import Path
from typing import Any

import pytest

from pendula.fleet.engine import LOGGING_DEGRADED, LOGGING_RESTORED, FleetEngine
from pendula.fleet.events import AlertRaised
from pendula.fleet.runs import Recording, RingJournal
from pendula.fleet.runs.recording import TRY_AGAIN_AFTER
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.sentences import DISK_NEARLY_FULL
from pendula.kernel.canonical import Json
from pendula.kernel.driver import Driver, new_journal
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import replay
from pendula.kernel.stream import Published
from pendula.testing.faulty_disk import Failure, FaultyDisk
from pendula.testing.tally import Add, Tally

CONFIG: Json = {"seed": 1}


def ring(disk: FaultyDisk, **options: int) -> RingJournal:
    return RingJournal(new_journal(Tally, CONFIG, disk, min_free_bytes=500), background=False, **options)


def writes(disk: FaultyDisk, operation: str) -> list[int]:
    return [n for n, call in enumerate(disk.calls) if call.operation == operation and call.name.endswith(".journal")]


def through(disk: FaultyDisk) -> tuple[Run, Recording]:
    """A scenario whose ticks go through a journal on this disk; nothing happens in the background."""
    opened: list[Recording] = []

    def make_applier(engine: FleetEngine, config: Json) -> Recording:
        opened.append(Recording.begin(engine, config, disk, background=False))
        return opened[0]

    return Run(shipped("head-on"), make_applier=make_applier), opened[0]


@pytest.mark.req("FLT-OBS-3")
@pytest.mark.parametrize("operation", ["append", "sync"])
@pytest.mark.parametrize("failure", ["no_space", "io_error"])
def test_a_failing_disk_stops_no_truck(operation: str, failure: str) -> None:
    whole, plain = FaultyDisk(), Run(shipped("head-on"))
    trial, _ = through(whole)
    for _ in range(40):
        trial.step()
    at = writes(whole, operation)[20]
    run, recording = through(FaultyDisk({at: failure}))  # type: ignore[dict-item]

    for _ in range(40):
        run.step()
        plain.step()

    assert recording.degraded is not None
    assert run.result().form["digest"] == plain.result().form["digest"]


@pytest.mark.req("FLT-OBS-3")
@pytest.mark.req("FLT-EVO-23")
def test_degraded_logging_raises_one_alert_in_the_stream() -> None:
    whole = FaultyDisk()
    through(whole)[0].step()
    run, recording = through(FaultyDisk({writes(whole, "append")[-1]: "io_error"}))
    stream = recording.driver.subscribe(None)

    for _ in range(5):
        run.step()

    reported = [one.event for one in stream.take(10_000) if isinstance(one, Published)]
    assert [one.alert.code for one in reported if isinstance(one, AlertRaised)] == [LOGGING_DEGRADED]


def test_unwritten_records_are_kept_in_memory_and_can_be_read() -> None:
    trial = FaultyDisk()
    ring(trial).flush()
    disk = FaultyDisk({len(trial.calls) + 2: "io_error"})
    journal = ring(disk)
    for n in range(6):
        journal.append("input", n, b"%d" % n)
        journal.flush()

    assert journal.degraded is not None
    assert [bytes(record.body) for record in journal.read()] == [b"%d" % n for n in range(6)]


@pytest.mark.req("FLT-OBS-3")
def test_memory_keeps_only_the_last_ring_ms() -> None:
    trial = FaultyDisk()
    ring(trial).flush()
    journal = ring(FaultyDisk({len(trial.calls): "io_error"}), ring_ms=1_000)
    for n in range(50):
        journal.append("input", n * 100, b"%d" % n)
        journal.flush()

    kept = [record.t for record in journal.read()]

    assert kept == list(range(3_900, 5_000, 100))


@pytest.mark.req("FLT-OBS-3")
def test_memory_keeps_ten_minutes_by_default() -> None:
    trial = FaultyDisk()
    ring(trial).flush()
    journal = ring(FaultyDisk({len(trial.calls): "io_error"}))
    kept = []
    for t in (0, 600_000, 600_001):
        journal.append("input", t, b"1")
        journal.flush()
        kept.append([record.t for record in journal.read()])

    assert kept == [[0], [0, 600_000], [600_000, 600_001]]


def test_memory_keeps_no_durable_records_while_the_disk_works() -> None:
    journal = ring(FaultyDisk())
    for n in range(20):
        journal.append("input", n, b"1")
        journal.flush()

    assert len(journal._ring) == 1


def test_a_disk_with_space_again_gets_the_records_in_memory() -> None:
    disk = FaultyDisk(free_bytes=1_000)
    journal = ring(disk)
    journal.append("input", 0, b"0")
    journal.flush()
    disk.free = 100
    for n in range(1, 5):
        journal.append("input", n, b"%d" % n)
        journal.flush()
    low = journal.degraded
    written = len(list(FileJournal.open(disk, read_only=True).read()))
    disk.free = 1_000
    journal.append("input", 5, b"5")
    journal.flush()

    assert low == DISK_NEARLY_FULL
    assert written < 5
    assert journal.degraded is None
    assert [bytes(one.body) for one in FileJournal.open(disk, read_only=True).read()] == [b"%d" % n for n in range(6)]


@pytest.mark.req("FLT-OBS-3")
@pytest.mark.parametrize("operation", ["append", "sync"])
@pytest.mark.parametrize("failure", ["no_space", "io_error"])
def test_a_disk_that_works_again_gets_the_records_in_memory_with_an_alert(operation: str, failure: Failure) -> None:
    whole = FaultyDisk()
    trial, _ = through(whole)
    for _ in range(20):
        trial.step()
    at = writes(whole, operation)[10]
    # It fails for a while: the first attempts to go on fail as well.
    disk = FaultyDisk(dict.fromkeys(range(at, at + 3), failure))
    run, recording = through(disk)
    stream = recording.driver.subscribe(None)
    for _ in range(20 + 5 * TRY_AGAIN_AFTER):
        run.step()
    ended = recording.degraded
    recording.close()
    report = replay(FileJournal.open(disk.after_crash(1)), lambda _: FleetEngine)

    reported = [one.event for one in stream.take(100_000) if isinstance(one, Published)]
    codes = [one.alert.code for one in reported if isinstance(one, AlertRaised)]
    assert ended is None
    assert [one for one in codes if one.startswith("LOGGING")] == [LOGGING_DEGRADED, LOGGING_RESTORED]
    assert (report.first_difference, report.commands) == (None, run.engine.traffic.tick_number)


def test_a_disk_that_failed_for_longer_than_the_ring_is_not_appended_to() -> None:
    trial = FaultyDisk()
    ring(trial).flush()
    disk = FaultyDisk({len(trial.calls): "io_error"})
    journal = ring(disk, ring_ms=1_000)
    for n in range(3 * TRY_AGAIN_AFTER):
        journal.append("input", n * 100, b"%d" % n)
        journal.flush()

    assert journal.degraded is not None
    assert list(FileJournal.open(disk, read_only=True).read()) == []


def test_records_in_memory_are_written_on_close() -> None:
    trial = FaultyDisk()
    ring(trial).flush()
    disk = FaultyDisk({len(trial.calls): "io_error"})
    journal = ring(disk)
    for n in range(3):
        journal.append("input", n, b"%d" % n)
        journal.flush()
    journal.close()

    assert [record.n for record in FileJournal.open(disk, read_only=True).read()] == [0, 1, 2]


def test_records_in_memory_are_written_to_a_nearly_full_disk_on_close() -> None:
    disk = FaultyDisk(free_bytes=1_000)
    journal = ring(disk)
    journal.append("input", 0, b"0")
    journal.flush()
    disk.free = 400
    for n in range(1, 4):
        journal.append("input", n, b"%d" % n)
        journal.flush()
    before = journal.degraded
    journal.close()

    assert (before, journal.degraded) == (DISK_NEARLY_FULL, None)
    assert [record.n for record in FileJournal.open(disk, read_only=True).read()] == [0, 1, 2, 3]


def test_the_disk_is_synced_in_the_background(tmp_path: Path) -> None:
    class Slow(FaultyDisk):
        syncing, go_on = threading.Event(), threading.Event()

        def sync(self, name: str) -> None:
            if name.endswith(".journal"):
                self.syncing.set()
                assert self.go_on.wait(240)
            super().sync(name)

    disk = Slow()
    journal = RingJournal(new_journal(Tally, CONFIG, disk))
    journal.append("input", 0, b"0")
    first = journal.flush()
    assert disk.syncing.wait(240)
    journal.append("input", 1, b"1")
    second = journal.flush()
    disk.go_on.set()
    journal.close()

    assert (first, second) == (0, 1)
    assert [record.n for record in FileJournal.open(disk, read_only=True).read()] == [0, 1]


def test_a_degraded_journal_replays_up_to_its_end() -> None:
    whole = FaultyDisk()
    trial, _ = through(whole)
    for _ in range(20):
        trial.step()
    disk = FaultyDisk({writes(whole, "append")[12]: "io_error"})
    run, _ = through(disk)
    for _ in range(20):
        run.step()

    report = replay(FileJournal.open(disk.after_crash(1)), lambda _: FleetEngine)

    assert report.first_difference is None
    assert 5 < report.commands < 20


def filled(journal: RingJournal, **options: Any) -> Driver[Any, Any]:
    """A driver whose journal has some segments."""
    driver: Driver[Any, Any] = Driver(Tally.create(CONFIG), journal, **options)
    for _ in range(100):
        reported(driver)
    return driver


def reported(driver: Driver[Any, Any]) -> None:
    driver.submit(Add(1), by="ann")
    driver.flush()


@pytest.mark.req("FLT-OBS-3")
@pytest.mark.parametrize("background", [True, False])
def test_a_journal_over_its_new_share_is_cut_with_the_next_command(background: bool) -> None:
    disk = FaultyDisk()
    journal = RingJournal(new_journal(Tally, CONFIG, disk, segment_bytes=1_000), background=background)
    driver = filled(journal)
    before = journal.total_bytes
    driver.journal_bytes = before // 2
    reported(driver)
    after = journal.total_bytes
    driver.close()

    assert after < before // 2
    assert replay(FileJournal.open(disk), lambda _: Tally).first_difference is None


@pytest.mark.req("FLT-OBS-3")
@pytest.mark.parametrize("background", [True, False])
def test_a_journal_that_cannot_be_cut_stops_no_fleet_and_is_not_filled_with_snapshots(background: bool) -> None:
    journal = RingJournal(new_journal(Tally, CONFIG, FaultyDisk(), segment_bytes=1_000), background=background)
    driver = filled(journal, snapshot_every=50)
    # Only those that are to make room are counted.
    driver._snapshot_is_due = lambda: False  # type: ignore[method-assign]
    driver.journal_bytes, before = 1, journal.next_n
    for _ in range(120):
        reported(driver)
    snapshots = journal.next_n - before - 2 * 120
    driver.close()

    assert driver.commands == 220
    assert snapshots == 2 * 3


@pytest.mark.req("FLT-OBS-3")
def test_a_journal_over_its_share_on_a_failing_disk_stops_no_fleet() -> None:
    trial = FaultyDisk()
    filled(RingJournal(new_journal(Tally, CONFIG, trial, segment_bytes=1_000), background=False))
    disk = FaultyDisk(dict.fromkeys(range(len(trial.calls), 10_000), "io_error"))
    journal = RingJournal(new_journal(Tally, CONFIG, disk, segment_bytes=1_000), background=False)
    driver = filled(journal)
    driver.journal_bytes = journal.total_bytes // 2
    for _ in range(3 * TRY_AGAIN_AFTER):
        reported(driver)

    assert journal.degraded is not None
    assert driver.commands == 100 + 3 * TRY_AGAIN_AFTER
