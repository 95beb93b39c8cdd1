"""The engine against the oracle: plans, routes, refusals, clearing, limits, books and digests, tick by tick."""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from msgspec import UNSET, UnsetType

from pendula.credit.commands import Config, Tick
from pendula.credit.engine import Run
from pendula.credit.events import (
    ClearingDecision,
    ClearingDone,
    EdgePatch,
    Event,
    Note,
    Ticked,
    TopologyChanged,
    TxFailed,
    TxUpdated,
)
from pendula.credit.settings import from_environment
from tests.credit.networks import Case, case, clearing_case, public_scenario
from tests.credit.oracle.clearing import Cleared, around
from tests.credit.oracle.drift import Change
from tests.credit.oracle.money import exact
from tests.credit.oracle.run import Call, OracleTick, run

MOST_EDGES = 30
# An equivalent is judged by the last tick alone, may run every second tick, and only one runs at a time.
ONE_CALL = {
    "WINDOW_TICKS": "1",
    "NO_CAPACITY_HIGH": "0.5",
    "NO_CAPACITY_LOW": "0.01",
    "MIN_INTERVAL_TICKS": "2",
    "MAX_EQ_PER_TICK": "1",
}
Seen = dict[str, Any]


def document(scenario: Mapping[str, Any]) -> Any:
    """A scenario as read from a file: numbers are integers or exact decimals."""
    return json.loads(json.dumps(scenario), parse_float=Decimal)


def engine_of(case: Case) -> Run:
    return Run(
        Config(
            scenario=document(case.scenario),
            seed=case.seed,
            run_id="run_beside",
            intensity_percent=case.intensity,
            settings=from_environment(case.settings),
        )
    )


def difference(case: Case) -> str | None:
    """The first difference between engine and oracle, with its tick; None if they agree."""
    engine = engine_of(case)
    judged = run(case.scenario, case.seed, case.ticks, case.intensity, case.settings)
    for tick in judged.ticks:
        outcome = engine.apply(Tick())
        if outcome.refusal is not None:
            return f"tick {tick.tick}: {outcome.refusal}"
        seen, expected = seen_in_engine(engine, outcome.events), seen_in_oracle(tick)
        for key in expected:
            if seen[key] != expected[key]:
                return f"tick {tick.tick}, {key}: {first_difference(seen[key], expected[key])}"
    counted = counters_of(engine)
    return None if counted == vars(judged.counters) else f"counters: {counted}, not {vars(judged.counters)}"


def first_difference(seen: Any, expected: Any) -> str:
    if isinstance(seen, list) and isinstance(expected, list):
        for place, (by_engine, by_oracle) in enumerate(zip(seen, expected, strict=False)):
            if by_engine != by_oracle:
                return f"[{place}] engine {by_engine}, oracle {by_oracle}"
        return f"engine has {len(seen)}, oracle {len(expected)}: {(seen + expected)[min(len(seen), len(expected)) :]}"
    if isinstance(seen, dict) and isinstance(expected, dict):
        names = sorted(name for name in {*seen, *expected} if seen.get(name) != expected.get(name))
        return "; ".join(f"{name}: engine {seen.get(name)}, oracle {expected.get(name)}" for name in names[:3])
    return f"engine {seen}, oracle {expected}"


def counters_of(engine: Run) -> dict[str, int]:
    status = engine.status()
    names = ("attempts", "committed", "rejected", "errors", "timeouts", "dropped")
    totals = {f"{name}_total": getattr(status, f"{name}_total") for name in names}
    return {**totals, "consec_all_rejected_ticks": status.consec_all_rejected_ticks}


def seen_in_engine(engine: Run, events: Iterable[Event]) -> Seen:
    seen: Seen = {"injected": [], "payments": [], "decisions": {}, "cleared": [], "growth": {}, "decay": {}}
    for event in events:
        match event:
            case TxUpdated():
                routes = [(route.path, exact(route.amount)) for route in event.routes]
                seen["payments"].append((planned_in(event), event.seq, *_ends(event), routes))
            case TxFailed():
                seen["payments"].append((planned_in(event), event.seq, *_ends(event), event.error.code))
            case ClearingDecision(should_run=True):
                budgets = event.max_depth, event.time_budget_ms
                seen["decisions"][event.equivalent] = (event.reason, *budgets)
            case ClearingDecision():
                seen["decisions"][event.equivalent] = event.reason
            case ClearingDone():
                amounts = exact(event.cleared_amount), exact(event.debt_reduction)
                edges = [(edge.target, edge.source) for edge in event.cycle_edges]  # the oracle lists debts
                seen["cleared"].append((event.equivalent, event.reason, event.cleared_cycles, *amounts, edges))
            case TopologyChanged(reason="trust_drift_growth"):
                seen["growth"] |= _limits(event.equivalent, event.payload.edge_patch)
            case TopologyChanged(reason="trust_drift_decay"):
                seen["decay"] |= _limits(event.equivalent, event.payload.edge_patch)
            case Note(scenario={"applied": applied, "skipped": skipped, "total": total, "event_index": index}):
                seen["injected"].append((index, applied, skipped, exact(total)))
            case Ticked():
                seen["waiting"] = event.waiting
                seen["digests"] = (event.digests["plan"], event.digests["ledger"])
                seen["demand"] = {
                    code: tuple(exact(values[name]) for name in ("wanted", "served", "volume"))
                    for code, values in event.metrics.items()
                }
            case _:
                pass
    return {**seen, **books_of(engine)}


