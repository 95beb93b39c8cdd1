"""Each refusal names changes of lines that let the payment pass; the tests apply them and pay again."""

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pendula.credit.commands import Tick
from pendula.credit.events import TxFailed
from pendula.credit.ledger.book import Book, People
from pendula.credit.ledger.payment import PaymentProcessor, Refused
from pendula.credit.model import Code, Participant, ParticipantType, Policy, Trustline
from pendula.credit.money import ATOMS, atoms
from pendula.credit.sentences import sentence_of
from pendula.credit.settings import Settings, change_settings
from tests.credit.conftest import headless, network

UNIT = ATOMS
CLOSED = Policy(mediates=False)
NAMES = "ABCDEF"


def ledger(*lines: tuple[str, str, int, Policy]) -> Book:
    people = People(Participant(name, ParticipantType.PERSON) for name in NAMES)
    return Book(
        "UAH",
        people,
        [Trustline("UAH", creditor, debtor, limit * UNIT, policy) for creditor, debtor, limit, policy in lines],
    )


def changes_of(refused: Refused) -> list[dict[str, Any]]:
    """All changes that a refusal names; the first has the details of its hop."""
    first: Any = refused.details["bottleneck"]
    more: Any = refused.details.get("and_also", [])
    return [first, *more]


def apply_change(book: Book, change: dict[str, Any]) -> None:
    """Apply a change that a refusal names."""
    h = book.line(change["to"], change["from"])
    assert h is not None
    match change["change"]:
        case "raise_limit":
            book.set_limit(h, book.limit[h] + atoms(change["by"]))
        case "allow_mediation":
            book.set_policy(h, msgspec.structs.replace(book.policy[h], mediates=True))
        case "unblock":
            book.set_policy(h, msgspec.structs.replace(book.policy[h], blocked=()))


def refusal(book: Book, amount: int, **settings: str) -> Refused:
    refused = PaymentProcessor(book, change_settings(Settings(), settings)).pay(0, 2, amount * UNIT)
    assert isinstance(refused, Refused)
    return refused


OPEN = Policy()
policies = st.builds(Policy, mediates=st.booleans(), blocked=st.sampled_from([(), (), (), ("B",), ("D",), ("B", "D")]))
lines = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 9), policies).filter(
        lambda x: x[0] != x[1]
    ),
    min_size=4,
    max_size=22,
    unique_by=lambda line: line[:2],
)
payments = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 14)), min_size=1, max_size=12)


@pytest.mark.req("SIM-PAY-12")
@given(lines, payments, st.integers(1, 3), st.integers(1, 5), st.sampled_from(["greedy", "exact"]))
# Three narrow routes are shorter than the one that a single change opens, so the change alone does not help.
@example(
    [("B", "A", 1, OPEN), ("C", "B", 1, OPEN), ("D", "A", 9, OPEN), ("E", "D", 2, OPEN), ("C", "E", 9, OPEN)],
    [(0, 2, 8)],
    1,
    3,
    "greedy",
)
def test_a_refused_payment_passes_after_the_named_changes(
    rows: list[tuple[str, str, int, Policy]], wanted: list[tuple[int, int, int]], paths: int, hops: int, mode: str
) -> None:
    book = ledger(*rows)
    settings = {"routing_max_paths": str(paths), "routing_max_hops": str(hops), "routing_mode": mode}
    processor = PaymentProcessor(book, change_settings(Settings(), settings))
    for sender, receiver, amount in wanted:
        if sender == receiver:
            continue
        capacity = list(book.capacity)
        refused = processor.pay(sender, receiver, amount * UNIT)
        if not isinstance(refused, Refused) or refused.code is not Code.ROUTING_NO_CAPACITY:
            continue
        assert (book.capacity, list(book.broken())) == (capacity, []), "naming a change applies none"
        for change in changes_of(refused):
            apply_change(book, change)
        assert not isinstance(processor.pay(sender, receiver, amount * UNIT), Refused)


