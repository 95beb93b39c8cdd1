"""A file run to its end: the calls it scripts, or so many times `next`, and what came of each."""

from collections.abc import Callable, Iterable
from pathlib import Path
from secrets import randbits
from typing import Any, TypeAlias, assert_never

import msgspec
from msgspec import Struct

from pendula.documents import Document
from pendula.kernel.canonical import Json
from pendula.kernel.errors import WrongUsage
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import Shelf
from pendula.playback.model import Item, item_json
from pendula.playback.runs.loading import COUNT_MOST, Call, NaeInsert, Next, Peek, Prev, Reset, Set, Spec, read_spec
from pendula.playback.runs.opening import counted, opened

STEP = 10_000  # items between two signs of life

Answer: TypeAlias = dict[str, Any]
Advance: TypeAlias = Callable[[int], object]
Heard: TypeAlias = Callable[[Call, Answer], object]


class RunResult(Struct, frozen=True):
    """What a run gave: the items `next` returned, the answers of all calls, the counts."""

    items: list[Json]
    calls: list[Json]
    stats: dict[str, Json]

    def as_json(self) -> dict[str, Json]:
        """The public form."""
        return {"items": self.items, "calls": self.calls, "stats": self.stats}


def run_document(document: Document, base: Path | None = None, count: int | None = None) -> RunResult:
    """Run a document; `count` is for one without `calls`. Paths in it are relative to `base`."""
    spec = read_spec(document)
    calls = calls_of(spec, count)
    return run_calls(calls, programme_of(spec, base or Path()))


def calls_of(spec: Spec, count: int | None) -> tuple[Call, ...]:
    """What is to be called; raises `WrongUsage` where both or neither say it."""
    if spec.calls is not None:
        if count is not None:
            raise WrongUsage("The file has calls of its own; leave --count out", count=count)
        return spec.calls
    if count is None:
        raise WrongUsage("The file has no calls; say with --count how many items there shall be")
    if not 0 <= count <= COUNT_MOST:
        raise WrongUsage(f"--count {count} is no number of items; allowed is 0 to {COUNT_MOST}", count=count)
    return (Next(count),)


def programme_of(spec: Spec, base: Path, through: Callable[[Shelf], Shelf] | None = None) -> Programme:
    """A programme with the whole snapshot of the file, so its epoch is 0; what could not be opened is a diagnostic.

    `through` may put something between the programme and the records of each channel.
    """
    channels, diagnostics = opened(spec.channels, base)
    settings = counted(spec.settings, channels)
    if through is not None:
        channels = [msgspec.structs.replace(channel, shelf=through(channel.shelf)) for channel in channels]
    programme = Programme(channels, settings, seed=randbits(64) if spec.seed is None else spec.seed)
    programme.tell(diagnostics)
    return programme


def run_calls(
    calls: Iterable[Call], programme: Programme, advance: Advance | None = None, heard: Heard | None = None
) -> RunResult:
    """Make the calls, one after the other. `advance` hears how many items came so far, `heard` every answer."""
    items: list[Json] = []
    told: list[Json] = []
    for call in calls:
        answer = answered(programme, call, None if advance is None else _from(len(items), advance))
        told.append({"call": name_of(call), **answer})
        if isinstance(call, Next):
            items.extend(item for item in answer["items"] if item is not None)
        if heard is not None:
            heard(call, answer)
    return RunResult(items, told, programme.stats())


def answered(programme: Programme, call: Call, advance: Advance | None = None) -> Answer:
    """What a call gives: `items` of `next`, `prev` and `peek`, else the `result`."""
    match call:
        case Next(n):
            return {"items": _nexts(programme, n, advance)}
        case Prev(n):
            return {"items": [_json(programme.prev()) for _ in range(n)]}
        case Peek(n):
            return {"items": [item_json(item) for item in programme.peek(n)]}
        case NaeInsert(record):
            return {"result": programme.nae_insert(record).value}
        case Reset(reason):
            programme.reset(reason)
            return {"result": {"epoch_id": programme.epoch_id}}
        case Set(settings):
            programme.configure_whole(counted(settings, programme.snapshot.channels))
            return {"result": {"epoch_id": programme.epoch_id}}
        case _:
            assert_never(call)


def name_of(call: Call) -> str:
    """The call's name in the file."""
    return str(type(call).__struct_config__.tag)


def _nexts(programme: Programme, n: int, advance: Advance | None) -> list[Json]:
    """What `n` calls of `next` return, made in handfuls."""
    found: list[Json] = []
    while len(found) < n:
        wanted = min(STEP, n - len(found))
        items = programme.take(wanted)
        found.extend(map(item_json, items))
        if len(items) < wanted:
            found.append(None)  # the call that ended the handful
        if advance is not None:
            advance(len(found))
    return found


def _from(before: int, advance: Advance) -> Advance:
    return lambda done: advance(before + done)


def _json(item: Item | None) -> Json:
    return None if item is None else item_json(item)
