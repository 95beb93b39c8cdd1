"""Payments: capacity of a hop, choice of routes, atomicity, and reasons of refusals."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.credit.commands import CloseLine, Freeze, OpenLine, Pay, SetLimit
from pendula.credit.events import TxUpdated
from pendula.credit.ledger.payment import Drifted, PaymentProcessor, Refused
from pendula.credit.ledger.routing import FoundRoutes, Route, Work, WorkSpent, greedy_routes, shortest
from pendula.credit.model import Policy
from pendula.credit.money import atoms, text
from pendula.credit.runs.headless import Headless
from pendula.credit.settings import Settings
from tests.credit.conftest import book, headless, network

UNIT = 10**8


def pay(run: Headless, sender: str, receiver: str, amount: str, key: str | None = None) -> Any:
    return run.run.apply(Pay(sender, receiver, "UAH", amount, key))


def routes(run: Headless, sender: str, receiver: str, amount: str) -> list[tuple[str, str]]:
    answer = pay(run, sender, receiver, amount).answer
    return [("".join(route["path"]), route["amount"]) for route in answer["routes"]]


def code_of(run: Headless, sender: str, receiver: str, amount: str) -> str | None:
    answer = pay(run, sender, receiver, amount).answer
    return answer["error"]["code"] if answer["status"] == "ABORTED" else None


def debts(run: Headless) -> dict[str, str]:
    rows = run.run.network.ledgers["UAH"].book.debt_rows()
    return {debtor + creditor: text(owed) for debtor, creditor, owed in rows}


@pytest.mark.req("SIM-PAY-5")
def test_capacity_is_limit_minus_debt_plus_claim_minus_reserved() -> None:
    ledger = book(("B", "A", 100))
    ledger.move(0, 30 * UNIT)
    assert ledger.reserve([(0, 20 * UNIT)]) is None

    assert ledger.capacity[0] == 50 * UNIT


@pytest.mark.req("SIM-PAY-5")
def test_a_line_with_limit_zero_accepts_repayment() -> None:
    run = headless(network(("B", "A", 0), ("A", "B", 25)))
    pay(run, "B", "A", "25")

    assert code_of(run, "A", "B", "25.01") == "ROUTING_NO_CAPACITY"
    assert code_of(run, "A", "B", "25") is None
    assert debts(run) == {}


@pytest.mark.req("SIM-PAY-4")
def test_a_partial_repayment_leaves_the_rest_of_the_debt() -> None:
    run = headless(network(("B", "A", 10), ("A", "B", 25)))
    pay(run, "B", "A", "25")

    pay(run, "A", "B", "10")

    assert debts(run) == {"BA": "15.00"}
    assert list(run.run.broken()) == []


@pytest.mark.req("SIM-PAY-7")
def test_a_payment_needs_trust_at_every_hop() -> None:
    run = headless(network(("B", "A", 10), ("C", "B", 10)))

    assert routes(run, "A", "C", "4") == [("ABC", "4.00")]
    assert debts(run) == {"AB": "4.00", "BC": "4.00"}
    assert code_of(run, "C", "A", "5") == "ROUTING_NO_ROUTE", "trust goes one way only, and what is owed is 4"


@pytest.mark.req("SIM-PAY-8")
def test_of_two_equally_short_routes_the_smaller_ids_win() -> None:
    lines = [("Y", "S", 10), ("X", "S", 10), ("R", "Y", 10), ("R", "X", 10)]
    run = headless(network(*lines))

    assert routes(run, "S", "R", "10") == [("SXR", "10.00")]


@pytest.mark.req("SIM-PAY-8")
def test_a_route_has_at_most_the_allowed_hops() -> None:
    chain = [(chr(ord("A") + n + 1), chr(ord("A") + n), 10) for n in range(7)]

    assert code_of(headless(network(*chain)), "A", "G", "1") is None
    assert code_of(headless(network(*chain)), "A", "H", "1") == "ROUTING_NO_ROUTE"


@pytest.mark.req("SIM-PAY-9")
def test_a_line_that_does_not_mediate_ends_every_route() -> None:
    lines = network(("B", "A", 100), ("C", "B", 100))
    lines["trustlines"][0]["policy"] = {"can_be_intermediate": False}  # type: ignore[index]
    run = headless(lines)

    assert code_of(run, "A", "C", "1") == "ROUTING_NO_CAPACITY"
    assert code_of(run, "A", "B", "1") is None


@pytest.mark.req("SIM-PAY-9")
def test_blocked_participants_are_no_intermediates() -> None:
    ledger = book(("B", "A", 10), ("C", "B", 10), ("D", "C", 10), DC=Policy(blocked=("B",)))
    open_ledger = book(("B", "A", 10), ("C", "B", 10), ("D", "C", 10), DC=Policy(blocked=("A", "D")))

    assert shortest(ledger, 0, 3, 6, Work(1000)) is None
    assert shortest(ledger, 1, 3, 6, Work(1000)) is not None, "at an end it is no intermediate"
    assert shortest(open_ledger, 0, 3, 6, Work(1000)) is not None


THREE_WAYS = (("X", "S", 40), ("R", "X", 40), ("Y", "S", 35), ("R", "Y", 35), ("Z", "S", 30), ("R", "Z", 30))


@pytest.mark.req("SIM-PAY-10")
def test_an_amount_is_split_over_several_routes() -> None:
    run = headless(network(*THREE_WAYS))
    assert routes(run, "S", "R", "100") == [("SXR", "40.00"), ("SYR", "35.00"), ("SZR", "25.00")]

    assert code_of(headless(network(*THREE_WAYS)), "S", "R", "106") == "ROUTING_NO_CAPACITY"
    two = headless(network(*THREE_WAYS), routing_max_paths="2")
    refused = pay(two, "S", "R", "80").answer["error"]
    assert refused["code"] == "ROUTING_NO_CAPACITY"
    assert refused["details"]["limited_by"] == "max_paths"


@pytest.mark.req("SIM-PAY-12")
def test_refusals_separate_a_full_line_from_a_missing_one() -> None:
    run = headless(network(("B", "A", 10), ("D", "C", 1)))
    pay(run, "A", "B", "10")

    full = pay(run, "A", "B", "1").answer["error"]
    assert full["code"] == "ROUTING_NO_CAPACITY"
    assert full["details"]["bottleneck"] == {
        "from": "A",
        "to": "B",
        "limit": "10.00",
        "owed": "10.00",
        "available": "0.00",
        "mediates": True,
        "change": "raise_limit",
        "by": "1.00",
    }
    assert code_of(run, "A", "D", "1") == "ROUTING_NO_ROUTE"


@pytest.mark.req("SIM-PAY-13")
def test_a_search_beyond_its_work_limit_is_a_timeout() -> None:
    run = headless(network(*THREE_WAYS), routing_timeout_ms="1", work_units_per_ms="1")

    assert code_of(run, "S", "R", "1") == "PAYMENT_TIMEOUT"
    counters = run.run.counters
    assert (counters.errors_total, counters.timeouts_total, counters.rejected_total) == (1, 1, 0)
    assert debts(run) == {}


@pytest.mark.req("SIM-PAY-14")
def test_routes_that_share_a_hop_are_reserved_together_or_not_at_all() -> None:
    ledger = book(("X", "A", 100), ("R", "X", 50))
    before = (list(ledger.capacity), list(ledger.owed))
    hops = {(ledger.debtor[h], ledger.creditor[h]): h for h in range(2)}
    way = (hops[0, 2], hops[2, 1])

    routes = (Route(way, 30 * UNIT), Route(way, 25 * UNIT))
    refused = PaymentProcessor(ledger, Settings()).carry_out(routes, 0, 1, 55 * UNIT)
    unprepared = PaymentProcessor(ledger, Settings()).prepare(routes)

    assert isinstance(refused, Refused)
    assert isinstance(unprepared, Refused)
    assert (list(ledger.capacity), list(ledger.owed)) == before
    assert ledger.reserved == {}


@pytest.mark.req("SIM-PAY-14")
def test_a_prepared_payment_is_reserved_until_commit_or_abort() -> None:
    ledger = book(("R", "A", 50))
    processor, routes = PaymentProcessor(ledger, Settings()), (Route((0,), 30 * UNIT),)

    assert processor.prepare(routes) is None
    assert isinstance(processor.prepare(routes), Refused), "20 are left"
    assert isinstance(processor.pay(0, 1, 21 * UNIT), Refused)
    processor.abort(routes)
    assert ledger.capacity == [50 * UNIT]
    assert processor.prepare(routes) is None
    assert processor.commit(routes, 0, 1, 30 * UNIT) == routes

    assert (ledger.owed, ledger.reserved) == ([30 * UNIT], {})
    assert list(ledger.broken()) == []


@pytest.mark.req("SIM-PAY-16")
def test_a_payment_that_moves_other_positions_is_rolled_back() -> None:
    ledger = book(("B", "A", 100), ("C", "B", 100))
    way = tuple(sorted((0, 1), key=lambda h: ledger.debtor[h]))

    # The routes end at C, but the receiver is B.
    drifted = PaymentProcessor(ledger, Settings()).carry_out((Route(way, UNIT),), 0, 1, UNIT)

    assert isinstance(drifted, Drifted)
    assert ledger.total == 0
    assert list(ledger.broken()) == []


@pytest.mark.req("SIM-PAY-16")
def test_a_payment_that_is_right_only_at_its_ends_is_rolled_back() -> None:
    ledger = book(("B", "A", 100), ("D", "C", 100))
    gap = (ledger.hop[0][1], ledger.hop[2][3])

    drifted = PaymentProcessor(ledger, Settings()).carry_out((Route(gap, UNIT),), 0, 3, UNIT)

    assert drifted == Drifted(1, 0, UNIT), "B got what C paid"
    assert ledger.total == 0


@pytest.mark.req("SIM-PAY-17")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (Pay("A", "B", "UAH", "0"), "INVALID_INPUT"),
        (Pay("A", "B", "UAH", "-1"), "INVALID_INPUT"),
        (Pay("A", "B", "UAH", "1e13"), "INVALID_INPUT"),
        (Pay("A", "B", "UAH", "0.000000001"), "INVALID_INPUT"),
        (Pay("A", "B", "UAH", "nan"), "INVALID_INPUT"),
        (Pay("A", "A", "UAH", "1"), "INVALID_INPUT"),
        (Pay("A", "B", "EUR", "1"), "EQUIVALENT_NOT_FOUND"),
        (Pay("A", "Q", "UAH", "1"), "PARTICIPANT_NOT_FOUND"),
    ],
)
def test_invalid_payments_are_rejected_without_a_trace(command: Pay, code: str) -> None:
    run = headless(network(("B", "A", 10)))
    before = run.run.state()

    outcome = run.run.apply(command)

    assert outcome.refusal is not None
    assert outcome.refusal.code == code
    assert run.run.state() == before


@pytest.mark.req("SIM-PAY-18")
def test_a_key_is_used_once() -> None:
    run = headless(network(("B", "A", 10)))
    first = pay(run, "A", "B", "4", "k:1")

    again = pay(run, "A", "B", "4.00", "k:1")
    other = pay(run, "A", "B", "5", "k:1")

    assert again.answer == first.answer
    assert again.events == ()
    assert other.refusal.code == "CONFLICT"
    assert debts(run) == {"AB": "4.00"}


@pytest.mark.req("SIM-PAY-19")
@pytest.mark.req("SIM-EVT-4")
def test_a_payment_returns_its_routes_and_emits_one_event() -> None:
    run = headless(network(("B", "A", 10), ("C", "B", 10)))

    done = pay(run, "A", "C", "4")

    assert set(done.answer) == {"tx_id", "status", "from", "to", "equivalent", "amount", "routes"}
    assert done.answer["routes"] == [{"path": ["A", "B", "C"], "amount": "4.00"}]
    (event,) = done.events
    assert isinstance(event, TxUpdated)
    assert [(edge.source, edge.target) for edge in event.edges] == [("A", "B"), ("B", "C")]


@pytest.mark.req("SIM-PAY-6")
def test_inactive_participants_neither_send_nor_receive_nor_mediate() -> None:
    run = headless(network(("B", "A", 10), ("C", "B", 10), ("A", "C", 10)))
    assert code_of(run, "A", "C", "11") == "ROUTING_NO_CAPACITY"
    run.do(Freeze("B", lines=False))

    assert code_of(run, "A", "B", "1") == "ROUTING_NO_ROUTE"
    assert code_of(run, "B", "C", "1") == "ROUTING_NO_ROUTE"
    assert code_of(run, "A", "C", "1") == "ROUTING_NO_ROUTE"
    assert code_of(run, "C", "A", "1") is None


@pytest.mark.req("SIM-ACT-7")
def test_lines_are_opened_changed_and_closed_by_command() -> None:
    run = headless(network(("B", "A", 10)))
    run.do(SetLimit("B", "A", "UAH", "3"))
    assert code_of(run, "A", "B", "3.01") == "ROUTING_NO_CAPACITY"
    run.do(OpenLine("A", "B", "UAH", "7"))
    assert code_of(run, "B", "A", "7") is None

    assert run.run.apply(CloseLine("A", "B", "UAH")).refusal is not None, "there is a debt"
    assert run.run.apply(SetLimit("A", "B", "UAH", "6.99")).refusal is not None, "the debt is 7"
    pay(run, "A", "B", "7")
    run.do(CloseLine("A", "B", "UAH"))
    assert code_of(run, "B", "A", "1") == "ROUTING_NO_ROUTE"
    run.do(OpenLine("A", "B", "UAH", "1"))
    assert code_of(run, "B", "A", "1") is None
    assert run.run.apply(OpenLine("A", "B", "UAH", "1")).refusal is not None, "a pair has one line each way"


@pytest.mark.req("SIM-PAY-2")
def test_amounts_are_plain_decimals_and_exact() -> None:
    assert atoms("12345678901.12345678") == 1234567890112345678
    assert text(atoms("12345678901.12345678")) == "12345678901.12345678"
    assert text(atoms("1E+2")) == "100.00"
    assert text(atoms("0.1")) == "0.10"
    assert text(-atoms("0.001")) == "-0.001"


@pytest.mark.req("SIM-PAY-22")
def test_a_run_answers_whether_a_payment_would_pass() -> None:
    run = headless(network(("B", "A", 10)))
    before = run.run.state()

    assert run.run.why({"from": "A", "to": "B", "equivalent": "UAH", "amount": "10"}).code == "payable"
    refused = run.run.why({"from": "A", "to": "B", "equivalent": "UAH", "amount": "11"})

    assert refused.code == "ROUTING_NO_CAPACITY"
    assert refused.because[0].code == "bottleneck"
    assert run.run.state() == before


networks = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)).filter(lambda line: line[0] != line[1]),
    min_size=6,
    max_size=20,
    unique_by=lambda line: line[:2],
)
payments = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 600)), min_size=5, max_size=25)


@pytest.mark.req("SIM-TEST-22")
@pytest.mark.req("SIM-PAY-3")
@pytest.mark.req("SIM-PAY-4")
def test_payments_keep_every_invariant_of_the_ledger() -> None:
    tried = {"COMMITTED": 0, "ABORTED": 0}

    @given(networks, payments, st.sampled_from(["greedy", "exact"]))
    def keep_every_law(lines: list[tuple[int, int, int]], payments: list[tuple[int, int, int]], mode: str) -> None:
        unused = [("p0", f"p{n}", 0) for n in range(1, 6) if not any(line[:2] == (0, n) for line in lines)]
        run = headless(
            network(*((f"p{creditor}", f"p{debtor}", limit) for creditor, debtor, limit in lines), *unused),
            routing_mode=mode,
        )
        ledger = run.run.network.ledgers["UAH"].book

        for number, (sender, receiver, cents) in enumerate(payments):
            if sender == receiver:
                continue
            before = [ledger.position(node) for node in range(len(ledger.people))]
            key = f"{sender}-{receiver}-{cents}-{number}"
            done = pay(run, f"p{sender}", f"p{receiver}", f"{cents / 100:.2f}", key)
            again = pay(run, f"p{sender}", f"p{receiver}", f"{cents / 100:.2f}", key)
            after = [ledger.position(node) for node in range(len(ledger.people))]

            moved = cents * 10**6 if done.answer["status"] == "COMMITTED" else 0
            expected = [was - moved * (node == sender) + moved * (node == receiver) for node, was in enumerate(before)]
            assert after == expected
            assert again.answer == done.answer
            assert list(ledger.broken()) == []
            assert sum(after) == 0
            assert ledger.reserved == {}
            tried[done.answer["status"]] += 1

    keep_every_law()

    assert min(tried.values()) >= 100, tried


@pytest.mark.req("SIM-PAY-20")
@pytest.mark.parametrize("step", range(1, 12))
def test_an_interrupted_search_leaves_no_trace(step: int) -> None:
    ledger = book(*THREE_WAYS)
    before = (list(ledger.capacity), list(ledger.owed), dict(ledger.reserved))

    class Cut(Work):
        looks = 0

        def spend(self, units: int) -> None:
            Cut.looks += 1
            if Cut.looks == step:
                raise WorkSpent
            super().spend(units)

    names = ledger.people.index
    try:
        routes = greedy_routes(ledger, names["S"], names["R"], 100 * UNIT, 6, 3, Cut(10**6))
        assert isinstance(routes, FoundRoutes)
    except WorkSpent:
        pass

    assert (list(ledger.capacity), list(ledger.owed), dict(ledger.reserved)) == before


@pytest.mark.req("SIM-PAY-11")
def test_exact_routing_finds_what_greedy_routing_misses() -> None:
    """Greedy takes the short way through the middle and blocks both long ones."""
    lines = [("A", "S", 1), ("B", "A", 1), ("R", "B", 1), ("B", "S", 1), ("R", "A", 1)]
    wide = [("A", "S", 1), ("B", "A", 1), ("R", "B", 1), ("C", "S", 1), ("B", "C", 1), ("D", "A", 1), ("R", "D", 1)]

    assert code_of(headless(network(*lines)), "S", "R", "2") is None
    assert code_of(headless(network(*wide)), "S", "R", "2") == "ROUTING_NO_CAPACITY"
    assert code_of(headless(network(*wide), routing_mode="exact"), "S", "R", "2") is None


@pytest.mark.req("SIM-PAY-16")
def test_a_delta_check_reports_changes_and_not_positions() -> None:
    ledger_ = book(("B", "A", 100), ("C", "B", 100))
    ledger_.move(0, 10**8)
    way = tuple(sorted((0, 1), key=lambda h: ledger_.debtor[h]))

    drifted = PaymentProcessor(ledger_, Settings()).carry_out((Route(way, 10**8),), 0, 1, 10**8)

    assert isinstance(drifted, Drifted)
    assert (drifted.expected, drifted.actual) == (10**8, 0)
