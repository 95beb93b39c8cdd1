"""What one transaction writes: jobs, objects, events and counts, collected and written with few statements."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import astuple

from pendula.jobs.audit import GENESIS, PlanChange, Trail
from pendula.jobs.ids import seq_of
from pendula.jobs.model import SECOND, Actor, Job, Status
from pendula.jobs.plans import Plan
from pendula.jobs.requests import Pull
from pendula.jobs.store import sqlite_registry
from pendula.jobs.store.protocol import Effect, ObjectRow, WorkerRow
from pendula.jobs.store.sqlite_bulk import Bulk
from pendula.jobs.store.sqlite_guard import execute_guarded
from pendula.jobs.store.sqlite_reader import COLUMNS, SqliteReader, conditions_of, job_of
from pendula.kernel.canonical import Json, encode

_INSERT = Bulk(f"INSERT INTO jobs ({COLUMNS}) VALUES", len(Job.__struct_fields__), "ON CONFLICT DO NOTHING")
_CHANGING = (
    "run_at", "attempt", "status", "last_error", "updated_at", "worker_id", "lease", "lease_expires_at",
    "delivery_count", "audit_event_id", "outcome", "last_lease", "ended", "expired",
)  # fmt: skip
_NEW = ", ".join(f"{name} = new.column{number}" for number, name in enumerate(_CHANGING, 2))
_UPDATE = Bulk(f"UPDATE jobs SET {_NEW} FROM (VALUES", 1 + len(_CHANGING), ") AS new WHERE seq = new.column1")
_DUE = f"SELECT {COLUMNS} FROM jobs WHERE status = 'queued' AND run_at <= ?"
_IN_ORDER = " ORDER BY run_at, priority, seq"
_EVENT = Bulk("INSERT INTO audit (n, event_type, object_type, object_id, job_seq, body, hash) VALUES", 7)
_COUNT = """INSERT INTO counts (status, object_type, action, priority, queue, n) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (status, object_type, action, priority, queue) DO UPDATE SET n = n + excluded.n"""
_ENDED = """INSERT INTO ended (second, succeeded, failed, dead_letter, attempts, requeues) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (second) DO UPDATE SET succeeded = succeeded + excluded.succeeded, failed = failed + excluded.failed,
    dead_letter = dead_letter + excluded.dead_letter, attempts = attempts + excluded.attempts,
    requeues = requeues + excluded.requeues"""
_WITH_OBJECTS = f"""SELECT {", ".join(f"jobs.{name}" for name in Job.__struct_fields__)}, next_action_at, version, state
    FROM jobs LEFT JOIN objects USING (object_type, object_id) WHERE seq IN"""
_OBJECT = Bulk(
    "INSERT INTO objects (object_type, object_id, next_action_at, version, state) VALUES",
    5,
    "ON CONFLICT (object_type, object_id) DO UPDATE SET next_action_at = excluded.next_action_at, "
    "version = excluded.version, state = excluded.state",
)
KEYS_AT_ONCE = 500
ENDED_KEPT_SEC = 8 * 86_400


class Mark(msgspec.Struct, frozen=True):
    """Where a caller's part of the transaction begins."""

    trail: tuple[int, bytes, int] | None
    counts: dict[tuple[str, str, str, int, str], int]
    ended: dict[int, list[int]]
    wrote: bool
    seq: int | None


