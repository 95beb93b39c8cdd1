"""Cancel or requeue all jobs that match a filter, step by step, each step in its own transaction.

    timeouts = {"status": "dead_letter", "error_code": "timeout"}
    print(scheduler.count(**timeouts)["count"])
    requeue_all(scheduler, timeouts, reason="the service is back")

A run goes from the newest job back to the oldest, so it never meets new jobs. Completed steps stay when a later one
fails.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

STEP = 1000


class Bulk(Protocol):
    """The calls this needs: `Scheduler` and `RemoteScheduler` have them."""

    def cancel_batch(self, **members: Any) -> dict[str, Any]: ...

    def requeue_batch(self, **members: Any) -> dict[str, Any]: ...


class Changed(Struct, frozen=True):
    """The result of a run: how many jobs matched, how many it changed, in how many steps."""

    matched: int
    changed: int
    steps: int


def cancel_all(
    scheduler: Bulk,
    filter: Mapping[str, Any],
    *,
    reason: str | None = None,
    step: int = STEP,
    progress: Callable[[int], None] = lambda _: None,
) -> Changed:
    """Cancel all matching queued jobs; with `status: running`, request the cancellation of running ones."""
    return _run(scheduler.cancel_batch, {"filter": dict(filter), "reason": reason, "limit": step}, progress)


def requeue_all(
    scheduler: Bulk,
    filter: Mapping[str, Any],
    *,
    reason: str | None = None,
    run_at: Any = None,
    step: int = STEP,
    progress: Callable[[int], None] = lambda _: None,
) -> Changed:
    """Requeue all matching dead letters; with `status: failed`, failed jobs."""
    members = {"filter": dict(filter), "reason": reason, "run_at": run_at, "limit": step}
    return _run(scheduler.requeue_batch, members, progress)


def _run(call: Callable[..., dict[str, Any]], members: dict[str, Any], progress: Callable[[int], None]) -> Changed:
    given = {name: value for name, value in members.items() if value is not None}
    matched = changed = steps = 0
    while True:
        reply = call(**given)
        steps += 1
        matched += reply["matched"]
        changed += reply["changed"]
        progress(matched)
        if reply["next_cursor"] is None:
            return Changed(matched, changed, steps)
        given["cursor"] = reply["next_cursor"]
