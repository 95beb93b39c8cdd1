"""What an action may do to an object: before the verifier runs, and after its verdict; what changes with a state.

Pure functions of the object, its machine, the gates and the time. The order is that of WRK-4: the object, the gates,
the budget, the verifier, the change; no later step runs when an earlier one stops the action.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from pendula.documents.typed import Parse
from pendula.governance import budgets, gates
from pendula.governance.budgets import Entry
from pendula.governance.gates import Gate, Passage, Reading, effective_risk, is_high_risk
from pendula.governance.machines import NEEDABLE, Arrow, Finding, Machine, Never
from pendula.governance.model import DAY_US, Governed, Impact, Mode, Risk, duration_us, has_faded
from pendula.jobs.decide import OUTCOME_DEFERRED
from pendula.jobs.model import VERIFICATIONS
from pendula.jobs.reasons import Reason, Unknown, Verdict, error_of, reason_json, stated
from pendula.kernel.time import format_utc

DEFER_US = 3_600_000_000
DEFERRALS_MOST = 10


class How(StrEnum):
    """How the job ends."""

    ACK = "ack"
    FAIL = "fail"  # no retry
    RETRY = "retry"
    DEFER = "defer"


class Outcome(StrEnum):
    """What happened to the object; the outcome of the job."""

    TRANSITIONED = "transitioned"
    NOOP = "noop"
    BUDGET_EXHAUSTED = "budget_exhausted"
    CLOSED = "ontic_closed"
    LIMIT_REACHED = "ontic_limit_reached"
    DEFERRED = OUTCOME_DEFERRED
    BLOCKED = "gate_blocked"
    UNAVAILABLE = "gate_unavailable"
    ILLEGAL = "illegal_transition"
    INCOMPLETE = "object_incomplete"
    CONFLICT = "state_conflict"


class Executed(StrEnum):
    """How a decision of high risk ended."""

    EXECUTED = "executed"
    LIMITED = "limited"
    BLOCKED = "blocked"
    ESCALATED = "escalated"
    ABSTAINED = "abstained"


class Limits(Struct, frozen=True):
    """Settings for all governed objects."""

    min_evidence_count: Annotated[int, Meta(ge=1, le=100)] = 1
    ontic_verify_limit: Annotated[int, Meta(ge=1, le=10)] = 1
    auto_verify_budget: Annotated[int, Meta(ge=0, le=1000)] = 2
    uncertainty_ttl: Annotated[int, Parse(duration_us, 7 * DAY_US)] = 7 * DAY_US
    learning_period_days: Annotated[int, Meta(ge=1, le=365)] = 7


class ActionContext(Struct, frozen=True):
    """The inputs of a decision about an action. The tiers are effective: an experience has them from its sources.

    `gates` are all that apply to the object, read in the transaction that will write; `deferrals` counts how often the
    job was deferred; the action of a person is not `automatic`.
    """

    action: str
    now: int
    risk: Risk
    impact: Impact
    gates: tuple[Gate, ...] = ()
    limits: Limits = Limits()
    deferrals: int = 0
    automatic: bool = True


class Ending(Struct, frozen=True, kw_only=True):
    """All effects of an action, stored together or not at all.

    `subject` is the new object; `escalation` is why a person must decide; `closes` ends the waiting verifications of
    the object; `rollback` requests a rollback; `error` is the job's last error.
    """

    how: How
    outcome: Outcome
    subject: Governed
    reason: Reason
    evidence: tuple[str, ...] = ()
    executed: Executed | None = None
    reading: Reading | None = None
    escalation: Reason | None = None
    rollback: bool = False
    closes: bool = False
    retry_at: int | None = None
    error: str | None = None


# Findings that may promote an object; they require sufficient evidence.
PROMOTING = frozenset({Finding.PASSED, Finding.NEW_EVIDENCE, Finding.SOME_EVIDENCE})
NOTHING_FOUND = Verdict(Finding.INCONCLUSIVE, Reason("not_searched"))
EXECUTED = Verdict(Finding.INCONCLUSIVE, Reason("nothing_found"))


def enter(subject: Governed, machine: Machine, context: ActionContext) -> Governed | Ending:
    """The object with the budget taken, to be stored before the verifier runs; or the ending if it may not run."""
    if (barred := _precheck(subject, machine, context)) is not None:
        return barred
    match budgets.check_entry(subject, context.action, machine, context.limits.ontic_verify_limit):
        case Entry.FREE:
            return subject
        case Entry.PAID:
            return budgets.spend(subject, context.now)
        case Entry.NO_BUDGET:
            return _exhausted(subject, machine, context, _gates_of_risk(context))
        case Entry.UNKNOWABLE if subject.closed:
            return _limit_reached(subject)
        case Entry.UNKNOWABLE:
            return _keep_last_verified(
                _close(subject, machine, context, _gates_of_risk(context), NOTHING_FOUND), subject
            )


def _precheck(subject: Governed, machine: Machine, context: ActionContext) -> Ending | None:
    """The ending if the action may not run, whatever the budget; a noop if no transition leaves the state."""
    if (conflict := explain_unknown_place(subject, machine)) is not None:
        return _conflict(subject, conflict)
    if missing := budgets.missing_members(subject):
        return _incomplete(subject, missing)
    if rule := machine.forbidden(subject.place, machine.sought_targets(context.action, None)):
        return illegal_ending(subject, context, stated(rule.because))
    reading = _gates_of_risk(context)
    if (stopped := _stopped_by_gates(subject, context, reading)) is not None:
        return stopped
    if not machine.has_row(subject.place, context.action):
        ending = _noop(
            subject, machine, context, NOTHING_FOUND, reading, Reason("no_transition", {"place": subject.place})
        )
        return _keep_last_verified(ending, subject)
    return None


def reenter(subject: Governed, machine: Machine, context: ActionContext) -> Governed | Ending:
    """Check a delivery again that has already begun, without taking budget; the object, or the ending."""
    if (barred := _precheck(subject, machine, context)) is not None:
        return barred
    if subject.closed and context.action in VERIFICATIONS and subject.place in machine.uncertain:
        return _limit_reached(subject)
    return subject


def acknowledge(subject: Governed, machine: Machine, context: ActionContext) -> Ending:
    """The ending of an ack without a finding, with the current gates: the state stays.

    An unknowable object at its verification limit is closed, as by any verdict.
    """
    if (conflict := explain_unknown_place(subject, machine)) is not None:
        return _conflict(subject, conflict)
    reading = _gates_of_risk(context)
    if (stopped := _stopped_by_gates(subject, context, reading)) is not None:
        return stopped
    if context.action in VERIFICATIONS and _is_at_its_limit(subject, machine, context):
        return _close(subject, machine, context, reading, EXECUTED)
    ending = _noop(subject, machine, context, EXECUTED, reading, EXECUTED.because)
    return ending if machine.has_row(subject.place, context.action) else _keep_last_verified(ending, subject)


def conclude(subject: Governed, machine: Machine, context: ActionContext, verdict: Verdict) -> Ending:
    """The ending of a verdict, with the current gates."""
    if (conflict := explain_unknown_place(subject, machine)) is not None:
        return _conflict(subject, conflict)
    reading = _gates_of_risk(context)
    if (stopped := _stopped_by_gates(subject, context, reading)) is not None:
        return stopped
    verdict = _checked_verdict(subject, machine, context, verdict)
    if rule := _forbidden(subject, machine, context, verdict):
        return illegal_ending(subject, context, stated(rule.because))
    arrow = machine.arrow(subject.place, context.action, verdict.finding)
    if arrow is None:
        if _is_at_its_limit(subject, machine, context):
            return _close(subject, machine, context, reading, verdict)
        return _noop(subject, machine, context, verdict, reading, _noop_reason(machine, context, verdict))
    return _follow_arrow(subject, arrow, machine, context, verdict, reading)


def _noop_reason(machine: Machine, context: ActionContext, verdict: Verdict) -> Reason:
    """The reason of a verdict without a transition; it names an unknown finding, which may be a typo."""
    if machine.has_finding(verdict.finding):
        return verdict.because
    facts = {"action": context.action, "object_type": machine.object_type, "finding": verdict.finding}
    return Reason("unknown_finding", {"because": reason_json(verdict.because), **facts})


def explain_unknown_place(subject: Governed, machine: Machine) -> Reason | None:
    """A sentence if the machine does not have the object's state, because another machine put it there.

    Deciding anyway would find no transition and remove the object's next date.
    """
    if subject.place in machine.trust:
        return None
    return Reason("unknown_place", {"object_type": subject.object_type, "place": subject.place})


def settle_verdict(subject: Governed, machine: Machine, context: ActionContext) -> Verdict:
    """The verdict of decay and archive, computed from the object alone."""
    if context.action == "decay":
        return _decay_verdict(subject, machine, context)
    if subject.place in machine.awaits_rollback:
        if subject.rollback_pending:
            return Verdict(Finding.INCONCLUSIVE, Reason("rollback_unfinished"))
        return Verdict(Finding.ROLLED_BACK, Reason("rollback_finished"))
    if subject.expires_at is not None and subject.expires_at <= context.now:
        return Verdict(Finding.EXPIRED, Reason("expired", {"at": format_utc(subject.expires_at)}))
    return Verdict(Finding.INCONCLUSIVE, Reason("not_expired"))


def postpone(subject: Governed, machine: Machine, context: ActionContext) -> Governed:
    """The object with a new date, after its scheduled job was stopped for good."""
    return _not_due_at_once(with_next_action(subject, machine, context.now), context)


def _decay_verdict(subject: Governed, machine: Machine, context: ActionContext) -> Verdict:
    if _is_overdue(subject, context.now) and machine.arrow(subject.place, "decay", Finding.OVERDUE) is not None:
        return Verdict(Finding.OVERDUE, Reason("review_overdue"))
    if has_faded(subject, context.risk, context.now):
        return Verdict(Finding.FADED, Reason("faded"))
    return Verdict(Finding.INCONCLUSIVE, Reason("not_faded"))


def _is_overdue(subject: Governed, now: int) -> bool:
    return subject.review_due_at is not None and subject.review_due_at <= now


def _gates_of_risk(context: ActionContext) -> Reading | None:
    """The combined gates for a high-risk action; None otherwise."""
    return gates.read(context.gates, gates.REQUIRED) if gates.is_high_risk(context.risk, context.impact) else None


def _stopped_by_gates(subject: Governed, context: ActionContext, reading: Reading | None) -> Ending | None:
    """The ending if the gates stop the action entirely."""
    if reading is None:
        return None
    match reading.passage:
        case Passage.UNAVAILABLE:
            return _unavailable(subject, reading)
        case Passage.DEFERRED if context.deferrals < DEFERRALS_MOST:
            return _deferred(subject, context, reading)
        case Passage.DEFERRED | Passage.BLOCKED:
            return _blocked(subject, reading)
        case _:
            return None


def _checked_verdict(subject: Governed, machine: Machine, context: ActionContext, verdict: Verdict) -> Verdict:
    """The verdict, corrected by its evidence and by what the object itself knows."""
    if (contradiction := _contradiction(subject, verdict.finding, context.now)) is not None:
        return replace(verdict, finding=Finding.INCONCLUSIVE, reason=contradiction)
    enough = len(set(subject.evidence) | set(verdict.evidence)) >= context.limits.min_evidence_count
    if verdict.finding in PROMOTING and not enough:
        verdict = replace(verdict, finding=Finding.INSUFFICIENT, reason=_too_few(verdict, context))
    ways = {
        arrow.finding for arrow in machine.arrows if (arrow.source, arrow.action) == (subject.place, context.action)
    }
    # An overdue review that has not passed has failed; otherwise the object would be due again at once, endlessly.
    undecided = verdict.finding not in ways and verdict.finding != Finding.PASSED
    if undecided and Finding.OVERDUE in ways and _is_overdue(subject, context.now):
        return replace(verdict, finding=Finding.OVERDUE)
    return verdict


def _too_few(verdict: Verdict, context: ActionContext) -> Reason:
    facts = {"because": reason_json(verdict.because), "needed": context.limits.min_evidence_count}
    return Reason("too_little_evidence", facts)


def _contradiction(subject: Governed, finding: str, now: int) -> Reason | None:
    """Why the finding contradicts the object, or None."""
    if finding == Finding.ROLLED_BACK and subject.rollback_pending:
        return Reason("rollback_unfinished")
    if finding == Finding.EXHAUSTED and (
        subject.verify_budget_left > 0 or not budgets.has_uncertainty_ended(subject, now)
    ):
        return Reason("not_exhausted")
    return None


def _forbidden(subject: Governed, machine: Machine, context: ActionContext, verdict: Verdict) -> Never | None:
    return machine.forbidden(subject.place, machine.sought_targets(context.action, verdict.finding))


def _follow_arrow(
    subject: Governed, arrow: Arrow, machine: Machine, context: ActionContext, verdict: Verdict, reading: Reading | None
) -> Ending:
    """Follow the arrow unless a gate, a rule or a missing member prevents it."""
    if subject.closed and verdict.unknown_type in (None, Unknown.ONTIC_UNKNOWABLE) and machine.promotes(arrow):
        return _noop(subject, machine, context, verdict, reading, Reason("needs_evidence_to_open"))
    if machine.promotes(arrow):
        own = gates.read([gate for gate in context.gates if gate.name in arrow.gates], arrow.gates)
        if (stopped := _stopped_by_gates(subject, context, own)) is not None:
            return stopped
        if Passage.LOWERING_ONLY in (own.passage, Passage.OPEN if reading is None else reading.passage):
            return _limit(subject, machine, context, verdict, reading)
        if reading is not None and context.automatic and subject.place in machine.uncertain:
            return _escalate(subject, machine, context, verdict, reading)
    if needed := lacking(subject, machine.needs.get(arrow.target, ())):
        return illegal_ending(subject, context, Reason("members_needed", {"place": arrow.target, "members": needed}))
    after = apply_arrow(subject, arrow, machine, verdict, context)
    return Ending(
        how=How.ACK,
        outcome=Outcome.TRANSITIONED,
        subject=after,
        reason=verdict.because,
        evidence=verdict.evidence,
        executed=None if reading is None else _how_executed(arrow, machine, reading),
        reading=reading,
        rollback=arrow.target in machine.rolls_back,
    )


def _how_executed(arrow: Arrow, machine: Machine, reading: Reading) -> Executed:
    """A high-risk decision counts as executed only if the object is certain and all gates are open."""
    if arrow.source in machine.uncertain:
        return Executed.ESCALATED if machine.promotes(arrow) else Executed.LIMITED  # only a person can promote here
    return Executed.EXECUTED if reading.passage is Passage.OPEN else Executed.LIMITED


def lacking(subject: Governed, needed: Iterable[str]) -> list[str]:
    """The needed members that the object lacks; of alternatives joined by `|`, one is enough."""
    present = {name for name, member in NEEDABLE.items() if getattr(subject, member) not in (None, ())}
    return [need for need in needed if present.isdisjoint(need.split("|"))]


def _noop(
    subject: Governed,
    machine: Machine,
    context: ActionContext,
    verdict: Verdict,
    reading: Reading | None,
    reason: Reason,
) -> Ending:
    return Ending(
        how=How.ACK,
        outcome=Outcome.NOOP,
        subject=_not_due_at_once(confirm(subject, machine, verdict, context), context),
        reason=reason,
        evidence=verdict.evidence,
        executed=None if reading is None else Executed.ABSTAINED,
        reading=reading,
    )


def _not_due_at_once(subject: Governed, context: ActionContext) -> Governed:
    """Postpone an action that had no effect by a day, or a worker could repeat it endlessly."""
    at = subject.next_action_at
    is_due = subject.next_action == context.action and at is not None and at <= context.now
    return replace(subject, next_action_at=context.now + DAY_US) if is_due else subject


def _limit(
    subject: Governed, machine: Machine, context: ActionContext, verdict: Verdict, reading: Reading | None
) -> Ending:
    ending = _noop(subject, machine, context, verdict, reading, Reason("lowering_only"))
    return ending if reading is None else replace(ending, executed=Executed.LIMITED)


def _escalate(
    subject: Governed, machine: Machine, context: ActionContext, verdict: Verdict, reading: Reading
) -> Ending:
    reason = Reason("person_required")
    ending = _noop(subject, machine, context, verdict, reading, reason)
    return replace(ending, executed=Executed.ESCALATED, escalation=reason)


def _exhausted(subject: Governed, machine: Machine, context: ActionContext, reading: Reading | None) -> Ending:
    """The budget is used up. If its time is over, too, set the object aside and possibly escalate."""
    reason = Reason("no_budget")
    arrow = machine.arrow(subject.place, context.action, Finding.EXHAUSTED)
    if arrow is None or not budgets.has_uncertainty_ended(subject, context.now):
        after, escalation = with_next_action(subject, machine, context.now), None
    else:
        after = apply_arrow(subject, arrow, machine, Verdict(Finding.EXHAUSTED, reason), context)
        after = replace(after, last_verified_at=subject.last_verified_at)  # no verification ran
        reason = Reason("no_budget_no_time")
        escalation = reason if budgets.needs_a_person(subject, context.risk, context.impact) else None
    executed = Executed.ESCALATED if escalation else Executed.ABSTAINED
    return Ending(
        how=How.ACK,
        outcome=Outcome.BUDGET_EXHAUSTED,
        subject=after,
        reason=reason,
        executed=None if reading is None else executed,
        reading=reading,
        escalation=escalation,
    )


def _is_at_its_limit(subject: Governed, machine: Machine, context: ActionContext) -> bool:
    """Whether to close the object now. If verification is its next action, closing must also set it aside, or it would
    wait for a job that can no longer be enqueued."""
    if subject.unknown_type is not Unknown.ONTIC_UNKNOWABLE or subject.closed or subject.place not in machine.uncertain:
        return False
    is_spent = subject.verifications >= context.limits.ontic_verify_limit
    return is_spent and machine.can_be_closed(subject.place, context.action)


def _close(
    subject: Governed, machine: Machine, context: ActionContext, reading: Reading | None, verdict: Verdict
) -> Ending:
    """Close an unknowable object: set it aside, with the limit of knowledge stated."""
    shut = budgets.close(subject)
    arrow = machine.arrow(subject.place, context.action, Finding.EXHAUSTED)
    if arrow is None:
        # Whatever the finding, closing confirms nothing and schedules no review.
        after = confirm(shut, machine, replace(verdict, finding=Finding.EXHAUSTED), context)
    else:
        after = apply_arrow(shut, arrow, machine, verdict, context)
        after = with_next_action(replace(budgets.close(after), version=subject.version), machine, context.now)
    return Ending(
        how=How.ACK,
        outcome=Outcome.CLOSED,
        subject=after,
        reason=Reason("limit_reached", {"limit": context.limits.ontic_verify_limit, "closed": shut.closed}),
        evidence=verdict.evidence,
        executed=None if reading is None else Executed.ABSTAINED,
        reading=reading,
        closes=True,
    )


def _keep_last_verified(ending: Ending, before: Governed) -> Ending:
    """Keep the time of the last verification, because none ran."""
    return replace(ending, subject=replace(ending.subject, last_verified_at=before.last_verified_at))


def _limit_reached(subject: Governed) -> Ending:
    """The ending of a verification of an object that was closed while the job waited or ran."""
    return Ending(
        how=How.FAIL,
        outcome=Outcome.LIMIT_REACHED,
        subject=subject,
        reason=Reason("verification_closed", {"closed": subject.closed}),
        error=Outcome.LIMIT_REACHED.value,
    )


def _incomplete(subject: Governed, missing: list[str]) -> Ending:
    return Ending(
        how=How.FAIL,
        outcome=Outcome.INCOMPLETE,
        subject=subject,
        reason=Reason("members_missing", {"object_type": subject.object_type, "members": missing}),
        error=f"{Outcome.INCOMPLETE}: {','.join(missing)}",
    )


def _conflict(subject: Governed, because: Reason) -> Ending:
    return Ending(
        how=How.RETRY,
        outcome=Outcome.CONFLICT,
        subject=subject,
        reason=because,
        error=f"{Outcome.CONFLICT}: {error_of(because)}",
    )


def illegal_ending(subject: Governed, context: ActionContext, because: Reason) -> Ending:
    return Ending(
        how=How.FAIL,
        outcome=Outcome.ILLEGAL,
        subject=subject,
        reason=because,
        error=f"{Outcome.ILLEGAL}: {context.action}: {subject.place}: {error_of(because)}",
    )


def _unavailable(subject: Governed, reading: Reading) -> Ending:
    return Ending(
        how=How.RETRY,
        outcome=Outcome.UNAVAILABLE,
        subject=subject,
        reason=gates.explain_missing(reading),
        executed=Executed.ABSTAINED,
        reading=reading,
        error=f"{Outcome.UNAVAILABLE}: {reading.decided_by}",
    )


def _deferred(subject: Governed, context: ActionContext, reading: Reading) -> Ending:
    return Ending(
        how=How.DEFER,
        outcome=Outcome.DEFERRED,
        subject=subject,
        reason=Reason(
            "gate_deferred", {"gate": reading.decided_by, "deferral": context.deferrals + 1, "limit": DEFERRALS_MOST}
        ),
        executed=Executed.ABSTAINED,
        reading=reading,
        retry_at=context.now + DEFER_US,
    )


def _blocked(subject: Governed, reading: Reading) -> Ending:
    return Ending(
        how=How.FAIL,
        outcome=Outcome.BLOCKED,
        subject=subject,
        reason=Reason("gate_blocked", {"gate": reading.decided_by}),
        executed=Executed.BLOCKED,
        reading=reading,
        escalation=Reason("gate_blocked_job", {"gate": reading.decided_by}),
        error=f"{Outcome.BLOCKED}: {reading.decided_by}",
    )


REINFORCING = frozenset({Finding.NEW_EVIDENCE, Finding.SOME_EVIDENCE})


def apply_arrow(
    subject: Governed, arrow: Arrow, machine: Machine, verdict: Verdict, context: ActionContext
) -> Governed:
    """The object after the transition, with the next version."""
    status, _, epistemic = arrow.target.partition("/")
    moved = replace(subject, status=status, epistemic=epistemic or None, evidence=_joined_evidence(subject, verdict))
    moved = _mark_verified(moved, context)
    moved = replace(moved, stale_since=_stale_since(subject, arrow, machine, context.now))
    moved = _reinforce(moved, arrow, machine, context)
    moved = _uncertainty(moved, subject, arrow, machine, verdict, context)
    moved = replace(moved, rollback_pending=arrow.target in machine.awaits_rollback)
    return with_next_action(replace(moved, review_due_at=_review(moved, machine, context.now)), machine, context.now)


def confirm(subject: Governed, machine: Machine, verdict: Verdict, context: ActionContext) -> Governed:
    """The object in the same state after a verification: new evidence, dates and next action."""
    verified = _mark_verified(replace(subject, evidence=_joined_evidence(subject, verdict)), context)
    if verdict.finding == Finding.PASSED:
        verified = replace(verified, review_due_at=_review(verified, machine, context.now))
    return with_next_action(verified, machine, context.now)


def with_next_action(subject: Governed, machine: Machine, now: int) -> Governed:
    """The object with its next action and the next version."""
    action, at = find_next_action(subject, machine, now) or (None, None)
    return replace(subject, next_action=action, next_action_at=at, version=subject.version + 1, updated_at=now)


def _joined_evidence(subject: Governed, verdict: Verdict) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*subject.evidence, *verdict.evidence)))


def _mark_verified(subject: Governed, context: ActionContext) -> Governed:
    return replace(subject, last_verified_at=context.now) if context.action in VERIFICATIONS else subject


def _stale_since(subject: Governed, arrow: Arrow, machine: Machine, now: int) -> int | None:
    if arrow.target not in machine.stale:
        return None
    return subject.stale_since if arrow.source in machine.stale and subject.stale_since is not None else now


def _reinforce(subject: Governed, arrow: Arrow, machine: Machine, context: ActionContext) -> Governed:
    """Reinstatement counts as use and refills the budget. (Otherwise only a person refills it.)"""
    if arrow.finding not in REINFORCING or not machine.promotes(arrow):
        return subject
    reinforced = replace(
        subject, last_reinforced_at=context.now, reinforcement_count=subject.reinforcement_count + 1, closed=None
    )
    return budgets.refill(reinforced, context.limits.auto_verify_budget)


def _uncertainty(
    subject: Governed, before: Governed, arrow: Arrow, machine: Machine, verdict: Verdict, context: ActionContext
) -> Governed:
    if arrow.target not in machine.follow:
        return subject  # a final state keeps these members
    if arrow.target not in machine.uncertain:
        return budgets.make_certain(subject)
    if before.place not in machine.uncertain or arrow.finding in REINFORCING:
        risk = effective_risk(context.risk, context.impact)
        return budgets.make_uncertain(subject, verdict.unknown_type, risk, context.limits.uncertainty_ttl, context.now)
    if arrow.finding == Finding.EXHAUSTED:
        mode = Mode.ESCALATE if is_high_risk(context.risk, context.impact) else Mode.CONSERVATIVE
        return replace(subject, decision_mode=mode)
    return subject


def _review(subject: Governed, machine: Machine, now: int) -> int | None:
    if subject.place not in machine.follow:
        return None
    if subject.review_interval is not None:
        return now + subject.review_interval
    due = subject.review_due_at
    return due if due is not None and due > now else None


def find_next_action(subject: Governed, machine: Machine, now: int) -> tuple[str, int] | None:
    """The next action and its time, never before now; None in a final state.

    If the object expires first and can be archived, that is next. An uncertain object is verified no later than the end
    of its uncertainty; without budget, exactly then.
    """
    follow = machine.follow.get(subject.place)
    if follow is None:
        return None
    dated = None if follow.at is None else getattr(subject, follow.at)
    action, at = follow.action, now + follow.after if dated is None else max(dated, now)
    if subject.place in machine.uncertain and action in VERIFICATIONS:
        at = _before_uncertainty_ends(subject, at, now)
    can_be_archived = machine.arrow(subject.place, "archive", Finding.EXPIRED) is not None
    if can_be_archived and subject.expires_at is not None and subject.expires_at <= at:
        return "archive", max(subject.expires_at, now)
    return action, at


def _before_uncertainty_ends(subject: Governed, at: int, now: int) -> int:
    ends = subject.uncertainty_ends
    if ends is None or ends <= now:
        return at
    return ends if subject.verify_budget_left <= 0 else min(at, ends)
