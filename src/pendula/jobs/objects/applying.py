"""An arrow is followed: the state changes, and every date that belongs to the change with it."""

from msgspec.structs import replace

from pendula.jobs.objects import budgets
from pendula.jobs.objects.endings import Asked, Verdict
from pendula.jobs.objects.following import following
from pendula.jobs.objects.gates import is_high_risk, risk_that_counts
from pendula.jobs.objects.governed import VERIFICATIONS, Governed, Mode
from pendula.jobs.objects.machine import Arrow, Finding, Machine

REINFORCING = frozenset({Finding.NEW_EVIDENCE, Finding.SOME_EVIDENCE})


def applied(subject: Governed, arrow: Arrow, machine: Machine, verdict: Verdict, asked: Asked) -> Governed:
    """The object behind the arrow, one version on."""
    status, _, epistemic = arrow.target.partition("/")
    moved = replace(subject, status=status, epistemic=epistemic or None, evidence=_joined(subject, verdict))
    moved = _verified(moved, asked)
    moved = replace(moved, stale_since=_stale_since(subject, arrow, machine, asked.now))
    moved = _reinforced(moved, arrow, machine, asked)
    moved = _uncertainty(moved, subject, arrow, machine, verdict, asked)
    moved = replace(moved, rollback_pending=arrow.target in machine.awaits_rollback)
    return dated(replace(moved, review_due_at=_review(moved, machine, asked.now)), machine, asked.now)


def confirmed(subject: Governed, machine: Machine, verdict: Verdict, asked: Asked) -> Governed:
    """The object where it was, looked at: its evidence, its dates and its next action are new."""
    seen = _verified(replace(subject, evidence=_joined(subject, verdict)), asked)
    if verdict.finding == Finding.PASSED:
        seen = replace(seen, review_due_at=_review(seen, machine, asked.now))
    return dated(seen, machine, asked.now)


def dated(subject: Governed, machine: Machine, now: int) -> Governed:
    """The object with its next action, one version on."""
    action, at = following(subject, machine, now) or (None, None)
    return replace(subject, next_action=action, next_action_at=at, version=subject.version + 1, updated_at=now)


def _joined(subject: Governed, verdict: Verdict) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*subject.evidence, *verdict.evidence)))


def _verified(subject: Governed, asked: Asked) -> Governed:
    return replace(subject, last_verified_at=asked.now) if asked.action in VERIFICATIONS else subject


def _stale_since(subject: Governed, arrow: Arrow, machine: Machine, now: int) -> int | None:
    if arrow.target not in machine.stale:
        return None
    return subject.stale_since if arrow.source in machine.stale and subject.stale_since is not None else now


def _reinforced(subject: Governed, arrow: Arrow, machine: Machine, asked: Asked) -> Governed:
    """Reinstatement counts as use, and refills the budget: one of the two ways in which it is ever refilled."""
    if arrow.finding not in REINFORCING or not machine.promotes(arrow):
        return subject
    reinforced = replace(
        subject, last_reinforced_at=asked.now, reinforcement_count=subject.reinforcement_count + 1, closed=None
    )
    return budgets.refilled(reinforced, asked.limits.auto_verify_budget)


def _uncertainty(
    subject: Governed, before: Governed, arrow: Arrow, machine: Machine, verdict: Verdict, asked: Asked
) -> Governed:
    if arrow.target not in machine.follow:
        return subject  # at its end it keeps what was known of it
    if arrow.target not in machine.uncertain:
        return budgets.made_certain(subject)
    if before.place not in machine.uncertain or arrow.finding in REINFORCING:
        risk = risk_that_counts(asked.risk, asked.impact)
        return budgets.made_uncertain(subject, verdict.unknown_type, risk, asked.limits.uncertainty_ttl, asked.now)
    if arrow.finding == Finding.EXHAUSTED:
        mode = Mode.ESCALATE if is_high_risk(asked.risk, asked.impact) else Mode.CONSERVATIVE
        return replace(subject, decision_mode=mode)
    return subject


def _review(subject: Governed, machine: Machine, now: int) -> int | None:
    if subject.place not in machine.follow:
        return None
    if subject.review_interval is not None:
        return now + subject.review_interval
    due = subject.review_due_at
    return due if due is not None and due > now else None