class SqliteWriter(SqliteReader):
    """Everything one transaction does; events and counts are written at its end, all at once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._trail: Trail | None = None
        self._metadata: Mapping[str, Json] = {}
        self._counts: dict[tuple[str, str, str, int, str], int] = {}
        self._ended: dict[int, list[int]] = {}
        self._seq: int | None = None
        # What was read or changed here. Changes are written when somebody looks for them, and at the end: all at once.
        self._jobs: dict[str, Job] = {}
        self._objects: dict[tuple[str, str], ObjectRow | None] = {}
        self._changed_jobs: dict[str, Job] = {}
        self._changed_objects: dict[tuple[str, str], ObjectRow] = {}
        self.wrote = False

    # One caller's part

    def mark(self, metadata: Mapping[str, Json]) -> Mark:
        self._metadata = metadata
        self._write_changes()
        if self._trail is not None:
            self._trail.metadata = metadata
        trail = self._trail.mark() if self._trail is not None else None
        ended = {second: list(numbers) for second, numbers in self._ended.items()}
        return Mark(trail, dict(self._counts), ended, self.wrote, self._seq)

    def undo(self, mark: Mark) -> None:
        if mark.trail is None:
            self._trail = None
        elif self._trail is not None:
            self._trail.back_to(mark.trail)
        self._counts, self._ended, self.wrote, self._seq = mark.counts, mark.ended, mark.wrote, mark.seq
        self._changed_jobs.clear()
        self._changed_objects.clear()
        self._forget()

    def finish(self) -> None:
        self._write_changes()
        if self._trail is not None:
            _EVENT.run(self._connection, map(astuple, self._trail.rows))
        self._connection.executemany(_COUNT, [(*key, n) for key, n in self._counts.items() if n])
        self._connection.executemany(_ENDED, [(second, *numbers) for second, numbers in self._ended.items()])
        if self._ended:
            # Beyond the longest window nobody asks.
            self._connection.execute("DELETE FROM ended WHERE second < ?", (max(self._ended) - ENDED_KEPT_SEC,))

    # Jobs

    def by_keys(self, keys: Sequence[str]) -> dict[str, Job]:
        self._write_changes()
        found: dict[str, Job] = {}
        for first in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[first : first + KEYS_AT_ONCE]
            query = f"SELECT {COLUMNS} FROM jobs WHERE idempotency_key IN ({', '.join('?' * len(some))})"
            for row in self._connection.execute(query, some):
                job = job_of(row)
                found[job.idempotency_key] = job
        return found

    def used(self, key_hash: bytes) -> bool:
        query = "SELECT 1 FROM used_keys WHERE hash = ?"
        return self._connection.execute(query, (key_hash,)).fetchone() is not None

    def any_used(self) -> bool:
        return bool(self._connection.execute("SELECT EXISTS (SELECT 1 FROM used_keys)").fetchone()[0])

    def job(self, job_id: str) -> Job | None:
        known = self._jobs.get(job_id)
        return known if known is not None else super().job(job_id)

    def object(self, object_type: str, object_id: str) -> ObjectRow | None:
        key = (object_type, object_id)
        return self._objects[key] if key in self._objects else super().object(object_type, object_id)

    def expect(self, job_ids: Sequence[str]) -> None:
        self._write_changes()
        for first in range(0, len(job_ids), KEYS_AT_ONCE):
            numbers = [seq_of(job_id) for job_id in job_ids[first : first + KEYS_AT_ONCE]]
            query = f"{_WITH_OBJECTS} ({', '.join('?' * len(numbers))})"
            for row in self._connection.execute(query, numbers):
                job, object_part = job_of(row[:-3]), row[-3:]
                about = (job.object_type, job.object_id)
                self._jobs[job.job_id] = job
                self._objects[about] = None if object_part[1] is None else ObjectRow(*about, *object_part)

    def event_about(self, n: int, job: Job) -> bool:
        """Whether a stored event of this number is about the job or its object."""
        query = "SELECT 1 FROM audit WHERE n = ? AND (job_seq = ? OR (object_type = ? AND object_id = ?))"
        return self._connection.execute(query, (n, job.seq, job.object_type, job.object_id)).fetchone() is not None

    def next_seq(self) -> int:
        if self._seq is None:
            row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'jobs'").fetchone()
            self._seq = 0 if row is None else row[0]
        self._seq += 1
        return self._seq

    def insert(self, jobs: Sequence[Job], actor: Actor) -> bool:
        before = self._connection.total_changes
        self._connection.execute("SAVEPOINT added")
        _INSERT.run(self._connection, map(astuple, jobs))
        fits = self._connection.total_changes - before == len(jobs)
        if not fits:
            self._connection.execute("ROLLBACK TO added")
            self._seq = None
        self._connection.execute("RELEASE added")
        if not fits:
            return False
        self._seq = jobs[-1].seq if jobs else self._seq
        self.wrote = True
        trail = self._trailing()
        for job in jobs:
            trail.enqueued(job, actor)
            self._count(job, 1)
        return True

    def change(self, before: Job, after: Job, touched: Sequence[str], reason: str, actor: Actor) -> Job:
        self.wrote = True
        trail = self._trailing()
        trail.changed(before, after, touched, reason, actor)
        self._jobs[after.job_id] = self._changed_jobs[after.job_id] = after
        if before.status != after.status:
            self._count(before, -1)
            self._count(after, 1)
            if before.status == Status.RUNNING:
                self._end(after, attempted=after.attempt != before.attempt)
            elif after.status == Status.FAILED:
                self._end(after, attempted=False)
        return after

    def touch(self, job: Job) -> None:
        self.wrote = True
        self._jobs[job.job_id] = self._changed_jobs[job.job_id] = job

    def due(self, pull: Pull, due_by: int, order: Callable[[Iterable[Job], int], list[Job]] | None) -> list[Job]:
        self._write_changes()
        if not pull.queues:
            return self._due(pull, due_by, None, pull.limit, order)
        found: list[Job] = []
        for queue in pull.queues:
            found += self._due(pull, due_by, queue, pull.limit - len(found), order)
        return found

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
        conditions, values = conditions_of(pull)
        if queue is not None:
            conditions += " AND queue = ?"
            values.append(queue)
        query = _DUE + conditions + _IN_ORDER
        if order is None:
            rows = self._connection.execute(query + " LIMIT ?", (due_by, *values, limit))
            return [job_of(row) for row in rows.fetchall()]
        rows = self._connection.execute(query, (due_by, *values))
        return order((job_of(row) for row in rows), limit)

    def running_objects(self) -> set[tuple[str, str]]:
        self._write_changes()
        query = "SELECT object_type, object_id FROM jobs WHERE status = 'running'"
        return {(row[0], row[1]) for row in self._connection.execute(query)}

    def expired(self, now: int) -> list[Job]:
        self._write_changes()
        query = (
            f"SELECT {COLUMNS} FROM jobs WHERE status = 'running' AND lease_expires_at <= ? "
            "ORDER BY lease_expires_at, seq"
        )
        return [job_of(row) for row in self._connection.execute(query, (now,)).fetchall()]

    # Objects, effects, alerts

    def put_object(self, row: ObjectRow) -> None:
        self.wrote = True
        key = (row.object_type, row.object_id)
        self._objects[key] = self._changed_objects[key] = row

    def object_event(
        self, job: Job, old: Mapping[str, Json], new: Mapping[str, Json], reason: str, actor: Actor
    ) -> str:
        self.wrote = True
        return self._trailing().object_changed(job, old, new, reason, actor, ())

    def put_effect(self, effect: Effect) -> None:
        self.wrote = True
        self._connection.execute(
            "INSERT INTO effects (idempotency_key, job_seq, fence, result, at) VALUES (?, ?, ?, ?, ?)",
            (effect.idempotency_key, effect.job_seq, effect.fence, encode(effect.result).decode(), effect.at),
        )

    def alert(self, alert_id: str, body: Json) -> None:
        self.wrote = True
        self._connection.execute(
            "INSERT INTO alerts (alert_id, body) VALUES (?, ?) ON CONFLICT (alert_id) DO NOTHING",
            (alert_id, encode(body).decode()),
        )

    def write_back(self, body: Json) -> None:
        self.wrote = True
        self._connection.execute("INSERT INTO write_backs (body) VALUES (?)", (encode(body).decode(),))

    def write_backs_taken(self, upto: int) -> None:
        self.wrote = True
        self._connection.execute("DELETE FROM write_backs WHERE n <= ?", (upto,))

    def alerts_delivered(self, upto: int, at: int) -> None:
        self.wrote = True
        query = "UPDATE alerts SET delivered_at = ? WHERE delivered_at IS NULL AND n <= ?"
        self._connection.execute(query, (at, upto))

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self._write_changes()
        self._forget()
        self.wrote = True
        return execute_guarded(self._connection, statement, values)

    def next_event_id(self) -> str:
        return self._trailing().next_id

    # What leaves

    def remove(self, jobs: Sequence[Job]) -> None:
        self._write_changes()
        self._forget()
        self.wrote = True
        used = "INSERT INTO used_keys (hash) VALUES (?) ON CONFLICT DO NOTHING"
        self._connection.executemany(used, [(sha256(job.idempotency_key.encode()).digest(),) for job in jobs])
        self._connection.executemany(
            "DELETE FROM effects WHERE idempotency_key = ?", [(job.idempotency_key,) for job in jobs]
        )
        self._connection.executemany("DELETE FROM jobs WHERE seq = ?", [(job.seq,) for job in jobs])
        for job in jobs:
            self._count(job, -1)

    def free(self, key: str, reason: str, actor: Actor, at: int) -> bool:
        hash = sha256(key.encode()).digest()
        if not self._connection.execute("DELETE FROM used_keys WHERE hash = ?", (hash,)).rowcount:
            return False
        self.wrote = True
        self._trailing().key_freed(key, hash, reason, actor, at)
        return True

    # Plans and workers

    def put_plan(self, plan: Plan) -> None:
        self.wrote = True
        sqlite_registry.put_plan(self._connection, plan)

    def drop_plan(self, name: str) -> None:
        self.wrote = True
        sqlite_registry.drop_plan(self._connection, name)

    def plan_event(self, change: PlanChange, actor: Actor, at: int) -> None:
        self.wrote = True
        self._trailing().plan_changed(change, actor, at)

    def put_worker(self, row: WorkerRow, *, forget_before: int, most: int) -> None:
        self.wrote = True
        sqlite_registry.put_worker(self._connection, row, forget_before=forget_before, most=most)

    # Inside

    def _trailing(self) -> Trail:
        if self._trail is None:
            row = self._connection.execute("SELECT n, hash FROM audit ORDER BY n DESC LIMIT 1").fetchone()
            n, hash = (0, GENESIS) if row is None else row
            self._trail = Trail(n, hash, self._metadata)
        return self._trail

    def _write_changes(self) -> None:
        if self._changed_jobs:
            _UPDATE.run(self._connection, map(_changed_values, self._changed_jobs.values()))
            self._changed_jobs.clear()
        if self._changed_objects:
            _OBJECT.run(self._connection, map(astuple, self._changed_objects.values()))
            self._changed_objects.clear()

    def _forget(self) -> None:
        self._jobs.clear()
        self._objects.clear()

    def _count(self, job: Job, by: int) -> None:
        key = (job.status, job.object_type, job.action, job.priority, job.queue)
        self._counts[key] = self._counts.get(key, 0) + by

    def _end(self, job: Job, *, attempted: bool) -> None:
        """One attempt, or one job, is over: what rates are made of."""
        numbers = self._ended.setdefault(job.updated_at // SECOND, [0, 0, 0, 0, 0])
        match job.status:
            case Status.SUCCEEDED:
                numbers[0] += 1
                numbers[3] += 1
            case Status.FAILED:
                numbers[1] += 1
                numbers[3] += attempted
            case Status.DEAD_LETTER:
                numbers[2] += 1
                numbers[3] += 1
            case Status.QUEUED if attempted:
                numbers[3] += 1
                numbers[4] += 1


def _changed_values(job: Job) -> tuple[Any, ...]:
    return (
        job.seq,
        job.run_at,
        job.attempt,
        job.status,
        job.last_error,
        job.updated_at,
        job.worker_id,
        job.lease,
        job.lease_expires_at,
        job.delivery_count,
        job.audit_event_id,
        job.outcome,
        job.last_lease,
        job.ended,
        job.expired,
    )
