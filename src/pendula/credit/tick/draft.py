"""The intermediate result of a tick, passed from phase to phase: its attempts, counts, metrics and events.

Metrics have integer counts in, decimal strings with eight digits out, null if undefined.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, astuple

from pendula.credit.events import Event, Note
from pendula.credit.ledger.book import Book
from pendula.credit.model import Code
from pendula.credit.money import ATOMS, CENT, InvalidAmount, atoms, cents_text, text_8
from pendula.credit.planning.planner import Planned
from pendula.credit.state.run_state import RunState, Waiting
from pendula.kernel.canonical import Json

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


class Attempt(Waiting, frozen=True):
    """One payment to try, with ids and amount as written; `code` is set if it cannot be tried."""

    planned: Planned | None
    code: Code | None = None

    def planned_tick(self, now: int) -> int | UnsetType:
        """The tick whose plan it belongs to, if that is an earlier one."""
        return UNSET if self.tick == now else self.tick

    def waiting(self) -> Waiting:
        return Waiting(*astuple(self)[:-2])

    def line(self) -> str:
        """Its line in the digest of plans."""
        return f"{self.tick}|{self.seq}|{self.sender}|{self.receiver}|{self.equivalent}|{self.amount}\n"


class DueClearing(NamedTuple):
    """A clearing of one equivalent scheduled by the scenario."""

    equivalent: str


def attempt_of(planned: Planned, tick: int, run: RunState) -> Attempt:
    names, amount = run.network.people.names, cents_text(planned.cents)
    ends = names[planned.sender], names[planned.receiver], planned.book.code
    return Attempt(tick, planned.seq, *ends, amount, planned.wanted, planned)


def resolve_payment(run: RunState, waiting: Waiting) -> Attempt:
    """Resolve the ids of a payment against the current network; an impossible payment gets the code of its failure."""
    index, ledger = run.network.people.index, run.network.ledgers.get(waiting.equivalent)
    sender, receiver, cents = index.get(waiting.sender), index.get(waiting.receiver), _cents(waiting.amount)
    members = asdict(waiting)
    if ledger is None:
        return Attempt(**members, planned=None, code=Code.EQUIVALENT_NOT_FOUND)
    if sender is None or receiver is None:
        return Attempt(**members, planned=None, code=Code.PARTICIPANT_NOT_FOUND)
    if cents is None or sender == receiver:
        return Attempt(**members, planned=None, code=Code.INVALID_INPUT)
    planned = Planned(waiting.seq, ledger.book, sender, receiver, cents, waiting.wanted)
    return Attempt(**members | {"amount": cents_text(cents)}, planned=planned)


def _cents(amount: str) -> int | None:
    """The amount in cents if it is positive and in whole cents."""
    try:
        value = atoms(amount)
    except InvalidAmount:
        return None
    return value // CENT if value > 0 and value % CENT == 0 else None


class Draft:
    """The intermediate result of a tick; `first` are the actions scheduled by the scenario."""

    def __init__(self, run: RunState) -> None:
        self.tick = run.tick
        self.at_ms = run.sim_time_ms
        self.events: list[Event] = []
        self.tallies = {code: Tally() for code in run.network.ledgers}
        self.first: list[Attempt | DueClearing] = []
        self.plan: list[Attempt] = []
        self.budget = 0
        self.tried = 0
        self.committed = 0
        self.rejected = 0
        self.errors = 0
        self.timeouts = 0
        self.dropped = 0
        self.in_flight = 0  # the highest number of simultaneous calls
        self.cost_ms = 0
        self.work = 0
        self.calls = 0
        self.over = False  # a guardrail has ended the run

    def note(self, facts: dict[str, Json]) -> None:
        self.events.append(Note(self.tick, self.at_ms, facts))

    @property
    def payments(self) -> list[Attempt]:
        """All payments in the plan of this tick, scheduled ones first."""
        return [*(attempt for attempt in self.first if isinstance(attempt, Attempt)), *self.plan]
