"""Whether anything is still found out: exploratory verifications, told apart by periods, a week each unless set.

A verification explores where the object is uncertain and somebody may still try or collect; whoever decides with care,
asks, or abstains does not. Three whole periods in a row without one are a stall. What is kept are days, so that another
length of the period means the same for what lies back.
"""

from collections.abc import Iterator

from msgspec import Struct

from pendula.jobs.objects.governed import DAY_US, Governed, Mode
from pendula.jobs.store.governed_protocol import GovernedReading, GovernedWriting

STALLED_PERIODS = 3
BEGAN, EXPLORED = "governed_on", "explored_on"
INNER = frozenset({BEGAN, EXPLORED})  # kinds of counts that are for this module alone
EXPLORING = frozenset({Mode.EXPLORE, Mode.COLLECT})


class Stall(Struct, frozen=True):
    """So many whole periods without an exploratory verification, since a moment; the last one was on the day `last`."""

    periods: int
    last: int
    since: int


def began(tx: GovernedWriting, now: int) -> None:
    """An object came under governance: from now on there is something to be found out."""
    tx.count(BEGAN, str(now // DAY_US))


def explored(tx: GovernedWriting, subject: Governed, now: int) -> None:
    """A verifier is entered."""
    if subject.decision_mode in EXPLORING:
        tx.count(EXPLORED, str(now // DAY_US))


def stall(look: GovernedReading, period_days: int, now: int) -> Stall | None:
    """How long nothing was explored, where that is too long; nothing where nothing is governed."""
    counts = look.counts()
    first = min(_days(counts, BEGAN), default=None)
    if first is None:
        return None
    last = max([first, *_days(counts, EXPLORED)])
    current, latest = now // DAY_US // period_days, last // period_days
    periods = current - latest - 1
    since = (latest + 1) * period_days * DAY_US
    return Stall(periods, last, since) if periods >= STALLED_PERIODS else None


def _days(counts: list[tuple[str, str, int]], kind: str) -> Iterator[int]:
    return (int(word) for counted, word, _ in counts if counted == kind)
