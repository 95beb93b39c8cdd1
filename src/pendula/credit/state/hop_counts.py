"""How often payments tried each hop and how often they failed there: what bottlenecks are told from.

A payment that was made counts at every hop of its routes; one that was refused at the hops that would have to change,
and one that failed technically at those of the shortest chain, since nothing says where.
"""

from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from msgspec import Struct

from pendula.credit.model import TECHNICAL, Code

TIMEOUTS_SHARE = Fraction(1, 5)


class HopCount(Struct):
    """Of one hop; `errors` without the timeouts, so that each failed attempt counts once.

    `closed` are those of the rejected that the line did not let pass, however much it has left.
    """

    attempts: int = 0
    rejected: int = 0
    errors: int = 0
    timeouts: int = 0
    closed: int = 0

    @property
    def score(self) -> Fraction:
        """The share of attempts that failed here, 0 to 1."""
        return Fraction(self.errors + self.timeouts + self.rejected, self.attempts) if self.attempts else Fraction(0)

    @property
    def reason(self) -> str:
        if self.attempts and Fraction(self.timeouts, self.attempts) >= TIMEOUTS_SHARE:
            return "TOO_MANY_TIMEOUTS"
        return "FREQUENT_ABORTS" if self.rejected or self.errors else "HIGH_USED"


class SavedCount(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """The counts of a hop as they are saved, by the ends of its line."""

    creditor: str
    debtor: str
    attempts: int
    rejected: int
    errors: int
    timeouts: int
    closed: int


class Bottleneck(NamedTuple):
    """A line at which payments fail, and how often."""

    hop: int
    counts: HopCount


class HopCounts:
    """The hops of one book by the numbers of their lines; those that nobody has tried are not there."""

    def __init__(self) -> None:
        self.of: dict[int, HopCount] = {}

    def made(self, hops: Iterable[int]) -> None:
        for h in hops:
            self._at(h).attempts += 1

    def failed(self, hops: Iterable[int], code: Code, closed: Collection[int] = ()) -> None:
        """A payment that failed at these hops; `closed` are those that did not let it pass."""
        for h in hops:
            count = self._at(h)
            count.attempts += 1
            count.timeouts += code is Code.PAYMENT_TIMEOUT
            count.errors += code in TECHNICAL and code is not Code.PAYMENT_TIMEOUT
            count.rejected += code not in TECHNICAL
            count.closed += h in closed

    def bottlenecks(self) -> Iterator[Bottleneck]:
        """Where payments fail, the worst first, of equals the line that comes first."""
        worst = sorted((-count.score, h) for h, count in self.of.items() if count.score)
        return (Bottleneck(h, self.of[h]) for _, h in worst)

    def _at(self, h: int) -> HopCount:
        return self.of.setdefault(h, HopCount())
