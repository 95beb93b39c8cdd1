"""The golden values of the requirements: plans, digests, drift, and the worked examples of each rule."""

from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256

import pytest

from pendula.credit.commands import Clear, Pay, SetIntensity, Tick
from pendula.credit.events import TxFailed
from pendula.credit.ledger.book import Book, People
from pendula.credit.model import Drift, Multiplier, Participant, ParticipantType, Trustline, idempotency_key
from pendula.credit.money import cents_text, text
from pendula.credit.planning.planner import Market, Planned, Planner, budget, ramp
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.credit.state.clearing_policy import AdaptivePolicy, hard_timeout_ms, is_guarded
from pendula.credit.state.network import Trust
from pendula.documents import Document
from pendula.kernel.rng import action_seed, tick_generator, tick_seed
from tests.credit.conftest import headless, network

VILLAGE = "greenfield-village-100-realistic-v2"
Public = Callable[[str], Document]


def planner(document: Document, cap: int) -> Planner:
    run = Headless(plan_run(document, settings=change_settings(Settings(), {"amount_cap": str(cap)}))).run
    return run.network.planner


def rows(plan: list[Planned]) -> list[tuple[str, str, str]]:
    names = plan[0].book.people.names if plan else []
    return [(names[payment.sender], names[payment.receiver], cents_text(payment.cents)) for payment in plan]


@pytest.mark.req("SIM-PROF-16")
def test_the_plan_of_the_smallest_scenario_is_golden(public: Public) -> None:
    plan = rows(planner(public("minimal"), 3).plan(42, 0, 20))

    assert len(plan) == 20
    assert plan[:4] == [("p2", "p1", amount) for amount in ("2.13", "2.59", "0.23", "0.76")]


@pytest.mark.req("SIM-PROF-12")
def test_the_plan_of_the_clearing_demonstration_is_golden(public: Public) -> None:
    plan = rows(planner(public("clearing-demo-10"), 3).plan(42, 0, 5))

    assert plan == [
        ("bob", "farmer", "1.09"),
        ("shop", "alice", "1.94"),
        ("shop", "bakery", "1.84"),
        ("bob", "dmytro", "1.18"),
        ("shop", "bakery", "0.72"),
    ]


@pytest.mark.req("SIM-PROF-8")
@pytest.mark.req("SIM-DET-13")
def test_eighty_plans_of_the_village_are_golden(public: Public) -> None:
    plans, digest, count = planner(public(VILLAGE), 500), sha256(), 0
    for tick in range(80):
        plan = plans.plan(42, tick, budget(20, 0, 70, ramp(50, Fraction(1, 10), tick)))
        count += len(plan)
        for payment, (sender, receiver, amount) in zip(plan, rows(plan), strict=True):
            digest.update(f"{tick}|{payment.seq}|{sender}|{receiver}|UAH|{amount}\n".encode())

    assert count == 770
    assert digest.hexdigest() == "e5d258caa541bbaa8dbdfe5691218c87b7f00dfb44b87dfc864e42a1f6dc9cd9"


@pytest.mark.req("SIM-PROF-7")
def test_the_first_plans_of_the_village_are_golden(public: Public) -> None:
    plans = planner(public(VILLAGE), 500)

    assert rows(plans.plan(42, 0, 1)) == [("PID_U0094_185eaefe", "PID_U0044_3188ea6c", "96.25")]
    later = rows(plans.plan(42, 60, 14))
    assert len(later) == 14
    assert later[:2] == [
        ("PID_U0043_935170bb", "PID_U0059_76c90bcb", "402.52"),
        ("PID_U0093_7a27354d", "PID_U0040_b8ab03a8", "389.81"),
    ]


@pytest.mark.req("SIM-GUARD-5")
def test_the_usual_cap_silences_the_village_with_a_warning(public: Public) -> None:
    run = Headless(plan_run(public(VILLAGE), seed=42, intensity=70))

    run.step(60)

    assert run.run.counters.attempts_total == 0
    silenced = [
        diagnostic.facts["profile"] for diagnostic in run.result().diagnostics if diagnostic.code == "profile_silenced"
    ]
    assert len(silenced) == len(set(map(str, silenced))) == 10


