"""Clearing: choice, order and amount of circles; positions never change."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.credit.commands import Clear, Pay, Tick
from pendula.credit.events import ClearingDecision, ClearingDone, ClearingPlan, Event, TopologyChanged
from pendula.credit.ledger.book import Book, People
from pendula.credit.ledger.cycles import find_and_clear
from pendula.credit.model import LineStatus, Participant, ParticipantType, Policy, Trustline
from pendula.credit.money import text
from pendula.credit.outside.answers import OptimalOutside
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.documents import from_value
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside
from tests.credit.conftest import headless, network, saved, still

UNIT = 10**8
MUCH = 10**9


def book_owing(*debts: tuple[str, str, int], **policies: Policy) -> Book:
    """A book with debts (debtor, creditor, units); policies by the two letters of a debt."""
    names = sorted({end for debtor, creditor, _ in debts for end in (debtor, creditor)})
    people = People(Participant(name, ParticipantType.PERSON) for name in names)
    lines = [
        Trustline("UAH", creditor, debtor, 1000 * UNIT, policies.get(debtor + creditor, Policy()))
        for debtor, creditor, _ in debts
    ]
    book = Book("UAH", people, lines)
    for debtor, creditor, amount in debts:
        h = book.line(creditor, debtor)
        assert h is not None
        book.move(h, amount * UNIT)
    return book


def clear_book(book: Book, depth: int = 6, most: int = 100) -> list[tuple[str, int]]:
    names = book.people.names
    result = find_and_clear(book, depth, most, MUCH)
    return [("".join(names[node] for node in cycle.nodes), cycle.amount // UNIT) for cycle in result.cycles]


@pytest.mark.req("SIM-CLR-1")
@pytest.mark.req("SIM-CLR-7")
def test_a_circle_of_four_needs_a_depth_of_four() -> None:
    debts = (("A", "B", 5), ("B", "C", 6), ("C", "D", 7), ("D", "A", 8))

    assert clear_book(book_owing(*debts), depth=3) == []
    assert clear_book(book_owing(*debts), depth=4) == [("ABCD", 5)]


@pytest.mark.req("SIM-CLR-6")
def test_circles_are_cleared_shortest_first_then_largest_then_smallest_ids() -> None:
    book = book_owing(
        ("A", "B", 9), ("B", "C", 9), ("C", "D", 9), ("D", "A", 9),  # four, large
        ("E", "F", 2), ("F", "G", 2), ("G", "E", 2),  # three, small
        ("H", "I", 3), ("I", "J", 3), ("J", "H", 3),  # three, larger
        ("K", "L", 2), ("L", "M", 2), ("M", "K", 2),  # three, small, later ids
    )  # fmt: skip

    assert clear_book(book) == [("HIJ", 3), ("EFG", 2), ("KLM", 2), ("ABCD", 9)]


@pytest.mark.req("SIM-CLR-5")
def test_a_call_ends_after_its_number_of_cycles() -> None:
    book = book_owing(("A", "B", 1), ("B", "C", 1), ("C", "A", 1), ("D", "E", 1), ("E", "F", 1), ("F", "D", 1))

    result = find_and_clear(book, 6, 1, MUCH)

    assert (len(result.cycles), result.stopped) == (1, "cycles")


@pytest.mark.req("SIM-CLR-5")
def test_a_call_ends_when_its_work_is_spent() -> None:
    book = book_owing(("A", "B", 1), ("B", "C", 1), ("C", "A", 1))
    before = list(book.owed)

    result = find_and_clear(book, 6, 100, 2)

    assert (result.cycles, result.stopped) == ((), "work")
    assert book.owed == before


@pytest.mark.req("SIM-CLR-4")
def test_only_live_lines_with_permission_take_part() -> None:
    debts = (("A", "B", 1), ("B", "C", 1), ("C", "A", 1))
    assert clear_book(book_owing(*debts)) == [("ABC", 1)]

    assert clear_book(book_owing(*debts, BC=Policy(auto_clearing=False))) == []
    frozen = book_owing(*debts)
    frozen.set_status([0], LineStatus.FROZEN)
    assert clear_book(frozen) == []
    gone = book_owing(*debts)
    gone.people.active[1] = False
    gone.rewire()
    assert clear_book(gone) == []
    held = book_owing(*debts)
    held.reserve([(0, 1)])
    assert clear_book(held) == []
    held_the_other_way = book_owing(*debts, ("B", "A", 0))
    held_the_other_way.reserve([(held_the_other_way.hop[1][0], 1)])
    assert clear_book(held_the_other_way) == []


@pytest.mark.req("SIM-CLR-4")
@pytest.mark.parametrize("word", [False, 0, "0", "false", "no", "off", "Off"])
def test_false_words_keep_a_line_out_of_clearing(word: Json) -> None:
    scenario = network(("B", "A", 1), ("C", "B", 1), ("A", "C", 1))
    scenario["trustlines"][0]["policy"] = {"auto_clearing": word}  # type: ignore[index]
    run = headless(scenario, routing_max_hops="1")
    for sender, receiver in (("A", "B"), ("B", "C"), ("C", "A")):
        run.do(Pay(sender, receiver, "UAH", "1"))

    answer: Any = run.do(Clear("UAH")).answer

    assert answer["cleared_cycles"] == 0


@pytest.mark.req("SIM-CLR-15")
def test_a_dry_run_returns_the_clearing_and_changes_nothing() -> None:
    run = circle()
    before = run.run.state()

    tried: Any = run.do(Clear("UAH", dry_run=True)).answer
    assert run.run.state() == before
    done: Any = run.do(Clear("UAH")).answer

    assert tried == done
    assert done["total_cleared_amount"] == "1.00"


graphs = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(1, 9)).filter(lambda edge: edge[0] < edge[1]),
    min_size=3,
    max_size=50,
    unique_by=lambda edge: edge[:2],
)


@pytest.mark.req("SIM-TEST-21")
@pytest.mark.req("SIM-CLR-3")
@given(graphs, st.integers(3, 6), st.integers(0, 2**60))
def test_clearing_moves_no_position(edges: list[tuple[int, int, int]], depth: int, turns: int) -> None:
    """Each pair owes in one direction, chosen by a bit."""
    debts = [
        (chr(65 + (low, high)[turns >> at & 1]), chr(65 + (high, low)[turns >> at & 1]), amount)
        for at, (low, high, amount) in enumerate(edges)
    ]
    book = book_owing(*debts)
    before, total = [book.position(node) for node in range(len(book.people))], book.total

    result = find_and_clear(book, depth, 1000, MUCH)

    assert [book.position(node) for node in range(len(book.people))] == before
    assert total - book.total == result.reduction
    assert list(book.broken()) == []
    assert find_and_clear(book, depth, 1000, MUCH).cycles == (), "nothing is left to find"
    lengths = [len(cycle.hops) for cycle in result.cycles]
    assert lengths == sorted(lengths)


def circle(outside: Outside | None = None, **settings: str) -> Headless:
    """A owes B, B owes C, C owes A."""
    options = change_settings(Settings(), {"routing_max_hops": "1", **settings})
    scenario = network(("B", "A", 2), ("C", "B", 2), ("A", "C", 2), settings={"trust_drift": {"enabled": True}})
    run = Headless(plan_run(from_value(still(scenario)), seed=1, settings=options))
    if outside is not None:
        run.ask(outside)
    for sender, receiver, amount in (("A", "B", "1"), ("B", "C", "2"), ("C", "A", "2")):
        run.do(Pay(sender, receiver, "UAH", amount))
    return run


def events_of(run: Headless, ticks: int) -> list[Event]:
    events: list[Event] = []
    run.step(ticks, events.extend)
    return events


@pytest.mark.req("SIM-CLR-13")
@pytest.mark.req("SIM-ACT-5")
def test_static_clearing_runs_at_its_cadence_except_in_the_first_tick() -> None:
    def ticks(**settings: str) -> list[int]:
        run = circle(None, **settings)
        cleared = []
        for _ in range(80):
            for sender, receiver in (("A", "B"), ("B", "C"), ("C", "A")):
                run.run.apply(Pay(sender, receiver, "UAH", "0.01"))
            cleared += [event.tick_index for event in run.do(Tick()).events if isinstance(event, ClearingDone)]
        return cleared

    assert ticks() == [25, 50, 75]
    assert ticks(clearing_every_n_ticks="0") == []
    assert ticks(clearing_enabled="false") == []


@pytest.mark.req("SIM-CLR-9")
def test_the_plan_and_the_result_of_a_clearing_have_one_id() -> None:
    run = circle(clearing_every_n_ticks="1")

    events = [event for event in events_of(run, 2) if isinstance(event, ClearingPlan | ClearingDone)]

    plan, done = events
    assert isinstance(plan, ClearingPlan)
    assert isinstance(done, ClearingDone)
    assert plan.plan_id == done.plan_id
    assert (done.cleared_cycles, done.cleared_amount, done.debt_reduction) == (1, "1.00", "3.00")


@pytest.mark.req("SIM-CLR-9")
@pytest.mark.req("SIM-EVT-5")
def test_clearing_edges_run_from_creditor_to_debtor_as_in_a_snapshot() -> None:
    # A owes B, B owes C and C owes A.
    events = events_of(circle(clearing_every_n_ticks="1"), 2)
    run = circle()
    run.step(1)

    (plan,) = [event for event in events if isinstance(event, ClearingPlan)]
    (done,) = [event for event in events if isinstance(event, ClearingDone)]
    answer: Any = run.do(Clear()).answer
    creditors_first = {("B", "A"), ("C", "B"), ("A", "C")}
    assert isinstance(done.edge_patch, tuple)
    assert {(edge.source, edge.target) for edge in done.cycle_edges} == creditors_first
    assert {(edge.source, edge.target) for edge in plan.steps[0].highlight_edges} == creditors_first
    assert {(edge["from"], edge["to"]) for edge in answer["cycles"][0]["edges"]} == creditors_first
    assert creditors_first <= {(line.source, line.target) for line in done.edge_patch}


@pytest.mark.req("SIM-CLR-9")
def test_the_announcement_can_be_switched_off() -> None:
    events = events_of(circle(clearing_every_n_ticks="1", emit_clearing_plan="0"), 2)

    assert [type(event) for event in events if isinstance(event, ClearingPlan | ClearingDone)] == [ClearingDone]


@pytest.mark.req("SIM-CLR-20")
@pytest.mark.req("SIM-CLR-23")
@pytest.mark.req("SIM-CLR-24")
def test_trust_growth_along_a_clearing_is_reported() -> None:
    run = circle(clearing_every_n_ticks="1")

    changes = [
        event
        for event in events_of(run, 2)
        if isinstance(event, TopologyChanged) and event.reason == "trust_drift_growth"
    ]

    (change,) = changes
    assert isinstance(change.payload.edge_patch, tuple)
    assert {(edge.source, edge.target): edge.trust_limit for edge in change.payload.edge_patch} == {
        ("A", "C"): "2.10",
        ("B", "A"): "2.10",
        ("C", "B"): "2.10",
    }


@pytest.mark.req("SIM-ADP-1")
@pytest.mark.req("SIM-ADP-18")
def test_only_the_adaptive_policy_emits_a_decision_per_tick_and_equivalent() -> None:
    adaptive = [
        event for event in events_of(circle(clearing_policy="adaptive"), 5) if isinstance(event, ClearingDecision)
    ]
    static = [event for event in events_of(circle(), 5) if isinstance(event, ClearingDecision)]

    assert [decision.tick_index for decision in adaptive] == [0, 1, 2, 3, 4]
    assert static == []


class FixedAnswer:
    """A solver with a fixed answer."""

    def __init__(self, answer: Json) -> None:
        self.answer = answer

    def ask(self, name: str, question: Json) -> Json:
        return self.answer


@pytest.mark.req("SIM-CLR-14")
def test_the_best_circulation_is_cleared_at_once() -> None:
    run = circle(OptimalOutside(), clearing_mode="optimal")

    done = run.do(Clear("UAH"))

    answer: Any = done.answer
    assert answer["total_cleared_amount"] == "1.00"
    assert text(run.run.network.ledgers["UAH"].book.total) == "2.00"


@pytest.mark.req("SIM-CLR-14")
@pytest.mark.req("SIM-CLR-11")
@pytest.mark.parametrize(
    "answer", [None, {}, {"flows": ["1"]}, {"flows": ["100000000"] * 2 + ["0"]}, {"flows": ["0"] * 3}]
)
def test_a_wrong_answer_of_the_solver_clears_nothing(answer: Json) -> None:
    run = circle(FixedAnswer(answer), clearing_mode="optimal")
    before = text(run.run.network.ledgers["UAH"].book.total)

    done: Any = run.do(Clear("UAH")).answer

    assert done["cleared_cycles"] == 0
    assert text(run.run.network.ledgers["UAH"].book.total) == before


@pytest.mark.req("SIM-CLR-14")
def test_every_clearing_can_be_compared_with_the_optimum() -> None:
    run = circle(OptimalOutside(), clearing_yardstick="on", clearing_every_n_ticks="1")

    run.step(2)

    (row,) = run.result().clearing
    assert (row.debt_reduction, row.optimum) == ("3.00", "3.00")


@pytest.mark.req("SIM-CLR-5")
def test_a_search_that_runs_out_of_work_without_clearing_is_reported() -> None:
    run = headless(
        still(network(("B", "A", 10), ("C", "B", 10), ("A", "C", 10))),
        intensity=100,
        routing_max_hops="1",
        clearing_every_n_ticks="1",
        clearing_time_budget_ms="1",
        work_units_per_ms="2",
    )
    for sender, receiver in (("A", "B"), ("B", "C"), ("C", "A")):
        run.do(Pay(sender, receiver, "UAH", "1"))

    run.step(2)

    assert [diagnostic.code for diagnostic in run.result().diagnostics] == ["nothing_cleared"]


@pytest.mark.req("SIM-ADP-11")
def test_a_busy_caller_skips_clearing_and_the_window_still_grows() -> None:
    adaptive = {"clearing_policy": "adaptive", "adaptive_inflight_threshold": "2", "adaptive_window_ticks": "5"}
    options = change_settings(Settings(), {**adaptive, "adaptive_warmup_fallback_cadence": "1"})
    run = Headless(plan_run(from_value(network(("b", "a", 10))), seed=1, settings=options))
    run.step(1)

    busy = run.do(Tick(in_flight=3)).events
    calm = run.do(Tick(in_flight=2)).events

    reasons = [[event.reason for event in events if isinstance(event, ClearingDecision)] for events in (busy, calm)]
    assert reasons == [["CLEARING_SKIPPED_GUARDRAIL"], ["WARMUP_FALLBACK_RUN"]]
    assert len(saved(run.run)["policies"]["UAH"]["window"]) == 3


@pytest.mark.req("SIM-ADP-12")
def test_a_failed_call_counts_as_a_call_without_volume() -> None:
    class Silent:
        def ask(self, name: str, question: Json) -> Json:
            return None

    adaptive = {"clearing_policy": "adaptive", "clearing_mode": "optimal", "adaptive_warmup_fallback_cadence": "1"}
    run = Headless(
        plan_run(from_value(network(("b", "a", 10))), seed=1, settings=change_settings(Settings(), adaptive))
    )
    run.ask(Silent())
    run.step(2)

    policy = saved(run.run)["policies"]["UAH"]
    assert (policy["last_call"], policy["last_volume"], policy["zero_streak"]) == (1, 0, 1)
    assert policy["last_cost_ms"] > 0
    assert [diagnostic.code for diagnostic in run.result().diagnostics] == ["optimal_clearing_failed"]
