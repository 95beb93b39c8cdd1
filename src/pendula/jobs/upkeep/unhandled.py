"""Alert about due jobs that no worker handles: one alert for each kind of job, however many processes check.

A kind is unhandled when a job of it has been due for `unhandled_alert_sec`, none is running, and none was delivered in
that time: no live worker has a handler for it.
"""

import logging

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls, queries
from pendula.jobs.store.protocol import Unhandled, Writer
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

log = logging.getLogger("pendula.jobs.unhandled")

LOOK_SEC = 30.0


class UnhandledJobs:
    """Checks in the background, from `start` to `close`."""

    def __init__(self, calls: Calls, *, every_sec: float = LOOK_SEC) -> None:
        self._calls = calls
        self._every = every_sec
        self._alerted: set[str] = set()
        self._loop = BackgroundLoop(
            "pendula-jobs-unhandled",
            self._round,
            log=log,
            trouble="unhandled jobs cannot be checked",
            pause_sec=every_sec,
        )

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def check(self) -> int:
        """Store an alert for each unhandled kind without one; return the number of kinds."""
        now = self._calls.clock()
        kinds = queries.unhandled(self._calls.store, self._calls.policy, now)
        new = [kind for kind in kinds if _alert_id(kind) not in self._alerted]
        if new:
            self._calls.store.write(lambda tx: _store(tx, new, now))
        self._alerted = {_alert_id(kind) for kind in kinds}
        return len(kinds)

    def _round(self) -> float:
        self.check()
        return self._every


def _store(tx: Writer, kinds: list[Unhandled], now: int) -> None:
    for kind in kinds:
        tx.alert(_alert_id(kind), _alert(kind, now))


def _alert_id(kind: Unhandled) -> str:
    """Stays the same while the job that waits longest is the same."""
    return f"unhandled:{kind.object_type}:{kind.action}:{kind.job_id}:{kind.since}"


def _alert(kind: Unhandled, now: int) -> dict[str, Json]:
    return {
        "alert": "job.unhandled",
        "alert_id": _alert_id(kind),
        "severity": "warning",
        **queries.unhandled_json(kind),
        "at": format_utc(now),
    }
