"""Time plans are kept: the next occurrence of every plan is always in the store, with a key that follows from it.

Any number of processes may do this with the same plans: the key makes each occurrence one job. What came due while
nobody ran is done late, once; occurrences that passed unseen are not made up for. Plans of a settings file are looked
after by the processes that have them in theirs, all others by everybody.
"""

import logging
from collections.abc import Sequence
from functools import partial

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls, plans
from pendula.jobs.cron import Cron
from pendula.jobs.model import SECOND
from pendula.jobs.plans import DECLARED_US, Plan, Recurring, Source
from pendula.jobs.store.protocol import Writer
from pendula.jobs.zones import zone_of

log = logging.getLogger("pendula.jobs.recurring")

LOOK_SEC = 60.0
PAUSE_SEC = 5.0


class Recurrences:
    """Keeps the next occurrence of each plan in the store; `entries` are those of a settings file."""

    def __init__(self, calls: Calls, entries: Sequence[Recurring]) -> None:
        """Raises `CronRefused` for an entry that never comes round, `ZoneRefused` for a zone that is not known."""
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
        """Store what is missing; the moment at which something may be missing again, None without plans."""
        there = {plan.name: plan for plan in self._calls.store.read(lambda look: look.plans())}
        self._declare(there)
        now = self._calls.clock()
        coming = [self._kept(plan, now) for plan in there.values() if self._is_ours(plan)]
        return min((at for at in coming if at is not None), default=None)

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def _is_ours(self, plan: Plan) -> bool:
        return plan.paused_at is None and (plan.source == Source.CALL or plan.name in self._entries)

    def _declare(self, there: dict[str, Plan]) -> None:
        """Put the entries of the file into the store: all at first, then those that are missing there.

        Where another process has another file, the last that began has its way; they do not take turns.
        """
        for name, entry in self._entries.items():
            plan = there.get(name)
            if not self._declared or plan is None:
                there[name] = self._calls.change_plans(partial(plans.declare, entry=entry))
            elif plan.declared_at + DECLARED_US <= self._calls.clock():
                self._calls.change_plans(partial(plans.still_declared, name=name))
        self._declared = True

    def _kept(self, plan: Plan, now: int) -> int | None:
        """When the plan occurs next; that occurrence is in the store then."""
        at = plan.next_after(now)
        if at is not None and plan.occurs_at != at:
            after = self._calls.change_plans(lambda tx, then: self._keep_next(tx, plan.name, then))
            if after is not None and after.paused_at is None and after.job_id is None:
                log.error("the next occurrence of %s cannot be enqueued: its key is taken by something else", plan.name)
        return at

    def _keep_next(self, tx: Writer, name: str, now: int) -> Plan | None:
        plan = tx.plan(name)
        return None if plan is None else plans.keep_next(tx, plan, self._calls.policy, now)

    def _round(self) -> float:
        coming = self.enqueue_next()
        return LOOK_SEC if coming is None else min(LOOK_SEC, max(0, coming - self._calls.clock()) / SECOND)
