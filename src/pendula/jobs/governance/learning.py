"""Whether anything is still found out: exploratory verifications, counted by periods of a week.

A verification explores where the object is uncertain and somebody may still try or collect; whoever decides with care,
asks, or abstains does not. Three whole periods in a row without one are a stall.
"""

from msgspec import Struct

from pendula.jobs.objects.governed import DAY_US, Governed, Mode
from pendula.jobs.store.governed_protocol import GovernedReading, GovernedWriting

PERIOD_US = 7 * DAY_US
STALLED_PERIODS = 3
BEGAN, EXPLORED = "governed_in", "explored_in"
INNER = frozenset({BEGAN, EXPLORED})  # kinds of counts that are for this module alone
EXPLORING = frozenset({Mode.EXPLORE, Mode.COLLECT})


class Stall(Struct, frozen=True):
    """So many whole periods without an exploratory verification, since the end of `last`."""

    periods: int
    last: int

    @property
    def since(self) -> int:
        return (self.last + 1) * PERIOD_US


def began(tx: GovernedWriting, now: int) -> None:
    """An object came under governance: from now on there is something to be found out."""
    tx.count(BEGAN, str(now // PERIOD_US))


def explored(tx: GovernedWriting, subject: Governed, now: int) -> None:
    """A verifier is entered."""
    if subject.decision_mode in EXPLORING:
        tx.count(EXPLORED, str(now // PERIOD_US))


def stall(look: GovernedReading, now: int) -> Stall | None:
    """How long nothing was explored, where that is too long; nothing where nothing is governed."""
    counts = look.counts()
    first = min((int(word) for kind, word, _ in counts if kind == BEGAN), default=None)
    if first is None:
        return None
    last = max((int(word) for kind, word, _ in counts if kind == EXPLORED), default=first)
    periods = now // PERIOD_US - max(last, first) - 1
    return Stall(periods, max(last, first)) if periods >= STALLED_PERIODS else None
