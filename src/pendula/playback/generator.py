"""One epoch's stream of items: new artwork, else the channel whose turn it is, else its next record, never twice alike.

The same channels, settings, seed, epoch and order of insertions give the same items. Nothing here reads a clock or a
file: records come from shelves, and a shelf that fails costs its channel the epoch, never an item.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, repeat
from operator import eq

from msgspec import Struct

from pendula.kernel.rng import Pcg32, stream
from pendula.playback import nae
from pendula.playback.exposure import integer_weights, shares
from pendula.playback.model import Diagnostic, Entry, InsertResult, Item, Levels, Origin, PickMode, Settings, Trace
from pendula.playback.records import MaskedShelf, Row, Shelf
from pendula.playback.swrr import RoundRobin

NAE_STREAM = 0x4E414500
PICK_STREAM = 0x5049434B
SKIPS_MOST = 2
RESAMPLES_MOST = 5
BAD_MOST = 3
CHUNK = 512  # items made in one go where nothing can come between
CAREFUL = 8  # items made one by one after something came between


class Channel(Struct, frozen=True):
    """A followed channel: its id, its records, and the places of those that are not to be shown."""

    id: str
    shelf: Shelf
    gone: tuple[int, ...] = ()

    @property
    def visible(self) -> Shelf:
        return MaskedShelf(self.shelf, self.gone) if self.gone else self.shelf

    def same(self, other: "Channel") -> bool:
        left, right = self.shelf, other.shelf
        return (self.id, left.count, left.generation, self.gone) == (
            other.id,
            right.count,
            right.generation,
            other.gone,
        )


class Counts(Struct):
    """What happened since the beginning, over all epochs."""

    channels: dict[str, int] = {}
    nae: int = 0
    nae_fallback: int = 0
    repeats: int = 0
    inserts: int = 0
    merges: int = 0
    evictions: int = 0
    expiries: int = 0


class Generator:
    """The stream of one epoch. All that decides is in its attributes; `walks` only remember where shelves were read."""

    def __init__(
        self, channels: Sequence[Channel], settings: Settings, seed: int, epoch_id: int, unreadable: Iterable[str] = ()
    ) -> None:
        self.settings = settings
        self.epoch_id = epoch_id
        self.names = tuple(channel.id for channel in channels)
        self.shelves = tuple(channel.visible for channel in channels)
        self.diagnostics: list[Diagnostic] = []
        out = set(unreadable)
        self.unreadable = [name in out for name in self.names]
        self.active = tuple(
            index for index, shelf in enumerate(self.shelves) if shelf.count > 0 and not self.unreadable[index]
        )
        self.readable = len(self.active)
        self.weights = self._weights()
        self.round = RoundRobin(self.weights)
        self.cursors = [0] * len(self.names)
        self.walks = [walk(shelf, 0) for shelf in self.shelves]
        self.nae_draws: Pcg32 = stream(seed, epoch_id, NAE_STREAM)
        self.pick_draws: Pcg32 = stream(seed, epoch_id, PICK_STREAM)
        self.pool: Levels = nae.EMPTY
        self.number = 0
        self.last_id: int | None = None
        self.ordinal = 0
        self.counts = Counts()
        self._picked = bytearray()  # channels of items not counted yet

    def _weights(self) -> list[int]:
        parts, fell_back = shares(self.settings.exposure, [self.names[index] for index in self.active])
        if fell_back:
            self._tell("AllManualWeightsZero", "All manual weights are 0, so every channel gets the same.")
        weights = [0] * len(self.names)
        for index, weight in zip(self.active, integer_weights(parts), strict=True):
            weights[index] = weight
        return weights

    def insert(self, id: int, raw: bytes) -> InsertResult:
        """A new artwork; it takes part from the next generated item on."""
        entry = Entry(self.number, id, raw)
        self.pool, result, evicted = nae.insert(self.pool, entry, self.settings.nae.cap)
        if result is InsertResult.INSERTED:
            self.number += 1
            self.counts.inserts += 1
        else:
            self.counts.merges += 1
        self.counts.evictions += evicted is not None
        return result

    def generate(self, steps: int, batch: int) -> tuple[list[Item], int]:
        """The items of `steps` steps, a multiple of `batch`, and how many were taken.

        Without a readable channel the batch that was begun is the last: the next one has to be asked for.
        """
        items: list[Item] = []
        left = steps
        last = False
        recency = self.settings.pick.mode is PickMode.RECENCY
        while left:
            if not self.readable:
                if not any(self.pool):
                    return items, steps - left
                if not last:
                    last = True
                    rest = batch if left == steps else left % batch
                    steps -= left - rest
                    left = rest
                    continue
            made = 0
            if recency and self.readable and self.readable == len(self.active) and not any(self.pool):
                asked = min(left, CHUNK)
                made = self._run(asked, items)
                left -= made
                if made == asked:
                    continue
            for _ in range(min(left, CAREFUL)):
                left -= 1
                item = self._step()
                if item is not None:
                    items.append(item)
                if not self.readable:
                    break
        return items, steps

    def _run(self, asked: int, items: list[Item]) -> int:
        """Up to `asked` plain items: no new artwork, every record readable, none like the one before; how many."""
        picks = self.round.ahead(asked)
        ats, ids, raws = zip(*map(next, map(self.walks.__getitem__, picks)), strict=True)
        made = asked
        if ids[0] == self.last_id or None in ids or any(map(eq, ids, ids[1:])):
            previous = (self.last_id, *ids)
            made = next(n for n, id in enumerate(ids) if id is None or id == previous[n])
        for index, at in dict(zip(picks[:made], ats, strict=False)).items():
            self.cursors[index] = (at + 1) % self.shelves[index].count
        for index in set(picks[made:]):
            self.walks[index] = walk(self.shelves[index], self.cursors[index])
        if not made:
            return 0
        taken = picks[:made]
        items.extend(
            map(
                Item,
                ids,
                raws,
                map(self.names.__getitem__, taken),
                taken,
                ats,
                repeat(Origin.BASE),
                repeat(self.epoch_id),
                count(self.ordinal + 1),
                count(self.round.taken + 1),
            )
        )
        self.last_id = ids[made - 1]
        self.ordinal += made
        self.round.taken += made
        self._count(taken)
        return made

    def _step(self) -> Item | None:
        """One step by definition: new artwork first, then the round."""
        pool, draw, origin = self.pool, None, Origin.BASE
        entry: Entry | None = None
        if any(pool):
            draw = self.nae_draws.next()
            if nae.triggers(draw, pool):
                entry, self.pool, gone = nae.choose(pool)
                self.counts.expiries += gone
                if entry.id != self.last_id:
                    return self._new_artwork(entry, Trace(pool, draw))
                origin = Origin.NAE_FALLBACK
        item = self._base(origin, pool, draw)
        if item is None and entry is not None:
            return self._new_artwork(entry, Trace(pool, draw))
        return item

    def _new_artwork(self, entry: Entry, trace: Trace) -> Item:
        self.counts.nae += 1
        self.ordinal += 1
        self.last_id = entry.id
        return Item(entry.id, entry.raw, None, None, None, Origin.NAE, self.epoch_id, self.ordinal, None, trace)

    def _base(self, origin: Origin, pool: Levels, draw: int | None) -> Item | None:
        """The next item of the round. A step that meets an unreadable channel is spent; N more may be tried."""
        unreadable: list[int] = []
        for _ in range(len(self.names) + 1):
            if not self.readable:
                return None
            index = self.round.next()
            if not self.unreadable[index] and (item := self._pick(index, origin, pool, draw, unreadable)) is not None:
                return item
            unreadable.append(index)
        for index in self.active:
            if not self.unreadable[index] and (item := self._pick(index, origin, pool, draw, unreadable)) is not None:
                return item
        return None

    def _pick(
        self, index: int, origin: Origin, pool: Levels, draw: int | None, unreadable: Sequence[int]
    ) -> Item | None:
        """The channel's next record, or None when the channel proves unreadable."""
        tries: list[int] = []
        skipped: list[int] = []
        bad: list[int] = []
        allowed, draws = self._patience(index)
        while True:
            at, id, raw = self._look(index)
            if at is None:
                self._fail(index, bad)
                return None
            tries.append(at)
            if id is None:
                bad.append(at)
                self._tell("BadRecord", "A record is damaged and is passed over.", channel=self.names[index], at=at)
                if len(bad) == BAD_MOST:
                    self._fail(index, bad)
                    return None
            elif id == self.last_id and len(skipped) < allowed:
                skipped.append(at)
            else:
                break
        self.counts.repeats += id == self.last_id
        self.counts.nae_fallback += origin is Origin.NAE_FALLBACK
        self.last_id = id
        self.ordinal += 1
        self._count(bytes((index,)))
        trace = None
        if draw is not None or draws or skipped or bad or unreadable:
            picked = tuple(tries) if draws else ()
            trace = Trace(pool, draw, picked, tuple(skipped), tuple(bad), tuple(unreadable))
        step = self.round.taken if len(unreadable) <= len(self.names) else None
        return Item(id, raw, self.names[index], index, at, origin, self.epoch_id, self.ordinal, step, trace)

    def _patience(self, index: int) -> tuple[int, bool]:
        """How many records may be passed over because they were just on, and whether places are drawn."""
        held = self.shelves[index].count
        if self.settings.pick.mode is PickMode.RECENCY:
            return (SKIPS_MOST if held > 1 else 0), False
        span = min(self.settings.pick.r, held)
        return (RESAMPLES_MOST if span > 1 else 0), span > 1

    def _look(self, index: int) -> Row:
        """The next record of a channel: under the cursor, which moves on; or at a place that is drawn."""
        shelf = self.shelves[index]
        if self.settings.pick.mode is PickMode.RECENCY:
            row = next(self.walks[index])
            if row[0] is not None:
                self.cursors[index] = (row[0] + 1) % shelf.count
            return row
        return shelf.record(self.pick_draws.bounded(min(self.settings.pick.r, shelf.count)))

    def _fail(self, index: int, bad: Sequence[int]) -> None:
        """The channel gives nothing more in this epoch; its weight is 0 from the next on."""
        self.unreadable[index] = True
        self.readable -= 1
        self._tell(
            "UnreadableChannel",
            "Its records cannot be read; it stays out until it is refreshed.",
            channel=self.names[index],
            damaged=list(bad),
        )

    def _count(self, picks: bytes) -> None:
        self._picked += picks
        if len(self._picked) >= 1 << 16:
            self.fold()

    def fold(self) -> Counts:
        """The counts with every item in them."""
        for index, name in enumerate(self.names):
            if found := self._picked.count(index):
                self.counts.channels[name] = self.counts.channels.get(name, 0) + found
        self._picked.clear()
        return self.counts

    def rewalk(self) -> None:
        """Read on from the cursors; needed after they were set from outside."""
        self.walks = [walk(shelf, at) for shelf, at in zip(self.shelves, self.cursors, strict=True)]

    def _tell(self, code: str, sentence: str, **facts: object) -> None:
        self.diagnostics.append(Diagnostic(code, sentence, facts))


def walk(shelf: Shelf, at: int) -> Iterator[Row]:
    """The rows of a shelf from a place on, from the newest again after the oldest, for ever."""
    while True:
        place: int | None = at
        for row in shelf.run(at):
            place = row[0]
            yield row
        while place is None:
            yield (None, None, b"")
        at = (place + 1) % shelf.count
