"""What is on: history, lookahead, epochs and settings around the generator of one epoch.

One state machine without lock, clock or files; `Scheduler` makes it safe for threads, `Player` keeps time with it.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.generator import Channel, Counts, Generator, unreadable
from pendula.playback.choosing.records import Shelf, pack, sound
from pendula.playback.choosing.snapshot import Snapshot, check_id, check_names, index_of
from pendula.playback.choosing.wishes import place_of
from pendula.playback.model import (
    CHANNELS_MOST,
    MASK_64,
    NAME_MOST,
    ChannelTaken,
    Diagnostic,
    Exposure,
    InsertResult,
    InvalidCount,
    InvalidRecord,
    Item,
    Nae,
    Pick,
    Record,
    Settings,
    TooManyChannels,
    said,
    unfit,
)
from pendula.playback.settings import DEFAULTS, NOW, Rules, checked

DIAGNOSTICS_KEPT = 64


class Programme:
    """Next, previous, what comes; and one reset for every material change."""

    def __init__(
        self, channels: Sequence[Channel] = (), settings: Settings = DEFAULTS, *, seed: int, rules: Rules = NOW
    ) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MASK_64:
            raise unfit("seed", seed, "an integer from 0 to 2^64 - 1")
        self.seed = seed
        self.rules = rules
        self.epoch_id = 0
        self.snapshot = Snapshot()
        self.history: deque[Item] = deque()
        self.lookahead: deque[Item] = deque()
        self.behind = 0
        self.generating = False  # while the shelves are read
        self.batches = 0
        self.resets = 0
        self.last_reset: str | None = None
        self.diagnostics: deque[Diagnostic] = deque(maxlen=DIAGNOSTICS_KEPT)
        self.told = 0
        self.read_before = {"reads": 0, "hits": 0}  # by shelves that were replaced since
        self._unreadable: tuple[str, ...] = ()
        self._fresh: tuple[str, ...] = ()  # channels with new contents in the present transaction
        self._banned: tuple[Item, ...] = ()  # items banned in the present transaction
        self._forced: str | None = None
        self._draft: Snapshot | None = Snapshot(settings=checked(settings))
        for channel in channels:
            self.follow(channel.id, channel.shelf)
        self._draft = msgspec.structs.replace(self._draft, channels=tuple(channels))
        self._check(self._draft)
        self.snapshot, self._draft = self._draft, None
        self._fresh = ()
        self._begin(Counts())

    # What a player asks for

    def next(self) -> Item | None:
        """The next item: forward through what was gone back over, then on."""
        if self.behind:
            self.behind -= 1
            return self.history[-1 - self.behind]
        return self._emit()

    def prev(self) -> Item | None:
        """One step back in the history; None at its oldest item."""
        if self.behind + 2 > len(self.history):
            return None
        self.behind += 1
        return self.history[-1 - self.behind]

    def peek(self, n: int) -> list[Item]:
        """Up to `n` items that are generated already; raises `InvalidCount`, a ValueError."""
        n = _count(n)
        return [self.lookahead[index] for index in range(min(n, len(self.lookahead)))]

    def take(self, n: int) -> list[Item]:
        """What `n` calls of `next` give, up to the first None; the batches are made together."""
        n = _count(n)
        items: list[Item] = []
        while self.behind and len(items) < n:
            self.behind -= 1
            items.append(self.history[-1 - self.behind])
        if len(items) < n:
            items.extend(self._emit_many(n - len(items)))
        return items

    def nae_insert(self, record: Record | bytes) -> InsertResult:
        """A new artwork, as a record or its 80 bytes. Never raises for what it holds; resets nothing."""
        if not self.snapshot.settings.nae.enabled:
            return InsertResult.DISABLED
        try:
            raw = record if isinstance(record, bytes) else pack(record)
        except InvalidRecord:
            return InsertResult.REJECTED
        if not sound(raw):
            return InsertResult.REJECTED
        return self.generator.insert(int.from_bytes(raw[:8], "little"), raw)

    def now(self) -> Item | None:
        """The item that is shown: the last one that `next` or `prev` gave."""
        return self.history[-1 - self.behind] if self.history else None

    # What changes the snapshot

    def reset(self, reason: str) -> None:
        """Begin a new epoch; of the reason 256 characters are kept."""
        with self.update():
            self._forced = reason[:NAME_MOST]

    def follow(self, channel: str, shelf: Shelf) -> None:
        """Follow one more channel; it comes last in the order. Raises `TooManyChannels`, `ChannelTaken`."""
        check_id(channel)
        with self._changing() as draft:
            if len(draft.channels) >= CHANNELS_MOST:
                raise TooManyChannels(
                    f"{channel!r} would be channel {CHANNELS_MOST + 1}; at most {CHANNELS_MOST} can be followed",
                    limit="channels",
                    value=CHANNELS_MOST + 1,
                    allowed=CHANNELS_MOST,
                )
            if any(there.id == channel for there in draft.channels):
                raise ChannelTaken(f"Channel {channel!r} is followed already", channel=channel)
            self._fresh = (*self._fresh, channel)
            self._draft = msgspec.structs.replace(draft, channels=(*draft.channels, Channel(channel, shelf)))

    def unfollow(self, channel: str) -> None:
        """Follow a channel no more; raises `UnknownChannel`."""
        with self._changing() as draft:
            index = index_of(draft, channel)
            left = draft.channels[:index] + draft.channels[index + 1 :]
            self._draft = msgspec.structs.replace(draft, channels=left)

    def refresh(self, channel: str, shelf: Shelf) -> None:
        """New contents for a channel: what was banned or unreadable gets a new try. Equal contents change nothing."""
        with self._changing() as draft:
            index = index_of(draft, channel)
            fresh = Channel(channel, shelf)
            if channel in self._out():
                self._forced = f"{channel} is to be read again"
            elif fresh.same(msgspec.structs.replace(draft.channels[index], gone=())):
                return
            self._fresh = (*self._fresh, channel)
            self._set_channel(draft, index, fresh)

    def ban(self, item: Item) -> None:
        """Show the item's record no more until its channel gets other contents. Raises `NotShown`.

        That changes what the channel holds, so it is a reset. A new artwork leaves the pool and the lookahead.
        """
        place = self._place_of(item)
        with self._changing() as draft:
            self._banned = (*self._banned, item)
            if place is None or item.channel is None or item.channel in self._fresh:
                return  # in no channel, or its contents are others by now
            index = index_of(draft, item.channel)
            channel = draft.channels[index]
            gone = tuple(sorted({*channel.gone, place}))
            self._set_channel(draft, index, msgspec.structs.replace(channel, gone=gone))

    def configure(
        self,
        *,
        exposure: Exposure | None = None,
        pick: Pick | None = None,
        history: int | None = None,
        lookahead: int | None = None,
        nae: Nae | None = None,
        preserve_history: bool | None = None,
    ) -> None:
        """Change settings; what is left out stays. Raises `InvalidParameter` and `InvalidWeight`, changing nothing."""
        given = {
            "exposure": exposure,
            "pick": pick,
            "history": history,
            "lookahead": lookahead,
            "nae": nae,
            "preserve_history": preserve_history,
        }
        wanted = {name: value for name, value in given.items() if value is not None}
        self.configure_whole(msgspec.structs.replace(self.drafted, **wanted))

    def configure_whole(self, settings: Settings) -> None:
        """All settings at once."""
        with self._changing() as draft:
            self._draft = msgspec.structs.replace(draft, settings=checked(settings))

    @property
    def drafted(self) -> Settings:
        """The settings as they will be once the present transaction is done."""
        return (self._draft or self.snapshot).settings

    @contextmanager
    def update(self) -> Iterator[None]:
        """Group changes: one reset at the end, none if nothing changed; after an exception all is as before."""
        if self._draft is not None:
            kept = (self._draft, self._forced, self._fresh, self._banned)
            try:
                yield
            except BaseException:
                self._draft, self._forced, self._fresh, self._banned = kept
                raise
            return
        self._draft = self.snapshot
        try:
            yield
            self._check(self._draft)
            if self._forced is not None or not self._draft.same(self.snapshot):
                self._reset(self._draft, self._forced or "the snapshot changed")
            else:
                self._take_out()
        finally:
            self._draft, self._forced, self._fresh, self._banned = None, None, (), ()

    def _check(self, draft: Snapshot) -> None:
        """Only the whole of a change can be judged: a channel may be followed after it got its weight."""
        if self.rules.known_channels:
            check_names(draft, self.snapshot)

    def _take_out(self) -> None:
        """Banned new artworks leave the pool and what is generated already."""
        unwanted = {item.id for item in self._banned if item.channel is None}
        if unwanted:
            for id in sorted(unwanted):
                self.generator.pool = new_artwork.without(self.generator.pool, id)
            left = (item for item in self.lookahead if item.channel is not None or item.id not in unwanted)
            self.lookahead = deque(left)

    # Inside

    def _emit(self) -> Item | None:
        least = self.snapshot.settings.lookahead
        if len(self.lookahead) < least:
            self._fill(least)
        if not self.lookahead:
            return None
        item = self.lookahead.popleft()
        self.history.append(item)
        return item

    def _emit_many(self, n: int) -> list[Item]:
        least, there = self.snapshot.settings.lookahead, len(self.lookahead)
        # Before the last of n emissions at least `least` items must lie there: that many batches come first.
        wanted = max(0, -(-(least + n - 1 - there) // least))
        batches, made = self._fill(wanted * least) if wanted else (0, 0)
        if made == wanted * least:
            items = [self.lookahead.popleft() for _ in range(n)]
            self.history.extend(items[-self.snapshot.settings.history :])
            return items
        # The channels failed under way, in the last batch that was made: single calls would have asked for it when
        # `least` - 1 items were left, and every call after that asks again.
        sure = min(n, max(0, there + (batches - 1) * least - (least - 1)) + 1) if batches else 0
        items = [self.lookahead.popleft() for _ in range(min(sure, len(self.lookahead)))]
        self.history.extend(items)
        if len(items) < sure:
            return items  # the call that asked for that batch found nothing
        while len(items) < n and (item := self._emit()) is not None:
            items.append(item)
        return items

    def _fill(self, steps: int) -> tuple[int, int]:
        """Generate; how many batches and items that were."""
        batch = self.snapshot.settings.lookahead
        items: list[Item] = []
        self.generating = True
        try:
            _, taken = self.generator.generate(steps, batch, items)
        finally:
            # Also when somebody stops the program meanwhile: nothing that was made is lost.
            self.generating = False
            self.lookahead.extend(items)
            self._collect()
        batches = -(-taken // batch)
        self.batches += batches
        return batches, len(items)

    def _reset(self, snapshot: Snapshot, reason: str) -> None:
        followed = [channel.id for channel in snapshot.channels]
        self._unreadable = tuple(name for name in self._out() if name in followed and name not in self._fresh)
        counts = self.generator.fold()
        for name in [name for name in counts.channels if name not in followed]:
            counts.others += counts.channels.pop(name)
        kept = {id(channel.shelf) for channel in snapshot.channels}
        for channel in self.snapshot.channels:
            if id(channel.shelf) not in kept:
                for name in self.read_before:
                    self.read_before[name] += getattr(channel.shelf, name, 0)
        self.snapshot = snapshot
        self.epoch_id = (self.epoch_id + 1) & MASK_64
        self.resets += 1
        self.last_reset = reason
        banned = {(item.channel, item.id) for item in self._banned}
        if not snapshot.settings.preserve_history:
            self.history.clear()
            self.behind = 0
        elif banned:
            self.history = deque(item for item in self.history if (item.channel, item.id) not in banned)
        self.lookahead.clear()
        self._begin(counts)
        self.behind = min(self.behind, max(0, len(self.history) - 1))

    def _begin(self, counts: Counts) -> None:
        snapshot = self.snapshot
        self.history = deque(self.history, snapshot.settings.history)
        self._look_over(snapshot)
        self.generator = Generator(snapshot.channels, snapshot.settings, self.seed, self.epoch_id, self._unreadable)
        self.generator.counts = counts
        self._collect()

    def _look_over(self, snapshot: Snapshot) -> None:
        """A shelf that cannot even say how much it holds is out from the beginning, and that is told once."""
        for channel in snapshot.channels:
            if channel.id not in self._unreadable and getattr(channel.shelf, "broken", False):
                self._unreadable += (channel.id,)
                self.tell((unreadable(channel.id, channel.shelf),))

    def tell(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Keep what a player should know of; the last 64 are kept."""
        self.told += len(diagnostics)
        self.diagnostics.extend(diagnostics)

    def _collect(self) -> None:
        self.tell(self.generator.diagnostics)
        self.generator.diagnostics.clear()

    def _out(self) -> tuple[str, ...]:
        """The channels that are unreadable, also those found so in this epoch."""
        found = (name for name, out in zip(self.generator.names, self.generator.unreadable, strict=True) if out)
        return tuple(dict.fromkeys((*self._unreadable, *found)))

    def _place_of(self, item: Item) -> int | None:
        held = isinstance(item, Item) and (item in self.lookahead or item in self.history)
        waiting = held or new_artwork.holds(self.generator.pool, getattr(item, "id", -1))
        return place_of(item, self.snapshot, self.epoch_id, held=held, waiting=waiting)

    def _set_channel(self, draft: Snapshot, index: int, channel: Channel) -> None:
        channels = (*draft.channels[:index], channel, *draft.channels[index + 1 :])
        self._draft = msgspec.structs.replace(draft, channels=channels)

    @contextmanager
    def _changing(self) -> Iterator[Snapshot]:
        with self.update():
            assert self._draft is not None
            yield self._draft


def _count(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise InvalidCount(f"A number of items is an integer from 0, not {said(n)}", n=said(n))
    return n