def planned_in(event: TxUpdated | TxFailed) -> int:
    """The tick in which a payment was planned."""
    return event.tick_index if event.planned_tick is UNSET else event.planned_tick


def _ends(event: TxUpdated | TxFailed) -> tuple[str, str, str, str]:
    return event.sender, event.receiver, event.equivalent, event.amount


def _limits(equivalent: str, patch: tuple[EdgePatch, ...] | UnsetType) -> dict[tuple[str, str, str], Fraction]:
    edges = () if patch is UNSET else patch
    return {(equivalent, edge.source, edge.target): exact(edge.trust_limit) for edge in edges}


def books_of(engine: Run) -> Seen:
    """Debts and lines of the engine."""
    atom, books = Fraction(1, 10**8), [ledger.book for ledger in engine.network.ledgers.values()]
    return {
        "debts": {(book.code, *row[:2]): row[2] * atom for book in books for row in book.debt_rows()},
        "lines": {
            (line.equivalent, line.creditor, line.debtor): (line.limit * atom, line.status.value)
            for book in books
            for line in book.lines()
        },
    }


def seen_in_oracle(tick: OracleTick) -> Seen:
    payments = [
        (order.tick, *order.action, list(outcome.routes) if outcome.code is None else outcome.code)
        for order, outcome in zip(tick.tried, tick.outcomes, strict=True)
    ]
    return {
        "injected": tick.injected,
        "payments": payments,
        "demand": tick.demand,
        "waiting": tick.waiting,
        "decisions": {
            code: (decision.reason, decision.depth, decision.budget_ms) if decision.should_run else decision.reason
            for code, decision in tick.decisions.items()
        },
        "cleared": [_call(call) for call in tick.calls if call.cycles],
        "growth": _changes(tick.growth),
        "decay": _changes(tick.decay),
        "debts": tick.debts,
        "lines": {name: (line.limit, line.status) for name, line in tick.lines.items()},
        "digests": (tick.plan_digest, tick.ledger_digest),
    }


def _call(call: Call) -> tuple[Any, ...]:
    return (
        call.equivalent,
        call.reason,
        len(call.cycles),
        call.cleared_amount,
        call.debt_reduction,
        edges_of(call.cycles)[:MOST_EDGES],
    )


def edges_of(cycles: Iterable[Cleared]) -> list[tuple[str, str]]:
    """Debtor and creditor of every cleared debt, each once, in the order of the cycles."""
    return list(dict.fromkeys(edge for cleared in cycles for edge in around(cleared.cycle)))


def _changes(changes: list[Change]) -> dict[tuple[str, str, str], Fraction]:
    return {name: after for name, _, after in changes}


@pytest.mark.req("SIM-DET-1", "SIM-DET-13", "SIM-PAY-8", "SIM-PAY-10", "SIM-CLR-6", "SIM-PROF-8")
@pytest.mark.parametrize(
    "first",
    [
        0,
        pytest.param(20, marks=pytest.mark.campaign),
        *(pytest.param(first, marks=pytest.mark.long) for first in (40, 60, 80)),
    ],
)
def test_the_engine_agrees_on_random_networks_with_static_clearing(first: int) -> None:
    for seed in range(first, first + 20):
        assert difference(case(seed, adaptive=False)) is None, seed


@pytest.mark.req("SIM-ADP-1", "SIM-ADP-15")
@pytest.mark.parametrize(
    "first",
    [
        0,
        pytest.param(20, marks=pytest.mark.campaign),
        *(pytest.param(first, marks=pytest.mark.long) for first in (40, 60, 80)),
    ],
)
def test_the_engine_agrees_on_random_networks_with_adaptive_clearing(first: int) -> None:
    for seed in range(first, first + 20):
        assert difference(case(1000 + seed, adaptive=True)) is None, 1000 + seed


@pytest.mark.req("SIM-CLR-2", "SIM-CLR-5", "SIM-CLR-6", "SIM-CLR-7", "SIM-CLR-8")
@pytest.mark.parametrize("first", range(0, 120, 40))
def test_the_engine_clears_the_same_cycles_in_the_same_order(first: int) -> None:
    for seed in range(first, first + 40):
        assert difference(clearing_case(seed)) is None, seed


