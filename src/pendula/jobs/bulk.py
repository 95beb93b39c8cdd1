"""Cancel or requeue all jobs that fit a filter: counted first, then step by step, each step a transaction of its own.

    timeouts = {"status": "dead_letter", "error_code": "timeout"}
    print(scheduler.count(**timeouts)["count"])
    requeue_all(scheduler, timeouts, reason="the service is back")

New jobs are never met on the way: a run goes from the newest job back to the oldest. What a step has done stays done
when a later one fails.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

STEP = 1000


class Bulk(Protocol):
    """A scheduler as this needs it: `Scheduler` and `RemoteScheduler` are."""

    def cancel_batch(self, **members: Any) -> dict[str, Any]: ...

    def requeue_batch(self, **members: Any) -> dict[str, Any]: ...


class Changed(Struct, frozen=True):
    """What a run did: how many jobs fitted, how many it changed, in how many steps."""

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
    """Cancel all that fit; queued jobs, or with `status: running` the wish for those at work."""
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
    """Requeue all that fit; dead letters, or with `status: failed` those."""
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