@pytest.mark.req("SIM-PAY-12")
def test_every_refusal_in_a_village_names_a_change_at_a_hop_that_is_too_narrow() -> None:
    from pendula.credit.authoring.villages import village

    run = headless(village(40, 1), seed=3, intensity=100, amount_cap="500")
    failed = [event for _ in range(60) for event in run.do(Tick()).events if isinstance(event, TxFailed)]
    refused = [failure for failure in failed if failure.error.code == Code.ROUTING_NO_CAPACITY]

    assert len(refused) > 50
    for failure in refused:
        facts: Any = failure.error.details
        missing = atoms(failure.amount) - atoms(facts["found"])
        hop = facts["bottleneck"]
        assert hop["change"] != "raise_limit" or atoms(hop["available"]) < missing
        assert hop["change"] != "allow_mediation" or not hop["mediates"]


def test_in_a_chain_only_the_narrow_hop_is_named() -> None:
    book = ledger(("B", "A", 9, OPEN), ("D", "B", 4, OPEN), ("C", "D", 9, OPEN))

    refused = refusal(book, 7)

    (change,) = changes_of(refused)
    assert refused.hops == (book.line("D", "B"),)
    assert (change["from"], change["to"], change["change"], change["by"], change["available"]) == (
        "B",
        "D",
        "raise_limit",
        "3.00",
        "0.00",
    ), "4.00 of its capacity are taken by what was found"


def test_a_line_that_does_not_mediate_is_named_rather_than_a_wider_one_before_it() -> None:
    book = ledger(("B", "A", 9, CLOSED), ("C", "B", 8, OPEN))

    (change,) = changes_of(refusal(book, 7))

    assert (change["from"], change["to"], change["change"], change["mediates"]) == (
        "A",
        "B",
        "allow_mediation",
        False,
    )
    assert "by" not in change


def test_all_changes_of_a_route_are_named_where_one_is_not_enough() -> None:
    book = ledger(("B", "A", 2, CLOSED), ("C", "B", 1, OPEN))

    changes = changes_of(refusal(book, 5))

    assert [(change["from"], change["to"], change["change"]) for change in changes] == [
        ("A", "B", "raise_limit"),
        ("A", "B", "allow_mediation"),
        ("B", "C", "raise_limit"),
    ]


def test_a_blocked_intermediate_is_named() -> None:
    book = ledger(("B", "A", 9, OPEN), ("C", "B", 9, Policy(blocked=("B",))))

    (change,) = changes_of(refusal(book, 5))

    assert (change["from"], change["to"], change["change"]) == ("B", "C", "unblock")


def test_a_payment_beyond_the_route_limit_names_the_route_to_widen() -> None:
    ways = [(middle, "A", 4, OPEN) for middle in "BDE"] + [("C", middle, 4, OPEN) for middle in "BDE"]
    book = ledger(*ways)

    refused = refusal(book, 8, routing_max_paths="1")

    assert refused.details["limited_by"] == "max_paths"
    assert [(change["from"], change["to"], change["by"]) for change in changes_of(refused)] == [
        ("A", "B", "4.00"),
        ("B", "C", "4.00"),
    ]


def test_of_the_possible_routes_the_one_with_fewest_changes_is_named() -> None:
    book = ledger(("B", "A", 4, OPEN), ("C", "B", 4, OPEN), ("C", "A", 0, OPEN))

    refused = refusal(book, 8, routing_max_paths="1")

    assert [(change["from"], change["to"], change["by"]) for change in changes_of(refused)] == [("A", "C", "8.00")]


def test_a_longer_route_with_one_change_wins_over_a_shorter_one_with_two() -> None:
    two = [("E", "A", 9, CLOSED), ("C", "E", 1, OPEN)]
    one_change = [("B", "A", 9, OPEN), ("D", "B", 0, OPEN), ("C", "D", 9, OPEN)]

    named = changes_of(refusal(ledger(*two, *one_change), 7))

    assert [(change["from"], change["to"], change["change"]) for change in named] == [("B", "D", "raise_limit")]


def test_of_single_changes_the_shortest_route_wins_and_a_limit_wins_over_a_permission() -> None:
    long = [("B", "A", 9, OPEN), ("D", "B", 1, OPEN), ("C", "D", 9, OPEN)]
    closed, narrow = [("E", "A", 9, CLOSED), ("C", "E", 9, OPEN)], [("F", "A", 9, OPEN), ("C", "F", 1, OPEN)]

    named = [changes_of(refusal(ledger(*long, *more), 7)) for more in (closed, [*closed, *narrow])]

    assert [[(change["from"], change["to"]) for change in changes] for changes in named] == [[("A", "E")], [("F", "C")]]


