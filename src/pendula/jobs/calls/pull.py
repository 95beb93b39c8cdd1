"""Deliver due jobs to a worker under a lease, after returning those whose lease has expired."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from pendula.jobs import decide, messages
from pendula.jobs.decide import ASIDE_MOST, Busy, weighted
from pendula.jobs.hooks import governance
from pendula.jobs.messages import Pull, job_of
from pendula.jobs.model import SECOND, SYSTEM, VERIFICATIONS, Actor, Job, Policy, PullOrder, Status
from pendula.jobs.store.protocol import Writer
from pendula.jobs.transaction import carry_out, tell_governance, unreadable
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc

POLL_SECONDS = 0.05  # after which a waiting pull sees writes of another process
LEAST_SECONDS = 0.001
RECLAIM_MOST = 256  # expired leases that one transaction returns, so that it stays short


class Pulled(Struct, frozen=True):
    """The result of one step of a pull: the time up to which jobs were due, the delivered jobs with their tokens, and
    how many expired leases were returned. `cut_short`: more is left than one transaction should do; take another step.
    """

    due_by: int
    jobs: list[messages.Job]
    reclaimed: int
    cut_short: bool = False

    def reply(self) -> messages.Pulled:
        return messages.Pulled(format_utc(self.due_by), len(self.jobs), self.reclaimed, self.jobs)


def give_due(
    tx: Writer, request: Pull, policy: Policy, now: int, tokens: Callable[[], str], withheld: set[int] | None = None
) -> Pulled:
    """Deliver due jobs. Leases count from `now`, the store's time, whatever time the request names.

    Jobs that governance withholds are added to `withheld`, and skipped in further steps of the same pull.
    """
    withheld = set() if withheld is None else withheld
    lease_us = (request.lease_sec or policy.lease_sec) * SECOND
    worker = Actor("worker", request.worker_id)
    due_by = now if request.now is None else request.now
    reclaimed = reclaim(tx, policy, now)
    if reclaimed == RECLAIM_MOST:
        # A returned job may be due before all others.
        return Pulled(due_by, [], reclaimed, cut_short=True)
    if not policy.one_running_per_object:
        tx.bring_back(ASIDE_MOST)
    delivered = []
    fences_from: int | None = None  # read with the first job
    is_governing = tx.any_governed()
    busy, before = _busy(tx, policy, is_governing=is_governing), len(withheld)
    due_jobs = tx.due(request, due_by, _order(policy, busy))
    if busy is not None and busy.aside:
        tx.set_aside(busy.aside)  # before a job ends that brings them back
    for due in due_jobs:
        # Withholding a job may have ended others of its object.
        job = due if len(withheld) == before else tx.job(due.job_id)
        if job is None or job.seq in withheld or job.status != Status.QUEUED:
            continue
        fences_from = tx.fences_from() if fences_from is None else fences_from
        fence = decide.next_fence(job, fences_from)
        if is_governing and not governance().may_deliver(tx, job, fence, worker, policy, now):
            withheld.add(job.seq)
            continue
        token = tokens()
        try:
            done = decide.deliver(job, request.worker_id, decide.hashed(token), now, lease_us, fences_from)
            after = tx.change(job, done.job, done.touched, done.reason, worker)
            delivered.append(job_of(after, token))
        except (LookupError, TypeError, InputRefused) as trouble:
            raise unreadable(job, trouble) from trouble
    has_more = len(withheld) > before or (busy is not None and busy.is_full)
    return Pulled(due_by, delivered, reclaimed, cut_short=has_more and not delivered)


def _busy(tx: Writer, policy: Policy, *, is_governing: bool) -> Busy | None:
    """The objects with a running job that excludes others: any job, or a verification of a governed object.

    Each verification takes a unit of the object's budget, and all but the first to finish would end in a conflict.
    """
    if policy.one_running_per_object:
        return Busy(tx.running_objects())
    if not is_governing:
        return None
    return Busy(
        tx.running_objects(VERIFICATIONS),
        lambda job: job.action in VERIFICATIONS and tx.is_governed(job.object_type, job.object_id),
    )


def reclaim(tx: Writer, policy: Policy, now: int) -> int:
    """Return jobs with an expired lease; returns how many. At `RECLAIM_MOST` there may be more."""
    expired = tx.expired(now, RECLAIM_MOST)
    for job in expired:
        after = carry_out(tx, job, decide.expired(job, now, policy), SYSTEM)
        tell_governance(tx, job, after, SYSTEM, policy, now)
    return len(expired)


def _order(policy: Policy, busy: Busy | None) -> Callable[[Iterable[Job], int], list[Job]] | None:
    starts = policy.head_start_sec if policy.pull_order is PullOrder.WEIGHTED else (0, 0, 0)
    if busy is not None or policy.pull_order is PullOrder.WEIGHTED:
        return lambda jobs, limit: weighted(jobs, limit, starts, busy)
    return None


def seconds_to_wait(request: Pull, coming: int | None, now: int, until: int) -> float:
    """How long until there may be a job: one due at `coming`, or one that another process wrote."""
    # The `now` of a request does not advance, so only a write can make a job due for it.
    # A job that is due already and was not delivered is not for this caller.
    due = until if coming is None or request.now is not None or coming <= now else coming
    return min(POLL_SECONDS, max(0, min(due, until) - now) / SECOND)
