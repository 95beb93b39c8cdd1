"""Cancel or requeue all jobs that match a filter, step by step, each step in its own transaction.

    timeouts = {"status": "dead_letter", "error_code": "timeout"}
    print(scheduler.count(**timeouts).count)
    requeue_all(scheduler, timeouts, reason="the service is back")

A run goes from the newest job back to the oldest, so it never meets new jobs. Completed steps stay when a later one
fails.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from pendula.jobs.messages import CANCEL_BATCH, REQUEUE_BATCH, Call, Moment, Operated
from pendula.jobs.scheduler_calls import FilterMembers, SchedulerCalls

STEP = 1000


class Changed(Struct, frozen=True):
    """The result of a run: how many jobs matched, how many it changed, in how many steps."""

    matched: int
    changed: int
    steps: int


def cancel_all(
    scheduler: SchedulerCalls,
    filter: FilterMembers | Mapping[str, Any],
    *,
    reason: str | None = None,
    step: int = STEP,
    progress: Callable[[int], None] = lambda _: None,
) -> Changed:
    """Cancel all matching queued jobs; with `status: running`, request the cancellation of running ones."""
    return _run(scheduler, CANCEL_BATCH, {"filter": dict(filter), "reason": reason, "limit": step}, progress)


def requeue_all(
    scheduler: SchedulerCalls,
    filter: FilterMembers | Mapping[str, Any],
    *,
    reason: str | None = None,
    run_at: Moment | None = None,
    step: int = STEP,
    progress: Callable[[int], None] = lambda _: None,
) -> Changed:
    """Requeue all matching dead letters; with `status: failed`, failed jobs."""
    members = {"filter": dict(filter), "reason": reason, "run_at": run_at, "limit": step}
    return _run(scheduler, REQUEUE_BATCH, members, progress)


def _run(
    scheduler: SchedulerCalls, call: Call[Operated], members: dict[str, Any], progress: Callable[[int], None]
) -> Changed:
    given = {name: value for name, value in members.items() if value is not None}
    matched = changed = steps = 0
    while True:
        reply = scheduler.send(call, given)
        steps += 1
        matched += reply.matched
        changed += reply.changed
        progress(matched)
        if reply.next_cursor is None:
            return Changed(matched, changed, steps)
        given["cursor"] = reply.next_cursor
