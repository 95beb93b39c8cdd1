"""What the scheduler needs of a store: one transaction at a time, which reads and changes jobs and their trail."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from pendula.jobs.audit import GovernanceEvent, PlanChange, Row
from pendula.jobs.messages import Pull
from pendula.jobs.model import Actor, Job, Status
from pendula.jobs.plans import Plan
from pendula.jobs.reasons import Reason
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused, WorldBroken, WrongUsage

T = TypeVar("T")
Fields = Mapping[str, Json]


class StatementRefused(InputRefused):
    """A statement of an effect is not allowed or faulty; it changed nothing."""

    code = "statement_refused"


class StoreUnusable(WorldBroken):
    """The file is not a store of jobs, or the disk fails."""

    code = "store_unusable"


class FilesClosed(StoreUnusable):
    """Code in this process closed the files of the store; only a new process can use it. Facts: `path`."""


class StoreReadOnly(WorldBroken):
    """The file or its folder cannot be written now; reading still works. Facts: `path`."""

    code = "store_read_only"


class TransactionGone(InputRefused):
    """The transaction of an effect ended before the effect; nothing of it was written."""

    code = "transaction_gone"


class EffectTooLong(InputRefused):
    """An effect exceeded its time limit; nothing of it was written. Facts: `seconds`."""

    code = "effect_too_long"


class WriteInsideEffect(WrongUsage):
    """An effect called the store whose transaction it is in, which would deadlock."""

    code = "write_inside_effect"


class ObjectRow(Struct, frozen=True):
    """An object: its next time, its version, its state."""

    object_type: str
    object_id: str
    next_action_at: int | None
    version: int
    state: str | None


class Effect(Struct, frozen=True):
    """The record that the effect for a key was applied."""

    idempotency_key: str
    job_seq: int
    fence: int
    result: Json
    at: int


class Listing(Struct, frozen=True):
    """Which jobs to list, newest first, with numbers below `before`. Times are those of the enqueue."""

    limit: int
    before: int | None = None
    status: str | None = None
    object_type: str | None = None
    object_id: str | None = None
    action: str | None = None
    queue: str | None = None
    correlation_id: str | None = None
    error_code: str | None = None
    created_after: int | None = None
    created_before: int | None = None


class Unhandled(Struct, frozen=True):
    """Jobs of one kind that are due while none of them is delivered: how many, and the one that waits longest."""

    object_type: str
    action: str
    count: int
    since: int
    job_id: str


class AuditListing(Struct, frozen=True):
    """Which events to read, oldest first, with numbers above `after`."""

    limit: int
    after: int = 0
    object_type: str | None = None
    object_id: str | None = None
    job_seq: int | None = None
    event_type: str | None = None


class Figures(Struct, frozen=True):
    """The numbers behind metrics. `counts` are jobs by status, type, action, priority and queue."""

    due: int
    first_due: int | None
    counts: Sequence[tuple[str, str, str, int, str, int]]
    succeeded: int
    failed: int
    dead_letter: int
    attempts: int
    requeues: int
    alerts_waiting: int


class WorkerRow(Struct, frozen=True):
    """The last heartbeat of a worker: counters since its start, what it has handlers for, its queues.

    Of a worker that calls a server, only what the server sees is known; the rest is None.
    """

    worker_id: str
    started_at: int
    seen_at: int
    ended_at: int | None
    taken: int
    concurrency: int | None = None
    running: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    dropped: int | None = None
    released: int | None = None
    works: tuple[tuple[str, str], ...] = ()
    queues: tuple[str, ...] = ()


class Reader(Protocol):
    """Queries of one transaction."""

    def catch_up(self) -> None:
        """Read the latest stored time: from here on the store's time is not before it."""
        ...

    def latest_time(self) -> int:
        """The time of the newest event; 0 where there is none."""
        ...

    def job(self, job_id: str) -> Job | None: ...

    def jobs(self, listing: Listing) -> list[Job]: ...

    def numbered(self, numbers: Sequence[int]) -> list[Job]:
        """The stored jobs among these numbers, in any order."""
        ...

    def count(self, listing: Listing) -> int:
        """How many jobs a listing has, ignoring its limit."""
        ...

    def unhandled(self, since: int) -> list[Unhandled]:
        """The kinds with jobs due since then or before, of which none was delivered after that."""
        ...

    def events(self, listing: AuditListing) -> list[Row]: ...

    def last_event(self) -> int:
        """The number of the newest event; 0 where there is none."""
        ...

    def object(self, object_type: str, object_id: str) -> ObjectRow | None: ...

    def effect(self, key: str) -> Effect | None: ...

    def figures(self, now: int, since: int) -> Figures: ...

    def anything_to_pull(self, due_by: int, now: int, pull: Pull | None = None) -> bool: ...

    def anything_expired(self, now: int) -> bool: ...

    def anything_aside(self, *, needlessly: bool = False) -> bool:
        """Whether jobs are set aside until their object is free; with `needlessly`, jobs other than verifications of
        governed objects.
        """
        ...

    def over(self, status: Status, before: int, limit: int) -> list[Job]:
        """Jobs that ended before a moment, the oldest first."""
        ...

    def write_backs(self, limit: int) -> list[tuple[int, Any]]:
        """Write-backs that are not delivered yet, oldest first."""
        ...

    def alerts_waiting(self, after: int, limit: int) -> list[tuple[int, Any]]:
        """Alerts that are not delivered yet, with their numbers, above number `after`."""
        ...

    def alerts(self, before: int | None, limit: int) -> list[tuple[int, Any, int | None]]:
        """Alerts, the newest first: the number, the body, and when the last sink took it."""
        ...

    def next_time(self) -> int | None:
        """The next time at which a job becomes due or a lease expires."""
        ...

    def plans(self) -> list[Plan]:
        """All time plans, by name."""
        ...

    def plan(self, name: str) -> Plan | None: ...

    def workers(self) -> list[WorkerRow]:
        """All workers with a heartbeat, the latest first."""
        ...

    def before(self, job: Job, now: int, head_start_sec: Sequence[int], most: int) -> int:
        """How many jobs are ahead of a due one, counted up to `most`."""
        ...

    def running_on(self, object_type: str, object_id: str, actions: Collection[str] = ()) -> Job | None:
        """A running job of the object; with `actions`, of one of these."""
        ...

    def any_governed(self) -> bool:
        """Whether any object is under governance."""
        ...

    def is_governed(self, object_type: str, object_id: str) -> bool:
        """Whether the object is under governance."""
        ...

    def tables(self, kind: Callable[[sqlite3.Connection], T]) -> T:
        """The tables of a layer above, within this transaction."""
        ...


