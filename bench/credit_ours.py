"""Our side of the benchmark of `credit`: the loads in the scheduler's own terms."""

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
from pendula.credit.ledger.circulation import Best, best_circulation
from pendula.credit.ledger.cycles import Cleared, clear_at_once, find_and_clear
from pendula.credit.ledger.payment import PaymentProcessor
from pendula.credit.ledger.routing import Work, shortest
from pendula.credit.model import Participant, ParticipantType, Scenario, Trustline
from pendula.credit.money import CENT
from pendula.credit.outside.solver import OptimalOutside
from pendula.credit.reading.scenario import read_scenario
from pendula.credit.settings import Settings
from pendula.credit.state.network import Network as Kept
from pendula.documents import from_value

NO_LIMIT = 10**15


def people(count: int) -> People:
    return People(Participant(loads.named(one), ParticipantType.PERSON) for one in range(count))


def book_of(network: Network) -> Book:
    lines = (Trustline(CODE, loads.named(v), loads.named(u), limit * 100 * CENT) for v, u, limit in network.lines)
    return Book(CODE, people(network.participants), lines)


def run_of(scenario: dict[str, Any], seed: int, cap: int, *, clearing: bool = True, digest: bool = True) -> Run:
    """A run without limits of work: those count what our search looks at, and no other search would stop there."""
    settings = Settings(
        amount_cap=cap * 100 * CENT,
        clearing_enabled=clearing,
        clearing_time_budget_ms=1_000_000,
        clearing_hard_timeout_sec=1000,
        profile_presets=False,
    )
    return Run(Config(scenario, seed, "bench", settings=settings, patches=False, digest_ledger=digest))


def debts_of(run: Run) -> list[Debt]:
    """Who owes whom in the one equivalent of a run, participants in the order of their ids."""
    (ledger,) = run.network.ledgers.values()
    book = ledger.book
    return [Debt(book.debtor[h], book.creditor[h], owed // CENT) for h, owed in enumerate(book.owed) if owed > 0]


def loaded(scenario: dict[str, Any]) -> Scenario:
    return read_scenario(from_value(scenario))


def bytes_kept(network: Network) -> int:
    """What a run keeps of a network: participants, ledger, and the text its digest is made of."""
    document = loads.scenario(network)
    gc.collect()
    tracemalloc.start()
    try:
        kept = Kept(loaded(document), Settings())
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        assert len(kept.people) == network.participants
        return taken
    finally:
        tracemalloc.stop()


class Plans:
    """The planner of a run in which nothing is paid."""

    def __init__(self, scenario: dict[str, Any], seed: int, cap: int) -> None:
        settings = Settings(amount_cap=cap * 100 * CENT, profile_presets=False)
        self._network = Kept(loaded(scenario), settings)
        self._seed = seed

    def plan(self, tick: int, budget: int) -> list[tuple[str, str, Decimal]]:
        names = self._network.people.names
        planned = self._network.planner.plan(self._seed, tick, budget)
        return [(names[one.sender], names[one.receiver], loads.amount(one.cents)) for one in planned]


def processor(network: Network) -> PaymentProcessor:
    return PaymentProcessor(book_of(network), Settings())


def route_length(book: Book, payment: Payment, hops: int) -> int:
    """0 where there is no way."""
    return len(shortest(book, payment.sender, payment.receiver, hops, Work(NO_LIMIT)) or ())


def paid(at: PaymentProcessor, payments: Iterable[Payment]) -> int:
    """How many were committed."""
    pay = at.pay
    done = [pay(one.sender, one.receiver, one.cents * CENT) for one in payments]
    return sum(type(one) is tuple for one in done)


def owing(debts: Sequence[Debt]) -> Book:
    """A ledger with these debts and no capacity for more."""
    count = 1 + max(max(one.debtor, one.creditor) for one in debts)
    lines = (Trustline(CODE, loads.named(one.creditor), loads.named(one.debtor), one.cents * CENT) for one in debts)
    book = Book(CODE, people(count), lines)
    for one in debts:
        book.move(book.hop[one.debtor][one.creditor], one.cents * CENT)
    book.touched.clear()
    return book


def cleared(book: Book, depth: int, most: int | None) -> Cleared:
    return find_and_clear(book, depth, NO_LIMIT if most is None else most, NO_LIMIT)


@cache
def _solver() -> OptimalOutside:
    """One for all calls, as a run has it."""
    return OptimalOutside()


def optimum(book: Book) -> int:
    """By how many atoms the best circulation shrinks all debts; done as a run does it.

    Asked for through the engine's door, proven, taken apart into cycles, taken off the debts.
    """
    best = best_circulation(book, _solver().ask)
    assert isinstance(best, Best)
    clear_at_once(book, best.flows)
    return best.reduction


def named_cycles(book: Book, found: Cleared) -> list[tuple[list[str], Any]]:
    """As the plain search gives them: ids and amounts in units."""
    names = book.people.names
    return [([names[node] for node in cycle.nodes], loads.amount(cycle.amount // CENT)) for cycle in found.cycles]
