"""Viewer controls: pin an artwork, pause a channel, ban an artwork; none is a reset."""

from collections import Counter
from itertools import pairwise

import pytest

from pendula.playback import saving
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import Channel, MemoryShelf
from pendula.playback.explain import why
from pendula.playback.model import (
    Banned,
    InsertResult,
    InvalidParameter,
    InvalidRecord,
    Origin,
    Record,
    TooManyControls,
    UnknownChannel,
)
from pendula.playback.saving import broken_invariants
from pendula.playback.settings import Exposure, Mode, Nae, Pick, PickMode, Settings
from tests.playback.oracle import Fault
from tests.playback.shelves import ids, manual, shown
from tests.playback.worlds import RoughShelf

PICKS = [Pick(), Pick(PickMode.RANDOM, 4)]
THREE = (ids("a", *range(1, 9)), ids("b", *range(11, 19)), ids("c", *range(21, 29)))


def again(programme: Programme) -> Programme:
    """The programme restored from its state."""
    shelves = {channel.id: channel.shelf for channel in programme.snapshot.channels}
    return saving.load(saving.save(programme), lambda row: shelves[row.id])


# ---- pin -------------------------------------------------------------------------------------------------------------


@pytest.mark.req("PLAY-USE-1")
@pytest.mark.parametrize("pick", PICKS, ids=["recency", "random"])
def test_a_pin_is_shown_once_before_the_lookahead_and_changes_nothing_else(pick: Pick) -> None:
    plain, pinned = (Programme(THREE, Settings(pick=pick, lookahead=4), seed=1) for _ in range(2))
    for programme in (plain, pinned):
        programme.nae_insert(Record(900, 1))
        programme.take(5)

    pinned.show_next(Record(77, 5, dwell_ms=250))
    pinned.show_next(Record(78, 5))
    first, second, *rest = pinned.take(30)

    assert [(item.id, item.origin, item.channel, item.ordinal) for item in (first, second)] == [
        (77, Origin.PINNED, None, 0),
        (78, Origin.PINNED, None, 0),
    ]
    assert first.dwell_ms == 250
    assert rest == plain.take(28)
    assert pinned.generator.round.taken == plain.generator.round.taken


@pytest.mark.req("PLAY-USE-1")
def test_a_pin_is_in_the_history_and_visible_to_peek() -> None:
    programme = Programme(THREE, Settings(lookahead=2), seed=1)
    before = programme.take(2)
    programme.show_next(Record(77, 5))

    assert shown(programme.peek(2)) == [77, 21]
    assert programme.next() == programme.now()
    assert programme.prev() == before[1]
    assert shown([programme.next(), programme.next()]) == [77, 21]
    assert not list(broken_invariants(programme))


@pytest.mark.req("PLAY-USE-1")
def test_a_pin_follows_items_gone_back_over_and_survives_a_reset_and_a_restart() -> None:
    programme = Programme(THREE, Settings(lookahead=2), seed=1)
    programme.take(3)
    programme.prev()
    programme.show_next(Record(77, 5))
    assert shown([programme.next()]) == [21]

    programme.reset("asked for")
    restored = again(programme)

    assert saving.save(restored) == saving.save(programme)
    item = restored.next()
    assert item is not None
    assert (item.id, item.epoch_id) == (77, 1)
    assert why(restored, item).code == "pinned"


def test_an_artwork_pinned_twice_is_pinned_once_with_the_last_options() -> None:
    programme = Programme(THREE, Settings(lookahead=2), seed=1)
    programme.show_next(Record(77, 5))
    programme.show_next(Record(78, 5))
    programme.show_next(Record(77, 6))

    assert [(item.id, item.ts) for item in programme.take(2)] == [(77, 6), (78, 5)]


def test_an_invalid_pin_is_refused_and_changes_nothing() -> None:
    programme = Programme(THREE, seed=1)
    before = saving.save(programme)
    for wrong in (Record(2**64, 0), Record(1, 1, payload=b"short"), b"bytes", 5, None):
        with pytest.raises(InvalidRecord):
            programme.show_next(wrong)  # type: ignore[arg-type]
    assert saving.save(programme) == before

    for id in range(64):
        programme.show_next(Record(1000 + id, 1))
    with pytest.raises(TooManyControls):
        programme.show_next(Record(1, 1))


# ---- pause -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("PLAY-USE-2")
@pytest.mark.parametrize("pick", PICKS, ids=["recency", "random"])
def test_a_paused_channel_provides_no_further_items_and_nothing_is_reset(pick: Pick) -> None:
    programme = Programme(THREE, Settings(exposure=manual(a=3, b=2, c=1), pick=pick), seed=1)
    programme.take(10)

    assert programme.pause("a")
    items = programme.take(300)

    assert programme.epoch_id == 0
    assert Counter(item.channel for item in items) == {"b": 200, "c": 100}
    assert programme.generator.weights == [0, 43691, 21845]
    assert not list(broken_invariants(programme))


