"""Where payments get stuck, as it is told: the lines at which most attempts fail, with what would help.

The engine counts (`state.hop_counts`); here its counts get their form.
"""

from decimal import Decimal
from fractions import Fraction

from msgspec import Struct

from pendula.credit.state.hop_counts import Bottleneck as Found
from pendula.credit.state.network import EquivalentLedger

SCORE_DIGITS = 6
ADVICE = {
    "TOO_MANY_TIMEOUTS": "Look at what makes payments slow here",
    "FREQUENT_ABORTS": "Raise the limit of this line, or let debts be cleared",
    "HIGH_USED": "Let debts be cleared",
}
CLOSED_ADVICE = "Let payments pass through {creditor} over this line; a higher limit does not help"


class Target(Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """The line that a hop goes over, from its creditor to its debtor, as pictures draw it."""

    source: str
    target: str
    kind: str = "edge"


class Bottleneck(Struct, frozen=True):
    target: Target
    score: Decimal
    reason_code: str
    label: str | None = None
    suggested_action: str | None = None


def worst(ledger: EquivalentLedger, most: int, least: Decimal = Decimal(0)) -> list[Bottleneck]:
    """The lines with the highest scores, the highest first; equals in the order of their ends."""
    found = (one for one in ledger.hops.bottlenecks() if one.counts.score >= Fraction(least))
    return [_told(ledger, one) for one, _ in zip(found, range(most), strict=False)]


def _told(ledger: EquivalentLedger, found: Found) -> Bottleneck:
    book, counts = ledger.book, found.counts
    names = book.people.names
    creditor, debtor = names[book.creditor[found.hop]], names[book.debtor[found.hop]]
    failed = counts.rejected + counts.errors + counts.timeouts
    score = round(Decimal(counts.score.numerator) / counts.score.denominator, SCORE_DIGITS)
    label = f"{debtor} → {creditor}: {failed} of {counts.attempts} attempts failed"
    advice = ADVICE[counts.reason]
    if counts.closed:
        label += f", {counts.closed} because the line lets no payments pass"
    if 2 * counts.closed > failed:
        advice = CLOSED_ADVICE.format(creditor=creditor)
    return Bottleneck(Target(creditor, debtor), score, counts.reason, label, advice)