@pytest.mark.req("SIM-PROF-15")
def test_a_smallest_amount_above_the_cap_plans_nothing(public: Public) -> None:
    assert planner(public("trust-drift-decay-minimal"), 3).plan(1, 0, 20) == []
    assert rows(planner(public("trust-drift-decay-minimal"), 500).plan(1, 0, 20)) == [("bob", "alice", "9.00")] * 20


@pytest.mark.req("SIM-TEST-13")
@pytest.mark.req("SIM-CLR-22")
def test_trust_decays_to_the_debt_and_no_further(public: Public) -> None:
    run = Headless(
        plan_run(
            public("trust-drift-decay-minimal"), seed=1, settings=change_settings(Settings(), {"amount_cap": "500"})
        )
    )
    book = run.run.network.ledgers["UAH"].book
    limits = []

    first = run.do(Tick())
    limits.append(text(book.limit[0]))
    for _ in range(6):
        run.step(1)
        limits.append(text(book.limit[0]))

    assert limits == ["9.80", "9.60", "9.40", "9.21", "9.02", "9.00", "9.00"]
    codes = [event.error.code for event in first.events if isinstance(event, TxFailed)]
    assert codes == ["ROUTING_NO_CAPACITY"] * 19
    assert run.run.counters.committed_total == 1
    assert run.run.counters.attempts_total == 20, "later ticks plan nothing"


@pytest.mark.req("SIM-TEST-5")
def test_five_ticks_of_the_smallest_scenario_attempt_a_hundred_payments(public: Public) -> None:
    run = Headless(plan_run(public("minimal"), seed=42))

    run.step(5)

    assert run.run.counters.attempts_total == 100


@pytest.mark.req("SIM-DET-5")
@pytest.mark.parametrize(
    ("seed", "tick", "expected"), [(42, 0, 42000126), (42, 1, 42000127), (1, 0, 1000003), (4294967295, 7, 4293967300)]
)
def test_the_seed_of_a_tick_is_golden(seed: int, tick: int, expected: int) -> None:
    assert tick_seed(seed, tick) == expected


@pytest.mark.req("SIM-DET-4")
@pytest.mark.req("SIM-DET-6")
def test_the_generators_of_ticks_and_positions_are_golden() -> None:
    assert [tick_generator(42, tick).random() for tick in (0, 1, 2)] == [
        0.7175559251697405,
        0.5048639007963877,
        0.5815068561101447,
    ]
    assert [action_seed(tick_seed(42, 0), position) for position in range(3)] == [4061780090, 4061780091, 4061780092]


@pytest.mark.req("SIM-INT-1")
@pytest.mark.parametrize(("percent", "expected"), [(0, 0), (4, 0), (5, 1), (50, 10), (65, 13), (99, 19), (100, 20)])
def test_the_budget_follows_the_intensity(percent: int, expected: int) -> None:
    assert budget(20, 0, percent, Fraction(1)) == expected


@pytest.mark.req("SIM-INT-1")
def test_the_least_budget_applies_only_above_zero() -> None:
    assert budget(20, 1, 1, Fraction(1)) == 1
    assert budget(20, 1, 0, Fraction(1)) == 0


@pytest.mark.req("SIM-INT-4")
def test_warm_up_raises_the_budget_step_by_step() -> None:
    budgets = [budget(20, 0, 70, ramp(50, Fraction(1, 10), tick)) for tick in (0, 10, 25, 49, 50)]

    assert budgets == [1, 3, 7, 13, 14]
    assert ramp(10, Fraction(0), 0) == 0, "an explicit floor of 0 is honoured"


@pytest.mark.req("SIM-ACT-4")
def test_the_key_of_a_planned_payment_is_golden() -> None:
    assert idempotency_key("run_1", 5000, "p2", "p1", "UAH", 250_000_000, 0) == "sim:24592b4bb0915e4e4ef8e35ef131bff5"