@pytest.mark.req("PLAY-USE-2")
def test_a_resumed_channel_continues_with_its_credit_and_cursor() -> None:
    programme = Programme(THREE, Settings(exposure=manual(a=3, b=2, c=1), lookahead=8), seed=1)
    before = [item.id for item in programme.take(7) if item.channel == "a"]
    [credit, *_] = programme.generator.round.credits_at(7)
    programme.pause("a")
    programme.take(50)
    assert programme.generator.round.credits_at(programme.generator.round.taken)[0] == credit

    programme.resume("a")
    after = [item.id for item in programme.take(12) if item.channel == "a"]

    assert (*before, *after)[: len(before) + 4] == tuple(range(1, 9))[: len(before) + 4]
    assert programme.generator.weights == [32768, 21845, 10923]
    counts = Counter(item.channel for item in programme.take(600))
    assert {name: round(count / 100) for name, count in counts.items()} == {"a": 3, "b": 2, "c": 1}


@pytest.mark.req("PLAY-USE-2")
def test_a_pause_has_the_same_effect_whatever_the_lookahead() -> None:
    # Steps that meet the unreadable channel are spent, and belong to the item that follows them.
    channels = (*THREE[:2], Channel("broken", RoughShelf([Fault.UNREADABLE])), THREE[2])
    exposure = manual(a=1, b=1, broken=6, c=6)
    for before in range(1, 30):
        items = []
        for lookahead in (1, 2, 8):
            chosen = Settings(exposure, lookahead=lookahead)
            programme = Programme(channels, chosen, seed=1)
            programme.take(before)
            programme.pause("c")
            items.append(shown(programme.take(40)))
        assert items[1:] == [items[0], items[0]], before


@pytest.mark.req("PLAY-USE-2")
def test_the_share_of_a_paused_channel_goes_to_the_others_in_proportion() -> None:
    exposure = Exposure(Mode.PRE, total_count={"a": 9000, "b": 800, "c": 150}, recent_count={"a": 10, "b": 30, "c": 60})
    programme = Programme(THREE, Settings(exposure), seed=1)
    _, b, c = programme.generator.weights

    programme.pause("a")

    paused = programme.generator.weights
    assert paused[0] == 0
    assert sum(paused) == 65536
    assert abs(paused[1] * (b + c) - 65536 * b) <= b + c


@pytest.mark.req("PLAY-USE-2")
def test_a_pause_survives_a_reset_and_a_restart_and_ends_with_unfollowing() -> None:
    programme = Programme(THREE, Settings(lookahead=3), seed=1)
    programme.pause("b")
    programme.reset("asked for")
    restored = again(programme)

    assert saving.save(restored) == saving.save(programme)
    assert {item.channel for item in restored.take(9)} == {"a", "c"}
    restored.unfollow("b")
    restored.follow("b", MemoryShelf([Record(11, 1)]))
    assert {item.channel for item in restored.take(9)} == {"a", "b", "c"}


def test_when_all_channels_are_paused_only_pins_and_new_artwork_are_shown() -> None:
    programme = Programme(THREE, Settings(lookahead=2), seed=1)
    for name in "abc":
        programme.pause(name)

    assert programme.take(5) == []
    programme.show_next(Record(77, 1))
    assert shown([programme.next(), programme.next()]) == [77, None]
    programme.resume("b")
    assert {item.channel for item in programme.take(5)} == {"b"}


def test_a_channel_of_weight_0_plays_when_all_others_are_paused() -> None:
    programme = Programme(THREE, Settings(exposure=manual(a=1, b=1)), seed=1)
    programme.pause("a")
    programme.pause("b")

    assert {item.channel for item in programme.take(5)} == {"c"}


def test_pausing_twice_changes_nothing_and_only_followed_channels_can_be_paused() -> None:
    programme = Programme(THREE, seed=1)
    programme.take(3)
    programme.pause("a")
    before = saving.save(programme)

    assert not programme.pause("a")
    assert not programme.resume("b")
    for call in (programme.pause, programme.resume):
        with pytest.raises(UnknownChannel, match="Channel 'x' is not followed; followed are a, b, c"):
            call("x")
    assert saving.save(programme) == before


@pytest.mark.req("PLAY-USE-2")
def test_new_artwork_already_chosen_stays_when_a_channel_is_paused() -> None:
    programme = Programme(THREE, Settings(lookahead=8, nae=Nae(cap=4)), seed=1)
    for id in (900, 901, 902, 903):
        programme.nae_insert(Record(id, 1))
    programme.next()
    chosen = [item.id for item in programme.lookahead if item.origin is Origin.NAE]
    assert len(chosen) > 2

    programme.pause("a")

    left = [item.id for item in programme.lookahead]
    assert left == [id for place, id in enumerate(chosen) if place == 0 or chosen[place - 1] != id]
    assert all(left.id != right.id for left, right in pairwise(programme.take(40)))


# ---- ban -------------------------------------------------------------------------------------------------------------

SHARED = (ids("a", 1, 2, 3, 50), ids("b", 50, 11, 12), ids("c", 50))


