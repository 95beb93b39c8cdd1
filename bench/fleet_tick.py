"""Ticks of traffic: the cost with 20, 100 and 200 trucks that always have tasks, and the speed of a run.

The limit is in CPU milliseconds of the whole tick, with admissions and commands, on one core; the simulated trucks and
the judge are not counted. Throughput and the longest wait are printed without a limit: they depend on the map too. With
a journal on a real disk a tick includes everything until commands may be sent: events, encoding and the write to the
operating system; it is compared with the same tick without a journal.
"""

from decimal import Decimal
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench.measuring.progress import Bar, Watch
from pendula.cli.benchmarks import Progress, Row, Target, compared, measured

if TYPE_CHECKING:
    from bench.fleet_tick_loads import Costs

# The scheduler's own libraries.
PEERS: tuple[str, ...] = ("numpy", "shapely")

AT_MOST, AT_LEAST = Target("<=", Decimal(1)), Target(">=", Decimal(1))
ALLOWED = "allowed"
# Milliseconds of a tick, 99 of 100.
TICK_MS = {20: 10, 100: 20, 200: 50}
SECONDS, QUICK_SECONDS = {20: 600, 100: 120, 200: 120}, {20: 60, 100: 10, 200: 5}
FASTER_THAN_REAL = 40
# With the journal: multiples of the tick alone, 99 of 100 and on average; bytes per truck and second.
JOURNAL_P99, JOURNAL_MEAN, JOURNAL_BYTES = 1.2, 1.1, 20_000
JOURNAL_SECONDS, JOURNAL_QUICK_SECONDS = {20: 300, 100: 60}, {20: 30}
MEMORY_MIB = 1024


def run(quick: bool, progress: Progress) -> list[Row]:
    # Imported only now: the program names missing libraries before it imports the scheduler.
    from bench.fleet_tick_loads import drive

    plain, recorded = (QUICK_SECONDS, JOURNAL_QUICK_SECONDS) if quick else (SECONDS, JOURNAL_SECONDS)
    bar = Bar(progress, sum(_size(*row) for row in (*plain.items(), *recorded.items())))
    rows: list[Row] = []
    for trucks, seconds in plain.items():
        with bar.step(f"{trucks} trucks", _size(trucks, seconds)) as watch:
            rows += _rows(trucks, drive(trucks, seconds * 1000, watch))
    for trucks, seconds in recorded.items():
        with bar.step(f"{trucks} trucks with a journal", _size(trucks, seconds)) as watch:
            rows += _journal_rows(trucks, seconds, watch)
    # Of the whole process, with all maps and earlier measurements.
    peak = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    return [*rows, _within("memory, 200 trucks", peak, MEMORY_MIB, "MiB", "the whole process, smaller fleets included")]


def _size(trucks: int, seconds: int) -> int:
    """The approximate cost of a run."""
    return seconds * trucks * (1 + trucks // 20)


def _rows(trucks: int, costs: "Costs") -> list[Row]:
    work = f"{len(costs.ticks):,} ticks, half of them within {costs.percentile(50):.1f} ms"
    rows = [_within(f"tick, {trucks} trucks, 99 of 100", costs.percentile(99), TICK_MS[trucks], "ms", work)]
    if trucks == min(TICK_MS):
        speed = costs.simulated_s / costs.whole_s
        rows.append(
            compared(
                f"run with the judge, {trucks} trucks",
                speed,
                FASTER_THAN_REAL,
                "x real time",
                against=ALLOWED,
                target=AT_LEAST,
                fairness="simulated seconds by CPU seconds of trucks, traffic and judge",
            )
        )
    hour = costs.tasks * 3600 / costs.simulated_s
    waited = f"longest wait {costs.longest_wait_s:.0f} s, {costs.longest_over_median:.1f} times the median"
    return [*rows, measured(f"tasks an hour, {trucks} trucks", hour, "tasks", fairness=waited)]


def _journal_rows(trucks: int, seconds: int, watch: Watch) -> list[Row]:
    from bench.fleet_tick_loads import drive_recorded, percentile

    with TemporaryDirectory(prefix="pendula-bench-") as directory:
        costs = drive_recorded(trucks, seconds * 1000, Path(directory), watch)
    whole, bare = percentile(costs.whole, 99), percentile(costs.bare, 99)
    work = f"{len(costs.whole):,} ticks, 99 of 100 within {whole:.1f} ms with it and {bare:.1f} ms without"
    mean = "CPU of the tick's thread, all ticks; the disk is synced by another"
    volume = costs.written / costs.truck_seconds
    return [
        _within(f"tick with the journal, {trucks} trucks, 99 of 100", costs.ratio(99), JOURNAL_P99, "x without", work),
        _within(f"tick with the journal, {trucks} trucks, mean", costs.mean_ratio, JOURNAL_MEAN, "x without", mean),
        _within(f"journal, {trucks} trucks", volume, JOURNAL_BYTES, "bytes a truck and second", "checkpoints included"),
    ]


def _within(name: str, ours: float, allowed: float, unit: str, work: str) -> Row:
    return compared(name, ours, allowed, unit, against=ALLOWED, target=AT_MOST, fairness=work)
