"""What somebody before the screen asks for: the next item, the one before, something next, a channel at rest, no more.

None of it is a material change. What was made ahead is made again where a wish concerns it, from the turns as of what
was shown; pins, bans and rests outlast every reset.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from pendula.kernel.errors import WrongUsage
from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.carrying import as_shown, left_of
from pendula.playback.choosing.generator import Generator
from pendula.playback.choosing.records import pack, sound, unmasked
from pendula.playback.choosing.snapshot import Channel, Snapshot, index_of
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
    TooManyWishes,
    refused,
    said,
    unfit,
)

DIAGNOSTICS_KEPT = 64
PINS_MOST = 64
BANS_MOST = 1024


class NotShown(WrongUsage):
    """Only an item of the present epoch can be banned. Facts: `epoch_id`, `ordinal`."""

    code = "not_shown"


class Wishes:
    """The side of a programme that viewers see; `Programme` is the whole."""

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
        self.bans: dict[int, int | None] = {}  # until when, by whatever clock the owner has; None is until lifted
        self.resting: tuple[str, ...] = ()
        self.diagnostics: deque[Diagnostic] = deque(maxlen=DIAGNOSTICS_KEPT)
        self.told = 0
        self.returned: int | None = None  # the id that `next` gave last, in whatever epoch

    def next(self) -> Item | None:
        """The next item: forward through what was gone back over, then on."""
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
        """What `n` calls of `next` give, up to the first None; the batches are made together."""
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
        """The item that is shown: the last one that `next` or `prev` gave."""
        return self.history[-1 - self.behind] if self.history else None

    def show_next(self, record: Record | bytes) -> None:
        """Show this record next, once, before what was made ahead; it moves no credit and no cursor.

        Raises `InvalidRecord`, `Banned`, and `TooManyWishes` beyond 64. What is pinned already stays in its place.
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
        """A pinned record as an item; it is none of the epoch's stream, so its number is 0."""
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
        """Let a channel rest: its credit and cursor stay, the others share its part. Raises `UnknownChannel`.

        Whether that changed anything. It holds from the next item on, over every reset, until `resume`.
        """
        index_of(self.snapshot, channel)
        if channel in self.resting:
            return False
        self._rest((*self.resting, channel))
        return True

    def resume(self, channel: str) -> bool:
        """Let a channel take part again from the next item on; whether that changed anything."""
        index_of(self.snapshot, channel)
        if channel not in self.resting:
            return False
        self._rest(tuple(name for name in self.resting if name != channel))
        return True

    def ban_artwork(self, id: int, until: int | None = None) -> None:
        """Show this artwork no more, from whatever channel, until it is lifted or `until` is past.

        It leaves pins, pool, lookahead and history. Raises `InvalidParameter`, and `TooManyWishes` beyond 1024.
        """
        if isinstance(id, bool) or not isinstance(id, int) or not 0 <= id <= MASK_64:
            raise unfit("id", id, "artwork_id")
        if id not in self.bans and len(self.bans) >= BANS_MOST:
            raise _too_many("bans", BANS_MOST)
        self.bans[id] = until
        self.pins = deque(raw for raw in self.pins if _id(raw) != id)
        self.generator.pool = new_artwork.without(self.generator.pool, id)
        if any(item.id == id for item in self.lookahead):
            self._make_again(id)
        newer = sum(item.id == id for item in list(self.history)[len(self.history) - self.behind :])
        self.history = deque((item for item in self.history if item.id != id), self.history.maxlen)
        self.behind = max(0, min(self.behind - newer, len(self.history) - 1))

    def lift(self, id: int) -> bool:
        """Let a banned artwork come again. Whether it was banned."""
        if id not in self.bans:
            return False
        del self.bans[id]
        self.generator.barred = [False] * len(self.generator.names)
        self.generator.recount()
        return True

    def expire(self, now: int) -> list[int]:
        """Lift what is banned until now or before; the ids, in the order of their times."""
        over = sorted((until, id) for id, until in self.bans.items() if until is not None and until <= now)
        for _, id in over:
            self.lift(id)
        return [id for _, id in over]

    def _rest(self, resting: Iterable[str]) -> None:
        self.resting = tuple(resting)
        self._make_again(None)

    def _make_again(self, unwanted: int | None) -> None:
        """Take the turns again from what was shown; new artwork that was chosen already stays."""
        generator = self.generator
        shown = as_shown(generator, self.lookahead)
        on = self.history[-1] if self.history else None
        self.lookahead = deque(left_of(self.lookahead, on, unwanted))
        generator.fold()
        generator.rest(self.resting)
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

    def tell(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Keep what a player should know of; the last 64 are kept."""
        self.told += len(diagnostics)
        self.diagnostics.extend(diagnostics)

    def _collect(self) -> None:
        self.tell(self.generator.diagnostics)
        self.generator.diagnostics.clear()


def is_same(item: Item, other: Item) -> bool:
    """Whether both are the same item of one epoch, with the same record; pinned ones are all numbered 0."""
    return (item.epoch_id, item.ordinal, item.channel, item.at, item.raw) == (
        other.epoch_id,
        other.ordinal,
        other.channel,
        other.at,
        other.raw,
    )


def place_of(item: Item, snapshot: Snapshot, epoch_id: int, *, held: bool, waiting: bool) -> int | None:
    """The place on its shelf of an item of this epoch, None for one of no channel; raises `NotShown` for any other.

    `held` says that history or lookahead have the item, `waiting` that its artwork may come up again.
    """
    if not isinstance(item, Item):
        raise refused(NotShown, fault="not_an_item", epoch_id=epoch_id, value=said(item))
    facts = {"epoch_id": item.epoch_id, "ordinal": item.ordinal}
    if item.epoch_id != epoch_id:
        raise refused(NotShown, fault="other_epoch", present=epoch_id, **facts)
    if item.channel is None or item.at is None:
        if waiting:
            return None
        raise refused(NotShown, fault="not_waiting", id=item.id, **facts)
    channel = {there.id: there for there in snapshot.channels}.get(item.channel)
    # The item's place counts what was visible when its epoch began, not what a transaction bans besides.
    if channel is not None and (held or _lies_in(channel, item.at, item.raw)):
        return unmasked(item.at, channel.gone)
    if channel is None:
        followed = [there.id for there in snapshot.channels]
        raise refused(NotShown, fault="not_followed", channel=item.channel, followed=followed, **facts)
    raise refused(NotShown, fault="other_record", channel=item.channel, at=item.at, **facts)


def _lies_in(channel: Channel, at: int, raw: bytes) -> bool:
    """Whether a channel has that record there; for items that the history holds no more."""
    return at < channel.visible.count and channel.visible.record(at)[2] == raw


def _packed(record: Record) -> bytes:
    if not isinstance(record, Record):
        raise InvalidRecord(f"{said(record)} is no record; allowed are records and their 80 bytes", field="record")
    return pack(record)


def _id(raw: bytes) -> int:
    return int.from_bytes(raw[:8], "little")


def _too_many(limit: str, allowed: int) -> TooManyWishes:
    return refused(TooManyWishes, limit=limit, value=allowed + 1, allowed=allowed)


def _count(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise refused(InvalidCount, n=said(n))
    return n
