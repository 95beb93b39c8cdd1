"""What the scheduler needs of a store: one transaction at a time, in which jobs are found, changed and written down."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from pendula.jobs.audit import GovernanceEvent, PlanChange, Row
from pendula.jobs.model import Actor, Job, Status
from pendula.jobs.objects.reasons import Reason
from pendula.jobs.plans import Plan
from pendula.jobs.requests import Pull
from pendula.jobs.store.governed_protocol import GovernedReading, GovernedWriting
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused, WorldBroken, WrongUsage

T = TypeVar("T")
Fields = Mapping[str, Json]


class StatementRefused(InputRefused):
    """A statement of somebody's own that cannot be carried out; it changed nothing."""

    code = "statement_refused"


class StoreUnusable(WorldBroken):
    """The file is not a store of ours, or the disk does not let us use it."""

    code = "store_unusable"


class FilesClosed(StoreUnusable):
    """Something in this process closed the files of the store behind its back; only a new process can use it.

    Facts: `path`.
    """


class StoreReadOnly(WorldBroken):
    """The file or its folder cannot be written now; what only looks goes on. Facts: `path`."""

    code = "store_read_only"


class TransactionGone(InputRefused):
    """The transaction of an effect has ended before the effect did; nothing of it was written."""

    code = "transaction_gone"


class EffectTooLong(InputRefused):
    """An effect held the store for longer than it may; nothing of it was written. Facts: `seconds`."""

    code = "effect_too_long"


class WriteInsideEffect(WrongUsage):
    """An effect called the store that waits for it."""

    code = "write_inside_effect"


class ObjectRow(Struct, frozen=True):
    """What is known of an object."""

    object_type: str
    object_id: str
    next_action_at: int | None
    version: int
    state: str | None


class Effect(Struct, frozen=True):
    """What was done for a key, once and for all."""

    idempotency_key: str
    job_seq: int
    fence: int
    result: Json
    at: int


class Listing(Struct, frozen=True):
    """Which jobs to list, newest first, before the number `before`. Times are those of the enqueue."""

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
    """Jobs of one kind that are due, none of which anybody has taken: how many, and the one that waits longest."""

    object_type: str
    action: str
    count: int
    since: int
    job_id: str


class AuditListing(Struct, frozen=True):
    """Which events to read, oldest first, after the number `after`."""

    limit: int
    after: int = 0
    object_type: str | None = None
    object_id: str | None = None
    job_seq: int | None = None
    event_type: str | None = None


class Figures(Struct, frozen=True):
    """What metrics are made of. `counts` are jobs by status, type, action, priority and queue."""

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
    """What a worker told of itself: counters since it began, what it has handlers for, the queues it keeps to.

    Of a worker that talks to a server, the server tells what it sees: the rest is None.
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
    """Looking without touching."""

    def catch_up(self) -> None:
        """Learn the latest time that anybody stored: from here on the store's time is not before it."""
        ...

    def latest_time(self) -> int:
        """The latest time that any event has; 0 where there is none."""
        ...

    def job(self, job_id: str) -> Job | None: ...

    def jobs(self, listing: Listing) -> list[Job]: ...

    def numbered(self, numbers: Sequence[int]) -> list[Job]:
        """Those of these numbers that are stored, in any order."""
        ...

    def count(self, listing: Listing) -> int:
        """How many jobs a listing has, whatever its limit."""
        ...

    def unhandled(self, since: int) -> list[Unhandled]:
        """The kinds of jobs that have been due since then or before, and of which none was handed out after that."""
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
        """Whether jobs stand aside until their object is free; with `needlessly`, others than verifications of governed
        objects.
        """
        ...

    def over(self, status: Status, before: int, limit: int) -> list[Job]:
        """Jobs that have been over since before a moment, the oldest first."""
        ...

    def write_backs(self, limit: int) -> list[tuple[int, Any]]:
        """What objects elsewhere are still to be told, oldest first."""
        ...

    def alerts_waiting(self, after: int, limit: int) -> list[tuple[int, Any]]:
        """Alerts that were not delivered yet, with their numbers, from the one after number `after` on."""
        ...

    def alerts(self, before: int | None, limit: int) -> list[tuple[int, Any, int | None]]:
        """Alerts, the newest first: the number, what it says, and when every sink had taken it."""
        ...

    def next_time(self) -> int | None:
        """The earliest moment at which something may be to do: a job due, or a lease over."""
        ...

    def plans(self) -> list[Plan]:
        """All time plans, by name."""
        ...

    def plan(self, name: str) -> Plan | None: ...

    def workers(self) -> list[WorkerRow]:
        """The workers that told of themselves, the last heard of first."""
        ...

    def before(self, job: Job, now: int, head_start_sec: Sequence[int], most: int) -> int:
        """How many jobs go before a due one, counted up to `most`."""
        ...

    def running_on(self, object_type: str, object_id: str, actions: Collection[str] = ()) -> Job | None:
        """A job of the object that is running; of one of these actions, where there are any."""
        ...

    @property
    def governance(self) -> GovernedReading: ...


