"""The background task: the schedule of refreshes, and their notices to players."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Queue

import msgspec
import pytest

from pendula.playback.cache import refresher as refresher_module
from pendula.playback.cache.merge import Page, Source, SourceFailed, back_off_of
from pendula.playback.cache.refresher import Feed, Plan, Refresher
from pendula.playback.cache.shelf import open_or_set_aside
from pendula.playback.choosing.records import Channel, Shelf
from pendula.playback.model import ChannelTaken, Diagnostic, InvalidParameter, UnknownChannel
from pendula.playback.scheduler import Scheduler
from pendula.playback.settings import Exposure, Mode, Settings
from pendula.playback.sources.folder import FolderSource
from tests.playback.caches import cache_file, flipped, put, raws
from tests.playback.shelves import listed, shown

NAME = "a.pch"
MINUTE = 60_000


def bare(*ids: int) -> Page:
    return Page(listed(ids), len(ids))


class Fixed:
    """A source that always returns the same page, or fails."""

    def __init__(self, page: Page | Exception) -> None:
        self.page = page
        self.fetched = 0

    def fetch(self) -> Page:
        self.fetched += 1
        if isinstance(self.page, Exception):
            raise self.page
        return self.page


def feed(source: Source | None = None, name: str = NAME) -> Feed:
    return Feed(source or Fixed(bare(1)), Path(name))


def planned(*channels: str) -> Plan:
    plan = Plan(seed=1, every_ms=10 * MINUTE)
    for channel in channels:
        plan.add(channel, feed(name=f"{channel}.pch"), 0)
    return plan


def begun(plan: Plan, now_ms: int) -> list[str]:
    turns = []
    while (turn := plan.begin(now_ms)) is not None:
        turns.append(turn.channel)
    return turns


@pytest.mark.req("PLAY-CACHE-10")
def test_at_most_two_channels_are_refreshed_at_once() -> None:
    plan = planned("a", "b", "c")
    first, second = plan.begin(0), plan.begin(0)

    assert first is not None
    assert second is not None
    assert plan.begin(0) is None
    assert plan.wait_ms(0) is None
    plan.end(first, 5, succeeded=True)
    assert begun(plan, 5) == ["c"]


@pytest.mark.req("PLAY-CACHE-10")
def test_the_channel_with_the_oldest_refresh_is_first() -> None:
    plan = planned("a", "b", "c")
    for channel, at in (("a", 300), ("b", 100), ("c", 200)):
        turn = plan.begin(at)
        assert turn is not None
        assert turn.channel == channel
        plan.end(turn, at, succeeded=True)
    plan.add("d", feed(name="d.pch"), 400)

    order = []
    while (turn := plan.begin(20 * MINUTE)) is not None:
        order.append(turn.channel)
        plan.end(turn, 20 * MINUTE, succeeded=True)

    assert order == ["d", "b", "c", "a"]


def test_a_refreshed_channel_waits_until_its_next_time() -> None:
    plan = planned("a")
    turn = plan.begin(0)
    assert turn is not None
    plan.end(turn, 1000, succeeded=True)

    assert plan.wait_ms(2000) == 10 * MINUTE - 1000
    assert begun(plan, 10 * MINUTE + 999) == []
    assert begun(plan, 10 * MINUTE + 1000) == ["a"]


@pytest.mark.req("PLAY-CACHE-10")
def test_a_failed_channel_backs_off_and_a_request_does_not_shorten_that() -> None:
    plan = planned("a")
    turn = plan.begin(0)
    assert turn is not None
    plan.end(turn, 0, succeeded=False)
    wait = plan.wait_ms(0)

    plan.request("a", 1)

    assert wait == back_off_of(1, "a").failed()
    assert plan.wait_ms(0) == wait
    assert begun(plan, wait - 1) == []
    assert begun(plan, wait) == ["a"]


@pytest.mark.req("PLAY-CACHE-9")
def test_a_requested_channel_is_refreshed_at_once() -> None:
    plan = planned("a", "b")
    for _ in range(2):
        turn = plan.begin(0)
        assert turn is not None
        plan.end(turn, 0, succeeded=True)

    plan.request("b", 7)

    assert begun(plan, 7) == ["b"]


def test_a_request_for_a_running_channel_runs_after_it() -> None:
    plan = planned("a")
    turn = plan.begin(0)
    assert turn is not None

    plan.request("a", 1)
    assert begun(plan, 1) == []
    plan.end(turn, 2, succeeded=True)

    assert begun(plan, 2) == ["a"]


def test_a_channel_removed_and_added_while_it_runs_never_has_two_writers() -> None:
    plan = planned("a")
    turn = plan.begin(0)
    assert turn is not None
    plan.remove("a")
    plan.add("a", feed(), 1)

    assert not plan.holds(turn)
    assert begun(plan, 1) == []
    plan.end(turn, 2, succeeded=True)
    assert begun(plan, 2) == ["a"]


def test_a_plan_refuses_invalid_feeds_and_channels() -> None:
    plan = planned("a")

    with pytest.raises(ChannelTaken):
        plan.add("a", feed(name="other.pch"), 0)
    with pytest.raises(InvalidParameter):
        plan.add("b", feed(name="a.pch"), 0)
    with pytest.raises(InvalidParameter):
        plan.add("b", feed(name="b c.pch"), 0)
    with pytest.raises(InvalidParameter):
        plan.add("b", Feed(Fixed(bare(1)), Path("b.pch"), k=7), 0)
    with pytest.raises(UnknownChannel):
        plan.request("b", 0)
    with pytest.raises(UnknownChannel):
        plan.remove("b")
    with pytest.raises(InvalidParameter):
        Plan(seed=1, every_ms=0)


# The background task


class Clock:
    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return self.ms


def until_woken(wakeup: threading.Condition, _: int | None) -> None:
    """A clock that only the test moves."""
    wakeup.wait()


def playing(scheduler: Scheduler) -> Callable[[str, Shelf, Page], None]:
    """A player that applies the records and counts of a refresh in one step."""

    def on_refreshed(channel: str, shelf: Shelf, page: Page) -> None:
        with scheduler.update():
            scheduler.refresh(channel, shelf)
            exposure = scheduler.settings.exposure
            scheduler.configure(
                exposure=msgspec.structs.replace(
                    exposure,
                    total_count={**exposure.total_count, channel: page.total_count},
                    recent_count={**exposure.recent_count, channel: page.recent_count},
                )
            )

    return on_refreshed


@pytest.mark.req("PLAY-CACHE-9")
@pytest.mark.req("PLAY-CACHE-10")
def test_a_refresh_restores_a_corrupt_cache(tmp_path: Path) -> None:
    path = put(tmp_path / NAME, flipped(cache_file("a", raws(3)), 64))
    found = open_or_set_aside(path, "a")
    scheduler = Scheduler([Channel("a", found.shelf)], seed=1)
    refresher = Refresher(playing(scheduler), seed=1, clock=Clock())
    refresher.add("a", Feed(Fixed(bare(5, 6)), path))
    assert scheduler.next() is None

    refresher.request("a")
    assert refresher.run_due() == 1

    assert shown(scheduler.take(3)) == [5, 6, 5]
    assert scheduler.epoch_id == 1
    assert refresher.stats() == {"refreshes": 1, "writes": 1, "failures": 0}


@pytest.mark.req("PLAY-CACHE-8")
def test_a_refresh_that_changes_nothing_resets_nothing(tmp_path: Path) -> None:
    clock = Clock()
    scheduler = Scheduler([Channel("a", open_or_set_aside(tmp_path / NAME, "a").shelf)], seed=1)
    refresher = Refresher(playing(scheduler), seed=1, clock=clock, every_ms=MINUTE)
    source = Fixed(bare(5, 6, 7))
    refresher.add("a", Feed(source, tmp_path / NAME))
    refresher.run_due()
    first = scheduler.take(4)
    epoch, contents = scheduler.epoch_id, (tmp_path / NAME).stat()

    for _ in range(5):
        clock.ms += MINUTE
        assert refresher.run_due() == 1

    assert scheduler.epoch_id == epoch
    assert (tmp_path / NAME).stat().st_ino == contents.st_ino
    assert shown([*first, *scheduler.take(2)]) == [5, 6, 7, 5, 6, 7]
    assert refresher.stats() == {"refreshes": 6, "writes": 1, "failures": 0}
    source.page = bare(4, 5, 6, 7)
    clock.ms += MINUTE
    refresher.run_due()
    assert scheduler.epoch_id == epoch + 1


@pytest.mark.req("PLAY-CACHE-10")
def test_the_counts_for_proportional_exposure_come_from_the_page(tmp_path: Path) -> None:
    scheduler = Scheduler(settings=Settings(exposure=Exposure(Mode.PRE)), seed=1)
    refresher = Refresher(playing(scheduler), seed=1, clock=Clock())
    for channel, total in (("a", 9000), ("b", 1000)):
        path = tmp_path / f"{channel}.pch"
        scheduler.follow(channel, open_or_set_aside(path, channel).shelf)
        refresher.add(channel, Feed(Fixed(Page(listed([1, 2]), total, 0)), path))

    refresher.run_due()

    assert scheduler.stats()["weights"] == {"a": 56375, "b": 9161}


@pytest.mark.req("PLAY-CACHE-10")
@pytest.mark.parametrize("trouble", [SourceFailed("The server is away"), RuntimeError("?"), OSError(5, "I/O")])
def test_a_failure_is_counted_reported_and_retried_without_affecting_other_channels(
    tmp_path: Path, trouble: Exception
) -> None:
    clock = Clock()
    notified: list[str] = []
    refresher = Refresher(lambda channel, shelf, page: notified.append(channel), seed=1, clock=clock)
    away = Fixed(trouble)
    refresher.add("a", Feed(away, tmp_path / "a.pch"))
    refresher.add("b", Feed(Fixed(bare(1)), tmp_path / "b.pch"))

    assert refresher.run_due() == 2
    clock.ms += 36_000
    assert refresher.run_due() == 1
    away.page = bare(2)
    clock.ms += 72_000
    refresher.run_due()

    assert notified == ["b", "a"]
    assert refresher.stats() == {"refreshes": 2, "writes": 2, "failures": 2}
    assert [(entry.code, entry.facts["channel"]) for entry in refresher.diagnostics()] == [("RefreshFailed", "a")] * 2


def test_a_failing_listener_affects_its_refresh_alone(tmp_path: Path) -> None:
    def listener(channel: str, shelf: Shelf, page: Page) -> None:
        if channel == "a":
            raise UnknownChannel("it is not followed", channel=channel)

    refresher = Refresher(listener, seed=1, clock=Clock())
    refresher.add("a", Feed(Fixed(bare(1)), tmp_path / "a.pch"))
    refresher.add("b", Feed(Fixed(bare(1)), tmp_path / "b.pch"))

    assert refresher.run_due() == 2

    assert refresher.stats()["failures"] == 1
    assert refresher.diagnostics()[0].facts == {"channel": "a", "error": "unknown_channel", "reason": None}


def test_an_exception_of_the_failure_callback_affects_no_other_channel(tmp_path: Path) -> None:
    heard: list[tuple[str, str | None]] = []

    def on_failed(channel: str, failure: Diagnostic) -> None:
        heard.append((channel, failure.facts["reason"]))
        raise RuntimeError("?")

    refresher = Refresher(lambda *_: None, seed=1, clock=Clock(), on_failed=on_failed)
    refresher.add("a", Feed(FolderSource(tmp_path / "none"), tmp_path / "a.pch"))
    refresher.add("b", Feed(Fixed(SourceFailed("The server is away")), tmp_path / "b.pch"))
    refresher.add("c", Feed(Fixed(bare(1)), tmp_path / "c.pch"))

    assert refresher.run_due() == 3

    assert heard == [("a", "No such file or directory"), ("b", None)]
    assert refresher.stats() == {"refreshes": 1, "writes": 1, "failures": 2}
    assert [diagnostic.facts["error"] for diagnostic in refresher.diagnostics()] == [
        "source_failed",
        "RuntimeError",
    ] * 2


def test_a_cache_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    put(tmp_path / "file", b"")
    refresher = Refresher(lambda *_: None, seed=1, clock=Clock())
    refresher.add("a", Feed(Fixed(bare(1)), tmp_path / "file" / "a.pch"))

    assert refresher.run_due() == 1

    assert refresher.stats()["failures"] == 1


class Gate:
    """A source that reports each request and answers on command."""

    def __init__(self, asked: "Queue[str]", name: str) -> None:
        self.name = name
        self.asked = asked
        self.open = threading.Event()

    def fetch(self) -> Page:
        self.asked.put(self.name)
        assert self.open.wait(240)
        return bare(1)


@pytest.fixture
def gates() -> Sequence[Gate]:
    asked: Queue[str] = Queue()
    return [Gate(asked, name) for name in "abc"]


@pytest.mark.req("PLAY-CACHE-10")
def test_two_channels_are_refreshed_in_the_background_and_a_third_waits(tmp_path: Path, gates: Sequence[Gate]) -> None:
    done: Queue[str] = Queue()
    refresher = Refresher(lambda channel, *_: done.put(channel), seed=1, clock=Clock(), wait=until_woken)
    for gate in gates:
        refresher.add(gate.name, Feed(gate, tmp_path / f"{gate.name}.pch"))
    asked = gates[0].asked

    refresher.start()
    refresher.start()
    assert sorted((asked.get(timeout=300), asked.get(timeout=300))) == ["a", "b"]
    assert asked.empty()
    gates[1].open.set()
    assert done.get(timeout=300) == "b"
    assert asked.get(timeout=300) == "c"
    gates[0].open.set()
    gates[2].open.set()
    assert sorted((done.get(timeout=300), done.get(timeout=300))) == ["a", "c"]
    refresher.stop()

    assert refresher.stats() == {"refreshes": 3, "writes": 3, "failures": 0}


def test_elapsed_time_and_requests_wake_the_background(tmp_path: Path) -> None:
    clock = Clock()
    done: Queue[str] = Queue()
    refresher = Refresher(lambda channel, *_: done.put(channel), seed=1, clock=clock, wait=until_woken, every_ms=MINUTE)
    refresher.start()
    refresher.add("a", Feed(Fixed(bare(1)), tmp_path / NAME))
    assert done.get(timeout=300) == "a"

    clock.ms += MINUTE
    refresher.wake()
    assert done.get(timeout=300) == "a"
    refresher.request("a")
    assert done.get(timeout=300) == "a"

    refresher.stop()
    refresher.stop()
    clock.ms += MINUTE
    refresher.wake()
    assert done.empty()


def test_a_stop_waits_for_running_refreshes_and_a_removed_channel_is_not_reported(
    tmp_path: Path, gates: Sequence[Gate]
) -> None:
    notified: list[str] = []
    refresher = Refresher(lambda channel, *_: notified.append(channel), seed=1, clock=Clock(), wait=until_woken)
    for gate in gates[:2]:
        refresher.add(gate.name, Feed(gate, tmp_path / f"{gate.name}.pch"))
    refresher.start()
    for _ in range(2):
        gates[0].asked.get(timeout=300)
    refresher.remove("a")

    stopping = threading.Thread(target=refresher.stop)
    stopping.start()
    for gate in gates[:2]:
        gate.open.set()
    stopping.join(240)

    assert not stopping.is_alive()
    assert notified == ["b"]
    assert refresher.stats()["refreshes"] == 2


def test_a_stop_has_a_timeout(tmp_path: Path, gates: Sequence[Gate], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresher_module, "STOP_SECONDS", 0.01)
    refresher = Refresher(lambda *_: None, seed=1, clock=Clock(), wait=until_woken)
    refresher.add("a", Feed(gates[0], tmp_path / "a.pch"))
    refresher.start()
    gates[0].asked.get(timeout=300)

    stopping = threading.Thread(target=refresher.stop, daemon=True)
    stopping.start()
    stopping.join(240)

    assert not stopping.is_alive()
    assert refresher.stats()["refreshes"] == 0


def test_a_listener_can_stop_the_refresher(tmp_path: Path) -> None:
    done = threading.Event()

    def listener(channel: str, shelf: Shelf, page: Page) -> None:
        refresher.stop()
        done.set()

    refresher = Refresher(listener, seed=1, clock=Clock(), wait=until_woken)
    refresher.add("a", Feed(Fixed(bare(1)), tmp_path / NAME))
    refresher.start()

    assert done.wait(240)


def test_the_real_clock_triggers_the_next_refresh(tmp_path: Path) -> None:
    done: Queue[str] = Queue()
    refresher = Refresher(lambda channel, *_: done.put(channel), seed=1, every_ms=1)
    refresher.add("a", Feed(Fixed(bare(1)), tmp_path / NAME))

    refresher.start()

    assert [done.get(timeout=300) for _ in range(3)] == ["a"] * 3
    refresher.stop()
