"""Jobs by any filter, newest first: pages and counts, and the choice of an index.

Object type, action and queue never change and have few values, so one index serves them all: the existing kinds are
known from the counts, and the lists of matching kinds are merged. Of queued, running and succeeded jobs, a rare status
is sorted, and a common one is found soon when scanning back from the newest.
"""

import sqlite3
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Any

from msgspec import Struct

from pendula.jobs.model import Job
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
