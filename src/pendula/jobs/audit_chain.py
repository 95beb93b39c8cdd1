"""The check of the trail: each event against the hash of the previous one, and against its columns."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from msgspec import Struct

from pendula.jobs.audit import GENESIS, HASH_KEPT, Row, filed
from pendula.jobs.ids import seq_of


class Broken(Struct, frozen=True):
    """A fault of the trail, at an event number."""

    n: int
    problem: str


def verify(rows: Iterable[Row]) -> Iterator[Broken]:
    """All faults of the chain.

    Each event is checked against the stored hash of the previous one, so that a damaged event is named and later ones
    are checked on their own. Packed events have no whole hash: those after a damaged one are reported as unchecked, up
    to the next event with a whole hash.
    """
    last = 0
    hash: bytes | None = GENESIS
    unjudged: list[int] = []  # the first and the last of them
    for row in rows:
        if (problem := _misplaced(row, last) or _problem(row, hash)) is not None:
            yield Broken(row.n, problem)
            hash = None  # the hash that the next event builds on is unknown
        elif hash is None:
            unjudged = [*unjudged[:1], row.n]
        last, hash = row.n, _hash_after(row, hash)
        if hash is not None and unjudged:
            yield _not_judged(unjudged)
            unjudged = []
    if unjudged:
        yield _not_judged(unjudged)


def _not_judged(unjudged: Sequence[int]) -> Broken:
    upto = f" to {unjudged[-1]}" if len(unjudged) > 1 else ""
    return Broken(unjudged[0], f"event {unjudged[0]}{upto} cannot be judged: the chain before is broken")


def _misplaced(row: Row, last: int) -> str | None:
    if row.n == last + 1:
        return None
    return f"event {last + 1} is missing" if row.n > last + 1 else "the event is out of order"


def _hash_after(row: Row, before: bytes | None) -> bytes | None:
    """The hash that the next event builds on; for a packed event it follows from the chain."""
    if row.packed:
        return None if before is None else _chained(before, row)
    return row.hash


def _chained(before: bytes, row: Row) -> bytes:
    return sha256(before + row.body.encode("utf-8", "surrogateescape")).digest()


def _problem(row: Row, before: bytes | None) -> str | None:
    try:
        if before is not None and row.hash != _chained(before, row)[: HASH_KEPT if row.packed else None]:
            return "the event is not the one that was written"
        return None if _filed_right(row) else "the event is filed under another name"
    except (TypeError, AttributeError, ValueError, LookupError):
        return "the event cannot be read"


def _filed_right(row: Row) -> bool:
    """Whether the columns of the event match its body."""
    event = filed(row.body)
    seq = None if event.job_id is None else seq_of(event.job_id)
    place = (row.event_type, row.object_type, row.object_id, row.job_seq)
    return place == (event.event_type, event.object_type, event.object_id, seq)
