"""Run the maintenance of a store in background threads: alerts, time plans, checks for unhandled jobs and stalls.

For `pendula jobs worker --db` and your own programs; a server does it anyway.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pendula.jobs.scheduler import Scheduler
from pendula.jobs.settings_file import Configured
from pendula.jobs.upkeep.alerts import Alerts, Webhook
from pendula.jobs.upkeep.learning import Learning
from pendula.jobs.upkeep.recurring import Recurrences
from pendula.jobs.upkeep.unhandled import UnhandledJobs
from pendula.kernel.errors import WorldBroken

log = logging.getLogger("pendula.jobs")


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
