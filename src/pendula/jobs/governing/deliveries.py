"""Governance of what is pulled, acked and failed by a client that knows nothing of it.

A pull begins every governed job that it hands out, in its own transaction: gates are read, a unit of the budget is
taken. What the gates, the budget or the object forbid is not handed out; it ends or waits there. An ack without a
finding says that the action was executed and nothing was found. Whatever becomes of its job, an object that is alive
has a date and a job that stands for it.
"""

from msgspec import UNSET, Struct
from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.audit import GATE_EVENT, STATE_EVENT, GovernanceEvent
from pendula.jobs.governing.carrying_out import carry_out, evidence_of, put, spend
from pendula.jobs.governing.followups import follow_up, is_awaited, stands_for
from pendula.jobs.governing.judging import machine_of, question
from pendula.jobs.governing.showing import changes
from pendula.jobs.model import Actor, Job, Policy, Refused, Status
from pendula.jobs.objects import deciding
from pendula.jobs.objects.endings import Asked, Ending, How, Outcome
from pendula.jobs.objects.governed import DAY_US, VERIFICATIONS, Governed, Risk
from pendula.jobs.objects.reasons import Reason
from pendula.jobs.requests import Ack, Fail
from pendula.jobs.store.protocol import StoreUnusable, Writer
from pendula.jobs.transaction.ending import carry_out as end_job
from pendula.jobs.transaction.ending import write_back

OVER = (Status.FAILED, Status.DEAD_LETTER)


class Ended(Struct, frozen=True):
    """A job as it is now, and the id of the one that comes next."""

    job: Job
    followup: str | None


def begun(tx: Writer, job: Job, fence: int, actor: Actor, policy: Policy, now: int) -> bool:
    """Whether a due job may be handed out as the delivery `fence`, with what that costs taken.

    One that may not has ended, or waits for another time, as the trail says.
    """
    try:
        subject = tx.governance.governed(job.object_type, job.object_id)
    except StoreUnusable as broken:  # of one object; the others are not held up
        return _tried_in_vain(tx, job, f"{broken.code}: object_unreadable", actor, policy, now)
    if subject is None:
        return True
    machine = policy.machines.get(job.object_type)
    if machine is None:
        error = f"{Outcome.CONFLICT}: no_machine: {job.object_type}"
        return _tried_in_vain(tx, job, error, actor, policy, now)
    known = tx.governance.job(job.seq)
    asked = question(tx.governance, subject, job.action, policy, now, deferrals=known.deferrals)
    entered = deciding.enter(subject, machine, asked)
    if isinstance(entered, Ending) and entered.outcome is not Outcome.NOOP:
        _stopped(tx, job, subject, entered, asked, actor=actor, policy=policy)
        return False
    # Where nothing leads on from its state the delivery costs nothing, and its end changes nothing.
    after = subject if isinstance(entered, Ending) else entered
    if after != subject:
        spend(tx, subject, after, actor, job, now)
    tx.governance.put_job(job.seq, replace(known, begun_fence=fence, begun_version=after.version))
    return True


def _tried_in_vain(tx: Writer, job: Job, error: str, actor: Actor, policy: Policy, now: int) -> bool:
    end_job(tx, job, _undelivered(job, decide.failed(job, Fail(error), now, policy)), actor)
    return False


def _stopped(
    tx: Writer, job: Job, before: Governed, ending: Ending, asked: Asked, *, actor: Actor, policy: Policy
) -> None:
    """The job ends or waits without a delivery, and the trail says what stood in its way."""
    ended(tx, job, before, ending, asked, actor=actor, policy=policy)
    if ending.executed is not None and (ending.subject == before or ending.how is not How.ACK):
        return  # the event with its trace was written
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
        # At tier high an event names its trace, and what names it was written already.
        risk_tier=None if asked.risk is Risk.HIGH else asked.risk.value,
    )
    tx.governance_event(event, actor, asked.now)


def ended(
    tx: Writer,
    job: Job,
    before: Governed,
    ending: Ending,
    asked: Asked,
    *,
    actor: Actor,
    policy: Policy,
    ack: Ack | None = None,
) -> tuple[Job, Ending, str | None, str | None]:
    """Carry an ending out, for the object and for the job; the job, the ending, its trace and the next job."""
    if ending.how is How.FAIL and stands_for(before, job):
        machine = policy.machines[before.object_type]
        ending = replace(ending, subject=deciding.put_off(ending.subject, machine, asked))
    carried = carry_out(tx, before, ending, asked, actor, job=job, policy=policy)
    after = _job_after(tx, job, ending, actor, ack=ack, policy=policy, now=asked.now)
    keep_awaited(tx, job, after, actor, policy, asked.now)
    return after, ending, carried.trace, carried.followup


