"""Laws of the core: `prev` and `peek` change no later item, and a batch equals single calls."""

from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.kernel import canonical
from pendula.playback import saving
from pendula.playback.choosing.new_artwork import triggers
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import Channel, MemoryShelf
from pendula.playback.choosing.swrr import RoundRobin
from pendula.playback.model import Item, Record
from pendula.playback.settings import Pick, PickMode, Settings
from tests.playback.histories import public
from tests.playback.oracle import Artwork, Fault, Slot
from tests.playback.shelves import ids, shown
from tests.playback.worlds import random_settings, settings, shelf, some_slots, some_work

PAIR = (ids("a", *range(1, 9)), ids("b", 11, 12, 13))


def digest(programme: Programme) -> str:
    return canonical.digest(saving.save(programme))


@pytest.mark.req("PLAY-HIST-3")
@pytest.mark.req("PLAY-HIST-4")
@pytest.mark.req("PLAY-HIST-5")
@given(st.lists(st.booleans(), max_size=120), st.integers(1, 6), st.integers(1, 6))
def test_going_back_and_forth_does_not_change_later_items(back: list[bool], history: int, lookahead: int) -> None:
    with_random_picks = Settings(pick=Pick(PickMode.RANDOM, 4), history=history, lookahead=lookahead)
    wandering, straight = Programme(PAIR, with_random_picks, seed=3), Programme(PAIR, with_random_picks, seed=3)
    first_time: list[Item] = []
    for programme in (wandering, straight):
        programme.nae_insert(Record(900, 1))
    for goes_back in back:
        item = wandering.prev() if goes_back else wandering.next()
        if item is not None and item.ordinal > len(first_time):
            first_time.append(item)

    assert first_time == [straight.next() for _ in first_time]


@pytest.mark.req("PLAY-HIST-4")
def test_going_back_changes_only_the_position() -> None:
    programme = Programme(PAIR, Settings(pick=Pick(PickMode.RANDOM, 4), history=5, lookahead=4), seed=1)
    programme.nae_insert(Record(900, 1))
    programme.take(9)
    before = saving.save(programme)

    for position in (1, 2, 3, 4, 4, 4):
        programme.prev()
        assert saving.save(programme) == {**before, "behind": position}


@pytest.mark.req("PLAY-API-4")
@given(st.integers(0, 200))
def test_peek_changes_nothing(n: int) -> None:
    programme = Programme(PAIR, Settings(lookahead=7), seed=1)
    programme.nae_insert(Record(900, 1))
    programme.take(3)
    before = digest(programme)

    seen = programme.peek(n)

    assert digest(programme) == before
    assert seen == programme.take(min(n, len(programme.lookahead)))


@pytest.mark.req("PLAY-API-4")
def test_peek_generates_nothing() -> None:
    programme = Programme(PAIR, seed=1)

    assert programme.peek(5) == []
    assert programme.generator.ordinal == 0


@pytest.mark.req("PLAY-API-4")
@pytest.mark.parametrize("n", [-1, -(10**30), "3", None, 1.0, Decimal(1), True, [1]])
@pytest.mark.parametrize("asked", ["peek", "take"])
def test_an_item_count_is_a_non_negative_integer(asked: str, n: Any) -> None:
    programme = Programme(PAIR, seed=1)

    with pytest.raises(ValueError, match="integer from 0"):
        getattr(programme, asked)(n)


def drawn_and_triggered(pick: Pick) -> tuple[list[tuple[int, int | None, bool]], Programme]:
    programme = Programme(PAIR, Settings(pick=pick, lookahead=4), seed=5)
    pattern = []
    for call in range(400):
        if call % 7 == 0:
            programme.nae_insert(Record(900 + call % 5, call))
        item = programme.next()
        assert item is not None
        draw = item.trace.nae_draw if item.trace else None
        hit = draw is not None and item.trace is not None and triggers(draw, item.trace.pool)
        pattern.append((item.ordinal, draw, hit))
    return pattern, programme


@pytest.mark.req("PLAY-RNG-4")
def test_random_picks_do_not_affect_the_draws_of_new_artwork() -> None:
    recency, by_age = drawn_and_triggered(Pick())
    random, by_lot = drawn_and_triggered(Pick(PickMode.RANDOM, 3))

    assert recency == random
    assert {hit for _, _, hit in recency} == {False, True}
    assert by_age.generator.nae_draws.state == by_lot.generator.nae_draws.state
    assert by_age.generator.pick_draws.state == Programme(PAIR, seed=5).generator.pick_draws.state


@pytest.mark.req("PLAY-NAE-4")
def test_nothing_is_drawn_for_new_artwork_while_the_pool_is_empty() -> None:
    programme = Programme(PAIR, Settings(pick=Pick(PickMode.RANDOM, 3)), seed=5)
    before = programme.generator.nae_draws.state, programme.generator.pick_draws.state

    programme.take(500)

    assert programme.generator.nae_draws.state == before[0]
    assert programme.generator.pick_draws.state != before[1]


