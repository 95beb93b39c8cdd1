"""Speed of the event queue beside a bare `heapq` of tuples: the hold model at 10 000 pending events.

Each step takes the first event and pushes one at a later minute of the same epoch. All sides get the same events, and
all return time, rank, sequence and item. The sides take turns within a round. CPU time is measured,
because nothing here waits.
"""

import random
import sys
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from statistics import median
from time import process_time
from typing import Any

from pendula.kernel.queue import EventQueue

PENDING = 10_000
STEPS = 60_000
EPOCH_MINUTES = 1440
RANKS = 6

Work = tuple[list[tuple[int, int]], list[tuple[int, int]]]


def work(seed: int) -> Work:
    """The pending events (time, rank) and the steps (increment, rank); no step leaves the epoch."""
    generator = random.Random(seed)
    pending = [(generator.randrange(120), generator.randrange(RANKS)) for _ in range(PENDING)]
    steps = [(generator.randrange(241), generator.randrange(RANKS)) for _ in range(STEPS)]
    return pending, steps


def bare(events: Work) -> tuple[float, int]:
    pending, steps = events
    heap = [(time, rank, seq, "item") for seq, (time, rank) in enumerate(pending)]
    heapify(heap)
    seq, check = len(heap), 0
    start = process_time()
    for increment, next_rank in steps:
        time, _, taken, item = heappop(heap)
        heappush(heap, (min(time + increment, EPOCH_MINUTES), next_rank, seq, item))
        seq += 1
        check = (check * 31 + taken) & 0xFFFFFFFF
    return process_time() - start, check


def queued(events: Work) -> tuple[float, int]:
    pending, steps = events
    queue: EventQueue[str] = EventQueue()
    for time, rank in pending:
        queue.push(time, rank, "item")
    check = 0
    start = process_time()
    for increment, next_rank in steps:
        time, _, taken, item = queue.pop()
        queue.push(min(time + increment, EPOCH_MINUTES), next_rank, item)
        check = (check * 31 + taken) & 0xFFFFFFFF
    return process_time() - start, check


SIDES: dict[str, Callable[[Work], tuple[float, int]]] = {
    "bare heapq": bare,
    "EventQueue": queued,
}


def run(rounds: int = 7) -> list[dict[str, Any]]:
    """Rows {name, seconds, ratio}: the median of the rounds, and of the ratios to the bare heap of the same round."""
    events = work(seed=1)
    seconds: dict[str, list[float]] = {name: [] for name in SIDES}
    checks = set()
    for _ in range(rounds):
        for name, side in SIDES.items():
            elapsed, check = side(events)
            seconds[name].append(elapsed)
            checks.add(check)
    assert len(checks) == 1, "the sides did not hand out the same events"
    yardstick = seconds["bare heapq"]
    return [
        {
            "name": name,
            "seconds": median(measured),
            "ratio": median(mine / theirs for mine, theirs in zip(measured, yardstick, strict=True)),
        }
        for name, measured in seconds.items()
    ]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(f"{PENDING} pending, {STEPS} steps, median of {rounds} rounds")
    for row in run(rounds):
        print(f"{row['name']:<12} {row['seconds'] / STEPS * 1e9:8.0f} ns a step {row['ratio']:6.2f}x")


if __name__ == "__main__":
    main()
