"""Every material change is one reset, a transaction is one, and a call without a change is none."""

from collections.abc import Callable
from decimal import Decimal
from random import Random

import msgspec
import pytest

from pendula.playback import saving
from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.programme import NotShown, Programme
from pendula.playback.choosing.records import Channel, MemoryShelf
from pendula.playback.engine import Player
from pendula.playback.explain import stats
from pendula.playback.messages import Configure
from pendula.playback.model import InvalidParameter, Record, TooManyChannels, UnknownChannel
from pendula.playback.saving import broken_invariants
from pendula.playback.settings import Exposure, Mode, Nae, Pick, PickMode, Refresh, Settings
from tests.playback.oracle import Artwork, Fault, Slot
from tests.playback.shelves import ids, listed, manual, shown
from tests.playback.worlds import RoughShelf

Change = Callable[[Programme], None]
PAIR = (ids("a", *range(1, 9)), ids("b", 11, 12, 13))


def exposed(**changes: object) -> Change:
    return lambda programme: programme.configure(
        exposure=msgspec.structs.replace(programme.snapshot.settings.exposure, **changes)
    )


def configured(**changes: object) -> Change:
    return lambda programme: programme.configure(**changes)


SETTINGS: dict[str, Change] = {
    "mode": exposed(mode=Mode.MAE),
    "manual_weight": exposed(manual_weights={"a": Decimal(3), "b": Decimal(1)}),
    "total_count": exposed(total_count={"a": 9}),
    "recent_count": exposed(recent_count={"b": 9}),
    "alpha": exposed(alpha=Decimal("0.5")),
    "p_min": exposed(p_min=Decimal("0.01")),
    "p_max": exposed(p_max=Decimal("0.5")),
    "pick mode": configured(pick=Pick(PickMode.RANDOM)),
    "r": configured(pick=Pick(r=7)),
    "history": configured(history=31),
    "lookahead": configured(lookahead=31),
    "nae off": configured(nae=Nae(enabled=False)),
    "cap": configured(nae=Nae(cap=31)),
    "preserve_history": configured(preserve_history=True),
}
CONTENTS: dict[str, Change] = {
    "more records": lambda programme: programme.refresh("a", MemoryShelf(listed(range(1, 10)))),
    "as many other records": lambda programme: programme.refresh("a", MemoryShelf(listed(range(21, 29)))),
    "another payload": lambda programme: programme.refresh(
        "a", MemoryShelf([*listed(range(1, 8)), Record(8, 999_993, payload=b"\1" * 32)])
    ),
    "no records": lambda programme: programme.refresh("a", MemoryShelf([])),
}
ONCE: dict[str, Change] = {
    "follow": lambda programme: programme.follow("c", MemoryShelf([])),
    "unfollow": lambda programme: programme.unfollow("a"),
    "ban": lambda programme: programme.ban(programme.history[-1]),
}


def running() -> Programme:
    programme = Programme(PAIR, seed=1)
    programme.nae_insert(Record(900, 0))
    programme.take(40)
    return programme


def all_of(*tables: dict[str, Change]) -> list[object]:
    return [pytest.param(change, id=name) for table in tables for name, change in table.items()]


@pytest.mark.req("PLAY-SNAP-1")
@pytest.mark.req("PLAY-SNAP-2")
@pytest.mark.req("PLAY-API-3")
@pytest.mark.parametrize("change", all_of(SETTINGS, CONTENTS, ONCE))
def test_a_material_change_is_exactly_one_reset_which_clears_everything(change: Change) -> None:
    programme = running()

    change(programme)

    generator = programme.generator
    assert (programme.epoch_id, programme.resets) == (1, 1)
    assert not programme.lookahead
    assert generator.pool == new_artwork.EMPTY
    assert generator.last_id == programme.returned
    assert not any(generator.round.credits_at(generator.round.taken))
    assert not any(generator.cursors)
    assert bool(programme.history) == programme.snapshot.settings.preserve_history
    fresh = Programme(programme.snapshot.channels, programme.snapshot.settings, seed=1)
    fresh.reset("the same epoch")
    assert generator.nae_draws.state == fresh.generator.nae_draws.state
    assert generator.pick_draws.state == fresh.generator.pick_draws.state


