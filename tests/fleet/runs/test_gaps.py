"""A disk that failed for longer than the ring: the journal continues by itself and reports the missing records."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pendula.fleet.commands import Tick
from pendula.fleet.engine import LOGGING_DEGRADED, LOGGING_RESTORED, FleetEngine
from pendula.fleet.events import AlertRaised
from pendula.fleet.runs import (
    Recording,
    UnknownTick,
    fleet_at,
    lines,
    reading,
    recording_disk,
    verify_ticks,
    write_bundles,
)
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.sentences import alert_sentence
from pendula.fleet.simulator import Fault, FaultKind
from pendula.kernel.canonical import Json
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import EngineDefect
from pendula.kernel.frames import JournalCorrupt, frame_at, read_header
from pendula.kernel.journal import SUFFIX, FileJournal
from pendula.kernel.replay import replay
from pendula.kernel.stream import Published
from tests.campaigns import campaign_after

RING_MS, AWAY_TICKS = 7_000, 150


class Weather:
    """How a disk is: `full` has no room, `failed` takes no write."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = self.failed = False
        append, free = RealDisk.append, RealDisk.free_bytes

        def appended(disk: RealDisk, name: str, data: bytes) -> None:
            if self.failed:
                raise OSError(5, "Input/output error")
            append(disk, name, data)

        monkeypatch.setattr(RealDisk, "append", appended)
        monkeypatch.setattr(RealDisk, "free_bytes", lambda disk: 0 if self.full else free(disk))


class Driven:
    """A scenario through a journal on a real disk, with little memory and many checkpoints."""

    def __init__(self, directory: Path) -> None:
        opened: list[Recording] = []

        def make_applier(engine: FleetEngine, config: Json) -> Recording:
            disk = recording_disk(directory)
            opened.append(Recording.begin(engine, config, disk, background=False, ring_ms=RING_MS, snapshot_every=10))
            return opened[0]

        self.directory = directory
        self.run = Run(shipped("pose-jump"), make_applier=make_applier)
        self.recording = opened[0]
        self.stream = self.recording.driver.subscribe(None)

    def drive(self, ticks: int) -> None:
        for _ in range(ticks):
            self.run.step()

    def alerts(self) -> list[tuple[str, str]]:
        result = [one.event for one in self.stream.take(100_000) if isinstance(one, Published)]
        found = [one.alert for one in result if isinstance(one, AlertRaised) and one.alert.code.startswith("LOGGING")]
        return [(one.code, str(alert_sentence(one.code, None, one.details))) for one in found]

    @property
    def before(self) -> Path:
        (folder,) = self.directory.glob("before-*")
        return folder


def cut(segment: bytes) -> bytes:
    """A segment without its last record."""
    _, start = read_header(segment, "")
    ends = [start]
    while (frame := frame_at(segment, ends[-1])) is not None:
        ends.append(frame.end)
    return segment[: ends[-2]]


@pytest.fixture
def weather(monkeypatch: pytest.MonkeyPatch) -> Weather:
    return Weather(monkeypatch)


def gone_for_long(directory: Path, weather: Weather, trouble: str) -> Driven:
    """A fleet whose disk was away for longer than memory keeps, a while after it is back."""
    driven = Driven(directory)
    driven.drive(100)
    setattr(weather, trouble, True)
    driven.drive(AWAY_TICKS)
    setattr(weather, trouble, False)
    driven.drive(130)
    return driven


@pytest.mark.req("FLT-OBS-3", "FLT-EVO-23")
@pytest.mark.parametrize("trouble", ["full", "failed"])
def test_logging_resumes_by_itself_and_reports_missing_records(tmp_path: Path, weather: Weather, trouble: str) -> None:
    driven = gone_for_long(tmp_path / "j", weather, trouble)
    (degraded, _), (restored, said) = driven.alerts()

    assert driven.recording.degraded is None
    assert (degraded, restored) == (LOGGING_DEGRADED, LOGGING_RESTORED)
    assert " between " in said
    assert said.endswith("are missing from the journal")
    driven.recording.close()


@pytest.mark.req("FLT-OBS-3")
def test_missing_records_are_reported_after_a_refused_first_tick(tmp_path: Path, weather: Weather) -> None:
    driven = Driven(tmp_path / "j")
    driven.drive(100)
    weather.failed = True
    driven.drive(AWAY_TICKS)
    weather.failed = False
    while driven.recording.degraded is not None:
        driven.drive(1)
    refused = driven.recording.apply(Tick(0))
    driven.drive(3)
    (_, (restored, said)) = driven.alerts()

    assert refused.refusal is not None
    assert (restored, said.endswith("are missing from the journal")) == (LOGGING_RESTORED, True)
    driven.recording.close()


