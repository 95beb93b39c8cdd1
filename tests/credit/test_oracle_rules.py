"""The oracle against the worked examples of the requirements: payments, clearing, drift, the adaptive policy, flows."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.credit.networks import debt_graph
from tests.credit.oracle.adaptive import Policy, adaptive_trace
from tests.credit.oracle.clearing import Cleared, clear, greedy_clearing, reduction, volume
from tests.credit.oracle.drift import decay, grow
from tests.credit.oracle.exact import carried, most_payable
from tests.credit.oracle.examples import owing, scenario, shown
from tests.credit.oracle.flows import max_flow, optimal_circulation, optimal_circulation_by_simplex
from tests.credit.oracle.knobs import Knobs
from tests.credit.oracle.ledger import apply_hop, capacities
from tests.credit.oracle.money import exact, text
from tests.credit.oracle.routes import NO_CAPACITY, NO_ROUTE, Outcome, pay, routes
from tests.credit.oracle.run import run
from tests.credit.oracle.world import Line, Lines, World, world_of

ADAPTIVE = "SIMULATOR_CLEARING_ADAPTIVE_"


def capacity(world: World, payer: str, payee: str) -> Fraction:
    return capacities(world, "UAH")[payer, payee]


@pytest.mark.req("SIM-PAY-5")
def test_capacity_counts_both_debts_and_the_limit() -> None:
    world = world_of(scenario("AB", [("B", "A", 100)]), {})

    world.debts = owing({"A>B": 30})
    assert capacity(world, "A", "B") == 70
    world.lines["UAH", "B", "A"].limit, world.debts = Fraction(0), owing({"B>A": 25})
    assert capacity(world, "A", "B") == 25


@pytest.mark.req("SIM-PAY-15")
def test_a_hop_pays_back_first() -> None:
    debts = owing({"B>A": 30})

    apply_hop(debts, "UAH", "A", "B", Fraction(50))

    assert shown(debts) == {"A>B": "20.00"}


@pytest.mark.req("SIM-PAY-7", "SIM-PAY-9")
def test_a_line_that_does_not_mediate_still_receives() -> None:
    written = scenario("ABC", [("B", "A", 100), ("C", "B", 100)])
    written["trustlines"][0]["policy"] = {"can_be_intermediate": False}
    world = world_of(written, {})

    assert pay(world, "A", "C", "UAH", Fraction(1)).code == NO_CAPACITY
    assert pay(world, "A", "B", "UAH", Fraction(1)) == Outcome(((("A", "B"), Fraction(1)),))


def test_a_blocked_participant_diverts_the_route() -> None:
    hops = {hop: Fraction(5) for hop in (("S", "X"), ("X", "R"), ("S", "Y"), ("Y", "Z"), ("Z", "R"))}

    outcome = routes(hops, {("X", "R"): {"blocked_participants": ["X"]}}, "S", "R", Fraction(2))

    assert outcome.routes == ((("S", "Y", "Z", "R"), Fraction(2)),)


@pytest.mark.req("SIM-PAY-10")
def test_a_payment_is_split_over_three_routes_or_refused() -> None:
    sides = {"X": 40, "Y": 35, "Z": 30}
    hops = {hop: Fraction(capacity) for side, capacity in sides.items() for hop in (("S", side), (side, "R"))}

    assert routes(hops, {}, "S", "R", Fraction(100)).routes == (
        (("S", "X", "R"), Fraction(40)),
        (("S", "Y", "R"), Fraction(35)),
        (("S", "Z", "R"), Fraction(25)),
    )
    assert routes(hops, {}, "S", "R", Fraction(106)).code == NO_CAPACITY
    assert routes(hops, {}, "S", "R", Fraction(80), max_paths=2).code == NO_CAPACITY
    assert max_flow(hops, "S", "R") == 105


@pytest.mark.req("SIM-PAY-8")
def test_a_route_is_shortest_first_and_then_smallest_in_ids() -> None:
    hops = {hop: Fraction(9) for hop in (("S", "b"), ("b", "R"), ("S", "B"), ("B", "R"), ("S", "A"), ("A", "B"))}

    assert routes(hops, {}, "S", "R", Fraction(1)).routes[0][0] == ("S", "B", "R")


@pytest.mark.req("SIM-PAY-12")
def test_a_refusal_separates_missing_capacity_from_missing_lines() -> None:
    chain = [("B", "A", 10), ("C", "B", 10)]
    world = world_of(scenario("ABCD", chain), {"ROUTING_MAX_HOPS": "1"})
    world.debts = owing({"A>B": 10})

    codes = [pay(world, "A", to, "UAH", Fraction(1)).code for to in "BCD"]

    assert codes == [NO_CAPACITY, NO_ROUTE, NO_ROUTE]


def ring(debts: Mapping[str, Any]) -> World:
    """Debts with a line of limit 100 under each."""
    world = world_of(scenario("ABCD", [(*pair.split(">")[::-1], 100) for pair in debts]), {})  # type: ignore[misc]
    world.debts = owing(debts)
    return world


@pytest.mark.req("SIM-CLR-2", "SIM-CLR-8")
def test_a_triangle_loses_its_smallest_debt() -> None:
    world = ring({"A>B": 100, "B>C": 80, "C>A": 50})

    done = clear(world, "UAH", 3)

    assert shown(world.debts) == {"A>B": "50.00", "B>C": "30.00"}
    assert [volume(done), reduction(done)] == [50, 150]


@pytest.mark.req("SIM-CLR-7")
def test_depth_bounds_the_number_of_edges() -> None:
    square = {"A>B": 5, "B>C": 5, "C>D": 5, "D>A": 5}

    assert clear(ring(square), "UAH", 3) == []
    assert clear(ring(square), "UAH", 4) == [Cleared(("A", "B", "C", "D"), Fraction(5))]


@pytest.mark.req("SIM-CLR-6")
def test_cycles_are_ordered_by_length_then_amount_then_ids() -> None:
    debts = owing({"A>B": 9, "B>C": 9, "C>D": 9, "D>A": 9, "C>A": 2, "D>B": 3, "B>E": 3, "E>D": 0.5})
    lines: Lines = {(code, creditor, debtor): Line(Fraction(50)) for code, debtor, creditor in debts}

    done = greedy_clearing(debts, lines, 4, 100)

    assert [("".join(cleared.cycle), cleared.amount) for cleared in done] == [
        ("BCD", Fraction(3)),
        ("ABC", Fraction(2)),
        ("ABCD", Fraction(4)),
        ("ABED", Fraction(1, 2)),
    ]


@pytest.mark.req("SIM-CLR-13")
def test_static_clearing_runs_at_multiples_of_its_cadence_except_tick_zero() -> None:
    ran = run(scenario("AB", [("B", "A", 5)]), 1, 80)

    assert [tick.tick for tick in ran.ticks if tick.calls] == [25, 50, 75]


@pytest.mark.req("SIM-INT-3")
def test_nothing_is_cleared_at_zero_intensity() -> None:
    ran = run(scenario("AB", [("B", "A", 5)]), 1, 80, 0)

    assert [tick.tick for tick in ran.ticks if tick.calls] == []


@pytest.mark.req("SIM-CLR-21")
def test_a_limit_grows_to_its_ceiling() -> None:
    lines = [("B", "A", 100), ("C", "B", 100), ("A", "C", 100)]
    world = world_of(scenario("ABC", lines, settings={"trust_drift": {"enabled": True}}), {})
    limits = []
    for _ in range(16):
        grow(world, "UAH", [Cleared(("A", "B", "C"), Fraction(1))])
        limits.append(text(world.lines["UAH", "B", "A"].limit, 2))

    assert limits[:4] == ["105.00", "110.25", "115.76", "121.54"]
    assert limits[-3:] == ["197.91", "200.00", "200.00"]


@pytest.mark.req("SIM-CLR-22")
def test_a_cleared_line_does_not_decay_in_the_same_tick() -> None:
    world = world_of(scenario("AB", [("B", "A", 10)], settings={"trust_drift": {"enabled": True}}), {})
    world.debts = owing({"A>B": 9})

    assert decay(world, [("UAH", "B", "A")]) == []
    assert decay(world, []) == [(("UAH", "B", "A"), Fraction(10), Fraction(98, 10))]


@pytest.mark.req("SIM-ADP-20")
def test_the_adaptive_policy_follows_the_worked_trace() -> None:
    settings = {
        ADAPTIVE + "WINDOW_TICKS": "3",
        ADAPTIVE + "MAX_DEPTH_MIN": "3",
        ADAPTIVE + "MIN_INTERVAL_TICKS": "2",
        ADAPTIVE + "BACKOFF_MAX_INTERVAL_TICKS": "8",
        ADAPTIVE + "WARMUP_FALLBACK_CADENCE": "0",
    }
    rejected = (8, 8, 8, 8, 6, 4, 3, 3, 3, 2, 2)

    decisions = adaptive_trace(
        settings, [(10, count) for count in rejected], [Fraction(0), Fraction(0), Fraction(25, 2)]
    )

    assert [(decision.reason, decision.depth, decision.budget_ms) for decision in decisions] == [
        ("WARMUP_DISABLED", None, None),
        ("WARMUP_DISABLED", None, None),
        ("RATE_HIGH_ENTER", 6, 250),
        ("SKIP_MIN_INTERVAL", None, None),
        ("RUN_ACTIVE", 6, 250),
        ("SKIP_MIN_INTERVAL", None, None),
        ("SKIP_BACKOFF", None, None),
        ("SKIP_BACKOFF", None, None),
        ("RUN_ACTIVE", 3, 50),
        ("RATE_LOW_EXIT", None, None),
        ("SKIP_NOT_ACTIVE", None, None),
    ]
    assert [None if decision.rate is None else round(float(decision.rate), 3) for decision in decisions[2:]] == [
        0.8,
        0.8,
        0.733,
        0.6,
        0.433,
        0.333,
        0.3,
        0.267,
        0.233,
    ]


@pytest.mark.req("SIM-ADP-4", "SIM-ADP-8")
def test_budgets_grow_with_the_rate() -> None:
    policy = Policy(Knobs({ADAPTIVE + "MAX_DEPTH_MIN": "3"}))
    policy.observe(300, 135)

    assert policy.rate() == Fraction(45, 100)
    rates = ("0.30", "0.45", "0.50", "0.55", "0.60")
    assert [policy.budgets(exact(rate)) for rate in rates] == [(3, 50), (4, 150), (5, 183), (5, 216), (6, 250)]
    assert Policy(Knobs({"SIMULATOR_CLEARING_MAX_DEPTH": "4"})).budgets(exact("0.75")) == (4, 250)


@pytest.mark.req("SIM-ADP-5")
def test_the_upper_threshold_activates_and_the_lower_one_keeps() -> None:
    settings = {ADAPTIVE + "WINDOW_TICKS": "1", ADAPTIVE + "MIN_INTERVAL_TICKS": "1"}

    decisions = adaptive_trace(settings, [(10, 3), (10, 6), (10, 3), (100, 29)], [Fraction(1)] * 2)

    reasons = [decision.reason for decision in decisions]
    assert reasons == ["SKIP_NOT_ACTIVE", "RATE_HIGH_ENTER", "RUN_ACTIVE", "RATE_LOW_EXIT"]


@pytest.mark.req("SIM-ADP-7")
def test_backoff_doubles_and_ends_with_a_volume() -> None:
    policy, intervals = Policy(Knobs({})), []
    for tick in range(6):
        policy.called(tick, Fraction(0))
        intervals.append(policy.interval())

    assert intervals == [5, 10, 20, 40, 60, 60]
    policy.called(7, Fraction(1, 10**8))
    assert (policy.interval(), policy.is_cooling(11), policy.is_cooling(12)) == (0, True, False)


def test_two_computations_of_the_best_circulation_agree() -> None:
    pytest.importorskip("networkx", reason="networkx is not installed")
    for seed in range(60):
        debts = {pair: exact(amount) for pair, amount in debt_graph(seed).items()}

        assert optimal_circulation(debts) == optimal_circulation_by_simplex(debts), seed


@pytest.mark.parametrize("seed", range(25))
def test_greedy_clearing_stays_within_the_best_circulation(seed: int) -> None:
    debts = {("UAH", *pair): exact(amount) for pair, amount in debt_graph(seed).items()}
    lines: Lines = {(code, creditor, debtor): Line(Fraction(50)) for code, debtor, creditor in debts}

    done = greedy_clearing(debts, lines, 8, 100)

    best = optimal_circulation({(debtor, creditor): amount for (_, debtor, creditor), amount in debts.items()})
    assert reduction(done) <= best


@pytest.mark.parametrize("seed", range(25))
def test_three_routes_carry_between_the_greedy_amount_and_the_largest_flow(seed: int) -> None:
    """Greedy routes carry at most as much as the best three, and those at most the largest flow."""
    luck = Random(seed)
    hops = {(u, v): Fraction(luck.randint(1, 9)) for u in "RSXYZ" for v in "RSXYZ" if u != v and luck.random() < 0.6}

    first_found = max(
        amount for amount in range(60) if not amount or routes(hops, {}, "S", "R", Fraction(amount)).routes
    )
    best_three = most_payable(hops, {}, "S", "R", 6, 3)

    assert first_found <= best_three <= max_flow(hops, "S", "R")
    assert most_payable(hops, {}, "S", "R", 6, 1) <= most_payable(hops, {}, "S", "R", 6, 2) <= best_three


def test_the_best_three_routes_share_hops_in_halves() -> None:
    """Three routes, each pair with a narrow hop in common, carry half of the sum of the three hops."""
    chosen = tuple(tuple(walk) for walk in ("SabcdR", "SabefR", "ScdefR"))
    hops = {hop: Fraction(100) for walk in chosen for hop in pairwise(walk)}
    hops |= {("a", "b"): Fraction(4), ("c", "d"): Fraction(6), ("e", "f"): Fraction(8)}

    assert carried(hops, chosen) == 9
    assert carried(hops | {("a", "b"): Fraction(1)}, chosen) == 7
