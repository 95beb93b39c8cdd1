"""One clearing call of a run: cycles or the best circulation, its events, and the growth of trust."""

from typing import NamedTuple

from msgspec import UNSET

from pendula.credit.events import (
    AuditDrift,
    ClearingDone,
    ClearingPlan,
    Event,
    Note,
    PlanStep,
    TopologyChanged,
    TopologyPayload,
)
from pendula.credit.ledger.book import Book
from pendula.credit.ledger.cycles import Cleared, best_circulation, clear_at_once, find_and_clear
from pendula.credit.ledger.cycles import clear as clear_cycle
from pendula.credit.model import Code, clearing_key, plan_name
from pendula.credit.money import text
from pendula.credit.settings import ClearingMode
from pendula.credit.state.clearing_policy import Why, hard_timeout_ms
from pendula.credit.state.network import EquivalentLedger
from pendula.credit.state.run_state import RunState
from pendula.credit.tick import event_parts
from pendula.credit.tick.questions import OutsideClearing, clear_outside
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal


class Called(NamedTuple):
    """The result of a call, its cost and its events. The embedded engine derives its cost from its work."""

    events: list[Event]
    cleared: Cleared
    cost_ms: int

    @property
    def amount(self) -> int:
        return self.cleared.amount


def call(run: RunState, ledger: EquivalentLedger, reason: Why, depth: int, budget_ms: int) -> Called:
    """Clear one equivalent once."""
    settings, code, events = run.settings, ledger.book.code, list[Event]()
    plan_id = plan_name(run.seed, run.tick, code, _ordinal(run, code))
    hard_ms = hard_timeout_ms(budget_ms, settings.clearing_hard_timeout_sec)
    recorded_ms = 0
    optimum = None
    if settings.clearing_yardstick:
        best = best_circulation(ledger.book, run.outside.ask)
        optimum = None if isinstance(best, Refusal) else best.reduction
    if run.config.engine == "external":
        key = clearing_key(run.config.run_id, plan_id)
        cleared, recorded_ms = _clear_outside(
            run, ledger, events, clear_outside(run.outside, ledger.book, depth, budget_ms, hard_ms, key)
        )
    elif settings.clearing_mode is ClearingMode.OPTIMAL:
        cleared = _clear_at_once(run, ledger.book, events)
    else:
        work_ms, most = min(budget_ms, hard_ms), settings.clearing_max_cycles_per_call
        cleared = find_and_clear(ledger.book, depth, most, work_ms * settings.work_units_per_ms)
    cost_ms = recorded_ms or max(1, -(-cleared.work // settings.work_units_per_ms))
    run.last_clearing[code] = {
        "tick": run.tick,
        "reason": reason.value,
        "cleared_cycles": len(cleared.cycles),
        "cleared_amount": text(cleared.amount),
        "stopped": cleared.stopped,
        "work": cleared.work,
        "cost_ms": cost_ms,
    }
    if not cleared.cycles and (cleared.stopped == "work" or optimum):
        facts: dict[str, Json] = {"kind": "nothing_cleared", "equivalent": code, "stopped": cleared.stopped}
        events.append(Note(run.tick, run.sim_time_ms, {**facts, "optimum": None if optimum is None else text(optimum)}))
    if cleared.cycles:
        events += _clearing_events(run, ledger, reason, cleared, plan_id, optimum)
        events += _grow_trust(run, ledger, cleared)
    return Called(events, cleared, cost_ms)


def _ordinal(run: RunState, code: str) -> int:
    """The number of previous calls for this equivalent in this tick."""
    if run.calls.get("tick") != run.tick:
        run.calls = {"tick": run.tick}
    # "tick" cannot clash with a code: codes are uppercase.
    ordinal = run.calls.get(code, 0)
    run.calls[code] = ordinal + 1
    return ordinal


def _clear_at_once(run: RunState, book: Book, events: list[Event]) -> Cleared:
    best = best_circulation(book, run.outside.ask)
    if isinstance(best, Refusal):
        facts: dict[str, Json] = {"kind": "optimal_clearing_failed", "code": best.code, "facts": best.facts}
        events.append(Note(run.tick, run.sim_time_ms, {**facts, "equivalent": book.code}))
        return Cleared((), 1, "failed")
    clear_at_once(book, best.flows)
    return Cleared(best.cycles, 1, "done")


def _clear_outside(
    run: RunState, ledger: EquivalentLedger, events: list[Event], clearing: OutsideClearing
) -> tuple[Cleared, int]:
    """Mirror the cycles that the service cleared; impossible cycles show that the two ledgers have drifted apart."""
    code = ledger.book.code
    if clearing.astray:
        events.append(AuditDrift(run.tick, code, "critical", "0.00", (), "delta_check"))
    failure = Code.INTERNAL_ERROR if clearing.astray else clearing.failure
    if failure is not None:
        facts: dict[str, Json] = {"kind": "clearing_failed", "equivalent": code, "code": failure.value}
        if clearing.trouble:
            facts["engine"] = clearing.trouble
        events.append(Note(run.tick, run.sim_time_ms, facts))
        return Cleared((), 0, "failed"), clearing.cost_ms
    for cycle in clearing.cycles:
        clear_cycle(ledger.book, cycle)
    return Cleared(clearing.cycles, 0, "done"), clearing.cost_ms


def _clearing_events(
    run: RunState, ledger: EquivalentLedger, reason: Why, cleared: Cleared, plan_id: str, optimum: int | None
) -> list[Event]:
    """The events of a call that cleared something: its plan and its result."""
    book, code, patches = ledger.book, ledger.book.code, run.config.patches
    hops = list(dict.fromkeys(h for cycle in cleared.cycles for h in cycle.hops))
    nodes = sorted({node for cycle in cleared.cycles for node in cycle.nodes})
    events: list[Event] = []
    if run.settings.emit_clearing_plan:
        step = PlanStep(0, event_parts.highlighted_edges(book, cleared.cycles[0].hops))
        events.append(ClearingPlan(run.tick, code, plan_id, (step,)))
    events.append(
        ClearingDone(
            tick_index=run.tick,
            equivalent=code,
            plan_id=plan_id,
            reason=reason.value,
            cleared_cycles=len(cleared.cycles),
            cleared_amount=text(cleared.amount),
            debt_reduction=text(cleared.reduction),
            cycle_edges=event_parts.highlighted_edges(book, hops[: run.settings.clearing_max_edges_for_fx]),
            stopped=cleared.stopped,
            optimum=UNSET if optimum is None else text(optimum),
            node_patch=event_parts.node_patches(book, nodes) if patches else UNSET,
            edge_patch=event_parts.edge_patches(book, hops) if patches else UNSET,
        )
    )
    return events


def _grow_trust(run: RunState, ledger: EquivalentLedger, cleared: Cleared) -> list[Event]:
    if not run.scenario.drift.enabled or run.config.engine == "external":
        return []
    grown = ledger.trust.cleared(cleared.flows(), run.tick)
    return [drift_event(run.tick, ledger, grown, "trust_drift_growth")] if grown else []


def drift_event(tick: int, ledger: EquivalentLedger, lines: list[int], reason: str) -> TopologyChanged:
    """The event of limits that trust drift has changed."""
    patch = tuple(event_parts.edge_patch(ledger.book, h) for h in lines)
    return TopologyChanged(tick, ledger.book.code, TopologyPayload(edge_patch=patch), reason)
