"""What leaves a store: jobs that have been over for long, in small steps, and the ban on their keys.

A removed job's key stays used, and every event about it stays in the trail, packed. Nobody waits long for the lock of
the writers: a step takes away at most a thousand jobs, and fewer where that takes too long.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import LOCAL, Answer, Caller, Calls, Reply
from pendula.jobs.model import BATCH_MOST, SECOND, SYSTEM, Code, Refused, Status
from pendula.jobs.request_reading import BodyReader
from pendula.jobs.requests import KEY_MOST, REASON_MOST
from pendula.jobs.store.protocol import Writer
from pendula.kernel.canonical import Json
from pendula.kernel.errors import WrongUsage
from pendula.kernel.time import format_utc
from pendula.kernel.wallclock import steady_ns

log = logging.getLogger("pendula.jobs.retention")

DAY_SEC = 86_400
EVERY_SEC = 3600.0
DAYS_LEAST, DAYS_MOST = 1, 3650
FREE = frozenset(["idempotency_key", "reason"])
# Half of the 100 ms for which the lock may be held; the flush needs its share, too.
STEP_NS = 50_000_000
STEP_FIRST, STEP_LEAST = 250, 10


class Retained(Struct, frozen=True):
    """What was removed: jobs that were over before `before`, by status, in so many steps."""

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
    wanted: Callable[[], bool] = lambda: True,
    steady: Callable[[], int] = steady_ns,
) -> Retained:
    """Remove what has been over for `days` (as the settings say, where it is None); dead letters only when told to.

    `progress` hears after each step how many are gone; `wanted` is asked before each whether to go on. What is removed
    stays so when a later step fails.
    """
    kept_days = calls.policy.retention_days if days is None else days
    if not DAYS_LEAST <= kept_days <= DAYS_MOST:
        raise WrongUsage(f"Jobs are kept for {DAYS_LEAST} to {DAYS_MOST} days, not {kept_days}", days=kept_days)
    before = calls.clock() - kept_days * DAY_SEC * SECOND
    statuses = (Status.SUCCEEDED, Status.FAILED, *((Status.DEAD_LETTER,) if dead_letters else ()))
    removed = {status.value: 0 for status in statuses}
    steps, size = 0, STEP_FIRST
    for status in statuses:
        while wanted():
            gone, took = calls.store.write(_step(status, before, size, steady), metadata=caller.metadata)
            steps += gone > 0
            removed[status.value] += gone
            progress(sum(removed.values()))
            if gone < size:
                break
            size = _next_size(size, took)
    return Retained(before, removed, steps)


def _next_size(size: int, took: int) -> int:
    """Smaller steps where the last one took too long, larger ones where it took hardly any time."""
    if took > STEP_NS:
        return max(STEP_LEAST, size // 2)
    return min(BATCH_MOST, size * 2) if took * 4 < STEP_NS else size


def _step(status: Status, before: int, size: int, steady: Callable[[], int]) -> Callable[[Writer], tuple[int, int]]:
    """Takes some away; how many, and how long that took once the lock was held."""

    def work(tx: Writer) -> tuple[int, int]:
        began = steady()
        jobs = tx.over(status, before, size)
        if jobs:
            tx.remove(jobs)
        return len(jobs), steady() - began

    return work


def free_key(calls: Calls, body: Mapping[str, Any], caller: Caller = LOCAL) -> Answer:
    """Let the key of a removed job be used again: `{"idempotency_key", "reason"}` in, `{"freed"}` out.

    A key that nobody used is free already; one that a job in the store holds stays its own.
    """
    read = BodyReader(body, FREE)
    key = read.text("idempotency_key", KEY_MOST) if read.required("idempotency_key") else None
    reason = read.text("reason", REASON_MOST) if read.required("reason") else None
    if read.faults.found or key is None or reason is None:
        return read.faults.refusal()

    def work(tx: Writer) -> Answer:
        holder = tx.by_keys([key]).get(key)
        if holder is not None:
            details: dict[str, Json] = {"idempotency_key": key, "job_id": holder.job_id}
            return Refused(Code.IDEMPOTENCY_KEY_CONFLICT, "key is held by a job in the store", details)
        freed = tx.free(key, reason, caller.actor, calls.clock())
        return Reply(200, {"freed": freed, "idempotency_key": key})

    return calls.store.write(work, metadata=caller.metadata)


class Retaining:
    """Removes what has been over for long, in the background until `close`; dead letters stay."""

    def __init__(self, calls: Calls, *, every_sec: float = EVERY_SEC) -> None:
        self._calls = calls
        self._every = every_sec
        self._loop = BackgroundLoop(
            "pendula-jobs-retention",
            self._round,
            log=log,
            trouble="jobs that are over cannot be removed",
            pause_sec=every_sec,
        )

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def _round(self) -> float:
        done = retain(self._calls, caller=Caller(SYSTEM), wanted=lambda: not self._loop.closed)
        if done.steps:
            log.info("removed jobs that were over before %s: %s", format_utc(done.before), dict(done.removed))
        return self._every