@pytest.mark.req("PLAY-SNAP-2")
@pytest.mark.parametrize("change", all_of(SETTINGS, CONTENTS))
def test_setting_the_present_value_is_no_change(change: Change) -> None:
    programme = running()
    change(programme)
    programme.take(5)
    before = saving.save(programme)

    change(programme)

    assert saving.save(programme) == before


@pytest.mark.req("PLAY-SNAP-2")
def test_a_number_in_another_spelling_is_no_change() -> None:
    programme = Programme(PAIR, Settings(exposure=manual(a="0.5", b="30")), seed=1)

    programme.configure(exposure=manual(a="0.50", b="3E1"))
    programme.configure()

    assert programme.epoch_id == 0


@pytest.mark.req("PLAY-SNAP-4")
def test_five_follows_and_another_mode_are_one_reset() -> None:
    programme = running()

    with programme.update():
        for name in "vwxyz":
            programme.follow(name, MemoryShelf(listed(range(5))))
        programme.configure(exposure=Exposure(Mode.PRE))
        assert programme.epoch_id == 0

    assert (programme.epoch_id, programme.resets) == (1, 1)
    assert programme.generator.names == ("a", "b", *"vwxyz")


@pytest.mark.req("PLAY-SNAP-4")
def test_a_nested_transaction_belongs_to_the_outer_one() -> None:
    programme = running()

    with programme.update():
        with programme.update():
            programme.unfollow("a")
        programme.reset("asked for")
        programme.configure(history=3)

    assert programme.epoch_id == 1


class Stopped(Exception):
    pass


@pytest.mark.req("PLAY-SNAP-4")
def test_a_failed_transaction_changes_nothing() -> None:
    programme = running()
    before = saving.save(programme)

    with pytest.raises(Stopped), programme.update():
        programme.unfollow("a")
        programme.follow("c", MemoryShelf([]))
        programme.reset("asked for")
        programme.configure(lookahead=2)
        raise Stopped

    assert saving.save(programme) == before
    programme.configure(history=32)
    assert saving.save(programme) == before


@pytest.mark.req("PLAY-SNAP-4")
def test_changes_that_cancel_out_are_no_reset() -> None:
    programme = running()

    with programme.update():
        programme.follow("c", MemoryShelf([]))
        programme.configure(history=3)
        programme.unfollow("c")
        programme.configure(history=32)

    assert programme.epoch_id == 0


@pytest.mark.req("PLAY-SNAP-4")
def test_a_refused_change_is_excluded_from_its_transaction() -> None:
    programme = running()

    with programme.update():
        with pytest.raises(InvalidParameter):
            programme.configure(history=3, lookahead=0)
        with pytest.raises(UnknownChannel):
            programme.unfollow("nobody")
        programme.configure(nae=Nae(cap=5))

    assert programme.snapshot.settings == Settings(nae=Nae(cap=5))
    assert programme.epoch_id == 1


def test_several_bans_in_one_transaction_ban_the_shown_records() -> None:
    programme = Programme((ids("a", *range(1, 9)),), seed=1)
    first, second, _, fourth = programme.take(4)

    with programme.update():
        for item in (second, first, fourth):
            programme.ban(item)

    assert programme.epoch_id == 1
    assert shown(programme.take(6)) == [3, 5, 6, 7, 8, 3]


def test_a_ban_lasts_until_the_contents_of_the_channel_change() -> None:
    programme = Programme((ids("a", 1, 2, 3),), seed=1)
    [first] = programme.take(1)
    programme.ban(first)
    [second] = programme.take(1)
    programme.ban(second)
    assert shown(programme.take(3)) == [3, 3, 3]
    with pytest.raises(NotShown):
        programme.ban(first)

    programme.refresh("a", MemoryShelf(listed([1, 2, 4])))

    assert shown(programme.take(3)) == [1, 2, 4]
    assert programme.epoch_id == 3


def test_a_banned_new_artwork_leaves_the_pool_without_a_reset() -> None:
    programme = Programme(settings=Settings(lookahead=1), seed=1)
    programme.nae_insert(Record(900, 0))
    programme.nae_insert(Record(901, 0))
    [item] = programme.take(1)

    programme.ban(item)

    assert [entry.id for level in programme.generator.pool for entry in level] == [901]
    assert programme.epoch_id == 0


