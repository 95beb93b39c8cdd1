"""Rows, many with one statement: of jobs, of the numbers behind metrics, of effects, alerts, plans and workers.

The numbers are updated with every change, so that no query counts rows of jobs. Plans and workers are few, and read as
a whole.
"""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from itertools import chain
from operator import attrgetter
from typing import Any, Self

from msgspec import json
from msgspec.structs import astuple

from pendula.jobs.messages import Recurring
from pendula.jobs.model import SECOND, Job, Priority, Status
from pendula.jobs.plans import Plan
from pendula.jobs.store.protocol import Effect, WorkerRow
from pendula.jobs.store.tables.lists import AFTER_ALL, ASIDE, COLUMNS, NEEDLESSLY_ASIDE
from pendula.kernel.canonical import Json, encode

AT_ONCE = 50  # more rows are hardly faster


class Bulk:
    """A statement for any number of rows: `head`, a list of `width` values for each row, `tail`."""

    def __init__(self, head: str, width: int, tail: str = "") -> None:
        row = f"({', '.join('?' * width)})"
        self._one = f"{head} {row} {tail}"
        self._many = f"{head} {', '.join([row] * AT_ONCE)} {tail}"

    def run(self, connection: sqlite3.Connection, rows: Iterable[Sequence[Any]]) -> None:
        values = list(rows)
        if len(values) == 1:
            connection.execute(self._one, values[0])
            return
        whole = len(values) - len(values) % AT_ONCE
        for first in range(0, whole, AT_ONCE):
            connection.execute(self._many, tuple(chain.from_iterable(values[first : first + AT_ONCE])))
        if whole < len(values):
            connection.executemany(self._one, values[whole:])


# The columns that most jobs never use come last, and are written only where they are set.
_PLAIN = Job.__struct_fields__[: Job.__struct_fields__.index("payload")]
_INSERT = Bulk(f"INSERT INTO jobs ({', '.join(_PLAIN)}) VALUES", len(_PLAIN), "ON CONFLICT DO NOTHING")
_INSERT_WHOLE = Bulk(f"INSERT INTO jobs ({COLUMNS}) VALUES", len(Job.__struct_fields__), "ON CONFLICT DO NOTHING")
_CHANGING = (
    "run_at", "attempt", "status", "last_error", "updated_at", "worker_id", "lease", "lease_expires_at",
    "delivery_count", "audit_event_id", "outcome", "last_lease", "ended", "expired",
)  # fmt: skip
# A changed job is no longer set aside: the next pull looks at it again.
_NEW = ", ".join([f"{name} = new.column{number}" for number, name in enumerate(_CHANGING, 2)] + ["aside = 0"])
_changed_values = attrgetter("seq", *_CHANGING)
_UPDATE = Bulk(f"UPDATE jobs SET {_NEW} FROM (VALUES", 1 + len(_CHANGING), ") AS new WHERE seq = new.column1")
_MORE = "UPDATE jobs SET cancel_requested_at = ?, progress = ?, progress_note = ?, outcome_result = ? WHERE seq = ?"
_more_values = attrgetter("cancel_requested_at", "progress", "progress_note", "outcome_result", "seq")
_FIRST_ASIDE = f"""SELECT queue, action, priority, seq FROM jobs WHERE {ASIDE} AND object_type = ? AND object_id = ?
    AND (queue, action, priority, run_at) > (?, ?, ?, {AFTER_ALL})
    ORDER BY queue, action, priority, run_at, seq LIMIT 1"""
KEYS_AT_ONCE = 500


def added(connection: sqlite3.Connection, jobs: Sequence[Job]) -> bool:
    """Whether all keys were free; if not, nothing was added. A single row needs no savepoint."""
    before = connection.total_changes
    many = len(jobs) > 1
    if many:
        connection.execute("SAVEPOINT added")
    if any(job.payload is not None for job in jobs):
        _INSERT_WHOLE.run(connection, map(astuple, jobs))
    else:
        _INSERT.run(connection, [astuple(job)[: len(_PLAIN)] for job in jobs])
    fits = connection.total_changes - before == len(jobs)
    if many:
        if not fits:
            connection.execute("ROLLBACK TO added")
        connection.execute("RELEASE added")
    return fits


