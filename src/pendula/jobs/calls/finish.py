"""Deliveries end: an ack with the object's next time and the job that follows, a fail with the next try or an alert.

Who may end a delivery is asked before what is wrong with the body: a stranger learns nothing of a job.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.audit import number_of
from pendula.jobs.calls.enqueue import batch_faults, key_hash, result_of, store_all
from pendula.jobs.calls.replies import Answer, Body, Reply, not_found, utc_or_null
from pendula.jobs.decide import Done
from pendula.jobs.model import (
    TERMINAL,
    Actor,
    AuditCheck,
    Code,
    Ended,
    Job,
    Policy,
    Priority,
    Refused,
    Status,
    job_json,
)
from pendula.jobs.objects.gates import is_high_risk
from pendula.jobs.objects.governed import Governed
from pendula.jobs.objects.tiers import tiers
from pendula.jobs.request_reading import Faults
from pendula.jobs.requests import Ack, Enqueue
from pendula.jobs.requests_finishing import read_ack, read_fail, read_proof
from pendula.jobs.store.protocol import ObjectRow, Writer
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

GIVEN_UP = (Status.FAILED, Status.DEAD_LETTER)
FOLLOWUP = "followup:"  # how the key of a follow-up begins where the derived one was taken


def ack(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    proof = read_proof(body)
    if job.status == Status.SUCCEEDED and decide.repeats(job, proof, Ended.ACK):
        row = tx.object(job.object_type, job.object_id)
        return Reply(200, {"already_acked": True, **_acked(job, row, None)})
    if (refused := decide.holding(job, proof, now)) is not None:
        return refused
    request = read_ack(body, policy, now)
    if isinstance(request, Faults):
        return _ack_refusal(request)
    there = tx.object(job.object_type, job.object_id)
    if (refused := _unknown_event(tx, job, request, policy) or _governed(tx, job, request, there, now)) is not None:
        return refused
    done = decide.acked(job, request, now, tx.next_event_id())
    who = holder(job, actor)
    after = tx.change(job, done.job, done.touched, done.reason, who)
    row = _next_time(tx, after, there, request, who, policy)
    followup = _followup(tx, after, request, who, now) if policy.auto_followup else None
    return Reply(200, {"already_acked": False, **_acked(after, row, followup)})


def ack_all(tx: Writer, entries: list[Any], actor: Actor, policy: Policy, now: int) -> list[Json]:
    """Each entry's own answer."""
    ids = (entry.get("job_id") for entry in entries if isinstance(entry, Mapping))
    tx.expect([job_id for job_id in ids if isinstance(job_id, str)])
    return [_ack_entry(tx, entry, actor, policy, now) for entry in entries]


def _ack_entry(tx: Writer, entry: Any, actor: Actor, policy: Policy, now: int) -> dict[str, Json]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("job_id"), str):
        faults = Faults()
        faults.add("job_id", Code.MISSING_FIELD)
        return result_of(faults.refusal())
    members = dict(entry)
    answer = ack(tx, members.pop("job_id"), members, actor, policy, now)
    return result_of(answer) if isinstance(answer, Refused) else {"status": answer.status, **answer.body}


def ack_batch_faults(body: Body) -> Refused | None:
    return batch_faults(body, "acks", {"acks"})


