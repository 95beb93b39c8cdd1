"""Turns carried over a change: every channel gets its share, however frequent the changes."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from pendula.playback import saving
from pendula.playback.choosing.programme import Programme, find_place
from pendula.playback.choosing.records import MemoryShelf, pack
from pendula.playback.choosing.swrr import TABLE_STEPS, RoundRobin, step
from pendula.playback.model import Record
from pendula.playback.saving import broken_invariants
from pendula.playback.settings import Exposure, Mode, Pick, PickMode, Refresh, Settings
from tests.playback.oracle import Artwork, Fault
from tests.playback.shelves import ids, listed, manual, shown
from tests.playback.worlds import RoughShelf

KEEP = Settings(refresh=Refresh.KEEP)


def many(refresh: Refresh, weights: dict[str, int] | None = None) -> Programme:
    channels = [ids(f"c{number}", *range(100 * number, 100 * number + 9)) for number in range(64)]
    exposure = Exposure(Mode.MAE, weights) if weights else Exposure()  # type: ignore[arg-type]
    return Programme(channels, Settings(exposure, refresh=refresh), seed=1)


def seen_with_changes(programme: Programme, items: int, every: int) -> Counter[str | None]:
    seen: Counter[str | None] = Counter()
    for number in range(items // every):
        seen.update(item.channel for item in programme.take(every))
        programme.refresh(f"c{number % 64}", MemoryShelf([Record(5000 + n, n) for n in range(number % 7 + 2)]))
    return seen


@pytest.mark.req("PLAY-USE-4")
@pytest.mark.parametrize("items", [4000, pytest.param(20_000, marks=pytest.mark.long)])
def test_with_a_change_every_16_items_64_channels_get_their_shares(items: int) -> None:
    seen = seen_with_changes(many(Refresh.KEEP), items, 16)

    assert len(seen) == 64
    assert all(abs(count - items / 64) <= 0.1 * items / 64 for count in seen.values())


@pytest.mark.long
@pytest.mark.req("PLAY-USE-4")
def test_with_changes_channels_of_different_weights_get_their_shares() -> None:
    weights = {f"c{number}": 1 + number % 4 for number in range(64)}
    seen = seen_with_changes(many(Refresh.KEEP, weights), 20_000, 16)

    for name, weight in weights.items():
        due = 20_000 * weight / sum(weights.values())
        assert abs(seen[name] - due) <= 0.1 * due


@pytest.mark.req("PLAY-USE-4")
def test_without_carried_turns_most_channels_are_never_reached() -> None:
    seen = seen_with_changes(many(Refresh.RESET), 2000, 16)

    assert len(seen) == 16


@pytest.mark.req("PLAY-USE-4")
def test_channels_keep_their_cursor_if_its_record_still_exists() -> None:
    programme = Programme((ids("a", *range(1, 9)), ids("b", *range(11, 19))), KEEP, seed=1)
    assert shown(programme.take(5)) == [1, 11, 2, 12, 3]

    newer = [Record(30, 2_000_000), *listed(range(1, 9))]
    programme.refresh("a", MemoryShelf(newer))
    assert programme.epoch_id == 1
    assert shown(programme.take(4)) == [13, 4, 14, 5]

    programme.refresh("a", MemoryShelf([Record(31, 2), Record(32, 1)]))
    assert shown(programme.take(4)) == [15, 31, 16, 32]


@pytest.mark.req("PLAY-USE-4")
def test_a_requested_reset_restarts_the_round_robin() -> None:
    programme = Programme((ids("a", *range(1, 9)), ids("b", *range(11, 19))), KEEP, seed=1)
    programme.take(5)

    programme.reset("asked for")

    assert shown(programme.take(3)) == [1, 11, 2]


@pytest.mark.req("PLAY-USE-4")
def test_channels_that_come_and_go_leave_the_sum_of_credits_at_0() -> None:
    random = Random(3)
    programme = Programme((ids("a", 1, 2, 3),), Settings(refresh=Refresh.KEEP, lookahead=3), seed=1)
    for number in range(400):
        programme.take(random.randrange(6))
        names = [channel.id for channel in programme.snapshot.channels]
        if random.randrange(2) and len(names) < 9:
            programme.follow(f"n{number}", MemoryShelf([Record(10 * number + n, n) for n in range(3)]))
        elif len(names) > 1:
            programme.unfollow(random.choice(names))
        assert not list(broken_invariants(programme))
        credits = programme.generator.round.credits_at(programme.generator.round.taken)
        assert max(map(abs, credits)) < 2**31


@pytest.mark.req("PLAY-USE-4")
def test_no_item_repeats_across_a_change() -> None:
    programme = Programme((ids("a", 1, 2), ids("b", 2, 1)), Settings(refresh=Refresh.KEEP, lookahead=2), seed=1)
    items = []
    for number in range(60):
        items += programme.take(1 + number % 3)
        programme.configure(history=10 + number % 5)

    assert all(left.id != right.id for left, right in pairwise(items))


@pytest.mark.req("PLAY-USE-4")
def test_random_picks_keep_their_turns_too() -> None:
    settings = Settings(manual(a=3, b=1), Pick(PickMode.RANDOM, 4), refresh=Refresh.KEEP)
    programme = Programme((ids("a", *range(1, 9)), ids("b", *range(11, 19))), settings, seed=1)
    seen: Counter[str | None] = Counter()
    for number in range(100):
        seen.update(item.channel for item in programme.take(4))
        programme.configure(history=10 + number % 5)

    assert seen == {"a": 300, "b": 100}


def test_a_carried_round_follows_the_definition_and_does_not_grow() -> None:
    weights, credits = (40000, 20000, 5536), [90_000, -100_000, 10_000]
    carried = RoundRobin(weights, 7, credits, before=(3, 3, 1))
    steps = 2 * TABLE_STEPS + 5000
    expected = bytearray(step(credits, weights) for _ in range(steps))

    found = bytearray()
    while len(found) < steps:
        found += carried.ahead(1000)
        carried.taken += 1000

    assert found[:steps] == expected
    assert len(carried.table) <= 2 * TABLE_STEPS + 1000
    counts = [found.count(index) for index in range(3)]
    assert carried.picks_at(carried.taken) == [before + count for before, count in zip((3, 3, 1), counts, strict=True)]


@pytest.mark.parametrize("damaged", [(), (0,), (3, 4, 5), (9,), tuple(range(1, 9))])
def test_a_record_is_found_among_damaged_ones(damaged: tuple[int, ...]) -> None:
    works = [Artwork(id, 100 - id) for id in range(10)]
    shelf = RoughShelf([Fault.DAMAGED if place in damaged else work for place, work in enumerate(works)])

    for place, work in enumerate(works):
        assert find_place(shelf, pack(Record(work.id, work.ts))) == (None if place in damaged else place)
    assert find_place(shelf, pack(Record(77, 50))) is None


def test_a_state_with_carried_turns_is_restored_unchanged() -> None:
    programme = Programme((ids("a", *range(1, 9)), ids("b", *range(11, 19))), KEEP, seed=1)
    programme.take(5)
    programme.configure(lookahead=4)
    programme.take(3)
    shelves = {channel.id: channel.shelf for channel in programme.snapshot.channels}

    restored = saving.load(saving.save(programme), lambda row: shelves[row.id])

    assert saving.save(restored) == saving.save(programme)
    assert restored.take(40) == programme.take(40)
    assert saving.save(restored) == saving.save(programme)
