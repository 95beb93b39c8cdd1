"""Run the maintenance of a store in background threads: alerts, time plans, checks for unhandled jobs and stalls.

For `pendula jobs worker --db` and your own programs; a server does it anyway.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import asdict

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls, queries
from pendula.jobs.hooks import governance
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.settings_file import Configured
from pendula.jobs.store.protocol import Unhandled, Writer
from pendula.jobs.upkeep.alerts import Alerts, Webhook
from pendula.jobs.upkeep.recurring import Recurrences
from pendula.kernel.canonical import Json
from pendula.kernel.errors import WorldBroken
from pendula.kernel.time import format_utc

log = logging.getLogger("pendula.jobs")
learning_log = logging.getLogger("pendula.jobs.learning")
unhandled_log = logging.getLogger("pendula.jobs.unhandled")

UNHANDLED_SEC, LEARNING_SEC = 30.0, 3600.0  # between two checks


@contextmanager
def in_background(scheduler: Scheduler, configured: Configured | None = None) -> Iterator[None]:
    """Maintain the store as configured, in background threads, until the block ends.

    Alerts go to the log and to the configured webhook; the remaining ones are sent at the end.
    """
    settings = configured or Configured()
    recurring = Recurrences(scheduler.calls, settings.recurring)
    try:
        recurring.enqueue_next()
    except WorldBroken as trouble:  # retried in the background
        log.warning("recurring jobs cannot be enqueued now: %s", trouble)
    parts = (_alerts(scheduler, settings), recurring, UnhandledJobs(scheduler.calls), Learning(scheduler.calls))
    for part in parts:
        part.start()
    try:
        yield
    finally:
        for part in parts:
            part.close()
    # The last jobs may have raised alerts that no other process sends.
    try:
        _alerts(scheduler, settings).deliver()
    except WorldBroken as trouble:
        log.warning("alerts cannot be delivered now: %s", trouble)


def _alerts(scheduler: Scheduler, configured: Configured) -> Alerts:
    sinks = () if configured.alert_webhook is None else (Webhook(configured.alert_webhook),)
    return Alerts(scheduler.calls.store, scheduler.calls.clock, sinks)


class UnhandledJobs:
    """Alerts about due jobs that no worker handles: one alert for each kind of job, however many processes check.

    A kind is unhandled when a job of it has been due for `unhandled_alert_sec`, none is running, and none was delivered
    in that time: no live worker has a handler for it.
    """

    def __init__(self, calls: Calls, *, every_sec: float = UNHANDLED_SEC) -> None:
        self._calls = calls
        self._every = every_sec
        self._alerted: set[str] = set()
        self._loop = BackgroundLoop(
            "pendula-jobs-unhandled",
            self._round,
            log=unhandled_log,
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
        **asdict(queries.unhandled_work(kind)),
        "at": format_utc(now),
    }


class Learning:
    """Lets governance check a store that has governed objects, such as for a stop of exploratory verifications."""

    def __init__(self, calls: Calls, *, every_sec: float = LEARNING_SEC) -> None:
        self._calls = calls
        self._every = every_sec
        self._loop = BackgroundLoop(
            "pendula-jobs-learning",
            self._round,
            log=learning_log,
            trouble="the learning rate cannot be checked",
            pause_sec=every_sec,
        )

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def check(self) -> bool:
        """Whether learning has stalled; a stall has one alert."""
        store, policy, now = self._calls.store, self._calls.policy, self._calls.clock()
        return store.read(lambda look: look.any_governed()) and governance().check_learning(store, policy, now)

    def _round(self) -> float:
        self.check()
        return self._every
