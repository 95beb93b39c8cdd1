"""Planning: profiles and their malformed values, reach, receivers, amounts, positions."""

from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from pendula.credit.commands import Pay
from pendula.credit.events import TxFailed, TxUpdated
from pendula.credit.ledger.book import Book, People
from pendula.credit.model import Code, Participant, ParticipantType, Profile, Trustline
from pendula.credit.planning.planner import Market, Planner, _Demand, _in_turn, shuffled
from pendula.credit.planning.profiles import PLAIN, behaviour
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.credit.state.clearing_policy import AdaptivePolicy
from pendula.documents import from_value
from pendula.kernel.canonical import Json
from pendula.kernel.rng import action_generator, tick_generator, tick_seed
from tests.campaigns import campaign_after
from tests.credit.conftest import book, headless, network


def props(**given: Json) -> Any:
    return behaviour("p", {"p": Profile("p", given)}, presets=False)


@pytest.mark.req("SIM-PROF-1")
def test_every_key_of_a_profile_is_read() -> None:
    parsed = props(
        tx_rate=Decimal("0.25"),
        equivalent_weights={"uah": 2, "EUR": 1},
        recipient_group_weights={"b": 1, "a": Decimal("0.5"), "none": 0},
        amount_model={"UAH": {"min": 1, "max": 9, "p50": 3, "p90": 5}},
        flow_chains=[["a", "b"], ["a", "c"]],
        flow_affinity=Decimal("0.4"),
        periodicity_factor=Decimal("1.5"),
        demand="fixed",
    )

    assert parsed.tx_rate == 0.25
    assert (parsed.weight("UAH"), parsed.weight("EUR"), parsed.weight("HOUR")) == (1.0, 0.5, 0.0)
    assert parsed.groups == (("a", 0.5), ("b", 1.0))
    model = parsed.model("UAH")
    assert (model.min, model.max, model.p50, model.p90) == (10**8, 9 * 10**8, 3.0, 5.0)
    assert parsed.chains == (("a", "b"), ("a", "c"))
    assert (parsed.affinity, parsed.periodicity) == (0.4, 1.5)
    assert parsed.fixed_demand
    assert not props(demand="capped").fixed_demand
    assert props(tx_rate=7).tx_rate == 1.0, "rates are clamped"


@pytest.mark.req("SIM-PROF-2")
@pytest.mark.parametrize(
    "given",
    [
        {"tx_rate": "often"},
        {"tx_rate": True},
        {"equivalent_weights": {"UAH": -1}},
        {"equivalent_weights": [1]},
        {"recipient_group_weights": {"a": "much"}},
        {"amount_model": {"UAH": {"min": 0}}},
        {"amount_model": 5},
        {"flow_chains": [["a"]]},
        {"flow_affinity": 3},
        {"periodicity_factor": 0},
        {"demand": "large"},
        {"demand": ["fixed"]},
        {"of_no_meaning": 1},
    ],
)
def test_malformed_values_and_unknown_keys_change_nothing(given: dict[str, Json]) -> None:
    assert props(**given) == PLAIN


@pytest.mark.req("SIM-PROF-9")
def test_reach_ends_after_three_hops_or_two_hundred_participants() -> None:
    chain = [(f"p{n + 1}", f"p{n}", 5) for n in range(5)]
    run = headless(network(*chain)).run
    market = run.network.ledgers["UAH"].market
    market.refresh()
    assert market.members(0, None) == (1, 2, 3)

    wide = headless(network(*((f"q{n:03}", "hub", 5) for n in range(300)))).run.network.ledgers["UAH"].market
    wide.refresh()
    seen = wide.members(0, None)
    assert len(seen) == 199
    assert seen == tuple(range(1, 200)), "neighbours come in the order of their ids"


def people(*groups: str | None) -> People:
    return People(
        Participant(f"p{n}", ParticipantType.PERSON, group=group, profile="p") for n, group in enumerate(groups)
    )


def planner(crowd: People, lines: list[tuple[int, int]], **given: Any) -> Planner:
    rows = [Trustline("UAH", f"p{creditor}", f"p{debtor}", 10**12) for creditor, debtor in lines]
    flow = headless(network(("a", "b", 1), settings={"flow": {"enabled": True}})).run.scenario.flow
    return Planner(crowd, [Market(Book("UAH", crowd, rows))], {"p": Profile("p", given)}, flow, False, None)


