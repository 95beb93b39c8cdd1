"""Attempts and failures of payments at each hop, from which bottlenecks are derived.

A committed payment counts at every hop of its routes, a refused one at the hops that would have to change. A technical
failure counts at the hops of the shortest chain, since its place is unknown.
"""

from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from msgspec import Struct

from pendula.credit.model import TECHNICAL, Code

TIMEOUTS_SHARE = Fraction(1, 5)


class HopCount(Struct):
    """Counts of one hop; `errors` excludes timeouts, so that each failed attempt counts once.

    `closed` counts rejections caused by the policy of the line, not by its capacity.
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
    """The saved counts of a hop, by the ends of its line."""

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
    """Counts by the number of the line; hops that were never tried are absent."""

    def __init__(self) -> None:
        self.of: dict[int, HopCount] = {}

    def made(self, hops: Iterable[int]) -> None:
        for h in hops:
            self._at(h).attempts += 1

    def failed(self, hops: Iterable[int], code: Code, closed: Collection[int] = ()) -> None:
        """Count a payment that failed at these hops; `closed` are the hops whose policy rejected it."""
        for h in hops:
            count = self._at(h)
            count.attempts += 1
            count.timeouts += code is Code.PAYMENT_TIMEOUT
            count.errors += code in TECHNICAL and code is not Code.PAYMENT_TIMEOUT
            count.rejected += code not in TECHNICAL
            count.closed += h in closed

    def bottlenecks(self) -> Iterator[Bottleneck]:
        """Hops where payments fail, worst first; ties by the number of the line."""
        worst = sorted((-count.score, h) for h, count in self.of.items() if count.score)
        return (Bottleneck(h, self.of[h]) for _, h in worst)

    def _at(self, h: int) -> HopCount:
        return self.of.setdefault(h, HopCount())