def fail(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    proof = read_proof(body)
    if decide.repeats(job, proof, Ended.FAIL):
        return Reply(200, {"already_failed": True, "retry": job.status not in GIVEN_UP, "job": job_json(job)})
    if (refused := decide.holding(job, proof, now)) is not None:
        return refused
    request = read_fail(body)
    if isinstance(request, Faults):
        return request.refusal()
    after = carry_out(tx, job, decide.failed(job, request, now, policy), holder(job, actor))
    return Reply(200, {"already_failed": False, "retry": after.status == Status.QUEUED, "job": job_json(after)})


def carry_out(tx: Writer, job: Job, done: Done, actor: Actor) -> Job:
    """A change that may be the job's last: then an alert goes with it."""
    event = tx.next_event_id()
    after = tx.change(job, done.job, done.touched, done.reason, actor)
    if after.status == Status.DEAD_LETTER:
        alert_id = f"dead_letter:{after.job_id}:{after.delivery_count}"
        tx.alert(alert_id, _alert(after, alert_id, event, is_risky=_is_risky(tx, after)))
    return after


def holder(job: Job, actor: Actor) -> Actor:
    """A delivery is ended by its worker, whoever carried the message."""
    return Actor("worker", job.worker_id) if job.worker_id is not None else actor


def write_back(job: Job, row: ObjectRow) -> dict[str, Json]:
    """What an object elsewhere is to be told; `version` is its fence, `fence` that of the job's delivery."""
    return {
        "object_type": row.object_type,
        "object_id": row.object_id,
        "next_action_at": utc_or_null(row.next_action_at),
        "state": row.state,
        "version": row.version,
        "job_id": job.job_id,
        "fence": job.delivery_count,
    }


def _unknown_event(tx: Writer, job: Job, request: Ack, policy: Policy) -> Refused | None:
    if policy.audit_event_check is not AuditCheck.STRICT or request.audit_event_id is None:
        return None
    number = number_of(request.audit_event_id)
    if number is not None and tx.event_about(number, job):
        return None
    faults = Faults()
    faults.add("audit_event_id", Code.AUDIT_EVENT_UNKNOWN)
    return faults.refusal("no stored event of this id is about the job or its object")


def _governed(tx: Writer, job: Job, request: Ack, row: ObjectRow | None, now: int) -> Refused | None:
    """The times of a governed object follow from its state: no ack writes them past its machine, and none ends the job
    that the object waits for, or nobody would ever look at it again."""
    # Only what has a state can be governed: for all others this is no look at all.
    if row is None or row.state is None:
        return None
    subject = tx.governance.governed(job.object_type, job.object_id)
    if subject is None or (request.next_action_at is UNSET and not _is_awaited(job, subject, now)):
        return None
    message = f"{job.object_type} {job.object_id} is governed: end its jobs with begin and finish"
    return Refused(Code.OBJECT_GOVERNED, message, {"object_type": job.object_type, "object_id": job.object_id})


def _is_awaited(job: Job, subject: Governed, now: int) -> bool:
    """Whether the object's next action is due and this job is to do it."""
    at = subject.next_action_at
    return job.action == subject.next_action and at is not None and at <= now


def _next_time(tx: Writer, job: Job, there: ObjectRow | None, request: Ack, actor: Actor, policy: Policy) -> ObjectRow:
    """The object with its next time, as it is stored now; `there` is as it was."""
    row = there or ObjectRow(job.object_type, job.object_id, None, 0, None)
    if request.next_action_at is not UNSET and request.next_action_at != row.next_action_at:
        old, new = utc_or_null(row.next_action_at), utc_or_null(request.next_action_at)
        reason = f"{job.action} succeeded"
        tx.object_event(job, {"next_action_at": old}, {"next_action_at": new}, reason, actor)
        row = replace(row, next_action_at=request.next_action_at, version=row.version + 1)
        if policy.objects_elsewhere:
            tx.write_back(write_back(job, row))
    if row is not there:
        tx.put_object(row)
    return row


def _followup(tx: Writer, job: Job, request: Ack, actor: Actor, now: int) -> str | None:
    """The id of the job at the object's next time."""
    if not isinstance(request.next_action_at, int):
        return None
    follow = Enqueue(
        object_type=job.object_type,
        object_id=job.object_id,
        action=request.next_action or job.action,
        run_at=request.next_action_at,
        priority=job.priority,
        max_attempts=job.max_attempts,
        idempotency_key=None,
        correlation_id=job.correlation_id,
        queue=job.queue,
        # The same again has the same arguments; those of another action would mean nothing to it.
        payload=job.payload if request.next_action in (None, job.action) else None,
    )
    return enqueue_next(tx, follow, job.idempotency_key, actor, now)


def enqueue_next(tx: Writer, follow: Enqueue, after: str, actor: Actor, now: int) -> str | None:
    """The id of the job that comes next; `after` is the key of what it follows."""
    assert follow.run_at is not None
    [stored] = store_all(tx, [follow], actor, now)
    if isinstance(stored, Refused) or stored[0].status in TERMINAL:
        # Other work has the key, or work that is over. One of its own, or the object would be forgotten.
        derived = decide.derived_key(follow, follow.run_at)
        own = f"{FOLLOWUP}{key_hash(f'{after} {derived}').hex()}"
        [stored] = store_all(tx, [replace(follow, idempotency_key=own)], actor, now)
    return None if isinstance(stored, Refused) else stored[0].job_id


def _acked(job: Job, row: ObjectRow | None, followup: str | None) -> dict[str, Json]:
    shown = {
        "object_type": job.object_type,
        "object_id": job.object_id,
        "next_action_at": None if row is None else utc_or_null(row.next_action_at),
    }
    return {"job": job_json(job), "object": shown, "followup_job_id": followup}


def _ack_refusal(faults: Faults) -> Refused:
    if len(faults.found) == 1 and faults.found[0]["code"] == Code.INVALID_RESULT:
        return faults.refusal("the only result of an ack is succeeded; a failure is told with the call fail")
    return faults.refusal()


def _is_risky(tx: Writer, job: Job) -> bool:
    """Whether the job was about a governed object of high risk."""
    subject = tx.governance.governed(job.object_type, job.object_id)
    if subject is None:
        return False
    return is_high_risk(*tiers(subject, lambda memory: tx.governance.governed("memory", memory)))


def _alert(job: Job, alert_id: str, event: str, *, is_risky: bool) -> dict[str, Json]:
    return {
        "alert": "job.dead_letter",
        "alert_id": alert_id,
        "severity": "critical" if is_risky or job.priority == Priority.HIGH else "warning",
        "job_id": job.job_id,
        "object_type": job.object_type,
        "object_id": job.object_id,
        "action": job.action,
        "priority": Priority(job.priority).word,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "last_error": job.last_error,
        "audit_event_id": event,
        "at": format_utc(job.updated_at),
    }