def small(lines: list[tuple[str, str, str, Any]], **more: Any) -> dict[str, Any]:
    """A scenario of active participants; a line is (equivalent, creditor, debtor, limit)."""
    people = sorted({who for _, *ends, _ in lines for who in ends})
    return {
        "schema_version": "scenario/1",
        "scenario_id": "small",
        "equivalents": ["EUR", "UAH"],
        "participants": [{"id": who, "type": "person"} for who in people],
        "trustlines": [{"equivalent": code, "from": a, "to": b, "limit": limit} for code, a, b, limit in lines],
        **more,
    }


@pytest.mark.req("SIM-PROF-5", "SIM-CLR-24")
def test_a_line_that_decays_to_zero_is_no_longer_a_candidate() -> None:
    drift = {"enabled": True, "overload_threshold": 0, "min_limit_ratio": 0}
    scenario = small([("UAH", "B", "A", "0.00999999"), ("UAH", "B", "C", 1000)], settings={"trust_drift": drift})

    assert difference(Case(scenario, 42, 3, 100)) is None


@pytest.mark.req("SIM-SCN-12")
def test_debt_is_injected_over_every_active_line() -> None:
    effect = {"op": "inject_debt", "from": "B", "to": "A", "equivalent": "UAH", "amount": 3}
    scenario = small([("UAH", "B", "A", 5)], events=[{"time": 0, "type": "inject", "effects": [effect]}])
    scenario["participants"][0]["status"] = "suspended"

    assert difference(Case(scenario, 42, 1, 0, {"SIMULATOR_REAL_ENABLE_INJECT": "1"})) is None


@pytest.mark.req("SIM-SCN-13")
def test_freezing_an_inactive_participant_freezes_its_lines() -> None:
    effect = {"op": "freeze_participant", "participant_id": "A"}
    scenario = small([("UAH", "B", "A", 5)], events=[{"time": 0, "type": "inject", "effects": [effect]}])
    scenario["participants"][0]["status"] = "left"

    assert difference(Case(scenario, 42, 1, 0, {"SIMULATOR_REAL_ENABLE_INJECT": "1"})) is None


@pytest.mark.req("SIM-ADP-1", "SIM-ADP-13")
def test_an_equivalent_beyond_the_call_limit_is_still_judged() -> None:
    """UAH passes the threshold while EUR takes the only call, and stays active when its rate falls between."""
    full = [("EUR", "B", "A", "0.02"), ("UAH", "B", "A", 3)]
    settings = {f"SIMULATOR_CLEARING_ADAPTIVE_{name}": value for name, value in ONE_CALL.items()}

    settings |= {"SIMULATOR_CLEARING_POLICY": "adaptive", "SIMULATOR_ACTIONS_PER_TICK_MAX": "4"}

    for seed in range(12):
        assert difference(Case(small(full), seed, 8, 100, settings)) is None, seed


@pytest.mark.long
@pytest.mark.parametrize("first", range(2000, 5000, 100))
def test_the_engine_agrees_on_three_thousand_random_networks(first: int) -> None:
    for seed in range(first, first + 100):
        assert difference(case(seed)) is None, seed


@pytest.mark.req("SIM-TEST-6")
@pytest.mark.parametrize("policy", ["static", "adaptive"])
@pytest.mark.parametrize(
    ("name", "seed", "intensity", "cap"),
    [
        ("minimal", 42, 40, "3.00"),
        ("clearing-demo-10", 42, 100, "500"),
        ("trust-drift-decay-minimal", 1, 20, "500"),
        pytest.param("greenfield-village-100-realistic-v2", 42, 70, "500", marks=pytest.mark.long),
        ("riverside-town-50-realistic-v2", 42, 70, "500"),
    ],
)
def test_the_engine_agrees_on_sixty_ticks_of_the_public_scenarios(
    name: str, seed: int, intensity: int, cap: str, policy: str
) -> None:
    settings = {"SIMULATOR_REAL_AMOUNT_CAP": cap, "SIMULATOR_CLEARING_POLICY": policy}
    settings |= {"SIMULATOR_CLEARING_ADAPTIVE_WINDOW_TICKS": "10", "SIMULATOR_CLEARING_EVERY_N_TICKS": "12"}

    assert difference(Case(public_scenario(name), seed, 60, intensity, settings)) is None


@pytest.mark.req("SIM-TEST-6")
def test_the_engine_agrees_on_a_part_of_the_public_village() -> None:
    """The whole village takes the oracle ten seconds; it is compared with `--long`."""
    settings = {"SIMULATOR_REAL_AMOUNT_CAP": "500", "SIMULATOR_CLEARING_EVERY_N_TICKS": "12"}

    assert difference(Case(public_scenario("greenfield-village-100-realistic-v2"), 42, 25, 70, settings)) is None