def one_by_one(programme: Programme, n: int) -> list[Item]:
    items: list[Item] = []
    while len(items) < n and (item := programme.next()) is not None:
        items.append(item)
    return items


@pytest.mark.req("PLAY-LOOK-1")
@pytest.mark.req("PLAY-LOOK-5")
def test_a_batch_equals_single_calls_even_when_channels_fail_during_it() -> None:
    short = 0
    for number in range(250):
        random = Random(number)
        channels = [Channel(name, shelf(some_slots(random))) for name in "abc"[: random.randrange(4)]]
        options = settings(random_settings(random), [channel.id for channel in channels])
        inserts = [Record(some_work(random).id, 0) for _ in range(random.randrange(6))]
        pair = [Programme(channels, options, seed=number) for _ in range(2)]
        for n in (random.choice((1, 3, 40)), random.choice((2, 9, 700)), 5):
            for programme in pair:
                for work in inserts:
                    programme.nae_insert(work)
            together, single = pair[0].take(n), one_by_one(pair[1], n)
            short += len(single) < n
            assert list(map(public, together)) == list(map(public, single)), number
            assert saving.save(pair[0]) == saving.save(pair[1]), number
    assert short > 30


@pytest.mark.req("PLAY-LOOK-5")
@pytest.mark.parametrize("many", [lambda programme: programme.take(6), lambda programme: one_by_one(programme, 6)])
def test_new_artwork_alone_is_shown_without_any_channel(many: Callable[[Programme], list[Item]]) -> None:
    programme = Programme(settings=Settings(lookahead=4), seed=1)
    for id in (7, 8, 9):
        programme.nae_insert(Record(id, 0))

    items = many(programme)

    assert {item.id for item in items} == {7, 8, 9}
    assert {item.origin.value for item in items} == {"nae"}


@pytest.mark.req("PLAY-LOOK-5")
def test_without_channels_and_pool_nothing_changes() -> None:
    programme = Programme(seed=1)
    before = digest(programme)

    assert programme.next() is None
    assert programme.take(5) == []
    assert digest(programme) == before


@pytest.mark.req("PLAY-SWRR-6")
@pytest.mark.req("PLAY-LOOK-6")
@pytest.mark.req("PLAY-SNAP-6")
def test_a_failing_channel_uses_steps_and_loses_no_item() -> None:
    works: list[Slot] = [Artwork(id, -id) for id in range(1, 4)]
    broken = Channel("b", shelf([*works, Fault.UNREADABLE]))
    programme = Programme((ids("a", 101, 102, 103), broken), Settings(lookahead=1), seed=1)

    items = one_by_one(programme, 12)

    assert shown(items) == [101, 1, 102, 2, 103, 3, 101, 102, 103, 101, 102, 103]
    assert [item.step for item in items] == [1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15, 17]
    assert programme.epoch_id == 0
    programme.reset("look again")
    assert programme.generator.weights == [65536, 0]


@pytest.mark.req("PLAY-EDGE-1")
def test_a_single_channel_gets_every_turn() -> None:
    programme = Programme((ids("only", 1, 2),), seed=1)

    assert programme.generator.weights == [65536]
    assert RoundRobin([65536]).ahead(300) == bytes(300)
    assert shown(programme.take(5)) == [1, 2, 1, 2, 1]


@pytest.mark.req("PLAY-EDGE-1")
def test_without_readable_channels_there_are_no_items_until_a_refresh() -> None:
    programme = Programme((ids("a"), Channel("b", shelf([Fault.UNREADABLE]))), seed=1)
    assert one_by_one(programme, 3) == []

    programme.refresh("a", MemoryShelf([Record(5, 0)]))

    assert shown(one_by_one(programme, 2)) == [5, 5]


@pytest.mark.req("PLAY-EDGE-3")
@pytest.mark.req("PLAY-CACHE-3")
def test_extreme_ids_and_times_are_ordinary_data() -> None:
    last = 2**64 - 1
    records = [Record(0, 5), Record(last, 5), Record(1, -(2**63)), Record(2, 2**63 - 1), Record(3, 5)]
    programme = Programme((Channel("a", MemoryShelf(records)),), seed=1)

    items = programme.take(5)

    assert [(item.id, item.ts) for item in items] == [(2, 2**63 - 1), (last, 5), (3, 5), (0, 5), (1, -(2**63))]


@pytest.mark.req("PLAY-RNG-5")
def test_epoch_numbers_wrap_around_after_2_to_the_64() -> None:
    with_random_picks = Settings(pick=Pick(PickMode.RANDOM, 8))
    first = Programme(PAIR, with_random_picks, seed=9)
    state = saving.save(first)
    last = saving.load({**state, "epoch_id": 2**64 - 1}, saving.shelves_by_id(PAIR))
    assert [item.epoch_id for item in last.take(2)] == [2**64 - 1] * 2

    last.reset("on")

    assert last.epoch_id == 0
    assert list(map(public, last.take(50))) == list(map(public, first.take(50)))


def test_a_digest_differs_where_states_differ() -> None:
    programme = Programme(PAIR, seed=1)
    before = digest(programme)
    programme.next()

    assert digest(programme) != before
