"""What one transaction writes: jobs, objects, events and counts, collected and written with few statements."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar

import msgspec
from msgspec.structs import astuple

from pendula.jobs.audit import GovernanceEvent, PlanChange, Trail
from pendula.jobs.decide import is_superseded
from pendula.jobs.messages import Pull
from pendula.jobs.model import SYSTEM, Actor, Job, Status, seq_of
from pendula.jobs.plans import Plan
from pendula.jobs.reasons import Reason
from pendula.jobs.store.file.store_time import Anchor, StoreTime
from pendula.jobs.store.protocol import Effect, Listing, ObjectRow, WorkerRow
from pendula.jobs.store.tables import rows
from pendula.jobs.store.tables.archive import archive_events, is_archived_about
from pendula.jobs.store.tables.lists import COLUMNS, due_rows
from pendula.jobs.store.tables.reader import SqliteReader, job_of
from pendula.jobs.store.tables.rows import Bulk, Counts, set_back
from pendula.jobs.store.tables.statement_authorizer import execute_authorized
from pendula.kernel.canonical import Json

T = TypeVar("T")

_EVENT = Bulk("INSERT INTO audit (n, event_type, object_type, object_id, job_seq, body, hash) VALUES", 7)
_WITH_OBJECTS = f"""SELECT {", ".join(f"jobs.{name}" for name in Job.__struct_fields__)}, next_action_at, version, state
    FROM jobs LEFT JOIN objects USING (object_type, object_id) WHERE seq IN"""
_OBJECT = Bulk(
    "INSERT INTO objects (object_type, object_id, next_action_at, version, state) VALUES",
    5,
    "ON CONFLICT (object_type, object_id) DO UPDATE SET next_action_at = excluded.next_action_at, "
    "version = excluded.version, state = excluded.state",
)


class Mark(msgspec.Struct, frozen=True):
    """Where a caller's part of the transaction begins."""

    trail: tuple[int, bytes, int] | None
    counts: Counts
    wrote: bool
    seq: int | None


class TransactionCache:
    """What a transaction knows at its end and the next one needs; invalid once another connection has written.

    A transaction clears it and fills it again on commit, so that it is empty after any error.
    """

    __slots__ = ("closed", "governed", "head", "seq", "used", "version")

    def __init__(self) -> None:
        self.version: int | None = None  # `data_version`, which writes of other connections change
        self.head: tuple[int, bytes] | None = None
        self.seq: int | None = None
        self.used: bool | None = None
        self.governed: bool | None = None  # whether there are governed objects
        self.closed: bool | None = None  # whether there are objects whose verification limit is reached


