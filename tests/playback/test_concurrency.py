"""Any number of threads can call at once: each call is atomic."""

import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from pendula.playback.model import InsertResult, Item, Origin, Record
from pendula.playback.scheduler import Scheduler
from pendula.playback.settings import Nae, Pick, PickMode, Settings
from tests.playback.shelves import ids, listed

PAIR = (ids("a", *range(1, 9)), ids("b", 11, 12, 13))
CALLS = 1500


@pytest.fixture(autouse=True)
def _switch_threads_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run_concurrently(*works: Callable[[], None]) -> None:
    """Run these at the same time and raise what any of them raised."""
    gate = threading.Barrier(len(works))
    troubles: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        gate.wait()
        try:
            work()
        except BaseException as trouble:
            troubles.append(trouble)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise troubles[0]


@pytest.mark.req("PLAY-API-6")
@pytest.mark.parametrize("pick", [Pick(), Pick(PickMode.RANDOM, 4)])
def test_every_item_is_delivered_exactly_once(pick: Pick) -> None:
    scheduler = Scheduler(PAIR, Settings(pick=pick, lookahead=5, history=3, nae=Nae(cap=8)), seed=1)
    taken: list[list[Item]] = [[] for _ in range(4)]
    results: list[InsertResult] = []

    def shows(mine: list[Item]) -> None:
        for call in range(CALLS):
            mine.extend(scheduler.take(3) if call % 5 == 0 else filter(None, [scheduler.next()]))

    def inserts() -> None:
        results.extend(scheduler.nae_insert(Record(900 + call % 5, call)) for call in range(CALLS))

    def queries() -> None:
        for _ in range(CALLS):
            ahead = [item.ordinal for item in scheduler.peek(9)]
            assert ahead == list(range(ahead[0], ahead[0] + len(ahead))) if ahead else True
            scheduler.stats()
            scheduler.state_dict()

    run_concurrently(*(lambda mine=mine: shows(mine) for mine in taken), inserts, queries)

    ordinals = sorted(item.ordinal for mine in taken for item in mine)
    assert ordinals == list(range(1, len(ordinals) + 1))
    assert len(ordinals) == 4 * (CALLS + 2 * -(-CALLS // 5))
    # Each thread sees its own calls in order.
    assert all([item.ordinal for item in mine] == sorted(item.ordinal for item in mine) for mine in taken)
    items = sorted((item for mine in taken for item in mine), key=lambda item: item.ordinal)
    steps = [item.step for item in items if item.origin is not Origin.NAE]
    assert steps == list(range(1, len(steps) + 1))
    assert set(results) == {InsertResult.INSERTED, InsertResult.MERGED}


@pytest.mark.req("PLAY-API-6")
@pytest.mark.req("PLAY-SNAP-4")
def test_a_transaction_is_atomic_for_other_threads() -> None:
    scheduler = Scheduler(PAIR, Settings(lookahead=2), seed=1)
    seen: list[tuple[int, str | None]] = []

    def changes() -> None:
        for number in range(150):
            with scheduler.update():
                scheduler.follow(f"c{number}", listed([100, 101]))
                if number:
                    scheduler.unfollow(f"c{number - 1}")
                scheduler.configure(history=1 + number % 9)

    def shows() -> None:
        for _ in range(1200):
            item = scheduler.next()
            assert item is not None
            seen.append((item.epoch_id, item.channel))

    run_concurrently(changes, shows, shows)

    assert scheduler.epoch_id == 150
    # A channel added by change k exists in epoch k + 1 alone.
    assert all(epoch == int(channel[1:]) + 1 for epoch, channel in seen if channel and channel.startswith("c"))


class Watched:
    """A programme that checks at each access whether another thread could enter now."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._programme = scheduler, scheduler._programme
        self.open: list[str] = []
        self.touched = 0

    def __getattr__(self, name: str) -> Any:
        self.touched += 1
        entered = []

        def try_to_enter() -> None:
            entered.append(self._scheduler._lock.lock.acquire(blocking=False))
            if entered[0]:
                self._scheduler._lock.lock.release()

        run_concurrently(try_to_enter)
        if entered[0]:
            self.open.append(name)
        return getattr(self._programme, name)


CALLS_OF_A_SCHEDULER: dict[str, Callable[[Scheduler, Item], object]] = {
    "next": lambda scheduler, item: scheduler.next(),
    "prev": lambda scheduler, item: scheduler.prev(),
    "peek": lambda scheduler, item: scheduler.peek(2),
    "take": lambda scheduler, item: scheduler.take(2),
    "now": lambda scheduler, item: scheduler.now(),
    "nae_insert": lambda scheduler, item: scheduler.nae_insert(Record(900, 0)),
    "reset": lambda scheduler, item: scheduler.reset("asked for"),
    "follow": lambda scheduler, item: scheduler.follow("c", listed([1])),
    "unfollow": lambda scheduler, item: scheduler.unfollow("a"),
    "refresh": lambda scheduler, item: scheduler.refresh("a", listed([1])),
    "ban": lambda scheduler, item: scheduler.ban(item),
    "configure": lambda scheduler, item: scheduler.configure(history=5),
    "show_next": lambda scheduler, item: scheduler.show_next(Record(900, 0)),
    "pause": lambda scheduler, item: scheduler.pause("a"),
    "resume": lambda scheduler, item: scheduler.resume("a"),
    "ban_artwork": lambda scheduler, item: scheduler.ban_artwork(1),
    "lift": lambda scheduler, item: scheduler.lift(1),
    "clock": lambda scheduler, item: scheduler.clock(datetime(2026, 1, 1, tzinfo=UTC)),
    "stats": lambda scheduler, item: scheduler.stats(),
    "diagnostics": lambda scheduler, item: scheduler.diagnostics(),
    "why": lambda scheduler, item: scheduler.why(item),
    "state_dict": lambda scheduler, item: scheduler.state_dict(),
}


@pytest.mark.req("PLAY-API-6")
@pytest.mark.parametrize("call", CALLS_OF_A_SCHEDULER)
def test_calls_are_mutually_exclusive(call: str) -> None:
    scheduler = Scheduler(PAIR, seed=1)
    [item] = scheduler.take(1)
    guarded = Watched(scheduler)
    scheduler._programme = guarded  # type: ignore[assignment]

    CALLS_OF_A_SCHEDULER[call](scheduler, item)

    assert guarded.touched > 0
    assert guarded.open == []
