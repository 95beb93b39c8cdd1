"""The public API: its calls, its items, and their cost."""

import inspect
from collections.abc import Callable, Sequence

import pytest

from pendula.playback import Channel, MemoryShelf, Pick, PickMode, Record, Scheduler, Settings
from pendula.playback.choosing import swrr
from pendula.playback.choosing.records import Row
from tests.playback.shelves import ids, shown

CHANGING = {
    "ban", "configure", "follow", "next", "nae_insert", "prev", "refresh", "reset", "take", "unfollow", "update",
    "ban_artwork", "clock", "lift", "pause", "resume", "show_next",
}  # fmt: skip
LOOKING: dict[str, Callable[[Scheduler], object]] = {
    "channels": lambda scheduler: scheduler.channels,
    "day_part": lambda scheduler: scheduler.day_part,
    "diagnostics": lambda scheduler: scheduler.diagnostics(),
    "epoch_id": lambda scheduler: scheduler.epoch_id,
    "now": lambda scheduler: scheduler.now(),
    "paused": lambda scheduler: scheduler.paused,
    "peek": lambda scheduler: scheduler.peek(5),
    "settings": lambda scheduler: scheduler.settings,
    "state_dict": lambda scheduler: scheduler.state_dict(),
    "stats": lambda scheduler: scheduler.stats(),
    "why": lambda scheduler: scheduler.why(scheduler.peek(1)[0]),
}


@pytest.mark.req("PLAY-API-1")
def test_every_public_call_is_classified_as_change_or_query() -> None:
    public = {name for name, _ in inspect.getmembers(Scheduler) if not name.startswith("_")}

    assert public == CHANGING | set(LOOKING) | {"from_state"}


@pytest.mark.req("PLAY-API-1")
@pytest.mark.parametrize("name", LOOKING)
def test_a_query_changes_nothing(name: str) -> None:
    scheduler = Scheduler((ids("a", 1, 2, 3), ids("b", 2, 4)), Settings(lookahead=4), seed=1)
    scheduler.nae_insert(Record(900, 1))
    scheduler.take(6)
    before = scheduler.state_dict()

    LOOKING[name](scheduler)

    assert scheduler.state_dict() == before


@pytest.mark.req("PLAY-API-2")
def test_an_item_has_its_record_and_its_origin() -> None:
    record = Record(
        id=2**64 - 1,
        ts=-5,
        kind=1,
        format=2,
        flags=3,
        dwell_ms=4000,
        modified_ts=77,
        storage_key=bytes(range(16)),
        payload=bytes(range(32)),
    )
    scheduler = Scheduler((Channel("other", MemoryShelf([])), Channel("a", MemoryShelf([record]))), seed=1)

    item = scheduler.next()

    assert item is not None
    for field in record.__struct_fields__:
        assert getattr(item, field) == getattr(record, field), field
    assert (item.channel, item.channel_index, item.at, item.step) == ("a", 1, 0, 1)
    assert (item.origin, item.epoch_id, item.ordinal) == ("base", 0, 1)


@pytest.mark.req("PLAY-API-2")
def test_a_new_artwork_belongs_to_no_channel() -> None:
    scheduler = Scheduler(seed=1)
    for id in (900, 901):
        scheduler.nae_insert(Record(id, 1))

    item = scheduler.next()

    assert item is not None
    assert (item.id, item.origin, item.channel, item.channel_index, item.at) == (900, "nae", None, None, None)


@pytest.mark.req("PLAY-PICK-3")
@pytest.mark.parametrize("mode", PickMode)
def test_avoiding_a_repetition_never_uses_the_turn_of_another_channel(mode: PickMode) -> None:
    settings = Settings(pick=Pick(mode, 4))
    same = Scheduler((ids("a", 7), ids("b", 7), ids("c", 7, 8)), settings, seed=1)

    items = same.take(300)

    assert len(items) == 300
    assert [item.channel for item in items] == ["a", "b", "c"] * 100
    repeated = same.stats()["repeats"]
    assert isinstance(repeated, int)
    assert repeated >= 100  # a and b have no other records


class Counted:
    """A shelf that counts its reads."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._shelf = MemoryShelf([Record(id, id) for id in numbers])
        self.count, self.generation = self._shelf.count, self._shelf.generation
        self.rows = 0

    def run(self, at: int) -> Sequence[Row]:
        return [self.record(at)]

    def record(self, at: int) -> Row:
        self.rows += 1
        return self._shelf.record(at)


@pytest.mark.req("PLAY-PERF-1")
def test_after_a_period_no_step_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    step = swrr.step

    def counted(credits: list[int], weights: Sequence[int]) -> int:
        nonlocal steps
        steps += 1
        return step(credits, weights)

    monkeypatch.setattr(swrr, "step", counted)
    scheduler = Scheduler([ids(name, *range(first, first + 9)) for name, first in (("a", 10), ("b", 20))], seed=1)

    scheduler.take(100)

    # Two equal channels have a period of 2.
    assert steps == 2


@pytest.mark.req("PLAY-PERF-1")
def test_a_reset_reads_nothing_and_computes_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Counted(range(1, 100))
    scheduler = Scheduler((Channel("a", shelf), ids("b", 200, 201)), seed=1)
    scheduler.take(10)
    read = shelf.rows
    monkeypatch.setattr(swrr, "step", lambda *_: pytest.fail("a reset computes no step"))

    scheduler.reset("asked for")
    scheduler.prev()
    scheduler.peek(5)

    assert shelf.rows == read


@pytest.mark.req("PLAY-PERF-1")
def test_a_new_item_costs_one_read_and_going_back_none() -> None:
    shelf = Counted(range(1, 100))
    scheduler = Scheduler((Channel("a", shelf),), Settings(lookahead=4), seed=1)

    first = scheduler.take(8)
    read = shelf.rows
    back = [scheduler.prev() for _ in range(3)]
    scheduler.peek(3)
    again = [scheduler.next() for _ in range(3)]

    assert read == scheduler.stats()["ordinal"]
    assert shelf.rows == read
    assert shown(back) == shown(first[-2:-5:-1])
    assert shown(again) == shown(first[-3:])
