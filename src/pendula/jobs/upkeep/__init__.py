"""What keeps a store in order beside the work itself; six of them may run in the background.

alerts          dead letters are told: every alert to every sink, at least once, with growing pauses
outbox          objects in another database are told of their next time: at least once, in order, with a fence
recurring       jobs that come again: the next occurrence of every time plan is always in the store
unhandled       jobs that are due and that nobody takes are told
learning        that nothing is found out any more about uncertain objects is told
together        what every worker on a store does beside its work: alerts, recurring, unhandled, learning
retention       what has been over for long is removed, in small steps; a key may be freed
verification    whether a store is what it should be: its file, its invariants, its trail replayed
job_trail       whether jobs and the next times of objects are what the trail tells
governed_trail  whether governed objects are what the trail tells
findings        what such looks find

`alerts` (HTTP) and `together` are loaded when they are needed: they load more than the rest.
"""

from typing import TYPE_CHECKING, Any

from pendula.jobs.upkeep.outbox import WriteBacks
from pendula.jobs.upkeep.recurring import Recurrences
from pendula.jobs.upkeep.retention import free_key, retain
from pendula.jobs.upkeep.verification import check, replay

if TYPE_CHECKING:
    from pendula.jobs.upkeep.together import in_background

__all__ = ["Recurrences", "WriteBacks", "check", "free_key", "in_background", "replay", "retain"]


def __getattr__(name: str) -> Any:
    if name != "in_background":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pendula.jobs.upkeep.together import in_background

    return in_background
