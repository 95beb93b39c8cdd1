"""End a delivery: ack with the object's next time and the follow-up, fail with the retry or an alert.

The lease is checked before the body, so that a caller without it learns nothing about the job.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.hooks import governance
from pendula.jobs.messages import (
    Ack,
    Acked,
    AckResult,
    AckResults,
    Enqueue,
    Fail,
    Failed,
    ObjectTime,
    job_of,
    read_proof,
    status_of,
    utc_or_null,
)
from pendula.jobs.model import SYSTEM, Actor, AuditCheck, Code, Ended, Job, Policy, Refused, Status, number_of
from pendula.jobs.reasons import Reason
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.store.protocol import ObjectRow, Writer
from pendula.jobs.transaction import (
    OVER,
    Body,
    batch_faults,
    carry_out,
    enqueue_next,
    error_of,
    holder,
    not_found,
    tell_governance,
    write_back,
)


def ack(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Acked | Refused:
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    proof = read_proof(body)
    if job.status == Status.SUCCEEDED and decide.repeats(job, proof, Ended.ACK):
        row = tx.object(job.object_type, job.object_id)
        return _acked(job, row, None, already=True)
    if (refused := decide.holding(job, proof, now)) is not None:
        return refused
    request = read(Ack, body, policy, now)
    if isinstance(request, Faults):
        return _ack_refusal(request)
    before = tx.object(job.object_type, job.object_id)
    if (refused := _unknown_event(tx, job, request, policy)) is not None:
        return refused
    # Only objects with a state can be governed: for all others this costs no query.
    if before is not None and before.state is not None and tx.is_governed(job.object_type, job.object_id):
        return _ack_governed(tx, job, request, actor, policy, now)
    done = decide.acked(job, request, now, tx.next_event_id())
    worker = holder(job, actor)
    after = tx.change(job, done.job, done.touched, done.reason, worker)
    row = _next_time(tx, after, before, request, worker, policy)
    followup = _followup(tx, after, request, worker, now) if policy.auto_followup else None
    return _acked(after, row, followup)


def ack_all(tx: Writer, entries: Sequence[Any], actor: Actor, policy: Policy, now: int) -> AckResults:
    """One result for each entry."""
    ids = (entry.get("job_id") for entry in entries if isinstance(entry, Mapping))
    tx.expect([job_id for job_id in ids if isinstance(job_id, str)])
    return AckResults([_result(_ack_entry(tx, entry, actor, policy, now)) for entry in entries])


def _ack_entry(tx: Writer, entry: Any, actor: Actor, policy: Policy, now: int) -> Acked | Refused:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("job_id"), str):
        faults = Faults()
        faults.add("job_id", Code.MISSING_FIELD)
        return faults.refusal()
    members = dict(entry)
    return ack(tx, members.pop("job_id"), members, actor, policy, now)


def _result(answer: Acked | Refused) -> AckResult:
    if isinstance(answer, Refused):
        return AckResult(status_of(answer), error=error_of(answer))
    return AckResult(200, answer.already_acked, answer.job, answer.object, answer.followup_job_id)


def ack_batch_faults(body: Body) -> Refused | None:
    return batch_faults(body, "acks", {"acks"})


def fail(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Failed | Refused:
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    proof = read_proof(body)
    if decide.repeats(job, proof, Ended.FAIL):
        return Failed(already_failed=True, retry=job.status not in OVER, job=job_of(job))
    if (refused := decide.holding(job, proof, now)) is not None:
        return refused
    request = read(Fail, body, policy, now)
    if isinstance(request, Faults):
        return request.refusal()
    after = carry_out(tx, job, decide.failed(job, request, now, policy), holder(job, actor))
    tell_governance(tx, job, after, SYSTEM, policy, now)
    return Failed(already_failed=False, retry=after.status == Status.QUEUED, job=job_of(after))


def _unknown_event(tx: Writer, job: Job, request: Ack, policy: Policy) -> Refused | None:
    if policy.audit_event_check is not AuditCheck.STRICT or request.audit_event_id is None:
        return None
    number = number_of(request.audit_event_id)
    if number is not None and tx.event_about(number, job):
        return None
    faults = Faults()
    faults.add("audit_event_id", Code.AUDIT_EVENT_UNKNOWN)
    return faults.refusal("no stored event of this id is about the job or its object")


def _ack_governed(tx: Writer, job: Job, request: Ack, actor: Actor, policy: Policy, now: int) -> Acked | Refused:
    """A governed object keeps its state and gets its next time, unless its gates forbid even that."""
    ended = governance().may_finish(tx, job, request, holder(job, actor), policy, now)
    if isinstance(ended, Refused):
        return ended
    row = tx.object(job.object_type, job.object_id)
    return _acked(ended.job, row, ended.followup)


def _next_time(tx: Writer, job: Job, before: ObjectRow | None, request: Ack, actor: Actor, policy: Policy) -> ObjectRow:
    """Store the next time of the object and return its row; `before` is its row until now."""
    row = before or ObjectRow(job.object_type, job.object_id, None, 0, None)
    if request.next_action_at is not UNSET and request.next_action_at != row.next_action_at:
        old, new = utc_or_null(row.next_action_at), utc_or_null(request.next_action_at)
        reason = Reason("action_succeeded", {"action": job.action})
        tx.object_event(job, {"next_action_at": old}, {"next_action_at": new}, reason, actor)
        row = replace(row, next_action_at=request.next_action_at, version=row.version + 1)
        if policy.objects_elsewhere:
            tx.write_back(write_back(job, row))
    if row is not before:
        tx.put_object(row)
    return row


def _followup(tx: Writer, job: Job, request: Ack, actor: Actor, now: int) -> str | None:
    """Enqueue the job at the object's next time and return its id."""
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
        # The same action has the same arguments; another action has none.
        payload=job.payload if request.next_action in (None, job.action) else None,
    )
    return enqueue_next(tx, follow, job.idempotency_key, actor, now)


def _acked(job: Job, row: ObjectRow | None, followup: str | None, *, already: bool = False) -> Acked:
    at = None if row is None else utc_or_null(row.next_action_at)
    return Acked(already, job_of(job), ObjectTime(job.object_type, job.object_id, at), followup)


def _ack_refusal(faults: Faults) -> Refused:
    if len(faults.entries) == 1 and faults.entries[0]["code"] == Code.INVALID_RESULT:
        return faults.refusal("the only result of an ack is succeeded; report a failure with the call fail")
    return faults.refusal()
