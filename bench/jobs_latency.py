"""Latency from the due time to the first line of the handler on an idle worker: wake-up beside polling every 5 s.

Both workers run at the same time, each on its own store, with the same due times. A quick run has no time for polling
and computes its result instead.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from pendula.cli.benchmarks import Progress, Row, compared
from pendula.jobs.model import SECOND
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.worker.handlers import Context, Handlers, handler
from pendula.jobs.worker.worker import INTERVAL_SEC, Worker
from pendula.kernel.time import format_utc, parse_utc

JOBS, QUICK_JOBS = 200, 40
SPREAD_SEC, QUICK_SPREAD_SEC = 20, 2
FIRST_DUE_US = 50_000
LOOP = f"a loop of {INTERVAL_SEC:.0f} s"
# Evenly spaced due times, each one found by the next poll.
RECKONED = tuple(range(0, round(INTERVAL_SEC * SECOND), SECOND // 100))


class Watch:
    """A scheduler whose handler records its delay in microseconds."""

    def __init__(self, scheduler: Scheduler, expected: int) -> None:
        self.scheduler = scheduler
        self.late: list[int] = []
        self._expected = expected
        self._complete = threading.Event()

    def handlers(self) -> Handlers:
        @handler("memory", "verify")
        def verify(context: Context) -> None:
            self.late.append(self.scheduler.calls.clock() - parse_utc(context.job.run_at))
            if len(self.late) == self._expected:
                self._complete.set()

        return Handlers([verify])

    def plan(self, due: Sequence[int]) -> None:
        self.scheduler.enqueue_batch(
            [
                {"object_type": "memory", "object_id": f"mem_{at}", "action": "verify", "run_at": format_utc(at)}
                for at in due
            ]
        )

    def wait(self, seconds: float) -> None:
        assert self._complete.wait(seconds), f"{len(self.late)} of {self._expected} jobs were handled"


def rows(place: Path, quick: bool, progress: Progress) -> list[Row]:
    jobs, spread = (QUICK_JOBS, QUICK_SPREAD_SEC) if quick else (JOBS, SPREAD_SEC)
    progress(f"due to handler: {jobs} jobs over {spread} s")
    with ExitStack() as stack:
        woken = stack.enter_context(_working(place / "woken.db", jobs, wake_up=True))
        watches = [woken]
        if not quick:
            watches.append(stack.enter_context(_working(place / "loop.db", jobs, wake_up=False)))
        first = woken.scheduler.calls.clock() + FIRST_DUE_US
        for watch in watches:
            watch.plan([first + number * spread * SECOND // jobs for number in range(jobs)])
        for watch in watches:
            watch.wait(spread + 2 * INTERVAL_SEC)
    source = "computed" if quick else f"measured with the same {jobs} jobs"
    loop = RECKONED if quick else watches[-1].late
    return [
        _row(f"due to handler entered, {name}", figure(woken.late), figure(loop), jobs, source)
        for name, figure in FIGURES.items()
    ]


@contextmanager
def _working(path: Path, jobs: int, *, wake_up: bool) -> Iterator[Watch]:
    with Scheduler.open(path) as scheduler:
        watch = Watch(scheduler, jobs)
        worker = Worker(scheduler, watch.handlers(), batch=jobs, wake_up=wake_up)
        thread = threading.Thread(target=worker.run, name=f"bench-{path.stem}")
        thread.start()
        try:
            yield watch
        finally:
            worker.stop()
            thread.join()


def _row(name: str, woken_us: float, loop_us: float, jobs: int, source: str) -> Row:
    return compared(
        name,
        woken_us / 1000,
        loop_us / 1000,
        "ms",
        against=LOOP,
        fairness=f"{jobs} jobs evenly spaced, otherwise idle, one worker in this process; polling is {source}",
    )


def _ninety_ninth(late: Sequence[int]) -> int:
    """The 99th percentile."""
    return sorted(late)[-(-len(late) * 99 // 100) - 1]


FIGURES: Mapping[str, Callable[[Sequence[int]], float]] = {"median": median, "99 of 100": _ninety_ninth}
