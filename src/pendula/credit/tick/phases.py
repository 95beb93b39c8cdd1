"""One tick of a run, phase by phase: events due, budget, plan, payments, clearing, decay, measuring, audit, digests.

Events of the timeline are notes, stress and, if they are enabled, injections.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from pendula.credit import saving
from pendula.credit.events import (
    AuditDrift,
    ClearingDecision,
    DriftRow,
    Event,
    LineView,
    Note,
    Person,
    Ticked,
    TopologyChanged,
    TopologyPayload,
)
from pendula.credit.model import (
    EFFECTS_MOST,
    AddParticipant,
    CreateTrustline,
    DatedClearing,
    DatedPayment,
    Effect,
    EventType,
    FreezeParticipant,
    InjectDebt,
    LineStatus,
    Multiplier,
    Participant,
    TimelineEvent,
    Trustline,
)
from pendula.credit.money import CENT, MOST, text
from pendula.credit.planning.planner import budget, ramp
from pendula.credit.settings import ClearingPolicy
from pendula.credit.state.clearing_policy import Decision, Why, is_guarded
from pendula.credit.state.counters import too_many_failed_ticks
from pendula.credit.state.network import EquivalentLedger
from pendula.credit.state.run_state import RunState, Waiting
from pendula.credit.tick import event_parts
from pendula.credit.tick.clearing import call, drift_event
from pendula.credit.tick.draft import Attempt, Draft, DueClearing, attempt_of, measure_tick, resolve_payment
from pendula.credit.tick.payments import pay
from pendula.credit.tick.questions import TickFailed, ask_behaviour
from pendula.kernel.canonical import Json


def multipliers(events: Sequence[TimelineEvent], at_ms: int) -> tuple[Multiplier, ...]:
    """The multipliers of all active stress events, in the order of the file."""
    return tuple(multiplier for event in events if _is_on(event, at_ms) for multiplier in event.multipliers)


def _is_on(event: TimelineEvent, at_ms: int) -> bool:
    if event.type is not EventType.STRESS or event.time is None:
        return False
    if not event.duration:
        return at_ms == event.time
    return event.time <= at_ms < event.time + event.duration


def due(events: Iterable[TimelineEvent], fired: int, at_ms: int) -> list[TimelineEvent]:
    """Due events that did not fire yet; `fired` has a bit for each event that did."""
    return [
        event for event in events if event.time is not None and event.time <= at_ms and not fired >> event.index & 1
    ]


class InjectedChanges(Struct):
    """What an injection changed in one equivalent; lines by the ids of their ends."""

    nodes: list[Person]
    frozen_nodes: list[str]
    added: list[tuple[str, str]]
    frozen: list[tuple[str, str]]
    owed: list[tuple[str, str]]

    @property
    def shape(self) -> bool:
        """Whether participants or lines have changed, not only debts."""
        return any((self.nodes, self.frozen_nodes, self.added, self.frozen))


class Injection:
    """Applies one inject event and collects what it changed, applied and skipped."""

    def __init__(self, run: RunState, event: TimelineEvent) -> None:
        self.run = run
        self.event = event
        self.changed = {code: InjectedChanges([], [], [], [], []) for code in run.network.ledgers}
        self.applied = self.skipped = self.total = 0
        self.new_people: dict[str, Participant] = {}
        self.new_lines: dict[tuple[str, str, str], Trustline] = {}

    def apply(self) -> None:
        for number, effect in enumerate(self.event.effects):
            if number < EFFECTS_MOST and self._apply(effect):
                self.applied += 1
            else:
                self.skipped += 1
        self._settle()

    def _apply(self, effect: Effect) -> bool:
        """Apply one effect; False if it is impossible and was skipped."""
        match effect:
            case AddParticipant():
                return self._add(effect)
            case CreateTrustline(line):
                return self._create(line)
            case FreezeParticipant(participant, lines):
                return self._freeze(participant, lines)
            case InjectDebt():
                return self._owe(effect)
            case _:
                assert_never(effect)

    def _add(self, effect: AddParticipant) -> bool:
        new = effect.participant
        if new.id in self.run.network.people.index or new.id in self.new_people:
            return False
        self.new_people[new.id] = new
        for line in effect.lines:
            self._create(line)
        for changed in self.changed.values():
            changed.nodes.append(Person(new.id, new.name, new.type.value))
        return True

    def _create(self, line: Trustline) -> bool:
        network, ends = self.run.network, (line.creditor, line.debtor)
        ledger, key = network.ledgers.get(line.equivalent), (line.equivalent, line.creditor, line.debtor)
        known = all(end in network.people.index or end in self.new_people for end in ends) and ends[0] != ends[1]
        if ledger is None or not known or not 0 < line.limit <= MOST or key in self.new_lines:
            return False
        h = ledger.book.line(*ends)
        if h is None:
            self.new_lines[key] = line
        elif ledger.book.status[h] is LineStatus.CLOSED:
            ledger.reopen(h, line.limit)
        else:
            return False
        self.changed[line.equivalent].added.append(ends)
        return True

    def _settle(self) -> None:
        """Rebuild the network once with all additions so far."""
        if self.new_people or self.new_lines:
            self.run.network.extend(self.new_people.values(), self.new_lines.values())
            self.new_people, self.new_lines = {}, {}

    def _freeze(self, participant: str, lines: bool) -> bool:
        self._settle()
        network = self.run.network
        if participant not in network.people.index:
            return False
        names = network.people.names
        for code, frozen in network.freeze(participant, lines).items():
            book, changed = network.ledgers[code].book, self.changed[code]
            changed.frozen_nodes.append(participant)
            changed.frozen += [(names[book.creditor[h]], names[book.debtor[h]]) for h in frozen]
        return True

    def _owe(self, effect: InjectDebt) -> bool:
        self._settle()
        ledger = self.run.network.ledgers.get(effect.equivalent)
        h = None if ledger is None else ledger.book.line(effect.creditor, effect.debtor)
        if ledger is None or h is None or effect.amount <= 0 or ledger.book.status[h] is not LineStatus.ACTIVE:
            return False
        book, most = ledger.book, self.event.most
        if book.owed[h] + effect.amount > book.limit[h] or (most is not None and self.total + effect.amount > most):
            return False
        book.move(h, effect.amount)
        ledger.expect(book.debtor[h], book.creditor[h], effect.amount)
        self.total += effect.amount
        self.changed[effect.equivalent].owed.append((effect.creditor, effect.debtor))
        return True

    def events(self) -> Iterator[Event]:
        for code, changed in self.changed.items():
            book = self.run.network.ledgers[code].book
            owed = tuple(event_parts.edge_patch(book, _line(book.line(*ends))) for ends in dict.fromkeys(changed.owed))
            if changed.shape:
                yield self._topology(code, changed)
            if owed:
                yield TopologyChanged(self.run.tick, code, TopologyPayload(edge_patch=owed), "inject_debt")

    def _topology(self, code: str, changed: InjectedChanges) -> TopologyChanged:
        payload = TopologyPayload(
            added_nodes=tuple(changed.nodes),
            frozen_nodes=tuple(changed.frozen_nodes),
            added_edges=self._views(code, changed.added),
            frozen_edges=self._views(code, changed.frozen),
        )
        return TopologyChanged(self.run.tick, code, payload, "inject")

    def _views(self, code: str, lines: list[tuple[str, str]]) -> tuple[LineView, ...]:
        book = self.run.network.ledgers[code].book
        return tuple(event_parts.line_view(book, _line(book.line(*ends))) for ends in lines)


def _line(h: int | None) -> int:
    assert h is not None
    return h


def apply_event(run: RunState, event: TimelineEvent) -> Iterator[Event]:
    """Apply one due event."""
    facts: dict[str, Json] = {
        "event_index": event.index,
        "time": event.time,
        "description": event.description,
        "metadata": event.metadata,
        "kind": event.type.value,
    }
    match event.type:
        case EventType.STRESS | EventType.PAYMENT | EventType.CLEARING:
            return
        case EventType.NOTE:
            pass
        case EventType.INJECT if not run.settings.enable_inject:
            facts["ignored"] = "inject_disabled"
        case EventType.INJECT if run.config.engine == "external":
            facts["ignored"] = "outside_ledger"
        case EventType.INJECT:
            injection = Injection(run, event)
            injection.apply()
            yield from injection.events()
            facts |= {"applied": injection.applied, "skipped": injection.skipped, "total": text(injection.total)}
    yield Note(run.tick, run.sim_time_ms, facts)


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
    events = due(run.scenario.events, run.fired, draft.at_ms)
    for event in events:
        run.fired |= 1 << event.index
        draft.events.extend(apply_event(run, event))
    # After the injections: a scheduled payment may need participants or lines that the same tick adds.
    for action in (one for event in events for one in event.actions):
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
        now = multipliers(run.scenario.events, draft.at_ms)
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
            attempt = replace(attempt, wanted=planned.cents, planned=planned._replace(wanted=planned.cents))
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
        code: measure_tick(draft.tallies[code], ledger.book, run.policies[code].rate())
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
