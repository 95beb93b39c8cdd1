"""Jobs by any filter, newest first: which index answers, and the pages and counts that come out of it.

Object type, action and queue never change and have few values, so one index holds them all: the kinds of jobs there are
are known from the counts, and the lists of those that fit are merged. Of what waits, runs or has succeeded, the few are
sorted and the many are met soon on the way back from the newest.
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
# Words that let SQLite see that a partial index has all that is asked for.
GIVEN_UP = "status IN ('failed', 'dead_letter')"
# One in so many is met soon on the way back from the newest.
COMMON = 10
EVERYTHING = 1 << 62
COLUMNS = ", ".join(Job.__struct_fields__)


class Source(Struct, frozen=True):
    """One pass over one index: the conditions and their values; `sorts` where the index is in another order."""

    conditions: tuple[str, ...]
    values: tuple[Any, ...]
    sorts: bool = False

    def where(self, listing: Listing, bounds: tuple[int, int]) -> tuple[str, tuple[Any, ...]]:
        # The plus keeps SQLite from walking all jobs by their number.
        seq = "+seq" if self.sorts else "seq"
        held = [name for name in FIELDS if getattr(listing, name) is not None]
        parts = (*self.conditions, *(f"+{name} = ?" for name in held), f"{seq} >= ?", f"{seq} < ?")
        return " AND ".join(parts), (*self.values, *(getattr(listing, name) for name in held), *bounds)


def jobs(connection: sqlite3.Connection, listing: Listing) -> list[Job]:
    """One page, newest first."""
    bounds = bounds_of(connection, listing)
    passes = [_rows(connection, source, listing, bounds) for source in sources(connection, listing)]
    rows = passes[0] if len(passes) == 1 else merge(*passes, key=lambda row: row[0], reverse=True)
    return [Job(*row) for row in islice(rows, listing.limit)]


def count(connection: sqlite3.Connection, listing: Listing) -> int:
    """How many there are, whatever the limit."""
    bounds = bounds_of(connection, listing)
    found = 0
    for source in sources(connection, listing):
        where, values = source.where(listing, bounds)
        found += connection.execute(f"SELECT count(*) FROM jobs WHERE {where}", values).fetchone()[0]
    return found


def _rows(
    connection: sqlite3.Connection, source: Source, listing: Listing, bounds: tuple[int, int]
) -> Iterator[tuple[Any, ...]]:
    where, values = source.where(listing, bounds)
    if source.sorts:
        # Only numbers are sorted, not rows. An index in this order would cost every pull a page for each job it gives.
        where = f"seq IN (SELECT seq FROM jobs WHERE {where} ORDER BY +seq DESC LIMIT ?)"
        values = (*values, listing.limit)
    query = f"SELECT {COLUMNS} FROM jobs WHERE {where} ORDER BY seq DESC LIMIT ?"
    return connection.execute(query, (*values, listing.limit))


def sources(connection: sqlite3.Connection, listing: Listing) -> list[Source]:
    """What to walk; the sharpest filter decides."""
    if listing.correlation_id is not None:
        return [Source(("correlation_id = ?",), (listing.correlation_id,))]
    if listing.object_id is not None:
        kinds = sorted({kind[0] for kind in _kinds(connection, listing)})
        return [Source(("object_type = ?", "object_id = ?"), (kind, listing.object_id)) for kind in kinds] or _NOTHING
    if listing.error_code is not None:
        return [Source(("last_error IS NOT NULL", "error_code = ?"), (listing.error_code,))]
    if listing.status in ("failed", "dead_letter"):
        return [Source((GIVEN_UP, "status = ?"), (listing.status,))]
    if listing.object_type is not None or listing.action is not None or listing.queue is not None:
        named = ("object_type = ?", "action = ?", "queue = ?")
        return [Source(named, kind) for kind in _kinds(connection, listing)] or _NOTHING
    if listing.status is not None and _is_rare(connection, listing.status):
        # The word itself: only so can SQLite see that the index of this status has them all.
        if listing.status == "queued":
            return [Source(("status = 'queued'", f"aside = {aside}"), (), sorts=True) for aside in (0, 1)]
        over = ("status IN ('succeeded', 'failed', 'dead_letter')",) if listing.status == "succeeded" else ()
        return [Source((*over, f"status = '{listing.status}'"), (), sorts=True)]
    return [Source((), ())]


_NOTHING = [Source(("0",), ())]


def _kinds(connection: sqlite3.Connection, listing: Listing) -> list[tuple[str, str, str]]:
    """The object types, actions and queues of jobs that may fit."""
    where, values = ["n <> 0"], list[Any]()
    for name in ("status", "object_type", "action", "queue"):
        if (value := getattr(listing, name)) is not None:
            where.append(f"{name} = ?")
            values.append(value)
    query = f"SELECT DISTINCT object_type, action, queue FROM counts WHERE {' AND '.join(where)} ORDER BY 1, 2, 3"
    return connection.execute(query, values).fetchall()


def _is_rare(connection: sqlite3.Connection, status: str) -> bool:
    query = "SELECT coalesce(sum(n) FILTER (WHERE status = ?), 0), coalesce(sum(n), 0) FROM counts"
    those, whole = connection.execute(query, (status,)).fetchone()
    return bool(those * COMMON < whole)


def bounds_of(connection: sqlite3.Connection, listing: Listing) -> tuple[int, int]:
    """The numbers of the first job that may fit, and of the first after all that may."""
    first = 0 if listing.created_after is None else _first_since(connection, listing.created_after)
    after = EVERYTHING if listing.created_before is None else _first_since(connection, listing.created_before)
    return first, after if listing.before is None else min(after, listing.before)


def _first_since(connection: sqlite3.Connection, at: int) -> int:
    """The number of the first job that was stored then or later. Numbers and times rise together: a few looks do."""
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
