"""Governed jobs: in pull, ack and fail, for clients that do not know about governance, and in two steps.

A pull begins every governed job that it delivers, in its own transaction: it reads the gates and takes a unit of the
budget. A job that the gates, the budget or the object forbid is not delivered; it ends or waits. An ack without a
finding means that the action was executed and nothing was found. However its job ends, an object that is not in a final
state has a date and a job scheduled for it.

A client that knows about governance calls `begin` before the verifier runs and `finish` with its verdict. Both require
the lease token. If the gates, the budget or the object forbid the action, `begin` ends the job and the verifier does
not run. Each step is one transaction and can be repeated safely with the same lease token.
"""

from msgspec import UNSET
from msgspec.structs import replace

from pendula.governance import decisions
from pendula.governance.applying import (
    apply_ending,
    follow_up,
    is_awaited,
    put,
    record,
    spend,
    stands_for,
    tier_without_trace,
)
from pendula.governance.decisions import ActionContext, Ending, How, Outcome
from pendula.governance.gates import NO_GATES, REQUIRED, Reading, is_high_risk, moved, read
from pendula.governance.inputs import (
    action_context,
    explain_unfit_evidence,
    is_promotion,
    machine_of,
    object_not_found,
    refuse_too_many_references,
    rules_of,
)
from pendula.governance.machines import Machine
from pendula.governance.messages import Begin, Finish, Step, changes, ending_json, gate_of, object_of
from pendula.governance.model import DAY_US, Governed
from pendula.governance.tables import tables_of
from pendula.jobs import decide
from pendula.jobs.audit import GATE_EVENT, STATE_EVENT
from pendula.jobs.hooks import EndedJob
from pendula.jobs.messages import Ack, Fail, job_of, read_proof
from pendula.jobs.model import VERIFICATIONS, Actor, Code, Ended, Job, Policy, Refused, Status
from pendula.jobs.reasons import Reason, error_of
from pendula.jobs.request_reading import Faults
from pendula.jobs.request_reading import read as read_body
from pendula.jobs.store.protocol import StoreUnusable, Writer
from pendula.jobs.transaction import OVER, Body, holder, not_found, write_back
from pendula.jobs.transaction import carry_out as end_job
from pendula.kernel.canonical import Json


def begin_delivery(tx: Writer, job: Job, fence: int, actor: Actor, policy: Policy, now: int) -> bool:
    """Take the budget and return whether a due job may be delivered with this fence.

    A job that may not has ended or was postponed; the audit trail has the reason.
    """
    try:
        subject = tables_of(tx).governed(job.object_type, job.object_id)
    except StoreUnusable as broken:  # damage of one object must not block the others
        return _fail_undelivered(tx, job, f"{broken.code}: object_unreadable", actor, policy, now)
    if subject is None:
        return True
    machine = rules_of(policy).machines.get(job.object_type)
    if machine is None:
        error = f"{Outcome.CONFLICT}: no_machine: {job.object_type}"
        return _fail_undelivered(tx, job, error, actor, policy, now)
    known = tables_of(tx).job(job.seq)
    context = action_context(tables_of(tx), subject, job.action, policy, now, deferrals=known.deferrals)
    entered = decisions.enter(subject, machine, context)
    if isinstance(entered, Ending) and entered.outcome is not Outcome.NOOP:
        _stopped_by_gates(tx, job, subject, entered, context, actor=actor, policy=policy)
        return False
    # If no transition leaves the state, the delivery costs nothing and its end changes nothing.
    after = subject if isinstance(entered, Ending) else entered
    if after != subject:
        spend(tx, subject, after, actor, job, now)
    tables_of(tx).put_job(job.seq, replace(known, begun_fence=fence, begun_version=after.version))
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
    old: dict[str, Json] = {"status": before.status, "epistemic_state": before.epistemic}
    new: dict[str, Json] = {"status": ending.subject.status, "epistemic_state": ending.subject.epistemic}
    change = (old, {**new, "outcome": ending.outcome.value, "delivered": False})
    tier = tier_without_trace(context.risk)
    record(tx, GATE_EVENT, ending.subject, change, ending.reason, actor, context.now, job=job, tier=tier)


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
        machine = rules_of(policy).machines[before.object_type]
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
            known = tables_of(tx).job(job.seq)
            tables_of(tx).put_job(job.seq, replace(known, deferrals=known.deferrals + 1))
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
    subject = tables_of(tx).governed(job.object_type, job.object_id)
    assert subject is not None, "only acks of governed objects come here"
    known = tables_of(tx).job(job.seq)
    context = action_context(tables_of(tx), subject, job.action, policy, now, deferrals=known.deferrals)
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
    subject = tables_of(tx).governed(after.object_type, after.object_id)
    if subject is None or subject.next_action is None or not stands_for(subject, before):
        return
    machine = rules_of(policy).machines.get(subject.object_type)
    if machine is None or decisions.explain_unknown_place(subject, machine) is not None:
        moved = replace(subject, version=subject.version + 1, updated_at=now)
    else:
        context = action_context(tables_of(tx), subject, before.action, policy, now)
        moved = decisions.postpone(subject, machine, context)
    if moved.next_action_at is not None:
        moved = replace(moved, next_action_at=max(moved.next_action_at, now + DAY_US))
    put(tx, moved)
    reason = Reason("job_ended", {"job_id": before.job_id, "status": after.status})
    tier = tier_without_trace(subject.risk_tier)
    record(tx, STATE_EVENT, moved, changes(subject, moved), reason, actor, now, job=after, tier=tier)
    follow_up(tx, subject, moved, actor, policy, job=before)


