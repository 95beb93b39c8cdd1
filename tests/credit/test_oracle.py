"""The oracle against the golden values and worked examples of the requirements: the judge of the engine is judged."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.credit.networks import debt_graph, public_scenario
from tests.credit.oracle.adaptive import Policy, adaptive_trace
from tests.credit.oracle.amount import acceptance
from tests.credit.oracle.clearing import Cleared, clear, greedy_clearing, reduction, volume
from tests.credit.oracle.drift import decay, grow
from tests.credit.oracle.exact import carried, most_payable
from tests.credit.oracle.flows import max_flow, optimal_circulation, optimal_circulation_by_simplex
from tests.credit.oracle.knobs import Knobs
from tests.credit.oracle.ledger import apply_hop, capacities
from tests.credit.oracle.money import exact, text
from tests.credit.oracle.plan import Planned, action_seed, budget, plan, tick_seed
from tests.credit.oracle.routes import NO_CAPACITY, NO_ROUTE, Outcome, pay, routes
from tests.credit.oracle.run import run
from tests.credit.oracle.timeline import apply_due, stressed_rate
from tests.credit.oracle.world import Debts, Line, Lines, Participant, World, world_of

GREENFIELD = "greenfield-village-100-realistic-v2"
CAP_500 = {"SIMULATOR_REAL_AMOUNT_CAP": "500"}
ADAPTIVE = "SIMULATOR_CLEARING_ADAPTIVE_"


def scenario(people: str, lines: Sequence[tuple[str, str, Any]], **more: Any) -> dict[str, Any]:
    """A scenario in UAH; a line is (creditor, debtor, limit)."""
    return {
        "schema_version": "scenario/1",
        "scenario_id": "example",
        "equivalents": ["UAH"],
        "participants": [{"id": who, "type": "person"} for who in people],
        "trustlines": [{"from": a, "to": b, "limit": limit, "equivalent": "UAH"} for a, b, limit in lines],
        **more,
    }


def owing(debts: Mapping[str, Any]) -> Debts:
    """Debts out of `{"A>B": 30}`: A owes B 30."""
    return {("UAH", *pair.split(">")): exact(amount) for pair, amount in debts.items()}  # type: ignore[misc]


def shown(debts: Debts) -> dict[str, str]:
    return {f"{debtor}>{creditor}": text(amount, 2) for (_, debtor, creditor), amount in sorted(debts.items())}


def in_short(planned: list[Planned]) -> list[tuple[str, str, str]]:
    return [(sender, receiver, amount) for _, sender, receiver, _, amount in planned]


def plan_digest(name: str, ticks: int) -> tuple[int, str]:
    """Count and digest of the plans of so many ticks, each against empty books."""
    loaded, count, digest = public_scenario(name), 0, sha256()
    for tick in range(ticks):
        for action in plan(loaded, 42, tick, 70, CAP_500):
            digest.update(("|".join(str(part) for part in (tick, *action)) + "\n").encode())
            count += 1
    return count, digest.hexdigest()


@pytest.mark.req("SIM-DET-5", "SIM-DET-6")
def test_seeds_of_ticks_and_positions_are_derived_as_written() -> None:
    assert [tick_seed(*pair) for pair in ((42, 0), (42, 1), (1, 0), (4294967295, 7))] == [
        42000126,
        42000127,
        1000003,
        4293967300,
    ]
    assert [Random(tick_seed(42, tick)).random() for tick in range(3)] == [
        0.7175559251697405,
        0.5048639007963877,
        0.5815068561101447,
    ]
    assert [action_seed(42, 0, position) for position in range(3)] == [4061780090, 4061780091, 4061780092]


@pytest.mark.req("SIM-INT-1")
def test_budget_is_floored() -> None:
    world = world_of(scenario("AB", []), {})

    assert [budget(world, 0, percent) for percent in (0, 4, 5, 50, 65, 99, 100)] == [0, 0, 1, 10, 13, 19, 20]


@pytest.mark.req("SIM-INT-4")
def test_warm_up_ramps_the_budget() -> None:
    world = world_of(scenario("AB", [], settings={"warmup": {"ticks": 50, "floor": 0.1}}), {})

    assert [budget(world, tick, 70) for tick in (0, 10, 25, 49, 50)] == [1, 3, 7, 13, 14]


@pytest.mark.req("SIM-PROF-16")
def test_golden_plan_of_minimal() -> None:
    planned = plan(public_scenario("minimal"), 42, 0)

    assert [action[:4] for action in planned] == [(seq, "p2", "p1", "UAH") for seq in range(20)]
    assert [action[4] for action in planned[:4]] == ["2.13", "2.59", "0.23", "0.76"]


@pytest.mark.req("SIM-PROF-12", "SIM-DET-9")
def test_golden_plan_of_the_clearing_demo_is_a_prefix_of_the_full_one() -> None:
    demo = public_scenario("clearing-demo-10")

    planned = plan(demo, 42, 0, 25)

    assert in_short(planned) == [
        ("bob", "farmer", "1.09"),
        ("shop", "alice", "1.94"),
        ("shop", "bakery", "1.84"),
        ("bob", "dmytro", "1.18"),
        ("shop", "bakery", "0.72"),
    ]
    whole = plan(demo, 42, 0, 100)
    assert len(whole) == 20
    assert whole[:5] == planned


@pytest.mark.req("SIM-PROF-8")
def test_golden_plans_of_the_village() -> None:
    village = public_scenario(GREENFIELD)

    assert in_short(plan(village, 42, 0, 70, CAP_500)) == [("PID_U0094_185eaefe", "PID_U0044_3188ea6c", "96.25")]
    later = in_short(plan(village, 42, 60, 70, CAP_500))
    assert len(later) == 14
    assert later[:2] == [
        ("PID_U0043_935170bb", "PID_U0059_76c90bcb", "402.52"),
        ("PID_U0093_7a27354d", "PID_U0040_b8ab03a8", "389.81"),
    ]


@pytest.mark.req("SIM-DET-13")
@pytest.mark.parametrize(
    ("name", "digest"),
    [
        (GREENFIELD, "e5d258caa541bbaa8dbdfe5691218c87b7f00dfb44b87dfc864e42a1f6dc9cd9"),
        ("riverside-town-50-realistic-v2", "272781dafd8707ddd595e8db6f67a7dab9144fe58aeb04a2d1e323a0c180683a"),
    ],
)
def test_golden_digest_of_eighty_ticks(name: str, digest: str) -> None:
    assert plan_digest(name, 80) == (770, digest)


@pytest.mark.req("SIM-GUARD-5")
def test_village_is_silent_under_the_default_cap() -> None:
    village = public_scenario(GREENFIELD)

    assert [plan(village, 42, tick, 70) for tick in (0, 30, 60)] == [[], [], []]


@pytest.mark.req("SIM-PROF-15")
def test_golden_plan_of_the_decaying_line() -> None:
    decaying = public_scenario("trust-drift-decay-minimal")

    assert in_short(plan(decaying, 1, 0, 100, CAP_500)) == [("bob", "alice", "9.00")] * 20
    assert plan(decaying, 1, 0, 100) == []


@pytest.mark.req("SIM-TEST-13", "SIM-CLR-22")
def test_decaying_line_falls_to_its_debt_and_stays() -> None:
    ran = run(public_scenario("trust-drift-decay-minimal"), 1, 8, 100, CAP_500)

    limits = [text(tick.lines["UAH", "alice", "bob"].limit, 2) for tick in ran.ticks]
    assert limits == ["9.80", "9.60", "9.40", "9.21", "9.02", "9.00", "9.00", "9.00"]
    assert [outcome.code for outcome in ran.ticks[0].outcomes] == [None] + [NO_CAPACITY] * 19
    assert [len(tick.plan) for tick in ran.ticks[1:]] == [0] * 7


@pytest.mark.req("SIM-TEST-5")
def test_minimal_makes_a_hundred_attempts_in_five_ticks() -> None:
    assert run(public_scenario("minimal"), 42, 5).counters.attempts_total == 100


@pytest.mark.req("SIM-PROF-18")
def test_twice_the_median_comes_half_as_often() -> None:
    assert acceptance(1.5, 24.0, 12.0) == pytest.approx(0.490, abs=0.0005)


@pytest.mark.req("SIM-SCN-10")
def test_stress_multiplies_and_is_clamped() -> None:
    effects = [
        {"op": "mult", "field": "tx_rate", "scope": "group:households", "value": 1.5},
        {"op": "mult", "field": "tx_rate", "value": 0.7},
        {"op": "mult", "field": "tx_rate", "scope": "profile:bold", "value": 1.8},
    ]
    stress = {"time": 2000, "type": "stress", "effects": effects, "params": {"duration_ms": 3000}}
    world = world_of(scenario("AB", [], events=[stress]), {})
    household = Participant(group="households")

    rates = [stressed_rate(world, household, 0.09, time) for time in (1000, 2000, 4000, 5000)]

    assert rates == pytest.approx([0.09, 0.0945, 0.0945, 0.09])
    effects[1]["value"] = 1
    assert stressed_rate(world_of(scenario("AB", [], events=[stress]), {}), Participant(profile="bold"), 0.8, 2000) == 1


@pytest.mark.req("SIM-SCN-12")
def test_injection_above_the_limit_is_skipped() -> None:
    effect = {"op": "inject_debt", "from": "B", "to": "A", "equivalent": "UAH", "amount": 20}
    injection = {"time": 0, "type": "inject", "effects": [effect, {**effect, "amount": "10.009"}]}
    world = world_of(scenario("AB", [("B", "A", 100)], events=[injection]), {"SIMULATOR_REAL_ENABLE_INJECT": "1"})
    world.debts = owing({"A>B": 90})

    assert apply_due(world, 0) == [(0, 1, 1, Fraction(10))]
    assert shown(world.debts) == {"A>B": "100.00"}


@pytest.mark.req("SIM-SCN-3")
def test_line_without_code_takes_the_base_equivalent() -> None:
    written = scenario("AB", [("B", "A", 5)], baseEquivalent=" uah ")
    del written["trustlines"][0]["equivalent"]

    assert sorted(world_of(written, {}).lines) == [("UAH", "B", "A")]


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
def test_hop_pays_back_first() -> None:
    debts = owing({"B>A": 30})

    apply_hop(debts, "UAH", "A", "B", Fraction(50))

    assert shown(debts) == {"A>B": "20.00"}


@pytest.mark.req("SIM-PAY-7", "SIM-PAY-9")
def test_line_that_must_not_mediate_still_receives() -> None:
    written = scenario("ABC", [("B", "A", 100), ("C", "B", 100)])
    written["trustlines"][0]["policy"] = {"can_be_intermediate": False}
    world = world_of(written, {})

    assert pay(world, "A", "C", "UAH", Fraction(1)).code == NO_CAPACITY
    assert pay(world, "A", "B", "UAH", Fraction(1)) == Outcome(((("A", "B"), Fraction(1)),))


def test_blocked_participant_sends_the_route_another_way() -> None:
    hops = {hop: Fraction(5) for hop in (("S", "X"), ("X", "R"), ("S", "Y"), ("Y", "Z"), ("Z", "R"))}

    outcome = routes(hops, {("X", "R"): {"blocked_participants": ["X"]}}, "S", "R", Fraction(2))

    assert outcome.routes == ((("S", "Y", "Z", "R"), Fraction(2)),)


@pytest.mark.req("SIM-PAY-10")
def test_payment_is_split_over_three_routes_or_refused() -> None:
    sides = {"X": 40, "Y": 35, "Z": 30}
    hops = {hop: Fraction(room) for side, room in sides.items() for hop in (("S", side), (side, "R"))}

    assert routes(hops, {}, "S", "R", Fraction(100)).routes == (
        (("S", "X", "R"), Fraction(40)),
        (("S", "Y", "R"), Fraction(35)),
        (("S", "Z", "R"), Fraction(25)),
    )
    assert routes(hops, {}, "S", "R", Fraction(106)).code == NO_CAPACITY
    assert routes(hops, {}, "S", "R", Fraction(80), max_paths=2).code == NO_CAPACITY
    assert max_flow(hops, "S", "R") == 105


@pytest.mark.req("SIM-PAY-8")
def test_route_is_short_first_and_then_small_in_ids() -> None:
    hops = {hop: Fraction(9) for hop in (("S", "b"), ("b", "R"), ("S", "B"), ("B", "R"), ("S", "A"), ("A", "B"))}

    assert routes(hops, {}, "S", "R", Fraction(1)).routes[0][0] == ("S", "B", "R")


@pytest.mark.req("SIM-PAY-12")
def test_refusal_tells_missing_capacity_from_missing_lines() -> None:
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
def test_triangle_loses_its_smallest_debt() -> None:
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
def test_cycles_come_by_length_then_amount_then_ids() -> None:
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
def test_static_clearing_comes_at_multiples_of_its_cadence_but_not_at_the_start() -> None:
    ran = run(scenario("AB", [("B", "A", 5)]), 1, 80, 0)

    assert [tick.tick for tick in ran.ticks if tick.calls] == [25, 50, 75]


@pytest.mark.req("SIM-CLR-21")
def test_limit_grows_to_its_ceiling() -> None:
    lines = [("B", "A", 100), ("C", "B", 100), ("A", "C", 100)]
    world = world_of(scenario("ABC", lines, settings={"trust_drift": {"enabled": True}}), {})
    limits = []
    for _ in range(16):
        grow(world, "UAH", [Cleared(("A", "B", "C"), Fraction(1))])
        limits.append(text(world.lines["UAH", "B", "A"].limit, 2))

    assert limits[:4] == ["105.00", "110.25", "115.76", "121.54"]
    assert limits[-3:] == ["197.91", "200.00", "200.00"]


@pytest.mark.req("SIM-CLR-22")
def test_cleared_line_does_not_decay_in_the_same_tick() -> None:
    world = world_of(scenario("AB", [("B", "A", 10)], settings={"trust_drift": {"enabled": True}}), {})
    world.debts = owing({"A>B": 9})

    assert decay(world, [("UAH", "B", "A")]) == []
    assert decay(world, []) == [(("UAH", "B", "A"), Fraction(10), Fraction(98, 10))]


@pytest.mark.req("SIM-ADP-20")
def test_worked_trace_of_the_adaptive_policy() -> None:
    settings = {
        ADAPTIVE + "WINDOW_TICKS": "3",
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
    policy = Policy(Knobs({}))
    policy.observe(300, 135)

    assert policy.rate() == Fraction(45, 100)
    rates = ("0.30", "0.45", "0.50", "0.55", "0.60")
    assert [policy.budgets(exact(rate)) for rate in rates] == [(3, 50), (4, 150), (5, 183), (5, 216), (6, 250)]
    assert Policy(Knobs({"SIMULATOR_CLEARING_MAX_DEPTH": "4"})).budgets(exact("0.75")) == (4, 250)


@pytest.mark.req("SIM-ADP-5")
def test_exactly_the_upper_threshold_activates_and_exactly_the_lower_one_keeps() -> None:
    settings = {ADAPTIVE + "WINDOW_TICKS": "1", ADAPTIVE + "MIN_INTERVAL_TICKS": "1"}

    decisions = adaptive_trace(settings, [(10, 3), (10, 6), (10, 3), (100, 29)], [Fraction(1)] * 2)

    reasons = [decision.reason for decision in decisions]
    assert reasons == ["SKIP_NOT_ACTIVE", "RATE_HIGH_ENTER", "RUN_ACTIVE", "RATE_LOW_EXIT"]


@pytest.mark.req("SIM-ADP-7")
def test_backoff_doubles_and_is_forgotten_after_a_volume() -> None:
    policy, intervals = Policy(Knobs({})), []
    for tick in range(6):
        policy.called(tick, Fraction(0))
        intervals.append(policy.interval())

    assert intervals == [5, 10, 20, 40, 60, 60]
    policy.called(7, Fraction(1, 10**8))
    assert (policy.interval(), policy.is_cooling(11), policy.is_cooling(12)) == (0, True, False)


def test_two_ways_to_the_best_circulation_agree() -> None:
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
def test_routes_in_three_lie_between_the_first_found_ones_and_the_largest_flow(seed: int) -> None:
    """The routes found one by one, the best three, any number of routes: each carries at least as much."""
    luck = Random(seed)
    hops = {(u, v): Fraction(luck.randint(1, 9)) for u in "RSXYZ" for v in "RSXYZ" if u != v and luck.random() < 0.6}

    first_found = max(
        amount for amount in range(60) if not amount or routes(hops, {}, "S", "R", Fraction(amount)).routes
    )
    best_three = most_payable(hops, {}, "S", "R", 6, 3)

    assert first_found <= best_three <= max_flow(hops, "S", "R")
    assert most_payable(hops, {}, "S", "R", 6, 1) <= most_payable(hops, {}, "S", "R", 6, 2) <= best_three


def test_best_three_routes_share_hops_in_halves() -> None:
    """Three routes, each pair with a narrow hop in common, carry half of what the three hops let through."""
    chosen = tuple(tuple(walk) for walk in ("SabcdR", "SabefR", "ScdefR"))
    hops = {hop: Fraction(100) for walk in chosen for hop in pairwise(walk)}
    hops |= {("a", "b"): Fraction(4), ("c", "d"): Fraction(6), ("e", "f"): Fraction(8)}

    assert carried(hops, chosen) == 9
    assert carried(hops | {("a", "b"): Fraction(1)}, chosen) == 7
