"""Delete old finished jobs in small steps.

The key of a deleted job stays used, and its events stay in the trail, packed. Steps are small, at most a thousand jobs
and fewer if they take too long, so that writers do not wait long for the lock.
"""

import logging
from collections.abc import Callable, Mapping

from msgspec import Struct

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import LOCAL, Caller, Calls
from pendula.jobs.model import BATCH_MOST, SECOND, SYSTEM, Status
from pendula.jobs.store.protocol import Writer
from pendula.kernel.canonical import Json
from pendula.kernel.errors import WrongUsage
from pendula.kernel.time import format_utc
from pendula.kernel.wallclock import steady_ns

log = logging.getLogger("pendula.jobs.retention")

DAY_SEC = 86_400
EVERY_SEC = 3600.0
DAYS_LEAST, DAYS_MOST = 1, 3650
# Half of the 100 ms for which the lock may be held; the rest is for the flush.
STEP_NS = 50_000_000
STEP_FIRST, STEP_LEAST = 250, 10


class Deleted(Struct, frozen=True):
    """The number of deleted jobs that finished before `before`, by status, and the number of steps."""

    before: int
    removed: Mapping[str, int]
    steps: int

    def as_json(self) -> dict[str, Json]:
        return {
            "before": format_utc(self.before),
            "removed": dict(self.removed),
            "steps": self.steps,
            "total": sum(self.removed.values()),
        }


def retain(
    calls: Calls,
    *,
    days: int | None = None,
    dead_letters: bool = False,
    caller: Caller = LOCAL,
    progress: Callable[[int], None] = lambda _: None,
    go_on: Callable[[], bool] = lambda: True,
    steady: Callable[[], int] = steady_ns,
) -> Deleted:
    """Delete jobs that finished more than `days` ago (default: the setting); dead letters only with `dead_letters`.

    After each step `progress` gets the number deleted so far; before each `go_on` returns whether to continue. A
    failing step does not undo earlier ones.
    """
    kept_days = calls.policy.retention_days if days is None else days
    if not DAYS_LEAST <= kept_days <= DAYS_MOST:
        raise WrongUsage(f"Jobs are kept for {DAYS_LEAST} to {DAYS_MOST} days, not {kept_days}", days=kept_days)
    before = calls.clock() - kept_days * DAY_SEC * SECOND
    statuses = (Status.SUCCEEDED, Status.FAILED, *((Status.DEAD_LETTER,) if dead_letters else ()))
    removed = {status.value: 0 for status in statuses}
    steps, size = 0, STEP_FIRST
    for status in statuses:
        while go_on():
            gone, took = calls.store.write(_step(status, before, size, steady), metadata=caller.metadata)
            steps += gone > 0
            removed[status.value] += gone
            progress(sum(removed.values()))
            if gone < size:
                break
            size = _next_size(size, took)
    return Deleted(before, removed, steps)


def _next_size(size: int, took: int) -> int:
    """Halve the step if the last one took too long, double it if it was fast."""
    if took > STEP_NS:
        return max(STEP_LEAST, size // 2)
    return min(BATCH_MOST, size * 2) if took * 4 < STEP_NS else size


def _step(status: Status, before: int, size: int, steady: Callable[[], int]) -> Callable[[Writer], tuple[int, int]]:
    """Delete one step of jobs; return their number and the nanoseconds under the lock."""

    def work(tx: Writer) -> tuple[int, int]:
        began = steady()
        jobs = tx.over(status, before, size)
        if jobs:
            tx.remove(jobs)
        return len(jobs), steady() - began

    return work


class RetentionService:
    """Deletes old finished jobs in the background until `close`; dead letters stay."""

    def __init__(self, calls: Calls, *, every_sec: float = EVERY_SEC) -> None:
        self._calls = calls
        self._every = every_sec
        self._loop = BackgroundLoop(
            "pendula-jobs-retention",
            self._round,
            log=log,
            trouble="old finished jobs cannot be deleted",
            pause_sec=every_sec,
        )

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def _round(self) -> float:
        done = retain(self._calls, caller=Caller(SYSTEM), go_on=lambda: not self._loop.closed)
        if done.steps:
            log.info("deleted jobs that finished before %s: %s", format_utc(done.before), dict(done.removed))
        return self._every
