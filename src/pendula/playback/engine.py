"""The player: a programme that keeps time. Commands in, what is shown out; the one engine of the room.

It holds no records: it asks the outside for each one it needs (`record`), and the answer is kept with the command, so
that a replay shows the same without any file. Time is in milliseconds since the player was made.
"""

from base64 import b64encode
from collections.abc import Iterable
from typing import ClassVar, Self

import msgspec
from msgspec import Struct

from pendula.kernel.bodies import Nobody
from pendula.kernel.canonical import Json, Reader, encode
from pendula.kernel.engine import Outcome, Outside, Reason, Refusal
from pendula.kernel.errors import InputRefused, WrongUsage
from pendula.playback import explain
from pendula.playback.choosing.asked import AskedShelf, record_of
from pendula.playback.choosing.generator import Channel
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.wishes import NotShown
from pendula.playback.events import (
    Advance,
    Ban,
    Banned,
    Blank,
    Change,
    Commands,
    Config,
    Configure,
    Contents,
    Diagnosed,
    EpochBegan,
    Event,
    Follow,
    Insert,
    Inserted,
    Next,
    Pause,
    Paused,
    Prev,
    Refresh,
    Reset,
    Resume,
    Resumed,
    Shown,
    Take,
    Unfollow,
    Update,
    View,
)
from pendula.playback.model import (
    RECORDS_MOST,
    Diagnostic,
    Item,
    item_json,
    unfit,
)
from pendula.playback.saving import ChannelState, broken_invariants, load, save
from pendula.playback.settings import FIRST, NOW, Rules, merged

DWELL_MOST = 86_400_000
TAKE_MOST = 100_000
SHOWN_MOST = 10_000  # changes of picture in one `Advance`; the rest comes with the next
GENERATION_MOST = (1 << 64) - 1
TIME_MOST = (1 << 53) - 1


class OnScreen(Struct, frozen=True):
    """What is on, since when and until when; `left_ms` counts while the player is paused."""

    item: View | None
    started_at: int
    ends_at: int | None
    left_ms: int | None = None


class State(Struct, frozen=True, forbid_unknown_fields=True):
    programme: Json
    now: int
    paused: bool
    screen: OnScreen
    dwell_ms: int


_read_state: Reader[State] = Reader(State)


