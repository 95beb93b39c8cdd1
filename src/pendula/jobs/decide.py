"""Transitions of a job: pure functions of the job, the request and the time, which return a change or a refusal.

No clock, no disk, no randomness. A store applies a change in one transaction.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from heapq import heappop, heappush

from msgspec import Struct
from msgspec.structs import replace

from pendula.jobs.messages import Ack, Enqueue, Fail, Proof, Renew
from pendula.jobs.model import (
    CUT,
    ERROR_MOST,
    SECOND,
    Actor,
    Code,
    Ended,
    Job,
    Policy,
    Refused,
    RetryBase,
    Status,
    job_id,
)
from pendula.jobs.reasons import Reason, error_of, reason_json
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

BACKOFF_FIRST_SEC = 60
BACKOFF_MOST_SEC = 3600
LAST = 253_402_300_799_999_999  # the last microsecond of 9999, beyond which no time can be written


class JobChange(Struct, frozen=True, gc=False):
    """The changed job, the fields that change, and the reason for the trail."""

    job: Job
    touched: tuple[str, ...]
    reason: Reason


DELIVERY = ("delivery_count", "lease_expires_at", "status", "worker_id")
ENDED = ("lease_expires_at", "status", "worker_id")
ACKED = ("audit_event_id", "lease_expires_at", "outcome", "status", "worker_id")
TRIED = ("attempt", "last_error", "lease_expires_at", "run_at", "status", "worker_id")
CANCELLED = ("last_error", "status")
CANCEL_REQUESTED = ("cancel_requested_at",)
GIVEN_UP = ("outcome", *TRIED)
REQUEUED = ("attempt", "run_at", "status")
REVIVABLE = (Status.DEAD_LETTER, Status.FAILED)
OUTCOME_CANCELLED = "cancelled"
OUTCOME_DEFERRED = "deferred"
SUPERSEDED = "superseded: "
SUCCEEDED = Reason("succeeded")
IS_IN_STATUS = {
    Status.QUEUED.value: "is queued",
    Status.RUNNING.value: "is running",
    Status.SUCCEEDED.value: "has succeeded",
    Status.FAILED.value: "has failed",
    Status.DEAD_LETTER.value: "is a dead letter",
}


def hashed(token: str) -> bytes:
    """The stored hash of a lease token."""
    return sha256(token.encode(errors="surrogatepass")).digest()[:16]


def derived_key(request: Enqueue | Job, run_at: int) -> str:
    return f"{request.object_id}:{request.action}:{format_utc(run_at)}"


def new_job(request: Enqueue, seq: int, now: int) -> Job | Refused:
    """The job of a request whose key is free."""
    run_at = now if request.run_at is None else request.run_at
    if run_at < now:
        return past_run_at(run_at, now)
    key = request.idempotency_key
    return Job(
        seq=seq,
        job_id=job_id(seq),
        object_type=request.object_type,
        object_id=request.object_id,
        action=request.action,
        run_at=run_at,
        priority=request.priority,
        attempt=0,
        max_attempts=request.max_attempts,
        idempotency_key=derived_key(request, run_at) if key is None else key,
        status="queued",
        last_error=None,
        created_at=now,
        updated_at=now,
        scheduled_for=run_at,
        correlation_id=request.correlation_id,
        queue=request.queue,
        payload=request.payload,
    )


def past_run_at(run_at: int, now: int) -> Refused:
    details: dict[str, Json] = {
        "run_at": format_utc(run_at),
        "now": format_utc(now),
        "fields": [{"field": "run_at", "code": Code.RUN_AT_IN_PAST.value}],
    }
    return Refused(Code.RUN_AT_IN_PAST, "run_at must not be earlier than now", details)


def duplicate(request: Enqueue, stored: Job) -> Job | Refused:
    """The stored job where the request is for the same work, else a conflict."""
    differs = [
        name for name in ("object_type", "object_id", "action") if getattr(request, name) != getattr(stored, name)
    ]
    if request.run_at is not None and request.run_at != stored.scheduled_for:
        differs.append("scheduled_for")
    if request.payload != stored.payload:
        differs.append("payload")
    if not differs:
        return stored
    details: dict[str, Json] = {
        "idempotency_key": stored.idempotency_key,
        "job_id": stored.job_id,
        "differs": differs,
    }
    return Refused(Code.IDEMPOTENCY_KEY_CONFLICT, "key is held by another job", details)


def deliver(job: Job, worker: str, lease: bytes, now: int, lease_us: int, fences_from: int = 0) -> JobChange:
    """Deliver a due job to a worker. The fence rises; for a job from before a restore, above any earlier fence."""
    fence = next_fence(job, fences_from)
    given = replace(
        job,
        status="running",
        worker_id=worker,
        lease=lease,
        lease_expires_at=now + lease_us,
        delivery_count=fence,
        updated_at=now,
    )
    if job.progress is not None:
        given = replace(given, progress=None, progress_note=None)
    return JobChange(given, DELIVERY, Reason("delivered", {"worker_id": worker}))


def next_fence(job: Job, fences_from: int = 0) -> int:
    """The fence of its next delivery."""
    return max(job.delivery_count, fences_from if job.seq <= fences_from else 0) + 1


def holding(job: Job, proof: Proof, now: int) -> Refused | None:
    """The refusal for a caller without the lease of this delivery; None with it."""
    if job.status != Status.RUNNING:
        return _wrong_state(job, Code.JOB_NOT_RUNNING, "only a running job can be ended, renewed or released")
    if proof.worker_id is not None and proof.worker_id != job.worker_id:
        return _lost(job)
    if proof.lease_token is None:
        if job.expired:
            message = "an earlier worker may still hold this job; the lease token is required"
            return Refused(Code.LEASE_TOKEN_REQUIRED, message, {"job_id": job.job_id})
    elif hashed(proof.lease_token) != job.lease:
        return _lost(job)
    assert job.lease_expires_at is not None
    if job.lease_expires_at <= now:
        details: dict[str, Json] = {
            "job_id": job.job_id,
            "lease_expires_at": format_utc(job.lease_expires_at),
            "now": format_utc(now),
        }
        return Refused(Code.LEASE_EXPIRED, "the lease has expired", details)
    return None


def _lost(job: Job) -> Refused:
    details: dict[str, Json] = {
        "job_id": job.job_id,
        "delivery_count": job.delivery_count,
        "current_worker_id": job.worker_id,
    }
    return Refused(Code.LEASE_LOST, "another delivery holds this job", details)


def repeats(job: Job, proof: Proof, ended: Ended) -> bool:
    """Whether this call was granted before: its reply was lost, and the caller repeats it."""
    if job.ended != ended:
        return False
    if proof.lease_token is not None:
        return job.last_lease is not None and hashed(proof.lease_token) == job.last_lease
    return job.delivery_count == 1 and job.status != Status.RUNNING


def acked(job: Job, ack: Ack, now: int, event: str | None = None) -> JobChange:
    """Succeeded; `event` is the id of the event, and is linked unless the caller names another."""
    fields = {"outcome": ack.outcome, "audit_event_id": ack.audit_event_id or event}
    if ack.outcome_result is None:
        return JobChange(_ended(job, Ended.ACK, now, status="succeeded", **fields), ACKED, SUCCEEDED)
    after = _ended(job, Ended.ACK, now, status="succeeded", outcome_result=ack.outcome_result, **fields)
    return JobChange(after, (*ACKED, "outcome_result_sha256"), SUCCEEDED)


def failed(job: Job, fail: Fail, now: int, policy: Policy) -> JobChange:
    """A failed attempt: retry later, or end the job."""
    attempt = job.attempt + 1
    error = cut(fail.error)
    if fail.cancelled or (fail.retryable and job.cancel_requested_at is not None):
        return _given_up(job, attempt, error, Ended.FAIL, now)
    if not fail.retryable:
        after = _ended(job, Ended.FAIL, now, status="failed", attempt=attempt, last_error=error)
        return JobChange(after, TRIED, Reason("failed", {"error": error}))
    delay = fail.retry_delay_us if isinstance(fail.retry_delay_us, int) else backoff_us(job.job_id, attempt, policy)
    return _again(job, attempt, error, delay, Ended.FAIL, now=now, policy=policy)


def expired(job: Job, now: int, policy: Policy) -> JobChange:
    """The lease expired: a failed attempt, whose holder may still be alive."""
    delay = policy.lease_expiry_retry_delay_sec * SECOND
    error = f"lease_expired: {job.worker_id}"
    if job.cancel_requested_at is not None:
        done = _given_up(job, job.attempt + 1, error, Ended.EXPIRY, now)
    else:
        done = _again(job, job.attempt + 1, error, delay, Ended.EXPIRY, now=now, policy=policy)
    return JobChange(replace(done.job, expired=1), done.touched, done.reason)


def _again(job: Job, attempt: int, error: str, delay: int, ended: Ended, *, now: int, policy: Policy) -> JobChange:
    if attempt >= job.max_attempts:
        after = _ended(job, ended, now, status="dead_letter", attempt=attempt, last_error=error)
        return JobChange(after, TRIED, Reason("dead_letter", {"error": error}))
    run_at = job.run_at
    if delay or ended is Ended.FAIL:
        base = now if policy.retry_base is RetryBase.NOW else job.run_at
        run_at = max(base + delay, now + min(delay, policy.min_retry_gap_sec * SECOND))
        run_at = min(run_at, LAST)
    after = _ended(job, ended, now, status="queued", attempt=attempt, last_error=error, run_at=run_at)
    return JobChange(after, TRIED, Reason("retry", {"error": error}))


def _given_up(job: Job, attempt: int, error: str, ended: Ended, now: int) -> JobChange:
    """Cancellation was requested and the delivery did not succeed: it is not retried."""
    fields = {"attempt": attempt, "last_error": error, "outcome": OUTCOME_CANCELLED}
    return JobChange(_ended(job, ended, now, status="failed", **fields), GIVEN_UP, Reason("given_up", {"error": error}))


def released(job: Job, now: int) -> JobChange:
    if job.cancel_requested_at is not None:
        return _given_up(job, job.attempt, "cancelled: released", Ended.RELEASE, now)
    return JobChange(_ended(job, Ended.RELEASE, now, status="queued"), ENDED, Reason("released"))


def deferred(job: Job, run_at: int, because: Reason, now: int) -> JobChange:
    """Deferred by a gate: queued for later, without using up an attempt."""
    if job.cancel_requested_at is not None:
        return _given_up(job, job.attempt, "cancelled: deferred", Ended.RELEASE, now)
    after = _ended(job, Ended.RELEASE, now, status="queued", run_at=run_at, outcome=OUTCOME_DEFERRED)
    return JobChange(after, ("outcome", "run_at", *ENDED), Reason("deferred", {"because": reason_json(because)}))


def is_superseded(job: Job) -> bool:
    """Whether it ended because the date of its object changed: neither a success nor a failure."""
    return job.last_error is not None and job.last_error.startswith(SUPERSEDED)


def given_up(job: Job, error: str, now: int) -> JobChange:
    """End a queued job that is no longer needed."""
    return JobChange(
        replace(job, status="failed", last_error=error, updated_at=now), CANCELLED, Reason("dropped", {"error": error})
    )


def renewed(job: Job, renew: Renew, now: int, lease_us: int) -> Job:
    """Extend the lease, never shorten it; and store the progress, if any."""
    assert job.lease_expires_at is not None
    deadline = max(job.lease_expires_at, now + lease_us)
    if renew.progress is None:
        return replace(job, lease_expires_at=deadline)
    return replace(job, lease_expires_at=deadline, progress=renew.progress, progress_note=renew.progress_note)


def cancelled(job: Job, because: Reason, now: int) -> JobChange | Refused:
    """End a queued job; of a running one, record the request once, which its worker sees at the next renewal."""
    error = cut(f"cancelled: {error_of(because)}")
    if job.status == Status.RUNNING:
        asked = job if job.cancel_requested_at is not None else replace(job, cancel_requested_at=now, updated_at=now)
        return JobChange(asked, CANCEL_REQUESTED, Reason("cancellation_requested", {"because": reason_json(because)}))
    if job.status != Status.QUEUED:
        return _wrong_state(job, Code.JOB_NOT_QUEUED, "only a queued or running job can be cancelled")
    return JobChange(
        replace(job, status="failed", last_error=error, updated_at=now),
        CANCELLED,
        Reason("job_cancelled", {"because": reason_json(because)}),
    )


def requeued(job: Job, run_at: int | None, reason: str | None, actor: Actor, now: int) -> JobChange | Refused:
    if job.status not in REVIVABLE:
        return _wrong_state(job, Code.JOB_NOT_DEAD_LETTER, "only dead letters and failed jobs can be requeued")
    after = replace(job, status="queued", attempt=0, run_at=now if run_at is None else run_at, updated_at=now)
    if job.delivery_count:
        # A worker that repeats its last call without a token must not end the delivery of another.
        after = replace(after, expired=1)
    touched: tuple[str, ...] = REQUEUED
    if job.cancel_requested_at is not None or job.outcome is not None:
        after = replace(after, cancel_requested_at=None, outcome=None)
        touched = ("cancel_requested_at", "outcome", *REQUEUED)
    facts = {"by": actor.id, "reason": reason} if reason else {"by": actor.id}
    return JobChange(after, touched, Reason("requeued", facts))


def backoff_us(job_id: str, attempt: int, policy: Policy) -> int:
    """The default delay before a retry: doubling, with jitter derived from the job id and attempt."""
    seconds = min(BACKOFF_FIRST_SEC << min(attempt - 1, 16), BACKOFF_MOST_SEC)
    if not policy.retry_jitter:
        return seconds * SECOND
    h = int.from_bytes(sha256(f"{job_id}|{attempt}".encode()).digest()[:8], "big")
    # 0.9 + 0.2 · h / 2^64 in integers, rounded down to whole microseconds.
    return seconds * SECOND * (9 * (1 << 64) + 2 * h) // (10 << 64)


def _wrong_state(job: Job, code: Code, rule: str) -> Refused:
    return Refused(
        code, f"{job.job_id} {IS_IN_STATUS[job.status]}; {rule}", {"job_id": job.job_id, "status": job.status}
    )


def cut(text: str) -> str:
    return text if len(text) <= ERROR_MOST else text[: ERROR_MOST - len(CUT)] + CUT


def _ended(job: Job, ended: Ended, now: int, **fields: object) -> Job:
    """End the delivery: no holder; the token hash is kept to recognise a repeated call."""
    return replace(
        job,
        worker_id=None,
        lease=None,
        lease_expires_at=None,
        last_lease=job.lease,
        ended=ended.value,
        updated_at=now,
        **fields,
    )


Object = tuple[str, str]

ASIDE_MOST = 1000  # jobs of busy objects that one step sets aside


class Busy:
    """The objects with a running job, and the due jobs that must wait for them. `counts` is False for other jobs."""

    def __init__(self, objects: set[Object], counts: Callable[[Job], bool] = lambda _: True) -> None:
        self._objects = objects
        self._counts = counts
        self.aside: list[Job] = []

    @property
    def is_full(self) -> bool:
        """Whether one step has set aside enough jobs; later ones were not looked at."""
        return len(self.aside) >= ASIDE_MOST

    def takes(self, job: Job) -> bool:
        """Reserve the object of the job; returns False and sets the job aside where it is busy."""
        if not self._counts(job):
            return True
        key = (job.object_type, job.object_id)
        if key in self._objects:
            self.aside.append(job)
            return False
        self._objects.add(key)
        return True


def weighted(jobs: Iterable[Job], limit: int, head_start_sec: Sequence[int], busy: Busy | None = None) -> list[Job]:
    """The first `limit` by `run_at` less the head start of their priority; `jobs` come by `run_at`.

    Jobs later than the largest head start after the last chosen one are not read. With `busy`, one job per free object,
    which is busy then; it stops where too many jobs were set aside.
    """
    starts = [seconds * SECOND for seconds in head_start_sec]
    most = max(starts)
    chosen: list[Job] = []
    waiting: list[tuple[int, int, int, int, Job]] = []
    coming = iter(jobs)
    job = next(coming, None)
    while len(chosen) < limit and not (busy is not None and busy.is_full):
        # A later job cannot be ahead of the best candidate.
        while job is not None and (not waiting or job.run_at - most <= waiting[0][0]):
            heappush(waiting, (job.run_at - starts[job.priority], job.run_at, job.priority, job.seq, job))
            job = next(coming, None)
        if not waiting:
            break
        best = heappop(waiting)[-1]
        if busy is None or busy.takes(best):
            chosen.append(best)
    return chosen
