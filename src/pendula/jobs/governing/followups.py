"""The one scheduled job of an object, for its next date: created with the date and replaced with it.

Jobs that a client enqueued for the object stay.
"""

from pendula.jobs import decide
from pendula.jobs.decide import SUPERSEDED
from pendula.jobs.model import Actor, Job, Policy, Status
from pendula.jobs.objects.governed import Governed
from pendula.jobs.requests import Enqueue
from pendula.jobs.store.protocol import Listing, Writer
from pendula.jobs.transaction.following import FOLLOWUP, enqueue_next

RUNNING_MOST = 1000  # jobs of one object


def follow_up(
    tx: Writer, before: Governed | None, after: Governed, actor: Actor, policy: Policy, *, job: Job | None = None
) -> str | None:
    """Enqueue the job for the object's next date and return its id. The job for the previous date is given up, unless
    it is `job` itself."""
    if not policy.auto_followup:
        return None
    following = _next(tx, after, actor, policy, job)
    if before is not None and not (job is not None and stands_for(before, job)):
        instead = "nothing_left" if following is None else following
        for waiting in waiting_jobs(tx, before):
            if waiting.job_id != following and stands_for(before, waiting):
                give_up(tx, waiting, f"{SUPERSEDED}{instead}", actor, after.updated_at)
                tx.governance.count("superseded", after.object_type)
    return following


def waiting_jobs(tx: Writer, subject: Governed) -> list[Job]:
    """The queued jobs of an object, the oldest first."""
    jobs = (tx.job(job_id) for job_id in tx.governance.waiting(subject.object_type, subject.object_id))
    return [job for job in jobs if job is not None and job.status == Status.QUEUED]


def give_up(tx: Writer, job: Job, error: str, actor: Actor, now: int) -> None:
    """End a waiting job that is not needed any more."""
    done = decide.given_up(job, error, now)
    tx.change(job, done.job, done.touched, done.reason, actor)


def _next(tx: Writer, subject: Governed, actor: Actor, policy: Policy, job: Job | None) -> str | None:
    if subject.next_action is None or subject.next_action_at is None:
        return None
    follow = Enqueue(
        object_type=subject.object_type,
        object_id=subject.object_id,
        action=subject.next_action,
        run_at=subject.next_action_at,
        priority=policy.default_priority if job is None else job.priority,
        max_attempts=policy.default_max_attempts if job is None else job.max_attempts,
        idempotency_key=None,
        correlation_id=None if job is None else job.correlation_id,
        queue="default" if job is None else job.queue,
    )
    after = f"{subject.ref} {subject.version}" if job is None else job.idempotency_key
    return enqueue_next(tx, follow, after, actor, subject.updated_at)


def stands_for(subject: Governed, job: Job) -> bool:
    """Whether this is the scheduled job of the object's date. (A retry changes `run_at`, never `scheduled_for`.)"""
    if (job.action, job.scheduled_for) != (subject.next_action, subject.next_action_at):
        return False
    derived = decide.derived_key(job, job.scheduled_for)
    return job.idempotency_key == derived or job.idempotency_key.startswith(FOLLOWUP)


def is_awaited(tx: Writer, subject: Governed, *, but: Job) -> bool:
    """Whether another job waits or runs for the object's date."""
    listing = Listing(
        object_type=subject.object_type, object_id=subject.object_id, status=Status.RUNNING, limit=RUNNING_MOST
    )
    jobs = [*waiting_jobs(tx, subject), *tx.jobs(listing)]
    return any(job.job_id != but.job_id and stands_for(subject, job) for job in jobs)
