"""Run a playback file: its calls, or `next` N times, and their answers."""

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
    ViewerCall,
    read_spec,
)
from pendula.playback.runs.opening import Opening, counted, opening_of
from pendula.playback.statistics import stats

STEP = 10_000  # items between two progress reports

Answer: TypeAlias = dict[str, Any]
Advance: TypeAlias = Callable[[int], object]


class RunResult(Struct, frozen=True):
    """The items that `next` returned, the answers of all calls, and the statistics."""

    items: list[Json]
    calls: list[Json]
    stats: dict[str, Json]

    def as_json(self) -> dict[str, Json]:
        """The public form."""
        return {"items": self.items, "calls": self.calls, "stats": self.stats}


class Stage(Protocol):
    """The target of the calls of a file; items are in their public form."""

    def take(self, n: int) -> list[Json]:
        """The results of `n` calls of `next` up to the first None."""
        ...

    def prev(self) -> Json: ...

    def peek(self, n: int) -> list[Json]: ...

    def insert(self, record: Record | bytes) -> str:
        """The result of a new artwork."""
        ...

    def reset(self, reason: str) -> int:
        """The number of the epoch that began."""
        ...

    def configure(self, settings: Settings) -> int:
        """The number of the present epoch."""
        ...

    def control(self, call: ViewerCall) -> Json:
        """What came of a call; `refused` with a code where it could not be granted."""
        ...

    def stats(self) -> dict[str, Json]: ...


class ProgrammeStage:
    """Calls a programme directly, without a journal."""

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

    def control(self, call: ViewerCall) -> Json:
        programme = self.programme
        try:
            match call:
                case ShowNext(record):
                    programme.show_next(record)
                    return {"pinned": [item.id for item in programme.peek(len(programme.pins))]}
                case PauseChannel(channel):
                    programme.pause(channel)
                    return {"paused_channels": list(programme.paused_channels)}
                case ResumeChannel(channel):
                    programme.resume(channel)
                    return {"paused_channels": list(programme.paused_channels)}
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
    """Run a document; `count` is for documents without `calls`. Paths are relative to `base`."""
    spec = read_spec(document)
    return run_spec(spec, calls_of(spec, count), base or Path())


def run_spec(
    spec: Spec, calls: Iterable[Call], base: Path, *, journal: Path | None = None, advance: Advance | None = None
) -> RunResult:
    """Make the calls, with a new journal in the directory `journal` if given.

    `advance` is called with the number of items so far. Raises `ChannelUnreachable`, `JournalExists`.
    """
    with staged(spec, base, journal) as stage:
        return run_calls(calls, stage, advance)


@contextmanager
def staged(spec: Spec, base: Path, journal: Path | None = None) -> Iterator[Stage]:
    """The stage of a file; raises `ChannelUnreachable`, `JournalExists`."""
    opening, seed = opening_of(spec, base), seed_of(spec)
    if journal is None:
        yield ProgrammeStage(programme_over(opening, seed))
        return
    with JournalledRun(opening, seed, journal) as stage:
        yield stage


def calls_of(spec: Spec, count: int | None) -> tuple[Call, ...]:
    """The calls of the file, or `next` `count` times; raises `WrongUsage` if both or neither are given."""
    if spec.calls is not None:
        if count is not None:
            raise WrongUsage("The file has calls; omit --count", count=count)
        return spec.calls
    if count is None:
        raise WrongUsage("The file has no calls; pass --count N")
    if not 0 <= count <= COUNT_MOST:
        raise WrongUsage(f"--count {count} is out of range; allowed is 0 to {COUNT_MOST}", count=count)
    return (Next(count),)


def seed_of(spec: Spec) -> int:
    """The seed of the file, or a random one."""
    return randbits(64) if spec.seed is None else spec.seed


def programme_over(opening: Opening, seed: int) -> Programme:
    """A programme with the snapshot of a file, in epoch 0, and the diagnostics of opening it."""
    programme = Programme(opening.channels, opening.settings, seed=seed)
    programme.add_diagnostics(opening.diagnostics)
    return programme


def run_calls(calls: Iterable[Call], stage: Stage, advance: Advance | None = None) -> RunResult:
    """Make the calls in order. `advance` is called with the number of items so far."""
    items: list[Json] = []
    answers: list[Json] = []
    for call in calls:
        answer = answered(stage, call, None if advance is None else _from(len(items), advance))
        answers.append({"call": name_of(call), **answer})
        if isinstance(call, Next):
            items.extend(item for item in answer["items"] if item is not None)
    return RunResult(items, answers, stage.stats())


def answered(stage: Stage, call: Call, advance: Advance | None = None) -> Answer:
    """The answer of a call: `items` for `next`, `prev` and `peek`, else `result`."""
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
            return {"result": stage.control(call)}
        case _:
            assert_never(call)


def name_of(call: Call) -> str:
    """The call's name in the file."""
    return str(type(call).__struct_config__.tag)


def _nexts(stage: Stage, n: int, advance: Advance | None) -> list[Json]:
    """The results of `n` calls of `next`, made in batches."""
    found: list[Json] = []
    while len(found) < n:
        batch = min(STEP, n - len(found))
        items = stage.take(batch)
        found.extend(items)
        if len(items) < batch:
            found.append(None)  # the call that returned None
        if advance is not None:
            advance(len(found))
    return found


def _prevs(stage: Stage, n: int) -> list[Json]:
    """The results of `n` calls of `prev`; after the oldest item all are None."""
    found: list[Json] = []
    while len(found) < n and (item := stage.prev()) is not None:
        found.append(item)
    return found + [None] * (n - len(found))


def _from(before: int, advance: Advance) -> Advance:
    return lambda done: advance(before + done)


def _json(item: Item | None) -> Json:
    return None if item is None else item_json(item)
