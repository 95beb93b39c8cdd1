"""Pictures, bottlenecks, series and targets, derived from the ledger and the events alone."""

from decimal import Decimal

import pytest

from pendula.credit.events import Ticked
from pendula.credit.ledger.payment import PaymentProcessor
from pendula.credit.model import Code, Drift, LineStatus, Policy
from pendula.credit.money import ATOMS, atoms
from pendula.credit.settings import Settings
from pendula.credit.state.network import EquivalentLedger
from pendula.credit.views import (
    PALETTE,
    UNITS,
    InvalidSpan,
    Span,
    alpha,
    measurements,
    neighbourhood,
    picture,
    series,
    targets,
    usual_step,
    worst,
)
from tests.credit.conftest import book as book_of


def ledger_of(*lines: tuple[str, str, int]) -> EquivalentLedger:
    return EquivalentLedger(book_of(*lines), Drift(), Settings())


def hop(ledger: EquivalentLedger, debtor: str, creditor: str) -> int:
    h = ledger.book.line(creditor, debtor)
    assert h is not None
    return h


@pytest.mark.req("SIM-MET-5")
def test_a_line_with_many_timeouts_is_drawn_from_its_creditor_with_that_reason() -> None:
    ledger = ledger_of(("b", "a", 100))
    h = hop(ledger, "a", "b")
    ledger.hops.made([h] * 7)
    for _ in range(3):
        ledger.hops.failed([h], Code.PAYMENT_TIMEOUT)

    (bottleneck,) = worst(ledger, 10)

    assert (bottleneck.score, bottleneck.reason_code) == (Decimal("0.3"), "TOO_MANY_TIMEOUTS")
    assert (bottleneck.target.source, bottleneck.target.target) == ("b", "a")
    assert bottleneck.label == "a → b: 3 of 10 attempts failed"


@pytest.mark.req("SIM-MET-5")
def test_bottlenecks_are_sorted_worst_first_without_those_that_never_failed() -> None:
    ledger = ledger_of(("a", "x", 9), ("b", "a", 9), ("c", "b", 9), ("d", "c", 9))
    ledger.hops.made([hop(ledger, "a", "b"), hop(ledger, "b", "c"), hop(ledger, "c", "d")])
    for ends in (("c", "d"), ("b", "c"), ("x", "a")):
        ledger.hops.failed([hop(ledger, *ends)], Code.ROUTING_NO_CAPACITY)

    ranking = [
        (bottleneck.target.target, bottleneck.target.source, bottleneck.score) for bottleneck in worst(ledger, 10)
    ]

    half = Decimal("0.5")
    assert ranking == [("x", "a", 1), ("b", "c", half), ("c", "d", half)]
    assert len(worst(ledger, 2)) == 2
    assert len(worst(ledger, 10, Decimal("0.6"))) == 1


@pytest.mark.req("SIM-MET-3")
def test_a_point_has_the_last_value_at_or_before_it() -> None:
    drawn = series("total_debt", [(1000, "1"), (3000, "3")], Span(0, 4000, 1000).points())

    assert [(point.t_ms, point.v) for point in drawn.points] == [
        (0, None),
        (1000, "1"),
        (2000, "1"),
        (3000, "3"),
        (4000, "3"),
    ]


@pytest.mark.req("SIM-MET-3")
def test_a_series_has_at_most_two_thousand_points() -> None:
    assert len(Span(0, 1999, 1).points()) == 2000
    with pytest.raises(InvalidSpan, match="2001"):
        Span(0, 2000, 1).points()


def test_every_measured_key_has_a_unit() -> None:
    tick = Ticked(
        tick_index=3,
        sim_time_ms=3000,
        budget=0,
        planned=0,
        committed=0,
        rejected=0,
        errors=0,
        timeouts=0,
        dropped=0,
        metrics={"UAH": dict.fromkeys(UNITS)},
        digests={},
        no_route_at_all=0,
    )

    assert {(measured.key, measured.t_ms) for measured in measurements(tick)} == {(key, 3000) for key in UNITS}


