"""Correct the store's time, and undo what a wrong clock did to jobs and plans as far as possible.

Delays count from the right time again: the lease of a running job, the delay before a retry. A job that was enqueued
without a time is due now. A time that a caller named is kept: it may or may not have been meant as a delay. What ran
too early has run.
"""

from msgspec import Struct
from msgspec.structs import replace

from pendula.jobs.calls import plans
from pendula.jobs.messages import SetTime, TimeSet
from pendula.jobs.model import LEASE_MOST_SEC, SECOND, Actor, Job, Policy, Refused, Status
from pendula.jobs.reasons import Reason
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.store.protocol import Writer
from pendula.jobs.transaction.replies import Body
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

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