@pytest.mark.req("PLAY-USE-3")
@pytest.mark.parametrize("pick", PICKS, ids=["recency", "random"])
def test_a_banned_artwork_is_shown_from_no_channel_and_no_event(pick: Pick) -> None:
    programme = Programme(SHARED, Settings(pick=pick, lookahead=8), seed=1)
    programme.nae_insert(Record(50, 1))
    programme.show_next(Record(50, 1))
    assert 50 in shown(programme.take(12))

    programme.ban_artwork(50)

    assert programme.nae_insert(Record(50, 1)) is InsertResult.BANNED
    with pytest.raises(Banned, match="Artwork 50 is banned; lift the ban"):
        programme.show_next(Record(50, 1))
    items = programme.take(200)
    assert 50 not in shown(items)
    assert {item.channel for item in items} == {"a", "b"}
    assert 50 not in shown([programme.prev() for _ in range(40)])
    assert programme.epoch_id == 0


@pytest.mark.req("PLAY-USE-3")
def test_a_ban_survives_refreshes_resets_and_restarts_until_it_is_lifted() -> None:
    programme = Programme(SHARED, Settings(lookahead=4), seed=1)
    programme.ban_artwork(50)
    programme.refresh("c", MemoryShelf([Record(50, 9)]))
    programme.reset("asked for")
    programme.take(20)
    restored = again(programme)

    assert saving.save(restored) == saving.save(programme)
    assert 50 not in shown(restored.take(60))
    assert restored.lift(50)
    assert not restored.lift(50)
    assert {"b", "c"} <= {item.channel for item in restored.take(30) if item.id == 50}


@pytest.mark.req("PLAY-USE-3")
def test_a_ban_with_a_time_expires() -> None:
    programme = Programme(SHARED, seed=1)
    programme.ban_artwork(50, until=1000)
    programme.ban_artwork(3, until=500)
    programme.ban_artwork(1)

    assert programme.expire(499) == []
    assert programme.expire(1000) == [3, 50]
    assert list(programme.bans) == [1]


@pytest.mark.req("PLAY-NAE-6")
@pytest.mark.req("PLAY-USE-2")
def test_pausing_a_channel_does_not_repeat_the_new_artwork_on_screen() -> None:
    for seed in range(60):
        programme = Programme(THREE, Settings(lookahead=8), seed=seed)
        programme.nae_insert(Record(900, 1))
        next(item for item in iter(programme.next, None) if item.id == 900)

        programme.pause("a")

        items = [programme.now(), *programme.take(20)]
        assert all(left and right and left.id != right.id for left, right in pairwise(items)), seed


@pytest.mark.req("PLAY-USE-3")
@pytest.mark.parametrize(("id", "on"), [(1, 2), (2, 1), (3, 2), (4, 2)])
def test_a_ban_keeps_the_position_in_the_history(id: int, on: int) -> None:
    programme = Programme((ids("a", *range(1, 9)),), Settings(lookahead=2), seed=1)
    programme.take(4)
    assert shown([programme.prev(), programme.prev()]) == [3, 2]

    programme.ban_artwork(id)

    assert shown([programme.now()]) == [on]
    later = [there for there in (3, 4, 5, 6) if there != id]
    assert shown(programme.take(3)) == later[:3]


@pytest.mark.req("PLAY-USE-3")
def test_an_item_gone_back_to_can_be_banned_and_next_continues_from_there() -> None:
    programme = Programme((ids("a", *range(1, 9)),), Settings(lookahead=2), seed=1)
    programme.take(4)
    assert shown([programme.prev(), programme.prev()]) == [3, 2]

    programme.ban_artwork(2)

    assert shown([programme.now()]) == [1]
    assert shown([programme.next(), programme.next(), programme.next()]) == [3, 4, 5]


@pytest.mark.parametrize("pick", PICKS, ids=["recency", "random"])
def test_a_channel_with_only_banned_artworks_is_skipped_at_no_cost(pick: Pick) -> None:
    programme = Programme((ids("a", *range(1, 400)), ids("b", 900)), Settings(pick=pick), seed=1)
    for id in range(1, 400):
        programme.ban_artwork(id)

    assert set(shown(programme.take(50))) == {900}
    programme.ban_artwork(900)
    assert programme.take(5) == []
    programme.lift(7)
    # With random picks, the seventh is not among the newest four.
    assert set(shown(programme.take(5))) == ({7} if pick.mode is PickMode.RECENCY else set())


@pytest.mark.parametrize("id", [-1, 2**64, True, "5", None, 1.0])
def test_only_an_id_can_be_banned(id: object) -> None:
    programme = Programme(THREE, seed=1)
    with pytest.raises(InvalidParameter, match="an artwork id from 0"):
        programme.ban_artwork(id)  # type: ignore[arg-type]


def test_more_bans_than_the_limit_are_refused() -> None:
    programme = Programme(THREE, seed=1)
    for id in range(1024):
        programme.ban_artwork(10_000 + id)
    programme.ban_artwork(10_000, until=5)
    with pytest.raises(TooManyControls):
        programme.ban_artwork(1)