@pytest.mark.req("PLAY-SNAP-5")
def test_a_kept_history_extends_into_earlier_epochs() -> None:
    programme = Programme(PAIR, Settings(history=6, lookahead=2, preserve_history=True), seed=1)
    programme.take(3)
    programme.reset("one")
    programme.take(2)

    assert [(item.epoch_id, item.ordinal) for item in programme.history] == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]
    back = [programme.prev() for _ in range(5)]
    assert [item and item.epoch_id for item in back] == [1, 0, 0, 0, None]
    programme.configure(history=2)
    assert [(item.epoch_id, item.ordinal) for item in programme.history] == [(1, 1), (1, 2)]
    assert programme.now() == programme.history[0]
    programme.configure(preserve_history=False)
    assert not programme.history
    assert programme.prev() is None


@pytest.mark.req("PLAY-SNAP-6")
@pytest.mark.req("PLAY-CACHE-9")
def test_an_unreadable_channel_is_excluded_until_it_is_refreshed() -> None:
    slots: list[Slot] = [Artwork(21, 0), Fault.DAMAGED, Fault.DAMAGED, Fault.DAMAGED]
    programme = Programme((ids("a", 1, 2, 3), Channel("c", RoughShelf(slots))), Settings(lookahead=1), seed=1)
    assert shown(programme.take(6)) == [1, 21, 2, 3, 1, 2]
    assert programme.epoch_id == 0
    assert [diagnostic.code for diagnostic in programme.diagnostics] == ["BadRecord"] * 3 + ["UnreadableChannel"]

    programme.configure(history=3)
    assert programme.generator.weights == [65536, 0]
    programme.refresh("c", RoughShelf(slots))

    assert programme.epoch_id == 2
    assert programme.generator.weights == [32768, 32768]


@pytest.mark.req("PLAY-CACHE-1")
def test_the_65th_channel_is_refused_and_the_64_stay() -> None:
    programme = Programme([ids(str(number), number) for number in range(64)], seed=1)
    programme.take(3)
    before = saving.save(programme)

    with pytest.raises(TooManyChannels) as refused:
        programme.follow("one more", MemoryShelf([]))

    assert refused.value.code == "too_many_channels"
    assert (refused.value.value, refused.value.allowed) == (65, 64)
    assert saving.save(programme) == before
    with pytest.raises(TooManyChannels):
        Programme([ids(str(number), number) for number in range(65)], seed=1)


@pytest.mark.req("PLAY-SNAP-4")
def test_a_ban_beside_new_contents_of_its_channel_hides_none_of_them() -> None:
    programme = Programme((ids("a", 1, 2, 3),), seed=1)
    third = programme.take(3)[2]

    with programme.update():
        programme.refresh("a", MemoryShelf(listed((5, 6))))
        programme.ban(third)

    assert shown(programme.take(4)) == [5, 6, 5, 6]


def test_an_item_of_another_scheduler_cannot_be_banned() -> None:
    mine, other = Programme((ids("a", 1),), seed=1), Programme((ids("a", *range(1, 9)),), seed=1)

    with pytest.raises(NotShown):
        mine.ban(other.take(4)[3])

    assert shown(mine.take(2)) == [1, 1]


@pytest.mark.req("PLAY-CACHE-11")
def test_a_banned_new_artwork_is_not_shown_again_and_the_others_stay() -> None:
    programme = Programme((ids("a", *range(1, 40)),), Settings(lookahead=16), seed=1)
    for id in (900, 901):
        programme.nae_insert(Record(id, 1))
    first = programme.next()
    assert first is not None
    assert first.id == 900
    assert 900 in shown(programme.peek(40))

    programme.ban(first)

    assert programme.epoch_id == 0
    coming = shown(programme.take(200))
    assert 900 not in coming
    assert 901 in coming
    assert not list(broken_invariants(programme))
    again = saving.load(saving.save(programme), saving.shelves_by_id(programme.snapshot.channels))
    assert shown(again.take(50)) == shown(programme.take(50))


