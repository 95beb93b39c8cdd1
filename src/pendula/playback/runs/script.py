"""A file run to its end: the calls it scripts, or so many times `next`, and what came of each."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import randbits
from typing import Any, Protocol, TypeAlias, assert_never

from msgspec import Struct

from pendula.documents import Document
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused, WrongUsage
from pendula.playback.choosing.programme import Programme
from pendula.playback.clocks import minute_of_week
from pendula.playback.model import Item, Record, Settings, item_json
from pendula.playback.runs.journalled import JournalledRun
from pendula.playback.runs.loading import (
    COUNT_MOST,
    BanArtwork,
    Call,
    ClockIs,
    Lift,
    NaeInsert,
    Next,
    PauseChannel,
    Peek,
    Prev,
    Reset,
    ResumeChannel,
    Set,
    ShowNext,
    Spec,
    Wish,
    read_spec,
)
from pendula.playback.runs.opening import Opening, counted, opening_of
from pendula.playback.statistics import stats

STEP = 10_000  # items between two signs of life

Answer: TypeAlias = dict[str, Any]
Advance: TypeAlias = Callable[[int], object]


class RunResult(Struct, frozen=True):
    """What a run gave: the items `next` returned, the answers of all calls, the counts."""

    items: list[Json]
    calls: list[Json]
    stats: dict[str, Json]

    def as_json(self) -> dict[str, Json]:
        """The public form."""
        return {"items": self.items, "calls": self.calls, "stats": self.stats}


class Stage(Protocol):
    """What the calls of a file are made to; items in their public form."""

    def take(self, n: int) -> list[Json]:
        """What `n` calls of `next` return, up to the first None."""
        ...

    def prev(self) -> Json: ...

    def peek(self, n: int) -> list[Json]: ...

    def insert(self, record: Record | bytes) -> str:
        """What became of a new artwork."""
        ...

    def reset(self, reason: str) -> int:
        """The number of the epoch that began."""
        ...

    def configure(self, settings: Settings) -> int:
        """The number of the epoch that holds from now on."""
        ...

    def wish(self, wish: Wish) -> Json:
        """What came of a wish; `refused` with a code where it could not be granted."""
        ...

    def stats(self) -> dict[str, Json]: ...


class ProgrammeStage:
    """The calls straight to a programme; nothing is kept."""

    def __init__(self, programme: Programme) -> None:
        self.programme = programme

    def take(self, n: int) -> list[Json]:
        return [item_json(item) for item in self.programme.take(n)]

    def prev(self) -> Json:
        return _json(self.programme.prev())

    def peek(self, n: int) -> list[Json]:
        return [item_json(item) for item in self.programme.peek(n)]

    def insert(self, record: Record | bytes) -> str:
        return self.programme.nae_insert(record).value

    def reset(self, reason: str) -> int:
        self.programme.reset(reason)
        return self.programme.epoch_id

    def configure(self, settings: Settings) -> int:
        self.programme.configure_whole(counted(settings, self.programme.snapshot.channels))
        return self.programme.epoch_id

    def wish(self, wish: Wish) -> Json:
        programme = self.programme
        try:
            match wish:
                case ShowNext(record):
                    programme.show_next(record)
                    return {"pinned": [item.id for item in programme.peek(len(programme.pins))]}
                case PauseChannel(channel):
                    programme.pause(channel)
                    return {"paused_channels": list(programme.resting)}
                case ResumeChannel(channel):
                    programme.resume(channel)
                    return {"paused_channels": list(programme.resting)}
                case BanArtwork(id):
                    programme.ban_artwork(id)
                    return {"banned": [{"id": id, "until": until} for id, until in programme.bans.items()]}
                case Lift(id):
                    programme.lift(id)
                    return {"banned": [{"id": id, "until": until} for id, until in programme.bans.items()]}
                case ClockIs(utc_ms):
                    programme.time_is(minute_of_week(programme.snapshot.settings.zone, utc_ms))
                    return {"day_part": programme.snapshot.part, "epoch_id": programme.epoch_id}
        except InputRefused as refused:
            return {"refused": refused.code}

    def stats(self) -> dict[str, Json]:
        return stats(self.programme)


def run_document(document: Document, base: Path | None = None, count: int | None = None) -> RunResult:
    """Run a document; `count` is for one without `calls`. Paths in it are relative to `base`."""
    spec = read_spec(document)
    return run_spec(spec, calls_of(spec, count), base or Path())


def run_spec(
    spec: Spec, calls: Iterable[Call], base: Path, *, journal: Path | None = None, advance: Advance | None = None
) -> RunResult:
    """Make the calls to the channels of a file, with a new journal in the directory `journal` if one is named.

    `advance` hears how many items came so far. Raises `ChannelUnreachable`, `JournalExists`.
    """
    with staged(spec, base, journal) as stage:
        return run_calls(calls, stage, advance)


@contextmanager
def staged(spec: Spec, base: Path, journal: Path | None = None) -> Iterator[Stage]:
    """What the calls of a file are made to; raises `ChannelUnreachable`, `JournalExists`."""
    opening, seed = opening_of(spec, base), seed_of(spec)
    if journal is None:
        yield ProgrammeStage(programme_over(opening, seed))
        return
    with JournalledRun(opening, seed, journal) as stage:
        yield stage


def calls_of(spec: Spec, count: int | None) -> tuple[Call, ...]:
    """What is to be called; raises `WrongUsage` where both or neither say it."""
    if spec.calls is not None:
        if count is not None:
            raise WrongUsage("The file has calls of its own; leave --count out", count=count)
        return spec.calls
    if count is None:
        raise WrongUsage("The file has no calls; say with --count how many items there shall be")
    if not 0 <= count <= COUNT_MOST:
        raise WrongUsage(f"--count {count} is not a number of items; it must be 0 to {COUNT_MOST}", count=count)
    return (Next(count),)


def seed_of(spec: Spec) -> int:
    """The seed of the file; one by chance where it names none."""
    return randbits(64) if spec.seed is None else spec.seed


def programme_over(opening: Opening, seed: int) -> Programme:
    """A programme with the whole snapshot of a file, so its epoch is 0; what could not be opened is a diagnostic."""
    programme = Programme(opening.channels, opening.settings, seed=seed)
    programme.tell(opening.diagnostics)
    return programme


def run_calls(calls: Iterable[Call], stage: Stage, advance: Advance | None = None) -> RunResult:
    """Make the calls, one after the other. `advance` hears how many items came so far."""
    items: list[Json] = []
    told: list[Json] = []
    for call in calls:
        answer = answered(stage, call, None if advance is None else _from(len(items), advance))
        told.append({"call": name_of(call), **answer})
        if isinstance(call, Next):
            items.extend(item for item in answer["items"] if item is not None)
    return RunResult(items, told, stage.stats())


def answered(stage: Stage, call: Call, advance: Advance | None = None) -> Answer:
    """What a call gives: `items` of `next`, `prev` and `peek`, else the `result`."""
    match call:
        case Next(n):
            return {"items": _nexts(stage, n, advance)}
        case Prev(n):
            return {"items": _prevs(stage, n)}
        case Peek(n):
            return {"items": stage.peek(n)}
        case NaeInsert(record):
            return {"result": stage.insert(record)}
        case Reset(reason):
            return {"result": {"epoch_id": stage.reset(reason)}}
        case Set(settings):
            return {"result": {"epoch_id": stage.configure(settings)}}
        case ShowNext() | PauseChannel() | ResumeChannel() | BanArtwork() | Lift() | ClockIs():
            return {"result": stage.wish(call)}
        case _:
            assert_never(call)


def name_of(call: Call) -> str:
    """The call's name in the file."""
    return str(type(call).__struct_config__.tag)


def _nexts(stage: Stage, n: int, advance: Advance | None) -> list[Json]:
    """What `n` calls of `next` return, made in handfuls."""
    found: list[Json] = []
    while len(found) < n:
        wanted = min(STEP, n - len(found))
        items = stage.take(wanted)
        found.extend(items)
        if len(items) < wanted:
            found.append(None)  # the call that ended the handful
        if advance is not None:
            advance(len(found))
    return found


def _prevs(stage: Stage, n: int) -> list[Json]:
    """After the oldest item there is none further back, so the rest need not be asked."""
    found: list[Json] = []
    while len(found) < n and (item := stage.prev()) is not None:
        found.append(item)
    return found + [None] * (n - len(found))


def _from(before: int, advance: Advance) -> Advance:
    return lambda done: advance(before + done)


def _json(item: Item | None) -> Json:
    return None if item is None else item_json(item)
