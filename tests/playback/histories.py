"""Random histories run on a programme and on the oracle at once, compared after every call.

Everything is drawn from one `Random`, so that a number or hypothesis decides a whole history.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random

import pytest

from pendula.playback import saving
from pendula.playback.choosing.programme import NotShown, Programme
from pendula.playback.choosing.records import Channel, Snapshot
from pendula.playback.explain import stats as figures
from pendula.playback.model import Item, Record
from tests.playback.oracle import Artwork, Fault, Followed, Oracle, OracleSettings, Shown, Slot
from tests.playback.worlds import (
    IDS,
    NAMES,
    changed,
    packed,
    random_settings,
    record,
    settings,
    shelf,
    some_slots,
    some_work,
)

PRIORITIES = (32, 16, 8, 4, 2)
GIVEN_KEPT = 200


def public(item: Item | None) -> tuple[object, ...] | None:
    """All public members of an item."""
    if item is None:
        return None
    work = (item.id, item.ts, item.kind, item.format, item.flags, item.dwell_ms, item.storage_key, item.payload)
    return (*work, item.channel, item.channel_index, item.at, item.origin.value, item.epoch_id, item.ordinal, item.step)


def expected(shown: Shown | None) -> tuple[object, ...] | None:
    if shown is None:
        return None
    w = shown.work
    work = (w.id, w.ts, w.kind, w.format, w.flags, w.dwell_ms, w.storage_key, w.payload)
    where = (shown.channel, shown.channel_index, shown.at, shown.origin)
    return (*work, *where, shown.epoch, shown.ordinal, shown.seen.step)


class AnyNames(Programme):
    """Accepts weights of unfollowed channels: random settings have one for each possible channel."""

    def _check_names(self, draft: Snapshot) -> None:
        pass


class Comparison:
    """A programme and the oracle, with the same calls."""

    def __init__(self, channels: Sequence[tuple[str, tuple[Slot, ...]]], chosen: OracleSettings, seed: int) -> None:
        self.programme: Programme = AnyNames(
            [Channel(name, shelf(slots)) for name, slots in channels], settings(chosen), seed=seed
        )
        self.oracle = Oracle([Followed(name, slots) for name, slots in channels], chosen, seed)
        self.calls: list[str] = []
        self.given: list[tuple[Item, Shown]] = []  # results of `next`, `prev` and `take`, also those no longer held
        self.compare()

    @classmethod
    def drawn(cls, random: Random) -> "Comparison":
        names = random.sample(NAMES, random.choice((0, 1, 2, 2, 3, 5, 8)))
        chosen = random_settings(random)
        channels = [(name, _sorted(chosen, some_slots(random))) for name in names]
        return cls(channels, chosen, random.choice((0, 1, 2**64 - 1, random.randrange(2**64))))

    def same(self, call: str, found: Sequence[Item | None], wanted: Sequence[Shown | None]) -> None:
        self.calls.append(call)
        assert [public(item) for item in found] == [expected(item) for item in wanted], call
        pairs = zip(found, wanted, strict=True)
        self.given += [(item, shown) for item, shown in pairs if item is not None and shown is not None]
        del self.given[:-GIVEN_KEPT]

    def compare(self, *, whole: bool = False) -> None:
        """The deciding state; with `whole` every field of the held items."""
        programme, oracle = self.programme, self.oracle
        generator = programme.generator
        assert (programme.epoch_id, programme.behind) == (oracle.epoch, oracle.behind)
        assert generator.weights == oracle.weights
        assert generator.round.taken == oracle.steps
        assert generator.round.credits_at(oracle.steps) == oracle.credits
        assert generator.cursors == oracle.cursors
        assert (generator.last_id, generator.ordinal, generator.number) == (
            oracle.last_id,
            oracle.ordinal,
            oracle.inserted,
        )
        assert (generator.nae_draws.state, generator.pick_draws.state) == (
            oracle.nae_stream.state,
            oracle.pick_stream.state,
        )
        assert list(pool(programme)) == [(e.number, packed(e.work), e.priority) for e in oracle.pool]
        assert {name for name, out in zip(generator.names, generator.unreadable, strict=True) if out} == oracle.out
        for held, wanted in ((programme.history, oracle.history), (programme.lookahead, oracle.lookahead)):
            assert [(i.epoch_id, i.ordinal, i.id) for i in held] == [(s.epoch, s.ordinal, s.work.id) for s in wanted]
            if whole:
                assert list(map(public, held)) == list(map(expected, wanted))
        if whole:
            self.compare_stats()

    def compare_stats(self) -> None:
        stats, tally = figures(self.programme), self.oracle.tally
        names = ("base", "nae", "nae_fallback", "batches", "repeats", "resets")
        nae_names = ("inserts", "merges", "evictions", "expiries")
        generated, nae = stats["generated"], stats["nae"]
        assert isinstance(generated, dict)
        assert isinstance(nae, dict)
        origins, channels = generated["origins"], generated["channels"]
        assert isinstance(origins, dict)
        assert isinstance(channels, dict)
        found = {**stats, **nae, **origins}
        assert {name: found[name] for name in (*names, *nae_names)} == {
            name: tally.get(name, 0) for name in (*names, *nae_names)
        }
        assert {name: count for name, count in channels.items() if count} == self.oracle.per_channel

    def restore(self) -> None:
        """Continue with a programme restored from the saved state."""
        shelves = {channel.id: channel.shelf for channel in self.programme.snapshot.channels}
        self.programme = saving.load(saving.save(self.programme), lambda row: shelves[row.id])
        self.programme.__class__ = AnyNames
        self.calls.append("restore")


def pool(programme: Programme) -> Iterator[tuple[int, bytes, int]]:
    """Number, record and priority of each new artwork, in order of insertion."""
    levels = zip(PRIORITIES, programme.generator.pool, strict=True)
    entries = [(entry.number, entry.raw, priority) for priority, level in levels for entry in level]
    return iter(sorted(entries))


def play(comparison: Comparison, random: Random, calls: int) -> None:
    """Run this many random calls and compare after each."""
    for _ in range(calls):
        chosen = random.choices(tuple(CALLS), weights=tuple(CALLS.values()))[0]
        CALLS_BY_NAME[chosen](comparison, random)
        comparison.compare()
    comparison.compare(whole=True)


def _next(comparison: Comparison, random: Random) -> None:
    for _ in range(random.choice((1, 1, 2, 5))):
        comparison.same("next", [comparison.programme.next()], [comparison.oracle.next()])


def _prev(comparison: Comparison, random: Random) -> None:
    for _ in range(random.choice((1, 1, 2, 4))):
        comparison.same("prev", [comparison.programme.prev()], [comparison.oracle.prev()])


def _peek(comparison: Comparison, random: Random) -> None:
    n = random.choice((0, 1, 3, 1000))
    comparison.same(f"peek {n}", comparison.programme.peek(n), comparison.oracle.peek(n))


def _take(comparison: Comparison, random: Random) -> None:
    n = random.choice((0, 1, 2, 5, 9, 20, 70)) if random.randrange(60) else 1200
    comparison.same(f"take {n}", comparison.programme.take(n), comparison.oracle.take(n))


def _nae_insert(comparison: Comparison, random: Random) -> None:
    for _ in range(random.choice((1, 1, 2, 6))):
        work = some_work(random, (*IDS, *range(900, 906)))
        given: Artwork | None = work
        found: Record | bytes = random.choice((record(work), packed(work)))
        if random.randrange(10) == 0:
            given, found = None, random.choice((b"", bytes(80), Record(2**64, 0), Record(1, 1, payload=b"short")))
        result = comparison.programme.nae_insert(found)
        comparison.calls.append(f"nae_insert {work.id}")
        assert result.value == comparison.oracle.nae_insert(given)


def _reset(comparison: Comparison, random: Random) -> None:
    comparison.calls.append("reset")
    comparison.programme.reset("asked for")
    comparison.oracle.reset()


def _configure(comparison: Comparison, random: Random) -> None:
    # Within a transaction the draft is changed.
    present = _current_settings(comparison)
    chosen = changed(random, present)
    comparison.calls.append(f"configure {chosen}")
    wanted = settings(chosen)
    comparison.programme.configure(
        exposure=wanted.exposure,
        pick=wanted.pick,
        history=wanted.history,
        lookahead=wanted.lookahead,
        nae=wanted.nae,
        preserve_history=wanted.preserve_history,
        refresh=wanted.refresh,
        day_parts=wanted.day_parts,
    )
    comparison.oracle.configure(chosen)


def _followed(comparison: Comparison) -> list[str]:
    channels = comparison.oracle._draft[0] if comparison.oracle._draft else comparison.oracle.channels
    return [channel.name for channel in channels]


def _follow(comparison: Comparison, random: Random) -> None:
    free = [name for name in NAMES if name not in _followed(comparison)]
    if free:
        name, slots = random.choice(free), _sorted(_current_settings(comparison), some_slots(random))
        comparison.calls.append(f"follow {name} {slots}")
        comparison.programme.follow(name, shelf(slots))
        comparison.oracle.follow(name, slots)


def _unfollow(comparison: Comparison, random: Random) -> None:
    if followed := _followed(comparison):
        name = random.choice(followed)
        comparison.calls.append(f"unfollow {name}")
        comparison.programme.unfollow(name)
        comparison.oracle.unfollow(name)


def _refresh(comparison: Comparison, random: Random) -> None:
    if followed := _followed(comparison):
        name = random.choice(followed)
        present = {channel.name: channel.slots for channel in comparison.oracle.channels}
        same = name in present and random.randrange(3) == 0
        slots = present[name] if same else _sorted(_current_settings(comparison), some_slots(random))
        comparison.calls.append(f"refresh {name} {slots}")
        comparison.programme.refresh(name, shelf(slots))
        comparison.oracle.refresh(name, slots)


def _current_settings(comparison: Comparison) -> OracleSettings:
    return comparison.oracle._draft[1] if comparison.oracle._draft else comparison.oracle.settings


def _sorted(chosen: OracleSettings, slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """Without duplicate records where a lookup is possible: a shelf is sorted."""
    if chosen.refresh == "reset":
        return slots
    seen: dict[object, Slot] = {place if isinstance(slot, Fault) else slot: slot for place, slot in enumerate(slots)}
    works = sorted((s for s in seen.values() if isinstance(s, Artwork)), key=lambda work: (work.ts, work.id))
    return tuple(works.pop() if isinstance(slot, Artwork) else slot for slot in seen.values())


def _ban(comparison: Comparison, random: Random) -> None:
    held = [*zip(comparison.programme.history, comparison.oracle.history, strict=True)]
    held += [*zip(comparison.programme.lookahead, comparison.oracle.lookahead, strict=True)]
    held = [(item, shown) for item, shown in held if shown.epoch == comparison.oracle.epoch]
    # Also items that left the history: their artwork can still be in the pool or in the lookahead.
    lost = [(item, shown) for item, shown in comparison.given if shown.epoch == comparison.oracle.epoch]
    candidates = lost if lost and random.randrange(2) else held
    if candidates:
        item, shown = random.choice(candidates)
        comparison.calls.append(f"ban {item.epoch_id}/{item.ordinal}")
        if comparison.oracle.can_ban(shown):
            comparison.programme.ban(item)
            comparison.oracle.ban(shown)
        else:
            with pytest.raises(NotShown):
                comparison.programme.ban(item)


def _show_next(comparison: Comparison, random: Random) -> None:
    work = some_work(random, tuple(id for id in (*IDS, 900, 901) if id not in comparison.oracle.bans))
    comparison.calls.append(f"show_next {work.id}")
    comparison.programme.show_next(record(work))
    comparison.oracle.show_next(work)


def _rest(comparison: Comparison, random: Random) -> None:
    if followed := [channel.name for channel in comparison.oracle.channels]:
        name = random.choice(followed)
        comparison.calls.append(f"pause {name}")
        comparison.programme.pause(name)
        comparison.oracle.rest(name)


def _wake(comparison: Comparison, random: Random) -> None:
    if paused_channels := sorted(comparison.oracle.paused_channels):
        name = random.choice(paused_channels)
        comparison.calls.append(f"resume {name}")
        comparison.programme.resume(name)
        comparison.oracle.wake(name)


def _ban_artwork(comparison: Comparison, random: Random) -> None:
    id = random.choice((*IDS, 900, 901))
    comparison.calls.append(f"ban_artwork {id}")
    comparison.programme.ban_artwork(id)
    comparison.oracle.ban_id(id)


def _lift(comparison: Comparison, random: Random) -> None:
    if comparison.oracle.bans:
        id = random.choice(sorted(comparison.oracle.bans))
        comparison.calls.append(f"lift {id}")
        comparison.programme.lift(id)
        comparison.oracle.lift(id)


def _time_is(comparison: Comparison, random: Random) -> None:
    minute = random.choice((0, 359, 360, 539, 1080, 1439)) + 1440 * random.randrange(7)
    comparison.calls.append(f"time_is {minute}")
    comparison.programme.time_is(minute)
    comparison.oracle.time_is(minute)


class Aborted(Exception):
    pass


def _transaction(comparison: Comparison, random: Random) -> None:
    abort = random.randrange(4) == 0
    comparison.calls.append(f"transaction that {'fails' if abort else 'holds'}:")
    with suppress(Aborted), comparison.programme.update(), comparison.oracle.update():
        for _ in range(random.choice((0, 0, 1, 2))):
            # Bans are first: they name records of the previous contents.
            _ban(comparison, random)
        for _ in range(random.choice((0, 1, 2, 4))):
            random.choice((_configure, _follow, _unfollow, _refresh, _refresh, _configure))(comparison, random)
        if abort:
            raise Aborted
    comparison.calls.append("end")


def _restore(comparison: Comparison, random: Random) -> None:
    comparison.restore()


CALLS_BY_NAME = {
    "next": _next,
    "prev": _prev,
    "peek": _peek,
    "take": _take,
    "nae_insert": _nae_insert,
    "reset": _reset,
    "configure": _configure,
    "follow": _follow,
    "unfollow": _unfollow,
    "refresh": _refresh,
    "ban": _ban,
    "transaction": _transaction,
    "restore": _restore,
    "show_next": _show_next,
    "pause": _rest,
    "resume": _wake,
    "ban_artwork": _ban_artwork,
    "lift": _lift,
    "time_is": _time_is,
}
CALLS = {
    "next": 30,
    "prev": 12,
    "peek": 5,
    "take": 14,
    "nae_insert": 14,
    "reset": 1,
    "configure": 3,
    "follow": 2,
    "unfollow": 2,
    "refresh": 3,
    "ban": 3,
    "transaction": 3,
    "restore": 3,
    "show_next": 3,
    "pause": 3,
    "resume": 3,
    "ban_artwork": 3,
    "lift": 2,
    "time_is": 3,
}