@pytest.mark.req("PLAY-SNAP-4")
def test_a_failed_nested_transaction_is_undone_alone() -> None:
    programme = Programme((ids("a", 1, 2, 3),), seed=1)
    programme.nae_insert(Record(900, 1))
    new = next(item for item in programme.take(40) if item.channel is None)
    programme.nae_insert(Record(900, 1))
    pool = programme.generator.pool

    with programme.update():
        programme.configure(history=5)
        with pytest.raises(ZeroDivisionError), programme.update():
            programme.follow("b", MemoryShelf(listed((7,))))
            raise ZeroDivisionError
    with pytest.raises(NotShown):
        programme.ban(new)  # of the previous epoch

    assert [channel.id for channel in programme.snapshot.channels] == ["a"]
    assert (programme.snapshot.settings.history, programme.epoch_id) == (5, 1)
    assert pool != programme.generator.pool


@pytest.mark.req("PLAY-SNAP-4")
def test_an_aborted_ban_of_a_new_artwork_leaves_the_pool() -> None:
    programme = Programme((ids("a", 1, 2, 3),), seed=1)
    for id in (900, 901):
        programme.nae_insert(Record(id, 1))
    new = programme.next()
    assert new is not None
    before = saving.save(programme)

    with pytest.raises(ZeroDivisionError), programme.update():
        programme.ban(new)
        raise ZeroDivisionError

    assert saving.save(programme) == before


@pytest.mark.req("PLAY-SNAP-2")
@pytest.mark.parametrize("exposure", [Exposure(total_count={"a": 0}), Exposure(recent_count={"a": 0})])
def test_an_explicit_default_exposure_is_no_change(exposure: Exposure) -> None:
    programme = Programme((ids("a", 1),), seed=1)

    programme.configure(exposure=exposure)

    assert programme.epoch_id == 0


@pytest.mark.req("PLAY-SNAP-5")
def test_a_banned_item_leaves_the_history() -> None:
    programme = Programme((ids("a", 1, 2, 3),), Settings(preserve_history=True), seed=1)
    items = programme.take(3)

    programme.ban(items[2])

    assert shown(programme.history) == [1, 2]


def test_unfollowed_channels_are_counted_together() -> None:
    programme = Programme((ids("a", 1, 2),), Settings(lookahead=1), seed=1)
    for number in range(20):
        programme.follow(f"b{number}", MemoryShelf(listed((7, 8))))
        programme.take(4)
        programme.unfollow(f"b{number}")
    counts = stats(programme)["generated"]

    assert isinstance(counts, dict)
    assert list(counts["channels"]) == ["a"]
    assert counts["origins"]["base"] == 80


def test_banning_an_item_of_another_scheduler_is_refused_with_the_reason() -> None:
    mine = Programme((ids("a", 1, 2, 3), ids("b", 11, 12)), Settings(lookahead=2, history=1), seed=1)
    other = Programme((ids("a", 7, 8, 9), ids("c", 31)), Settings(lookahead=2), seed=2)
    mine.take(4)
    [first, second] = other.take(2)

    with pytest.raises(NotShown, match="not of this scheduler: channel 'a' has another record at place 0"):
        mine.ban(first)
    with pytest.raises(NotShown, match="channel 'c' is not followed, followed are a, b"):
        mine.ban(second)
    other.nae_insert(Record(900, 1))
    [new] = [item for item in other.take(8) if item.channel is None][:1]
    with pytest.raises(NotShown, match="New artwork 900 is neither held nor waiting"):
        mine.ban(new)
    with pytest.raises(NotShown, match="Only what `next` gave can be banned, not 900"):
        mine.ban(900)  # type: ignore[arg-type]
    assert mine.epoch_id == 0


def test_an_item_that_left_the_history_can_still_be_banned() -> None:
    mine = Programme((ids("a", 1, 2, 3),), Settings(lookahead=1, history=1), seed=1)
    [first, *_] = mine.take(3)

    mine.ban(first)

    assert {item.id for item in mine.take(9)} == {2, 3}


