"""Renew and release by the holder of a lease; cancel and requeue by an operator, one job or all that match.

Setting the store's time undoes what a wrong clock did to jobs and plans, as far as possible. Delays count from the
right time again: the lease of a running job, the delay before a retry. A job that was enqueued without a time is due
now. A time that a caller named is kept: it may or may not have been meant as a delay. What ran too early has run.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.calls import plans
from pendula.jobs.calls.queries import listing_of
from pendula.jobs.decide import JobChange
from pendula.jobs.messages import (
    CANCELLABLE,
    REVIVABLE,
    CancelBatch,
    Freed,
    FreeKey,
    OneJob,
    Operated,
    Release,
    Renew,
    Renewed,
    Requeue,
    RequeueBatch,
    SetTime,
    Stated,
    TimeSet,
    job_of,
    read_proof,
    utc_or_null,
)
from pendula.jobs.model import BATCH_MOST, LEASE_MOST_SEC, SECOND, Actor, Code, Ended, Job, Policy, Refused, Status
from pendula.jobs.reasons import Reason, stated
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.store.protocol import Listing, Writer
from pendula.jobs.transaction import Body, holder, not_found, tell_governance
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc


class Step(Struct, frozen=True):
    """One step of a batch call: the jobs to look at, how many at most, and what to do with them."""

    listing: Listing
    limit: int
    reason: str | None = None
    run_at: int | None = None


def step_of(request: CancelBatch | RequeueBatch) -> Step:
    """A step of a batch call; without a status filter, for jobs of the first status that the call works on."""
    limit = request.limit or BATCH_MOST
    listing = listing_of(request.filter, limit + 1, request.cursor)
    if isinstance(request, CancelBatch):
        return Step(_or_status(listing, CANCELLABLE[0]), limit, request.reason)
    return Step(_or_status(listing, REVIVABLE[0]), limit, request.reason, request.run_at)


def _or_status(listing: Listing, status: str) -> Listing:
    return listing if listing.status is not None else replace(listing, status=str(status))


def renew(tx: Writer, job_id: str, body: Body, policy: Policy, now: int) -> Renewed | Refused:
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    if (refused := decide.holding(job, read_proof(body), now)) is not None:
        return refused
    request = read(Renew, body, policy, now)
    if isinstance(request, Faults):
        return request.refusal()
    after = decide.renewed(job, request, now, (request.lease_sec or policy.lease_sec) * SECOND)
    tx.touch(after)
    assert after.lease_expires_at is not None
    return Renewed(format_utc(after.lease_expires_at), utc_or_null(after.cancel_requested_at))


def release(tx: Writer, job_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> OneJob | Refused:
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    proof = read_proof(body)
    if proof.lease_token is not None and decide.repeats(job, proof, Ended.RELEASE):
        return OneJob(job_of(job))
    if (refused := decide.holding(job, proof, now)) is not None:
        return refused
    if isinstance(request := read(Release, body, policy, now), Faults):
        return request.refusal()
    done = decide.released(job, now)
    after = tx.change(job, done.job, done.touched, done.reason, holder(job, actor))
    tell_governance(tx, job, after, actor, policy, now)
    return OneJob(job_of(after))


def cancel(
    tx: Writer, job_id: str, request: Stated | Faults, actor: Actor, policy: Policy, now: int
) -> OneJob | Refused:
    def decided(job: Job) -> JobChange | Refused:
        assert isinstance(request, Stated)
        return decide.cancelled(job, _cancel_reason(request.reason), now)

    return _operated(tx, job_id, request, decided, actor, policy=policy, now=now)


def requeue(
    tx: Writer, job_id: str, request: Requeue | Faults, actor: Actor, policy: Policy, now: int
) -> OneJob | Refused:
    def decided(job: Job) -> JobChange | Refused:
        assert isinstance(request, Requeue)
        return decide.requeued(job, request.run_at, request.reason, actor, now)

    return _operated(tx, job_id, request, decided, actor, policy=policy, now=now)


def cancel_all(tx: Writer, step: Step, actor: Actor, policy: Policy, now: int) -> Operated:
    """One step of a cancellation by filter."""
    reason = _cancel_reason(step.reason)
    return _operated_all(tx, step, lambda job: decide.cancelled(job, reason, now), actor, policy=policy, now=now)


def _cancel_reason(reason: str | None) -> Reason:
    return stated(reason) if reason else Reason("no_reason")


def requeue_all(tx: Writer, step: Step, actor: Actor, policy: Policy, now: int) -> Operated:
    """One step of a requeue by filter."""
    return _operated_all(
        tx, step, lambda job: decide.requeued(job, step.run_at, step.reason, actor, now), actor, policy=policy, now=now
    )


def _operated_all(
    tx: Writer, step: Step, decided: Callable[[Job], JobChange | Refused], actor: Actor, *, policy: Policy, now: int
) -> Operated:
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
    return Operated(len(page), changed, more)


def _operated(
    tx: Writer,
    job_id: str,
    request: object,
    decided: Callable[[Job], JobChange | Refused],
    actor: Actor,
    *,
    policy: Policy,
    now: int,
) -> OneJob | Refused:
    """An unknown job is reported before the faults of the body."""
    job = tx.job(job_id)
    if job is None:
        return not_found(job_id)
    if isinstance(request, Faults):
        return request.refusal()
    done = decided(job)
    if isinstance(done, Refused):
        return done
    if done.job is job:
        return OneJob(job_of(job))
    after = tx.change(job, done.job, done.touched, done.reason, actor)
    tell_governance(tx, job, after, actor, policy, now)
    return OneJob(job_of(after))


def free_key(tx: Writer, body: Body, actor: Actor, policy: Policy, now: int) -> Freed | Refused:
    """Free the key of a deleted job. An unused key is free already; the key of a stored job is refused."""
    request = read(FreeKey, body, policy, now)
    if isinstance(request, Faults):
        return request.refusal()
    key = request.idempotency_key
    if (holder_of_key := tx.by_keys([key]).get(key)) is not None:
        details: dict[str, Json] = {"idempotency_key": key, "job_id": holder_of_key.job_id}
        return Refused(Code.IDEMPOTENCY_KEY_CONFLICT, "key is held by a job in the store", details)
    return Freed(tx.free(key, request.reason, actor, now), key)


KEPT_SHOWN = 100
REASON = Reason("time_set")


class Corrected(Struct):
    """How many jobs got another time, and which kept theirs."""

    due: int = 0
    leases: int = 0
    kept: list[str] = []


def set_time(tx: Writer, body: Body, policy: Policy, actor: Actor, right: int, before: int) -> TimeSet | Refused:
    """Set the store's time to `right`. Where it was not ahead, only the clock is accepted."""
    request = read(SetTime, body, policy, right)
    if isinstance(request, Faults):
        return request.refusal()
    jobs = tx.after(right)
    tx.time_set(right)
    corrected = Corrected()
    for job in jobs:
        _correct(tx, job, actor, right, corrected)
    replanned = sum(plans.plan_again(tx, plan, policy, actor, right) for plan in tx.plans())
    report: dict[str, Json] = {
        "due": corrected.due,
        "leases": corrected.leases,
        "kept": len(corrected.kept),
        "plans": replanned,
    }
    tx.time_event({"time": format_utc(before)}, {"time": format_utc(right), **report}, request.reason, actor, right)
    return TimeSet(
        before=format_utc(before),
        now=format_utc(right),
        due=corrected.due,
        leases=corrected.leases,
        kept=len(corrected.kept),
        plans=replanned,
        kept_jobs=corrected.kept[:KEPT_SHOWN],
    )


def _correct(tx: Writer, job: Job, actor: Actor, right: int, corrected: Corrected) -> None:
    now = replace(job, created_at=min(job.created_at, right), updated_at=right)
    if job.status == Status.RUNNING:
        assert job.lease_expires_at is not None
        lease = min(max(job.lease_expires_at - job.updated_at, 0), LEASE_MOST_SEC * SECOND)
        tx.change(now, replace(now, lease_expires_at=right + lease), ("lease_expires_at",), REASON, actor)
        corrected.leases += 1
    elif job.status == Status.QUEUED and job.run_at > right:
        by_clock = job.run_at >= job.updated_at if job.delivery_count else job.run_at == job.created_at
        if by_clock:
            run_at = right + job.run_at - job.updated_at
            tx.change(now, replace(now, run_at=run_at), ("run_at",), REASON, actor)
            corrected.due += 1
        elif job.created_at > right:
            corrected.kept.append(job.job_id)
