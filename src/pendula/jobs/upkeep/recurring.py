"""Keep the next occurrence of every time plan in the store, under a key derived from plan and time.

Any number of processes may do this for the same plans: the key makes each occurrence one job. An occurrence that came
due while no process ran is run late, once; occurrences missed after it are skipped. Plans of a settings file are
maintained only by processes with that file, all others by every process.
"""

import logging
from collections.abc import Sequence
from functools import partial

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls, plans
from pendula.jobs.cron import Cron, zone_of
from pendula.jobs.messages import Recurring
from pendula.jobs.model import SECOND
from pendula.jobs.plans import DECLARED_US, Plan, Source
from pendula.jobs.store.protocol import Writer

log = logging.getLogger("pendula.jobs.recurring")

LOOK_SEC = 60.0
PAUSE_SEC = 5.0


class Recurrences:
    """Keeps the next occurrence of each plan in the store; `entries` are those of a settings file."""

    def __init__(self, calls: Calls, entries: Sequence[Recurring]) -> None:
        """Raises `CronRefused` for an entry that never occurs, `ZoneRefused` for an unknown zone."""
        for entry in entries:
            Cron.parse(entry.cron)
            zone_of(entry.zone)
        self._calls = calls
        self._entries = {entry.name: entry for entry in entries}
        self._declared = False
        self._loop = BackgroundLoop(
            "pendula-jobs-recurring",
            self._round,
            log=log,
            trouble="recurring jobs cannot be enqueued",
            pause_sec=PAUSE_SEC,
        )

    def enqueue_next(self) -> int | None:
        """Enqueue missing occurrences; return the time of the next one, None without plans."""
        stored = {plan.name: plan for plan in self._calls.store.read(lambda look: look.plans())}
        self._declare(stored)
        now = self._calls.clock()
        next_at = [self._enqueue_next_of(plan, now) for plan in stored.values() if self._is_ours(plan)]
        return min((at for at in next_at if at is not None), default=None)

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def _is_ours(self, plan: Plan) -> bool:
        return plan.paused_at is None and (plan.source == Source.CALL or plan.name in self._entries)

    def _declare(self, stored: dict[str, Plan]) -> None:
        """Store the entries of the settings file: all in the first round, later only missing ones.

        If another process has another file, the process that started last wins; they do not alternate.
        """
        for name, entry in self._entries.items():
            plan = stored.get(name)
            if not self._declared or plan is None:
                stored[name] = self._calls.change_plans(partial(plans.declare, entry=entry))
            elif plan.declared_at + DECLARED_US <= self._calls.clock():
                self._calls.change_plans(partial(plans.still_declared, name=name))
        self._declared = True

    def _enqueue_next_of(self, plan: Plan, now: int) -> int | None:
        """Enqueue the next occurrence of a plan and return its time."""
        at = plan.next_after(now)
        if at is not None and plan.occurs_at != at:
            after = self._calls.change_plans(lambda tx, then: self._store_next(tx, plan.name, then))
            if after is not None and after.paused_at is None and after.job_id is None:
                log.error("the next occurrence of %s cannot be enqueued: another job has its key", plan.name)
        return at

    def _store_next(self, tx: Writer, name: str, now: int) -> Plan | None:
        plan = tx.plan(name)
        return None if plan is None else plans.keep_next(tx, plan, self._calls.policy, now)

    def _round(self) -> float:
        next_at = self.enqueue_next()
        return LOOK_SEC if next_at is None else min(LOOK_SEC, max(0, next_at - self._calls.clock()) / SECOND)
