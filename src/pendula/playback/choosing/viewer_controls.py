"""Controls of a viewer: next, prev, pins, paused channels, bans.

None of them is a material change. Pausing and banning generate the lookahead again if it is affected, from the credits
and cursors as of the last item shown. Items of the lookahead that are dropped are undone: their channels get their
credit back, and each cursor returns to the first record that was not shown. So every channel gets its share even if
channels change often. Pins, bans and pauses survive every reset.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec import Struct

from pendula.kernel.errors import WrongUsage
from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.generator import Generator
from pendula.playback.choosing.records import Channel, PastShelf, Shelf, Snapshot, index_of, pack, sound, unmasked
from pendula.playback.choosing.swrr import RoundRobin
from pendula.playback.model import (
    MASK_64,
    Banned,
    Diagnostic,
    InvalidCount,
    InvalidRecord,
    Item,
    Origin,
    Record,
    TooManyControls,
    invalid_parameter,
    refused,
    short_repr,
)


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


class ViewerControls:
    """The part of a programme that viewers control; `Programme` extends it."""

    epoch_id: int
    snapshot: Snapshot
    generator: Generator
    history: deque[Item]
    lookahead: deque[Item]
    behind: int
    batches: int

    def __init__(self) -> None:
        self.generating = False  # while the shelves are read
        self.pins: deque[bytes] = deque()
        self.bans: dict[int, int | None] = {}  # id -> end, in the time of the caller; None is until lifted
        self.paused_channels: tuple[str, ...] = ()
        self.diagnostics: deque[Diagnostic] = deque(maxlen=DIAGNOSTICS_KEPT)
        self.diagnosed = 0
        self.returned: int | None = None  # the id that `next` returned last, in any epoch

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