def by_keys(connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, Job]:
    """The jobs with these keys, by key."""
    jobs: dict[str, Job] = {}
    for first in range(0, len(keys), KEYS_AT_ONCE):
        some = keys[first : first + KEYS_AT_ONCE]
        query = f"SELECT {COLUMNS} FROM jobs WHERE idempotency_key IN ({', '.join('?' * len(some))})"
        for row in connection.execute(query, some):
            job = Job(*row)
            jobs[job.idempotency_key] = job
    return jobs


def waiting(connection: sqlite3.Connection, object_type: str, object_id: str, action: str) -> Job | None:
    """The first job for this work that is queued or running."""
    query = (
        f"SELECT {COLUMNS} FROM jobs WHERE object_type = ? AND object_id = ? AND action = ? "
        "AND status IN ('queued', 'running') ORDER BY seq LIMIT 1"
    )
    row = connection.execute(query, (object_type, object_id, action)).fetchone()
    return None if row is None else Job(*row)


def update(connection: sqlite3.Connection, jobs: Iterable[Job]) -> None:
    """Write the columns that most changes touch."""
    _UPDATE.run(connection, map(_changed_values, jobs))


def update_more(connection: sqlite3.Connection, jobs: Iterable[Job]) -> None:
    """Write the columns that few changes touch."""
    connection.executemany(_MORE, map(_more_values, jobs))


