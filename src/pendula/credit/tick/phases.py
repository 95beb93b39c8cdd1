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
from pendula.credit.state.clearing_policy import Decision, Why, is_guarded
from pendula.credit.state.counters import too_many_failed_ticks
from pendula.credit.state.network import EquivalentLedger
from pendula.credit.state.run_state import RunState
from pendula.credit.state.waiting import Waiting
from pendula.credit.tick import metrics
from pendula.credit.tick.actions import Attempt, DueClearing, attempt_of, resolve_payment
from pendula.credit.tick.clearing import call, drift_event
from pendula.credit.tick.draft import Draft
from pendula.credit.tick.injections import apply_event
from pendula.credit.tick.payments import pay
from pendula.credit.tick.questions import TickFailed, ask_behaviour
from pendula.kernel.canonical import Json


def process(run: RunState) -> list[Event]:
    """Run one tick; returns its events in order."""
    draft = Draft(run)
    # Only an outside payment service can fail a whole tick.
    mark = saving.save(run) if run.config.engine == "external" else None
    try:
        for phase in PHASES:
            phase(run, draft)
            if draft.over:
                return draft.events
    except TickFailed:
        return _roll_back(run, draft, mark)
    run.failed_ticks = 0
    run.tick += 1
    return draft.events


def _roll_back(run: RunState, draft: Draft, mark: bytes | None) -> list[Event]:
    """Roll back a tick that the payment service failed; the failure counts, and the next tick plans again."""
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
        for facts in silenced_profiles(run):
            draft.note(dict(facts))
        if run.config.engine == "external":
            draft.note({"kind": "outside_ledger"})
    due = timeline.due(run.scenario.events, run.fired, draft.at_ms)
    for event in due:
        run.fired |= 1 << event.index
        draft.events.extend(apply_event(run, event))
    # After the injections: a scheduled payment may need participants or lines that the same tick adds.
    for action in (one for event in due for one in event.actions):
        draft.first.extend(_first_actions(run, draft, action))


def _first_actions(
    run: RunState, draft: Draft, action: DatedPayment | DatedClearing
) -> "Iterator[Attempt | DueClearing]":
    if isinstance(action, DatedClearing):
        yield from map(DueClearing, run.network.ledgers if action.equivalent is None else (action.equivalent,))
        return
    seq, wanted = len(draft.payments), action.amount // CENT
    ends = action.sender, action.receiver, action.equivalent, text(action.amount)
    yield resolve_payment(run, Waiting(draft.tick, seq, *ends, wanted))


def silenced_profiles(run: RunState) -> Iterator[dict[str, Json]]:
    """Profiles in use whose smallest amount is above the cap."""
    cap = run.settings.amount_cap
    if cap is None:
        return
    for name, behaviour in sorted(run.network.planner.by_profile.items(), key=lambda item: item[0] or ""):
        for code, model in sorted(behaviour.models.items()):
            if model.min is not None and model.min > cap and code in run.network.ledgers:
                facts: dict[str, Json] = {"kind": "profile_silenced", "profile": name, "equivalent": code}
                yield {**facts, "min": text(model.min), "cap": text(cap)}


def set_budget(run: RunState, draft: Draft) -> None:
    warmup, settings = run.scenario.warmup, run.settings
    slope = ramp(warmup.ticks, Fraction(warmup.floor), draft.tick)
    draft.budget = budget(settings.actions_per_tick_max, settings.actions_per_tick_min, run.intensity, slope)


def make_plan(run: RunState, draft: Draft) -> None:
    """Scheduled payments come first in the plan; planned payments follow."""
    first = draft.payments
    for attempt in first:
        if attempt.planned is not None:
            draft.tallies[attempt.equivalent].wanted += attempt.wanted * CENT
    if run.config.behaviour is not None:
        draft.plan = _asked_plan(run, draft, len(first))
    else:
        now = timeline.multipliers(run.scenario.events, draft.at_ms)
        plan = run.network.planner.plan_with_demand(run.seed, draft.tick, draft.budget, now, run.intensity)
        shift = len(first)
        draft.plan = [
            attempt_of(attempt._replace(seq=attempt.seq + shift) if shift else attempt, draft.tick, run)
            for attempt in plan.payments
        ]
        for code, cents in plan.wanted.items():
            draft.tallies[code].wanted += cents * CENT
    lines = "".join(attempt.line() for attempt in draft.payments)
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
    proposals, invalid = ask_behaviour(run.outside, question, draft.budget)
    if invalid:
        draft.note({"kind": "behaviour_answered_badly", "behaviour": behaviour.name, "invalid": invalid})
    plan = []
    for seq, proposal in enumerate(proposals, first):
        ends = proposal.sender, proposal.receiver, proposal.equivalent, proposal.amount
        attempt = resolve_payment(run, Waiting(draft.tick, seq, *ends, 0))
        if (planned := attempt.planned) is not None:
            attempt = attempt._replace(wanted=planned.cents, planned=planned._replace(wanted=planned.cents))
            draft.tallies[attempt.equivalent].wanted += attempt.wanted * CENT
        plan.append(attempt)
    return plan