@pytest.mark.req("SIM-CLR-12")
def test_the_hard_timeout_of_a_clearing_call_follows_its_budget() -> None:
    assert [hard_timeout_ms(budget_ms, 8) for budget_ms in (250, 1000, 5000)] == [2000, 4000, 8000]
    assert hard_timeout_ms(250, 0) == 100


@pytest.mark.req("SIM-CLR-21")
def test_trust_grows_to_twice_its_original_limit() -> None:
    people = People([Participant("a", ParticipantType.PERSON), Participant("b", ParticipantType.PERSON)])
    book = Book("UAH", people, [Trustline("UAH", "a", "b", 100 * 10**8)])
    trust, limits = Trust(book, Drift(enabled=True)), []

    for tick in range(16):
        trust.cleared({0: 1}, tick)
        limits.append(text(book.limit[0]))

    assert limits[:4] == ["105.00", "110.25", "115.76", "121.54"]
    assert limits[-3:] == ["197.91", "200.00", "200.00"]


@pytest.mark.req("SIM-SCN-10")
def test_several_stresses_multiply() -> None:
    person = Participant("h", ParticipantType.PERSON, group="households", profile="household")
    people = People([person, Participant("a", ParticipantType.PERSON)])
    market = Market(Book("UAH", people, [Trustline("UAH", "a", "h", 10**10)]))
    plans = Planner(people, [market], {}, headless(network(("a", "b", 1))).run.scenario.flow, True, None)

    both = (Multiplier("group:households", 1.5), Multiplier("all", 0.7))

    assert plans._rate(1, both, 100) == pytest.approx(0.0945)
    assert plans._rate(0, (Multiplier("all", 1.8),), 100) == 1.0


ADAPTIVE = {
    "clearing_policy": "adaptive",
    "adaptive_max_depth_min": "3",
    "adaptive_window_ticks": "3",
    "adaptive_min_interval_ticks": "2",
    "adaptive_backoff_max_interval_ticks": "8",
    "adaptive_warmup_fallback_cadence": "0",
}
TRACE = [
    (8, "WARMUP_DISABLED", None),
    (8, "WARMUP_DISABLED", None),
    (8, "RATE_HIGH_ENTER", (6, 250, 0)),
    (8, "SKIP_MIN_INTERVAL", None),
    (6, "RUN_ACTIVE", (6, 250, 0)),
    (4, "SKIP_MIN_INTERVAL", None),
    (3, "SKIP_BACKOFF", None),
    (3, "SKIP_BACKOFF", None),
    (3, "RUN_ACTIVE", (3, 50, 1_250_000_000)),
    (2, "RATE_LOW_EXIT", None),
    (2, "SKIP_NOT_ACTIVE", None),
]


@pytest.mark.req("SIM-ADP-20")
@pytest.mark.req("SIM-ADP-14")
@pytest.mark.req("SIM-ADP-15")
def test_the_adaptive_policy_follows_the_worked_trace() -> None:
    policy = AdaptivePolicy(change_settings(Settings(), ADAPTIVE))

    for tick, (refused, reason, call) in enumerate(TRACE):
        policy.observe(10, refused)
        decision = policy.decide(tick)
        assert decision.reason == reason, tick
        assert decision.run == (call is not None), tick
        if call is not None:
            assert (decision.max_depth, decision.time_budget_ms) == call[:2], tick
            policy.called(tick, call[2], 1)


@pytest.mark.req("SIM-ADP-8")
@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (Fraction(30, 100), (3, 50)),
        (Fraction(45, 100), (4, 150)),
        (Fraction(1, 2), (5, 183)),
        (Fraction(3, 4), (6, 250)),
    ],
)
def test_depth_and_budget_grow_with_the_pressure(rate: Fraction, expected: tuple[int, int]) -> None:
    shallow = change_settings(Settings(), {"adaptive_max_depth_min": "3"})

    assert AdaptivePolicy(shallow)._budgets(rate) == expected
    assert AdaptivePolicy(Settings())._budgets(rate) == (6, expected[1])


