"""Tells when nothing is found out any more: three periods in a row without an exploratory verification.

One alert for each stall, however many processes look; the next one after something was explored again.
"""

import logging

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls
from pendula.jobs.governing.learning import Stall, stall
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

log = logging.getLogger("pendula.jobs.learning")

LOOK_SEC = 3600.0
ALERT = "governance.learning_stalled"


class Learning:
    """Looks in the background, from `start` to `close`."""

    def __init__(self, calls: Calls, *, every_sec: float = LOOK_SEC) -> None:
        self._calls = calls
        self._every = every_sec
        self._told: str | None = None
        self._loop = BackgroundLoop(
            "pendula-jobs-learning", self._round, log=log, trouble="learning cannot be looked at", pause_sec=every_sec
        )

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def tell(self) -> bool:
        """Store an alert unless this stall has one; whether there is a stall."""
        now = self._calls.clock()
        days = self._calls.policy.limits.learning_period_days
        found = self._calls.store.read(lambda look: stall(look.governance, days, now))
        if found is None:
            return False
        alert_id = f"learning_stalled:{found.last}"
        if alert_id != self._told:
            self._calls.store.write(lambda tx: tx.alert(alert_id, _alert(alert_id, found, now)))
            self._told = alert_id
        return True

    def _round(self) -> float:
        self.tell()
        return self._every


def _alert(alert_id: str, found: Stall, now: int) -> dict[str, Json]:
    return {
        "alert": ALERT,
        "alert_id": alert_id,
        "severity": "warning",
        "periods": found.periods,
        "since": format_utc(found.since),
        "at": format_utc(now),
    }
