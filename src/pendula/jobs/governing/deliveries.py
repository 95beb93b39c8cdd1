"""Governance in pull, ack and fail, for clients that do not know about it.

A pull begins every governed job that it delivers, in its own transaction: it reads the gates and takes a unit of the
budget. A job that the gates, the budget or the object forbid is not delivered; it ends or waits. An ack without a
finding means that the action was executed and nothing was found. However its job ends, an object that is not in a final
state has a date and a job scheduled for it.
"""

from msgspec import UNSET, Struct
from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.audit import GATE_EVENT, STATE_EVENT, GovernanceEvent
from pendula.jobs.governing.apply_ending import apply_ending, evidence_of, put, spend
from pendula.jobs.governing.followups import follow_up, is_awaited, stands_for
from pendula.jobs.governing.verdicts import action_context, machine_of
from pendula.jobs.governing.views import changes
from pendula.jobs.model import Actor, Job, Policy, Refused, Status
from pendula.jobs.objects import decisions
from pendula.jobs.objects.endings import ActionContext, Ending, How, Outcome
from pendula.jobs.objects.governed import DAY_US, VERIFICATIONS, Governed, Risk
from pendula.jobs.objects.reasons import Reason
from pendula.jobs.requests import Ack, Fail
from pendula.jobs.store.protocol import StoreUnusable, Writer
from pendula.jobs.transaction.ending import carry_out as end_job
from pendula.jobs.transaction.ending import write_back

OVER = (Status.FAILED, Status.DEAD_LETTER)


class EndedJob(Struct, frozen=True):
    """The ended job and the id of its follow-up."""

    job: Job
    followup: str | None


def begin_delivery(tx: Writer, job: Job, fence: int, actor: Actor, policy: Policy, now: int) -> bool:
    """Take the budget and return whether a due job may be delivered with this fence.

    A job that may not has ended or was postponed; the audit trail has the reason.
    """
    try:
        subject = tx.governance.governed(job.object_type, job.object_id)
    except StoreUnusable as broken:  # damage of one object must not block the others
        return _fail_undelivered(tx, job, f"{broken.code}: object_unreadable", actor, policy, now)
    if subject is None:
        return True
    machine = policy.machines.get(job.object_type)
    if machine is None:
        error = f"{Outcome.CONFLICT}: no_machine: {job.object_type}"
        return _fail_undelivered(tx, job, error, actor, policy, now)
    known = tx.governance.job(job.seq)
    context = action_context(tx.governance, subject, job.action, policy, now, deferrals=known.deferrals)
    entered = decisions.enter(subject, machine, context)
    if isinstance(entered, Ending) and entered.outcome is not Outcome.NOOP:
        _stopped_by_gates(tx, job, subject, entered, context, actor=actor, policy=policy)
        return False
    # If no transition leaves the state, the delivery costs nothing and its end changes nothing.
    after = subject if isinstance(entered, Ending) else entered
    if after != subject:
        spend(tx, subject, after, actor, job, now)
    tx.governance.put_job(job.seq, replace(known, begun_fence=fence, begun_version=after.version))
    return True


def _fail_undelivered(tx: Writer, job: Job, error: str, actor: Actor, policy: Policy, now: int) -> bool:
    end_job(tx, job, _keep_last_delivery(job, decide.failed(job, Fail(error), now, policy)), actor)
    return False


def _stopped_by_gates(
    tx: Writer, job: Job, before: Governed, ending: Ending, context: ActionContext, *, actor: Actor, policy: Policy
) -> None:
    """End or postpone the job without a delivery; the audit event has the obstacle."""
    end_delivery(tx, job, before, ending, context, actor=actor, policy=policy)
    if ending.executed is not None and (ending.subject == before or ending.how is not How.ACK):
        return  # the event with its trace is already written
    event = GovernanceEvent(
        event_type=GATE_EVENT,
        object_type=before.object_type,
        object_id=before.object_id,
        before={"status": before.status, "epistemic_state": before.epistemic},
        after={
            "status": ending.subject.status,
            "epistemic_state": ending.subject.epistemic,
            "outcome": ending.outcome.value,
            "delivered": False,
        },
        reason=ending.reason,
        evidence=evidence_of(ending.subject, ()),
        job=job,
        # An event of high tier must name a decision trace, and the event that does is already written.
        risk_tier=None if context.risk is Risk.HIGH else context.risk.value,
    )
    tx.governance_event(event, actor, context.now)


def end_delivery(
    tx: Writer,
    job: Job,
    before: Governed,
    ending: Ending,
    context: ActionContext,
    *,
    actor: Actor,
    policy: Policy,
    ack: Ack | None = None,
) -> tuple[Job, Ending, str | None, str | None]:
    """Apply an ending to the object and the job; return the job, the ending, its trace and the follow-up."""
    if ending.how is How.FAIL and stands_for(before, job):
        machine = policy.machines[before.object_type]
        ending = replace(ending, subject=decisions.postpone(ending.subject, machine, context))
    applied = apply_ending(tx, before, ending, context, actor, job=job, policy=policy)
    after = _job_after(tx, job, ending, actor, ack=ack, policy=policy, now=context.now)
    reschedule_object(tx, job, after, actor, policy, context.now)
    return after, ending, applied.trace, applied.followup