class EnqueueWriter(Protocol):
    """What it takes to enqueue within a transaction."""

    def closed_among(self, about: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Which of these objects nobody may verify any more."""
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
        """Add jobs with their events; False, and nothing added, when a key among them is taken."""
        ...


class EffectWriter(EnqueueWriter, Protocol):
    """What an effect reaches of its transaction."""

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
        """A statement of the caller's own, on tables of its own; raises `StatementRefused` when it is faulty."""
        ...


class Writer(Reader, EffectWriter, Protocol):
    """One caller's part of a transaction. Everything it does is done when it returns, or nothing is."""

    @property
    def governance(self) -> GovernedWriting: ...

    def governance_event(self, event: GovernanceEvent, actor: Actor, at: int) -> str:
        """Tell in the trail what governance did; gives the event's id."""
        ...

    def expect(self, job_ids: Sequence[str]) -> None:
        """These jobs and their objects will be asked for: read them all at once."""
        ...

    def event_about(self, n: int, job: Job) -> bool: ...

    def next_event_id(self) -> str: ...

    def running_objects(self, actions: Collection[str] = ()) -> set[tuple[str, str]]:
        """Objects of which a job runs; of one of these actions, where there are any."""
        ...

    def any_governed(self) -> bool:
        """Whether any object is under governance."""
        ...

    def change(self, before: Job, after: Job, touched: tuple[str, ...], reason: Reason, actor: Actor) -> Job:
        """Replace a job and write its event, whose id was `next_event_id` before."""
        ...

    def touch(self, job: Job) -> None:
        """Replace a job without an event: a renewal."""
        ...

    def due(self, pull: Pull, due_by: int, order: Callable[[Iterable[Job], int], list[Job]] | None) -> list[Job]: ...

    def fences_from(self) -> int:
        """Fences of jobs up to this number go on beyond it; 0 where no copy was ever restored."""
        ...

    def set_aside(self, jobs: Sequence[Job]) -> None:
        """Due jobs whose object is busy: no pull finds them until a job of that object ends, or is cancelled."""
        ...

    def bring_back(self, limit: int) -> None:
        """Let pulls find so many of those that stand aside needlessly, busy or not."""
        ...

    def expired(self, now: int, limit: int) -> list[Job]:
        """Jobs whose lease has run out, the first ones first."""
        ...

    def alert(self, alert_id: str, body: Json) -> None: ...

    def write_backs_taken(self, upto: int) -> None:
        """The object side has taken everything up to this number."""
        ...

    def alerts_delivered(self, upto: int, at: int) -> None:
        """Every alert up to this number has been delivered."""
        ...

    def remove(self, jobs: Sequence[Job]) -> None:
        """Take jobs and their effects away; their keys stay used, and their events stay in the trail, packed."""
        ...

    def free(self, key: str, reason: str, actor: Actor, at: int) -> bool:
        """Let a used key be used again, with its event; False when it was not used."""
        ...

    def after(self, at: int) -> list[Job]:
        """Jobs that were changed after this time, in the order of their enqueue."""
        ...

    def time_set(self, right: int) -> None:
        """Bring every time of what has happened back to the right one; it is the store's time from here on."""
        ...

    def time_event(self, before: Fields, after: Fields, reason: str, actor: Actor, at: int) -> None:
        """Write in the trail that a person set the time."""
        ...

    def put_plan(self, plan: Plan) -> None: ...

    def drop_plan(self, name: str) -> None: ...

    def plan_event(self, change: PlanChange, actor: Actor, at: int) -> None:
        """Tell in the trail what became of a plan."""
        ...

    def put_worker(self, row: WorkerRow, *, forget_before: int, most: int) -> None:
        """Write what a worker tells of itself; who was not heard of since then, or is one too many, is forgotten."""
        ...


class Store(Protocol):
    """Where jobs are kept; safe for threads."""

    def write(self, work: Callable[[Writer], T], *, metadata: Mapping[str, Json] | None = None) -> T:
        """Do `work` in a transaction and return when it is durable. Raises `StorageBusy`, and what `work` raises."""
        ...

    def write_effect(self, work: Callable[[EffectWriter], T]) -> T:
        """As `write`, for work that runs user code: in the caller's thread, in a transaction of its own.

        Raises `EffectTooLong` after a bounded time. Inside of such work `write` raises `WriteInsideEffect`.
        """
        ...

    def check_may_write(self) -> None:
        """Raise what `write` would raise at once: `WriteInsideEffect` inside an effect."""
        ...

    def now(self, clock: Callable[[], int]) -> int:
        """The store's time: what the clock says, but never before the latest time that was stored."""
        ...

    def read(self, look: Callable[[Reader], T], *, damaged: bool = False) -> T:
        """What a look gives, all of one moment. With `damaged` also text is read that is none any more."""
        ...

    def integrity(self) -> list[str]:
        """What is wrong with the file or database as such, in sentences; nothing when it is sound."""
        ...

    def close(self) -> None: ...
