"""The queries of a store, each answered by an index. Nothing here writes."""

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from heapq import merge
from itertools import islice
from typing import Any, TypeVar

from pendula.jobs.audit import GENESIS, JOB_EVENT, Row
from pendula.jobs.messages import Pull
from pendula.jobs.model import SECOND, Job, Status, seq_of
from pendula.jobs.plans import Plan
from pendula.jobs.store.file.store_time import Anchor, StoreTime, time_of_event
from pendula.jobs.store.protocol import AuditListing, Effect, Figures, Listing, ObjectRow, Unhandled, WorkerRow
from pendula.jobs.store.tables import lists, rows
from pendula.jobs.store.tables.archive import archived
from pendula.jobs.store.tables.lists import AFTER_ALL, ASIDE, COLUMNS, NEEDLESSLY_ASIDE, count_due, is_any_due
from pendula.kernel.canonical import decode

T = TypeVar("T")


def job_of(row: tuple[Any, ...]) -> Job:
    """The job in a row of `COLUMNS`, which are the fields in order.

    Keyword arguments would take twelve times as long, and make a pull of a hundred jobs 5 % slower.
    """
    return Job(*row)


def _number(row: Row) -> int:
    return row.n


class SqliteReader:
    """Queries of one transaction."""

    def __init__(self, connection: sqlite3.Connection, time: StoreTime | None = None) -> None:
        self._connection = connection
        self._time = time or StoreTime()

    def catch_up(self) -> None:
        self.head()

    def head(self) -> tuple[int, bytes]:
        """The number and hash of the newest event; the store's time is not before it from here on."""
        row = self._connection.execute(
            "SELECT n, hash, substr(body, -60) FROM audit ORDER BY n DESC LIMIT 1"
        ).fetchone()
        if row is None:
            return 0, GENESIS
        self._time.observe(time_of_event(row[2]), self.anchor())
        return row[0], row[1]

    def latest_time(self) -> int:
        row = self._connection.execute("SELECT substr(body, -60) FROM audit ORDER BY n DESC LIMIT 1").fetchone()
        return 0 if row is None else time_of_event(row[0])

    def anchor(self) -> Anchor | None:
        row = self._connection.execute("SELECT boot_id, boot_us, at, resets FROM clock").fetchone()
        return None if row is None else Anchor(*row)

    def any_governed(self) -> bool:
        return bool(self._connection.execute("SELECT EXISTS (SELECT 1 FROM governed)").fetchone()[0])

    def is_governed(self, object_type: str, object_id: str) -> bool:
        return self._has("governed", object_type, object_id)

    def _has(self, table: str, object_type: str, object_id: str) -> bool:
        query = f"SELECT 1 FROM {table} WHERE object_type = ? AND object_id = ?"
        try:
            return self._connection.execute(query, (object_type, object_id)).fetchone() is not None
        except UnicodeEncodeError:  # a lone surrogate cannot be stored
            return False

    def tables(self, kind: Callable[[sqlite3.Connection], T]) -> T:
        return kind(self._connection)

    def job(self, job_id: str) -> Job | None:
        seq = seq_of(job_id)
        if seq is None:
            return None
        row = self._connection.execute(f"SELECT {COLUMNS} FROM jobs WHERE seq = ?", (seq,)).fetchone()
        return None if row is None or row[1] != job_id else job_of(row)

    def jobs(self, listing: Listing) -> list[Job]:
        return lists.jobs(self._connection, listing)

    def numbered(self, numbers: Sequence[int]) -> list[Job]:
        query = f"SELECT {COLUMNS} FROM jobs WHERE seq IN (SELECT value FROM json_each(?))"
        return [job_of(row) for row in self._connection.execute(query, (json.dumps(numbers),))]

    def count(self, listing: Listing) -> int:
        return lists.count(self._connection, listing)

    def unhandled(self, since: int) -> list[Unhandled]:
        # The kinds first: where each of them was delivered lately, no job is read.
        idle = (
            "SELECT object_type, action FROM counts GROUP BY object_type, action "
            "HAVING sum(n) FILTER (WHERE status = 'queued') > 0 "
            "AND coalesce(sum(n) FILTER (WHERE status = 'running'), 0) = 0 "
            "AND coalesce(max(at) FILTER (WHERE status = 'running'), 0) <= ?"
        )
        kinds = []
        for object_type, action in self._connection.execute(idle, (since,)).fetchall():
            n, first, job_id = count_due(self._connection, object_type, action, since)
            if n:
                kinds.append(Unhandled(object_type, action, count=n, since=first, job_id=job_id))
        return kinds

    def events(self, listing: AuditListing) -> list[Row]:
        where, values = ["n > ?"], [listing.after]
        for name in ("object_type", "object_id", "job_seq", "event_type"):
            value = getattr(listing, name)
            if value is not None:
                where.append(f"{name} = ?")
                values.append(value)
        if listing.object_type not in (None, JOB_EVENT):
            # The condition of the partial index on objects, so that SQLite uses it.
            where.append(f"object_type <> '{JOB_EVENT}'")
        query = (
            "SELECT n, event_type, object_type, object_id, job_seq, body, hash FROM audit "
            f"WHERE {' AND '.join(where)} ORDER BY n LIMIT ?"
        )
        events = [Row(*row) for row in self._connection.execute(query, (*values, listing.limit))]
        return list(islice(merge(events, archived(self._connection, listing), key=_number), listing.limit))

    def last_event(self) -> int:
        # The newest event is never packed.
        return int(self._connection.execute("SELECT coalesce(max(n), 0) FROM audit").fetchone()[0])

    def object(self, object_type: str, object_id: str) -> ObjectRow | None:
        query = (
            "SELECT object_type, object_id, next_action_at, version, state FROM objects "
            "WHERE object_type = ? AND object_id = ?"
        )
        try:
            row = self._connection.execute(query, (object_type, object_id)).fetchone()
        except UnicodeEncodeError:  # a lone surrogate cannot be stored
            return None
        return None if row is None else ObjectRow(*row)

    def effect(self, key: str) -> Effect | None:
        query = "SELECT idempotency_key, job_seq, fence, result, at FROM effects WHERE idempotency_key = ?"
        row = self._connection.execute(query, (key,)).fetchone()
        return None if row is None else Effect(row[0], row[1], row[2], decode(row[3].encode()), row[4])

    def anything_to_pull(self, due_by: int, now: int, pull: Pull | None = None) -> bool:
        """Whether a pull would find a matching job, or an expired lease."""
        return is_any_due(self._connection, pull, due_by) or self.anything_expired(now)

    def anything_aside(self, *, needlessly: bool = False) -> bool:
        query = f"SELECT 1 FROM jobs WHERE {NEEDLESSLY_ASIDE if needlessly else ASIDE} LIMIT 1"
        return self._connection.execute(query).fetchone() is not None

    def anything_expired(self, now: int) -> bool:
        query = "SELECT EXISTS (SELECT 1 FROM jobs WHERE status = 'running' AND lease_expires_at <= ?)"
        return bool(self._connection.execute(query, (now,)).fetchone()[0])

    def over(self, status: Status, before: int, limit: int) -> list[Job]:
        # With the condition of the partial index, so that SQLite uses it.
        query = (
            f"SELECT {COLUMNS} FROM jobs WHERE status IN ('succeeded', 'failed', 'dead_letter') AND status = ? "
            "AND updated_at < ? ORDER BY updated_at, seq LIMIT ?"
        )
        return [job_of(row) for row in self._connection.execute(query, (status.value, before, limit))]

    def write_backs(self, limit: int) -> list[tuple[int, Any]]:
        found = self._connection.execute("SELECT n, body FROM write_backs ORDER BY n LIMIT ?", (limit,))
        return [(n, decode(body.encode())) for n, body in found]

    def alerts_waiting(self, after: int, limit: int) -> list[tuple[int, Any]]:
        query = "SELECT n, body FROM alerts WHERE delivered_at IS NULL AND n > ? ORDER BY n LIMIT ?"
        return [(n, decode(body.encode())) for n, body in self._connection.execute(query, (after, limit))]

    def alerts(self, before: int | None, limit: int) -> list[tuple[int, Any, int | None]]:
        query = "SELECT n, body, delivered_at FROM alerts WHERE n < ? ORDER BY n DESC LIMIT ?"
        found = self._connection.execute(query, (AFTER_ALL if before is None else before, limit))
        return [(n, decode(body.encode()), delivered_at) for n, body, delivered_at in found]

    def next_time(self) -> int | None:
        due = "SELECT run_at FROM jobs WHERE status = 'queued' AND aside = 0 ORDER BY run_at LIMIT 1"
        lease = "SELECT lease_expires_at FROM jobs WHERE status = 'running' ORDER BY lease_expires_at LIMIT 1"
        times = [row[0] for query in (due, lease) for row in self._connection.execute(query)]
        return min(times, default=None)

    def plans(self) -> list[Plan]:
        return rows.plans(self._connection)

    def plan(self, name: str) -> Plan | None:
        return rows.plan(self._connection, name)

    def workers(self) -> list[WorkerRow]:
        return rows.workers(self._connection)

    def before(self, job: Job, now: int, head_start_sec: Sequence[int], most: int) -> int:
        high, medium, low = (seconds * SECOND for seconds in head_start_sec)
        ahead = (job.run_at - (high, medium, low)[job.priority], job.run_at, job.priority, job.seq)
        # No job due later than this can be ahead, so the scan ends there.
        latest = min(now, ahead[0] + max(high, medium, low))
        query = (
            "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE status = 'queued' AND aside = 0 AND run_at <= ? AND "
            "(run_at - CASE priority WHEN 0 THEN ? WHEN 1 THEN ? ELSE ? END, run_at, priority, seq) < (?, ?, ?, ?) "
            "LIMIT ?)"
        )
        count: int = self._connection.execute(query, (latest, high, medium, low, *ahead, most)).fetchone()[0]
        return count

    def running_on(self, object_type: str, object_id: str, actions: Collection[str] = ()) -> Job | None:
        query = (
            f"SELECT {COLUMNS} FROM jobs WHERE status = 'running' AND object_type = ? AND object_id = ? ORDER BY seq"
        )
        jobs = map(job_of, self._connection.execute(query, (object_type, object_id)))
        return next((job for job in jobs if not actions or job.action in actions), None)

    def figures(self, now: int, since: int) -> Figures:
        execute = self._connection.execute
        due, first = execute(
            "SELECT count(*), min(run_at) FROM jobs WHERE status = 'queued' AND aside = 0 AND run_at <= ?", (now,)
        ).fetchone()
        aside, first_aside = execute(
            f"SELECT count(*), min(run_at) FROM jobs WHERE {ASIDE} AND run_at <= ?", (now,)
        ).fetchone()
        lost, first_lost = execute(
            "SELECT count(*), min(run_at) FROM jobs WHERE status = 'running' AND lease_expires_at <= ?", (now,)
        ).fetchone()
        names = "status, object_type, action, priority, queue, n"
        counts = [tuple(row) for row in execute(f"SELECT {names} FROM counts WHERE n <> 0")]
        sums = execute(
            "SELECT total(succeeded), total(failed), total(dead_letter), total(attempts), total(requeues) "
            "FROM ended WHERE second > ?",
            (since // SECOND,),
        ).fetchone()
        alerts = execute("SELECT count(*) FROM alerts WHERE delivered_at IS NULL").fetchone()[0]
        firsts = [at for at in (first, first_aside, first_lost) if at is not None]
        succeeded, failed, dead, attempts, requeues = map(int, sums)
        return Figures(
            due=due + aside + lost,
            first_due=min(firsts, default=None),
            counts=counts,
            succeeded=succeeded,
            failed=failed,
            dead_letter=dead,
            attempts=attempts,
            requeues=requeues,
            alerts_waiting=alerts,
        )