@pytest.mark.parametrize(
    ("used", "status", "key"),
    [
        (0, LineStatus.ACTIVE, "bg"),
        (14, LineStatus.ACTIVE, "bg"),
        (15, LineStatus.ACTIVE, "muted"),
        (40, LineStatus.ACTIVE, "active"),
        (75, LineStatus.ACTIVE, "hi"),
        (100, LineStatus.FROZEN, "muted"),
    ],
)
def test_the_color_of_a_line_follows_its_use(used: int, status: LineStatus, key: str) -> None:
    assert alpha(used, 100, status) == key


@pytest.mark.req("SIM-API-13")
def test_the_picture_uses_only_its_palette_and_deeper_debtors_are_redder() -> None:
    book = book_of(("b", "a", 100), ("c", "b", 100), ("a", "c", 100), ("d", "a", 100))
    for creditor, debtor, amount in (("b", "a", 30), ("d", "a", 40), ("c", "b", 35)):
        h = book.line(creditor, debtor)
        assert h is not None
        book.move(h, amount * ATOMS)

    shown = picture(book, "2026-01-01T00:00:00.000Z")

    nodes = {node.id: node for node in shown.nodes}
    assert {node.viz_color_key for node in shown.nodes} <= set(PALETTE)
    assert (nodes["a"].net_balance, nodes["a"].net_sign, nodes["a"].viz_color_key) == ("-70.00", -1, "debt-8")
    assert (nodes["b"].net_balance, nodes["b"].viz_color_key) == ("-5.00", "debt-0")
    assert nodes["a"].viz_size.w > nodes["b"].viz_size.w
    assert sum(int(node.net_balance_atoms) for node in shown.nodes) == 0


def test_a_neighbourhood_reaches_the_given_number_of_lines() -> None:
    book = book_of(("b", "a", 10), ("c", "b", 10), ("d", "c", 10))

    assert [book.people.names[node] for node in sorted(neighbourhood(book, 0, 1))] == ["a", "b"]
    assert [book.people.names[node] for node in sorted(neighbourhood(book, 0, 2))] == ["a", "b", "c"]


@pytest.mark.req("SIM-API-26")
def test_targets_are_reachable_and_their_amounts_can_be_paid() -> None:
    book = book_of(("b", "a", 100), ("c", "b", 40), ("d", "c", 0), ("a", "e", 50))
    processor = PaymentProcessor(book, Settings())

    reachable = targets(book, processor, book.people.index["a"], 6, amounts=True)

    assert [(target.to_pid, target.hops, target.max_available) for target in reachable] == [
        ("b", 1, "100.00"),
        ("c", 2, "40.00"),
    ]
    for target in reachable:
        ends = book.people.index["a"], book.people.index[target.to_pid]
        routes = processor.find_routes(*ends, atoms(str(target.max_available)))
        assert getattr(routes, "amount", 0) == atoms(str(target.max_available))


@pytest.mark.req("SIM-API-26")
def test_targets_end_at_lines_that_do_not_mediate_and_at_the_hop_limit() -> None:
    book = book_of(("b", "a", 100), ("c", "b", 40), ba=Policy(mediates=False))
    reachable = targets(book, PaymentProcessor(book, Settings()), 0, 6, amounts=False)

    assert [target.to_pid for target in reachable] == ["b"]
    chain = book_of(("b", "a", 9), ("c", "b", 9), ("d", "c", 9))
    assert [target.to_pid for target in targets(chain, PaymentProcessor(chain, Settings()), 0, 2, amounts=False)] == [
        "b",
        "c",
    ]


@pytest.mark.req("SIM-MET-3")
@pytest.mark.parametrize(("to_ms", "step_ms"), [(0, 1000), (1_999_000, 1000), (1_999_001, 2000), (90_000_000, 46_000)])
def test_the_default_step_fits_a_run_of_any_length(to_ms: int, step_ms: int) -> None:
    assert usual_step(0, to_ms) == step_ms
    assert len(Span(0, to_ms, usual_step(0, to_ms)).points()) <= 2000
