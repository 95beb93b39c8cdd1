"""The calls of the scheduler as methods, defined once: for a store, for a server and, awaited, for an event loop.

A refused call raises `JobRefused`; nothing was changed. Every method that changes something returns when the change is
durable. The members of a call are those of its request in `messages`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, NotRequired, Required, TypedDict, TypeVar, Unpack

from msgspec import Struct

from pendula.jobs import messages
from pendula.jobs.messages import CANCEL_BATCH, REQUEUE_BATCH, Call, EventType, Message, Moment, Number, Operated
from pendula.jobs.model import SECOND, PriorityWord
from pendula.kernel.time import format_utc

R = TypeVar("R", bound=Message)
Unique = Literal["waiting"]
StatusWord = Literal["queued", "running", "succeeded", "failed", "dead_letter"]


class EnqueueOptions(TypedDict, total=False):
    """What an enqueue may have beside its work: `object_type`, `object_id` and `action`.

    `run_at` has a zone; without one the job is due now. `priority` decides among jobs that are due at the same time;
    with `Policy(pull_order="weighted")` it gives a head start, so that it counts in a backlog, too.
    `unique="waiting"` stores nothing while a job for the same work is queued or running, and returns that one. The
    handler gets `payload` as `context.payload`.
    """

    run_at: Moment | None
    priority: PriorityWord | None
    max_attempts: int | None
    idempotency_key: str | None
    correlation_id: str | None
    queue: str | None
    payload: object
    unique: Unique | None


class EnqueueMembers(EnqueueOptions):
    object_type: Required[str]
    object_id: Required[str]
    action: Required[str]


class PullMembers(TypedDict):
    """With `wait_ms` a pull waits for a job. `pairs` are object types and actions that the worker handles."""

    worker_id: str
    limit: NotRequired[int | None]
    now: NotRequired[Moment | None]
    lease_sec: NotRequired[int | None]
    object_types: NotRequired[Sequence[str] | None]
    actions: NotRequired[Sequence[str] | None]
    queues: NotRequired[Sequence[str] | None]
    pairs: NotRequired[Sequence[Sequence[str]] | None]
    wait_ms: NotRequired[int | None]


class ProofMembers(TypedDict, total=False):
    """The proof of a lease."""

    worker_id: str | None
    lease_token: str | None


class AckMembers(ProofMembers, total=False):
    """`next_action_at` is the next time of the object; null clears it."""

    result: Required[Literal["succeeded"]]
    audit_event_id: str | None
    next_action_at: Moment | None
    next_action: str | None
    outcome: str | None
    outcome_result: object


class AckEntryMembers(AckMembers):
    job_id: str


class FailMembers(ProofMembers, total=False):
    """Without `retry_delay_sec` the pause grows with each attempt."""

    error: Required[str]
    retry_delay_sec: Number
    retryable: bool
    cancelled: bool


class RenewMembers(TypedDict):
    worker_id: str | None
    lease_token: str | None
    lease_sec: NotRequired[int | None]
    progress: NotRequired[Number | None]
    progress_note: NotRequired[str | None]


class ReleaseMembers(TypedDict):
    worker_id: str | None
    lease_token: str | None


class ReasonMember(TypedDict, total=False):
    reason: str | None


class RequeueMembers(ReasonMember, total=False):
    run_at: Moment | None


class FilterMembers(TypedDict, total=False):
    """Which jobs. `error_code` is the part of the last error before its first colon."""

    status: StatusWord
    object_type: str
    object_id: str
    action: str
    queue: str
    correlation_id: str
    error_code: str
    created_after: Moment
    created_before: Moment


class ListMembers(FilterMembers, total=False):
    limit: int | None
    cursor: str | None


class CancelBatchMembers(ReasonMember, total=False):
    filter: Required[FilterMembers]
    limit: int | None
    cursor: str | None


class RequeueBatchMembers(CancelBatchMembers, total=False):
    run_at: Moment | None


class AlertMembers(TypedDict, total=False):
    limit: int | None
    cursor: str | None


class AuditMembers(TypedDict, total=False):
    object_type: str
    object_id: str
    job_id: str
    event_type: EventType
    after: str | None
    limit: int | None


class PastMembers(TypedDict, total=False):
    at: str | None


class MetricsMembers(TypedDict, total=False):
    window_sec: int | None


class SetTimeMembers(TypedDict):
    reason: str


class FreeKeyMembers(TypedDict):
    idempotency_key: str
    reason: str


class PlanMembers(TypedDict, total=False):
    cron: Required[str]
    zone: str | None
    object_type: Required[str]
    object_id: Required[str]
    action: Required[str]
    priority: PriorityWord | None
    max_attempts: int | None
    queue: str | None
    payload: object


class SchedulerCalls(ABC):
    """Every call; `send` makes one."""

    @abstractmethod
    def send(self, call: Call[R], members: Mapping[str, Any], *path: str) -> R:
        """Make a call with the members of its body or query; `path` are the arguments in its path."""

    @abstractmethod
    def now(self) -> int:
        """The time from which `defer` counts, in microseconds since 1970."""

    def defer(
        self,
        object_type: str,
        object_id: str,
        action: str,
        *,
        in_sec: int | timedelta | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> messages.Job:
        """Enqueue in one line: now, or in `in_sec` (seconds or a `timedelta`). Returns the job."""
        if in_sec is not None:
            options["run_at"] = format_utc(self.now() + micros(in_sec))
        return self.enqueue(object_type=object_type, object_id=object_id, action=action, **options).job

    def enqueue(self, **members: Unpack[EnqueueMembers]) -> messages.Enqueued:
        """Store a job: `object_type`, `object_id` and `action` name the work."""
        return self.send(messages.ENQUEUE, members)

    def enqueue_batch(
        self, jobs: Sequence[EnqueueMembers] | Sequence[Mapping[str, Any]], *, atomic: bool = False
    ) -> messages.BatchResults:
        """Store many jobs, each with its own answer; with `atomic` all or none."""
        return self.send(messages.ENQUEUE_BATCH, {"jobs": list(jobs), "atomic": atomic})

    def pull(self, **members: Unpack[PullMembers]) -> messages.Pulled:
        """Pull due jobs, each with a lease; with `wait_ms`, wait for one."""
        return self.send(messages.PULL, members)

    def ack(self, job_id: str, **members: Unpack[AckMembers]) -> messages.Acked:
        """Finish a job and set the next time of its object."""
        return self.send(messages.ACK, members, job_id)

    def ack_batch(self, acks: Sequence[AckEntryMembers] | Sequence[Mapping[str, Any]]) -> messages.AckResults:
        """Finish many jobs, each with its own answer."""
        return self.send(messages.ACK_BATCH, {"acks": list(acks)})

    def fail(self, job_id: str, **members: Unpack[FailMembers]) -> messages.Failed:
        """Report an error: the job is retried or becomes a dead letter."""
        return self.send(messages.FAIL, members, job_id)

    def renew(self, job_id: str, **members: Unpack[RenewMembers]) -> messages.Renewed:
        """Extend a lease."""
        return self.send(messages.RENEW, members, job_id)

    def release(self, job_id: str, **members: Unpack[ReleaseMembers]) -> messages.OneJob:
        """Return a job that was not started."""
        return self.send(messages.RELEASE, members, job_id)

    def cancel(self, job_id: str, **members: Unpack[ReasonMember]) -> messages.OneJob:
        """End a queued job; ask a running one to stop."""
        return self.send(messages.CANCEL, members, job_id)

    def requeue(self, job_id: str, **members: Unpack[RequeueMembers]) -> messages.OneJob:
        """Requeue a dead letter, or a job that failed or was cancelled."""
        return self.send(messages.REQUEUE, members, job_id)

    def cancel_batch(self, **members: Unpack[CancelBatchMembers]) -> messages.Operated:
        """One step of a cancellation by `filter`; `pendula.jobs.cancel_all` takes all steps."""
        return self.send(messages.CANCEL_BATCH, members)

    def requeue_batch(self, **members: Unpack[RequeueBatchMembers]) -> messages.Operated:
        """One step of a requeue by `filter`; `pendula.jobs.requeue_all` takes all steps."""
        return self.send(messages.REQUEUE_BATCH, members)

    def set_time(self, **members: Unpack[SetTimeMembers]) -> messages.TimeSet:
        """Declare the clock of this machine right: `reason=` is required.

        The store's time follows it, also backwards; leases and delays that a wrong clock wrote count from now.
        """
        return self.send(messages.SET_TIME, members)

    def free_key(self, **members: Unpack[FreeKeyMembers]) -> messages.Freed:
        """Free the key of a deleted job."""
        return self.send(messages.FREE_KEY, members)

    def show(self, job_id: str) -> messages.OneJob:
        """One job."""
        return self.send(messages.SHOW, {}, job_id)

    def why(self, job_id: str) -> messages.Why:
        """Why a job has not run, where it runs, or how it ended, in one sentence."""
        return self.send(messages.WHY, {}, job_id)

    def history(self, job_id: str) -> messages.History:
        """All errors and audit events of a job."""
        return self.send(messages.HISTORY, {}, job_id)

    def list(self, **query: Unpack[ListMembers]) -> messages.JobList:
        """Jobs, the newest first; `limit` is 1 to 1000, `cursor` the end of the last page."""
        return self.send(messages.LIST, query)

    def count(self, **query: Unpack[FilterMembers]) -> messages.Counted:
        """The number of jobs that match the filters of a list."""
        return self.send(messages.COUNT, query)

    def audit(self, **query: Unpack[AuditMembers]) -> messages.Trail:
        """The trail, in order."""
        return self.send(messages.AUDIT, query)

    def metrics(self, **query: Unpack[MetricsMembers]) -> messages.Metrics:
        """Metrics of the queue; over HTTP as JSON or, by the Accept header, in the Prometheus text format."""
        return self.send(messages.METRICS, query)

    def alerts(self, **query: Unpack[AlertMembers]) -> messages.Alerts:
        """Alerts, newest first; `delivered_at` is null until every sink has taken one."""
        return self.send(messages.ALERTS, query)

    def past(self, **query: Unpack[PastMembers]) -> messages.Past:
        """The queue and the governed objects after an event, one of the last 10 000."""
        return self.send(messages.PAST, query)

    def workers(self) -> messages.Workers:
        """Known workers, the most recent heartbeat first."""
        return self.send(messages.WORKERS, {})

    def object(self, object_type: str, object_id: str) -> messages.StoredObject:
        """The stored row of an object."""
        return self.send(messages.OBJECT, {}, object_type, object_id)

    def plans(self) -> messages.Plans:
        """All time plans, by name."""
        return self.send(messages.PLANS, {})

    def put_plan(self, name: str, **members: Unpack[PlanMembers]) -> messages.OnePlan:
        """Create or replace a time plan; its next occurrence is stored with it."""
        return self.send(messages.PUT_PLAN, members, name)

    def pause_plan(self, name: str, **members: Unpack[ReasonMember]) -> messages.OnePlan:
        """Pause a plan: its waiting occurrence is cancelled, and none follows until it is resumed."""
        return self.send(messages.PAUSE_PLAN, members, name)

    def resume_plan(self, name: str, **members: Unpack[ReasonMember]) -> messages.OnePlan:
        """Resume a plan; missed occurrences are skipped."""
        return self.send(messages.RESUME_PLAN, members, name)

    def run_now(self, name: str, **members: Unpack[ReasonMember]) -> messages.Enqueued:
        """Enqueue one job of the plan now, or get an earlier one that still waits."""
        return self.send(messages.RUN_NOW, members, name)

    def remove_plan(self, name: str, **members: Unpack[ReasonMember]) -> messages.PlanRemoved:
        """Remove a plan that is in no settings file."""
        return self.send(messages.REMOVE_PLAN, members, name)


def micros(seconds: int | timedelta) -> int:
    """Seconds or a `timedelta`, in microseconds."""
    return seconds // timedelta(microseconds=1) if isinstance(seconds, timedelta) else seconds * SECOND


STEP = 1000


class Changed(Struct, frozen=True):
    """The result of a run: how many jobs matched, how many it changed, in how many steps."""

    matched: int
    changed: int
    steps: int


def cancel_all(
    scheduler: SchedulerCalls,
    filter: FilterMembers | Mapping[str, Any],
    *,
    reason: str | None = None,
    step: int = STEP,
    progress: Callable[[int], None] = lambda _: None,
) -> Changed:
    """Cancel all matching queued jobs; with `status: running`, request the cancellation of running ones."""
    return _run(scheduler, CANCEL_BATCH, {"filter": dict(filter), "reason": reason, "limit": step}, progress)


def requeue_all(
    scheduler: SchedulerCalls,
    filter: FilterMembers | Mapping[str, Any],
    *,
    reason: str | None = None,
    run_at: Moment | None = None,
    step: int = STEP,
    progress: Callable[[int], None] = lambda _: None,
) -> Changed:
    """Requeue all matching dead letters; with `status: failed`, failed jobs."""
    members = {"filter": dict(filter), "reason": reason, "run_at": run_at, "limit": step}
    return _run(scheduler, REQUEUE_BATCH, members, progress)


def _run(
    scheduler: SchedulerCalls, call: Call[Operated], members: dict[str, Any], progress: Callable[[int], None]
) -> Changed:
    given = {name: value for name, value in members.items() if value is not None}
    matched = changed = steps = 0
    while True:
        reply = scheduler.send(call, given)
        steps += 1
        matched += reply.matched
        changed += reply.changed
        progress(matched)
        if reply.next_cursor is None:
            return Changed(matched, changed, steps)
        given["cursor"] = reply.next_cursor