@pytest.mark.req("FLT-OBS-4", "FLT-OBS-5", "FLT-OBS-2")
@pytest.mark.parametrize("trouble", campaign_after(1, ["full", "failed"]))
def test_both_parts_replay_separately_and_name_the_gap(tmp_path: Path, weather: Weather, trouble: str) -> None:
    driven = gone_for_long(tmp_path / "j", weather, trouble)
    last = driven.run.traffic.tick_number
    state = driven.run.engine.state()
    driven.recording.close()
    with reading(driven.directory) as journal:
        report, after = replay(journal, lambda _: FleetEngine), verify_ticks(journal)
        shown = [*lines(journal)]
        same = fleet_at(journal, last).state() == state
        with pytest.raises(
            UnknownTick, match=r"It is missing records \d+ to \d+, after \d+ ms; the records before them"
        ):
            fleet_at(journal, 150)
    with reading(driven.before) as journal:
        before = verify_ticks(journal)

    assert report.first_difference is None
    assert (after["firstDifference"], before["firstDifference"]) == (None, None)
    assert same
    assert (before["firstTick"], after["lastTick"]) == (1, last)
    assert before["missing"] is None
    assert str(after["missing"]).endswith(f"are in the journal {driven.before.name}")
    # Ticks are lost, some are not, and none is twice.
    assert before["lastTick"] + 20 < after["firstTick"] <= last - 100
    assert len(shown) == after["ticks"] == last - after["firstTick"] + 1


@pytest.mark.req("FLT-OBS-3", "FLT-FAIL-14")
def test_a_fleet_resumes_from_a_journal_with_a_gap_and_may_have_another(tmp_path: Path, weather: Weather) -> None:
    driven = gone_for_long(tmp_path / "j", weather, "failed")
    first = driven.before
    weather.full = True
    driven.drive(AWAY_TICKS)
    weather.full = False
    driven.drive(130)
    assert driven.recording.degraded is None
    driven.recording.close()
    state = driven.run.engine.state()
    again = Recording.resume(recording_disk(driven.directory), background=False)
    assert again.engine.state() == state
    again.close()
    parts = [driven.directory, *sorted(driven.directory.glob("before-*"))]

    assert first in parts
    assert len(parts) == 3
    for part in parts:
        with reading(part) as journal:
            assert verify_ticks(journal)["firstDifference"] is None


@pytest.mark.req("FLT-OBS-3", "FLT-FAIL-16")
def test_a_tick_that_fails_while_degraded_is_recovered_from_memory(
    tmp_path: Path, weather: Weather, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven = Driven(tmp_path / "j")
    driven.drive(100)
    weather.full = True
    driven.drive(AWAY_TICKS)
    state = driven.run.engine.state()
    monkeypatch.setattr(driven.run.engine, "_decide", lambda *_: 1 / 0)
    with pytest.raises(EngineDefect):
        driven.run.step()

    # The engine in its place is as it was.
    assert driven.recording.driver.broken is None
    assert driven.recording.engine.state() == state
    driven.recording.close()


@pytest.mark.req("FLT-OBS-11")
def test_an_incident_shortly_after_a_gap_has_a_bundle_that_replays(tmp_path: Path, weather: Weather) -> None:
    driven = gone_for_long(tmp_path / "j", weather, "failed")
    driven.run.world.start_fault(0, Fault(FaultKind.POSE_JUMP, 1_000, y_um=3_000_000))
    driven.drive(20)
    driven.recording.close()
    with reading(driven.directory) as journal:
        made = write_bundles(journal, tmp_path / "bundles", driven.directory)

    assert made
    for bundle in made:
        with reading(bundle) as journal:
            assert verify_ticks(journal)["firstDifference"] is None


@pytest.mark.req("FLT-OBS-3")
def test_a_crash_before_the_old_part_is_moved_loses_nothing(
    tmp_path: Path, weather: Weather, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_now(*_: object) -> None:
        raise OSError(5, "Input/output error")

    move: Callable[[RealDisk, str, str], None] = RealDisk.move_into
    monkeypatch.setattr(RealDisk, "move_into", not_now)
    driven = gone_for_long(tmp_path / "j", weather, "failed")
    # Another trouble of the same disk does not take them for what is left of a segment that was to begin.
    weather.failed = True
    driven.drive(5)
    weather.failed = False
    driven.drive(60)
    assert driven.recording.degraded is None
    state = driven.run.engine.state()
    driven.recording.close()
    names = sorted(one.name for one in driven.directory.glob(f"*{SUFFIX}"))
    monkeypatch.setattr(RealDisk, "move_into", move)

    with reading(driven.directory) as journal:
        assert verify_ticks(journal)["firstDifference"] is None
    again = Recording.resume(recording_disk(driven.directory), background=False)
    assert again.engine.state() == state
    again.close()
    assert [*names[:1]] == sorted(one.name for one in driven.before.glob(f"*{SUFFIX}"))
    with reading(driven.before) as journal:
        assert verify_ticks(journal)["firstTick"] == 1


def test_a_gap_that_does_not_match_the_records_before_it_is_corrupt(
    tmp_path: Path, weather: Weather, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RealDisk, "move_into", lambda *_: (_ for _ in ()).throw(OSError()))
    driven = gone_for_long(tmp_path / "j", weather, "failed")
    driven.recording.close()
    first = min(driven.directory.glob(f"*{SUFFIX}"))
    with reading(driven.directory) as journal:
        gap = journal.header.gap
    assert gap
    # As if the earlier part had been replaced by a shorter one.
    first.write_bytes(cut(first.read_bytes()))

    with pytest.raises(JournalCorrupt, match="the gap does not begin where the segment before it ends"):
        FileJournal.open(RealDisk(driven.directory), read_only=True)
