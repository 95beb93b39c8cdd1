"""Equal inputs give equal runs: order in the file, hash seeds, pauses, checkpoints and forks do not matter."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal, localcontext
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.credit.authoring.villages import village
from pendula.credit.commands import (
    Clear,
    Configure,
    Freeze,
    Pause,
    Pay,
    Restart,
    Resume,
    SetIntensity,
    Tick,
)
from pendula.credit.engine import Run
from pendula.credit.events import TxFailed, TxUpdated
from pendula.credit.runs.headless import Headless, chosen_seed, plan_run, simulate
from pendula.credit.settings import Settings, change_settings
from pendula.documents import Document, from_value, read_bytes
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.errors import InputRefused
from tests.credit.conftest import headless, network
from tests.credit.mutations import as_text
from tests.credit.networks import case

Public = Callable[[str], Document]
CAP = {"amount_cap": "500"}
CODE = "UNIT"
FIXTURES = ("minimal", "clearing-demo-10", "greenfield-village-100-realistic-v2", "trust-drift-decay-minimal")


def small_village(seed: int = 3) -> dict[str, Any]:
    return dict(village(30, seed))


def run_of(scenario: dict[str, Any], **settings: str) -> Headless:
    return Headless(plan_run(from_value(scenario), seed=7, settings=change_settings(Settings(), CAP | settings)))


def digests_of(scenario: dict[str, Any], ticks: int = 30, **settings: str) -> dict[str, str]:
    run = run_of(scenario, **settings)
    run.step(ticks)
    return run.run.digests()


@pytest.mark.req("SIM-DET-1")
@pytest.mark.req("SIM-DET-2")
@pytest.mark.req("SIM-TEST-6")
def test_two_runs_of_one_seed_emit_equal_events() -> None:
    def events() -> list[bytes]:
        run = run_of(small_village())
        emitted: list[bytes] = []
        run.step(30, lambda batch: emitted.extend(map(encode, batch)))
        return emitted

    first = events()

    assert len(first) > 100
    assert first == events()


@pytest.mark.req("SIM-DET-8")
@pytest.mark.req("SIM-TEST-20")
@pytest.mark.parametrize("shuffle", range(3))
def test_order_in_the_file_does_not_matter(shuffle: int) -> None:
    expected = digests_of(small_village())
    scenario = small_village()
    for name in ("participants", "trustlines", "groups", "behaviorProfiles"):
        rows = list(scenario[name])
        Random(shuffle).shuffle(rows)
        scenario[name] = rows
    for profile in scenario["behaviorProfiles"]:
        weights = profile["props"].get("recipient_group_weights")
        if weights:
            profile["props"]["recipient_group_weights"] = dict(reversed(weights.items()))

    assert digests_of(scenario) == expected


ELSEWHERE = """
import json
from pendula.credit import Settings, change_settings, simulate
from pendula.credit.authoring.villages import village
from pendula.documents import from_value
values = {"amount_cap": "500", "clearing_policy": "adaptive", "adaptive_window_ticks": "5"}
settings = change_settings(Settings(), values)
print(json.dumps(simulate(from_value(village(30, 3)), seed=7, ticks=30, settings=settings).digests))
"""


@pytest.mark.req("SIM-DET-8")
@pytest.mark.req("SIM-TEST-20")
@pytest.mark.parametrize("seed", ["1", "4242"])
def test_hash_seeds_do_not_matter(seed: str) -> None:
    expected = digests_of(small_village(), clearing_policy="adaptive", adaptive_window_ticks="5")

    environment = {**os.environ, "PYTHONHASHSEED": seed}
    process = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], env=environment, capture_output=True, check=True, timeout=300
    )

    assert json.loads(process.stdout) == expected


@pytest.mark.req("SIM-DET-9")
@pytest.mark.req("SIM-TEST-8")
@pytest.mark.parametrize("name", FIXTURES)
def test_a_smaller_intensity_plans_a_prefix(name: str, public: Public) -> None:
    plans = Headless(plan_run(public(name), settings=change_settings(Settings(), CAP))).run.network.planner
    budgets = [20 * percent // 100 for percent in (1, 5, 30, 50, 80)]
    seen = filled = 0

    for tick in range(100):
        whole = plans.plan(42, tick, 20)
        seen += len(whole)
        for budget in budgets:
            prefix = plans.plan(42, tick, budget)
            assert prefix == whole[: len(prefix)]
            assert len(prefix) <= budget
            filled += len(prefix) == budget > 0

    assert seen > 0
    assert filled > 0, "prefixes of some length were compared"


@pytest.mark.req("SIM-DET-10")
@pytest.mark.req("SIM-DET-7")
def test_an_intensity_change_in_one_tick_keeps_later_plans() -> None:
    """Limits far above the payments: the ledger does not influence the plan."""
    scenario = network(("a", "b", 10**9), ("b", "c", 10**9), ("c", "a", 10**9))

    def payments_after(percent: int) -> list[tuple[int | None, str, str, str]]:
        run = headless(scenario, seed=9, intensity=100)
        run.step(3)
        run.do(SetIntensity(percent))
        run.step(1)
        run.do(SetIntensity(100))
        events = run.do(Tick()).events
        return [
            (event.seq, event.sender, event.receiver, event.amount)
            for event in events
            if isinstance(event, TxUpdated | TxFailed)
        ]

    assert len(payments_after(100)) == 20
    assert payments_after(100) == payments_after(35) == payments_after(0)


@pytest.mark.req("SIM-TIME-7")
@pytest.mark.req("SIM-RUN-6")
def test_a_pause_leaves_no_trace() -> None:
    expected = run_of(small_village())
    expected.step(20)
    paused = run_of(small_village())
    paused.step(10)
    paused.do(Pause())
    assert paused.run.apply(Tick()).refusal is not None
    assert (paused.run.tick, paused.run.sim_time_ms) == (10, 10_000)
    paused.do(Resume())

    paused.step(10)

    assert paused.run.digests() == expected.run.digests()


@pytest.mark.req("SIM-STO-8")
@pytest.mark.parametrize("policy", ["static", "adaptive"])
def test_a_restored_run_ends_with_equal_digests(policy: str) -> None:
    settings = {"clearing_policy": policy, "clearing_every_n_ticks": "4", "adaptive_window_ticks": "5"}
    whole = run_of(small_village(), **settings)
    whole.step(40)
    for at in (0, 1, 13, 39):
        run = run_of(small_village(), **settings)
        run.step(at)

        restored = Run.from_state(run.plan.json, run.run.state())
        assert restored.state() == run.run.state()
        restored.apply(Tick(40 - at)) if at < 40 else None

        assert restored.digests() == whole.run.digests(), at
        assert restored.state() == whole.run.state(), at


def eventful_state() -> tuple[Json, dict[str, Any]]:
    """A configuration, and a state of its run that differs from a new one in every member."""
    newcomer: Json = {"op": "add_participant", "participant": {"id": "D", "type": "person"}}
    scenario = network(
        ("B", "A", 10),
        ("C", "B", 10),
        ("A", "C", 10),
        events=[{"type": "inject", "time": 0, "effects": [newcomer]}],
        settings={"trust_drift": {"enabled": True}},
    )
    run = headless(scenario, intensity=100, enable_inject="on", clearing_policy="adaptive", routing_max_hops="1")
    run.do(Tick(2))
    for sender, receiver in (("A", "B"), ("B", "C"), ("C", "A")):
        run.do(Pay(sender, receiver, "UAH", "1", f"{sender}:{receiver}"))
    run.do(Clear("UAH"))
    run.do(Freeze("C"))
    run.do(SetIntensity(40))
    run.do(Configure({"payment_retries": "1"}))
    state: Any = decode(run.run.state())
    error = {"code": "INTERNAL_ERROR", "details": {"kind": "test"}}
    state |= {"failed_ticks": 2, "all_rejected": 3, "state": "stopped", "stop_source": "user", "stop_reason": "enough"}
    state |= {"queue": [[1, 0, "A", "B", "UAH", "1.00", 100]]}
    state |= {"last_error": error, "demonstration": {"next_payment": 1, "next_clearing": 2, "done_at": 3, "shown": 4}}
    return run.plan.json, state


@pytest.mark.req("SIM-STO-8")
def test_every_part_of_a_state_is_restored() -> None:
    config, state = eventful_state()
    fresh: Any = decode(Run.create(config).state())
    assert [name for name in fresh if fresh[name] == state[name]] == [], "every member differs from a new run"

    restored: Any = decode(Run.from_state(config, encode(state)).state())

    assert restored == state


@pytest.mark.req("SIM-RUN-9")
def test_a_restart_repeats_the_same_run() -> None:
    run = run_of(small_village())
    run.step(20)
    first = run.run.digests()
    counters = encode(run.run.counters)

    run.do(Restart())
    assert (run.run.tick, run.run.counters.attempts_total) == (0, 0)
    run.step(20)

    assert run.run.digests() == first
    assert encode(run.run.counters) == counters


def test_a_fork_shares_the_past_and_not_the_future() -> None:
    run = run_of(small_village(), clearing_every_n_ticks="0")
    run.step(15)
    other = Run.from_state(run.plan.json, run.run.state())
    assert other.digests() == run.run.digests()

    other.apply(Configure({"clearing_every_n_ticks": "5"}))
    run.step(20)
    other.apply(Tick(20))

    assert other.tick == run.run.tick == 35
    assert other.digests()["ledger"] != run.run.digests()["ledger"]
    assert other.last_clearing
    assert not run.run.last_clearing


@pytest.mark.req("SIM-DET-3")
def test_the_seed_comes_from_the_caller_then_the_scenario_then_the_settings() -> None:
    with_seed = plan_run(from_value(network(("a", "b", 1), seed=5))).scenario
    without = plan_run(from_value(network(("a", "b", 1)))).scenario
    fixed = change_settings(Settings(), {"fixed_seed": "9"})

    assert chosen_seed(3, with_seed, fixed) == (3, "request")
    assert chosen_seed(None, with_seed, fixed) == (5, "scenario")
    assert chosen_seed(None, without, fixed) == (9, "SIMULATOR_FIXED_SEED")
    assert chosen_seed(None, without, Settings()) == (0, "default")
    diagnostics = simulate(from_value(network(("a", "b", 1))), ticks=1).diagnostics
    assert [event.code for event in diagnostics] == ["seed_not_given"]


@pytest.mark.req("SIM-DET-11")
@pytest.mark.req("SIM-CLR-10")
def test_ids_of_payments_and_clearings_depend_on_the_seed_and_not_on_the_run() -> None:
    def names(seed: int, run_id: str) -> list[str]:
        options: dict[str, Any] = {"settings": change_settings(Settings(), CAP | {"clearing_every_n_ticks": "2"})}
        run = Headless(plan_run(from_value(small_village()), seed=seed, run_id=run_id, **options))
        ids: list[str] = []
        run.step(
            12, lambda batch: ids.extend(str(getattr(event, "tx_id", getattr(event, "plan_id", ""))) for event in batch)
        )
        return [name for name in ids if name]

    assert any(name.startswith("plan_") for name in names(7, "one"))
    assert names(7, "one") == names(7, "two")
    assert names(7, "one") != names(8, "one")


@pytest.mark.req("SIM-DET-12")
def test_milliseconds_are_units_of_work() -> None:
    """Two edges of work are too few for a circle of three, on every machine."""
    scenario = network(("B", "A", 10), ("C", "B", 10), ("A", "C", 10))

    def cycles_cleared(units: str) -> int:
        run = headless(scenario, clearing_time_budget_ms="1", work_units_per_ms=units, routing_max_hops="1")
        for sender, receiver in (("A", "B"), ("B", "C"), ("C", "A")):
            run.do(Pay(sender, receiver, "UAH", "1"))
        answer: Any = run.do(Clear("UAH")).answer
        return int(answer["cleared_cycles"])

    assert cycles_cleared("2") == 0
    assert cycles_cleared("1000") == 1


@pytest.mark.req("SIM-RUN-14")
def test_a_headless_run_is_named_after_its_scenario_and_seed() -> None:
    first, second = (plan_run(from_value(network(("a", "b", 1))), seed=seed).config.run_id for seed in (1, 2))

    assert first.startswith("run_")
    assert len(first) == 12
    assert first != second


def test_an_invalid_state_is_rejected() -> None:
    run = run_of(small_village())
    run.step(5)
    config, good = run.plan.json, run.run.state()

    def spoiled(change: Callable[[Any], None]) -> bytes:
        value: Json = decode(good)
        change(value)
        return encode(value)

    def owe_too_much(state: Any) -> None:
        line = state["lines"][CODE][0]
        line[4] = line[2] + 1

    changes: list[Callable[[Any], None]] = [
        lambda state: state.update(tick=-1),
        lambda state: state.update(state="asleep"),
        lambda state: state["lines"].pop(CODE),
        lambda state: state["lines"][CODE].append(state["lines"][CODE][0]),
        lambda state: state["lines"][CODE][0].__setitem__(2, -5),
        owe_too_much,
        lambda state: state["plan_digest"].update(rest="zz"),
        lambda state: state["settings"].update(routing_max_hops=0),
        lambda state: state.update(unknown=1),
    ]
    for change in changes:
        with pytest.raises(InputRefused):
            Run.from_state(config, spoiled(change))
    assert Run.from_state(config, good).state() == good


@given(st.integers(0, 10**6))
def test_a_journaled_scenario_reads_back_equal(seed: int) -> None:
    """Canonical numbers are shorter than in the file, 3 for 3.0; both must read back equal."""
    scenario = case(seed).scenario
    plan = plan_run(read_bytes(as_text(scenario)), seed=1)

    assert Run.create(plan.json).scenario == plan.scenario


@pytest.mark.req("SIM-DET-14")
def test_the_decimal_context_of_the_process_does_not_matter() -> None:
    drift: Json = {"trust_drift": {"enabled": True, "growth_rate": Decimal("0.0567"), "decay_rate": Decimal("0.0234")}}
    scenario = network(("B", "A", 5), ("C", "B", 5), ("A", "C", 5), settings=drift)

    def digests() -> dict[str, str]:
        run = headless(scenario, intensity=100, clearing_every_n_ticks="2")
        run.step(20)
        return run.run.digests()

    expected = digests()
    with localcontext(prec=2):
        assert digests() == expected
