"""The oracle: a plain, slow scheduler, written from the requirement document alone.

It imports nothing of the package it checks: its own numbers, fractions, round robin, pool and picks. Every step records
its inputs, so that explanations can be checked as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction

from tests.playback.arithmetic import TWO_64, integers, round_robin, stream


class Fault(Enum):
    """A faulty record: a wrong checksum, or unreadable."""

    DAMAGED = 1
    UNREADABLE = 2


@dataclass(frozen=True)
class Artwork:
    id: int
    ts: int
    kind: int = 0
    format: int = 0
    flags: int = 0
    dwell_ms: int = 0
    storage_key: bytes = bytes(16)
    payload: bytes = bytes(32)


Slot = Artwork | Fault


@dataclass(frozen=True)
class Part:
    """A part of the day: minutes since midnight, the days it starts on (0 is Monday), and its weights."""

    name: str
    start: int
    end: int
    days: frozenset[int]
    manual: Mapping[str, Fraction]

    def holds(self, minute: int) -> bool:
        """Whether it applies at a minute of the week: today's, or yesterday's that lasts beyond midnight."""
        day, time = divmod(minute, 1440)
        if self.start < self.end:
            return day in self.days and self.start <= time < self.end
        return (day in self.days and time >= self.start) or ((day - 1) % 7 in self.days and time < self.end)


@dataclass(frozen=True)
class OracleSettings:
    """The settings."""

    mode: str = "EqE"
    manual: Mapping[str, Fraction] = field(default_factory=dict)
    total: Mapping[str, int] = field(default_factory=dict)
    recent: Mapping[str, int] = field(default_factory=dict)
    alpha: Fraction = Fraction(7, 20)
    p_min: Fraction = Fraction(1, 50)
    p_max: Fraction = Fraction(2, 5)
    pick: str = "recency"
    r: int = 64
    history: int = 32
    lookahead: int = 32
    nae: bool = True
    cap: int = 32
    preserve: bool = False
    refresh: str = "reset"
    parts: tuple["Part", ...] = ()


@dataclass(frozen=True)
class Followed:
    """A channel: its records, newest first, and the places that are banned."""

    name: str
    slots: tuple[Slot, ...]
    gone: frozenset[int] = frozenset()

    def visible(self) -> list[tuple[int, Slot]]:
        return [(place, slot) for place, slot in enumerate(self.slots) if place not in self.gone]


@dataclass
class Seen:
    """The inputs of the generator for an item."""

    pool: list[tuple[int, int, int]]  # id, number, priority in 64ths; highest priority first, then the oldest
    weights: list[int]
    draw: int | None = None
    step: int | None = None
    first: list[int] = field(default_factory=list)  # credits before the first step of the item
    credits: list[int] = field(default_factory=list)  # before the step that chose the channel
    drawn: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Shown:
    work: Artwork
    channel: str | None
    channel_index: int | None
    at: int | None
    place: int | None  # in the channel with the banned records counted
    origin: str
    epoch: int
    ordinal: int
    seen: Seen


@dataclass
class Pooled:
    work: Artwork
    priority: int
    number: int


def exposure(settings: OracleSettings, names: Sequence[str]) -> list[Fraction]:
    """The weight of each active channel."""
    n = len(names)
    equal = [Fraction(1, n) for _ in names]
    if settings.mode == "EqE":
        return equal
    if settings.mode == "MaE":
        wanted = [max(Fraction(0), settings.manual.get(name, Fraction(0))) for name in names]
        return [part / sum(wanted) for part in wanted] if sum(wanted) else equal
    total, recent = ([counts.get(name, 0) for name in names] for counts in (settings.total, settings.recent))
    clamped = []
    for t, r in zip(total, recent, strict=True):
        p_total = Fraction(t, sum(total)) if sum(total) else Fraction(0)
        p_recent = Fraction(r, sum(recent)) if sum(recent) else Fraction(0)
        p_raw = (1 - settings.alpha) * p_total + settings.alpha * p_recent
        clamped.append(min(max(p_raw, settings.p_min), settings.p_max))
    return [part / sum(clamped) for part in clamped]


class Oracle:
    def __init__(self, channels: Sequence[Followed], settings: OracleSettings, seed: int) -> None:
        self.seed, self.epoch = seed, 0
        self.channels, self.settings = list(channels), settings
        self.history: list[Shown] = []
        self.behind = 0
        self.out: set[str] = set()
        self.tally: dict[str, int] = {}
        self.per_channel: dict[str, int] = {}
        self._banned: set[tuple[str | None, int]] = set()
        self._draft: tuple[list[Followed], OracleSettings] | None = None
        self._forced = False
        self._chances: set[str] = set()
        self._anew = False
        self.pins: list[Artwork] = []
        self.bans: set[int] = set()
        self.paused_channels: set[str] = set()
        self.minute: int | None = None
        self.part: str | None = None
        self._begin()

    returned: int | None = None  # the last artwork that `next` returned, in any epoch

    def _begin(self) -> None:
        self.shelves = [channel.visible() for channel in self.channels]
        self.active = [
            index for index, shelf in enumerate(self.shelves) if shelf and self.channels[index].name not in self.out
        ]
        self.barred: set[str] = set()
        self._weigh()
        self.credits = [0] * len(self.channels)
        self.cursors = [0] * len(self.channels)
        self.lookahead: list[Shown] = []
        self.pool: list[Pooled] = []
        self.inserted = self.ordinal = self.steps = 0
        self.last_id: int | None = None
        self.nae_stream = stream(self.seed, self.epoch, 0x4E414500)
        self.pick_stream = stream(self.seed, self.epoch, 0x5049434B)

    def _part(self, settings: OracleSettings) -> str | None:
        holding = [part.name for part in settings.parts if self.minute is not None and part.holds(self.minute)]
        return holding[0] if holding else None

    def _weigh(self) -> None:
        settings = self.settings
        for part in settings.parts:
            if part.name == self.part:
                settings = replace(settings, mode="MaE", manual=part.manual)
        names = [self.channels[index].name for index in self.active]
        shares = exposure(settings, names) if names else []
        playing = [
            Fraction(0) if name in self.paused_channels else share for name, share in zip(names, shares, strict=True)
        ]
        if not sum(playing):
            playing = [Fraction(name not in self.paused_channels) for name in names]
        self.weights = [0] * len(self.channels)
        if sum(playing):
            weights = integers([part / sum(playing) for part in playing])
            for index, weight in zip(self.active, weights, strict=True):
                self.weights[index] = weight

    def count(self, what: str) -> None:
        self.tally[what] = self.tally.get(what, 0) + 1

    # Calls of a player

    def next(self) -> Shown | None:
        item = self._next()
        self.returned = item.work.id if item is not None else self.returned
        return item

    def _next(self) -> Shown | None:
        if self.behind:
            self.behind -= 1
            return self.history[-1 - self.behind]
        if self.pins:
            item = self._as_item(self.pins.pop(0))
            self.history.append(item)
            del self.history[: -self.settings.history]
            return item
        if len(self.lookahead) < self.settings.lookahead:
            self._batch()
        if not self.lookahead:
            return None
        item = self.lookahead.pop(0)
        self.history.append(item)
        del self.history[: -self.settings.history]
        return item

    def prev(self) -> Shown | None:
        if self.behind + 1 >= len(self.history):
            return None
        self.behind += 1
        return self.history[-1 - self.behind]

    def peek(self, n: int) -> list[Shown]:
        return [*map(self._as_item, self.pins), *self.lookahead][:n]

    def _as_item(self, work: Artwork) -> Shown:
        return Shown(work, None, None, None, None, "pinned", self.epoch, 0, Seen([], []))

    # Viewer controls

    def show_next(self, work: Artwork) -> None:
        ids = [pinned.id for pinned in self.pins]
        if work.id in ids:
            self.pins[ids.index(work.id)] = work
        else:
            self.pins.append(work)

    def rest(self, name: str) -> None:
        if name not in self.paused_channels:
            self.paused_channels.add(name)
            self._regenerate(None)

    def wake(self, name: str) -> None:
        if name in self.paused_channels:
            self.paused_channels.remove(name)
            self._regenerate(None)

    def ban_id(self, id: int) -> None:
        self.bans.add(id)
        self.pins = [work for work in self.pins if work.id != id]
        self.pool = [entry for entry in self.pool if entry.work.id != id]
        if any(item.work.id == id for item in self.lookahead):
            self._regenerate(id)
        on = len(self.history) - self.behind
        newer = [item for item in self.history[on:] if item.work.id != id]
        self.history = [item for item in self.history[:on] if item.work.id != id] + newer
        self.behind = max(0, min(len(newer), len(self.history) - 1))

    def lift(self, id: int) -> None:
        if id in self.bans:
            self.bans.remove(id)
            self.barred = set()

    def time_is(self, minute: int) -> None:
        self.minute = minute
        if self._part(self.settings) != self.part:
            with self.update():
                self._forced = True

    def _turns(self) -> tuple[list[int], list[int]]:
        """Credits and cursors at the last shown item."""
        credits, cursors = list(self.credits), list(self.cursors)
        made = [item for item in self.lookahead if item.seen.step is not None]
        if made:
            credits = list(made[0].seen.first)
        if self.settings.pick == "recency":
            for index in range(len(self.channels)):
                places = [item.at for item in self.lookahead if item.channel_index == index]
                if places:
                    assert places[0] is not None
                    cursors[index] = places[0]
        return credits, cursors

    def _regenerate(self, unwanted: int | None) -> None:
        self.credits, self.cursors = self._turns()
        left: list[Shown] = []
        for item in self.lookahead:
            last = [*self.history, *left][-1].work.id if self.history or left else None
            if item.origin == "nae" and item.work.id not in (last, unwanted):
                left.append(item)
        self.lookahead = left
        self._weigh()
        shown = [*self.history[-1:], *left]
        self.last_id = shown[-1].work.id if shown else None

    def take(self, n: int) -> list[Shown]:
        taken: list[Shown] = []
        while len(taken) < n and (item := self.next()) is not None:
            taken.append(item)
        return taken

    def nae_insert(self, work: Artwork | None) -> str:
        """None is an invalid record."""
        if not self.settings.nae:
            return "DISABLED"
        if work is None:
            return "REJECTED"
        if work.id in self.bans:
            return "BANNED"
        for entry in self.pool:
            if entry.work.id == work.id:
                entry.work, entry.priority = work, 32
                self.count("merges")
                return "MERGED"
        self.pool.append(Pooled(work, 32, self.inserted))
        self.inserted += 1
        self.count("inserts")
        if len(self.pool) > self.settings.cap:
            self.pool.remove(min(self.pool, key=lambda entry: (entry.priority, entry.number)))
            self.count("evictions")
        return "INSERTED"

    # Changes of the snapshot

    @contextmanager
    def update(self) -> Iterator[None]:
        if self._draft is not None:
            yield
            return
        self._draft, self._forced, self._chances = (list(self.channels), self.settings), False, set()
        self._anew = False
        try:
            yield
            channels, settings = self._draft
            if (
                self._forced
                or channels != self.channels
                or settings != self.settings
                or self._part(settings) != self.part
            ):
                self._reset(channels, settings)
            else:
                gone = {id for name, id in self._banned if name is None}
                self.pool = [entry for entry in self.pool if entry.work.id not in gone]
                self.lookahead = [item for item in self.lookahead if item.place is not None or item.work.id not in gone]
        finally:
            self._draft, self._banned = None, set()

    def _kept(self, channels: list[Followed], settings: OracleSettings) -> tuple[list[int], list[int]]:
        """Credits and cursors for other channels: those of earlier channels are taken at the last shown item."""
        shown_credits, shown_cursors = self._turns()
        before = {channel.name: index for index, channel in enumerate(self.channels)}
        credits = [shown_credits[before[one.name]] if one.name in before else 0 for one in channels]
        cursors = [0] * len(channels)
        for index, channel in enumerate(channels):
            if settings.pick == "recency" and channel.name in before:
                old = self.channels[before[channel.name]]
                place = shown_cursors[before[channel.name]]
                next_one = old.visible()[place][1] if old.visible() else None
                works = [slot for _, slot in channel.visible()]
                if channel == old:
                    cursors[index] = place
                elif isinstance(next_one, Artwork):
                    same = [(work.ts, work.id) if isinstance(work, Artwork) else None for work in works]
                    key = (next_one.ts, next_one.id)
                    cursors[index] = same.index(key) if key in same else 0
        lacking = -sum(credits)
        for index in range(len(credits)):
            credits[index] += lacking // len(credits) + (index < lacking % len(credits))
        return credits, cursors

    def _reset(self, channels: list[Followed], settings: OracleSettings) -> None:
        kept = self._kept(channels, settings) if settings.refresh == "keep" and not self._anew else None
        self.out = {name for name in self.out if any(c.name == name for c in channels)} - self._chances
        self.channels, self.settings, self.part = channels, settings, self._part(settings)
        self.paused_channels = {name for name in self.paused_channels if any(c.name == name for c in channels)}
        followed = {channel.name for channel in channels}
        self.per_channel = {name: count for name, count in self.per_channel.items() if name in followed}
        self.epoch = (self.epoch + 1) % TWO_64
        left = [old for old in self.history if (old.channel, old.work.id) not in self._banned]
        self.history = left[-settings.history :] if settings.preserve else []
        self.behind = min(self.behind, max(0, len(self.history) - 1))
        self.count("resets")
        self._begin()
        if kept is not None:
            self.credits, self.cursors = kept
        self.last_id = self.returned

    def reset(self) -> None:
        with self.update():
            self._forced = self._anew = True

    def configure(self, settings: OracleSettings) -> None:
        with self.update():
            assert self._draft is not None
            self._draft = (self._draft[0], settings)

    def follow(self, name: str, slots: tuple[Slot, ...]) -> None:
        with self.update():
            assert self._draft is not None
            self._draft[0].append(Followed(name, slots))
            self._chances.add(name)

    def unfollow(self, name: str) -> None:
        with self.update():
            assert self._draft is not None
            self._draft[0][:] = [channel for channel in self._draft[0] if channel.name != name]

    def refresh(self, name: str, slots: tuple[Slot, ...]) -> None:
        with self.update():
            assert self._draft is not None
            channels = self._draft[0]
            index = [channel.name for channel in channels].index(name)
            if name in self.out:
                self._forced = True
            elif channels[index].slots == slots:
                return
            channels[index] = Followed(name, slots)
            self._chances.add(name)

    def can_ban(self, item: Shown) -> bool:
        """Whether a ban of an item of this epoch hides anything: a record of its channel, or artwork still held."""
        if item.place is not None:
            return True
        coming = [entry.work.id for entry in self.pool]
        coming += [ahead.work.id for ahead in self.lookahead if ahead.place is None]
        held = [(old.epoch, old.ordinal, old.work) for old in self.history]
        return item.work.id in coming or (item.epoch, item.ordinal, item.work) in held

    def ban(self, item: Shown) -> None:
        with self.update():
            assert self._draft is not None
            self._banned.add((item.channel, item.work.id))
            if item.place is None or item.channel in self._chances:
                return
            channels = self._draft[0]
            index = [channel.name for channel in channels].index(item.channel or "")
            channels[index] = replace(channels[index], gone=channels[index].gone | {item.place})

    # Generation

    def _readable(self) -> list[int]:
        silent = self.out | self.barred | self.paused_channels
        return [index for index in self.active if self.channels[index].name not in silent]

    def _batch(self) -> None:
        if self._readable() or self.pool:
            self.count("batches")
        for _ in range(self.settings.lookahead):
            item = self._generate()
            if item is not None:
                self.lookahead.append(item)
                self.last_id = item.work.id
                self.count(item.origin)
                if item.channel is not None:
                    self.per_channel[item.channel] = self.per_channel.get(item.channel, 0) + 1

    def _numbered(self, work: Artwork, where: tuple[int, int] | None, origin: str, seen: Seen) -> Shown:
        self.ordinal += 1
        if where is None:
            return Shown(work, None, None, None, None, origin, self.epoch, self.ordinal, seen)
        index, at = where
        place, name = self.shelves[index][at][0], self.channels[index].name
        return Shown(work, name, index, at, place, origin, self.epoch, self.ordinal, seen)

    def _generate(self) -> Shown | None:
        ranked = sorted(self.pool, key=lambda entry: (-entry.priority, entry.number))
        seen = Seen([(entry.work.id, entry.number, entry.priority) for entry in ranked], self.weights)
        if not ranked:
            return self._base("base", seen)
        draw = seen.draw = self.nae_stream.draw()
        chance = min(64, sum(entry.priority for entry in ranked))
        if draw >= chance * 2**26:
            return self._base("base", seen)
        chosen = ranked[0]
        chosen.priority //= 2
        if chosen.priority < 2:
            self.pool.remove(chosen)
            self.count("expiries")
        if chosen.work.id == self.last_id:
            item = self._base("nae_fallback", seen)
            if item is not None:
                return item
        return self._numbered(chosen.work, None, "nae", Seen(seen.pool, seen.weights, draw))

    def _base(self, origin: str, seen: Seen) -> Shown | None:
        seen.first = list(self.credits)
        for _ in range(1 + len(self.channels)):
            if not self._readable():
                return None
            seen.credits = list(self.credits)
            index = round_robin(self.credits, self.weights)
            self.steps += 1
            seen.step = self.steps
            item = self._pick(index, origin, seen)
            if item is not None:
                return item
            seen.unreadable.append(index)
        seen.step, seen.credits = None, []
        for index in self.active:
            item = self._pick(index, origin, seen)
            if item is not None:
                return item
        return None

    def _pick(self, index: int, origin: str, seen: Seen) -> Shown | None:
        name, shelf = self.channels[index].name, self.shelves[index]
        if name in self.out | self.barred | self.paused_channels:
            return None
        random = self.settings.pick == "random"
        span = min(self.settings.r, len(shelf)) if random else len(shelf)
        patience = 0 if span == 1 else 5 if random else 2
        seen.drawn, seen.skipped, seen.damaged = [], [], []
        banned = 0
        while True:
            at = self.pick_stream.below(span) if random else self.cursors[index]
            slot = shelf[at][1]
            if slot is Fault.UNREADABLE:
                self.out.add(name)
                return None
            if not random:
                self.cursors[index] = (at + 1) % len(shelf)
            seen.drawn += [at] if random and span > 1 else []
            if slot is Fault.DAMAGED:
                seen.damaged.append(at)
                if len(seen.damaged) == 3:
                    self.out.add(name)
                    return None
                continue
            assert isinstance(slot, Artwork)
            if slot.id in self.bans:
                banned += 1
                passed = banned + len(seen.damaged)
                if (random and span > 1 and passed < 64) or (not random and (passed < span or seen.skipped)):
                    continue
                others = [*range(at + 1, span), *range(at)] if random else []
                works = [(place, shelf[place][1]) for place in others]
                allowed = [(p, work) for p, work in works if isinstance(work, Artwork) and work.id not in self.bans]
                if not allowed:
                    self.barred.add(name)
                    return None
                at, slot = allowed[0]
            elif slot.id == self.last_id and len(seen.skipped) < patience:
                seen.skipped.append(at)
                continue
            if slot.id == self.last_id:
                self.count("repeats")
            return self._numbered(slot, (index, at), origin, seen)
