"""The end of a delivery: the change, in the name of its worker, and the alert for a dead letter."""

from pendula.jobs.decide import JobChange
from pendula.jobs.hooks import governance
from pendula.jobs.messages import utc_or_null
from pendula.jobs.model import Actor, Job, Policy, Priority, Status
from pendula.jobs.store.protocol import ObjectRow, Writer
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

OVER = (Status.FAILED, Status.DEAD_LETTER)


def carry_out(tx: Writer, job: Job, done: JobChange, actor: Actor) -> Job:
    """Apply a change; one that makes a dead letter stores an alert, too."""
    event = tx.next_event_id()
    after = tx.change(job, done.job, done.touched, done.reason, actor)
    if after.status == Status.DEAD_LETTER:
        alert_id = f"dead_letter:{after.job_id}:{after.delivery_count}"
        if job.status != Status.RUNNING:
            alert_id += f":{event}"  # without a delivery the same job may fail again after a requeue
        is_risky = tx.is_governed(after.object_type, after.object_id) and governance().on_dead_letter(tx, after)
        tx.alert(alert_id, _alert(after, alert_id, event, is_risky=is_risky))
    return after


def tell_governance(tx: Writer, before: Job, after: Job, actor: Actor, policy: Policy, now: int) -> None:
    """Report a job that has failed for good, if its object is governed."""
    if after.status in OVER and tx.is_governed(after.object_type, after.object_id):
        governance().on_end(tx, before, after, actor, policy, now)


def holder(job: Job, actor: Actor) -> Actor:
    """The worker of the delivery, which ends it whatever token the call came with."""
    return Actor("worker", job.worker_id) if job.worker_id is not None else actor


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


def write_back(job: Job, row: ObjectRow) -> dict[str, Json]:
    """The write-back for an object in another database; `version` is its fence, `fence` that of the delivery."""
    return {
        "object_type": row.object_type,
        "object_id": row.object_id,
        "next_action_at": utc_or_null(row.next_action_at),
        "state": row.state,
        "version": row.version,
        "job_id": job.job_id,
        "fence": job.delivery_count,
    }
