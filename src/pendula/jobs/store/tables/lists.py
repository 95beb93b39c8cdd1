"""Jobs by any filter, newest first, and the due jobs that a pull may take, in order: only matching rows are read.

Object type, action and queue never change and have few values, so one index serves them all: the existing kinds are
known from the counts, and the lists of matching kinds are merged. Of queued, running and succeeded jobs, a rare status
is sorted, and a common one is found soon when scanning back from the newest. A pull with queues, types or actions reads
one range of an index for each matching kind, and merges them.
"""

import sqlite3
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Any

from msgspec import Struct

from pendula.jobs.messages import Pull
from pendula.jobs.model import VERIFICATIONS, Job
from pendula.jobs.store.protocol import Listing

FIELDS = ("status", "object_type", "object_id", "action", "queue", "correlation_id", "error_code")
# The condition of a partial index, so that SQLite uses it.
GIVEN_UP = "status IN ('failed', 'dead_letter')"
# A status that at least one in so many jobs has is common.
COMMON = 10
EVERYTHING = 1 << 62
COLUMNS = ", ".join(Job.__struct_fields__)


class IndexScan(Struct, frozen=True):
    """One scan of one index: conditions and values; `sorts` where the index is in another order."""

    conditions: tuple[str, ...]
    values: tuple[Any, ...]
    sorts: bool = False

    def where(self, listing: Listing, bounds: tuple[int, int]) -> tuple[str, tuple[Any, ...]]:
        # The plus keeps SQLite from scanning all jobs by their number.
        seq = "+seq" if self.sorts else "seq"
        held = [name for name in FIELDS if getattr(listing, name) is not None]
        parts = (*self.conditions, *(f"+{name} = ?" for name in held), f"{seq} >= ?", f"{seq} < ?")
        return " AND ".join(parts), (*self.values, *(getattr(listing, name) for name in held), *bounds)


def jobs(connection: sqlite3.Connection, listing: Listing) -> list[Job]:
    """One page, newest first."""
    bounds = bounds_of(connection, listing)
    passes = [_rows(connection, scan, listing, bounds) for scan in scans(connection, listing)]
    rows = passes[0] if len(passes) == 1 else merge(*passes, key=lambda row: row[0], reverse=True)
    return [Job(*row) for row in islice(rows, listing.limit)]


def count(connection: sqlite3.Connection, listing: Listing) -> int:
    """How many jobs match, ignoring the limit."""
    bounds = bounds_of(connection, listing)
    total = 0
    for scan in scans(connection, listing):
        where, values = scan.where(listing, bounds)
        total += connection.execute(f"SELECT count(*) FROM jobs WHERE {where}", values).fetchone()[0]
    return total


def _rows(
    connection: sqlite3.Connection, scan: IndexScan, listing: Listing, bounds: tuple[int, int]
) -> Iterator[tuple[Any, ...]]:
    where, values = scan.where(listing, bounds)
    if scan.sorts:
        # Only numbers are sorted, not rows. An index in this order would cost every pull a page for each job.
        where = f"seq IN (SELECT seq FROM jobs WHERE {where} ORDER BY +seq DESC LIMIT ?)"
        values = (*values, listing.limit)
    query = f"SELECT {COLUMNS} FROM jobs WHERE {where} ORDER BY seq DESC LIMIT ?"
    return connection.execute(query, (*values, listing.limit))


def scans(connection: sqlite3.Connection, listing: Listing) -> list[IndexScan]:
    """The scans that answer a listing; the most selective filter decides."""
    if listing.correlation_id is not None:
        return [IndexScan(("correlation_id = ?",), (listing.correlation_id,))]
    if listing.object_id is not None:
        kinds = sorted({kind[0] for kind in _kinds(connection, listing)})
        return [
            IndexScan(("object_type = ?", "object_id = ?"), (kind, listing.object_id)) for kind in kinds
        ] or _NOTHING
    if listing.error_code is not None:
        return [IndexScan(("last_error IS NOT NULL", "error_code = ?"), (listing.error_code,))]
    if listing.status in ("failed", "dead_letter"):
        return [IndexScan((GIVEN_UP, "status = ?"), (listing.status,))]
    if listing.object_type is not None or listing.action is not None or listing.queue is not None:
        named = ("object_type = ?", "action = ?", "queue = ?")
        return [IndexScan(named, kind) for kind in _kinds(connection, listing)] or _NOTHING
    if listing.status is not None and _is_rare(connection, listing.status):
        # The literal status: only then does SQLite use the partial index.
        if listing.status == "queued":
            return [IndexScan(("status = 'queued'", f"aside = {aside}"), (), sorts=True) for aside in (0, 1)]
        finished = ("status IN ('succeeded', 'failed', 'dead_letter')",) if listing.status == "succeeded" else ()
        return [IndexScan((*finished, f"status = '{listing.status}'"), (), sorts=True)]
    return [IndexScan((), ())]


_NOTHING = [IndexScan(("0",), ())]


def _kinds(connection: sqlite3.Connection, listing: Listing) -> list[tuple[str, str, str]]:
    """The object types, actions and queues of jobs that may match."""
    where, values = ["n <> 0"], list[Any]()
    for name in ("status", "object_type", "action", "queue"):
        if (value := getattr(listing, name)) is not None:
            where.append(f"{name} = ?")
            values.append(value)
    query = f"SELECT DISTINCT object_type, action, queue FROM counts WHERE {' AND '.join(where)} ORDER BY 1, 2, 3"
    return connection.execute(query, values).fetchall()


def _is_rare(connection: sqlite3.Connection, status: str) -> bool:
    query = "SELECT coalesce(sum(n) FILTER (WHERE status = ?), 0), coalesce(sum(n), 0) FROM counts"
    matching, total = connection.execute(query, (status,)).fetchone()
    return bool(matching * COMMON < total)


def bounds_of(connection: sqlite3.Connection, listing: Listing) -> tuple[int, int]:
    """The range of job numbers that may match, its end excluded."""
    first = 0 if listing.created_after is None else _first_since(connection, listing.created_after)
    after = EVERYTHING if listing.created_before is None else _first_since(connection, listing.created_before)
    return first, after if listing.before is None else min(after, listing.before)


def _first_since(connection: sqlite3.Connection, at: int) -> int:
    """The number of the first job stored then or later, by binary search: numbers and times rise together."""
    low, high = connection.execute("SELECT (SELECT min(seq) FROM jobs), (SELECT max(seq) FROM jobs)").fetchone()
    if low is None:
        return 0
    high += 1
    while low < high:
        middle = (low + high) // 2
        query = "SELECT seq, created_at FROM jobs WHERE seq >= ? ORDER BY seq LIMIT 1"
        seq, created_at = connection.execute(query, (middle,)).fetchone()
        if created_at >= at:
            high = middle
        else:
            low = seq + 1
    return int(low)


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
