"""One epoch's stream of items: new artwork, else the channel whose turn it is, else its next record, never twice alike.

The same channels, settings, seed, epoch and order of insertions give the same items. Nothing here reads a clock or a
file: records come from shelves, and a shelf that fails costs its channel the epoch, never an item.
"""

from collections.abc import Iterable, Mapping, Sequence

from pendula.kernel.rng import Pcg32, stream
from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.exposure import among, integer_weights, shares
from pendula.playback.choosing.guard import unreadable
from pendula.playback.choosing.records import UNREADABLE, Holding, Row, walk
from pendula.playback.choosing.snapshot import Channel
from pendula.playback.choosing.swrr import RoundRobin
from pendula.playback.model import (
    Counts,
    Diagnostic,
    Entry,
    InsertResult,
    Item,
    Levels,
    Origin,
    PickMode,
    Settings,
    Trace,
)

NAE_STREAM = 0x4E414500
PICK_STREAM = 0x5049434B
SKIPS_MOST = 2
RESAMPLES_MOST = 5
BAD_MOST = 3
BANNED_DRAWS = 64  # by lot, before the next record that is not banned is taken
BASE, NAE, NAE_FALLBACK, _ = Origin  # in Python 3.11, to reach a member through its class costs as much as a call
CHUNK = 512  # items made in one go