STAR = [(1, 0), (2, 0), (3, 0)]


@pytest.mark.req("SIM-PROF-10")
def test_a_followed_chain_decides_the_receiver() -> None:
    crowd = people("home", "shop", "farm", "farm")
    always = planner(crowd, STAR, flow_chains=[["home", "shop"]], flow_affinity=1)
    never = planner(crowd, STAR, flow_chains=[["home", "shop"]], flow_affinity=0, recipient_group_weights={"farm": 1})

    assert {payment.receiver for payment in always.plan(1, 0, 20)} == {1}
    assert {payment.receiver for payment in never.plan(1, 0, 20)} == {2, 3}


@pytest.mark.req("SIM-PROF-11")
def test_weights_of_groups_decide_the_receiver() -> None:
    crowd = people(None, "a", "b", "c")
    one_sided = planner(crowd, STAR, recipient_group_weights={"b": 1, "a": 0})
    out_of_reach = planner(crowd, STAR, recipient_group_weights={"nowhere": 1})

    assert {payment.receiver for payment in one_sided.plan(1, 0, 20)} == {2}
    assert {payment.receiver for payment in out_of_reach.plan(1, 0, 20)} == {1, 2, 3}, "then any group is chosen"


@pytest.mark.req("SIM-PROF-6")
@pytest.mark.req("SIM-PROF-19")
def test_positions_cycle_through_candidates_and_skipped_ones_use_no_number() -> None:
    """Two candidates; the first never pays: every second position is planned, numbered without gaps."""
    crowd = People(
        [
            Participant("a", ParticipantType.PERSON, profile="still"),
            Participant("b", ParticipantType.PERSON),
            Participant("c", ParticipantType.PERSON),
        ]
    )
    book = Book("UAH", crowd, [Trustline("UAH", "c", "a", 10**12), Trustline("UAH", "c", "b", 10**12)])
    flow = headless(network(("a", "b", 1))).run.scenario.flow
    plans = Planner(crowd, [Market(book)], {"still": Profile("still", {"tx_rate": 0})}, flow, False, 10**10)

    plan = plans.plan(5, 3, 4)

    assert [payment.seq for payment in plan] == [0, 1, 2, 3]
    order = shuffled(tick_generator(5, 3), ["a", "b"])
    positions = [position for position in range(8) if order[position % 2] == "b"]
    expected = []
    for position in positions:
        draw = action_generator(tick_seed(5, 3), position)
        draw.random()
        draw.choice([2])
        expected.append(int((0.1 + draw.random() * 100.0) * 100))
    assert [payment.cents for payment in plan] == expected


def test_shuffling_equals_that_of_the_standard_library() -> None:
    for count in (0, 1, 2, 7, 100, 1000):
        items = list(range(count))
        Random(count).shuffle(items)
        assert shuffled(Random(count), range(count)) == items


@pytest.mark.req("SIM-PROF-17")
def test_amounts_are_whole_cents_within_their_bounds() -> None:
    crowd = people(None, None)
    plans = planner(crowd, [(1, 0)], amount_model={"UAH": {"min": Decimal("2.005"), "max": Decimal("2.999"), "p50": 2}})

    cents = [payment.cents for tick in range(20) for payment in plans.plan(1, tick, 20)]

    assert cents
    assert min(cents) >= 201
    assert max(cents) <= 299


@pytest.mark.req("SIM-PROF-18")
def test_large_amounts_are_less_frequent() -> None:
    crowd = people(None, None)
    fixed = {"UAH": {"min": 20, "max": 20, "p50": 10}}
    plain = planner(crowd, [(1, 0)], amount_model=fixed)
    rare = planner(crowd, [(1, 0)], amount_model=fixed, periodicity_factor=Decimal("1.5"))

    budget = 400
    assert len(plain.plan(1, 0, budget)) == budget
    taken = [len(plans.plan(1, 0, 20)) for plans in (plain, rare)]
    assert taken == [20, 20]
    model = rare.behaviours[0].model("UAH")
    accepted = sum(_in_turn(action_generator(9, n), 2000, 20 * 10**8, model, 1.5) for n in range(2000))
    assert 0.46 < accepted / 2000 < 0.52, "1 / (1 + 1.5 ln 2) is 0.490"