class EnqueueWriter(Protocol):
    """What an enqueue needs of a transaction."""

    def any_closed(self) -> bool:
        """Whether the verification limit of any object is reached."""
        ...

    def is_closed(self, object_type: str, object_id: str) -> bool:
        """Whether the verification limit of the object is reached."""
        ...

    def by_keys(self, keys: Sequence[str]) -> dict[str, Job]: ...

    def waiting(self, object_type: str, object_id: str, action: str) -> Job | None:
        """The first job for this work that is queued or running."""
        ...

    def used(self, key_hash: bytes) -> bool:
        """Whether the key belonged to a job that was removed."""
        ...

    def any_used(self) -> bool: ...

    def next_seq(self) -> int: ...

    def insert(self, jobs: Sequence[Job], actor: Actor) -> bool:
        """Add jobs with their events; False, with nothing added, when one of their keys is taken."""
        ...


class EffectWriter(EnqueueWriter, Protocol):
    """What an effect may use of its transaction."""

    def job(self, job_id: str) -> Job | None: ...

    def object(self, object_type: str, object_id: str) -> ObjectRow | None: ...

    def is_governed(self, object_type: str, object_id: str) -> bool:
        """Whether the object is under governance."""
        ...

    def effect(self, key: str) -> Effect | None: ...

    def put_object(self, row: ObjectRow) -> None: ...

    def object_event(
        self,
        job: Job,
        old: Mapping[str, Json],
        new: Mapping[str, Json],
        reason: Reason,
        actor: Actor,
        evidence: Sequence[str] = (),
    ) -> str: ...

    def put_effect(self, effect: Effect) -> None: ...

    def write_back(self, body: Json) -> None: ...

    def execute(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement of the caller on its own tables; raises `StatementRefused` when it is faulty."""
        ...


class Writer(Reader, EffectWriter, Protocol):
    """One caller's part of a transaction: all of it is applied, or nothing."""

    def governance_event(self, event: GovernanceEvent, actor: Actor, at: int) -> str:
        """Write an event of governance; returns its id."""
        ...

    def expect(self, job_ids: Sequence[str]) -> None:
        """Read these jobs and their objects at once: they will be asked for."""
        ...

    def event_about(self, n: int, job: Job) -> bool: ...

    def next_event_id(self) -> str: ...

    def running_objects(self, actions: Collection[str] = ()) -> set[tuple[str, str]]:
        """Objects with a running job; with `actions`, of one of these."""
        ...

    def change(self, before: Job, after: Job, touched: tuple[str, ...], reason: Reason, actor: Actor) -> Job:
        """Replace a job and write its event, whose id is the `next_event_id` before the call."""
        ...

    def touch(self, job: Job) -> None:
        """Replace a job without an event, for a renewal."""
        ...

    def due(self, pull: Pull, due_by: int, order: Callable[[Iterable[Job], int], list[Job]] | None) -> list[Job]: ...

    def fences_from(self) -> int:
        """The epoch of the last restore: fences of jobs up to this number continue above it; 0 without a restore."""
        ...

    def set_aside(self, jobs: Sequence[Job]) -> None:
        """Hide due jobs of a busy object from pulls until a job of that object ends or is cancelled."""
        ...

    def bring_back(self, limit: int) -> None:
        """Let pulls find up to `limit` jobs that are set aside needlessly, busy or not."""
        ...

    def expired(self, now: int, limit: int) -> list[Job]:
        """Jobs with an expired lease, in the order of expiry."""
        ...

    def alert(self, alert_id: str, body: Json) -> None: ...

    def write_backs_taken(self, upto: int) -> None:
        """Drop write-backs up to this number: they are delivered."""
        ...

    def alerts_delivered(self, upto: int, at: int) -> None:
        """Mark alerts up to this number as delivered."""
        ...

    def remove(self, jobs: Sequence[Job]) -> None:
        """Delete jobs and their effects; their keys stay used, and their events stay in the trail, packed."""
        ...

    def free(self, key: str, reason: str, actor: Actor, at: int) -> bool:
        """Let a used key be used again, with an event; False when it was not used."""
        ...

    def after(self, at: int) -> list[Job]:
        """Jobs changed after this time, in the order of their enqueue."""
        ...

    def time_set(self, right: int) -> None:
        """Set every past time that is later than `right` back to it; it becomes the store's time."""
        ...

    def time_event(self, before: Fields, after: Fields, reason: str, actor: Actor, at: int) -> None:
        """Write the event that a person set the time."""
        ...

    def put_plan(self, plan: Plan) -> None: ...

    def drop_plan(self, name: str) -> None: ...

    def plan_event(self, change: PlanChange, actor: Actor, at: int) -> None:
        """Write the event of a changed plan."""
        ...

    def put_worker(self, row: WorkerRow, *, forget_before: int, most: int) -> None:
        """Store a heartbeat; drop workers last seen before `forget_before`, and the oldest beyond `most`."""
        ...


class Store(Protocol):
    """Where jobs are stored; safe for threads."""

    def write(self, work: Callable[[Writer], T], *, metadata: Mapping[str, Json] | None = None) -> T:
        """Run `work` in a transaction and return when it is durable. Raises `StorageBusy`, and what `work` raises."""
        ...

    def write_effect(self, work: Callable[[EffectWriter], T]) -> T:
        """Like `write`, for work that runs user code: in the caller's thread, in a separate transaction.

        Raises `EffectTooLong` after a time limit. Inside such work `write` raises `WriteInsideEffect`.
        """
        ...

    def check_may_write(self) -> None:
        """Raise `WriteInsideEffect` inside an effect, as `write` would."""
        ...

    def now(self, clock: Callable[[], int]) -> int:
        """The store's time: that of the clock, but never before the latest stored time."""
        ...

    def read(self, look: Callable[[Reader], T], *, damaged: bool = False) -> T:
        """Run queries on one snapshot. With `damaged`, text with invalid bytes is read, too."""
        ...

    def integrity(self) -> list[str]:
        """Faults of the file or database, as sentences; empty when it is sound."""
        ...

    def close(self) -> None: ...
