"""Alert when exploratory verifications stop: three periods in a row without one.

One alert for each stall, however many processes check; the next one only after another exploratory verification.
"""

import logging

from pendula.governance.applying import Stall, stall
from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

log = logging.getLogger("pendula.jobs.learning")

LOOK_SEC = 3600.0
ALERT = "governance.learning_stalled"


class Learning:
    """Checks in the background, from `start` to `close`."""

    def __init__(self, calls: Calls, *, every_sec: float = LOOK_SEC) -> None:
        self._calls = calls
        self._every = every_sec
        self._alerted: str | None = None
        self._loop = BackgroundLoop(
            "pendula-jobs-learning",
            self._round,
            log=log,
            trouble="the learning rate cannot be checked",
            pause_sec=every_sec,
        )

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def check(self) -> bool:
        """Store an alert unless this stall has one; return whether there is a stall."""
        now = self._calls.clock()
        days = self._calls.policy.limits.learning_period_days
        current_stall = self._calls.store.read(lambda look: stall(look.governance, days, now))
        if current_stall is None:
            return False
        alert_id = f"learning_stalled:{current_stall.last}"
        if alert_id != self._alerted:
            self._calls.store.write(lambda tx: tx.alert(alert_id, _alert(alert_id, current_stall, now)))
            self._alerted = alert_id
        return True

    def _round(self) -> float:
        self.check()
        return self._every


def _alert(alert_id: str, current_stall: Stall, now: int) -> dict[str, Json]:
    return {
        "alert": ALERT,
        "alert_id": alert_id,
        "severity": "warning",
        "periods": current_stall.periods,
        "since": format_utc(current_stall.since),
        "at": format_utc(now),
    }
