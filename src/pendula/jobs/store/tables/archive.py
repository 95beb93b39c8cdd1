"""Events of removed jobs, packed: many in one row at a tenth of their size, still in the chain and still searchable.

A segment holds events in order, with the first bytes of their hashes: enough to name an event that was changed. The
whole hashes follow from the chain, which runs through rows and segments alike.
"""

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from heapq import heappop, heappush
from typing import Any

import msgspec

from pendula.jobs.audit import HASH_KEPT, JOB_EVENT, Filed, Row, filed
from pendula.jobs.model import seq_of
from pendula.jobs.store.protocol import AuditListing

SEGMENT_MOST = 1000  # events in one segment: a reader unpacks all of them to find one
JOBS_AT_ONCE = 500
LEVEL = 6

_Packed = tuple[int, bytes, str]  # number, first bytes of the hash, body
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[_Packed]).decode

_OF_JOBS = "SELECT n, event_type, object_type, object_id, job_seq, body, hash FROM audit WHERE job_seq IN"
_ALL_SEGMENTS = "SELECT first_n, body FROM audit_archive WHERE last_n > ? ORDER BY first_n"
_SEGMENTS_ABOUT = """SELECT first_n, segment FROM audit_archive_about JOIN audit_archive USING (segment)
    WHERE about = ? AND last_n > ?"""


_NOWHERE = Filed("", "", "", None)


def about_object(object_type: str, object_id: str) -> int:
    """A negative number for an object; two objects may share one, so the events found by it are filtered."""
    digest = sha256(f"{object_type}\0{object_id}".encode(errors="surrogatepass")).digest()
    return -1 - (int.from_bytes(digest[:8], "big") >> 1)


def archive_events(connection: sqlite3.Connection, jobs: Sequence[int]) -> None:
    """Pack all events of these jobs and delete their rows; the newest event of the trail stays a row."""
    rows: list[Row] = []
    for first in range(0, len(jobs), JOBS_AT_ONCE):
        some = jobs[first : first + JOBS_AT_ONCE]
        query = f"{_OF_JOBS} ({', '.join('?' * len(some))}) AND n < (SELECT max(n) FROM audit)"
        rows += [Row(*row) for row in connection.execute(query, some)]
    rows.sort(key=lambda row: row.n)
    for first in range(0, len(rows), SEGMENT_MOST):
        _store(connection, rows[first : first + SEGMENT_MOST])
    connection.executemany("DELETE FROM audit WHERE n = ?", [(row.n,) for row in rows])


def _store(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    packed = zlib.compress(_pack([(row.n, row.hash[:HASH_KEPT], row.body) for row in rows]), LEVEL)
    added = connection.execute(
        "INSERT INTO audit_archive (first_n, last_n, events, body) VALUES (?, ?, ?, ?)",
        (rows[0].n, rows[-1].n, len(rows), packed),
    )
    about = {row.job_seq for row in rows if row.job_seq is not None}
    about |= {about_object(row.object_type, row.object_id) for row in rows if row.object_type != JOB_EVENT}
    connection.executemany(
        "INSERT INTO audit_archive_about (about, segment) VALUES (?, ?)",
        [(number, added.lastrowid) for number in sorted(about)],
    )


def archived(connection: sqlite3.Connection, listing: AuditListing) -> Iterator[Row]:
    """The packed events of a listing, by number; a segment is unpacked when its first event is due."""
    return (row for row in _in_order(_segments(connection, listing)) if _matches(row, listing))


def is_archived_about(connection: sqlite3.Connection, n: int, job_seq: int, about: tuple[str, str]) -> bool:
    """Whether a packed event of this number is about the job or the object."""
    query = "SELECT body FROM audit_archive WHERE first_n <= ? AND last_n >= ?"
    rows = (row for (body,) in connection.execute(query, (n, n)) for row in _rows(body) if row.n == n)
    return any(row.job_seq == job_seq or (row.object_type, row.object_id) == about for row in rows)


def _segments(connection: sqlite3.Connection, listing: AuditListing) -> Iterator[tuple[int, bytes]]:
    """The first number and the body of each segment that may hold matching events, by first number."""
    about = listing.job_seq
    if about is None and listing.object_type is not None and listing.object_id is not None:
        is_job = listing.object_type == JOB_EVENT
        about = seq_of(listing.object_id) if is_job else about_object(listing.object_type, listing.object_id)
    if about is None:
        yield from connection.execute(_ALL_SEGMENTS, (listing.after,))
        return
    for first, segment in sorted(connection.execute(_SEGMENTS_ABOUT, (about, listing.after))):
        [(body,)] = connection.execute("SELECT body FROM audit_archive WHERE segment = ?", (segment,))
        yield first, body


def _in_order(segments: Iterator[tuple[int, bytes]]) -> Iterator[Row]:
    """All events by number, of segments that may overlap; segments that start later stay packed."""
    # A heap. Event numbers are unique unless the file was tampered with: then the order of segments decides.
    unpacked: list[tuple[int, int, Row, Iterator[Row]]] = []
    coming, taken = next(segments, None), 0
    while coming is not None or unpacked:
        while coming is not None and (not unpacked or coming[0] <= unpacked[0][0]):
            _push(unpacked, taken, _rows(coming[1]))
            coming, taken = next(segments, None), taken + 1
        if unpacked:
            _, place, row, rest = heappop(unpacked)
            yield row
            _push(unpacked, place, rest)


def _push(unpacked: list[tuple[int, int, Row, Iterator[Row]]], place: int, rows: Iterator[Row]) -> None:
    if (row := next(rows, None)) is not None:
        heappush(unpacked, (row.n, place, row, rows))


def _rows(body: bytes) -> Iterator[Row]:
    """The events of a segment; none where it is damaged, which the check of the chain reports as missing events."""
    try:
        packed = _unpack(zlib.decompress(body))
    except (zlib.error, msgspec.MsgspecError):
        return
    for n, hash, text in packed:
        yield _row(n, hash, text)


def _row(n: int, hash: bytes, body: str) -> Row:
    """The row as it was before packing. Its columns follow from its body; of an unreadable body they are empty."""
    try:
        place = filed(body)
    except (msgspec.MsgspecError, UnicodeError):
        place = _NOWHERE
    seq = None if place.job_id is None else seq_of(place.job_id)
    return Row(
        n=n,
        event_type=place.event_type,
        object_type=place.object_type,
        object_id=place.object_id,
        job_seq=seq,
        body=body,
        hash=hash,
        packed=True,
    )


def _matches(row: Row, listing: AuditListing) -> bool:
    filters: tuple[tuple[Any, Any], ...] = (
        (listing.object_type, row.object_type),
        (listing.object_id, row.object_id),
        (listing.job_seq, row.job_seq),
        (listing.event_type, row.event_type),
    )
    return row.n > listing.after and all(wanted is None or wanted == value for wanted, value in filters)
