"""Trust drift: limits grow with clearing and shrink while debts stay high; whole cents, exact ratios."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from pendula.credit.ledger.book import Book
from pendula.credit.model import Drift, LineStatus
from pendula.credit.money import CENT, MOST


def whole_cents(amount: int) -> int:
    return amount // CENT * CENT


class Trust:
    """Trust drift of one book: changes of limits, and overloaded lines."""

    def __init__(self, book: Book, drift: Drift) -> None:
        self.book = book
        # Share the object of a limit in whole cents: there is one per line.
        self.original = [whole_cents(limit) if limit % CENT else limit for limit in book.limit]
        self.clearing_count: dict[int, int] = {}
        self.last_clearing: dict[int, int] = {}
        self.cleared_volume: dict[int, int] = {}
        # Fractions: decimals would round according to the context of the process.
        self._grow = (1 + Fraction(drift.growth_rate)).as_integer_ratio()
        self._shrink = (1 - Fraction(drift.decay_rate)).as_integer_ratio()
        self._most = _exact(drift.max_growth)
        self._least = _exact(drift.min_limit_ratio)
        self._threshold = _exact(drift.overload_threshold)
        self._overloaded: dict[int, None] = {}
        self.look(range(len(book)))

    def begin(self, h: int) -> None:
        """Reset the history of a line."""
        self.original[h] = whole_cents(self.book.limit[h])
        for known in (self.clearing_count, self.last_clearing, self.cleared_volume):
            known.pop(h, None)

    def look(self, lines: Iterable[int]) -> None:
        """Update which of these lines are overloaded."""
        book, (numerator, denominator) = self.book, self._threshold
        for h in lines:
            limit = book.limit[h]
            over = limit > 0 and max(0, book.owed[h]) * denominator >= limit * numerator
            if over and book.status[h] is LineStatus.ACTIVE:
                self._overloaded[h] = None
            else:
                self._overloaded.pop(h, None)

    def cleared(self, amounts: dict[int, int], tick: int) -> list[int]:
        """Grow the limits of cleared lines, once per call; returns those that grew."""
        book, grown = self.book, []
        for h in sorted(amounts):
            self.clearing_count[h] = self.clearing_count.get(h, 0) + 1
            self.last_clearing[h] = tick
            self.cleared_volume[h] = self.cleared_volume.get(h, 0) + amounts[h]
            limit = book.limit[h]
            new_limit = min(_times(limit, self._grow), _times(self.original[h], self._most), MOST)
            if whole_cents(new_limit) > limit:
                book.set_limit(h, whole_cents(new_limit))
                grown.append(h)
        return grown

    def decay(self, tick: int) -> list[int]:
        """Shrink the limits of overloaded lines that were not cleared in this tick, never below the debt."""
        book, shrunk = self.book, []
        self.look(book.touched)
        for h in sorted(self._overloaded):
            if self.last_clearing.get(h) == tick:
                continue
            limit = book.limit[h]
            debt = -(-max(0, book.owed[h]) // CENT) * CENT
            new_limit = whole_cents(max(_times(limit, self._shrink), _times(self.original[h], self._least), debt))
            if new_limit < limit:
                book.set_limit(h, new_limit)
                shrunk.append(h)
        self.look(shrunk)
        return shrunk


def _exact(value: Decimal) -> tuple[int, int]:
    return Fraction(value).as_integer_ratio()


def _times(amount: int, ratio: tuple[int, int]) -> int:
    return amount * ratio[0] // ratio[1]