class Player:
    """Shows one item after the other; satisfies `pendula.kernel.engine.Engine`."""

    room: ClassVar[str] = "playback"
    decisions: ClassVar[int] = 2
    time_unit: ClassVar[str] = "ms"
    commands: ClassVar[object] = Commands
    events: ClassVar[object] = Event
    rules: ClassVar[Rules] = NOW

    def __init__(self, config: Config) -> None:
        self.outside: Outside = Nobody()
        self.programme = Programme((), seed=config.seed, rules=self.rules)
        self.dwell_ms = _dwell(config.dwell_ms)
        self.paused = False
        self._now = 0
        self.screen = OnScreen(None, 0, None)
        self._told = 0

    @classmethod
    def deciding_by(cls, decisions: int) -> type["Player"]:
        """The player for a journal that was written with these decisions; this one where nobody knows them."""
        return {Player.decisions: Player, PlayerOfFirstVersion.decisions: PlayerOfFirstVersion}.get(decisions, cls)

    @classmethod
    def create(cls, config: Json) -> Self:
        try:
            read = msgspec.convert(config, Config)
        except msgspec.ValidationError as trouble:
            raise InputRefused(f"This is not a configuration of a player: {trouble}", config=config) from None
        player = cls(read)
        channels = [Channel(one.id, player._shelf(one)) for one in read.channels]
        player.programme = Programme(channels, read.settings, seed=read.seed, rules=cls.rules)
        player._told = player.programme.told
        return player

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        player = cls.create(config)
        try:
            saved = _read_state(state)
        except msgspec.DecodeError as trouble:
            raise InputRefused(f"This is not a state of a player: {trouble}") from None
        player.programme = load(saved.programme, lambda row: player._shelf(_contents(row)), cls.rules)
        player._now, player.paused, player.screen = saved.now, saved.paused, saved.screen
        player.dwell_ms = _dwell(saved.dwell_ms)
        player._told = player.programme.told
        if broken := list(player.broken()):
            raise InputRefused(f"This is not a state of a player: {', '.join(broken)}", broken=broken)
        return player

    def state(self) -> bytes:
        return encode(State(save(self.programme), self._now, self.paused, self.screen, self.dwell_ms))

    def now(self) -> int:
        return self._now

    def next_due(self) -> int | None:
        return self.screen.ends_at

    def why(self, question: Json) -> Reason:
        """Why an item came up: `{"ordinal": n}` of the present epoch, or `{"now": true}`."""
        epoch_id = self.programme.epoch_id
        match question:
            case {"ordinal": int(ordinal)} if ordinal is not True and ordinal is not False:
                pass
            case {"now": True} if self.screen.item is not None:
                ordinal, epoch_id = self.screen.item.ordinal, self.screen.item.epoch_id
            case {"now": True}:
                return Reason("blank", "Nothing is on.", {"playing": not self.paused})
            case _:
                sentence = 'A player answers {"ordinal": n} and {"now": true}.'
                return Reason("unknown_question", sentence, {"asked": question})
        item = explain.by_ordinal(self.programme, ordinal, epoch_id)
        if item is None:
            sentence = f"Item {ordinal} of epoch {epoch_id} is neither in the history nor made yet."
            return Reason("unknown_item", sentence, {"ordinal": ordinal, "epoch_id": epoch_id})
        return explain.why(self.programme, item)

    def broken(self) -> Iterable[str]:
        yield from broken_invariants(self.programme)
        if self.screen.started_at > self._now or self._now < 0:
            yield "what_is_on_has_begun"
        if self.screen.ends_at is not None and self.screen.ends_at < self._now:
            yield "what_is_on_has_not_ended"
        if self.paused and self.screen.ends_at is not None:
            yield "a_paused_player_has_no_end"

    def apply(self, command: Commands) -> Outcome[Event]:
        epoch = self.programme.epoch_id
        try:
            events, answer = self._do(command)
        except (InputRefused, WrongUsage) as refused:
            details = {name: value for name, value in refused.details.items() if name != "config"}
            return Outcome(refusal=Refusal(refused.code, refused.message, details))
        if self.programme.epoch_id != epoch:
            # Before what the new epoch shows.
            at = next((n for n, event in enumerate(events) if isinstance(event, Shown | Blank)), len(events))
            events = (*events[:at], self._epoch_began(), *events[at:])
        return Outcome((*events, *self._diagnosed()), answer)

    def peek(self, n: int) -> list[View]:
        """Up to `n` items that are generated already."""
        return [self.view(item) for item in self.programme.peek(n)]

    # Inside

    def _do(self, command: Commands) -> tuple[tuple[Event, ...], Json]:
        match command:
            case Next():
                return self._show(self.programme.next(), "next")
            case Prev():
                return self._prev()
            case Take(n):
                return self._take(n)
            case Insert():
                return self._insert(command)
            case Update(changes):
                return self._update(changes)
            case Ban(ordinal):
                return self._ban(ordinal)
            case Pause():
                return self._pause()
            case Resume():
                return self._resume()
            case Advance(to):
                return self._advance(to)
            case _:
                return self._update((command,))

    def _show(self, item: Item | None, cause: str) -> tuple[tuple[Event, ...], Json]:
        if item is None:
            # Without a readable channel a new artwork may still come up: ask again after a while, not at once.
            left = self.dwell_ms if self._something_to_show() else None
            changed = self.screen.item is not None
            self.screen = self._on_screen(None, left)
            return ((Blank(self._now),) if changed else ()), None
        view = self.view(item)
        self.screen = self._on_screen(view, view.dwell_ms)
        return (Shown(view, self._now, self.screen.ends_at, cause),), msgspec.to_builtins(view)

    def _on_screen(self, view: View | None, left_ms: int | None) -> OnScreen:
        if self.paused or left_ms is None:
            return OnScreen(view, self._now, None, left_ms)
        return OnScreen(view, self._now, self._now + left_ms)

    def _prev(self) -> tuple[tuple[Event, ...], Json]:
        item = self.programme.prev()
        return ((), None) if item is None else self._show(item, "prev")

    def _take(self, n: int) -> tuple[tuple[Event, ...], Json]:
        if n > TAKE_MOST:
            raise InputRefused(f"{n} items are too many at once; allowed are {TAKE_MOST}", n=n, allowed=TAKE_MOST)
        items = self.programme.take(n)
        events = self._show(items[-1], "take")[0] if items else ()
        return events, [item_json(item) for item in items]

    def _insert(self, command: Insert) -> tuple[tuple[Event, ...], Json]:
        result = self.programme.nae_insert(record_of(command))
        self._wake()
        return (Inserted(command.id, result.value, self._now),), {"result": result.value}

    def _update(self, changes: Iterable[Change]) -> tuple[tuple[Event, ...], Json]:
        dwell = self.dwell_ms
        with self.programme.update():
            for change in changes:
                self._change(change)
                if isinstance(change, Configure) and change.dwell_ms is not None:
                    dwell = _dwell(change.dwell_ms)
        self.dwell_ms = dwell
        self._wake()
        return (), {"epoch_id": self.programme.epoch_id}

    def _change(self, change: Change) -> None:
        programme = self.programme
        match change:
            case Follow(contents):
                programme.follow(contents.id, self._shelf(contents))
            case Unfollow(channel):
                programme.unfollow(channel)
            case Refresh(contents, total, recent):
                programme.refresh(contents.id, self._shelf(contents))
                self._count(contents.id, total, recent)
            case Configure(settings):
                programme.configure_whole(merged(programme.drafted, settings))
            case Reset(reason):
                programme.reset(reason)

    def _count(self, channel: str, total: int | None, recent: int | None) -> None:
        """The numbers a refresh brought along, for proportional exposure."""
        exposure = self.programme.drafted.exposure
        changed = exposure
        if total is not None:
            changed = msgspec.structs.replace(changed, total_count={**exposure.total_count, channel: total})
        if recent is not None:
            changed = msgspec.structs.replace(changed, recent_count={**exposure.recent_count, channel: recent})
        self.programme.configure(exposure=changed)

    def _ban(self, ordinal: int | None) -> tuple[tuple[Event, ...], Json]:
        wanted, on = ordinal, self.screen.item
        if ordinal is None and on is not None and on.epoch_id == self.programme.epoch_id:
            wanted = on.ordinal
        item = None if wanted is None else explain.by_ordinal(self.programme, wanted)
        if item is None:
            what = "Nothing is on that came up" if wanted is None else f"No item {wanted} is held that came up"
            raise NotShown(f"{what} since the last change; only such an item can be banned", ordinal=wanted)
        self.programme.ban(item)
        banned = (Banned(self.view(item), self._now),)
        if on is None or on.id != item.id:
            return banned, {"epoch_id": self.programme.epoch_id}
        events, _ = self._show(self.programme.next(), "next")
        return (*banned, *events), {"epoch_id": self.programme.epoch_id}

    def _pause(self) -> tuple[tuple[Event, ...], Json]:
        if self.paused:
            return (), {"paused": True}
        ends_at = self.screen.ends_at
        self.paused = True
        left = None if ends_at is None else ends_at - self._now
        self.screen = msgspec.structs.replace(self.screen, ends_at=None, left_ms=left)
        return (Paused(self._now),), {"paused": True}

    def _resume(self) -> tuple[tuple[Event, ...], Json]:
        if not self.paused:
            return (), {"paused": False}
        self.paused = False
        left = self.screen.left_ms
        ends_at = None if left is None else self._now + left
        self.screen = msgspec.structs.replace(self.screen, ends_at=ends_at, left_ms=None)
        self._wake()
        return (Resumed(self._now),), {"paused": False}

    def _advance(self, to: int) -> tuple[tuple[Event, ...], Json]:
        if to > TIME_MOST:
            raise unfit("to", to, f"a time up to {TIME_MOST} ms")
        if to < self._now:
            raise InputRefused(f"It is {self._now}; time does not go back to {to}", now=self._now, to=to)
        events: list[Event] = []
        for _ in range(SHOWN_MOST):
            due = self.next_due()
            if due is None or due > to:
                self._now = to
                break
            self._now = due
            events.extend(self._show(self.programme.next(), "time")[0])
        return tuple(events), {"now": self._now}

    def _wake(self) -> None:
        """Something may be shown now that could not be before."""
        if self.paused or self.screen.item is not None:
            return
        readable = bool(self.programme.lookahead or self.programme.generator.readable)
        if readable or (self.screen.ends_at is None and self._something_to_show()):
            self.screen = OnScreen(None, self._now, self._now)

    def _something_to_show(self) -> bool:
        generator = self.programme.generator
        return bool(self.programme.lookahead or generator.readable or any(generator.pool))

    def _shelf(self, contents: Contents) -> AskedShelf:
        if not 0 <= contents.count <= RECORDS_MOST:
            raise unfit(f"The number of records of {contents.id!r}", contents.count, f"0 to {RECORDS_MOST}")
        if not 0 <= contents.generation <= GENERATION_MOST:
            raise unfit(f"The edition of {contents.id!r}", contents.generation, "0 to 2^64 - 1")
        return AskedShelf(self, contents)

    def _epoch_began(self) -> EpochBegan:
        generator = self.programme.generator
        weights = dict(zip(generator.names, generator.weights, strict=True))
        return EpochBegan(self.programme.epoch_id, self.programme.last_reset, weights, self._now)

    def _diagnosed(self) -> tuple[Diagnosed, ...]:
        fresh = self.programme.told - self._told
        self._told = self.programme.told
        told: list[Diagnostic] = list(self.programme.diagnostics)[-fresh:] if fresh else []
        return tuple(Diagnosed(one.code, one.sentence, one.facts, self._now) for one in told)

    def view(self, item: Item) -> View:
        """An item as it is handed out."""
        return View(
            id=item.id,
            channel=item.channel,
            origin=item.origin.value,
            epoch_id=item.epoch_id,
            ordinal=item.ordinal,
            ts=item.ts,
            kind=item.kind,
            format=item.format,
            flags=item.flags,
            dwell_ms=item.dwell_ms or self.dwell_ms,
            storage_key=b64encode(item.storage_key).decode(),
            payload=b64encode(item.payload).decode(),
            at=item.at,
        )


class PlayerOfFirstVersion(Player):
    """Decides as the first version did: for journals that it wrote, to replay them and to go on with their players."""

    decisions: ClassVar[int] = 1
    rules: ClassVar[Rules] = FIRST


def _contents(row: ChannelState) -> Contents:
    return Contents(row.id, row.count, row.generation)


def _dwell(value: int) -> int:
    if not 1 <= value <= DWELL_MOST:
        raise unfit("dwell_ms", value, f"an integer from 1 to {DWELL_MOST}")
    return value
