"""Random histories run on a programme and on the oracle at once, compared after every call.

Everything is drawn from one `Random`, so that a number or hypothesis decides a whole history.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random

import pytest

from pendula.playback import saving
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.snapshot import Channel, Snapshot
from pendula.playback.choosing.viewer_controls import NotShown
from pendula.playback.model import Item, Record
from pendula.playback.statistics import stats as figures
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


class Duet:
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
    def drawn(cls, random: Random) -> "Duet":
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


def play(duet: Duet, random: Random, calls: int) -> None:
    """Run this many random calls and compare after each."""
    for _ in range(calls):
        chosen = random.choices(tuple(CALLS), weights=tuple(CALLS.values()))[0]
        CALLS_BY_NAME[chosen](duet, random)
        duet.compare()
    duet.compare(whole=True)


def _next(duet: Duet, random: Random) -> None:
    for _ in range(random.choice((1, 1, 2, 5))):
        duet.same("next", [duet.programme.next()], [duet.oracle.next()])


def _prev(duet: Duet, random: Random) -> None:
    for _ in range(random.choice((1, 1, 2, 4))):
        duet.same("prev", [duet.programme.prev()], [duet.oracle.prev()])


def _peek(duet: Duet, random: Random) -> None:
    n = random.choice((0, 1, 3, 1000))
    duet.same(f"peek {n}", duet.programme.peek(n), duet.oracle.peek(n))


def _take(duet: Duet, random: Random) -> None:
    n = random.choice((0, 1, 2, 5, 9, 20, 70)) if random.randrange(60) else 1200
    duet.same(f"take {n}", duet.programme.take(n), duet.oracle.take(n))


def _nae_insert(duet: Duet, random: Random) -> None:
    for _ in range(random.choice((1, 1, 2, 6))):
        work = some_work(random, (*IDS, *range(900, 906)))
        given: Artwork | None = work
        found: Record | bytes = random.choice((record(work), packed(work)))
        if random.randrange(10) == 0:
            given, found = None, random.choice((b"", bytes(80), Record(2**64, 0), Record(1, 1, payload=b"short")))
        result = duet.programme.nae_insert(found)
        duet.calls.append(f"nae_insert {work.id}")
        assert result.value == duet.oracle.nae_insert(given)


def _reset(duet: Duet, random: Random) -> None:
    duet.calls.append("reset")
    duet.programme.reset("asked for")
    duet.oracle.reset()


def _configure(duet: Duet, random: Random) -> None:
    # Within a transaction the draft is changed.
    present = _current_settings(duet)
    chosen = changed(random, present)
    duet.calls.append(f"configure {chosen}")
    wanted = settings(chosen)
    duet.programme.configure(
        exposure=wanted.exposure,
        pick=wanted.pick,
        history=wanted.history,
        lookahead=wanted.lookahead,
        nae=wanted.nae,
        preserve_history=wanted.preserve_history,
        refresh=wanted.refresh,
        day_parts=wanted.day_parts,
    )
    duet.oracle.configure(chosen)


def _followed(duet: Duet) -> list[str]:
    channels = duet.oracle._draft[0] if duet.oracle._draft else duet.oracle.channels
    return [channel.name for channel in channels]


def _follow(duet: Duet, random: Random) -> None:
    free = [name for name in NAMES if name not in _followed(duet)]
    if free:
        name, slots = random.choice(free), _sorted(_current_settings(duet), some_slots(random))
        duet.calls.append(f"follow {name} {slots}")
        duet.programme.follow(name, shelf(slots))
        duet.oracle.follow(name, slots)


def _unfollow(duet: Duet, random: Random) -> None:
    if followed := _followed(duet):
        name = random.choice(followed)
        duet.calls.append(f"unfollow {name}")
        duet.programme.unfollow(name)
        duet.oracle.unfollow(name)


def _refresh(duet: Duet, random: Random) -> None:
    if followed := _followed(duet):
        name = random.choice(followed)
        present = {channel.name: channel.slots for channel in duet.oracle.channels}
        same = name in present and random.randrange(3) == 0
        slots = present[name] if same else _sorted(_current_settings(duet), some_slots(random))
        duet.calls.append(f"refresh {name} {slots}")
        duet.programme.refresh(name, shelf(slots))
        duet.oracle.refresh(name, slots)


def _current_settings(duet: Duet) -> OracleSettings:
    return duet.oracle._draft[1] if duet.oracle._draft else duet.oracle.settings


def _sorted(chosen: OracleSettings, slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """Without duplicate records where a lookup is possible: a shelf is sorted."""
    if chosen.refresh == "reset":
        return slots
    seen: dict[object, Slot] = {place if isinstance(slot, Fault) else slot: slot for place, slot in enumerate(slots)}
    works = sorted((s for s in seen.values() if isinstance(s, Artwork)), key=lambda work: (work.ts, work.id))
    return tuple(works.pop() if isinstance(slot, Artwork) else slot for slot in seen.values())


def _ban(duet: Duet, random: Random) -> None:
    held = [*zip(duet.programme.history, duet.oracle.history, strict=True)]
    held += [*zip(duet.programme.lookahead, duet.oracle.lookahead, strict=True)]
    held = [(item, shown) for item, shown in held if shown.epoch == duet.oracle.epoch]
    # Also items that left the history: their artwork can still be in the pool or in the lookahead.
    lost = [(item, shown) for item, shown in duet.given if shown.epoch == duet.oracle.epoch]
    candidates = lost if lost and random.randrange(2) else held
    if candidates:
        item, shown = random.choice(candidates)
        duet.calls.append(f"ban {item.epoch_id}/{item.ordinal}")
        if duet.oracle.can_ban(shown):
            duet.programme.ban(item)
            duet.oracle.ban(shown)
        else:
            with pytest.raises(NotShown):
                duet.programme.ban(item)


def _show_next(duet: Duet, random: Random) -> None:
    work = some_work(random, tuple(id for id in (*IDS, 900, 901) if id not in duet.oracle.bans))
    duet.calls.append(f"show_next {work.id}")
    duet.programme.show_next(record(work))
    duet.oracle.show_next(work)


def _rest(duet: Duet, random: Random) -> None:
    if followed := [channel.name for channel in duet.oracle.channels]:
        name = random.choice(followed)
        duet.calls.append(f"pause {name}")
        duet.programme.pause(name)
        duet.oracle.rest(name)


def _wake(duet: Duet, random: Random) -> None:
    if paused_channels := sorted(duet.oracle.paused_channels):
        name = random.choice(paused_channels)
        duet.calls.append(f"resume {name}")
        duet.programme.resume(name)
        duet.oracle.wake(name)


def _ban_artwork(duet: Duet, random: Random) -> None:
    id = random.choice((*IDS, 900, 901))
    duet.calls.append(f"ban_artwork {id}")
    duet.programme.ban_artwork(id)
    duet.oracle.ban_id(id)


def _lift(duet: Duet, random: Random) -> None:
    if duet.oracle.bans:
        id = random.choice(sorted(duet.oracle.bans))
        duet.calls.append(f"lift {id}")
        duet.programme.lift(id)
        duet.oracle.lift(id)


def _time_is(duet: Duet, random: Random) -> None:
    minute = random.choice((0, 359, 360, 539, 1080, 1439)) + 1440 * random.randrange(7)
    duet.calls.append(f"time_is {minute}")
    duet.programme.time_is(minute)
    duet.oracle.time_is(minute)


class Aborted(Exception):
    pass


def _transaction(duet: Duet, random: Random) -> None:
    abort = random.randrange(4) == 0
    duet.calls.append(f"transaction that {'fails' if abort else 'holds'}:")
    with suppress(Aborted), duet.programme.update(), duet.oracle.update():
        for _ in range(random.choice((0, 0, 1, 2))):
            # Bans are first: they name records of the previous contents.
            _ban(duet, random)
        for _ in range(random.choice((0, 1, 2, 4))):
            random.choice((_configure, _follow, _unfollow, _refresh, _refresh, _configure))(duet, random)
        if abort:
            raise Aborted
    duet.calls.append("end")


def _restore(duet: Duet, random: Random) -> None:
    duet.restore()


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
