"""One tick of a run, phase by phase: events due, budget, plan, payments, clearing, decay, measuring, audit, digests."""

from collections.abc import Iterator
from fractions import Fraction

from pendula.credit import saving
from pendula.credit.events import AuditDrift, ClearingDecision, DriftRow, Event, Ticked
from pendula.credit.model import DatedClearing, DatedPayment
from pendula.credit.money import CENT, text
from pendula.credit.planning import timeline
from pendula.credit.planning.planner import budget, ramp
from pendula.credit.settings import ClearingPolicy
from pendula.credit.state.clearing_policy import Decision, Why, guarded
from pendula.credit.state.counters import too_many_failed_ticks
from pendula.credit.state.network import EquivalentDesk
from pendula.credit.state.run_state import RunState
from pendula.credit.state.waiting import Waiting
from pendula.credit.tick import metrics
from pendula.credit.tick.actions import Attempt, DueClearing, attempt_of, resolved
from pendula.credit.tick.clearing import call, drift_event
from pendula.credit.tick.draft import Draft
from pendula.credit.tick.injections import apply_event
from pendula.credit.tick.payments import pay
from pendula.credit.tick.questions import TickFailed, wishes
from pendula.kernel.canonical import Json


def process(run: RunState) -> list[Event]:
    """One whole tick; the events in the order they happened."""
    draft = Draft(run)
    # Only an outside payment service can lose a tick.
    mark = saving.save(run) if run.config.engine == "external" else None
    try:
        for phase in PHASES:
            phase(run, draft)
            if draft.over:
                return draft.events
    except TickFailed:
        return _taken_back(run, draft, mark)
    run.failed_ticks = 0
    run.tick += 1
    return draft.events


def _taken_back(run: RunState, draft: Draft, mark: bytes | None) -> list[Event]:
    """The outside lost the tick: as if it had not been, but counted; the next one is planned anew."""
    assert mark is not None
    saving.load(run, mark)
    run.failed_ticks += 1
    run.tick += 1
    fresh = Draft(run)
    fresh.note({"kind": "tick_failed", "tick_index": draft.tick, "in_a_row": run.failed_ticks})
    end = too_many_failed_ticks(run.failed_ticks, run.settings)
    if end is not None:
        fresh.events.append(run.fail(end))
    return fresh.events


def fire_events(run: RunState, draft: Draft) -> None:
    if draft.tick == 0:
        for facts in silenced(run):
            draft.note(dict(facts))
        if run.config.engine == "external":
            draft.note({"kind": "outside_ledger"})
    due = timeline.due(run.scenario.events, run.fired, draft.at_ms)
    for event in due:
        run.fired |= 1 << event.index
        draft.events.extend(apply_event(run, event))
    # After the injections: a dated payment may need what the same tick adds.
    for action in (one for event in due for one in event.actions):
        draft.first.extend(_first_actions(run, draft, action))


def _first_actions(
    run: RunState, draft: Draft, action: DatedPayment | DatedClearing
) -> "Iterator[Attempt | DueClearing]":
    if isinstance(action, DatedClearing):
        yield from map(DueClearing, run.network.desks if action.equivalent is None else (action.equivalent,))
        return
    seq, wanted = len(draft.payments), action.amount // CENT
    ends = action.sender, action.receiver, action.equivalent, text(action.amount)
    yield resolved(run, Waiting(draft.tick, seq, *ends, wanted))


def silenced(run: RunState) -> Iterator[dict[str, Json]]:
    """Profiles in use whose smallest amount is above the cap."""
    cap = run.settings.amount_cap
    if cap is None:
        return
    for name, behaviour in sorted(run.network.planner.by_profile.items(), key=lambda one: one[0] or ""):
        for code, model in sorted(behaviour.models.items()):
            if model.min is not None and model.min > cap and code in run.network.desks:
                facts: dict[str, Json] = {"kind": "profile_silenced", "profile": name, "equivalent": code}
                yield {**facts, "min": text(model.min), "cap": text(cap)}


def set_budget(run: RunState, draft: Draft) -> None:
    warmup, settings = run.scenario.warmup, run.settings
    slope = ramp(warmup.ticks, Fraction(warmup.floor), draft.tick)
    draft.budget = budget(settings.actions_per_tick_max, settings.actions_per_tick_min, run.intensity, slope)


