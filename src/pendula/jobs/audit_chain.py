"""Whether the trail is what was written: each event held against the one before it, and against where it is filed."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from msgspec import Struct

from pendula.jobs.audit import GENESIS, HASH_KEPT, Row, filed
from pendula.jobs.ids import seq_of


class Broken(Struct, frozen=True):
    """Where the trail is not what was written."""

    n: int
    problem: str


def verify(rows: Iterable[Row]) -> Iterator[Broken]:
    """Everything that is wrong with the chain.

    Each event is held against the hash that is written down for the one before it, so that a damaged event is named
    and those after it are judged for themselves. Packed events keep no whole hash: those that follow a damaged one are
    told as not judged, up to the next that does.
    """
    last = 0
    hash: bytes | None = GENESIS
    unjudged: list[int] = []  # the first and the last of them
    for row in rows:
        if (problem := _misplaced(row, last) or _problem(row, hash)) is not None:
            yield Broken(row.n, problem)
            hash = None  # nobody can tell what the next one builds on, where this one does not say
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
    """What the next event builds on. A packed event does not keep its whole hash: the chain gives it."""
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
    """Whether the event is found under what it is about."""
    event = filed(row.body)
    seq = None if event.job_id is None else seq_of(event.job_id)
    place = (row.event_type, row.object_type, row.object_id, row.job_seq)
    return place == (event.event_type, event.object_type, event.object_id, seq)
