"""A run written down: the calls of a file once more through a player with a journal, for `pendula replay`.

The records that the player asks for are those that the run has read: a `Tape` lies between the run and each shelf. What
the player gives must be what the run gave; anything else is a defect.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import msgspec

from pendula.kernel.canonical import Json
from pendula.kernel.disk import Disk
from pendula.kernel.driver import Driver
from pendula.kernel.journal import FileJournal
from pendula.playback import events
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import Row, Shelf
from pendula.playback.engine import Player
from pendula.playback.events import Commands, Config, Contents, Event
from pendula.playback.model import Record
from pendula.playback.runs.loading import Call, NaeInsert, Next, Peek, Prev, Reset, Set
from pendula.playback.runs.opening import counted
from pendula.playback.runs.script import STEP, Answer

ITEM = ("id", "channel", "origin", "epoch_id", "ordinal")


class Tape:
    """A shelf that remembers what it handed out, and counts as the shelf behind it does."""

    __slots__ = ("_shelf", "rows")

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.rows: dict[int, Row] = {}

    @property
    def count(self) -> int:
        return self._shelf.count

    @property
    def generation(self) -> int:
        return self._shelf.generation

    @property
    def reads(self) -> int:
        return int(getattr(self._shelf, "reads", 0))

    @property
    def hits(self) -> int:
        return int(getattr(self._shelf, "hits", 0))

    @property
    def total_count(self) -> int | None:
        return getattr(self._shelf, "total_count", None)

    def run(self, at: int) -> Iterator[Row]:
        for place, row in enumerate(self._shelf.run(at), at):
            self.rows[place] = row
            yield row

    def record(self, at: int) -> Row:
        row = self.rows[at] = self._shelf.record(at)
        return row


class Tapes:
    """The outside of the player: what the run has read, by channel and place."""

    def __init__(self, tapes: Mapping[str, Tape]) -> None:
        self._tapes = tapes

    def ask(self, name: str, question: Json) -> Json:
        assert name == "record"
        assert isinstance(question, dict)
        channel, at = question["channel"], question["at"]
        assert isinstance(channel, str)
        assert isinstance(at, int)
        place, _, raw = self._tapes[channel].rows[at]
        return None if place is None else b64encode(raw).decode()


class Recording:
    """Repeats the calls of a run into a journal; `programme` was made with a `Tape` for every channel."""

    def __init__(self, programme: Programme, disk: Disk) -> None:
        channels = programme.snapshot.channels
        self._channels = channels
        contents = tuple(Contents(one.id, one.shelf.count, one.shelf.generation) for one in channels)
        config = msgspec.to_builtins(Config(programme.seed, contents, programme.snapshot.settings))
        journal = FileJournal.create(
            disk, room=Player.room, decisions=Player.decisions, time_unit=Player.time_unit, config=config
        )
        tapes = {one.id: one.shelf for one in channels if isinstance(one.shelf, Tape)}
        self._driver: Driver[Commands, Event] = Driver(Player.create(config), journal, outside=Tapes(tapes))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._driver.close()

    def heard(self, call: Call, answer: Answer) -> None:
        """The same call to the player; its answer is compared with the run's."""
        match call:
            case Next(n):
                _same(self._nexts(n), answer["items"])
            case Prev(n):
                _same(self._prevs(n), answer["items"])
            case Peek(n):
                _same([_item(msgspec.to_builtins(view)) for view in self._player.peek(n)], answer["items"])
            case NaeInsert(record):
                _same(self._done(_insert(record)), answer)
            case Reset(reason):
                _same(self._done(events.Reset(reason)), answer["result"])
            case Set(settings):
                whole = msgspec.to_builtins(counted(settings, self._channels))
                _same(self._done(events.Configure(whole)), answer["result"])

    @property
    def _player(self) -> Player:
        assert isinstance(self._driver.engine, Player)
        return self._driver.engine

    def _nexts(self, n: int) -> list[Json]:
        found: list[Json] = []
        while len(found) < n:
            wanted = min(STEP, n - len(found))
            items = self._done(events.Take(wanted))
            found.extend(items)
            if len(items) < wanted:
                found.append(None)
        return found

    def _prevs(self, n: int) -> list[Json]:
        """After the oldest item there is none further back, so the rest need not be asked."""
        found: list[Json] = []
        while len(found) < n and (view := self._done(events.Prev())) is not None:
            found.append(_item(view))
        return found + [None] * (n - len(found))

    def _done(self, command: Commands) -> Any:
        ticket = self._driver.submit(command, by="cli")
        self._driver.flush()
        assert ticket.outcome.refusal is None, ticket.outcome.refusal
        return ticket.outcome.answer


def _item(view: Mapping[str, Json]) -> Json:
    return {name: view[name] for name in ITEM}


def _insert(record: Record | bytes) -> events.Insert:
    """The new artwork as a command; one without id for what is no record, so that it is rejected all the same."""
    if isinstance(record, bytes):
        return events.Insert()
    facts = msgspec.structs.asdict(record)
    for name in ("storage_key", "payload"):
        facts[name] = b64encode(facts[name]).decode()
    return events.Insert(**facts)


def _same(given: Iterable[Json] | Json, expected: Json) -> None:
    assert given == expected, f"The player gives {given}, the run gave {expected}"
