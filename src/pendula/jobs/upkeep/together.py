"""What a process that works on a store does beside the work: send alerts, keep time plans, tell of what nobody takes.

For `pendula jobs worker --db` and for programs of your own; a server does it by itself.
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
    """Look after the store as its settings file says, in threads of their own, until the block ends.

    Alerts go to the log, and to the webhook if there is one; whatever is left at the end is sent then.
    """
    told = configured or Configured()
    recurring = Recurrences(scheduler.calls, told.recurring)
    try:
        recurring.enqueue_next()
    except WorldBroken as trouble:  # tried again in the background
        log.warning("recurring jobs cannot be enqueued now: %s", trouble)
    parts = (_alerts(scheduler, told), recurring, UnhandledJobs(scheduler.calls), Learning(scheduler.calls))
    for part in parts:
        part.start()
    try:
        yield
    finally:
        for part in parts:
            part.close()
    # Who ends may have left alerts, and nobody may be there to send them.
    try:
        _alerts(scheduler, told).deliver()
    except WorldBroken as trouble:
        log.warning("alerts cannot be delivered now: %s", trouble)


def _alerts(scheduler: Scheduler, configured: Configured) -> Alerts:
    sinks = () if configured.alert_webhook is None else (Webhook(configured.alert_webhook),)
    return Alerts(scheduler.calls.store, scheduler.calls.clock, sinks)
