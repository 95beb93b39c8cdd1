"""A governed job in two steps: `begin` before the verifier runs, `finish` with its verdict.

Both require the lease token. If the gates, the budget or the object forbid the action, `begin` ends the job and the
verifier does not run. Each step is one transaction and can be repeated safely with the same lease token.
"""

from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.governance.bodies import Finish, read_begin, read_finish
from pendula.jobs.governing.apply_ending import spend
from pendula.jobs.governing.deliveries import end_delivery
from pendula.jobs.governing.verdicts import (
    action_context,
    explain_unfit_evidence,
    is_promotion,
    machine_of,
    object_not_found,
    refuse_too_many_references,
)
from pendula.jobs.governing.views import ending_json, gate_json, object_json
from pendula.jobs.model import Actor, Code, Ended, Job, Policy, Refused, Status, job_json
from pendula.jobs.objects import decisions
from pendula.jobs.objects.endings import ActionContext, Ending, How, Outcome
from pendula.jobs.objects.gates import NO_GATES, REQUIRED, Reading, is_high_risk, moved, read
from pendula.jobs.objects.governed import VERIFICATIONS, Governed
from pendula.jobs.objects.machine import Machine
from pendula.jobs.objects.reasons import Reason, error_of
from pendula.jobs.request_reading import Faults
from pendula.jobs.requests_finishing import read_proof
from pendula.jobs.store.protocol import Writer
from pendula.jobs.transaction.ending import holder
from pendula.jobs.transaction.replies import Answer, Body, Reply, not_found
from pendula.kernel.canonical import Json

STATE_CONFLICT = "state_conflict"
SETTLED_ACTIONS = ("decay", "archive")


def begin(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """Take the budget and start the verification, or end the job; the reply says which."""
    job = _leased_job(tx, job_id, body, now)
    if not isinstance(job, Job):
        return job
    if (faults := read_begin(body)) is not None:
        return faults.refusal()
    found = _subject(tx, job, policy)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    known = tx.governance.job(job.seq)
    context = action_context(tx.governance, subject, job.action, policy, now, deferrals=known.deferrals)
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
    tx.governance.put_job(job.seq, begun)
    return _entered_reply(job, entered, context)


def finish(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """End the job with a verdict: state change, audit event, follow-up and ack in one transaction."""
    job = _leased_job(tx, job_id, body, now)
    if not isinstance(job, Job):
        return job
    request = read_finish(body)
    if isinstance(request, Faults):
        return request.refusal()
    found = _subject(tx, job, policy)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    if (refused := refuse_too_many_references(subject, request.verdict.evidence)) is not None:
        return refused
    known = tx.governance.job(job.seq)
    if job.action in VERIFICATIONS and known.begun_fence != job.delivery_count:
        message = "this delivery has not begun: call begin first"
        return Refused(Code.NOT_BEGUN, message, {"job_id": job.job_id})
    context = action_context(tx.governance, subject, job.action, policy, now, deferrals=known.deferrals)
    begun_version = known.begun_version if known.begun_fence == job.delivery_count else None
    ending = _conclude(tx, subject, machine, context, request, begun_version)
    reply = _end(tx, job, subject, ending, context, actor=actor, policy=policy)
    has_moved = request.gates is not None and moved(request.gates, _reading(context))
    return Reply(reply.status, {**reply.body, "gates_moved": has_moved})


def settle(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """Begin and end a decay or archive job, which the object itself decides."""
    job = _leased_job(tx, job_id, body, now)
    if not isinstance(job, Job):
        return job
    if (faults := read_begin(body)) is not None:
        return faults.refusal()
    if job.action not in SETTLED_ACTIONS:
        message = f"{job.action} needs a verifier: call begin and finish"
        return Refused(Code.NOT_BEGUN, message, {"job_id": job.job_id, "action": job.action})
    found = _subject(tx, job, policy)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    context = action_context(
        tx.governance, subject, job.action, policy, now, deferrals=tx.governance.job(job.seq).deferrals
    )
    entered = decisions.enter(subject, machine, context)
    if not isinstance(entered, Ending):
        entered = decisions.conclude(subject, machine, context, decisions.settle_verdict(subject, machine, context))
    return _end(tx, job, subject, entered, context, actor=actor, policy=policy)


def _leased_job(tx: Writer, job_id: str, body: Body, now: int) -> Job | Answer:
    """The job whose lease the body proves, or the answer that ends the call."""
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    if (repeated := _repeated_answer(tx, job, body)) is not None:
        return repeated
    return decide.holding(job, read_proof(body), now) or job


def _repeated_answer(tx: Writer, job: Job, body: Body) -> Reply | None:
    """The answer to a repeated call, if this delivery has already ended."""
    proof = read_proof(body)
    acked = job.status == Status.SUCCEEDED and decide.repeats(job, proof, Ended.ACK)
    over = decide.repeats(job, proof, Ended.FAIL) or decide.repeats(job, proof, Ended.RELEASE)
    if (not acked and not over) or proof.lease_token is None:
        return None
    subject = tx.governance.governed(job.object_type, job.object_id)
    shown = None if subject is None else object_json(subject)
    return Reply(200, {"entered": False, "already_ended": True, "job": job_json(job), "object": shown})


def _subject(tx: Writer, job: Job, policy: Policy) -> tuple[Governed, Machine] | Refused:
    machine = machine_of(policy, job.object_type)
    if isinstance(machine, Refused):
        return machine
    subject = tx.governance.governed(job.object_type, job.object_id)
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
        wrong = explain_unfit_evidence(tx.governance, subject, request.verdict.evidence, context)
        return ending if wrong is None else decisions.illegal_ending(subject, context, wrong)
    return ending


def _entered_reply(job: Job, subject: Governed, context: ActionContext) -> Reply:
    reading = _reading(context)
    body: dict[str, Json] = {
        "entered": True,
        "job": job_json(job),
        "object": object_json(subject),
        "version": subject.version,
        "gates": {**reading.versions},
        "verdicts": [gate_json(gate) for gate in reading.gates],
        "mode": None if subject.decision_mode is None else subject.decision_mode.value,
    }
    return Reply(200, body)


def _reading(context: ActionContext) -> Reading:
    return read(context.gates, REQUIRED) if is_high_risk(context.risk, context.impact) else NO_GATES


def _end(
    tx: Writer, job: Job, before: Governed, ending: Ending, context: ActionContext, *, actor: Actor, policy: Policy
) -> Reply:
    after, ending, trace, followup = end_delivery(
        tx, job, before, ending, context, actor=holder(job, actor), policy=policy
    )
    body: dict[str, Json] = {
        "entered": False,
        "already_ended": False,
        **ending_json(ending, trace),
        "job": job_json(after),
        "object": object_json(ending.subject),
        "followup_job_id": followup,
    }
    return Reply(200, body)
