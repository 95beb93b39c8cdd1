"""The items of one epoch: new artwork, else the next record of the channel that the round robin selects.

The share of each channel comes from one of three modes, in exact fractions. The same channels, settings, seed, epoch
and order of insertions give the same items. Records come from shelves; if a shelf fails, its channel is out for the
epoch, and another channel gives the item.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from pendula.kernel.rng import Pcg32, stream
from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.records import UNREADABLE, Channel, Holding, Row, unreadable, walk
from pendula.playback.choosing.swrr import RoundRobin
from pendula.playback.model import (
    WSUM,
    Counts,
    Diagnostic,
    Entry,
    InsertResult,
    Item,
    Levels,
    Origin,
    Trace,
    diagnostic,
)
from pendula.playback.settings import Exposure, Mode, PickMode, Settings

ZERO, ONE = Fraction(0), Fraction(1)


def shares(exposure: Exposure, active: Sequence[str]) -> tuple[list[Fraction], bool]:
    """The share of each active channel, and whether equal shares replace manual weights that are all 0."""
    if not active:
        return [], False
    match exposure.mode:
        case Mode.EQE:
            return _equal(len(active)), False
        case Mode.MAE:
            weights = [max(ZERO, Fraction(exposure.manual_weights.get(name, ZERO))) for name in active]
            total = sum(weights, ZERO)
            if not total:
                return _equal(len(active)), True
            return [Fraction(weight, total) for weight in weights], False
        case Mode.PRE:
            return _proportional(exposure, active), False


def _equal(count: int) -> list[Fraction]:
    return [Fraction(1, count)] * count


def _proportional(exposure: Exposure, active: Sequence[str]) -> list[Fraction]:
    """Shares by total and recent counts, clamped to p_min..p_max and divided by their sum."""
    alpha, least, most = Fraction(exposure.alpha), Fraction(exposure.p_min), Fraction(exposure.p_max)
    total = _parts([exposure.total_count.get(name, 0) for name in active])
    recent = _parts([exposure.recent_count.get(name, 0) for name in active])
    clamped = [min(max((ONE - alpha) * t + alpha * r, least), most) for t, r in zip(total, recent, strict=True)]
    whole = sum(clamped, ZERO)
    return [Fraction(part, whole) for part in clamped]


def _parts(counts: Sequence[int]) -> list[Fraction]:
    whole = sum(counts)
    return [Fraction(count, whole) if whole else ZERO for count in counts]


def redistribute(parts: Sequence[Fraction], playing: Sequence[bool]) -> list[Fraction]:
    """The shares with those of paused channels given to the others in proportion; equally if the others have none."""
    whole = sum((part for part, plays in zip(parts, playing, strict=True) if plays), ZERO)
    alike = Fraction(1, max(1, sum(playing)))
    return [
        (Fraction(part, whole) if whole else alike) if plays else ZERO
        for part, plays in zip(parts, playing, strict=True)
    ]


def integer_weights(shares: Sequence[Fraction]) -> list[int]:
    """Largest remainder: sums to exactly 65536; ties go to the lower index; a positive share never ends with 0."""
    if not any(shares):
        return [0] * len(shares)
    exact = [share * WSUM for share in shares]
    weights = [part.numerator // part.denominator for part in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: (weights[index] - exact[index], index))
    for index in by_remainder[: WSUM - sum(weights)]:
        weights[index] += 1
    for index, share in enumerate(shares):
        if share > 0 and weights[index] == 0:
            # The largest weight gives one unit; on ties the lower index.
            richest = max(range(len(weights)), key=lambda other: (weights[other], -other))
            weights[richest] -= 1
            weights[index] = 1
    return weights


NAE_STREAM = 0x4E414500
PICK_STREAM = 0x5049434B
SKIPS_MOST = 2
RESAMPLES_MOST = 5
BAD_MOST = 3
BANNED_DRAWS = 64  # random draws before the next record that is not banned is taken
BASE, NAE, NAE_FALLBACK, _ = Origin  # locals: in Python 3.11 access through the enum class costs as much as a call
CHUNK = 512  # items generated per run


class Generator:
    """The generator of one epoch. Its attributes are its whole state; `walks` only caches positions in shelves."""

    def __init__(
        self,
        channels: Sequence[Channel],
        settings: Settings,
        seed: int,
        epoch_id: int,
        *,
        unreadable: Iterable[str] = (),
        paused_channels: Iterable[str] = (),
        bans: Mapping[int, int | None] | None = None,
    ) -> None:
        self.settings = settings
        self.bans = {} if bans is None else bans  # ids that are never shown; shared with the programme, read only
        self.epoch_id = epoch_id
        self._channels = tuple(channels)
        self.names = tuple(channel.id for channel in channels)
        self.shelves = tuple(channel.visible for channel in channels)
        self._files = [channel.shelf for channel in channels if isinstance(channel.shelf, Holding)]
        self.batches = 0  # of random picks
        self.diagnostics: list[Diagnostic] = []
        out = set(unreadable)
        self.unreadable = [name in out for name in self.names]
        self.active = tuple(
            index for index, shelf in enumerate(self.shelves) if shelf.count > 0 and not self.unreadable[index]
        )
        self.barred = [False] * len(self.names)  # channels of which every record is banned
        still = set(paused_channels)
        self.paused_channels = [name in still for name in self.names]
        self.weights = self._weights(tell=True)
        self.count_readable()
        self.in_order = settings.pick.mode is PickMode.RECENCY
        # The number of newest records to draw from; 0 for recency picks.
        self._spans = [0 if self.in_order else min(settings.pick.r, shelf.count) for shelf in self.shelves]
        self.round = RoundRobin(self.weights)
        self._shown: dict[int, int] = {}  # by channel: the place of its last item
        self.walks = [walk(shelf, 0) for shelf in self.shelves]
        self.nae_draws: Pcg32 = stream(seed, epoch_id, NAE_STREAM)
        self.pick_draws: Pcg32 = stream(seed, epoch_id, PICK_STREAM)
        self.pool = new_artwork.EMPTY
        self.number = 0
        self.last_id: int | None = None
        self.ordinal = 0
        self.counts = Counts()
        self._counted = [0] * len(self.names)  # picks that are included in the counts

    def count_readable(self) -> None:
        """Count the channels that take part, and those of them that are readable."""
        self.playing = sum(not self.paused_channels[index] for index in self.active)
        self.readable = sum(not self.paused_channels[index] and not self._cannot_play(index) for index in self.active)

    def _cannot_play(self, index: int) -> bool:
        return self.unreadable[index] or self.barred[index]

    @property
    def pool(self) -> Levels:
        return self._pool

    @pool.setter
    def pool(self, pool: Levels) -> None:
        # Cached: every step reads the chance, few change it.
        self._pool, self._chance = pool, new_artwork.chance(pool)

    @property
    def cursors(self) -> list[int]:
        """By channel: the place of its next record."""
        return [self._cursor(index) for index in range(len(self.names))]

    def _cursor(self, index: int) -> int:
        return (self._shown.get(index, -1) + 1) % max(1, self.shelves[index].count)

    def _weights(self, *, tell: bool = False) -> list[int]:
        parts, fell_back = shares(self.settings.exposure, [self.names[index] for index in self.active])
        if fell_back and tell:
            self.diagnostics.append(diagnostic("AllManualWeightsZero"))
        if any(self.paused_channels):
            parts = redistribute(parts, [not self.paused_channels[index] for index in self.active])
        weights = [0] * len(self.names)
        for index, weight in zip(self.active, integer_weights(parts), strict=True):
            weights[index] = weight
        return weights

    def insert(self, id: int, raw: bytes) -> InsertResult:
        """Insert a new artwork; it takes part from the next generated item."""
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
        """Generate `steps` items, a multiple of `batch`; returns them and the number of steps taken.

        Without a readable channel generation ends after the current batch. If an exception interrupts it, `into` has
        every item that was generated.
        """
        items: list[Item] = [] if into is None else into
        try:
            return items, self._generated(steps, batch, items)
        except BaseException:
            # An iterator is exhausted after an exception: restart each walk at its cursor.
            for index in range(len(self.walks)):
                self._restart_walk(index)
            raise
        finally:
            for shelf in self._files:
                shelf.release_blocks()

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
        """Random picks jump between blocks: keep the blocks that a batch has read until the next batch."""
        self.batches += 1
        for shelf in self._files:
            shelf.release_blocks()
            shelf.hold()

    def _run(self, most: int, items: list[Item]) -> int:
        """The fast path: up to `most` steps while every channel is readable; returns how many were taken.

        Ends with the first step that needs `_step`: a damaged or banned record, or a repeated id.
        """
        names, walks, shown, draws, bans = self.names, self.walks, self._shown, self.nae_draws, self.bans
        epoch_id, last_id, taken, before = self.epoch_id, self.last_id, self.round.taken, len(items)
        picks = iter(self.round.ahead(most))
        # Positional arguments: keywords cost a third more, and this loop makes nearly all items.
        plain, draw, trace = True, None, None
        try:
            for ordinal in range(self.ordinal + 1, self.ordinal + 1 + most):
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
                    self._restart_walk(index)
                    plain = False
                    break
                items.append(Item(id, raw, names[index], index, at, BASE, epoch_id, ordinal, taken + 1, trace))
                shown[index] = at
                last_id = id
                taken += 1
        finally:
            # Also after an interrupt while a shelf is read: generated items count.
            made = len(items) - before
            self.counts.nae += made - (taken - self.round.taken)
            self.last_id, self.ordinal, self.round.taken = last_id, self.ordinal + made, taken
        if plain:
            return made
        self._step(draw, items)
        return made + 1

    def _step(self, draw: int | None, items: list[Item]) -> None:
        """One step by definition: new artwork if the draw triggers it, else the round robin."""
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
        """The next item of the round robin. A step that selects an unreadable channel is spent; N more may follow."""
        unreadable: tuple[int, ...] = ()
        while self.readable and len(unreadable) <= len(self.names):
            index = self.round.next()
            if not self._cannot_play(index):
                item = self._pick(index, origin, self.round.taken, trace, unreadable)
                if item is not None:
                    return item
            unreadable += (index,)
            self._count(index, -1)  # the step is spent without an item
        for index in self.active:
            if not self._cannot_play(index) and not self.paused_channels[index]:
                item = self._pick(index, origin, None, trace, unreadable)
                if item is not None:
                    self._count(index, 1)
                    return item
        return None

    def _pick(
        self, index: int, origin: Origin, step: int | None, trace: Trace | None, unreadable: tuple[int, ...]
    ) -> Item | None:
        """The next record of a channel; None if the channel proves unreadable."""
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
                found = self._after_banned(index, at, banned + len(bad), some=bool(skipped))
                if found is None:
                    continue
                at, id, raw = found
                if at is None or id is None:
                    return None
                break
            if id is None:
                bad += (at,)
                self.diagnostics.append(diagnostic("BadRecord", channel=self.names[index], at=at))
                if len(bad) == BAD_MOST:
                    self._fail(index, bad)
                    return None
            elif id == self.last_id and len(skipped) < self._skips_allowed(index):
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

    def _after_banned(self, index: int, at: int, passed: int, *, some: bool) -> Row | None:
        """After a banned record: None to try again, else a row; `UNREADABLE` if every record is banned.

        Random picks draw another place; after 64 draws the next record that is not banned is taken.
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

    def _skips_allowed(self, index: int) -> int:
        """How many records may be skipped because their id repeats the last one."""
        if self.in_order:
            return SKIPS_MOST if self.shelves[index].count > 1 else 0
        return RESAMPLES_MOST if self._spans[index] > 1 else 0

    def _drawn(self, index: int) -> Row:
        return self.shelves[index].record(self.pick_draws.bounded(self._spans[index]))

    def _fail(self, index: int, bad: Sequence[int]) -> None:
        """Exclude the channel for this epoch; from the next one its weight is 0."""
        self.unreadable[index] = True
        self.readable -= 1
        self.diagnostics.append(unreadable(self.names[index], self._channels[index].shelf, bad))

    def _count(self, index: int, items: int) -> None:
        name = self.names[index]
        self.counts.channels[name] = self.counts.channels.get(name, 0) + items

    def fold(self) -> Counts:
        """Add the picks since the last call to the counts: one item per step."""
        picks = self.round.picks_at(self.round.taken)
        for index, (now, before) in enumerate(zip(picks, self._counted, strict=True)):
            if now != before:
                self._count(index, now - before)
        self._counted = picks
        return self.counts

    def pause(self, paused_channels: Iterable[str]) -> None:
        """Pause exactly these channels; the others share their part."""
        still = set(paused_channels)
        self.paused_channels = [name in still for name in self.names]
        self.weights = self._weights()
        self.count_readable()

    def resume(self, round: RoundRobin, cursors: Sequence[int]) -> None:
        """Continue with this round robin and these cursors; its steps so far are counted."""
        self.round, self._counted = round, round.picks_at(round.taken)
        self._shown = {index: at - 1 for index, at in enumerate(cursors)}
        for index in range(len(cursors)):
            self._restart_walk(index)

    def _restart_walk(self, index: int) -> None:
        """Read the channel again from its cursor."""
        self.walks[index] = walk(self.shelves[index], self._cursor(index))