class Generator:
    """The stream of one epoch. All that decides is in its attributes; `walks` only remember where shelves were read."""

    def __init__(
        self,
        channels: Sequence[Channel],
        settings: Settings,
        seed: int,
        epoch_id: int,
        *,
        unreadable: Iterable[str] = (),
        resting: Iterable[str] = (),
        bans: Mapping[int, int | None] | None = None,
    ) -> None:
        self.settings = settings
        self.bans = {} if bans is None else bans  # ids that are never shown; somebody else's, and read only
        self.epoch_id = epoch_id
        self._channels = tuple(channels)
        self.names = tuple(channel.id for channel in channels)
        self.shelves = tuple(channel.visible for channel in channels)
        self._files = [channel.shelf for channel in channels if isinstance(channel.shelf, Holding)]
        self.batches = 0  # of random picks, begun
        self.diagnostics: list[Diagnostic] = []
        out = set(unreadable)
        self.unreadable = [name in out for name in self.names]
        self.active = tuple(
            index for index, shelf in enumerate(self.shelves) if shelf.count > 0 and not self.unreadable[index]
        )
        self.barred = [False] * len(self.names)  # every record of it is banned
        still = set(resting)
        self.resting = [name in still for name in self.names]
        self.weights = self._weights(tell=True)
        self.recount()
        self.in_order = settings.pick.mode is PickMode.RECENCY
        # Out of how many of its newest records a place is drawn; 0 where none is.
        self._spans = [0 if self.in_order else min(settings.pick.r, shelf.count) for shelf in self.shelves]
        self.round = RoundRobin(self.weights)
        self._shown: dict[int, int] = {}  # the last place a channel gave
        self.walks = [walk(shelf, 0) for shelf in self.shelves]
        self.nae_draws: Pcg32 = stream(seed, epoch_id, NAE_STREAM)
        self.pick_draws: Pcg32 = stream(seed, epoch_id, PICK_STREAM)
        self.pool = new_artwork.EMPTY
        self.number = 0
        self.last_id: int | None = None
        self.ordinal = 0
        self.counts = Counts()
        self._counted = [0] * len(self.names)  # picks of the round that are in the counts

    def recount(self) -> None:
        """How many channels can give a record, and how many would if all could be read."""
        self.playing = sum(not self.resting[index] for index in self.active)
        self.readable = sum(not self.resting[index] and not self._silent(index) for index in self.active)

    def _silent(self, index: int) -> bool:
        return self.unreadable[index] or self.barred[index]

    @property
    def pool(self) -> Levels:
        return self._pool

    @pool.setter
    def pool(self, pool: Levels) -> None:
        # Every step asks for the chance, and few change it.
        self._pool, self._chance = pool, new_artwork.chance(pool)

    @property
    def cursors(self) -> list[int]:
        """The place of each channel's next record."""
        return [self._cursor(index) for index in range(len(self.names))]

    def _cursor(self, index: int) -> int:
        return (self._shown.get(index, -1) + 1) % max(1, self.shelves[index].count)

    def _weights(self, *, tell: bool = False) -> list[int]:
        parts, fell_back = shares(self.settings.exposure, [self.names[index] for index in self.active])
        if fell_back and tell:
            self.diagnostics.append(Diagnostic.of("AllManualWeightsZero"))
        if any(self.resting):
            parts = among(parts, [not self.resting[index] for index in self.active])
        weights = [0] * len(self.names)
        for index, weight in zip(self.active, integer_weights(parts), strict=True):
            weights[index] = weight
        return weights

    def insert(self, id: int, raw: bytes) -> InsertResult:
        """A new artwork; it takes part from the next generated item on."""
        entry = Entry(self.number, id, raw)
        self.pool, result, evicted = new_artwork.insert(self.pool, entry, self.settings.nae.cap)
        if result is InsertResult.INSERTED:
            self.number += 1
            self.counts.inserts += 1
        else:
            self.counts.merges += 1
        self.counts.evictions += evicted is not None
        return result

    def generate(self, steps: int, batch: int, into: list[Item] | None = None) -> tuple[list[Item], int]:
        """The items of `steps` steps, a multiple of `batch`, and how many were taken.

        Without a readable channel the batch that was begun is the last: the next one has to be asked for. Who stops
        the program in the middle of it finds in `into` every item that was made.
        """
        items: list[Item] = [] if into is None else into
        try:
            return items, self._generated(steps, batch, items)
        except BaseException:
            # What reads a shelf is over with the first exception: each channel is read again from where it stands.
            for index in range(len(self.walks)):
                self._read_again(index)
            raise
        finally:
            for shelf in self._files:
                shelf.let_go()

    def _generated(self, steps: int, batch: int, items: list[Item]) -> int:
        left = steps
        last = False
        while left:
            if not self.readable:
                if not self._chance:
                    return steps - left
                if not last:
                    last = True
                    rest = batch if left == steps else left % batch
                    steps -= left - rest
                    left = rest
                    continue
            if self.in_order and self.readable and self.readable == self.playing:
                left -= self._run(min(left, CHUNK), items)
            else:
                if not self.in_order and (steps - left) % batch == 0:
                    self._begin_batch()
                left -= 1
                self._step(self.nae_draws.next() if self._chance else None, items)
        return steps

    def _begin_batch(self) -> None:
        """Random picks go to and fro: what a batch has read of a file stays at hand until the next one."""
        self.batches += 1
        for shelf in self._files:
            shelf.let_go()
            shelf.hold()

    def _run(self, asked: int, items: list[Item]) -> int:
        """Up to `asked` steps while every channel is readable and its turn taken in order; how many.

        Ends with the first item that is not plain: a record that is damaged, or an id that was just on.
        """
        names, walks, shown, draws, bans = self.names, self.walks, self._shown, self.nae_draws, self.bans
        epoch_id, last_id, taken, before = self.epoch_id, self.last_id, self.round.taken, len(items)
        picks = iter(self.round.ahead(asked))
        # Items by place: by name each would cost a third more, and this loop makes nearly all of them.
        plain, draw, trace = True, None, None
        try:
            for ordinal in range(self.ordinal + 1, self.ordinal + 1 + asked):
                if chance := self._chance:
                    draw = draws.next()
                    trace = Trace(self._pool, draw)
                    if draw < chance:
                        entry, pool, gone = new_artwork.choose(self._pool)
                        if entry.id == last_id:
                            plain = False
                            break
                        self.pool = pool
                        self.counts.expiries += gone
                        last_id = entry.id
                        items.append(Item(last_id, entry.raw, None, None, None, NAE, epoch_id, ordinal, None, trace))
                        draw, trace = None, None
                        continue
                index = next(picks)
                at, id, raw = next(walks[index])
                if at is None or id is None or id == last_id or (bans and id in bans):
                    self._read_again(index)
                    plain = False
                    break
                items.append(Item(id, raw, names[index], index, at, BASE, epoch_id, ordinal, taken + 1, trace))
                shown[index] = at
                last_id = id
                taken += 1
        finally:
            # Also when somebody stops the program while a shelf is read: what is made counts.
            made = len(items) - before
            self.counts.nae += made - (taken - self.round.taken)
            self.last_id, self.ordinal, self.round.taken = last_id, self.ordinal + made, taken
        if plain:
            return made
        self._step(draw, items)
        return made + 1

    def _step(self, draw: int | None, items: list[Item]) -> None:
        """One step by definition, with the number drawn against the pool: new artwork first, then the round."""
        trace = None if draw is None else Trace(self._pool, draw)
        if draw is None or draw >= self._chance:
            item = self._base(BASE, trace)
        else:
            entry, self.pool, gone = new_artwork.choose(self._pool)
            self.counts.expiries += gone
            item = self._base(NAE_FALLBACK, trace) if entry.id == self.last_id else None
            if item is None:
                item = self._new_artwork(entry, trace)
            else:
                self.counts.nae_fallback += 1
        if item is not None:
            items.append(item)

    def _new_artwork(self, entry: Entry, trace: Trace | None) -> Item:
        self.counts.nae += 1
        self.ordinal += 1
        self.last_id = entry.id
        return Item(entry.id, entry.raw, None, None, None, NAE, self.epoch_id, self.ordinal, None, trace)

    def _base(self, origin: Origin, trace: Trace | None) -> Item | None:
        """The next item of the round. A step that meets an unreadable channel is spent; N more may be tried."""
        unreadable: tuple[int, ...] = ()
        while self.readable and len(unreadable) <= len(self.names):
            index = self.round.next()
            if not self._silent(index):
                item = self._pick(index, origin, self.round.taken, trace, unreadable)
                if item is not None:
                    return item
            unreadable += (index,)
            self._count(index, -1)  # the step was spent, and counts no item
        for index in self.active:
            if not self._silent(index) and not self.resting[index]:
                item = self._pick(index, origin, None, trace, unreadable)
                if item is not None:
                    self._count(index, 1)
                    return item
        return None

    def _pick(
        self, index: int, origin: Origin, step: int | None, trace: Trace | None, unreadable: tuple[int, ...]
    ) -> Item | None:
        """The channel's next record, or None when the channel proves unreadable."""
        picked: tuple[int, ...] = ()
        skipped: tuple[int, ...] = ()
        bad: tuple[int, ...] = ()
        banned = 0
        while True:
            if self.in_order:
                at, id, raw = next(self.walks[index])
            else:
                at, id, raw = self._drawn(index)
            if at is None:
                self._fail(index, bad)
                return None
            if self.in_order:
                self._shown[index] = at
            elif self._spans[index] > 1:
                picked += (at,)
            if id in self.bans:
                banned += 1
                found = self._past_bans(index, at, banned + len(bad), some=bool(skipped))
                if found is None:
                    continue
                at, id, raw = found
                if at is None or id is None:
                    return None
                break
            if id is None:
                bad += (at,)
                self.diagnostics.append(Diagnostic.of("BadRecord", channel=self.names[index], at=at))
                if len(bad) == BAD_MOST:
                    self._fail(index, bad)
                    return None
            elif id == self.last_id and len(skipped) < self._patience(index):
                skipped += (at,)
            else:
                break
        if id == self.last_id:
            self.counts.repeats += 1
        self.last_id = id
        self.ordinal += 1
        if picked or skipped or bad or unreadable:
            seen = trace or Trace(self._pool)
            trace = Trace(seen.pool, seen.nae_draw, picked, skipped, bad, unreadable)
        return Item(
            id=id,
            raw=raw,
            channel=self.names[index],
            channel_index=index,
            at=at,
            origin=origin,
            epoch_id=self.epoch_id,
            ordinal=self.ordinal,
            step=step,
            trace=trace,
        )

    def _past_bans(self, index: int, at: int, passed: int, *, some: bool) -> Row | None:
        """What to do after a banned record: None is to go on, else a row; an unreadable one where nothing is left.

        By lot another place is drawn, and after many the next one that is not banned is taken.
        """
        count = self.shelves[index].count
        if self.in_order:
            if passed < count or some:
                return None
        elif passed < BANNED_DRAWS and self._spans[index] > 1:
            return None
        else:
            for place in (*range(at + 1, self._spans[index] or count), *range(at)):
                row = self.shelves[index].record(place)
                if row[0] is not None and row[1] is not None and row[1] not in self.bans:
                    return row
        self.barred[index] = True
        self.readable -= 1
        return UNREADABLE

    def _patience(self, index: int) -> int:
        """How many records may be passed over because they were just on."""
        if self.in_order:
            return SKIPS_MOST if self.shelves[index].count > 1 else 0
        return RESAMPLES_MOST if self._spans[index] > 1 else 0

    def _drawn(self, index: int) -> Row:
        return self.shelves[index].record(self.pick_draws.bounded(self._spans[index]))

    def _fail(self, index: int, bad: Sequence[int]) -> None:
        """The channel gives nothing more in this epoch; its weight is 0 from the next on."""
        self.unreadable[index] = True
        self.readable -= 1
        self.diagnostics.append(unreadable(self.names[index], self._channels[index].shelf, bad))

    def _count(self, index: int, items: int) -> None:
        name = self.names[index]
        self.counts.channels[name] = self.counts.channels.get(name, 0) + items

    def fold(self) -> Counts:
        """The counts with every item in them: one item a step of the round, but for what was counted by itself."""
        picks = self.round.picks_at(self.round.taken)
        for index, (now, before) in enumerate(zip(picks, self._counted, strict=True)):
            if now != before:
                self._count(index, now - before)
        self._counted = picks
        return self.counts

    def rest(self, resting: Iterable[str]) -> None:
        """Let these channels rest and all others take part, each with its share of what is left."""
        still = set(resting)
        self.resting = [name in still for name in self.names]
        self.weights = self._weights()
        self.recount()

    def resume(self, round: RoundRobin, cursors: Sequence[int]) -> None:
        """Go on from there; the steps before are counted."""
        self.round, self._counted = round, round.picks_at(round.taken)
        self._shown = {index: at - 1 for index, at in enumerate(cursors)}
        for index in range(len(cursors)):
            self._read_again(index)

    def _read_again(self, index: int) -> None:
        """Begin once more at the channel's cursor."""
        self.walks[index] = walk(self.shelves[index], self._cursor(index))
