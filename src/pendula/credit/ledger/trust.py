"""Trust that grows where debts are cleared and shrinks where they stay high; whole cents, exact ratios."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from pendula.credit.ledger.book import Book
from pendula.credit.model import Drift, LineStatus
from pendula.credit.money import CENT, MOST


def whole_cents(amount: int) -> int:
    return amount // CENT * CENT


class Trust:
    """How the limits of one book have changed, and which lines are overloaded now."""

    def __init__(self, book: Book, drift: Drift) -> None:
        self.book = book
        # A limit of whole cents is kept as the same object: there is one for every line.
        self.original = [whole_cents(limit) if limit % CENT else limit for limit in book.limit]
        self.clearing_count: dict[int, int] = {}
        self.last_clearing: dict[int, int] = {}
        self.cleared_volume: dict[int, int] = {}
        # Fractions: arithmetic on decimals would round as the context of the process says.
        self._grow = (1 + Fraction(drift.growth_rate)).as_integer_ratio()
        self._shrink = (1 - Fraction(drift.decay_rate)).as_integer_ratio()
        self._most = _exact(drift.max_growth)
        self._least = _exact(drift.min_limit_ratio)
        self._threshold = _exact(drift.overload_threshold)
        self._overloaded: dict[int, None] = {}
        self.look(range(len(book)))

    def begin(self, h: int) -> None:
        """Forget what was known of a line."""
        self.original[h] = whole_cents(self.book.limit[h])
        for known in (self.clearing_count, self.last_clearing, self.cleared_volume):
            known.pop(h, None)

    def look(self, lines: Iterable[int]) -> None:
        """Note which of these lines are overloaded; all others are as they were."""
        book, (numerator, denominator) = self.book, self._threshold
        for h in lines:
            limit = book.limit[h]
            over = limit > 0 and max(0, book.owed[h]) * denominator >= limit * numerator
            if over and book.status[h] is LineStatus.ACTIVE:
                self._overloaded[h] = None
            else:
                self._overloaded.pop(h, None)

    def cleared(self, amounts: dict[int, int], tick: int) -> list[int]:
        """Lines on cleared cycles, once a call, with what was cleared on each; returns those whose limit grew."""
        book, grown = self.book, []
        for h in sorted(amounts):
            self.clearing_count[h] = self.clearing_count.get(h, 0) + 1
            self.last_clearing[h] = tick
            self.cleared_volume[h] = self.cleared_volume.get(h, 0) + amounts[h]
            limit = book.limit[h]
            wanted = min(_times(limit, self._grow), _times(self.original[h], self._most), MOST)
            if whole_cents(wanted) > limit:
                book.set_limit(h, whole_cents(wanted))
                grown.append(h)
        return grown

    def decay(self, tick: int) -> list[int]:
        """Overloaded lines that were not cleared in this tick lose some of their limit, never below the debt."""
        book, shrunk = self.book, []
        self.look(book.touched)
        for h in sorted(self._overloaded):
            if self.last_clearing.get(h) == tick:
                continue
            limit = book.limit[h]
            debt = -(-max(0, book.owed[h]) // CENT) * CENT
            wanted = whole_cents(max(_times(limit, self._shrink), _times(self.original[h], self._least), debt))
            if wanted < limit:
                book.set_limit(h, wanted)
                shrunk.append(h)
        self.look(shrunk)
        return shrunk


def _exact(value: Decimal) -> tuple[int, int]:
    return Fraction(value).as_integer_ratio()


def _times(amount: int, ratio: tuple[int, int]) -> int:
    return amount * ratio[0] // ratio[1]