def make_plan(run: RunState, draft: Draft) -> None:
    """Dated payments come first in the plan; those that the behaviour of participants gives follow."""
    first = draft.payments
    for one in first:
        if one.planned is not None:
            draft.tallies[one.equivalent].wanted += one.wanted * CENT
    if run.config.behaviour is not None:
        draft.plan = _asked_plan(run, draft, len(first))
    else:
        now = timeline.multipliers(run.scenario.events, draft.at_ms)
        plan = run.network.planner.plan_with_demand(run.seed, draft.tick, draft.budget, now, run.intensity)
        shift = len(first)
        draft.plan = [
            attempt_of(one._replace(seq=one.seq + shift) if shift else one, draft.tick, run) for one in plan.payments
        ]
        for code, cents in plan.wanted.items():
            draft.tallies[code].wanted += cents * CENT
    lines = "".join(one.line() for one in draft.payments)
    run.plan_digest.update(lines.encode("utf-8", "surrogatepass"))


def _asked_plan(run: RunState, draft: Draft, first: int) -> list[Attempt]:
    behaviour = run.config.behaviour
    assert behaviour is not None
    question: Json = {
        "behaviour": behaviour.name,
        "version": behaviour.version,
        "tick": draft.tick,
        "budget": draft.budget,
    }
    found, bad = wishes(run.outside, question, draft.budget)
    if bad:
        draft.note({"kind": "behaviour_answered_badly", "behaviour": behaviour.name, "wishes": bad})
    plan = []
    for seq, wish in enumerate(found, first):
        ends = wish.sender, wish.receiver, wish.equivalent, wish.amount
        one = resolved(run, Waiting(draft.tick, seq, *ends, 0))
        if one.planned is not None:
            one = one._replace(wanted=one.planned.cents, planned=one.planned._replace(wanted=one.planned.cents))
            draft.tallies[one.equivalent].wanted += one.wanted * CENT
        plan.append(one)
    return plan


def clear(run: RunState, draft: Draft) -> None:
    """What the policy decides. With a budget of 0 nothing is cleared or told, but the window takes its entry."""
    settings = run.settings
    run.in_flight = max(run.in_flight, draft.in_flight)
    for code, tally in draft.tallies.items():
        run.policies[code].observe(tally.curable, tally.no_capacity)
    if not settings.clearing_enabled:
        return
    if settings.clearing_policy is ClearingPolicy.ADAPTIVE:
        _clear_adaptively(run, draft)
        return
    every = settings.clearing_every_n_ticks
    if draft.budget and every > 0 and draft.tick > 0 and draft.tick % every == 0:
        for desk in run.network.desks.values():
            # The policy remembers it, for a fork or other settings that let it decide.
            _call(run, draft, desk, Why.STATIC, settings.clearing_max_depth, settings.clearing_time_budget_ms)


def _call(run: RunState, draft: Draft, desk: EquivalentDesk, reason: Why, depth: int, budget_ms: int) -> None:
    result, code = call(run, desk, reason, depth, budget_ms), desk.book.code
    draft.events.extend(result.events)
    draft.tallies[code].cleared += result.amount
    draft.tallies[code].cost_ms += result.cost_ms
    draft.calls += 1
    draft.work += max(1, result.cleared.work)
    draft.cost_ms += result.cost_ms
    run.policies[code].called(draft.tick, result.amount, result.cost_ms)


def _clear_adaptively(run: RunState, draft: Draft) -> None:
    settings = run.settings
    if guarded(settings, run.in_flight, max(run.callers_queue, run.queue_depth)):
        for code in run.network.desks:
            _tell(run, draft, code, _skipped(run, code, Why.SKIPPED_GUARDRAIL))
        return
    for code, desk in run.network.desks.items():
        # Each equivalent is judged at every tick; the caps of a tick only keep it from running.
        decision = run.policies[code].decide(draft.tick)
        kept = _kept_from_running(run, draft)
        _tell(run, draft, code, decision if kept is None else _skipped(run, code, kept))
        if draft.budget and decision.run and kept is None:
            _call(run, draft, desk, decision.reason, decision.max_depth, decision.time_budget_ms)


