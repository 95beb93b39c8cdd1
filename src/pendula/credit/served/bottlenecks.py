"""Bottlenecks: the lines where most attempts fail, with advice.

Derived from the counts of the engine (`state.hop_counts`).
"""

from decimal import Decimal
from fractions import Fraction

from msgspec import Struct

from pendula.credit.state.network import Bottleneck as HopBottleneck
from pendula.credit.state.network import EquivalentLedger

SCORE_DIGITS = 6
ADVICE = {
    "TOO_MANY_TIMEOUTS": "Find out why payments are slow here",
    "FREQUENT_ABORTS": "Raise the limit of this line, or clear debts",
    "HIGH_USED": "Clear debts",
}
CLOSED_ADVICE = "Allow payments through {creditor} over this line; a higher limit does not help"


class Target(Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """The line of a hop, from its creditor to its debtor as in snapshots."""

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
    """The lines with the highest scores, highest first, ties by their ends."""
    ranked = (bottleneck for bottleneck in ledger.hops.bottlenecks() if bottleneck.counts.score >= Fraction(least))
    return [_bottleneck(ledger, entry) for entry, _ in zip(ranked, range(most), strict=False)]


def _bottleneck(ledger: EquivalentLedger, bottleneck: HopBottleneck) -> Bottleneck:
    book, counts = ledger.book, bottleneck.counts
    names = book.people.names
    creditor, debtor = names[book.creditor[bottleneck.hop]], names[book.debtor[bottleneck.hop]]
    failed = counts.rejected + counts.errors + counts.timeouts
    score = round(Decimal(counts.score.numerator) / counts.score.denominator, SCORE_DIGITS)
    label = f"{debtor} → {creditor}: {failed} of {counts.attempts} attempts failed"
    advice = ADVICE[counts.reason]
    if counts.closed:
        label += f", {counts.closed} because the line does not mediate"
    if 2 * counts.closed > failed:
        advice = CLOSED_ADVICE.format(creditor=creditor)
    return Bottleneck(Target(creditor, debtor), score, counts.reason, label, advice)
