"""Further measurements of `playback`: the slowest `next()`, growth, the table after a reset, memory."""

import gc
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from time import thread_time_ns

from bench import playback_loads as loads
from bench.measuring.cpu_time import cpu_seconds
from bench.playback_loads import Listener
from pendula.cli.benchmarks import Progress, Row, Target, compared
from pendula.playback.cache.shelf import BLOCKS_KEPT
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import BLOCK_BYTES
from pendula.playback.model import RECORD_BYTES

AT_MOST_ALL = Target("<=", Decimal(1))
GROWTH = Target("<=", Decimal("1.3"))
DEAREST = Target("<=", Decimal(2 * loads.BATCH))
ALLOWED_KIB = 1536
CALLS = 100_000
FIRST_PERIOD = 65_000
LOCKSTEP = "channels of equal weight reach the ends of their blocks together, so that one batch in 50 opens 32 blocks"
AFTER_RESET = 10
PER_BLOCK = BLOCK_BYTES // RECORD_BYTES


def rows(place: Path, quick: bool, progress: Progress) -> list[Row]:
    progress("growth")
    found = [_growth(3 if quick else 20)]
    progress("the dearest next()")
    runs, calls = (2, 64_000) if quick else (7, 320_000)
    found.append(_dearest("no new artwork", _listener, runs, calls, DEAREST))
    found.append(_dearest("one new artwork every 1000 calls", _listener, runs, calls, DEAREST, new=True))
    found.append(_dearest("first period", _beginner, runs, FIRST_PERIOD, DEAREST))
    found.append(_dearest("equal weights", _fair_listener, runs, calls, None, note=f"; {LOCKSTEP}"))
    progress("memory")
    return [*found, _table_after_reset(), _memory(place)]


def _growth(parts: int) -> Row:
    listener = Listener(loads.in_memory())
    costs = [cpu_seconds(lambda: listener.nexts(CALLS)) / CALLS * 1e6 for _ in range(parts)]
    return compared(
        f"next(), the last 100 000 of {parts * CALLS:_}".replace("_", " "),
        costs[-1],
        costs[0],
        "us",
        against="the first 100 000",
        target=GROWTH,
        fairness="counted from the second period on: in the first the table is written, and calls are dearer",
    )


def _listener() -> Listener:
    return Listener(loads.in_memory())


def _beginner() -> Listener:
    listener = Listener(loads.in_memory())
    listener.programme.reset("the table is to be written")
    return listener


def _fair_listener() -> Listener:
    return Listener(loads.in_memory(), loads.EQUAL)


def _dearest(
    load: str,
    listener: Callable[[], Listener],
    runs: int,
    calls: int,
    target: Target | None,
    *,
    new: bool = False,
    note: str = "",
) -> Row:
    """The minimum of each batch over equal runs, because noise of the machine hits other batches in each run."""
    mean = min(_mean(listener(), calls, new=new) for _ in range(runs))
    costs = sorted(map(min, zip(*(_batch_costs(listener(), calls, new=new) for _ in range(runs)), strict=True)))
    return compared(
        f"next() that makes a batch, 99.9th percentile, {load}",
        costs[len(costs) * 999 // 1000] / 1e3,
        mean / 1e3,
        "us",
        against="mean of all next()",
        target=target,
        fairness=f"{len(costs)} batches, of each the least CPU time of {runs} runs alike; allowed is 2 L{note}",
    )


def _mean(listener: Listener, calls: int, *, new: bool) -> float:
    return cpu_seconds(lambda: listener.nexts(calls, new=new)) / calls * 1e9


def _batch_costs(listener: Listener, calls: int, *, new: bool) -> list[int]:
    """Nanoseconds of every call that generates a batch."""
    programme, costs = listener.programme, []
    gc.collect()
    for call in range(calls):
        if new and call % loads.TAKEN == 0:
            listener.hands_in()
        if len(programme.lookahead) >= loads.BATCH:
            programme.next()
            continue
        begin = thread_time_ns()
        programme.next()
        costs.append(thread_time_ns() - begin)
    return costs


def _table_after_reset() -> Row:
    programme = Listener(loads.in_memory()).programme
    programme.reset("to see how much is made")
    for _ in range(AFTER_RESET):
        programme.next()
    return compared(
        f"table after a reset and {AFTER_RESET} next()",
        len(programme.generator.round.table),
        programme.generator.ordinal,
        "bytes",
        against="items made",
        target=AT_MOST_ALL,
        fairness="two batches of 32 are made by then; the whole table has 65536 bytes",
    )


def _memory(place: Path) -> Row:
    """Memory of a programme and the peak of a `next()`: two blocks a channel, the whole table, all buffers full."""
    picks, new = loads.period(), loads.new_artworks()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        channels = loads.on_disk(place)
        programme = Programme(channels, loads.RECENCY, seed=loads.SEED)
        # Filled byte by byte, as when it is computed; computing it would be slow while memory is traced.
        for pick in picks:
            programme.generator.round.table.append(pick)
        for _ in range(loads.N * loads.N):
            programme.next()
        for channel in channels:
            for number in range(BLOCKS_KEPT):
                channel.shelf.record(number * PER_BLOCK)
        for _ in range(loads.RECENCY.nae.cap):
            programme.nae_insert(next(new))
        for _ in range(loads.BATCH * 2):
            programme.next()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return compared(
        "memory, cache files, everything full",
        peak / 1024,
        ALLOWED_KIB,
        "KiB",
        against="allowed",
        target=AT_MOST_ALL,
        fairness="traced by Python, at the peak: N = 64, H = L = J = 32, block caches and the whole table included; "
        "the interpreter and its modules are not",
    )
