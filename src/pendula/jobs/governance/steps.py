"""A governed job in two steps: `begin` before the verifier is entered, `finish` with what it found.

Both carry the proof of the lease. What the gates, the budget or the object itself forbid ends the job in `begin`, and
the verifier is never entered. Each step is one transaction, and is safe to repeat with the same lease token.
"""

from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.governance.bodies import Finish, read_begin, read_finish
from pendula.jobs.governing.carrying_out import spend
from pendula.jobs.governing.deliveries import ended
from pendula.jobs.governing.judging import is_promotion, machine_of, no_object, overladen, question, unfit_evidence
from pendula.jobs.governing.showing import ending_json, gate_json, object_json
from pendula.jobs.model import Actor, Code, Ended, Job, Policy, Refused, Status, job_json
from pendula.jobs.objects import deciding
from pendula.jobs.objects.endings import Asked, Ending, How, Outcome
from pendula.jobs.objects.gates import NOT_ASKED, REQUIRED, Reading, is_high_risk, moved, read
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
BY_ITSELF = ("decay", "archive")


def begin(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """Enter the verifier, with what that costs taken; or the job is ended, and the reply says how."""
    job = _held(tx, job_id, body, now)
    if not isinstance(job, Job):
        return job
    if (faults := read_begin(body)) is not None:
        return faults.refusal()
    found = _subject(tx, job, policy)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    known = tx.governance.job(job.seq)
    asked = question(tx.governance, subject, job.action, policy, now, deferrals=known.deferrals)
    if known.begun_fence == job.delivery_count:
        # By its pull, or the reply got lost: nothing is taken twice, and what changed since is looked at.
        entered: Governed | Ending = deciding.entered_again(subject, machine, asked)
    else:
        entered = deciding.enter(subject, machine, asked)
    if isinstance(entered, Ending):
        return _ended(tx, job, subject, entered, asked, actor=actor, policy=policy)
    if entered != subject:
        spend(tx, subject, entered, holder(job, actor), job, now)
    begun = replace(known, begun_fence=job.delivery_count, begun_version=entered.version)
    tx.governance.put_job(job.seq, begun)
    return _entered(job, entered, asked)


def finish(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """End the job with a verdict: the change, its trail, what follows and the ack, together."""
    job = _held(tx, job_id, body, now)
    if not isinstance(job, Job):
        return job
    request = read_finish(body)
    if isinstance(request, Faults):
        return request.refusal()
    found = _subject(tx, job, policy)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    if (refused := overladen(subject, request.verdict.evidence)) is not None:
        return refused
    known = tx.governance.job(job.seq)
    if job.action in VERIFICATIONS and known.begun_fence != job.delivery_count:
        message = "this delivery has not begun: call begin first, which reads the gates and takes the budget"
        return Refused(Code.NOT_BEGUN, message, {"job_id": job.job_id})
    asked = question(tx.governance, subject, job.action, policy, now, deferrals=known.deferrals)
    begun_version = known.begun_version if known.begun_fence == job.delivery_count else None
    ending = _concluded(tx, subject, machine, asked, request, begun_version)
    reply = _ended(tx, job, subject, ending, asked, actor=actor, policy=policy)
    has_moved = request.gates is not None and moved(request.gates, _reading(asked))
    return Reply(reply.status, {**reply.body, "gates_moved": has_moved})


def settle(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """A job that nobody has to look into: decay and archive, decided by the object itself, begun and ended at once."""
    job = _held(tx, job_id, body, now)
    if not isinstance(job, Job):
        return job
    if (faults := read_begin(body)) is not None:
        return faults.refusal()
    if job.action not in BY_ITSELF:
        message = f"{job.action} needs somebody who looks into it: call begin and finish"
        return Refused(Code.NOT_BEGUN, message, {"job_id": job.job_id, "action": job.action})
    found = _subject(tx, job, policy)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    asked = question(tx.governance, subject, job.action, policy, now, deferrals=tx.governance.job(job.seq).deferrals)
    entered = deciding.enter(subject, machine, asked)
    if not isinstance(entered, Ending):
        entered = deciding.conclude(subject, machine, asked, deciding.by_itself(subject, machine, asked))
    return _ended(tx, job, subject, entered, asked, actor=actor, policy=policy)


def _held(tx: Writer, job_id: str, body: Body, now: int) -> Job | Answer:
    """The job, in the hands of whoever proves it; or the answer that ends the call."""
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    if (repeated := _repeated(tx, job, body)) is not None:
        return repeated
    return decide.holding(job, read_proof(body), now) or job


def _repeated(tx: Writer, job: Job, body: Body) -> Reply | None:
    """The answer once more, where this very delivery has ended."""
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
    return no_object(job.object_type, job.object_id) if subject is None else (subject, machine)


def _concluded(
    tx: Writer, subject: Governed, machine: Machine, asked: Asked, request: Finish, begun_version: int | None
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
    ending = deciding.conclude(subject, machine, asked, request.verdict)
    if is_promotion(subject, ending, machine):
        wrong = unfit_evidence(tx.governance, subject, request.verdict.evidence, asked)
        return ending if wrong is None else deciding.illegal(subject, asked, wrong)
    return ending


def _entered(job: Job, subject: Governed, asked: Asked) -> Reply:
    reading = _reading(asked)
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


def _reading(asked: Asked) -> Reading:
    return read(asked.gates, REQUIRED) if is_high_risk(asked.risk, asked.impact) else NOT_ASKED


def _ended(
    tx: Writer, job: Job, before: Governed, ending: Ending, asked: Asked, *, actor: Actor, policy: Policy
) -> Reply:
    after, ending, trace, followup = ended(tx, job, before, ending, asked, actor=holder(job, actor), policy=policy)
    body: dict[str, Json] = {
        "entered": False,
        "already_ended": False,
        **ending_json(ending, trace),
        "job": job_json(after),
        "object": object_json(ending.subject),
        "followup_job_id": followup,
    }
    return Reply(200, body)
