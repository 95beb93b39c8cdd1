"""Whether exploratory verifications still happen, counted by period (a week unless set).

A verification is exploratory if the object is uncertain and its mode is explore or collect. Three whole periods in a
row without one are a stall. Counts are stored by day, so that the length of the period can change.
"""

from collections.abc import Iterator

from msgspec import Struct

from pendula.jobs.objects.governed import DAY_US, Governed, Mode
from pendula.jobs.store.governed_protocol import GovernedReading, GovernedWriting

STALLED_PERIODS = 3
GOVERNED_ON, EXPLORED_ON = "governed_on", "explored_on"
INTERNAL_COUNTS = frozenset({GOVERNED_ON, EXPLORED_ON})  # kinds of counts that only this module reads
EXPLORING = frozenset({Mode.EXPLORE, Mode.COLLECT})


class Stall(Struct, frozen=True):
    """A number of whole periods without an exploratory verification, since an instant; the last was on day `last`."""

    periods: int
    last: int
    since: int


def record_governed(tx: GovernedWriting, now: int) -> None:
    """Record that an object came under governance, which starts the count of periods."""
    tx.count(GOVERNED_ON, str(now // DAY_US))


def record_exploration(tx: GovernedWriting, subject: Governed, now: int) -> None:
    """Record a verification, if it is exploratory."""
    if subject.decision_mode in EXPLORING:
        tx.count(EXPLORED_ON, str(now // DAY_US))


def stall(look: GovernedReading, period_days: int, now: int) -> Stall | None:
    """The current stall, or None; there is none without governed objects."""
    counts = look.counts()
    first = min(_days(counts, GOVERNED_ON), default=None)
    if first is None:
        return None
    last = max([first, *_days(counts, EXPLORED_ON)])
    current, latest = now // DAY_US // period_days, last // period_days
    periods = current - latest - 1
    since = (latest + 1) * period_days * DAY_US
    return Stall(periods, last, since) if periods >= STALLED_PERIODS else None


def _days(counts: list[tuple[str, str, int]], kind: str) -> Iterator[int]:
    return (int(word) for counted, word, _ in counts if counted == kind)