class SqliteWriter(SqliteReader):
    """The writes of one transaction; events and counts are written together at its end."""

    def __init__(
        self, connection: sqlite3.Connection, time: StoreTime | None = None, cache: TransactionCache | None = None
    ) -> None:
        super().__init__(connection, time)
        self._seq: int | None = None
        self._used: bool | None = None
        self._governed: bool | None = None
        self._closed: bool | None = None
        self._cache = cache
        self._version: int | None = None
        head: tuple[int, bytes] | None = None
        if cache is not None:
            self._version = connection.execute("PRAGMA data_version").fetchone()[0]
            if cache.version == self._version:
                head, self._seq, self._used = cache.head, cache.seq, cache.used
                self._governed, self._closed = cache.governed, cache.closed
            cache.version = None
        # Read first: the time of this transaction is not before that of any event.
        self._head = self.head() if head is None else head
        self._trail: Trail | None = None
        self._metadata: Mapping[str, Json] = {}
        self._counts = Counts()
        # Rows read or changed here. Changes are written together: before a query needs them, or at the end.
        self._jobs: dict[str, Job] = {}
        self._objects: dict[tuple[str, str], ObjectRow | None] = {}
        self._changed_jobs: dict[str, Job] = {}
        self._changed_more: dict[str, Job] = {}  # jobs of which the rare columns changed
        self._changed_objects: dict[tuple[str, str], ObjectRow] = {}
        self._freed: dict[tuple[str, str], None] = {}  # objects of which a job stopped running or waiting
        self.wrote = False

    # One caller's part

    def mark(self, metadata: Mapping[str, Json]) -> Mark:
        self._metadata = metadata
        self._write_changes()
        if self._trail is not None:
            self._trail.metadata = metadata
        trail = self._trail.mark() if self._trail is not None else None
        return Mark(trail, self._counts.copy(), self.wrote, self._seq)

    def undo(self, mark: Mark) -> None:
        if mark.trail is None:
            self._trail = None
        elif self._trail is not None:
            self._trail.back_to(mark.trail)
        self._counts, self.wrote, self._seq = mark.counts, mark.wrote, mark.seq
        self._used = self._governed = self._closed = None
        for changes in (self._changed_jobs, self._changed_more, self._changed_objects, self._freed):
            changes.clear()
        self._forget()

    def keep(self) -> None:
        """Fill the cache after the commit."""
        if self._cache is not None:
            self._cache.head = self._head if self._trail is None else self._trail.head
            self._cache.seq, self._cache.used = self._seq, self._used
            self._cache.governed, self._cache.closed = self._governed, self._closed
            self._cache.version = self._version

    def finish(self) -> None:
        if self.wrote and (anchor := self._time.new_anchor()) is not None:
            self._put_anchor(anchor)
        self._write_changes()
        if self._trail is not None:
            _EVENT.run(self._connection, self._trail.rows)
        self._counts.write(self._connection)

    # Jobs

    def by_keys(self, keys: Sequence[str]) -> dict[str, Job]:
        self._write_changes()
        return rows.by_keys(self._connection, keys)

    def jobs(self, listing: Listing) -> list[Job]:
        # The existing kinds of jobs are read from the counts.
        self._write_changes()
        self._counts.write(self._connection)
        return super().jobs(listing)

    def waiting(self, object_type: str, object_id: str, action: str) -> Job | None:
        self._write_changes()
        return rows.waiting(self._connection, object_type, object_id, action)

    def used(self, key_hash: bytes) -> bool:
        query = "SELECT 1 FROM used_keys WHERE hash = ?"
        return self._connection.execute(query, (key_hash,)).fetchone() is not None

    def any_used(self) -> bool:
        if self._used is None:
            self._used = bool(self._connection.execute("SELECT EXISTS (SELECT 1 FROM used_keys)").fetchone()[0])
        return self._used

    def job(self, job_id: str) -> Job | None:
        known = self._jobs.get(job_id)
        return known if known is not None else super().job(job_id)

    def object(self, object_type: str, object_id: str) -> ObjectRow | None:
        key = (object_type, object_id)
        return self._objects[key] if key in self._objects else super().object(object_type, object_id)

    def expect(self, job_ids: Sequence[str]) -> None:
        self._write_changes()
        for first in range(0, len(job_ids), rows.KEYS_AT_ONCE):
            numbers = [seq_of(job_id) for job_id in job_ids[first : first + rows.KEYS_AT_ONCE]]
            query = f"{_WITH_OBJECTS} ({', '.join('?' * len(numbers))})"
            for row in self._connection.execute(query, numbers):
                job, object_part = job_of(row[:-3]), row[-3:]
                about = (job.object_type, job.object_id)
                self._jobs[job.job_id] = job
                self._objects[about] = None if object_part[1] is None else ObjectRow(*about, *object_part)

    def event_about(self, n: int, job: Job) -> bool:
        """Whether a stored event of this number is about the job or its object."""
        query = "SELECT 1 FROM audit WHERE n = ? AND (job_seq = ? OR (object_type = ? AND object_id = ?))"
        if self._connection.execute(query, (n, job.seq, job.object_type, job.object_id)).fetchone() is not None:
            return True
        return is_archived_about(self._connection, n, job.seq, (job.object_type, job.object_id))

    def next_seq(self) -> int:
        if self._seq is None:
            row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'jobs'").fetchone()
            self._seq = 0 if row is None else row[0]
        self._seq += 1
        return self._seq

    def fences_from(self) -> int:
        row = self._connection.execute("SELECT max(epoch) FROM restores").fetchone()
        return row[0] or 0

    def begin_epoch(self, epoch: int) -> None:
        """Continue job numbers and fences from `epoch`: the store is a copy that replaced its original."""
        before = self.next_seq()
        epoch = max(epoch, before)
        self._seq = None
        self._connection.execute("DELETE FROM sqlite_sequence WHERE name = 'jobs'")
        self._connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('jobs', ?)", (epoch,))
        self._connection.execute("INSERT INTO restores (epoch) VALUES (?)", (epoch,))
        self._connection.execute("PRAGMA application_id = 0")
        self.wrote = True
        self._trailing().restored(before, epoch, SYSTEM, self._time.latest)

    def insert(self, jobs: Sequence[Job], actor: Actor) -> bool:
        if not rows.added(self._connection, jobs):
            self._seq = None
            return False
        self._seq = jobs[-1].seq if jobs else self._seq
        self.wrote = True
        trail = self._trailing()
        for job in jobs:
            trail.enqueued(job, actor)
            self._counts.add(job, 1)
        return True

    def change(self, before: Job, after: Job, touched: tuple[str, ...], reason: Reason, actor: Actor) -> Job:
        self.wrote = True
        self._trailing().changed(before, after, touched, reason, actor)
        self._jobs[after.job_id] = self._changed_jobs[after.job_id] = after
        if (
            after.cancel_requested_at is not before.cancel_requested_at
            or after.progress is not before.progress
            or after.outcome_result is not before.outcome_result
        ):
            self._changed_more[after.job_id] = after
        if before.status != after.status:
            self._counts.add(before, -1)
            self._counts.add(after, 1)
            if after.worker_id is not None:
                self._counts.deliver(after)
            if after.status != Status.RUNNING:
                self._freed[after.object_type, after.object_id] = None
            if _ends(before, after):
                self._counts.end(after, attempted=after.attempt != before.attempt)
        elif before.status == Status.QUEUED:
            # Deferred or failed without a delivery: other jobs of its object may run first.
            self._freed[after.object_type, after.object_id] = None
            if after.attempt != before.attempt:
                self._counts.end(after, attempted=True)
        return after

    def touch(self, job: Job) -> None:
        self.wrote = True
        self._jobs[job.job_id] = self._changed_jobs[job.job_id] = job
        if job.progress is not None:
            self._changed_more[job.job_id] = job

    def due(self, pull: Pull, due_by: int, order: Callable[[Iterable[Job], int], list[Job]] | None) -> list[Job]:
        self._write_changes()
        if not pull.queues:
            return self._due(pull, due_by, None, pull.limit, order)
        jobs: list[Job] = []
        for queue in pull.queues:
            jobs += self._due(pull, due_by, queue, pull.limit - len(jobs), order)
        return jobs

    def _due(
        self,
        pull: Pull,
        due_by: int,
        queue: str | None,
        limit: int,
        order: Callable[[Iterable[Job], int], list[Job]] | None,
    ) -> list[Job]:
        if not limit:
            return []
        if order is None:
            return [job_of(row) for row in islice(due_rows(self._connection, pull, due_by, queue, limit), limit)]
        return order((job_of(row) for row in due_rows(self._connection, pull, due_by, queue)), limit)

    def set_aside(self, jobs: Sequence[Job]) -> None:
        self.wrote = True
        rows.set_aside(self._connection, jobs)

    def bring_back(self, limit: int) -> None:
        self._write_changes()
        self.wrote |= rows.bring_back(self._connection, limit)

    def running_objects(self, actions: Collection[str] = ()) -> set[tuple[str, str]]:
        self._write_changes()
        return rows.running_objects(self._connection, actions)

    def expired(self, now: int, limit: int) -> list[Job]:
        self._write_changes()
        return [job_of(row) for row in rows.expired(self._connection, now, limit)]

    # Objects, effects, alerts, governance

    def put_object(self, row: ObjectRow) -> None:
        self.wrote = True
        key = (row.object_type, row.object_id)
        self._objects[key] = self._changed_objects[key] = row

    def object_event(
        self,
        job: Job,
        old: Mapping[str, Json],
        new: Mapping[str, Json],
        reason: Reason,
        actor: Actor,
        evidence: Sequence[str] = (),
    ) -> str:
        self.wrote = True
        return self._trailing().object_changed(job, old, new, reason, actor, evidence)

    def put_effect(self, effect: Effect) -> None:
        self.wrote = True
        rows.put_effect(self._connection, effect)

    def alert(self, alert_id: str, body: Json) -> None:
        self.wrote = True
        rows.put_alert(self._connection, alert_id, body)

    def write_back(self, body: Json) -> None:
        self.wrote = True
        rows.put_write_back(self._connection, body)

    def write_backs_taken(self, upto: int) -> None:
        self.wrote = True
        rows.write_backs_taken(self._connection, upto)

    def alerts_delivered(self, upto: int, at: int) -> None:
        self.wrote = True
        rows.alerts_delivered(self._connection, upto, at)

    def tables(self, kind: Callable[[sqlite3.Connection], T]) -> T:
        self._write_changes()
        self.wrote = True
        self._governed = self._closed = None
        return kind(self._connection)

    def any_governed(self) -> bool:
        if self._governed is None:
            self._governed = super().any_governed()
        return self._governed

    def is_governed(self, object_type: str, object_id: str) -> bool:
        return self.any_governed() and super().is_governed(object_type, object_id)

    def any_closed(self) -> bool:
        if self._closed is None:
            found = self._connection.execute("SELECT EXISTS (SELECT 1 FROM closed_objects)").fetchone()
            self._closed = bool(found[0])
        return self._closed

    def is_closed(self, object_type: str, object_id: str) -> bool:
        return self._has("closed_objects", object_type, object_id)

    def governance_event(self, event: GovernanceEvent, actor: Actor, at: int) -> str:
        self.wrote = True
        return self._trailing().governed(event, actor, at)

    def execute(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        self._write_changes()
        self._forget()
        self.wrote = True
        return execute_authorized(self._connection, statement, values)

    def next_event_id(self) -> str:
        return self._trailing().next_id

    # Removal

    def remove(self, jobs: Sequence[Job]) -> None:
        self._write_changes()
        self._forget()
        self.wrote = True
        self._used = None
        rows.remove(self._connection, jobs)
        archive_events(self._connection, [job.seq for job in jobs])
        for job in jobs:
            self._counts.add(job, -1)

    def free(self, key: str, reason: str, actor: Actor, at: int) -> bool:
        hash = sha256(key.encode()).digest()
        if not self._connection.execute("DELETE FROM used_keys WHERE hash = ?", (hash,)).rowcount:
            return False
        self.wrote = True
        self._used = None
        self._trailing().key_freed(key, hash, reason, actor, at)
        return True

    # Plans and workers

    def put_plan(self, plan: Plan) -> None:
        self.wrote = True
        rows.put_plan(self._connection, plan)

    def drop_plan(self, name: str) -> None:
        self.wrote = True
        rows.drop_plan(self._connection, name)

    def plan_event(self, change: PlanChange, actor: Actor, at: int) -> None:
        self.wrote = True
        self._trailing().plan_changed(change, actor, at)

    def put_worker(self, row: WorkerRow, *, forget_before: int, most: int) -> None:
        self.wrote = True
        rows.put_worker(self._connection, row, forget_before=forget_before, most=most)

    # The time

    def time_set(self, right: int) -> None:
        """Set every past time that is later than `right` back to it; it becomes the store's time."""
        self._write_changes()
        self._forget()
        self.wrote = True
        set_back(self._connection, right)
        self._put_anchor(self._time.repaired_anchor(right))

    def after(self, at: int) -> list[Job]:
        self._write_changes()
        query = f"SELECT {COLUMNS} FROM jobs WHERE updated_at > ? ORDER BY seq"
        return [job_of(row) for row in self._connection.execute(query, (at,))]

    def time_event(
        self, before: Mapping[str, Json], after: Mapping[str, Json], reason: str, actor: Actor, at: int
    ) -> None:
        self.wrote = True
        self._trailing().time_set(before, after, reason, actor, at=at)

    # Inside

    def _put_anchor(self, anchor: Anchor) -> None:
        self._connection.execute("INSERT OR REPLACE INTO clock VALUES (1, ?, ?, ?, ?)", astuple(anchor))
        self._time.observe(anchor.at, anchor)

    def _trailing(self) -> Trail:
        if self._trail is None:
            self._trail = Trail(*self._head, self._metadata)
        return self._trail

    def _write_changes(self) -> None:
        if self._changed_jobs:
            rows.update(self._connection, self._changed_jobs.values())
            self._changed_jobs.clear()
        if self._changed_more:
            rows.update_more(self._connection, self._changed_more.values())
            self._changed_more.clear()
        if self._changed_objects:
            _OBJECT.run(self._connection, map(astuple, self._changed_objects.values()))
            self._changed_objects.clear()
        if self._freed:
            if self.anything_aside():
                for freed in self._freed:
                    rows.bring_first_back(self._connection, freed)
            self._freed.clear()

    def _forget(self) -> None:
        self._jobs.clear()
        self._objects.clear()


def _ends(before: Job, after: Job) -> bool:
    """Whether a job or a delivery ended; a job that governance withholds ends without a delivery."""
    if before.status == Status.RUNNING:
        return True
    return before.status == Status.QUEUED and after.status != Status.RUNNING and not is_superseded(after)
