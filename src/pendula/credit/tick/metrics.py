"""Metrics of a tick per equivalent: integer counts in, decimal strings with eight digits out, null if undefined."""

from collections.abc import Mapping
from fractions import Fraction

from msgspec import Struct

from pendula.credit.ledger.book import Book
from pendula.credit.money import ATOMS, text_8

Values = Mapping[str, str | None]


class Tally(Struct):
    """Counts of one equivalent in a tick; `routes` and `hops` of committed payments, amounts in atoms.

    `wanted` is the demand before the ledger capped it, `served` the paid part of it. `volume` is everything that was
    paid, including payments that replace those of payers without capacity.

    `no_capacity` counts refusals that clearing might prevent. A refusal without an allowed route even if every circle
    of debt were cleared counts as `no_route_at_all` instead. `cost_ms` is the cost of clearing, 0 without a call.
    """

    committed: int = 0
    rejected: int = 0
    no_capacity: int = 0
    no_route_at_all: int = 0
    errors: int = 0
    timeouts: int = 0
    routes: int = 0
    hops: int = 0
    wanted: int = 0
    served: int = 0
    volume: int = 0
    cleared: int = 0
    cost_ms: int = 0

    @property
    def curable(self) -> int:
        """Finished attempts except those that no clearing could help."""
        return self.finished - self.no_route_at_all

    @property
    def finished(self) -> int:
        return self.committed + self.rejected + self.errors


def measure_tick(tally: Tally, book: Book, rate: Fraction) -> dict[str, str | None]:
    """The metrics of one tick; `rate` is that of the clearing policy over its window."""
    return {
        "success_rate": ratio(100 * tally.committed, tally.committed + tally.rejected),
        "avg_route_length": ratio(tally.hops, tally.routes),
        "total_debt": text_8(book.total),
        "wanted": text_8(tally.wanted),
        "served": text_8(tally.served),
        "served_share": ratio(100 * tally.served, tally.wanted),
        "volume": text_8(tally.volume),
        "clearing_volume": text_8(tally.cleared),
        "clearing_cost_ms": text_8(tally.cost_ms * ATOMS) if tally.cost_ms else None,
        "no_capacity_rate": ratio(rate.numerator, rate.denominator),
        # A timeout is one of the errors: it counts as both, so slow engines weigh more.
        "bottlenecks_score": ratio(100 * (tally.errors + tally.timeouts), tally.finished),
        "active_participants": text_8(sum(book.people.active) * ATOMS),
        "active_trustlines": text_8(book.active_lines * ATOMS),
    }


def ratio(part: int, whole: int) -> str | None:
    """The quotient, rounded to eight digits, half to even; null if `whole` is 0."""
    if not whole:
        return None
    quotient, rest = divmod(part * ATOMS, whole)
    if 2 * rest > whole or (2 * rest == whole and quotient % 2):
        quotient += 1
    return text_8(quotient)
