"""One tick of a run, phase by phase: events due, budget, plan, payments, clearing, decay, measuring, audit, digests."""

from collections.abc import Iterator
from fractions import Fraction

from pendula.credit import saving
from pendula.credit.events import AuditDrift, ClearingDecision, DriftRow, Event, Ticked
from pendula.credit.model import Code
from pendula.credit.money import CENT, cents_text, text
from pendula.credit.planning import timeline
from pendula.credit.planning.planner import Planned, budget, ramp
from pendula.credit.settings import ClearingPolicy
from pendula.credit.state.clearing_policy import Decision, Why, guarded
from pendula.credit.state.counters import too_many_failed_ticks
from pendula.credit.state.network import EquivalentDesk
from pendula.credit.state.run_state import RunState
from pendula.credit.tick import metrics
from pendula.credit.tick.clearing import call, drift_event
from pendula.credit.tick.draft import Draft, Failed
from pendula.credit.tick.injections import apply_event
from pendula.credit.tick.payments import pay
from pendula.credit.tick.questions import TickFailed, Wish, amount_of, wishes
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
    for event in timeline.due(run.scenario.events, run.fired, draft.at_ms):
        run.fired |= 1 << event.index
        draft.events.extend(apply_event(run, event))


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
    if run.config.behaviour is not None:
        draft.plan = _asked_plan(run, draft)
    else:
        now = timeline.multipliers(run.scenario.events, draft.at_ms)
        plan = run.network.planner.plan_with_demand(run.seed, draft.tick, draft.budget, now)
        draft.plan = list(plan.payments)
        for code, cents in plan.wanted.items():
            draft.tallies[code].wanted = cents * CENT
    names, lines = run.network.people.names, []
    for one in draft.plan:
        if isinstance(one, Failed):
            seq, wish, _ = one
            rest = f"{wish.sender}|{wish.receiver}|{wish.equivalent}|{wish.amount}"
        else:
            seq = one.seq
            rest = f"{names[one.sender]}|{names[one.receiver]}|{one.book.code}|{cents_text(one.cents)}"
        lines.append(f"{draft.tick}|{seq}|{rest}\n")
    run.plan_digest.update("".join(lines).encode("utf-8", "surrogatepass"))


def _asked_plan(run: RunState, draft: Draft) -> "list[Planned | Failed]":
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
    plan = [_understood(run, seq, wish) for seq, wish in enumerate(found)]
    for one in plan:
        if isinstance(one, Planned):
            draft.tallies[one.book.code].wanted += one.wanted * CENT
    return plan


def _understood(run: RunState, seq: int, wish: Wish) -> "Planned | Failed":
    index, desk, amount = run.network.people.index, run.network.desks.get(wish.equivalent), amount_of(wish)
    if desk is None:
        return Failed((seq, wish, Code.EQUIVALENT_NOT_FOUND))
    if wish.sender not in index or wish.receiver not in index:
        return Failed((seq, wish, Code.PARTICIPANT_NOT_FOUND))
    if amount is None or wish.sender == wish.receiver:
        return Failed((seq, wish, Code.INVALID_INPUT))
    cents = amount // CENT
    return Planned(seq, desk.book, index[wish.sender], index[wish.receiver], cents, cents)


def clear(run: RunState, draft: Draft) -> None:
    settings = run.settings
    adaptive = settings.clearing_policy is ClearingPolicy.ADAPTIVE
    for code, tally in draft.tallies.items():
        run.policies[code].observe(tally.curable, tally.no_capacity)
    if not settings.clearing_enabled or run.config.engine == "external":
        return
    if adaptive:
        _clear_adaptively(run, draft)
        return
    every = settings.clearing_every_n_ticks
    if every > 0 and draft.tick > 0 and draft.tick % every == 0:
        for desk in run.network.desks.values():
            result = call(run, desk, Why.STATIC, settings.clearing_max_depth, settings.clearing_time_budget_ms)
            draft.events.extend(result.events)
            draft.tallies[desk.book.code].cleared += result.amount
            # For a policy that may have to decide one day: a fork, or other settings.
            run.policies[desk.book.code].called(draft.tick, result.amount, max(1, result.cleared.work))


def _clear_adaptively(run: RunState, draft: Draft) -> None:
    settings = run.settings
    if guarded(settings, run.in_flight, run.queue_depth):
        for code in run.network.desks:
            _tell(draft, code, _skipped(run, code, Why.SKIPPED_GUARDRAIL))
        return
    for code, desk in run.network.desks.items():
        policy = run.policies[code]
        # Each equivalent is judged at every tick; the caps of a tick only keep it from running.
        decision = policy.decide(draft.tick)
        kept = _kept_from_running(run, draft)
        _tell(draft, code, decision if kept is None else _skipped(run, code, kept))
        if decision.run and kept is None:
            result = call(run, desk, decision.reason, decision.max_depth, decision.time_budget_ms)
            work = max(1, result.cleared.work)
            draft.events.extend(result.events)
            draft.tallies[code].cleared += result.amount
            draft.calls += 1
            draft.work += work
            policy.called(draft.tick, result.amount, work)


def _kept_from_running(run: RunState, draft: Draft) -> Why | None:
    settings = run.settings
    if 0 < settings.adaptive_max_eq_per_tick <= draft.calls:
        return Why.SKIPPED_MAX_EQ_PER_TICK
    budget_units = settings.adaptive_tick_budget_ms * settings.work_units_per_ms
    if 0 < budget_units <= draft.work:
        return Why.SKIPPED_TICK_BUDGET
    return None


def _skipped(run: RunState, code: str, reason: Why) -> Decision:
    return Decision(False, reason, run.policies[code].rate(), 0, 0, 0)


def _tell(draft: Draft, code: str, decision: Decision) -> None:
    rate = (decision.rate.numerator, decision.rate.denominator)
    limits = decision.max_depth, decision.time_budget_ms, decision.wait
    draft.events.append(ClearingDecision(draft.tick, code, decision.run, decision.reason.value, rate, *limits))


def decay(run: RunState, draft: Draft) -> None:
    if not run.scenario.drift.enabled or run.config.engine == "external":
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
    run.measured = {code: metrics.measured(draft.tallies[code], desk.book) for code, desk in run.network.desks.items()}


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
    tallies = draft.tallies.values()
    planned = len(draft.plan)
    failed = sum(isinstance(one, Failed) for one in draft.plan)
    counted = sum(tally.finished for tally in tallies)
    rejected = sum(tally.rejected for tally in tallies) + max(0, planned - draft.dropped - counted if failed else 0)
    draft.events.append(
        Ticked(
            tick_index=draft.tick,
            sim_time_ms=draft.at_ms,
            budget=draft.budget,
            planned=planned,
            committed=sum(tally.committed for tally in tallies),
            rejected=rejected,
            errors=sum(tally.errors for tally in tallies),
            timeouts=sum(tally.timeouts for tally in tallies),
            dropped=draft.dropped,
            no_route_at_all=sum(tally.no_route_at_all for tally in tallies),
            metrics={code: dict(values) for code, values in run.measured.items()},
            digests=run.digests(),
        )
    )


PHASES = (fire_events, set_budget, make_plan, pay, clear, decay, measure, audit, digest, tell)
