"""The player of a file, with a journal for `pendula replay` or without: every call is a command to it."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from pendula.kernel.canonical import Json
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import Driver, begin_recording, send
from pendula.kernel.engine import Outcome
from pendula.playback.choosing.programme import DIAGNOSTICS_KEPT
from pendula.playback.choosing.records import Channel, Holding, Row, Shelf
from pendula.playback.clocks import clock_at
from pendula.playback.engine import Player
from pendula.playback.explain import stats
from pendula.playback.messages import Commands, Config, Configure, Contents, Event, Insert, Prev, Reset, ShowNext, Take
from pendula.playback.model import Record, item_json
from pendula.playback.runs import loading
from pendula.playback.runs.loading import ViewerCall
from pendula.playback.runs.opening import Opening, counted
from pendula.playback.settings import PickMode, Settings

ITEM = ("id", "channel", "origin", "epoch_id", "ordinal")


class Stage:
    """The target of the calls of a file; items are in their public form.

    With a journal each call is durable before its answer comes back. Without one the player reads the shelves itself.
    """

    def __init__(self, opening: Opening, seed: int, journal: Path | None = None) -> None:
        """Raises `JournalExists`. If the player refuses channels or settings, nothing is written."""
        self._opening = opening
        contents = tuple(Contents(one.id, one.shelf.count, one.shelf.generation) for one in opening.channels)
        config = msgspec.to_builtins(Config(seed, contents, opening.settings))
        self._driver: Driver[Commands, Event] | None = None
        if journal is None:
            self._player = Player.create(config, {one.id: one.shelf for one in opening.channels})
        else:
            self._player, outside = Player.create(config), Records(opening.channels, self)
            self._driver = begin_recording(self._player, config, RealDisk(journal), outside=outside)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._driver is not None:
            self._driver.close()

    @property
    def player(self) -> Player:
        if self._driver is None:
            return self._player
        assert isinstance(self._driver.engine, Player)
        return self._driver.engine

    def take(self, n: int) -> list[Json]:
        """The results of `n` calls of `next` up to the first None."""
        return list(self._done(Take(n)))

    def prev(self) -> Json:
        view = self._done(Prev())
        return None if view is None else {name: view[name] for name in ITEM}

    def peek(self, n: int) -> list[Json]:
        return [item_json(item) for item in self.player.programme.peek(n)]

    def insert(self, record: Record | bytes) -> str:
        """The result of a new artwork."""
        return str(self._done(Insert() if isinstance(record, bytes) else Insert.of(record))["result"])

    def reset(self, reason: str) -> int:
        """The number of the epoch that began."""
        return int(self._done(Reset(reason))["epoch_id"])

    def configure(self, settings: Settings) -> int:
        """The number of the present epoch."""
        whole = msgspec.to_builtins(counted(settings, self._opening.channels))
        return int(self._done(Configure(whole))["epoch_id"])

    def control(self, call: ViewerCall) -> Json:
        """What came of a call; `refused` with a code where it could not be granted."""
        outcome = self._send(self._command(call))
        return outcome.answer if outcome.refusal is None else {"refused": outcome.refusal.code}

    def _command(self, call: ViewerCall) -> Commands:
        match call:
            case loading.ShowNext(record):
                return ShowNext.of(record)
            case loading.ClockIs(utc_ms):
                return clock_at(self.player.programme.snapshot.settings.zone, utc_ms)
        return call

    def stats(self) -> dict[str, Json]:
        """The counts. Blocks are counted at their source: a player with a journal asks for single records."""
        diagnostics = (*self._opening.diagnostics, *self.player.programme.diagnostics)
        return {
            **stats(self.player.programme),
            "block_reads": self._counted("reads"),
            "cache_hits": self._counted("hits"),
            "diagnostics": [msgspec.to_builtins(one) for one in diagnostics[-DIAGNOSTICS_KEPT:]],
        }

    def _counted(self, name: str) -> int:
        return sum(getattr(channel.shelf, name, 0) for channel in self._opening.channels)

    def _done(self, command: Commands) -> Any:
        outcome = self._send(command)
        assert outcome.refusal is None, outcome.refusal
        return outcome.answer

    def _send(self, command: Commands) -> Outcome[Event]:
        return self._player.apply(command) if self._driver is None else send(self._driver, command, "cli")


class Records:
    """The outside of the player: the records of the channels, read in blocks as by a programme."""

    def __init__(self, channels: Sequence[Channel], run: Stage) -> None:
        self._readers: Mapping[str, ShelfReader] = {one.id: ShelfReader(one.shelf) for one in channels}
        self._files = [one.shelf for one in channels if isinstance(one.shelf, Holding)]
        self._batch: tuple[int, int] | None = None
        self._run = run

    def ask(self, name: str, question: Json) -> Json:
        assert name == "record"
        assert isinstance(question, dict)
        channel, at = question["channel"], question["at"]
        assert isinstance(channel, str)
        assert isinstance(at, int)
        programme = self._run.player.programme
        in_order = programme.snapshot.settings.pick.mode is PickMode.RECENCY
        self._hold(None if in_order else (programme.epoch_id, programme.generator.batches))
        reader = self._readers[channel]
        place, _, raw = reader.following(at) if in_order else reader.shelf.record(at)
        return None if place is None else b64encode(raw).decode()

    def _hold(self, batch: tuple[int, int] | None) -> None:
        """Keep the blocks of a batch of random picks until the next batch, as a programme does."""
        if batch == self._batch:
            return
        self._batch = batch
        for shelf in self._files:
            shelf.release_blocks()
            if batch is not None:
                shelf.hold()


class ShelfReader:
    """A shelf with the rest of the block that was read last, for sequential reads."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self._rest: Iterator[Row] = iter(())
        self._next: int | None = None

    def following(self, at: int) -> Row:
        """The record at this place; reads a block only if it does not follow the last record."""
        row = next(self._rest, None) if at == self._next else None
        if row is None:
            self._rest = iter(self.shelf.run(at))
            row = next(self._rest)
        self._next = at + 1
        return row