@pytest.mark.req("SIM-ADP-6")
@pytest.mark.req("SIM-ADP-9")
@pytest.mark.req("SIM-ADP-10")
@pytest.mark.req("SIM-TEST-11")
def test_cold_start_keeps_its_cadence_with_the_smallest_budgets_and_the_cooldown() -> None:
    settings = change_settings(
        Settings(),
        {"adaptive_warmup_fallback_cadence": "2", "adaptive_min_interval_ticks": "3", "adaptive_window_ticks": "100"},
    )
    policy, seen, reasons = AdaptivePolicy(settings), [], []
    for tick in range(9):
        policy.observe(10, 10)
        decision = policy.decide(tick)
        seen.append((decision.reason.value, decision.max_depth, decision.time_budget_ms) if decision.run else None)
        reasons.append(decision.reason.value)
        if decision.run:
            policy.called(tick, 1, 1)

    assert (reasons[3], reasons[4]) == ("WARMUP_FALLBACK_SKIP", "SKIP_MIN_INTERVAL"), "each skip has its own cause"
    run = ("WARMUP_FALLBACK_RUN", 6, 50)
    assert seen == [None, None, run, None, None, None, run, None, None], "tick 4 is too soon after tick 2"


@pytest.mark.req("SIM-PAY-1")
@pytest.mark.req("SIM-PAY-21")
@pytest.mark.req("SIM-TEST-7")
def test_every_failure_of_a_planned_payment_has_a_known_code() -> None:
    options = change_settings(Settings(), {"amount_cap": "30", "routing_max_hops": "1"})
    scenario = network(("b", "a", 40), ("c", "b", 40), ("a", "c", 40), ("d", "a", 5))
    run = Headless(plan_run(from_value(scenario), seed=2, settings=options))
    events: list[Any] = []
    run.step(10, events.extend)

    book = run.run.network.ledgers["UAH"].book
    paid = [event for event in events if isinstance(event, TxUpdated)]
    failed = [event for event in events if isinstance(event, TxFailed)]
    assert paid
    assert failed
    assert {failure.error.code for failure in failed} <= {code.value for code in Code}
    for name, node in book.people.index.items():
        moved = sum(
            Decimal(payment.amount) * ((payment.receiver == name) - (payment.sender == name)) for payment in paid
        )
        assert book.position(node) == int(moved * 10**8)
    assert all(owed > 0 for _, _, owed in book.debt_rows()), "a debt of zero is absent"
    before = run.run.state()
    assert run.run.apply(Pay("a", "stranger", "UAH", "1")).refusal is not None
    assert run.run.state() == before


