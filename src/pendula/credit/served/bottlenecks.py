"""Where payments get stuck: attempts, refusals and timeouts counted hop by hop, as the events of a run tell of them.

A payment that was made tried every hop of its routes. One that was refused is counted at the hop that its refusal
names, because another one would not have helped.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from msgspec import Struct

from pendula.credit.events import Event, TxFailed, TxUpdated
from pendula.credit.model import TECHNICAL, Code

TIMEOUTS_MANY = Decimal("0.2")
ADVICE = {
    "TOO_MANY_TIMEOUTS": "Look at what makes payments slow here",
    "FREQUENT_ABORTS": "Raise the limit of this line, or let debts be cleared",
    "HIGH_USED": "Let debts be cleared",
}


class Hop(Struct):
    """What was tried over one hop, from the payer `source` to `target`."""

    source: str
    target: str
    attempts: int = 0
    rejected: int = 0
    errors: int = 0
    timeouts: int = 0

    @property
    def score(self) -> Decimal:
        # A timeout is an error too and counts as one attempt that failed.
        failed = self.rejected + self.errors
        return min(Decimal(1), round(Decimal(failed) / self.attempts, 6)) if self.attempts else Decimal(0)

    @property
    def reason(self) -> str:
        if self.timeouts >= TIMEOUTS_MANY * self.attempts and self.timeouts:
            return "TOO_MANY_TIMEOUTS"
        return "FREQUENT_ABORTS" if self.rejected or self.errors else "HIGH_USED"


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


class HopCounts:
    """The hops of one run, by equivalent."""

    def __init__(self) -> None:
        self._hops: dict[str, dict[tuple[str, str], Hop]] = {}

    def hear(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case TxUpdated():
                    for edge in event.edges:
                        self._hop(event.equivalent, edge.source, edge.target).attempts += 1
                case TxFailed():
                    self._refused(event)
                case _:
                    pass

    def worst(self, equivalent: str, most: int, least: Decimal = Decimal(0)) -> list[Bottleneck]:
        """The hops with the highest scores, those first; equals in the order of their ends."""
        found = [hop for hop in self._hops.get(equivalent, {}).values() if hop.score > 0 and hop.score >= least]
        found.sort(key=lambda hop: (-hop.score, hop.target, hop.source))
        return [_told(hop) for hop in found[:most]]

    def equivalents(self) -> list[str]:
        return sorted(self._hops)

    def _refused(self, event: TxFailed) -> None:
        named: Any = event.error.details.get("bottleneck")
        if not isinstance(named, dict):
            return
        code, hop = Code(event.error.code), self._hop(event.equivalent, str(named["from"]), str(named["to"]))
        hop.attempts += 1
        hop.timeouts += code is Code.PAYMENT_TIMEOUT
        if code in TECHNICAL:
            hop.errors += 1
        else:
            hop.rejected += 1

    def _hop(self, equivalent: str, source: str, target: str) -> Hop:
        hops = self._hops.setdefault(equivalent, {})
        if (source, target) not in hops:
            hops[source, target] = Hop(source, target)
        return hops[source, target]


def _told(hop: Hop) -> Bottleneck:
    label = f"{hop.source} → {hop.target}: {hop.rejected + hop.errors} of {hop.attempts} attempts failed"
    return Bottleneck(Target(hop.target, hop.source), hop.score, hop.reason, label, ADVICE[hop.reason])