def _kept_from_running(run: RunState, draft: Draft) -> Why | None:
    settings = run.settings
    if 0 < settings.adaptive_max_eq_per_tick <= draft.calls:
        return Why.SKIPPED_MAX_EQ_PER_TICK
    budget_ms = settings.adaptive_tick_budget_ms
    spent = draft.cost_ms >= budget_ms if run.config.engine == "external" else _spent(run, draft)
    if budget_ms > 0 and spent:
        return Why.SKIPPED_TICK_BUDGET
    return None


def _spent(run: RunState, draft: Draft) -> bool:
    """Whether the work of this tick's calls is that of its budget; finer than their cost in whole milliseconds."""
    return draft.work >= run.settings.adaptive_tick_budget_ms * run.settings.work_units_per_ms


def _skipped(run: RunState, code: str, reason: Why) -> Decision:
    return Decision(False, reason, run.policies[code].rate(), 0, 0, 0)


def _tell(run: RunState, draft: Draft, code: str, decision: Decision) -> None:
    if not draft.budget:
        return
    policy = run.policies[code]
    draft.events.append(
        ClearingDecision(
            tick_index=draft.tick,
            equivalent=code,
            should_run=decision.run,
            reason=decision.reason.value,
            rate=(decision.rate.numerator, decision.rate.denominator),
            max_depth=decision.max_depth,
            time_budget_ms=decision.time_budget_ms,
            cooldown=decision.wait,
            clearing_volume=text(policy.last_volume),
            clearing_cost_ms=policy.last_cost_ms,
            in_flight=run.in_flight,
            queue_depth=max(run.callers_queue, run.queue_depth),
        )
    )


def decay(run: RunState, draft: Draft) -> None:
    if not draft.budget or not run.scenario.drift.enabled or run.config.engine == "external":
        return
    for desk in run.network.desks.values():
        shrunk = desk.trust.decay(draft.tick)
        if shrunk:
            draft.events.append(drift_event(draft.tick, desk, shrunk, "trust_drift_decay"))


def measure(run: RunState, draft: Draft) -> None:
    for code, tally in draft.tallies.items():
        demand = run.demand[code]
        demand.wanted += tally.wanted
        demand.served += tally.served
        demand.volume += tally.volume
    run.measured = {
        code: metrics.measured(draft.tallies[code], desk.book, run.policies[code].rate())
        for code, desk in run.network.desks.items()
    }


def audit(run: RunState, draft: Draft) -> None:
    """Positions moved by what was paid and by nothing else; the laws of the ledger hold where it was touched."""
    for code, desk in run.network.desks.items():
        rows = list(desk.drifts())
        for law in desk.book.lately_broken():
            raise AssertionError(law)
        if rows:
            draft.events.append(_drift(draft, code, desk, rows))


def _drift(draft: Draft, code: str, desk: EquivalentDesk, rows: list[tuple[int, int, int]]) -> AuditDrift:
    names, total = desk.book.people.names, sum(abs(actual - expected) for _, expected, actual in rows)
    severity = "warning" if total * 100 < draft.tallies[code].volume else "critical"
    told = tuple(
        DriftRow(names[node], text(expected), text(actual), text(actual - expected)) for node, expected, actual in rows
    )
    return AuditDrift(draft.tick, code, severity, text(total), told, "post_tick_audit")


def digest(run: RunState, draft: Draft) -> None:
    run.settle()
    if run.config.digest_ledger:
        parts = [f"tick|{draft.tick}\n".encode()]
        for desk in run.network.desks.values():
            parts += desk.text.parts()
        run.ledger_digest.update(b"".join(parts))


def tell(run: RunState, draft: Draft) -> None:
    draft.events.append(
        Ticked(
            tick_index=draft.tick,
            sim_time_ms=draft.at_ms,
            budget=draft.budget,
            planned=len(draft.payments),
            committed=draft.committed,
            rejected=draft.rejected,
            errors=draft.errors,
            timeouts=draft.timeouts,
            dropped=draft.dropped,
            waiting=run.queue_depth,
            no_route_at_all=sum(tally.no_route_at_all for tally in draft.tallies.values()),
            metrics={code: dict(values) for code, values in run.measured.items()},
            digests=run.digests(),
        )
    )


PHASES = (fire_events, set_budget, make_plan, pay, clear, decay, measure, audit, digest, tell)
