"""History, lookahead, epochs, settings and controls of viewers around the generator of one epoch.

A state machine without lock, clock or files; `Scheduler` adds a lock, `Player` adds time. Controls of viewers (next,
prev, pins, paused channels, bans of artwork) are no material changes. Pausing and banning generate the lookahead again
if it is affected, from the credits and cursors as of the last item shown. Items of the lookahead that are dropped are
undone: their channels get their credit back, and each cursor returns to the first record that was not shown. So every
channel gets its share even if channels change often. Pins, bans and pauses survive every reset.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import msgspec
from msgspec import Struct

from pendula.kernel.errors import WrongUsage
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
    unmasked,
    unreadable,
)
from pendula.playback.choosing.swrr import RoundRobin
from pendula.playback.model import (
    CHANNELS_MOST,
    MASK_64,
    NAME_MOST,
    Banned,
    ChannelTaken,
    Counts,
    Diagnostic,
    InsertResult,
    InvalidCount,
    InvalidRecord,
    Item,
    Origin,
    Record,
    ResetCode,
    ResetReason,
    TooManyChannels,
    TooManyControls,
    invalid_parameter,
    refused,
    short_repr,
)
from pendula.playback.settings import DEFAULTS, PickMode, Refresh, Settings, checked


class Carried(Struct, frozen=True):
    """By channel: its credit, its picks in this epoch, and its cursor."""

    credits: tuple[int, ...]
    picks: tuple[int, ...]
    cursors: tuple[int, ...]


def turns_as_shown(generator: Generator, lookahead: Iterable[Item]) -> Carried:
    """Credits, picks and cursors as of the last item that left the lookahead."""
    ahead = list(lookahead)
    step = next((first_step(item) for item in ahead if item.step is not None), generator.round.taken)
    cursors = generator.cursors
    for item in reversed(ahead) if generator.in_order else ():
        if item.channel_index is not None and item.at is not None:
            cursors[item.channel_index] = item.at
    return Carried(tuple(generator.round.credits_at(step)), tuple(generator.round.picks_at(step)), tuple(cursors))


def first_step(item: Item) -> int:
    """The number of steps before this item; steps that met unreadable channels belong to the item."""
    assert item.step is not None
    return item.step - 1 - len(item.trace.unreadable if item.trace else ())


def carry_over(
    shown: Carried, before: Sequence[Channel], after: Sequence[Channel], ahead: Iterable[Item], *, in_order: bool
) -> Carried:
    """Credits of the channels that stay, and their cursors if the record at the cursor still exists.

    A new channel starts with credit 0. The credit of a removed channel is divided among the others, the remainder one
    unit each from the first, so that the sum stays 0.
    """
    there = {channel.id: index for index, channel in enumerate(before)}
    next_ones = {item.channel: item.raw for item in reversed(list(ahead)) if item.channel}
    credits = [shown.credits[there[one.id]] if one.id in there else 0 for one in after]
    cursors = [0] * len(after)
    for index, channel in enumerate(after):
        if channel.id in there and in_order:
            old = before[there[channel.id]]
            cursor = shown.cursors[there[channel.id]]
            cursors[index] = cursor if channel.same(old) else _cursor_after_change(channel, old, cursor, next_ones)
    return Carried(tuple(_balanced(credits)), (0,) * len(after), tuple(cursors))


def _balanced(credits: list[int]) -> list[int]:
    if not credits:
        return credits
    each, rest = divmod(-sum(credits), len(credits))
    return [credit + each + (index < rest) for index, credit in enumerate(credits)]


def _cursor_after_change(channel: Channel, old: Channel, cursor: int, next_ones: dict[str, bytes]) -> int:
    """The place of the record that was next; 0, the newest, if it is gone."""
    raw = next_ones.get(channel.id)
    if raw is None and isinstance(old.shelf, PastShelf):
        return _place_after(channel.visible, old.shelf.last)
    if raw is None and cursor < old.visible.count:
        place, id, found = old.visible.record(cursor)
        raw = None if place is None or id is None else found
    place = None if raw is None else find_place(channel.visible, raw)
    return place or 0


def _place_after(shelf: Shelf, last: bytes | None) -> int:
    """The place after the record that was shown last; 0, the newest, if that is unknown."""
    place = None if last is None else find_place(shelf, last)
    return 0 if place is None else (place + 1) % shelf.count


def find_place(shelf: Shelf, raw: bytes) -> int | None:
    """Find the record with this time and id by binary search; None if the shelf does not have it."""
    wanted = _key(raw)
    low, high = 0, shelf.count
    while low < high:
        middle = (low + high) // 2
        at, key = _readable(shelf, middle, high)
        if key == wanted:
            return at
        if key is None or key < wanted:
            high = middle
        else:
            low = at + 1
    return None


def _readable(shelf: Shelf, at: int, end: int) -> tuple[int, tuple[int, int] | None]:
    """The first readable place from `at`, with the time and id of its record; None if there is none before `end`."""
    while at < end:
        place, id, raw = shelf.record(at)
        if place is not None and id is not None:
            return at, _key(raw)
        at += 1
    return at, None


def _key(raw: bytes) -> tuple[int, int]:
    return int.from_bytes(raw[8:16], "little", signed=True), int.from_bytes(raw[:8], "little")


def remaining_new_artwork(lookahead: Iterable[Item], on: Item | None, unwanted: int | None) -> list[Item]:
    """The new artwork of the lookahead, without repeats in a row; items of channels are generated again."""
    left: list[Item] = []
    last = None if on is None else on.id
    for item in lookahead:
        if item.origin is Origin.NAE and item.id not in (last, unwanted):
            left.append(item)
            last = item.id
    return left


DIAGNOSTICS_KEPT = 64
PINS_MOST = 64
BANS_MOST = 1024


class NotShown(WrongUsage):
    """Only an item of the present epoch can be banned. Facts: `epoch_id`, `ordinal`."""

    code = "not_shown"


def is_same(item: Item, other: Item) -> bool:
    """Whether both are the same item; the record is compared because all pinned items have ordinal 0."""
    return (item.epoch_id, item.ordinal, item.channel, item.at, item.raw) == (
        other.epoch_id,
        other.ordinal,
        other.channel,
        other.at,
        other.raw,
    )


def place_of(item: Item, snapshot: Snapshot, epoch_id: int, *, held: bool, waiting: bool) -> int | None:
    """The place on its shelf of an item of this epoch, None for an item without a channel; else raises `NotShown`.

    `held`: history or lookahead has the item. `waiting`: its artwork may be shown again.
    """
    if not isinstance(item, Item):
        raise refused(NotShown, fault="not_an_item", epoch_id=epoch_id, value=short_repr(item))
    facts = {"epoch_id": item.epoch_id, "ordinal": item.ordinal}
    if item.epoch_id != epoch_id:
        raise refused(NotShown, fault="other_epoch", present=epoch_id, **facts)
    if item.channel is None or item.at is None:
        if waiting:
            return None
        raise refused(NotShown, fault="not_waiting", id=item.id, **facts)
    channel = {there.id: there for there in snapshot.channels}.get(item.channel)
    # The item's place counts the records visible when its epoch began, before bans of this transaction.
    if channel is not None and (held or _lies_in(channel, item.at, item.raw)):
        return unmasked(item.at, channel.gone)
    if channel is None:
        followed = [there.id for there in snapshot.channels]
        raise refused(NotShown, fault="not_followed", channel=item.channel, followed=followed, **facts)
    raise refused(NotShown, fault="other_record", channel=item.channel, at=item.at, **facts)


def _lies_in(channel: Channel, at: int, raw: bytes) -> bool:
    """Whether the channel has that record there; for items that left the history."""
    return at < channel.visible.count and channel.visible.record(at)[2] == raw


def _packed(record: Record) -> bytes:
    if not isinstance(record, Record):
        raise InvalidRecord(f"{short_repr(record)} is not a record; allowed are records and 80 bytes", field="record")
    return pack(record)


def _id(raw: bytes) -> int:
    return int.from_bytes(raw[:8], "little")


def _too_many(limit: str, allowed: int) -> TooManyControls:
    return refused(TooManyControls, limit=limit, value=allowed + 1, allowed=allowed)


def _count(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise refused(InvalidCount, n=short_repr(n))
    return n


class Programme:
    """The items of all epochs, with one reset for every material change."""

    def __init__(self, channels: Sequence[Channel] = (), settings: Settings = DEFAULTS, *, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MASK_64:
            raise invalid_parameter("seed", seed, 0, MASK_64)
        self.generating = False  # while the shelves are read
        self.pins: deque[bytes] = deque()
        self.bans: dict[int, int | None] = {}  # id -> end, in the time of the caller; None is until lifted
        self.paused_channels: tuple[str, ...] = ()
        self.diagnostics: deque[Diagnostic] = deque(maxlen=DIAGNOSTICS_KEPT)
        self.diagnosed = 0
        self.returned: int | None = None  # the id that `next` returned last, in any epoch
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

    # Controls of viewers

    def next(self) -> Item | None:
        """The next item: forward through the history after `prev`, then from the lookahead."""
        if self.behind:
            self.behind -= 1
            item: Item | None = self.history[-1 - self.behind]
        else:
            item = self._show_pinned() if self.pins else self._emit()
        if item is not None:
            self.returned = item.id
        return item

    def prev(self) -> Item | None:
        """One step back in the history; None at its oldest item."""
        if self.behind + 2 > len(self.history):
            return None
        self.behind += 1
        return self.history[-1 - self.behind]

    def peek(self, n: int) -> list[Item]:
        """Up to `n` items that are pinned or generated already; raises `InvalidCount`, a ValueError."""
        pins = [self.pinned(raw) for raw in islice(self.pins, _count(n))]
        return [*pins, *islice(self.lookahead, n - len(pins))]

    def take(self, n: int) -> list[Item]:
        """The results of `n` calls of `next` up to the first None; the batches are generated together."""
        n = _count(n)
        items: list[Item] = []
        while self.behind and len(items) < n:
            self.behind -= 1
            items.append(self.history[-1 - self.behind])
        while self.pins and len(items) < n:
            items.append(self._show_pinned())
        if len(items) < n:
            items.extend(self._emit_many(n - len(items)))
        if items:
            self.returned = items[-1].id
        return items

    def now(self) -> Item | None:
        """The current item: the last one that `next` or `prev` returned."""
        return self.history[-1 - self.behind] if self.history else None

    def show_next(self, record: Record | bytes) -> None:
        """Show this record next, once, before the lookahead; it moves no credit and no cursor.

        A record with the id of a pinned one replaces it in its place. Raises `InvalidRecord`, `Banned`, and
        `TooManyControls` beyond 64.
        """
        raw = record if isinstance(record, bytes) else _packed(record)
        if not sound(raw):
            raise InvalidRecord(f"These {len(raw)} bytes are not a record", field="raw")
        id = _id(raw)
        if id in self.bans:
            raise refused(Banned, id=id)
        places = [place for place, pinned in enumerate(self.pins) if _id(pinned) == id]
        if places:
            self.pins[places[0]] = raw
            return
        if len(self.pins) >= PINS_MOST:
            raise _too_many("pins", PINS_MOST)
        self.pins.append(raw)

    def pinned(self, raw: bytes) -> Item:
        """A pinned record as an item; it is not generated by the epoch, so its ordinal is 0."""
        return Item(
            id=_id(raw),
            raw=raw,
            channel=None,
            channel_index=None,
            at=None,
            origin=Origin.PINNED,
            epoch_id=self.epoch_id,
            ordinal=0,
            step=None,
        )

    def pause(self, channel: str) -> bool:
        """Pause a channel: its credit and cursor stay, the others share its part. Raises `UnknownChannel`.

        Returns whether that changed anything. It applies from the next item, across resets, until `resume`.
        """
        index_of(self.snapshot, channel)
        if channel in self.paused_channels:
            return False
        self._set_paused((*self.paused_channels, channel))
        return True

    def resume(self, channel: str) -> bool:
        """Resume a channel from the next item; returns whether that changed anything."""
        index_of(self.snapshot, channel)
        if channel not in self.paused_channels:
            return False
        self._set_paused(tuple(name for name in self.paused_channels if name != channel))
        return True

    def ban_artwork(self, id: int, until: int | None = None) -> None:
        """Ban an artwork in all channels until the ban is lifted or `until` has passed.

        It leaves pins, pool, lookahead and history. Raises `InvalidParameter`, and `TooManyControls` beyond 1024.
        """
        if isinstance(id, bool) or not isinstance(id, int) or not 0 <= id <= MASK_64:
            raise invalid_parameter("id", id, "artwork_id")
        if id not in self.bans and len(self.bans) >= BANS_MOST:
            raise _too_many("bans", BANS_MOST)
        self.bans[id] = until
        self.pins = deque(raw for raw in self.pins if _id(raw) != id)
        self.generator.pool = new_artwork.without(self.generator.pool, id)
        if any(item.id == id for item in self.lookahead):
            self._regenerate(id)
        newer = sum(item.id == id for item in list(self.history)[len(self.history) - self.behind :])
        self.history = deque((item for item in self.history if item.id != id), self.history.maxlen)
        self.behind = max(0, min(self.behind - newer, len(self.history) - 1))

    def lift(self, id: int) -> bool:
        """Lift a ban; returns whether the artwork was banned."""
        if id not in self.bans:
            return False
        del self.bans[id]
        self.generator.barred = [False] * len(self.generator.names)
        self.generator.count_readable()
        return True

    def expire(self, now: int) -> list[int]:
        """Lift the bans that end at `now` or before; returns the ids, ordered by end, then id."""
        over = sorted((until, id) for id, until in self.bans.items() if until is not None and until <= now)
        for _, id in over:
            self.lift(id)
        return [id for _, id in over]

    def _set_paused(self, paused_channels: Iterable[str]) -> None:
        self.paused_channels = tuple(paused_channels)
        self._regenerate(None)

    def _regenerate(self, unwanted: int | None) -> None:
        """Drop the lookahead, except new artwork, and continue from the last item shown."""
        generator = self.generator
        shown = turns_as_shown(generator, self.lookahead)
        on = self.history[-1] if self.history else None
        self.lookahead = deque(remaining_new_artwork(self.lookahead, on, unwanted))
        generator.fold()
        generator.pause(self.paused_channels)
        round = RoundRobin(generator.weights, generator.round.taken, shown.credits, before=shown.picks)
        generator.resume(round, shown.cursors)
        last = self.lookahead[-1] if self.lookahead else on
        generator.last_id = None if last is None else last.id

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

    def _show_pinned(self) -> Item:
        item = self.pinned(self.pins.popleft())
        self.history.append(item)
        return item

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
        # The last of n calls generates if fewer than `least` items are left: so many batches come first.
        wanted = max(0, -(-(least + n - 1 - there) // least))
        batches, made = self._fill(wanted * least) if wanted else (0, 0)
        if made == wanted * least:
            items = [self.lookahead.popleft() for _ in range(n)]
            self.history.extend(items[-self.snapshot.settings.history :])
            return items
        # The channels failed in the last batch. Single calls would have generated it when `least` - 1 items were
        # left, and every call after that would try again.
        sure = min(n, max(0, there + (batches - 1) * least - (least - 1)) + 1) if batches else 0
        items = [self.lookahead.popleft() for _ in range(min(sure, len(self.lookahead)))]
        self.history.extend(items)
        if len(items) < sure:
            return items  # the call that generated that batch returned None
        while len(items) < n and (item := self._emit()) is not None:
            items.append(item)
        return items

    def _fill(self, steps: int) -> tuple[int, int]:
        """Generate; returns the number of batches and items."""
        batch = self.snapshot.settings.lookahead
        items: list[Item] = []
        self.generating = True
        try:
            _, taken = self.generator.generate(steps, batch, items)
        finally:
            # Also after an interrupt: no generated item is lost.
            self.generating = False
            self.lookahead.extend(items)
            self._collect()
        batches = -(-taken // batch)
        self.batches += batches
        return batches, len(items)

    def add_diagnostics(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Add diagnostics; the last 64 are kept."""
        self.diagnosed += len(diagnostics)
        self.diagnostics.extend(diagnostics)

    def _collect(self) -> None:
        self.add_diagnostics(self.generator.diagnostics)
        self.generator.diagnostics.clear()

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
