"""The adaptive policy: its observations, background clearing, and the verdict of the protocol."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from pendula.credit.authoring.villages import village
from pendula.credit.commands import OpenLine, Pay, Tick
from pendula.credit.engine import Run
from pendula.credit.events import ClearingDecision, Ticked
from pendula.credit.model import Code
from pendula.credit.runs.forking import fork
from pendula.credit.settings import Settings, change_settings
from pendula.credit.state.clearing_policy import AdaptivePolicy
from pendula.credit.studies.comparison import Comparison, compare, matching_cadence
from pendula.credit.views import worst
from pendula.documents import Document, from_value
from tests.credit.conftest import headless, network, saved
from tests.credit.studies.test_comparison import figures

CALM = {"clearing_policy": "adaptive", "adaptive_window_ticks": "3", "clearing_every_n_ticks": "4"}


def reasons(policy: AdaptivePolicy, ticks: range, refused: int) -> list[str]:
    """The reasons of the policy, tick by tick; each call clears something."""
    decided = []
    for tick in ticks:
        policy.observe(10, refused)
        decision = policy.decide(tick)
        decided.append(decision.reason.value)
        if decision.run:
            policy.called(tick, 1, 1)
    return decided


@pytest.mark.req("SIM-ADP-21")
def test_a_calm_network_is_cleared_in_the_background_at_the_static_cadence() -> None:
    options = {**CALM, "adaptive_min_interval_ticks": "1", "adaptive_max_depth_max": "4", "clearing_max_depth": "5"}
    policy = AdaptivePolicy(change_settings(Settings(), options))
    decided = reasons(policy, range(8), refused=0)
    policy.observe(10, 0)

    assert decided == [
        *("WARMUP_FALLBACK_SKIP", "WARMUP_FALLBACK_SKIP", "SKIP_NOT_ACTIVE", "SKIP_NOT_ACTIVE"),
        *("BACKGROUND_RUN", "SKIP_NOT_ACTIVE", "SKIP_NOT_ACTIVE", "SKIP_NOT_ACTIVE"),
    ]
    decision = policy.decide(8)
    assert (decision.run, decision.max_depth, decision.time_budget_ms) == (True, 5, 250)


@pytest.mark.req("SIM-ADP-21")
def test_a_cadence_of_zero_switches_background_clearing_off() -> None:
    policy = AdaptivePolicy(change_settings(Settings(), {**CALM, "clearing_every_n_ticks": "0"}))

    assert set(reasons(policy, range(2, 40), refused=0)[2:]) == {"SKIP_NOT_ACTIVE"}


@pytest.mark.req("SIM-ADP-6")
@pytest.mark.req("SIM-ADP-21")
def test_background_clearing_respects_the_cooldown() -> None:
    policy = AdaptivePolicy(change_settings(Settings(), {**CALM, "adaptive_min_interval_ticks": "5"}))

    decided = reasons(policy, range(13), refused=0)

    assert [decided[tick] for tick in (4, 8, 12)] == ["BACKGROUND_RUN", "SKIP_MIN_INTERVAL", "BACKGROUND_RUN"]


@pytest.mark.req("SIM-ADP-22")
def test_refusals_that_clearing_cannot_cure_are_counted_apart_and_not_observed() -> None:
    scenario = network(("b", "a", 1000), ("c", "b", 1000))
    lines: Any = scenario["trustlines"]
    lines[0]["policy"] = {"can_be_intermediate": False}
    run = headless(scenario, intensity=100)
    events = [event for _ in range(5) for event in run.do(Tick()).events if isinstance(event, Ticked)]

    (memory,) = saved(run.run)["policies"].values()
    apart = [event.no_route_at_all for event in events]
    assert sum(count for count in apart if isinstance(count, int)) > 10, "a cannot pay c, and tries"
    assert [tuple(entry) for entry in memory["window"]] == [(event.committed, 0) for event in events]


def test_a_fork_to_the_adaptive_policy_starts_with_the_observations_of_its_original() -> None:
    options = {"amount_cap": "none", "clearing_every_n_ticks": "5"}
    run = headless(village(20, 3), seed=1, intensity=60, **options)
    ticks = [event for _ in range(40) for event in run.do(Tick()).events if isinstance(event, Ticked)]

    other = fork(run.run, change_settings(run.run.settings, {"clearing_policy": "adaptive"}))

    (memory,) = saved(other)["policies"].values()
    assert [tried for tried, _ in memory["window"]] == [event.planned - event.no_route_at_all for event in ticks[-30:]]
    (first,) = [event for event in other.apply(Tick()).events if isinstance(event, ClearingDecision)]
    assert not first.reason.startswith("WARMUP")


def test_a_fork_keeps_the_tick_of_the_last_static_clearing() -> None:
    run = headless(village(20, 3), seed=1, intensity=60, amount_cap="none", clearing_every_n_ticks="39")
    run.step(40)

    (memory,) = saved(fork(run.run, change_settings(run.run.settings, {"clearing_policy": "adaptive"})))[
        "policies"
    ].values()

    assert memory["last_call"] == 39


# ---- bottlenecks -----------------------------------------------------------------------------------------------------


@pytest.mark.req("SIM-MET-5")
def test_a_line_that_does_not_mediate_is_no_missing_capacity() -> None:
    scenario = network(("b", "a", 900), ("c", "b", 900))
    scenario["trustlines"][0]["policy"] = {"can_be_intermediate": False}  # type: ignore[index]
    run = headless(scenario)
    run.do(Pay("a", "c", "UAH", "5"))
    run.do(Pay("a", "b", "UAH", "5"))

    (bottleneck,) = worst(run.run.network.ledgers["UAH"], 5)

    assert (bottleneck.target.source, bottleneck.target.target) == ("b", "a")
    assert bottleneck.label == "a → b: 1 of 2 attempts failed, 1 because the line does not mediate"
    assert bottleneck.suggested_action == "Allow payments through b over this line; a higher limit does not help"
    assert run.result().refusals.reasons == {"no_route_at_all": 1}
    (count,) = [row for row in saved(run.run)["hops"]["UAH"] if row[3]]
    assert count[-1] == 1
    assert saved(Run.from_state(run.plan.json, run.run.state())) == saved(run.run)


@pytest.mark.req("SIM-PAY-12")
def test_a_refusal_by_a_closed_line_and_debts_has_its_own_reason() -> None:
    """a could pay c over d without debts; with them only the closed line of b is left."""
    scenario = network(("b", "a", 900), ("c", "b", 900), ("d", "a", 9), ("c", "d", 9))
    scenario["trustlines"][0]["policy"] = {"can_be_intermediate": False}  # type: ignore[index]
    run = headless(scenario)
    run.do(Pay("a", "c", "UAH", "9"))
    run.do(Pay("a", "c", "UAH", "5"))

    assert run.result().refusals.reasons == {"forwarding_not_allowed": 1}


@pytest.mark.req("SIM-MET-5")
def test_payments_count_at_their_hops_and_refusals_at_the_bottleneck() -> None:
    run = headless(network(("b", "a", 10), ("c", "b", 4)))
    for amount in ("4", "1", "1"):
        run.do(Pay("a", "c", "UAH", amount))
    ledger = run.run.network.ledgers["UAH"]

    (worst,) = ledger.hops.bottlenecks()

    assert worst.hop == ledger.book.line("c", "b")
    counts = worst.counts
    assert (counts.attempts, counts.rejected, counts.errors, counts.timeouts) == (3, 2, 0, 0)
    assert (counts.score, counts.reason) == (Fraction(2, 3), "FREQUENT_ABORTS")
    wide = ledger.book.line("b", "a")
    assert wide is not None
    assert (ledger.hops.of[wide].attempts, ledger.hops.of[wide].score) == (1, Fraction(0))


@pytest.mark.req("SIM-MET-5")
def test_timeouts_have_the_weight_of_the_worked_example() -> None:
    run = headless(network(("b", "a", 10)), routing_timeout_ms="1", work_units_per_ms="1")
    ledger = run.run.network.ledgers["UAH"]
    (h,) = range(len(ledger.book))
    for _ in range(7):
        ledger.hops.made([h])
    for _ in range(3):
        ledger.hops.failed([h], Code.PAYMENT_TIMEOUT)

    (worst,) = ledger.hops.bottlenecks()

    assert (worst.counts.score, worst.counts.reason) == (Fraction(3, 10), "TOO_MANY_TIMEOUTS")


def test_counts_of_hops_survive_a_snapshot_and_new_lines() -> None:
    run = headless(network(("b", "a", 10), ("c", "b", 4)))
    run.do(Pay("a", "c", "UAH", "5"))
    run.do(OpenLine("a", "c", "UAH", "3"))
    restored = Run.from_state(run.plan.json, run.run.state())

    assert restored.state() == run.run.state()
    (worst,) = restored.network.ledgers["UAH"].hops.bottlenecks()
    assert worst.hop == restored.network.ledgers["UAH"].book.line("c", "b")


# ---- the verdict -----------------------------------------------------------------------------------------------------


def compared(document: Document, ticks: int) -> Comparison:
    static = change_settings(Settings(), {"amount_cap": "500"})
    return compare(document, static, change_settings(static, {"clearing_policy": "adaptive"}), range(1, 6), ticks)


@pytest.mark.req("SIM-ADP-19")
@pytest.mark.req("SIM-ADP-21")
@pytest.mark.req("SIM-ADP-22")
@pytest.mark.req("SIM-TEST-19")
@pytest.mark.long
@pytest.mark.parametrize("ticks", [120, 300])
@pytest.mark.parametrize("seed", [1, 7, 42])
def test_the_adaptive_policy_is_sound_and_no_worse_than_static_on_generated_villages(seed: int, ticks: int) -> None:
    verdict = compared(from_value(village(100, seed)), ticks).verdict

    assert (verdict.sound, verdict.no_worse) == (True, True), verdict
    assert verdict.worth_its_calls is not None


@pytest.mark.req("SIM-ADP-19")
@pytest.mark.req("SIM-TEST-19")
@pytest.mark.long
@pytest.mark.parametrize("ticks", [120, 300])
@pytest.mark.parametrize("name", ["greenfield-village-100-realistic-v2", "riverside-town-50-realistic-v2"])
def test_the_adaptive_policy_is_sound_and_no_worse_than_static_on_public_villages(
    public: Any, name: str, ticks: int
) -> None:
    verdict = compared(public(name), ticks).verdict

    assert (verdict.sound, verdict.no_worse) == (True, True), verdict


@pytest.mark.req("SIM-ADP-19")
@pytest.mark.parametrize(("calls", "every"), [(3, 25), (10, 9), (0, 120), (90, 1)])
def test_the_matching_cadence_has_the_nearest_number_of_calls(calls: int, every: int) -> None:
    runs = [msgspec.structs.replace(figures(seed), calls=calls) for seed in range(5)]
    adaptive = change_settings(Settings(), {"clearing_policy": "adaptive"})

    settings = matching_cadence(adaptive, runs, 1, range(30, 120))

    assert settings is not None
    called = [tick for tick in range(30, 120) if tick % settings.clearing_every_n_ticks == 0]
    assert (len(called), settings.clearing_policy) == (calls, "static")
    assert settings.clearing_every_n_ticks == every


def test_a_static_side_has_no_matching_cadence() -> None:
    assert matching_cadence(Settings(), [figures()], 1, range(30, 120)) is None
