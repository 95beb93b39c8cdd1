"""Renew and release by the holder of a lease; cancel and requeue by an operator, one job or all that match."""

from collections.abc import Callable

from pendula.jobs import decide
from pendula.jobs.calls.filters import Step
from pendula.jobs.decide import JobChange
from pendula.jobs.model import SECOND, Actor, Ended, Job, Policy, Refused, job_json
from pendula.jobs.reasons import Reason, stated
from pendula.jobs.request_reading import Faults
from pendula.jobs.requests import Requeue
from pendula.jobs.requests_finishing import read_proof, read_release, read_renew
from pendula.jobs.store.protocol import Writer
from pendula.jobs.transaction.ending import holder, tell_governance
from pendula.jobs.transaction.replies import Answer, Body, Reply, not_found, utc_or_null
from pendula.kernel.canonical import Json


def renew(tx: Writer, job_id: str, body: Body, policy: Policy, now: int) -> Answer:
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    if (refused := decide.holding(job, read_proof(body), now)) is not None:
        return refused
    request = read_renew(body)
    if isinstance(request, Faults):
        return request.refusal()
    after = decide.renewed(job, request, now, request.lease_us or policy.lease_sec * SECOND)
    tx.touch(after)
    reply: dict[str, Json] = {
        "lease_expires_at": utc_or_null(after.lease_expires_at),
        "cancel_requested_at": utc_or_null(after.cancel_requested_at),
    }
    return Reply(200, reply)


def release(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    proof = read_proof(body)
    if proof.lease_token is not None and decide.repeats(job, proof, Ended.RELEASE):
        return Reply(200, {"job": job_json(job)})
    if (refused := decide.holding(job, proof, now)) is not None:
        return refused
    if (faults := read_release(body)) is not None:
        return faults.refusal()
    done = decide.released(job, now)
    after = tx.change(job, done.job, done.touched, done.reason, holder(job, actor))
    tell_governance(tx, job, after, actor, policy, now)
    return Reply(200, {"job": job_json(after)})


def cancel(tx: Writer, job_id: str, reason: str | Faults | None, actor: Actor, policy: Policy, now: int) -> Answer:
    return _operated(
        tx,
        job_id,
        reason,
        lambda job: decide.cancelled(job, _cancel_reason(reason), now),
        actor,
        policy=policy,
        now=now,
    )


def requeue(tx: Writer, job_id: str, request: Requeue | Faults, actor: Actor, policy: Policy, now: int) -> Answer:
    def decided(job: Job) -> JobChange | Refused:
        assert isinstance(request, Requeue)
        return decide.requeued(job, request.run_at, request.reason, actor, now)

    return _operated(tx, job_id, request, decided, actor, policy=policy, now=now)


def cancel_all(tx: Writer, step: Step, actor: Actor, policy: Policy, now: int) -> Reply:
    """One step of a cancellation by filter."""
    reason = _cancel_reason(step.reason)
    return _operated_all(tx, step, lambda job: decide.cancelled(job, reason, now), actor, policy=policy, now=now)


def _cancel_reason(reason: object) -> Reason:
    return stated(reason) if isinstance(reason, str) and reason else Reason("no_reason")


def requeue_all(tx: Writer, step: Step, actor: Actor, policy: Policy, now: int) -> Reply:
    """One step of a requeue by filter."""
    return _operated_all(
        tx, step, lambda job: decide.requeued(job, step.run_at, step.reason, actor, now), actor, policy=policy, now=now
    )


def _operated_all(
    tx: Writer, step: Step, decided: Callable[[Job], JobChange | Refused], actor: Actor, *, policy: Policy, now: int
) -> Reply:
    jobs = tx.jobs(step.listing)
    page = jobs[: step.limit]
    changed = 0
    for job in page:
        done = decided(job)
        assert isinstance(done, JobChange), "the filter has the status that the call needs"
        if done.job is not job:
            after = tx.change(job, done.job, done.touched, done.reason, actor)
            tell_governance(tx, job, after, actor, policy, now)
            changed += 1
    more = page[-1].job_id if len(jobs) > step.limit else None
    return Reply(200, {"matched": len(page), "changed": changed, "next_cursor": more})


def _operated(
    tx: Writer,
    job_id: str,
    read: object,
    decided: Callable[[Job], JobChange | Refused],
    actor: Actor,
    *,
    policy: Policy,
    now: int,
) -> Answer:
    """An unknown job is reported before the faults of the body."""
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    if isinstance(read, Faults):
        return read.refusal()
    done = decided(job)
    if isinstance(done, Refused):
        return done
    if done.job is job:
        return Reply(200, {"job": job_json(job)})
    after = tx.change(job, done.job, done.touched, done.reason, actor)
    tell_governance(tx, job, after, actor, policy, now)
    return Reply(200, {"job": job_json(after)})