def _job_after(tx: Writer, job: Job, ending: Ending, actor: Actor, *, ack: Ack | None, policy: Policy, now: int) -> Job:
    match ending.how:
        case How.ACK:
            said = Ack() if ack is None else ack
            said = replace(said, outcome=said.outcome or ending.outcome.value)
            done = decide.acked(job, said, now, tx.next_event_id())
        case How.DEFER:
            assert ending.retry_at is not None
            known = tx.governance.job(job.seq)
            tx.governance.put_job(job.seq, replace(known, deferrals=known.deferrals + 1))
            done = decide.deferred(job, ending.retry_at, ending.reason, now)
        case How.FAIL | How.RETRY:
            fail = Fail(str(ending.error), retryable=ending.how is How.RETRY)
            return end_job(tx, job, _undelivered(job, decide.failed(job, fail, now, policy)), actor)
    done = _undelivered(job, done)
    return tx.change(job, done.job, done.touched, done.reason, actor)


def _undelivered(job: Job, done: decide.Done) -> decide.Done:
    """Where no delivery ended, how the last one did is still what its worker is answered when it repeats itself."""
    if job.status == Status.RUNNING:
        return done
    return replace(done, job=replace(done.job, last_lease=job.last_lease, ended=job.ended))


def acked(tx: Writer, job: Job, request: Ack, actor: Actor, policy: Policy, now: int) -> Ended | Refused:
    """An ack without a finding: the state stays, the next time is the given one or that of the policy."""
    machine = machine_of(policy, job.object_type)
    if isinstance(machine, Refused):
        return machine
    subject = tx.governance.governed(job.object_type, job.object_id)
    assert subject is not None, "only acks of governed objects come here"
    known = tx.governance.job(job.seq)
    asked = question(tx.governance, subject, job.action, policy, now, deferrals=known.deferrals)
    ending = deciding.acknowledged(subject, machine, asked)
    if ending.how is How.ACK and ending.outcome is Outcome.NOOP:
        ending = replace(ending, subject=_dated(tx, job, subject, ending.subject, request, policy))
    elif ending.how is How.ACK and isinstance(request.next_action_at, int) and ending.subject.next_action is not None:
        ending = replace(ending, subject=replace(ending.subject, next_action_at=request.next_action_at))
    after, ending, _, followup = ended(tx, job, subject, ending, asked, actor=actor, policy=policy, ack=request)
    row = tx.object(job.object_type, job.object_id)
    if policy.objects_elsewhere and row is not None and ending.subject != subject:
        tx.write_back(write_back(after, row))
    return Ended(after, followup)


def _dated(tx: Writer, job: Job, before: Governed, after: Governed, request: Ack, policy: Policy) -> Governed:
    """With the time that the ack gives. Where it gives none, an object that another job stands for keeps its own."""
    if after.next_action is None:  # at its end
        return after
    if isinstance(request.next_action_at, int):
        action = request.next_action or after.next_action
        if after.closed and action in VERIFICATIONS:  # no such job would be taken
            action = after.next_action
        return replace(after, next_action=action, next_action_at=request.next_action_at)
    if request.next_action_at is UNSET and policy.auto_followup and is_awaited(tx, before, but=job):
        return replace(after, next_action=before.next_action, next_action_at=before.next_action_at)
    return after


def keep_awaited(tx: Writer, before: Job, after: Job, actor: Actor, policy: Policy, now: int) -> None:
    """An object whose own job will never be done gets another date and a job for it, not before a day has passed."""
    if after.status not in OVER or decide.is_superseded(after) or not policy.auto_followup:
        return
    subject = tx.governance.governed(after.object_type, after.object_id)
    if subject is None or subject.next_action is None or not stands_for(subject, before):
        return
    machine = policy.machines.get(subject.object_type)
    if machine is None or deciding.unknown_place(subject, machine) is not None:
        moved = replace(subject, version=subject.version + 1, updated_at=now)
    else:
        asked = question(tx.governance, subject, before.action, policy, now)
        moved = deciding.put_off(subject, machine, asked)
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
