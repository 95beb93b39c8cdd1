"""Our side of the credit benchmark: the loads as objects of the scheduler."""

import gc
import tracemalloc
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from bench import credit_loads as loads
from bench.credit_loads import CODE, Debt, Network, Payment
from pendula.credit.commands import Config
from pendula.credit.engine import Run
from pendula.credit.ledger.book import Book, People
from pendula.credit.ledger.cycles import Best, Cleared, best_circulation, clear_at_once, find_and_clear
from pendula.credit.ledger.payment import PaymentProcessor
from pendula.credit.ledger.routing import Work, shortest
from pendula.credit.model import Participant, ParticipantType, Scenario, Trustline
from pendula.credit.money import CENT
from pendula.credit.outside.answers import OptimalOutside
from pendula.credit.reading import read_scenario
from pendula.credit.settings import Settings
from pendula.credit.state.network import Network as RunNetwork
from pendula.documents import from_value

NO_LIMIT = 10**15


def people(count: int) -> People:
    return People(Participant(loads.named(number), ParticipantType.PERSON) for number in range(count))


def book_of(network: Network) -> Book:
    lines = (Trustline(CODE, loads.named(v), loads.named(u), limit * 100 * CENT) for v, u, limit in network.lines)
    return Book(CODE, people(network.participants), lines)


def run_of(scenario: dict[str, Any], seed: int, cap: int, *, clearing: bool = True, digest: bool = True) -> Run:
    """A run without work limits; they count steps of our search, which other searches do not have."""
    settings = Settings(
        amount_cap=cap * 100 * CENT,
        clearing_enabled=clearing,
        clearing_time_budget_ms=1_000_000,
        clearing_hard_timeout_sec=1000,
        profile_presets=False,
    )
    return Run(Config(scenario, seed, "bench", settings=settings, patches=False, digest_ledger=digest))


def debts_of(run: Run) -> list[Debt]:
    """The debts in the only equivalent of a run, participants in the order of their ids."""
    (ledger,) = run.network.ledgers.values()
    book = ledger.book
    return [Debt(book.debtor[h], book.creditor[h], owed // CENT) for h, owed in enumerate(book.owed) if owed > 0]


def load(scenario: dict[str, Any]) -> Scenario:
    return read_scenario(from_value(scenario))


def network_bytes(network: Network) -> int:
    """Memory of a network in a run: participants, ledger, and the text of its digest."""
    document = loads.scenario(network)
    gc.collect()
    tracemalloc.start()
    try:
        loaded = RunNetwork(load(document), Settings())
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        assert len(loaded.people) == network.participants
        return taken
    finally:
        tracemalloc.stop()


class Plans:
    """The planner of a run without payments."""

    def __init__(self, scenario: dict[str, Any], seed: int, cap: int) -> None:
        settings = Settings(amount_cap=cap * 100 * CENT, profile_presets=False)
        self._network = RunNetwork(load(scenario), settings)
        self._seed = seed

    def plan(self, tick: int, budget: int) -> list[tuple[str, str, Decimal]]:
        names = self._network.people.names
        planned = self._network.planner.plan(self._seed, tick, budget)
        return [(names[action.sender], names[action.receiver], loads.amount(action.cents)) for action in planned]


def processor(network: Network) -> PaymentProcessor:
    return PaymentProcessor(book_of(network), Settings())


def route_length(book: Book, payment: Payment, hops: int) -> int:
    """Hops of the route; 0 without a route."""
    return len(shortest(book, payment.sender, payment.receiver, hops, Work(NO_LIMIT)) or ())


def count_paid(processor: PaymentProcessor, payments: Iterable[Payment]) -> int:
    """The number of committed payments."""
    pay = processor.pay
    results = [pay(payment.sender, payment.receiver, payment.cents * CENT) for payment in payments]
    return sum(type(result) is tuple for result in results)


def book_owing(debts: Sequence[Debt]) -> Book:
    """A ledger with these debts and no capacity for more."""
    count = 1 + max(max(debt.debtor, debt.creditor) for debt in debts)
    lines = (Trustline(CODE, loads.named(debt.creditor), loads.named(debt.debtor), debt.cents * CENT) for debt in debts)
    book = Book(CODE, people(count), lines)
    for debt in debts:
        book.move(book.hop[debt.debtor][debt.creditor], debt.cents * CENT)
    book.touched.clear()
    return book


def clear_greedily(book: Book, depth: int, most: int | None) -> Cleared:
    return find_and_clear(book, depth, NO_LIMIT if most is None else most, NO_LIMIT)


@cache
def _solver() -> OptimalOutside:
    """One solver for all calls, as in a run."""
    return OptimalOutside()


def clear_optimally(book: Book) -> int:
    """Clear the best circulation as a run does and return the reduction in atoms.

    The circulation is asked from the outside, proven, split into cycles and subtracted from the debts.
    """
    best = best_circulation(book, _solver().ask)
    assert isinstance(best, Best)
    clear_at_once(book, best.flows)
    return best.reduction


def named_cycles(book: Book, cleared: Cleared) -> list[tuple[list[str], Any]]:
    """Cycles in the form of the plain search: ids and amounts in units."""
    names = book.people.names
    return [([names[node] for node in cycle.nodes], loads.amount(cycle.amount // CENT)) for cycle in cleared.cycles]
