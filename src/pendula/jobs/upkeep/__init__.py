"""Maintenance of a store; six of these run in the background.

alerts               delivers every alert to every sink, at least once, with growing retry delays
outbox               delivers write-backs to objects in another database: at least once, in order, with a fence
recurring            keeps the next occurrence of every time plan in the store
background_services  alerts about unhandled jobs, checks by governance; all services of a worker on a store
retention            deletes old finished jobs, in small steps
verification         checks a store: its file, its invariants, and jobs and objects against its audit trail

`alerts` (HTTP) and `background_services` are imported lazily, because they load more than the rest.
"""

from typing import TYPE_CHECKING, Any

from pendula.jobs.upkeep.outbox import WriteBacks
from pendula.jobs.upkeep.recurring import Recurrences
from pendula.jobs.upkeep.retention import retain
from pendula.jobs.upkeep.verification import check, replay

if TYPE_CHECKING:
    from pendula.jobs.upkeep.background_services import in_background

__all__ = ["Recurrences", "WriteBacks", "check", "in_background", "replay", "retain"]


def __getattr__(name: str) -> Any:
    if name != "in_background":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pendula.jobs.upkeep.background_services import in_background

    return in_background