@pytest.mark.parametrize("positions", campaign_after(1, [5_000_000, 50_000_000]))
def test_planning_ends_where_no_participant_can_pay(positions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = headless(network(("a", "b", 1)), intensity=100, actions_per_tick_max="1000000")
    run.do(Pay("b", "a", "UAH", "1"))
    planner, count = run.run.network.planner, 0
    assert isinstance(planner, Planner)

    for _ in planner._hopeful(planner._accepting((), 100), positions, _Demand(0)):
        count += 1

    assert count == 0


@pytest.mark.req("SIM-PROF-4")
def test_presets_fill_missing_profiles_and_can_be_switched_off() -> None:
    plain = network(("b", "a", 100))
    known = network(("b", "a", 100))
    known["participants"][0]["behaviorProfileId"] = "household"  # type: ignore[index]

    def plan(scenario: dict[str, Json], presets: str) -> str:
        run = headless(scenario, intensity=100, profile_presets=presets)
        run.step(3)
        assert run.run.counters.attempts_total
        return run.run.digests()["plan"]

    assert plan(known, "off") == plan(plain, "off") == plan(plain, "on")
    assert plan(known, "on") != plan(plain, "on")


@pytest.mark.req("SIM-PROF-13")
@pytest.mark.req("SIM-PROF-14")
def test_demand_is_bounded_by_the_headroom_of_both_ends() -> None:
    """a may owe b 100 and c 40; it owes b 30. b is owed 30 of at most 100. c owes a 5."""
    books = book(("b", "a", 100), ("c", "a", 40), ("a", "c", 20))
    lines = {(books.people.names[books.creditor[h]], books.people.names[books.debtor[h]]): h for h in range(3)}
    books.move(lines["b", "a"], 30 * 10**8)
    books.move(lines["a", "c"], 5 * 10**8)
    market = Market(books)
    market.refresh()

    assert market.most(0, 1, Fraction(0)) == 70 * 10**8, "the limit of 100 less the debt of 30"
    assert market.most(0, 2, Fraction(0)) == 40 * 10**8, "the line to c has capacity for 40"
    assert market.most(0, 2, Fraction(3, 20)) == 40 * 10**8, "c owes a, but no bonus lifts it above the limit"
    assert market.most(2, 0, Fraction(1, 10)) == 15 * 10**8, "a owes c nothing: no bonus"
    books.move(lines["c", "a"], 0)
    books.move(lines["b", "a"], 60 * 10**8)
    assert market.most(0, 2, Fraction(0)) == 10 * 10**8
    assert market.most(0, 2, Fraction(1, 2)) == 15 * 10**8, "c owes a: half as much again"


@pytest.mark.req("SIM-PROF-13")
def test_debts_to_other_creditors_count_as_headroom() -> None:
    """a may owe b 100, b may owe c 50 and owes it 20; between a and c there is no line."""
    books = book(("b", "a", 100), ("c", "b", 50))
    books.move(books.hop[1][2], 20 * 10**8)
    market = Market(books)
    market.refresh()

    assert market.most(0, 2, Fraction(0)) == 30 * 10**8


# ---- demand ----------------------------------------------------------------------------------------------------------

AMOUNTS: dict[str, Json] = {"UAH": {"min": 5, "max": 90, "p50": 20, "p90": 60}}
PAYING: dict[str, Json] = {"tx_rate": Decimal("0.5"), "amount_model": AMOUNTS}
TRIANGLE = (("b", "a"), ("c", "b"), ("a", "c"), ("d", "a"), ("a", "d"))


def town(limit: Json, **given: Json) -> dict[str, Json]:
    """Four participants with one profile, over lines of one limit."""
    scenario: Any = network(*((*ends, limit) for ends in TRIANGLE))
    for participant in scenario["participants"]:
        participant["behaviorProfileId"] = "payer"
    return {**scenario, "behaviorProfiles": [{"id": "payer", "props": {**PAYING, **given}}]}


def demand_of(scenario: dict[str, Json], ticks: int = 30, **settings: str) -> tuple[Headless, dict[str, Any]]:
    options = {"amount_cap": "500", **settings}
    run = headless(scenario, seed=3, intensity=100, **options)
    run.step(ticks)
    return run, run.result().totals["UAH"]


@pytest.mark.req("SIM-PROF-17")
def test_demand_does_not_depend_on_limits_debts_or_clearing() -> None:
    rows: tuple[tuple[Json, dict[str, str]], ...] = (
        (1000, {}),
        (100, {}),
        ("0.01", {}),
        (100, {"clearing_every_n_ticks": "2"}),
        (100, {"routing_max_hops": "1"}),
    )
    demands = [demand_of(town(limit), 30, **settings)[1] for limit, settings in rows]

    assert {totals["wanted"] for totals in demands} == {demands[0]["wanted"]}
    assert Fraction(demands[0]["wanted"]) > 0


def test_the_demand_of_a_capped_run_equals_the_plan_of_a_fixed_one() -> None:
    capped, demands = demand_of(town(30))
    fixed, plain = demand_of(town(30, demand="fixed"))

    assert demands["wanted"] == plain["wanted"]
    assert fixed.run.counters.attempts_total == 30 * 20, "all demand is tried"
    assert capped.run.digests()["plan"] != fixed.run.digests()["plan"]


def test_tight_limits_show_in_the_served_share_even_without_refusals() -> None:
    """Capped demand never exceeds the headroom: nothing is refused, and little is paid."""
    demands = {}
    for demand in ("capped", "fixed"):
        scenario = network(("b", "a", 30), behaviorProfiles=[{"id": "payer", "props": {**PAYING, "demand": demand}}])
        scenario["participants"][0]["behaviorProfileId"] = "payer"  # type: ignore[index]
        demands[demand] = demand_of(scenario, 40, actions_per_tick_max="1")

    (capped, asked), (fixed, plain) = demands.values()
    assert capped.run.counters.rejected_total == 0
    assert fixed.run.counters.rejected_total > 30
    assert asked["wanted"] == plain["wanted"]
    assert all(0 < Fraction(totals["served_share"]) < 5 for totals in (asked, plain))
    assert Fraction(asked["served"]) <= Fraction(asked["volume"]) <= 30


def test_fixed_demand_is_equal_over_full_lines() -> None:
    scenario = network(("b", "a", 10), behaviorProfiles=[{"id": "payer", "props": {**PAYING, "demand": "fixed"}}])
    scenario["participants"][0]["behaviorProfileId"] = "payer"  # type: ignore[index]
    plans = []
    for paid in ("0.01", "10"):
        run = headless(scenario, intensity=100, amount_cap="500")
        run.do(Pay("a", "b", "UAH", paid))
        plans.append(run.run.network.planner.plan(1, 0, 20))

    assert [(payment.receiver, payment.cents) for payment in plans[0]] == [
        (payment.receiver, payment.cents) for payment in plans[1]
    ]
    assert max(payment.cents for payment in plans[0]) > 1000, "more than the line allows"
    assert all(payment.wanted == payment.cents for payment in plans[0])


@pytest.mark.req("SIM-PROF-15")
@pytest.mark.req("SIM-PROF-16")
def test_fixed_demand_respects_the_cap_the_largest_amount_and_the_least() -> None:
    crowd = people(None, None)
    for model, cap in (({"max": 7}, None), ({"max": 900}, 7 * 10**8), ({}, 7 * 10**8)):
        row = [Trustline("UAH", "p1", "p0", 10**8)]
        flow = headless(network(("a", "b", 1))).run.scenario.flow
        given: dict[str, Json] = {"demand": "fixed", "amount_model": {"UAH": {"min": 2, "p50": 3, "p90": 200, **model}}}
        plans = Planner(crowd, [Market(Book("UAH", crowd, row))], {"p": Profile("p", given)}, flow, False, cap)

        cents = [payment.cents for payment in plans.plan(1, 0, 20)]

        assert len(cents) == 20
        assert 200 <= min(cents) < max(cents) == 700


def test_without_a_cap_limits_bound_demand_without_percentiles() -> None:
    crowd = people(None, None)
    bound = planner(crowd, [(1, 0)], demand="fixed")
    free = planner(crowd, [(1, 0)], demand="fixed", amount_model={"UAH": {"p50": 90_000, "p90": 100_000}})
    full = 10**12 // 10**6

    bound.markets[0].book.move(0, 10**12)

    assert max(payment.cents for payment in bound.plan(1, 0, 20)) <= full, "the limit, whatever of it is used"
    assert min(payment.cents for payment in free.plan(1, 0, 20)) > full


def test_a_payment_in_a_free_place_serves_no_demand() -> None:
    """a has reached its limit; b pays in its place, beyond the demand."""
    scenario = network(("c", "a", 10), ("c", "b", 10_000))
    run = headless(scenario, intensity=100, amount_cap="5")
    run.do(Pay("a", "c", "UAH", "10"))

    plan = run.run.network.planner.plan_with_demand(1, 0, 20)

    assert len(plan.payments) == 20
    assert {payment.sender for payment in plan.payments} == {1}
    beyond = [payment for payment in plan.payments if payment.wanted == 0]
    assert beyond
    assert beyond == plan.payments[-len(beyond) :]
    run.step(1)
    totals: Any = run.result().totals["UAH"]
    seen = run.run.network.planner.plan_with_demand(1, 0, 20)
    assert run.run.counters.committed_total == 20 + 1
    assert Fraction(totals["served"]) * 100 == sum(min(payment.wanted, payment.cents) for payment in seen.payments)
    assert Fraction(totals["served"]) < Fraction(totals["volume"])


@pytest.mark.req("SIM-DET-9")
def test_a_smaller_budget_plans_a_prefix_of_the_same_demand() -> None:
    run = headless(town(30), intensity=100, amount_cap="500")
    whole = run.run.network.planner.plan_with_demand(1, 0, 20)
    part = run.run.network.planner.plan_with_demand(1, 0, 7)

    assert [payment[2:] for payment in part.payments] == [payment[2:] for payment in whole.payments[:7]]
    assert 0 < part.wanted["UAH"] < whole.wanted["UAH"]
