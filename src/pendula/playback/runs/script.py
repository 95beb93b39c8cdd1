"""Run a playback file: its calls, or `next` N times, and their answers; why an item of a run was selected."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from secrets import randbits
from typing import Any, BinaryIO, TypeAlias, assert_never

from msgspec import Struct

from pendula.documents import Document
from pendula.kernel.canonical import Json, encode
from pendula.kernel.engine import Reason
from pendula.kernel.errors import InputRefused, WrongUsage
from pendula.playback.choosing.programme import Programme
from pendula.playback.explain import by_ordinal, why
from pendula.playback.messages import BanArtwork, Lift, PauseChannel, ResumeChannel
from pendula.playback.model import Item
from pendula.playback.runs.loading import (
    COUNT_MOST,
    Call,
    ClockIs,
    NaeInsert,
    Next,
    Peek,
    Prev,
    Reset,
    Set,
    ShowNext,
    Spec,
    read_spec,
)
from pendula.playback.runs.opening import opening_of
from pendula.playback.runs.stage import Stage

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


def staged(spec: Spec, base: Path, journal: Path | None = None) -> Stage:
    """The stage of a file; raises `ChannelUnreachable`, `JournalExists`."""
    return Stage(opening_of(spec, base), seed_of(spec), journal)


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
    """The results of `n` calls of `next`; None for each without an item."""
    return [item for items in taken(stage, n, advance) for item in items]


def _prevs(stage: Stage, n: int) -> list[Json]:
    """The results of `n` calls of `prev`; after the oldest item all are None."""
    found: list[Json] = []
    while len(found) < n and (item := stage.prev()) is not None:
        found.append(item)
    return found + [None] * (n - len(found))


def _from(before: int, advance: Advance) -> Advance:
    return lambda done: advance(before + done)


SHOWN_MOST = 1000
COPIED_BYTES = 1 << 16


class Summary(Struct):
    """The contents of the table of a run: the first items, counts by origin, counts by channel in the last epoch."""

    first: list[Any] = []
    total: int = 0
    origins: Counter[str] = Counter()
    channels: Counter[str | None] = Counter()
    epoch_id: int = 0
    calls: list[Any] = []
    stats: dict[str, Any] = {}

    def add(self, item: Any) -> None:
        if len(self.first) < SHOWN_MOST:
            self.first.append(item)
        if item["epoch_id"] != self.epoch_id:
            # The weights are those of the last epoch, so only its items are compared with them.
            self.epoch_id, self.channels = item["epoch_id"], Counter()
        self.total += 1
        self.origins[item["origin"]] += 1
        self.channels[item["channel"]] += 1


def summed(result: RunResult) -> Summary:
    """The summary of a finished run."""
    summary = Summary([], 0, Counter(), Counter(), calls=result.calls, stats=result.stats)
    for item in result.items:
        summary.add(item)
    return summary


def taken(stage: Stage, n: int, advance: Advance | None = None) -> Iterator[list[Json]]:
    """The results of `n` calls of `next` in batches; None for each without an item."""
    done = 0
    while done < n:
        batch = min(STEP, n - done)
        items = stage.take(batch)
        if len(items) < batch:
            items.append(None)  # the call that returned None
        done += len(items)
        yield items
        if advance is not None:
            advance(done)


def summary_of(stage: Stage, n: int, advance: Advance | None = None) -> Summary:
    """The summary of `n` calls of `next`."""
    summary = Summary([], 0, Counter(), Counter())
    for items in taken(stage, n, advance):
        for item in items:
            if item is not None:
                summary.add(item)
    summary.stats = stage.stats()
    return summary


def document(stage: Stage, n: int, spool: BinaryIO, advance: Advance | None = None) -> Iterator[bytes]:
    """The document of `n` calls of `next`, in pieces; `spool` is an empty file to write and read."""
    yield b'{"calls":[{"call":"next","items":['
    between = spooled = b""
    for items in taken(stage, n, advance):
        shown = b",".join(encode(item) for item in items if item is not None)
        spool.write(spooled + shown if shown else b"")
        spooled = b"," if shown or spooled else b""
        yield between + b",".join(map(encode, items))
        between = b","
    yield b']}],"items":['
    yield from _copied(spool)
    yield b'],"stats":' + encode(stage.stats()) + b"}"


def _copied(spool: BinaryIO) -> Iterator[bytes]:
    spool.seek(0)
    read: Callable[[], bytes] = lambda: spool.read(COPIED_BYTES)  # noqa: E731
    yield from iter(read, b"")


class UnknownItem(InputRefused):
    """Facts: `epoch_id`, `ordinal`, and in `items` the number of items by epoch."""

    code = "unknown_item"


class ExplainedItem(Struct, frozen=True):
    item: Item
    reason: Reason


def reason_in(stage: Stage, calls: Iterable[Call], epoch_id: int, ordinal: int) -> ExplainedItem:
    """The item and its reason, asked during its epoch; raises `UnknownItem`.

    Items of the lookahead that are not shown yet are included.
    """
    made: dict[int, int] = {}
    programme = stage.player.programme
    for step in _steps(calls):
        # A reset drops the lookahead: look before each step, too.
        if (found := _found(programme, epoch_id, ordinal, made)) is not None:
            return found
        answered(stage, step)
    if (found := _found(programme, epoch_id, ordinal, made)) is not None:
        return found
    counts = ", ".join(f"{count} of epoch {epoch}" for epoch, count in sorted(made.items())) or "none"
    raise UnknownItem(
        f"The run has no item {ordinal} of epoch {epoch_id}; its items are: {counts}",
        epoch_id=epoch_id,
        ordinal=ordinal,
        items={str(epoch): count for epoch, count in sorted(made.items())},
    )


def _found(programme: Programme, epoch_id: int, ordinal: int, made: dict[int, int]) -> ExplainedItem | None:
    if programme.generator.ordinal:
        made[programme.epoch_id] = programme.generator.ordinal
    if programme.epoch_id != epoch_id:
        return None
    item = by_ordinal(programme, ordinal)
    return None if item is None else ExplainedItem(item, why(programme, item))


def _steps(calls: Iterable[Call]) -> Iterable[Call]:
    """Split `next` into single items, because the history may hold only one."""
    for call in calls:
        if isinstance(call, Next):
            for _ in range(call.n):
                yield Next(1)
        else:
            yield call
