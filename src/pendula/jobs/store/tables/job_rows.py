"""Rows of jobs, many with one statement: insert, look up by key, update, set aside for a busy object."""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from operator import attrgetter
from typing import Any

from msgspec.structs import astuple

from pendula.jobs.model import Job
from pendula.jobs.store.tables.bulk import Bulk
from pendula.jobs.store.tables.due import AFTER_ALL, ASIDE, NEEDLESSLY_ASIDE
from pendula.jobs.store.tables.lists import COLUMNS

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