def _job_after(tx: Writer, job: Job, ending: Ending, actor: Actor, *, ack: Ack | None, policy: Policy, now: int) -> Job:
    match ending.how:
        case How.ACK:
            request = Ack() if ack is None else ack
            request = replace(request, outcome=request.outcome or ending.outcome.value)
            done = decide.acked(job, request, now, tx.next_event_id())
        case How.DEFER:
            assert ending.retry_at is not None
            known = tx.governance.job(job.seq)
            tx.governance.put_job(job.seq, replace(known, deferrals=known.deferrals + 1))
            done = decide.deferred(job, ending.retry_at, ending.reason, now)
        case How.FAIL | How.RETRY:
            fail = Fail(str(ending.error), retryable=ending.how is How.RETRY)
            return end_job(tx, job, _keep_last_delivery(job, decide.failed(job, fail, now, policy)), actor)
    done = _keep_last_delivery(job, done)
    return tx.change(job, done.job, done.touched, done.reason, actor)


def _keep_last_delivery(job: Job, done: decide.JobChange) -> decide.JobChange:
    """If no delivery ended, keep the last lease and ending, so that repeats of its worker get the same answer."""
    if job.status == Status.RUNNING:
        return done
    return replace(done, job=replace(done.job, last_lease=job.last_lease, ended=job.ended))


def end_by_ack(tx: Writer, job: Job, request: Ack, actor: Actor, policy: Policy, now: int) -> EndedJob | Refused:
    """End a job by an ack without a finding: the state stays; the next time is the given one, else the default."""
    machine = machine_of(policy, job.object_type)
    if isinstance(machine, Refused):
        return machine
    subject = tx.governance.governed(job.object_type, job.object_id)
    assert subject is not None, "only acks of governed objects come here"
    known = tx.governance.job(job.seq)
    context = action_context(tx.governance, subject, job.action, policy, now, deferrals=known.deferrals)
    ending = decisions.acknowledge(subject, machine, context)
    if ending.how is How.ACK and ending.outcome is Outcome.NOOP:
        ending = replace(ending, subject=_dated(tx, job, subject, ending.subject, request, policy))
    elif ending.how is How.ACK and isinstance(request.next_action_at, int) and ending.subject.next_action is not None:
        ending = replace(ending, subject=replace(ending.subject, next_action_at=request.next_action_at))
    after, ending, _, followup = end_delivery(
        tx, job, subject, ending, context, actor=actor, policy=policy, ack=request
    )
    row = tx.object(job.object_type, job.object_id)
    if policy.objects_elsewhere and row is not None and ending.subject != subject:
        tx.write_back(write_back(after, row))
    return EndedJob(after, followup)


def _dated(tx: Writer, job: Job, before: Governed, after: Governed, request: Ack, policy: Policy) -> Governed:
    """Set the next time of the ack. Without one, an object with another scheduled job keeps its date."""
    if after.next_action is None:  # a final state
        return after
    if isinstance(request.next_action_at, int):
        action = request.next_action or after.next_action
        if after.closed and action in VERIFICATIONS:  # such a job would not run
            action = after.next_action
        return replace(after, next_action=action, next_action_at=request.next_action_at)
    if request.next_action_at is UNSET and policy.auto_followup and is_awaited(tx, before, but=job):
        return replace(after, next_action=before.next_action, next_action_at=before.next_action_at)
    return after


def reschedule_object(tx: Writer, before: Job, after: Job, actor: Actor, policy: Policy, now: int) -> None:
    """Give an object whose scheduled job has failed for good a new date, at least a day later, and a job for it."""
    if after.status not in OVER or decide.is_superseded(after) or not policy.auto_followup:
        return
    subject = tx.governance.governed(after.object_type, after.object_id)
    if subject is None or subject.next_action is None or not stands_for(subject, before):
        return
    machine = policy.machines.get(subject.object_type)
    if machine is None or decisions.explain_unknown_place(subject, machine) is not None:
        moved = replace(subject, version=subject.version + 1, updated_at=now)
    else:
        context = action_context(tx.governance, subject, before.action, policy, now)
        moved = decisions.postpone(subject, machine, context)
    if moved.next_action_at is not None:
        moved = replace(moved, next_action_at=max(moved.next_action_at, now + DAY_US))
    put(tx, moved)
    old, new = changes(subject, moved)
    event = GovernanceEvent(
        event_type=STATE_EVENT,
        object_type=subject.object_type,
        object_id=subject.object_id,
        before=old,
        after=new,
        reason=Reason("job_ended", {"job_id": before.job_id, "status": after.status}),
        evidence=evidence_of(moved, ()),
        job=after,
        risk_tier=None if subject.risk_tier is Risk.HIGH else subject.risk_tier.value,
    )
    tx.governance_event(event, actor, now)
    follow_up(tx, subject, moved, actor, policy, job=before)