@pytest.mark.req("SIM-ADP-22")
@pytest.mark.parametrize(
    ("rows", "never"),
    [
        ([("B", "A", 9, CLOSED), ("C", "B", 9, OPEN)], True),
        ([("B", "A", 0, OPEN), ("C", "B", 9, OPEN)], True),
        ([("B", "A", 9, OPEN), ("C", "B", 9, Policy(blocked=("B",)))], True),
        ([("B", "A", 9, OPEN), ("C", "B", 2, OPEN)], False),
        ([("C", "A", 2, CLOSED)], False),
    ],
)
def test_a_refusal_that_clearing_cannot_cure_is_marked(rows: list[tuple[str, str, int, Policy]], never: bool) -> None:
    refused = refusal(ledger(*rows), 5)

    assert refused.details.get("no_route_at_all", False) is never


@pytest.mark.req("SIM-ADP-22")
def test_a_full_line_is_curable_and_a_line_opened_later_too() -> None:
    book = ledger(("B", "A", 9, OPEN), ("C", "B", 0, OPEN))
    processor = PaymentProcessor(book, Settings())
    before = processor.pay(0, 2, UNIT)
    line = book.line("C", "B")
    assert line is not None
    book.set_limit(line, UNIT)

    assert not isinstance(processor.pay(0, 2, UNIT), Refused)
    after = processor.pay(0, 2, UNIT)

    assert isinstance(before, Refused)
    assert isinstance(after, Refused)
    assert ("no_route_at_all" in before.details, "no_route_at_all" in after.details) == (True, False)


@pytest.mark.req("SIM-ADP-22")
def test_a_debt_in_the_other_direction_makes_a_line_without_limit_curable() -> None:
    """B owes A 5, so A can pay B over a line with limit 0 until the debt is paid back."""
    book = ledger(("B", "A", 0, OPEN), ("A", "B", 9, OPEN), ("C", "B", 3, OPEN))
    processor = PaymentProcessor(book, Settings())
    processor.pay(1, 0, 5 * UNIT)

    with_debt = processor.pay(0, 2, 4 * UNIT)
    processor.pay(0, 1, 5 * UNIT)
    without = processor.pay(0, 2, 4 * UNIT)
    processor.pay(1, 0, 5 * UNIT)
    again = processor.pay(0, 2, 4 * UNIT)

    flags = [
        result.details.get("no_route_at_all", False)
        for result in (with_debt, without, again)
        if isinstance(result, Refused)
    ]
    assert flags == [False, True, False]


@pytest.mark.req("SIM-PAY-12")
@pytest.mark.parametrize(
    ("rows", "limited_by", "closed", "sentence"),
    [
        ([("B", "A", 900, CLOSED), ("C", "B", 900, OPEN)], "policy", [("B", "A")], "the line of B to A does not let"),
        ([("B", "A", 900, OPEN), ("C", "B", 900, Policy(blocked=("B",)))], "policy", [("C", "B")], "line of C to B"),
        ([("B", "A", 1, CLOSED), ("C", "B", 900, OPEN)], "capacity_and_policy", [("B", "A")], "line of B to A"),
        ([("B", "A", 1, OPEN), ("C", "B", 900, OPEN)], "capacity", [], "Only 1.00 of 5.00 found a route"),
    ],
)
def test_a_refusal_separates_missing_capacity_from_a_closed_line(
    rows: list[tuple[str, str, int, Policy]], limited_by: str, closed: list[tuple[str, str]], sentence: str
) -> None:
    book = ledger(*rows)

    refused = refusal(book, 5)

    assert refused.details["limited_by"] == limited_by
    assert refused.closed == tuple(book.line(*ends) for ends in closed)
    assert sentence in sentence_of(refused.code, {**refused.details, "amount": "5.00"})


def test_a_refusal_without_any_chain_names_no_change() -> None:
    refused = refusal(ledger(("B", "A", 9, OPEN)), 5)

    assert (refused.code, refused.details) == (Code.ROUTING_NO_ROUTE, {"max_hops": 6, "no_route_at_all": True})


def test_a_run_names_the_change_that_would_let_a_payment_pass() -> None:
    run = headless(network(("B", "A", 10)))

    refused = run.run.why({"from": "A", "to": "B", "equivalent": "UAH", "amount": "11"})

    assert refused.because[0].sentence == "It would pass if B trusted A with 1.00 more."
