"""Jobs that come again: the next occurrence of every entry is always in the store, with a key that follows from it.

Any number of processes may do this with the same entries: the key makes each occurrence one job. What came due while
nobody ran is done late, once; occurrences that passed unseen are not made up for.
"""

import logging
from collections.abc import Sequence
from typing import Any

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Caller, Calls
from pendula.jobs.cron import Cron
from pendula.jobs.model import SECOND, SYSTEM, Code, Refused
from pendula.jobs.settings_file import Recurring
from pendula.kernel.time import format_utc

log = logging.getLogger("pendula.jobs.recurring")

LOOK_SEC = 60.0
PAUSE_SEC = 5.0


class Recurrences:
    """Keeps the next `ahead` occurrences of each entry in the store."""

    def __init__(self, calls: Calls, entries: Sequence[Recurring], *, ahead: int = 1) -> None:
        """Raises `CronRefused` for an entry that never comes round."""
        self._calls = calls
        self._entries = [(entry, Cron.parse(entry.cron)) for entry in entries]
        self._ahead = ahead
        self._stored: dict[str, int] = {}
        self._loop = BackgroundLoop(
            "pendula-jobs-recurring",
            self._round,
            log=log,
            trouble="recurring jobs cannot be enqueued",
            pause_sec=PAUSE_SEC,
        )

    def enqueue_next(self) -> int | None:
        """Store what is missing; the moment at which something may be missing again, None without entries."""
        now = self._calls.clock()
        firsts = []
        for entry, cron in self._entries:
            at = cron.after(now)
            if at is None:
                continue
            firsts.append(at)
            for _ in range(self._ahead):
                if at is None:
                    break
                self._store(entry, at)
                at = cron.after(at)
        return min(firsts, default=None)

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def _store(self, entry: Recurring, at: int) -> None:
        if self._stored.get(entry.name, -1) >= at:
            return
        answer = self._calls.enqueue(body_of(entry, at), Caller(SYSTEM))
        # Its minute may come between our look at the clock and the store's: then it is the next one's turn.
        if isinstance(answer, Refused) and answer.code is not Code.RUN_AT_IN_PAST:
            log.error("%s cannot be enqueued for %s: %s", entry.name, format_utc(at), answer.message)
        self._stored[entry.name] = at

    def _round(self) -> float:
        coming = self.enqueue_next()
        return LOOK_SEC if coming is None else min(LOOK_SEC, max(0, coming - self._calls.clock()) / SECOND)


def body_of(entry: Recurring, at: int) -> dict[str, Any]:
    """The members of the enqueue for one occurrence."""
    run_at = format_utc(at)
    body: dict[str, Any] = {
        "object_type": entry.object_type,
        "object_id": entry.object_id,
        "action": entry.action,
        "run_at": run_at,
        "queue": entry.queue,
        "idempotency_key": f"recurring:{entry.name}:{entry.object_type}:{entry.object_id}:{entry.action}:{run_at}",
    }
    if entry.priority is not None:
        body["priority"] = entry.priority.word
    if entry.max_attempts is not None:
        body["max_attempts"] = entry.max_attempts
    return body