def clear(run: RunState, draft: Draft) -> None:
    """Clear as the policy decides. A budget of 0 clears and emits nothing, but still adds an entry to the window."""
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
        for ledger in run.network.ledgers.values():
            # The adaptive policy records the call too, in case a fork or a change of settings switches to it.
            _call(run, draft, ledger, Why.STATIC, settings.clearing_max_depth, settings.clearing_time_budget_ms)


def _call(run: RunState, draft: Draft, ledger: EquivalentLedger, reason: Why, depth: int, budget_ms: int) -> None:
    result, code = call(run, ledger, reason, depth, budget_ms), ledger.book.code
    draft.events.extend(result.events)
    draft.tallies[code].cleared += result.amount
    draft.tallies[code].cost_ms += result.cost_ms
    draft.calls += 1
    draft.work += max(1, result.cleared.work)
    draft.cost_ms += result.cost_ms
    run.policies[code].called(draft.tick, result.amount, result.cost_ms)


def _clear_adaptively(run: RunState, draft: Draft) -> None:
    settings = run.settings
    if is_guarded(settings, run.in_flight, max(run.callers_queue, run.queue_depth)):
        for code in run.network.ledgers:
            _emit_decision(run, draft, code, _skipped(run, code, Why.SKIPPED_GUARDRAIL))
        return
    for code, ledger in run.network.ledgers.items():
        # Each equivalent gets a decision at every tick; the caps of a tick only prevent the call.
        decision = run.policies[code].decide(draft.tick)
        skip = _skip_reason(run, draft)
        _emit_decision(run, draft, code, decision if skip is None else _skipped(run, code, skip))
        if draft.budget and decision.run and skip is None:
            _call(run, draft, ledger, decision.reason, decision.max_depth, decision.time_budget_ms)


def _skip_reason(run: RunState, draft: Draft) -> Why | None:
    settings = run.settings
    if 0 < settings.adaptive_max_eq_per_tick <= draft.calls:
        return Why.SKIPPED_MAX_EQ_PER_TICK
    budget_ms = settings.adaptive_tick_budget_ms
    spent = draft.cost_ms >= budget_ms if run.config.engine == "external" else _spent(run, draft)
    if budget_ms > 0 and spent:
        return Why.SKIPPED_TICK_BUDGET
    return None


def _spent(run: RunState, draft: Draft) -> bool:
    """Whether the calls of this tick used up its work budget; finer than their cost in whole milliseconds."""
    return draft.work >= run.settings.adaptive_tick_budget_ms * run.settings.work_units_per_ms


def _skipped(run: RunState, code: str, reason: Why) -> Decision:
    return Decision(False, reason, run.policies[code].rate(), 0, 0, 0)


def _emit_decision(run: RunState, draft: Draft, code: str, decision: Decision) -> None:
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
    for ledger in run.network.ledgers.values():
        shrunk = ledger.trust.decay(draft.tick)
        if shrunk:
            draft.events.append(drift_event(draft.tick, ledger, shrunk, "trust_drift_decay"))


def measure(run: RunState, draft: Draft) -> None:
    for code, tally in draft.tallies.items():
        demand = run.demand[code]
        demand.wanted += tally.wanted
        demand.served += tally.served
        demand.volume += tally.volume
    run.measured = {
        code: metrics.measure_tick(draft.tallies[code], ledger.book, run.policies[code].rate())
        for code, ledger in run.network.ledgers.items()
    }


def audit(run: RunState, draft: Draft) -> None:
    """Check that only payments moved positions, and the invariants of touched lines."""
    for code, ledger in run.network.ledgers.items():
        rows = list(ledger.drifts())
        for invariant in ledger.book.lately_broken():
            raise AssertionError(invariant)
        if rows:
            draft.events.append(_drift(draft, code, ledger, rows))


def _drift(draft: Draft, code: str, ledger: EquivalentLedger, rows: list[tuple[int, int, int]]) -> AuditDrift:
    names, total = ledger.book.people.names, sum(abs(actual - expected) for _, expected, actual in rows)
    severity = "warning" if total * 100 < draft.tallies[code].volume else "critical"
    drifts = tuple(
        DriftRow(names[node], text(expected), text(actual), text(actual - expected)) for node, expected, actual in rows
    )
    return AuditDrift(draft.tick, code, severity, text(total), drifts, "post_tick_audit")


def digest(run: RunState, draft: Draft) -> None:
    run.settle()
    if run.config.digest_ledger:
        parts = [f"tick|{draft.tick}\n".encode()]
        for ledger in run.network.ledgers.values():
            parts += ledger.text.parts()
        run.ledger_digest.update(b"".join(parts))


def emit_tick(run: RunState, draft: Draft) -> None:
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


PHASES = (fire_events, set_budget, make_plan, pay, clear, decay, measure, audit, digest, emit_tick)