STATE_CONFLICT = "state_conflict"
SETTLED_ACTIONS = ("decay", "archive")


def begin(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Step | Refused:
    """Take the budget and start the verification, or end the job; the reply says which."""
    job = _leased_job(tx, job_id, body, now)
    if not isinstance(job, Job):
        return job
    request = read_body(Begin, body, policy)
    if isinstance(request, Faults):
        return request.refusal()
    found = _subject(tx, job, policy)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    known = tables_of(tx).job(job.seq)
    context = action_context(tables_of(tx), subject, job.action, policy, now, deferrals=known.deferrals)
    if known.begun_fence == job.delivery_count:
        # Begun by its pull, or the reply was lost: take no second unit, but check what has changed since.
        entered: Governed | Ending = decisions.reenter(subject, machine, context)
    else:
        entered = decisions.enter(subject, machine, context)
    if isinstance(entered, Ending):
        return _end(tx, job, subject, entered, context, actor=actor, policy=policy)
    if entered != subject:
        spend(tx, subject, entered, holder(job, actor), job, now)
    begun = replace(known, begun_fence=job.delivery_count, begun_version=entered.version)
    tables_of(tx).put_job(job.seq, begun)
    return _entered_reply(job, entered, context)


def finish(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Step | Refused:
    """End the job with a verdict: state change, audit event, follow-up and ack in one transaction."""
    job = _leased_job(tx, job_id, body, now)
    if not isinstance(job, Job):
        return job
    request = read_body(Finish, body, policy)
    if isinstance(request, Faults):
        return request.refusal()
    found = _subject(tx, job, policy)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    if (refused := refuse_too_many_references(subject, request.verdict.evidence)) is not None:
        return refused
    known = tables_of(tx).job(job.seq)
    if job.action in VERIFICATIONS and known.begun_fence != job.delivery_count:
        message = "this delivery has not begun: call begin first"
        return Refused(Code.NOT_BEGUN, message, {"job_id": job.job_id})
    context = action_context(tables_of(tx), subject, job.action, policy, now, deferrals=known.deferrals)
    begun_version = known.begun_version if known.begun_fence == job.delivery_count else None
    ending = _conclude(tx, subject, machine, context, request, begun_version)
    reply = _end(tx, job, subject, ending, context, actor=actor, policy=policy)
    has_moved = request.gates is not None and moved(request.gates, _reading(context))
    return replace(reply, gates_moved=has_moved)


def settle(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Step | Refused:
    """Begin and end a decay or archive job, which the object itself decides."""
    job = _leased_job(tx, job_id, body, now)
    if not isinstance(job, Job):
        return job
    request = read_body(Begin, body, policy)
    if isinstance(request, Faults):
        return request.refusal()
    if job.action not in SETTLED_ACTIONS:
        message = f"{job.action} needs a verifier: call begin and finish"
        return Refused(Code.NOT_BEGUN, message, {"job_id": job.job_id, "action": job.action})
    found = _subject(tx, job, policy)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    context = action_context(
        tables_of(tx), subject, job.action, policy, now, deferrals=tables_of(tx).job(job.seq).deferrals
    )
    entered = decisions.enter(subject, machine, context)
    if not isinstance(entered, Ending):
        entered = decisions.conclude(subject, machine, context, decisions.settle_verdict(subject, machine, context))
    return _end(tx, job, subject, entered, context, actor=actor, policy=policy)


def _leased_job(tx: Writer, job_id: str, body: Body, now: int) -> Job | Step | Refused:
    """The job whose lease the body proves, or the answer that ends the call."""
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    if (repeated := _repeated_answer(tx, job, body)) is not None:
        return repeated
    return decide.holding(job, read_proof(body), now) or job


def _repeated_answer(tx: Writer, job: Job, body: Body) -> Step | None:
    """The answer to a repeated call, if this delivery has already ended."""
    proof = read_proof(body)
    acked = job.status == Status.SUCCEEDED and decide.repeats(job, proof, Ended.ACK)
    over = decide.repeats(job, proof, Ended.FAIL) or decide.repeats(job, proof, Ended.RELEASE)
    if (not acked and not over) or proof.lease_token is None:
        return None
    subject = tables_of(tx).governed(job.object_type, job.object_id)
    shown = None if subject is None else object_of(subject)
    return Step(entered=False, already_ended=True, job=job_of(job), object=shown)


def _subject(tx: Writer, job: Job, policy: Policy) -> tuple[Governed, Machine] | Refused:
    machine = machine_of(policy, job.object_type)
    if isinstance(machine, Refused):
        return machine
    subject = tables_of(tx).governed(job.object_type, job.object_id)
    return object_not_found(job.object_type, job.object_id) if subject is None else (subject, machine)


def _conclude(
    tx: Writer, subject: Governed, machine: Machine, context: ActionContext, request: Finish, begun_version: int | None
) -> Ending:
    version = begun_version if request.version is None else request.version
    if version is not None and version != subject.version:
        because = Reason("version_changed", {"version": subject.version, "given": version})
        return Ending(
            how=How.RETRY,
            outcome=Outcome.CONFLICT,
            subject=subject,
            reason=because,
            error=f"{STATE_CONFLICT}: {error_of(because)}",
        )
    ending = decisions.conclude(subject, machine, context, request.verdict)
    if is_promotion(subject, ending, machine):
        wrong = explain_unfit_evidence(tables_of(tx), subject, request.verdict.evidence, context)
        return ending if wrong is None else decisions.illegal_ending(subject, context, wrong)
    return ending


def _entered_reply(job: Job, subject: Governed, context: ActionContext) -> Step:
    reading = _reading(context)
    return Step(
        entered=True,
        job=job_of(job),
        object=object_of(subject),
        version=subject.version,
        gates={**reading.versions},
        verdicts=[gate_of(gate) for gate in reading.gates],
        mode=subject.decision_mode,
    )


def _reading(context: ActionContext) -> Reading:
    return read(context.gates, REQUIRED) if is_high_risk(context.risk, context.impact) else NO_GATES


def _end(
    tx: Writer, job: Job, before: Governed, ending: Ending, context: ActionContext, *, actor: Actor, policy: Policy
) -> Step:
    after, ending, trace, followup = end_delivery(
        tx, job, before, ending, context, actor=holder(job, actor), policy=policy
    )
    return Step(
        entered=False,
        already_ended=False,
        **ending_json(ending, trace),
        job=job_of(after),
        object=object_of(ending.subject),
        followup_job_id=followup,
    )
