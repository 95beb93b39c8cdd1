"""The due jobs that a pull may take, in order: only matching rows are read.

A pull with queues, types or actions reads one range of an index for each matching kind, and merges them.
"""

import sqlite3
from collections.abc import Iterator
from heapq import merge
from typing import Any

from pendula.jobs.model import VERIFICATIONS, Job
from pendula.jobs.requests import Pull
from pendula.jobs.store.tables.lists import COLUMNS

Kind = tuple[str, str, str]  # queue, object type, action

ASIDE = "status = 'queued' AND aside = 1"
# Verifications of one governed object always run one after the other; other jobs only where the policy says so.
_VERIFIES = "action IN ('" + "', '".join(sorted(VERIFICATIONS)) + "')"
NEEDLESSLY_ASIDE = f"""{ASIDE} AND NOT ({_VERIFIES} AND EXISTS (
    SELECT 1 FROM governed WHERE governed.object_type = jobs.object_type AND governed.object_id = jobs.object_id))"""
_WAITING = "FROM jobs WHERE status = 'queued' AND aside = 0"
# Named explicitly: with few kinds SQLite would choose `jobs_due`, which is slower.
_BY_KIND = "FROM jobs INDEXED BY jobs_due_kinds WHERE status = 'queued' AND aside = 0"
_OF_KIND = f"{_BY_KIND} AND queue = ? AND object_type = ? AND action = ? AND run_at <= ?"
_IN_ORDER = "ORDER BY run_at, priority, seq LIMIT ?"
# A time no job has: the search lands after all jobs of a kind instead of scanning them.
AFTER_ALL = (1 << 63) - 1
_NEXT_KIND = f"""SELECT queue, object_type, action {_BY_KIND}
    AND (queue, object_type, action, run_at) > (?, ?, ?, {AFTER_ALL})
    ORDER BY queue, object_type, action, run_at LIMIT 1"""
_NEXT_KIND_OF_QUEUE = f"""SELECT queue, object_type, action {_BY_KIND}
    AND queue = ? AND (object_type, action, run_at) > (?, ?, {AFTER_ALL})
    ORDER BY object_type, action, run_at LIMIT 1"""
_ALL = -1


def is_filtered(pull: Pull) -> bool:
    return bool(pull.queues or pull.object_types or pull.actions or pull.pairs)


def is_wanted(pull: Pull, kind: Kind) -> bool:
    """Whether a pull matches jobs of this type and action, ignoring their queue."""
    _, object_type, action = kind
    return (
        (not pull.object_types or object_type in pull.object_types)
        and (not pull.actions or action in pull.actions)
        and (not pull.pairs or (object_type, action) in pull.pairs)
    )


def kinds(connection: sqlite3.Connection, pull: Pull, queue: str | None) -> list[Kind]:
    """The matching kinds with a queued job, due or not; one index search for each kind."""
    matching = []
    query, kind = (_NEXT_KIND, ("", "", "")) if queue is None else (_NEXT_KIND_OF_QUEUE, (queue, "", ""))
    while (row := connection.execute(query, kind).fetchone()) is not None:
        kind = row
        if is_wanted(pull, kind):
            matching.append(kind)
    return matching


def is_any_due(connection: sqlite3.Connection, pull: Pull | None, due_by: int) -> bool:
    if pull is None or not is_filtered(pull):
        query = f"SELECT 1 {_WAITING} AND run_at <= ? LIMIT 1"
        return connection.execute(query, (due_by,)).fetchone() is not None
    query = f"SELECT 1 {_OF_KIND} LIMIT 1"
    return any(
        connection.execute(query, (*kind, due_by)).fetchone() is not None
        for queue in pull.queues or (None,)
        for kind in kinds(connection, pull, queue)
    )


def count_due(connection: sqlite3.Connection, object_type: str, action: str, due_by: int) -> tuple[int, int, str]:
    """How many jobs of a type and an action are due, set aside or not, since when, and the id of the first."""
    query = f"""SELECT count(*), min(run_at), job_id FROM (
        SELECT run_at, job_id {_BY_KIND} AND object_type = ?1 AND action = ?2 AND run_at <= ?3 AND queue IN
            (SELECT queue FROM counts WHERE status = 'queued' AND object_type = ?1 AND action = ?2 AND n > 0)
        UNION ALL
        SELECT run_at, job_id FROM jobs WHERE {ASIDE} AND object_type = ?1 AND +action = ?2 AND run_at <= ?3)"""
    row: tuple[int, int, str] = connection.execute(query, (object_type, action, due_by)).fetchone()
    return row


def due_rows(
    connection: sqlite3.Connection, pull: Pull, due_by: int, queue: str | None, limit: int = _ALL
) -> Iterator[tuple[Any, ...]]:
    """Rows of `COLUMNS`, of one queue or of all; with `limit`, at most so many of each kind."""
    if not is_filtered(pull):
        return connection.execute(f"SELECT {COLUMNS} {_WAITING} AND run_at <= ? {_IN_ORDER}", (due_by, limit))
    query = f"SELECT {COLUMNS} {_OF_KIND} {_IN_ORDER}"
    # A cursor for each kind: they are read alternately.
    parts = [connection.cursor().execute(query, (*kind, due_by, limit)) for kind in kinds(connection, pull, queue)]
    return parts[0] if len(parts) == 1 else merge(*parts, key=_order)


_RUN_AT, _PRIORITY, _SEQ = (Job.__struct_fields__.index(name) for name in ("run_at", "priority", "seq"))


def _order(row: tuple[Any, ...]) -> tuple[int, int, int]:
    return row[_RUN_AT], row[_PRIORITY], row[_SEQ]
