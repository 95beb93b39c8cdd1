"""The output of `next` N times without holding the items; byte for byte the same as from `script`.

Items appear twice in it, in the answer of the call and in `items`; the second time they are read from a spool file.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from msgspec import Struct

from pendula.kernel.canonical import Json, encode
from pendula.playback.runs.script import STEP, Advance, RunResult, Stage

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