def test_new_artwork_with_its_last_showing_in_the_lookahead_can_be_banned() -> None:
    programme = Programme((ids("a", *range(1, 9)),), Settings(lookahead=40, history=1), seed=1)
    programme.nae_insert(Record(900, 1))
    # Its five selections are made, so it has left the pool; the first was shown, and has left the history.
    shown_before = next(item for item in iter(programme.next, None) if item.id == 900)
    programme.next()
    assert programme.generator.pool == new_artwork.EMPTY
    assert 900 in shown(list(programme.lookahead))

    programme.ban(shown_before)

    assert 900 not in shown(list(programme.lookahead))
    with pytest.raises(NotShown, match="New artwork 900 is neither held nor waiting"):
        programme.ban(shown_before)


def test_an_item_shown_before_a_restart_can_be_banned_after_it() -> None:
    channels = [ids("a", *range(1, 9))]
    before = Programme(channels, Settings(lookahead=1, history=200), seed=1)
    before.nae_insert(Record(900, 1))
    *_, last = [item for item in before.take(150) if item.id == 900]
    assert before.generator.pool == new_artwork.EMPTY

    after = saving.load(saving.save(before), lambda _: channels[0].shelf)
    after.ban(last)

    assert after.epoch_id == 0


@pytest.mark.parametrize("field", ["manual_weights", "total_count", "recent_count"])
def test_a_weight_of_an_unknown_channel_is_refused_with_the_nearest_name(field: str) -> None:
    wrong = msgspec.convert({"mode": "MaE", field: {"see": 3}}, Exposure)

    with pytest.raises(UnknownChannel, match=f"{field} names 'see'.*did you mean 'sea'"):
        Programme((ids("sea", 1), ids("hills", 2)), Settings(wrong), seed=1)
    programme = Programme((ids("sea", 1), ids("hills", 2)), seed=1)
    with pytest.raises(UnknownChannel):
        programme.configure(exposure=wrong)
    assert (programme.epoch_id, programme.snapshot.settings) == (0, Settings())


def test_a_weight_can_precede_its_channel_in_one_change_and_outlasts_it() -> None:
    programme = Programme((ids("sea", 1),), seed=1)
    with programme.update():
        programme.configure(exposure=manual(sea=1, hills=3))
        programme.follow("hills", MemoryShelf([Record(2, 2)]))
    programme.unfollow("hills")
    programme.configure(lookahead=3)

    programme.follow("hills", MemoryShelf([Record(2, 2)]))

    assert programme.generator.weights == [16384, 49152]


def test_a_player_refuses_a_weight_of_an_unknown_channel() -> None:
    player = Player.create({"seed": 1, "channels": [{"id": "sea", "count": 1}]})

    refusal = player.apply(Configure({"exposure": {"mode": "MaE", "manual_weights": {"see": 3}}})).refusal

    assert refusal is not None
    assert refusal.code == "unknown_channel"


@pytest.mark.req("PLAY-API-3")
@pytest.mark.parametrize("refresh", [Refresh.RESET, Refresh.KEEP])
def test_the_last_item_is_not_repeated_after_a_reset(refresh: Refresh) -> None:
    for seed in range(300):
        luck = Random(seed)
        channels = (ids("a", *range(1, luck.randint(3, 9))), ids("b", *range(11, luck.randint(13, 15))))
        mode = luck.choice((Pick(), Pick(PickMode.RANDOM, 4)))
        programme = Programme(channels, Settings(pick=mode, lookahead=luck.randint(1, 8), refresh=refresh), seed=seed)
        shown_last = None
        for _ in range(luck.randint(1, 12)):
            shown_last = programme.next()

        programme.reset("again")
        programme.reset("and again")
        following = programme.next()

        assert shown_last is not None
        assert following is not None
        repeats_allowed = mode.mode is PickMode.RANDOM and programme.generator.counts.repeats
        assert following.id != shown_last.id or repeats_allowed, seed
        assert following.epoch_id == 2


@pytest.mark.req("PLAY-API-3", "PLAY-API-7")
def test_a_restored_programme_knows_the_last_item_before_a_reset() -> None:
    channel = ids("a", 1, 2, 3)
    programme = Programme((channel,), seed=1)
    programme.next()
    programme.reset("again")

    restored = saving.load(saving.save(programme), lambda _: channel.shelf)

    assert (restored.returned, restored.generator.last_id) == (1, 1)
    following = restored.next()
    assert following is not None
    assert following.id == 2
