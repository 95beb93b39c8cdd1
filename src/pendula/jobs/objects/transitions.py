"""Follow an arrow of the state machine: change the state and all dates that belong to it."""

from msgspec.structs import replace

from pendula.jobs.objects import budgets
from pendula.jobs.objects.endings import ActionContext, Verdict
from pendula.jobs.objects.gates import effective_risk, is_high_risk
from pendula.jobs.objects.governed import VERIFICATIONS, Governed, Mode
from pendula.jobs.objects.machine import Arrow, Finding, Machine
from pendula.jobs.objects.next_action import find_next_action

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
