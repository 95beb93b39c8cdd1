"""History, lookahead, epochs and settings around the generator of one epoch.

A state machine without lock, clock or files; `Scheduler` adds a lock, `Player` adds time.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.dayparts import in_force, part_at
from pendula.playback.choosing.generator import Generator
from pendula.playback.choosing.records import (
    Channel,
    PastShelf,
    Shelf,
    Snapshot,
    check_id,
    check_names,
    index_of,
    pack,
    sound,
    unreadable,
)
from pendula.playback.choosing.swrr import RoundRobin
from pendula.playback.choosing.viewer_controls import (
    Carried,
    ViewerControls,
    carry_over,
    is_same,
    place_of,
    turns_as_shown,
)
from pendula.playback.model import (
    CHANNELS_MOST,
    MASK_64,
    NAME_MOST,
    ChannelTaken,
    Counts,
    InsertResult,
    InvalidRecord,
    Item,
    Record,
    ResetCode,
    ResetReason,
    TooManyChannels,
    invalid_parameter,
    refused,
    short_repr,
)
from pendula.playback.settings import DEFAULTS, PickMode, Refresh, Settings, checked


class Programme(ViewerControls):
    """The items of all epochs, with one reset for every material change."""

    def __init__(self, channels: Sequence[Channel] = (), settings: Settings = DEFAULTS, *, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MASK_64:
            raise invalid_parameter("seed", seed, 0, MASK_64)
        super().__init__()
        self.seed = seed
        self.epoch_id = 0
        self.snapshot = Snapshot()
        self.history: deque[Item] = deque()
        self.lookahead: deque[Item] = deque()
        self.behind = 0
        self.minute: int | None = None  # of the week, local time; None before the first `time_is`
        self.batches = 0
        self.resets = 0
        self.last_reset: ResetReason | None = None
        self.read_before = {"reads": 0, "hits": 0}  # by shelves that were replaced
        self._unreadable: tuple[str, ...] = ()
        self._fresh: tuple[str, ...] = ()  # channels with new contents in the present transaction
        self._banned: tuple[Item, ...] = ()  # items banned in the present transaction
        self._forced: ResetReason | None = None
        self._anew = False  # whether the round robin restarts, whatever the settings say
        self._draft: Snapshot | None = Snapshot(settings=checked(settings))
        for channel in channels:
            self.follow(channel.id, channel.shelf)
        self._draft = msgspec.structs.replace(self._draft, channels=tuple(channels))
        self._check_names(self._draft)
        self.snapshot, self._draft = self._draft, None
        self._fresh = ()
        self._begin(Counts())

    def nae_insert(self, record: Record | bytes) -> InsertResult:
        """Insert a new artwork, a record or its 80 bytes; invalid ones are rejected. No reset."""
        if not self.snapshot.settings.nae.enabled:
            return InsertResult.DISABLED
        if not isinstance(record, Record | bytes):
            raise TypeError(f"{short_repr(record)} is not a record; allowed are records and 80 bytes")
        try:
            raw = record if isinstance(record, bytes) else pack(record)
        except InvalidRecord:
            return InsertResult.REJECTED
        if not sound(raw):
            return InsertResult.REJECTED
        id = int.from_bytes(raw[:8], "little")
        return InsertResult.BANNED if id in self.bans else self.generator.insert(id, raw)

    # Material changes

    def reset(self, reason: str) -> None:
        """Begin a new epoch and restart the round robin; the reason is cut to 256 characters."""
        with self.update():
            self._forced, self._anew = ResetReason(ResetCode.ASKED_FOR, reason[:NAME_MOST]), True

    def time_is(self, minute: int) -> None:
        """Set the local minute of the week; a reset if another day part applies now."""
        self.minute = minute
        part = part_at(self.drafted.day_parts, minute)
        if part != self.snapshot.part:
            with self.update():
                self._forced = ResetReason(ResetCode.DAY_PART_ENDED if part is None else ResetCode.DAY_PART_BEGAN, part)

    def follow(self, channel: str, shelf: Shelf) -> None:
        """Follow a channel, the last in the order. Raises `TooManyChannels`, `ChannelTaken`."""
        check_id(channel)
        with self._changing() as draft:
            if len(draft.channels) >= CHANNELS_MOST:
                raise refused(
                    TooManyChannels, limit="channels", value=CHANNELS_MOST + 1, allowed=CHANNELS_MOST, channel=channel
                )
            if any(there.id == channel for there in draft.channels):
                raise refused(ChannelTaken, channel=channel)
            self._fresh = (*self._fresh, channel)
            self._draft = msgspec.structs.replace(draft, channels=(*draft.channels, Channel(channel, shelf)))

    def unfollow(self, channel: str) -> None:
        """Unfollow a channel; raises `UnknownChannel`."""
        with self._changing() as draft:
            index = index_of(draft, channel)
            left = draft.channels[:index] + draft.channels[index + 1 :]
            self._draft = msgspec.structs.replace(draft, channels=left)

    def refresh(self, channel: str, shelf: Shelf) -> None:
        """Replace the contents of a channel; clears its bans and makes it readable. No change if they are equal."""
        with self._changing() as draft:
            index = index_of(draft, channel)
            fresh = Channel(channel, shelf)
            if channel in self._out():
                self._forced = ResetReason(ResetCode.CHANNEL_READ_AGAIN, channel)
            elif fresh.same(msgspec.structs.replace(draft.channels[index], gone=())):
                return
            self._fresh = (*self._fresh, channel)
            self._set_channel(draft, index, fresh)

    def catch_up(self, channels: Sequence[Channel]) -> None:
        """Follow exactly these channels with their present contents; new ones come last. At most one reset."""
        given = {channel.id for channel in channels}
        followed = {channel.id: channel.shelf for channel in self.snapshot.channels}
        for item in self.history:
            shelf = followed.get(item.channel or "")
            if isinstance(shelf, PastShelf):
                shelf.last = item.raw
        with self.update():
            for name in [name for name in followed if name not in given]:
                self.unfollow(name)
            for channel in channels:
                if channel.id in followed:
                    self.refresh(channel.id, channel.shelf)
                else:
                    self.follow(channel.id, channel.shelf)

    def ban(self, item: Item) -> None:
        """Ban the item's record until its channel gets other contents. Raises `NotShown`.

        That changes the contents of the channel, so it is a reset. A new artwork leaves the pool and the lookahead.
        """
        place = self._place_of(item)
        with self._changing() as draft:
            self._banned = (*self._banned, item)
            if place is None or item.channel is None or item.channel in self._fresh:
                return  # without a channel, or its channel was refreshed in this transaction
            index = index_of(draft, item.channel)
            channel = draft.channels[index]
            gone = tuple(sorted({*channel.gone, place}))
            self._set_channel(draft, index, msgspec.structs.replace(channel, gone=gone))

    def configure(self, **changes: object) -> None:
        """Change these settings, except to None. Raises `InvalidParameter`, `InvalidWeight`; then nothing changes."""
        given = {name: value for name, value in changes.items() if value is not None}
        self.configure_whole(msgspec.structs.replace(self.drafted, **given))

    def configure_whole(self, settings: Settings) -> None:
        """Replace all settings."""
        with self._changing() as draft:
            self._draft = msgspec.structs.replace(draft, settings=checked(settings))

    @property
    def drafted(self) -> Settings:
        """The settings, with the changes of the present transaction."""
        return (self._draft or self.snapshot).settings

    @contextmanager
    def update(self) -> Iterator[None]:
        """Group changes into one reset, or none if nothing changed; an exception rolls back."""
        if self._draft is not None:
            kept = (self._draft, self._forced, self._anew, self._fresh, self._banned)
            try:
                yield
            except BaseException:
                self._draft, self._forced, self._anew, self._fresh, self._banned = kept
                raise
            return
        self._draft = self.snapshot
        try:
            yield
            self._check_names(self._draft)
            part = part_at(self._draft.settings.day_parts, self.minute)
            self._draft = msgspec.structs.replace(self._draft, part=part)
            if self._forced is not None or not self._draft.same(self.snapshot):
                self._reset(self._draft, self._forced or ResetReason(ResetCode.SNAPSHOT_CHANGED))
            else:
                self._remove_banned()
        finally:
            self._draft, self._forced, self._anew, self._fresh, self._banned = None, None, False, (), ()

    def _check_names(self, draft: Snapshot) -> None:
        """Checked at the end of a transaction: a channel may be followed after it got its weight."""
        check_names(draft, self.snapshot)

    def _remove_banned(self) -> None:
        """Remove banned new artwork from the pool and the lookahead."""
        unwanted = {item.id for item in self._banned if item.channel is None}
        if unwanted:
            for id in sorted(unwanted):
                self.generator.pool = new_artwork.without(self.generator.pool, id)
            left = (item for item in self.lookahead if item.channel is not None or item.id not in unwanted)
            self.lookahead = deque(left)

    # Inside

    def _reset(self, snapshot: Snapshot, reason: ResetReason) -> None:
        kept, on = self._kept(snapshot), self.history[-1] if self.history else None
        followed = [channel.id for channel in snapshot.channels]
        self.paused_channels = tuple(name for name in self.paused_channels if name in followed)
        self._unreadable = tuple(name for name in self._out() if name in followed and name not in self._fresh)
        counts = self.generator.fold()
        for name in [name for name in counts.channels if name not in followed]:
            counts.others += counts.channels.pop(name)
        shelves = {id(channel.shelf) for channel in snapshot.channels}
        for channel in self.snapshot.channels:
            if id(channel.shelf) not in shelves:
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
        if kept is not None:
            round = RoundRobin(self.generator.weights, 0, kept.credits, before=kept.picks)
            self.generator.resume(round, kept.cursors)
            self.generator.last_id = None if on is None else on.id
        self.generator.last_id = self.returned
        self.behind = min(self.behind, max(0, len(self.history) - 1))

    def _kept(self, snapshot: Snapshot) -> Carried | None:
        """Credits and cursors for another snapshot; None if the round robin restarts."""
        settings = snapshot.settings
        if self._anew or settings.refresh is not Refresh.KEEP:
            return None
        shown = turns_as_shown(self.generator, self.lookahead)
        self.generating = True
        try:
            return carry_over(
                shown,
                self.snapshot.channels,
                snapshot.channels,
                self.lookahead,
                in_order=settings.pick.mode is PickMode.RECENCY,
            )
        finally:
            self.generating = False

    def _begin(self, counts: Counts) -> None:
        snapshot = self.snapshot
        self.history = deque(self.history, snapshot.settings.history)
        self._exclude_broken(snapshot)
        self.generator = Generator(
            snapshot.channels,
            in_force(snapshot.settings, snapshot.part),
            self.seed,
            self.epoch_id,
            unreadable=self._unreadable,
            paused_channels=self.paused_channels,
            bans=self.bans,
        )
        self.generator.counts = counts
        self._collect()

    def _exclude_broken(self, snapshot: Snapshot) -> None:
        """Exclude channels whose shelf has no readable count, with one diagnostic each."""
        for channel in snapshot.channels:
            if channel.id not in self._unreadable and getattr(channel.shelf, "broken", False):
                self._unreadable += (channel.id,)
                self.add_diagnostics((unreadable(channel.id, channel.shelf),))

    def _out(self) -> tuple[str, ...]:
        """The channels that are unreadable since an earlier epoch or in this one."""
        found = (name for name, out in zip(self.generator.names, self.generator.unreadable, strict=True) if out)
        return tuple(dict.fromkeys((*self._unreadable, *found)))

    def _place_of(self, item: Item) -> int | None:
        held = waiting = False
        if isinstance(item, Item):
            # Not by equality: after a restore the trace may lack records of the pool.
            held = any(is_same(item, there) for there in (*self.lookahead, *self.history))
            # Artwork selected for the last time has left the pool but is in the lookahead.
            coming = any(there.channel is None and there.id == item.id for there in self.lookahead)
            waiting = held or coming or new_artwork.holds(self.generator.pool, item.id)
        return place_of(item, self.snapshot, self.epoch_id, held=held, waiting=waiting)

    def _set_channel(self, draft: Snapshot, index: int, channel: Channel) -> None:
        channels = (*draft.channels[:index], channel, *draft.channels[index + 1 :])
        self._draft = msgspec.structs.replace(draft, channels=channels)

    @contextmanager
    def _changing(self) -> Iterator[Snapshot]:
        with self.update():
            assert self._draft is not None
            yield self._draft