def set_aside(connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
    connection.executemany("UPDATE jobs SET aside = 1 WHERE seq = ?", [(job.seq,) for job in jobs])


def bring_back(connection: sqlite3.Connection, limit: int) -> bool:
    """Stop setting aside up to `limit` jobs that are aside needlessly; returns whether there were any."""
    query = f"UPDATE jobs SET aside = 0 WHERE seq IN (SELECT seq FROM jobs WHERE {NEEDLESSLY_ASIDE} LIMIT ?)"
    return connection.execute(query, (limit,)).rowcount > 0


def bring_first_back(connection: sqlite3.Connection, freed: tuple[str, str]) -> None:
    """Bring back the first job of every kind that is set aside for this object: one of them may run next."""
    kind, numbers = ("", "", -1), []
    while (row := connection.execute(_FIRST_ASIDE, (*freed, *kind)).fetchone()) is not None:
        kind = row[:3]
        numbers.append((row[3],))
    connection.executemany("UPDATE jobs SET aside = 0 WHERE seq = ?", numbers)


def remove(connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
    """Delete jobs with their effects and governance columns; their keys stay used."""
    used = "INSERT INTO used_keys (hash) VALUES (?) ON CONFLICT DO NOTHING"
    connection.executemany(used, [(sha256(job.idempotency_key.encode()).digest(),) for job in jobs])
    connection.executemany("DELETE FROM effects WHERE idempotency_key = ?", [(job.idempotency_key,) for job in jobs])
    connection.executemany("DELETE FROM governed_jobs WHERE job_seq = ?", [(job.seq,) for job in jobs])
    connection.executemany("DELETE FROM jobs WHERE seq = ?", [(job.seq,) for job in jobs])


def expired(connection: sqlite3.Connection, now: int, limit: int) -> list[tuple[Any, ...]]:
    """Rows of jobs with an expired lease, in the order of expiry."""
    query = (
        f"SELECT {COLUMNS} FROM jobs WHERE status = 'running' AND lease_expires_at <= ? "
        "ORDER BY lease_expires_at, seq LIMIT ?"
    )
    return connection.execute(query, (now, limit)).fetchall()


def running_objects(connection: sqlite3.Connection, actions: Collection[str] = ()) -> set[tuple[str, str]]:
    query = "SELECT object_type, object_id, action FROM jobs WHERE status = 'running'"
    return {(row[0], row[1]) for row in connection.execute(query) if not actions or row[2] in actions}


_COUNT = """INSERT INTO counts (status, object_type, action, priority, queue, n, at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (status, object_type, action, priority, queue)
    DO UPDATE SET n = n + excluded.n, at = max(at, excluded.at)"""
_ENDED = """INSERT INTO ended (second, succeeded, failed, dead_letter, attempts, requeues) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (second) DO UPDATE SET succeeded = succeeded + excluded.succeeded, failed = failed + excluded.failed,
    dead_letter = dead_letter + excluded.dead_letter, attempts = attempts + excluded.attempts,
    requeues = requeues + excluded.requeues"""
ENDED_KEPT_SEC = 8 * 86_400


Kind = tuple[str, str, str, int, str]  # status, object type, action, priority, queue


class Counts:
    """What one transaction adds to these numbers; written at its end, or before a query needs them."""

    __slots__ = ("_delivered", "_ended", "_jobs")

    def __init__(self) -> None:
        self._jobs: dict[Kind, int] = {}
        self._delivered: dict[Kind, int] = {}  # when a job of a kind was last delivered
        self._ended: dict[int, list[int]] = {}

    def copy(self) -> Self:
        """A copy to restore when a part of the transaction is undone."""
        other = type(self)()
        other._jobs = dict(self._jobs)
        other._delivered = dict(self._delivered)
        other._ended = {second: list(numbers) for second, numbers in self._ended.items()}
        return other

    def add(self, job: Job, by: int) -> None:
        """Count `by` more jobs of this kind."""
        key = _kind(job)
        self._jobs[key] = self._jobs.get(key, 0) + by

    def deliver(self, job: Job) -> None:
        """Record when a job of this kind was delivered."""
        self._delivered[_kind(job)] = job.updated_at

    def end(self, job: Job, *, attempted: bool) -> None:
        """Count an ended attempt or job, for rates."""
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

    def write(self, connection: sqlite3.Connection) -> None:
        for key, n in self._jobs.items():
            if n or key in self._delivered:
                connection.execute(_COUNT, (*key, n, self._delivered.get(key, 0)))
        self._jobs, self._delivered = {}, {}
        if self._ended:
            connection.executemany(_ENDED, [(second, *numbers) for second, numbers in self._ended.items()])
            # Older than the longest window of the metrics.
            connection.execute("DELETE FROM ended WHERE second < ?", (max(self._ended) - ENDED_KEPT_SEC,))
            self._ended = {}


def _kind(job: Job) -> Kind:
    return job.status, job.object_type, job.action, job.priority, job.queue


def put_effect(connection: sqlite3.Connection, effect: Effect) -> None:
    connection.execute(
        "INSERT INTO effects (idempotency_key, job_seq, fence, result, at) VALUES (?, ?, ?, ?, ?)",
        (effect.idempotency_key, effect.job_seq, effect.fence, encode(effect.result).decode(), effect.at),
    )


def put_alert(connection: sqlite3.Connection, alert_id: str, body: Json) -> None:
    connection.execute(
        "INSERT INTO alerts (alert_id, body) VALUES (?, ?) ON CONFLICT (alert_id) DO NOTHING",
        (alert_id, encode(body).decode()),
    )


def alerts_delivered(connection: sqlite3.Connection, upto: int, at: int) -> None:
    query = "UPDATE alerts SET delivered_at = ? WHERE delivered_at IS NULL AND n <= ?"
    connection.execute(query, (at, upto))


def put_write_back(connection: sqlite3.Connection, body: Json) -> None:
    connection.execute("INSERT INTO write_backs (body) VALUES (?)", (encode(body).decode(),))


def write_backs_taken(connection: sqlite3.Connection, upto: int) -> None:
    connection.execute("DELETE FROM write_backs WHERE n <= ?", (upto,))


_ENTRY = Recurring.__struct_fields__
_STATE = Plan.__struct_fields__[1:]
_PLAN = ", ".join((*_ENTRY, *_STATE))
_PUT_PLAN = f"INSERT OR REPLACE INTO plans ({_PLAN}) VALUES ({', '.join('?' * (len(_ENTRY) + len(_STATE)))})"
_WORKER = ", ".join(WorkerRow.__struct_fields__)
_PUT_WORKER = f"INSERT OR REPLACE INTO workers ({_WORKER}) VALUES ({', '.join('?' * len(WorkerRow.__struct_fields__))})"


def plans(connection: sqlite3.Connection) -> list[Plan]:
    """All plans, by name."""
    return [_plan(row) for row in connection.execute(f"SELECT {_PLAN} FROM plans ORDER BY name")]


def plan(connection: sqlite3.Connection, name: str) -> Plan | None:
    try:
        row = connection.execute(f"SELECT {_PLAN} FROM plans WHERE name = ?", (name,)).fetchone()
    except UnicodeEncodeError:  # half a character: nothing of that name was ever stored
        return None
    return None if row is None else _plan(row)


def _plan(row: tuple[Any, ...]) -> Plan:
    entry = dict(zip(_ENTRY, row[: len(_ENTRY)], strict=True))
    if entry["priority"] is not None:
        entry["priority"] = Priority(entry["priority"])
    return Plan(Recurring(**entry), **dict(zip(_STATE, row[len(_ENTRY) :], strict=True)))


def put_plan(connection: sqlite3.Connection, plan: Plan) -> None:
    entry = [getattr(plan.entry, name) for name in _ENTRY]
    connection.execute(_PUT_PLAN, (*entry, *(getattr(plan, name) for name in _STATE)))


def drop_plan(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("DELETE FROM plans WHERE name = ?", (name,))


def workers(connection: sqlite3.Connection) -> list[WorkerRow]:
    """All workers, the latest heartbeat first."""
    query = f"SELECT {_WORKER} FROM workers ORDER BY seen_at DESC, worker_id DESC"
    return [_worker(row) for row in connection.execute(query)]


def _worker(row: tuple[Any, ...]) -> WorkerRow:
    members = dict(zip(WorkerRow.__struct_fields__, row, strict=True))
    members["works"] = json.decode(members["works"], type=tuple[tuple[str, str], ...])
    members["queues"] = json.decode(members["queues"], type=tuple[str, ...])
    return WorkerRow(**members)


def put_worker(connection: sqlite3.Connection, row: WorkerRow, *, forget_before: int, most: int) -> None:
    """Store a heartbeat; drop workers last seen before `forget_before`, and the oldest beyond `most`."""
    *numbers, works, queues = astuple(row)
    connection.execute(_PUT_WORKER, (*numbers, json.encode(works).decode(), json.encode(queues).decode()))
    connection.execute("DELETE FROM workers WHERE seen_at < ?", (forget_before,))
    too_many = "SELECT worker_id FROM workers ORDER BY seen_at DESC, worker_id DESC LIMIT -1 OFFSET ?"
    connection.execute(f"DELETE FROM workers WHERE worker_id IN ({too_many})", (most,))


_BACK = {
    "jobs": ("created_at", "updated_at"),
    "counts": ("at",),
    "plans": ("changed_at", "declared_at", "paused_at"),
    "workers": ("started_at", "seen_at", "ended_at"),
    "effects": ("at",),
    "rollbacks": ("asked_at", "finished_at"),
}
_RATES = ("succeeded", "failed", "dead_letter", "attempts", "requeues")


def set_back(connection: sqlite3.Connection, right: int) -> None:
    """Set every past time that is later than `right` back to it."""
    for table, columns in _BACK.items():
        changes = ", ".join(f"{name} = min({name}, ?1)" for name in columns)
        connection.execute(
            f"UPDATE {table} SET {changes} WHERE {' OR '.join(f'{name} > ?1' for name in columns)}", (right,)
        )
    second = right // SECOND
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in _RATES)
    after = connection.execute(f"SELECT {sums} FROM ended WHERE second > ?", (second,)).fetchone()
    connection.execute("DELETE FROM ended WHERE second > ?", (second,))
    if any(after):
        add = ", ".join(f"{name} = {name} + excluded.{name}" for name in _RATES)
        connection.execute(
            f"INSERT INTO ended (second, {', '.join(_RATES)}) VALUES (?, ?, ?, ?, ?, ?) "
            f"ON CONFLICT (second) DO UPDATE SET {add}",
            (second, *after),
        )
