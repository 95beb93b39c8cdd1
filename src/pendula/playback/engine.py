"""The player: a programme that keeps time, with a screen; the engine of the scheduler.

It holds no records: it asks the outside for each one (`record`), in base64, and the answer is journalled with the
command, so that a replay needs no files. Invalid bytes never raise: a record is then unreadable, and an insertion is
rejected. Time is in milliseconds since the player was created; only commands advance it.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Protocol, Self

import msgspec
from msgspec import Struct

from pendula.kernel.canonical import Json, Reader, encode
from pendula.kernel.engine import NoOutside, Outcome, Outside, Reason, Refusal
from pendula.kernel.errors import InputRefused, WrongUsage
from pendula.playback import explain, messages
from pendula.playback.choosing.dayparts import WallClock, wall_clock
from pendula.playback.choosing.programme import NotShown, Programme
from pendula.playback.choosing.records import UNREADABLE, Channel, Row, Shelf, sound, trusted
from pendula.playback.messages import (
    Change,
    Commands,
    Config,
    Contents,
    Event,
    RecordCommand,
    Untimed,
    View,
)
from pendula.playback.model import (
    KEY_BYTES,
    MASK_64,
    PAYLOAD_BYTES,
    RECORDS_MOST,
    Diagnostic,
    InvalidRecord,
    Item,
    Record,
    invalid_parameter,
    item_json,
    refused,
)
from pendula.playback.saving import ChannelState, broken_invariants, load, save
from pendula.playback.sentences import sentence_of
from pendula.playback.settings import explain_validation, merge_changes


class Asking(Protocol):
    """An engine; the driver sets another outside for every command."""

    outside: Outside


class OutsideShelf:
    """The records of a channel, each asked of the outside."""

    __slots__ = ("_asking", "channel", "count", "generation")

    def __init__(self, asking: Asking, contents: Contents) -> None:
        self._asking = asking
        self.channel = contents.id
        self.count = contents.count
        self.generation = contents.generation

    @trusted
    def run(self, at: int) -> Iterator[Row]:
        yield self.record(at)

    @trusted
    def record(self, at: int) -> Row:
        question: Json = {"at": at, "channel": self.channel, "generation": self.generation}
        answer = self._asking.outside.ask("record", question)
        if not isinstance(answer, str):
            return UNREADABLE
        try:
            raw = b64decode(answer, validate=True)
        except (Base64Error, ValueError):
            return UNREADABLE
        return at, int.from_bytes(raw[:8], "little") if sound(raw) else None, raw


class FromShelves:
    """Answers the questions of a player from shelves; null for a record that cannot be read. Never raises."""

    def __init__(self, channels: Iterable[Channel]) -> None:
        self._channels = {channel.id: channel.shelf for channel in channels}

    def put(self, channel: Channel) -> None:
        """Replace or add a channel; then send the player `Refresh` or `Follow`."""
        self._channels[channel.id] = channel.shelf

    def ask(self, name: str, question: Json) -> Json:
        match question:
            case {"channel": str(channel), "generation": int(generation), "at": int(at)} if name == "record":
                shelf = self._channels.get(channel)
                if shelf is None or shelf.generation != generation or not 0 <= at < shelf.count:
                    return None
                place, _, raw = shelf.record(at)
                return None if place is None else b64encode(raw).decode()
        return None


def record_of(command: RecordCommand) -> Record | bytes:
    """The record of a new artwork; empty bytes, which are rejected, if a field is invalid."""
    if command.id is None or not 0 <= command.id <= MASK_64:
        return b""
    try:
        key = bytes(KEY_BYTES) if command.storage_key is None else b64decode(command.storage_key, validate=True)
        payload = bytes(PAYLOAD_BYTES) if command.payload is None else b64decode(command.payload, validate=True)
    except (Base64Error, ValueError):
        return b""
    numbers = (command.kind, command.format, command.flags, command.dwell_ms, command.modified_ts)
    return Record(command.id, command.ts, *numbers, key, payload)


def record_to_show(command: RecordCommand) -> Record:
    """The record to show next; raises `InvalidRecord`."""
    record = record_of(command)
    if isinstance(record, bytes):
        bad_id = command.id is None or not 0 <= command.id <= MASK_64
        raise refused(InvalidRecord, field="id" if bad_id else "payload")
    return record


DWELL_MOST = 86_400_000


class OnScreen(Struct, frozen=True):
    """The current item and its times; `left_ms` is set while the player is paused."""

    item: View | None
    started_at: int
    ends_at: int | None
    left_ms: int | None = None


def dwell_of(value: int) -> int:
    if not 1 <= value <= DWELL_MOST:
        raise invalid_parameter("dwell_ms", value, 1, DWELL_MOST)
    return value


TAKE_MOST = 100_000
SHOWN_MOST = 10_000  # items shown in one `Advance`; the next one continues
GENERATION_MOST = (1 << 64) - 1
TIME_MOST = (1 << 53) - 1


class State(Struct, frozen=True, forbid_unknown_fields=True):
    programme: Json
    now: int
    paused: bool
    screen: OnScreen
    dwell_ms: int
    clock: WallClock | None


_read_state: Reader[State] = Reader(State)


class Player:
    """Implements `pendula.kernel.engine.Engine`."""

    scheduler: ClassVar[str] = "playback"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "ms"
    commands: ClassVar[object] = Commands
    events: ClassVar[object] = Event

    def __init__(self, config: Config) -> None:
        self.programme = Programme((), seed=config.seed)
        self.dwell_ms = dwell_of(config.dwell_ms)
        self.paused = False
        self.screen = OnScreen(None, 0, None)
        self._now = 0
        self.outside: Outside = NoOutside()
        self.clock: WallClock | None = None
        self._diagnosed_before = 0  # diagnostics that are events already

    @classmethod
    def create(cls, config: Json, shelves: Mapping[str, Shelf] | None = None) -> Self:
        """With `shelves` the player reads the records itself; its journal could not be replayed without them."""
        try:
            read = msgspec.convert(config, Config)
        except msgspec.ValidationError as trouble:
            words = explain_validation(trouble, config, "the configuration").message
            raise InputRefused(f"Invalid configuration of a player: {words}", config=config) from None
        player = cls(read)
        channels = [Channel(one.id, shelves[one.id] if shelves else player._shelf(one)) for one in read.channels]
        player.programme = Programme(channels, read.settings, seed=read.seed)
        player._diagnosed_before = player.programme.diagnosed
        return player

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        player = cls.create(config)
        try:
            saved = _read_state(state)
        except msgspec.DecodeError as trouble:
            raise InputRefused(f"Invalid state of a player: {trouble}") from None
        player.programme = load(saved.programme, lambda row: player._shelf(_contents(row)))
        player._now, player.paused, player.screen = saved.now, saved.paused, saved.screen
        player.dwell_ms, player.clock = dwell_of(saved.dwell_ms), saved.clock
        player._diagnosed_before = player.programme.diagnosed
        if broken := list(player.broken()):
            raise InputRefused(f"Invalid state of a player: {', '.join(broken)}", broken=broken)
        return player

    def state(self) -> bytes:
        state = State(save(self.programme), self._now, self.paused, self.screen, self.dwell_ms, self.clock)
        return encode(state)

    def now(self) -> int:
        return self._now

    def next_due(self) -> int | None:
        bans = (until for until in self.programme.bans.values() if until is not None)
        parts = self.programme.snapshot.settings.day_parts
        daytime = None if self.clock is None else self.clock.next_change(parts, self._now)
        return min((due for due in (self.screen.ends_at, daytime, *bans) if due is not None), default=None)

    @staticmethod
    def sentence(code: str, facts: Mapping[str, Json]) -> str:
        return sentence_of(code, facts)

    def why(self, question: Json) -> Reason:
        """Why an item was selected: `{"ordinal": n}` of the present epoch, or `{"now": true}`."""
        epoch_id = self.programme.epoch_id
        match question:
            case {"ordinal": int(ordinal)} if ordinal is not True and ordinal is not False:
                pass
            case {"now": True} if self.screen.item is not None:
                return explain.why_on(self.programme, self.screen.item)
            case {"now": True}:
                return Reason("blank", "The screen is blank.", {"playing": not self.paused})
            case _:
                sentence = 'Unknown question; a player answers {"ordinal": n} and {"now": true}.'
                return Reason("unknown_question", sentence, {"asked": question})
        item = explain.by_ordinal(self.programme, ordinal, epoch_id)
        if item is None:
            sentence = f"Neither history nor lookahead holds item {ordinal} of epoch {epoch_id}."
            return Reason("unknown_item", sentence, {"ordinal": ordinal, "epoch_id": epoch_id})
        return explain.why(self.programme, item)

    def broken(self) -> Iterable[str]:
        yield from broken_invariants(self.programme)
        if self.screen.started_at > self._now or self._now < 0:
            yield "current_item_has_begun"
        if self.screen.ends_at is not None and self.screen.ends_at < self._now:
            yield "current_item_has_not_ended"
        if self.paused and self.screen.ends_at is not None:
            yield "a_paused_player_has_no_end"

    def apply(self, command: Commands) -> Outcome[Event]:
        epoch, before = self.programme.epoch_id, self._now
        try:
            if isinstance(command, messages.At):
                self._go_to(command.at)
                command = command.command
            events, answer = self._do(command)
        except (InputRefused, WrongUsage) as error:
            self._now = before
            return Outcome(refusal=Refusal(error.code, error.details))
        if self.programme.epoch_id != epoch and not any(isinstance(event, messages.EpochBegan) for event in events):
            # Before the first item of the new epoch.
            at = next(
                (n for n, event in enumerate(events) if isinstance(event, messages.Shown | messages.Blank)), len(events)
            )
            events = (*events[:at], self._epoch_began(), *events[at:])
        return Outcome((*events, *self._diagnosed()), answer)

    def peek(self, n: int) -> list[View]:
        """Up to `n` items of the lookahead, pinned ones first."""
        return [self.view(item) for item in self.programme.peek(n)]

    def _do(self, command: Untimed) -> tuple[tuple[Event, ...], Json]:
        match command:
            case messages.Next():
                return self.show(self.programme.next(), "next")
            case messages.Prev():
                return self._prev()
            case messages.Take(n):
                return self._take(n)
            case messages.Insert():
                return self._insert(command)
            case messages.Update(changes):
                return self._update(changes)
            case messages.Ban(ordinal):
                return self._ban(ordinal)
            case messages.Pause():
                return self.pause()
            case messages.Resume():
                return self.resume()
            case messages.Advance(to):
                return self._advance(to)
            case messages.ShowNext(id):
                self.programme.show_next(record_to_show(command))
                self.wake()
                pinned = self.programme.peek(len(self.programme.pins))
                return (messages.Pinned(id or 0, self._now),), {"pinned": [item.id for item in pinned]}
            case messages.PauseChannel(channel):
                changed = self.programme.pause(channel)
                paused = messages.ChannelPaused(channel, self._weights(), self._now)
                return (paused,) if changed else (), {"paused_channels": list(self.programme.paused_channels)}
            case messages.ResumeChannel(channel):
                changed = self.programme.resume(channel)
                self.wake()
                resumed = messages.ChannelResumed(channel, self._weights(), self._now)
                return (resumed,) if changed else (), {"paused_channels": list(self.programme.paused_channels)}
            case messages.BanArtwork():
                return self._ban_artwork(command)
            case messages.Lift(id):
                lifted = (messages.Lifted(id, self._now),) if self.programme.lift(id) else ()
                self.wake()
                return lifted, {"banned": self._banned()}
            case messages.Clock(utc_ms, offsets):
                self.clock = wall_clock(self._now, utc_ms, offsets)
                self.programme.time_is(self.clock.minute(self._now))
                return (), {"epoch_id": self.programme.epoch_id, "day_part": self.programme.snapshot.part}
            case _:
                return self._update((command,))

    def show(self, item: Item | None, cause: str) -> tuple[tuple[Event, ...], Json]:
        if item is None:
            # Without a readable channel new artwork may still be selected: try again after the dwell time.
            left = self.dwell_ms if self.something_to_show() else None
            changed = self.screen.item is not None
            self.screen = self._on_screen(None, left)
            return ((messages.Blank(self._now),) if changed else ()), None
        view = self.view(item)
        self.screen = self._on_screen(view, view.dwell_ms)
        return (messages.Shown(view, self._now, self.screen.ends_at, cause),), msgspec.to_builtins(view)

    def _on_screen(self, view: View | None, left_ms: int | None) -> OnScreen:
        if self.paused or left_ms is None:
            return OnScreen(view, self._now, None, left_ms)
        return OnScreen(view, self._now, self._now + left_ms)

    def pause(self) -> tuple[tuple[Event, ...], Json]:
        if self.paused:
            return (), {"paused": True}
        ends_at = self.screen.ends_at
        self.paused = True
        left = None if ends_at is None else ends_at - self._now
        self.screen = msgspec.structs.replace(self.screen, ends_at=None, left_ms=left)
        return (messages.Paused(self._now),), {"paused": True}

    def resume(self) -> tuple[tuple[Event, ...], Json]:
        if not self.paused:
            return (), {"paused": False}
        self.paused = False
        left = self.screen.left_ms
        ends_at = None if left is None else self._now + left
        self.screen = msgspec.structs.replace(self.screen, ends_at=ends_at, left_ms=None)
        self.wake()
        return (messages.Resumed(self._now),), {"paused": False}

    def wake(self) -> None:
        """End a blank screen if there may be something to show now."""
        if self.paused or self.screen.item is not None:
            return
        programme = self.programme
        readable = bool(programme.pins or programme.lookahead or programme.generator.readable)
        if readable or (self.screen.ends_at is None and self.something_to_show()):
            self.screen = OnScreen(None, self._now, self._now)

    def something_to_show(self) -> bool:
        programme, generator = self.programme, self.programme.generator
        return bool(programme.pins or programme.lookahead or generator.readable or any(generator.pool))

    def view(self, item: Item) -> View:
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

    def _ban_artwork(self, command: messages.BanArtwork) -> tuple[tuple[Event, ...], Json]:
        for_ms = command.for_ms
        if for_ms is not None and not 1 <= for_ms <= TIME_MOST - self._now:
            raise invalid_parameter("for_ms", for_ms, 1, TIME_MOST - self._now)
        until = None if for_ms is None else self._now + for_ms
        self.programme.ban_artwork(command.id, until)
        events: tuple[Event, ...] = (messages.ArtworkBanned(command.id, until, self._now),)
        if self.screen.item is not None and self.screen.item.id == command.id:
            events += self.show(self.programme.next(), "next")[0]
        return events, {"banned": self._banned()}

    def _banned(self) -> list[Json]:
        return [{"id": id, "until": until} for id, until in self.programme.bans.items()]

    def _weights(self) -> dict[str, int]:
        return dict(zip(self.programme.generator.names, self.programme.generator.weights, strict=True))

    def _prev(self) -> tuple[tuple[Event, ...], Json]:
        item = self.programme.prev()
        return ((), None) if item is None else self.show(item, "prev")

    def _take(self, n: int) -> tuple[tuple[Event, ...], Json]:
        if n > TAKE_MOST:
            raise refused(InputRefused, n=n, allowed=TAKE_MOST)
        items = self.programme.take(n)
        events = self.show(items[-1], "take")[0] if items else ()
        return events, [item_json(item) for item in items]

    def _insert(self, command: messages.Insert) -> tuple[tuple[Event, ...], Json]:
        result = self.programme.nae_insert(record_of(command))
        self.wake()
        return (messages.Inserted(command.id, result.value, self._now),), {"result": result.value}

    def _update(self, changes: Iterable[Change]) -> tuple[tuple[Event, ...], Json]:
        dwell = self.dwell_ms
        with self.programme.update():
            for change in changes:
                self._change(change)
                if isinstance(change, messages.Configure) and change.dwell_ms is not None:
                    dwell = dwell_of(change.dwell_ms)
        self.dwell_ms = dwell
        self.wake()
        return (), {"epoch_id": self.programme.epoch_id}

    def _change(self, change: Change) -> None:
        programme = self.programme
        match change:
            case messages.Follow(contents):
                programme.follow(contents.id, self._shelf(contents))
            case messages.Unfollow(channel):
                programme.unfollow(channel)
            case messages.Refresh(contents, total, recent):
                programme.refresh(contents.id, self._shelf(contents))
                self._count(contents.id, total, recent)
            case messages.Configure(settings):
                programme.configure_whole(merge_changes(programme.drafted, settings))
            case messages.Reset(reason):
                programme.reset(reason)

    def _count(self, channel: str, total: int | None, recent: int | None) -> None:
        """Set the counts of a refreshed channel, for proportional exposure."""
        exposure = self.programme.drafted.exposure
        changed = exposure
        if total is not None:
            changed = msgspec.structs.replace(changed, total_count={**exposure.total_count, channel: total})
        if recent is not None:
            changed = msgspec.structs.replace(changed, recent_count={**exposure.recent_count, channel: recent})
        self.programme.configure(exposure=changed)

    def _ban(self, ordinal: int | None) -> tuple[tuple[Event, ...], Json]:
        banned_ordinal, on = ordinal, self.screen.item
        if ordinal is None and on is not None and on.epoch_id == self.programme.epoch_id:
            banned_ordinal = on.ordinal
        item = None if banned_ordinal is None else explain.by_ordinal(self.programme, banned_ordinal)
        if item is None:
            raise refused(NotShown, ordinal=banned_ordinal, fault="blank" if banned_ordinal is None else "not_held")
        self.programme.ban(item)
        banned = (messages.Banned(self.view(item), self._now),)
        if on is None or on.id != item.id:
            return banned, {"epoch_id": self.programme.epoch_id}
        events, _ = self.show(self.programme.next(), "next")
        return (*banned, *events), {"epoch_id": self.programme.epoch_id}

    def _go_to(self, at: int) -> None:
        """Advance to a time before which nothing is due, so that a refused command can be undone."""
        self._check_time(at)
        due = self.next_due()
        if at > self._now and due is not None and due <= at:
            raise refused(InputRefused, due=due, at=at)
        self._now = at

    def _check_time(self, to: int) -> None:
        if to > TIME_MOST:
            raise invalid_parameter("to", to, self._now, TIME_MOST)
        if to < self._now:
            raise refused(InputRefused, now=self._now, to=to)

    def _advance(self, to: int) -> tuple[tuple[Event, ...], Json]:
        self._check_time(to)
        events: list[Event] = []
        for _ in range(SHOWN_MOST):
            due = self.next_due()
            if due is None or due > to:
                self._now = to
                break
            self._now = due
            events.extend(self._due())
        return tuple(events), {"now": self._now}

    def _due(self) -> tuple[Event, ...]:
        """Do what is due now: bans end, a day part begins, the next item is shown."""
        events: tuple[Event, ...] = tuple(messages.Lifted(id, self._now) for id in self.programme.expire(self._now))
        epoch_id = self.programme.epoch_id
        if self.clock is not None:
            self.programme.time_is(self.clock.minute(self._now))
        if self.programme.epoch_id != epoch_id:
            events += (self._epoch_began(),)
        ends_at = self.screen.ends_at
        if ends_at is not None and ends_at <= self._now:
            return events + self.show(self.programme.next(), "time")[0]
        self.wake()
        return events

    def _shelf(self, contents: Contents) -> OutsideShelf:
        if not 0 <= contents.count <= RECORDS_MOST:
            raise invalid_parameter(f"{contents.id}.count", contents.count, 0, RECORDS_MOST)
        if not 0 <= contents.generation <= GENERATION_MOST:
            raise invalid_parameter(f"{contents.id}.generation", contents.generation, 0, GENERATION_MOST)
        return OutsideShelf(self, contents)

    def _epoch_began(self) -> messages.EpochBegan:
        assert self.programme.last_reset is not None
        return messages.EpochBegan(self.programme.epoch_id, self.programme.last_reset, self._weights(), self._now)

    def _diagnosed(self) -> tuple[messages.Diagnosed, ...]:
        new = self.programme.diagnosed - self._diagnosed_before
        self._diagnosed_before = self.programme.diagnosed
        diagnostics: list[Diagnostic] = list(self.programme.diagnostics)[-new:] if new else []
        return tuple(messages.Diagnosed(one.code, one.facts, self._now) for one in diagnostics)


def _contents(row: ChannelState) -> Contents:
    return Contents(row.id, row.count, row.generation)