@pytest.mark.req("SIM-ADP-8")
def test_a_global_ceiling_is_hard() -> None:
    assert AdaptivePolicy(change_settings(Settings(), {"clearing_max_depth": "4"}))._budgets(Fraction(3, 4))[0] == 4
    assert AdaptivePolicy(change_settings(Settings(), {"clearing_max_depth": "2"}))._budgets(Fraction(3, 10))[0] == 2


@pytest.mark.req("SIM-ADP-7")
def test_backoff_doubles_up_to_its_ceiling_and_ends_with_a_volume() -> None:
    policy = AdaptivePolicy(Settings())
    waits = []
    for streak in range(1, 7):
        policy.called(0, 0, 1)
        waits.append(policy._waits(0)[1])
        assert policy.zero_streak == streak
    policy.called(0, 1, 1)

    assert waits == [5, 10, 20, 40, 60, 60]
    assert policy._waits(0) == (5, 0)


@pytest.mark.req("SIM-ADP-4")
def test_the_rate_is_taken_over_the_window() -> None:
    policy = AdaptivePolicy(Settings())
    assert policy.rate() == 0
    for _ in range(30):
        policy.observe(10, 0)
    for _ in range(15):
        policy.observe(10, 9)

    assert policy.rate() == Fraction(45, 100)


@pytest.mark.req("SIM-ADP-3")
def test_negative_signals_count_as_zero() -> None:
    policy = AdaptivePolicy(Settings())

    policy.observe(-3, -1)

    assert list(policy.window) == [(0, 0)]


@pytest.mark.req("SIM-ADP-11")
def test_the_guardrail_blocks_clearing_above_its_threshold() -> None:
    settings = change_settings(Settings(), {"adaptive_inflight_threshold": "2", "adaptive_queue_depth_threshold": "0"})

    assert not is_guarded(settings, 2, 1000)
    assert is_guarded(settings, 3, 0)


def circle() -> Headless:
    """A owes B 100, B owes C 80, C owes A 50; with one hop, payments do not use the circle."""
    run = headless(network(("B", "A", 100), ("C", "B", 80), ("A", "C", 50)), routing_max_hops="1")
    for sender, receiver, amount in (("A", "B", "100"), ("B", "C", "80"), ("C", "A", "50")):
        run.do(Pay(sender, receiver, "UAH", amount))
    return run


@pytest.mark.req("SIM-CLR-2")
@pytest.mark.req("SIM-CLR-8")
def test_a_circle_loses_its_smallest_debt_on_each_side() -> None:
    run = circle()
    book = run.run.network.ledgers["UAH"].book
    assert text(book.total) == "230.00"

    done = run.do(Clear("UAH"))

    assert {(debtor, creditor): text(owed) for debtor, creditor, owed in book.debt_rows()} == {
        ("A", "B"): "50.00",
        ("B", "C"): "30.00",
    }
    assert text(book.total) == "80.00"
    event = done.events[-1]
    assert (event.cleared_amount, event.debt_reduction) == ("50.00", "150.00")  # type: ignore[union-attr]


@pytest.mark.req("SIM-PAY-15")
def test_a_payment_pays_back_before_it_creates_a_debt() -> None:
    run = headless(network(("A", "B", 100), ("B", "A", 100)))
    run.do(Pay("B", "A", "UAH", "30"))

    run.do(Pay("A", "B", "UAH", "50"))

    book = run.run.network.ledgers["UAH"].book
    assert list(book.debt_rows()) == [("A", "B", 20 * 10**8)]


@pytest.mark.req("SIM-INT-5")
def test_intensity_changes_from_the_next_tick(public: Public) -> None:
    run = Headless(plan_run(public("minimal"), seed=42, intensity=0))
    run.step(1)
    assert run.run.counters.attempts_total == 0

    run.do(SetIntensity(50))
    run.step(1)

    assert run.run.counters.attempts_total == 10
