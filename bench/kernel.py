"""The kernel beside its peers: the event queue beside a bare `heapq`, group commit beside one flush per record."""

from collections.abc import Callable
from decimal import Decimal

from bench import kernel_journal, kernel_queue
from pendula.cli.benchmarks import Progress, Row, Target, compared

PEERS: tuple[str, ...] = ()

QUEUE_TARGET = Target("<=", Decimal(1))
QUEUE_ROUNDS, QUICK_QUEUE_ROUNDS = 15, 3


def queue_rows(quick: bool, progress: Progress) -> list[Row]:
    """Nanoseconds a step; the ratio is the median over rounds in which the sides take turns."""
    progress(f"event queue, {kernel_queue.PENDING} pending")
    measured = {row["name"]: row for row in kernel_queue.run(QUICK_QUEUE_ROUNDS if quick else QUEUE_ROUNDS)}
    yardstick = measured.pop("bare heapq")
    return [
        compared(
            name,
            _nanoseconds(row["seconds"]),
            _nanoseconds(yardstick["seconds"]),
            "ns a step",
            against="bare heapq",
            ratio=row["ratio"],
            target=QUEUE_TARGET,
            fairness="the bare heap cannot cancel",
        )
        for name, row in measured.items()
    ]


def _nanoseconds(seconds: float) -> float:
    return seconds / kernel_queue.STEPS * 1e9


PARTS: tuple[Callable[[bool, Progress], list[Row]], ...] = (queue_rows, kernel_journal.rows)


def run(quick: bool, progress: Progress) -> list[Row]:
    return [row for part in PARTS for row in part(quick, progress)]
