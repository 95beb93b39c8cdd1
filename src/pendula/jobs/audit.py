"""The trail: every change with its before and after, each event chained to the previous one; the check of the chain.

An event is canonical JSON; its hash is sha256 of the previous hash and these bytes. Changing, removing or inserting an
event breaks the chain.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from pendula.jobs.model import WORDS, Actor, Job, event_id, seq_of
from pendula.jobs.reasons import Reason, stated
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

GENESIS = bytes(32)
HASH_KEPT = 8
JOB_EVENT = "scheduler_job"
STATE_EVENT = "state_transition"
OVERRIDE_EVENT = "policy_override"
GATE_EVENT = "decision_gate"
ROLLBACK_EVENT = "rollback"
INVESTIGATION_EVENT = "investigation"
ENQUEUED = Reason("enqueued")

TIMES = frozenset({"run_at", "scheduled_for", "lease_expires_at", "next_action_at", "cancel_requested_at"})
# Members that may be long or secret: the trail has their digests.
DIGESTS = {"payload_sha256": "payload", "outcome_result_sha256": "outcome_result"}


class First(Struct, frozen=True, gc=False, kw_only=True):
    """The event of an enqueue: all initial members of a job, with the digest of its payload, if any."""

    action: str
    attempt: int
    correlation_id: str | None
    idempotency_key: str
    max_attempts: int
    object_id: str
    object_type: str
    payload_sha256: str | UnsetType = UNSET
    priority: str
    queue: str
    run_at: str
    scheduled_for: str
    status: str


FIRST = First.__struct_fields__


class Event(Struct, frozen=True, gc=False):
    """One event, its members in the order of canonical bytes."""

    actor: Actor
    after: First | Mapping[str, Json]
    before: Mapping[str, Json] | None
    correlation_id: str | None
    event_type: str
    evidence_refs: Sequence[str]
    id: str
    job_id: str | None
    metadata: Mapping[str, Json]
    object_id: str
    object_type: str
    reason: Reason
    timestamp: str
    decision_trace_id: str | UnsetType = UNSET
    risk_tier: str | UnsetType = UNSET


class GovernanceEvent(Struct, frozen=True, kw_only=True):
    """A change by governance: of an object, a gate or a rollback; with the job that caused it, if any.

    `evidence` are the references of the decision. At high risk there is a decision trace.
    """

    event_type: str
    object_type: str
    object_id: str
    before: Mapping[str, Json] | None
    after: Mapping[str, Json]
    reason: Reason
    evidence: Sequence[str] = ()
    job: Job | None = None
    risk_tier: str | None = None
    trace_id: str | None = None


class PlanChange(Struct, frozen=True):
    """A change of a time plan: old and new members; no old ones for a new plan."""

    name: str
    before: Mapping[str, Json] | None
    after: Mapping[str, Json]
    reason: Reason


class Row(Struct, frozen=True, gc=False, array_like=True):
    """An event as stored. Of a `packed` event only the first bytes of its hash are stored."""

    n: int
    event_type: str
    object_type: str
    object_id: str
    job_seq: int | None
    body: str
    hash: bytes
    packed: bool = False


class Filed(Struct, frozen=True, gc=False):
    """The members of an event that its columns repeat."""

    event_type: str
    object_type: str
    object_id: str
    job_id: str | None


filed = msgspec.json.Decoder(Filed).decode


_encode = msgspec.json.Encoder(order="sorted").encode


def shown(job: Job, names: tuple[str, ...]) -> dict[str, Json]:
    """The named fields of a job, as in the trail."""
    values, digests, times = _reading(names)
    members: dict[str, Json] = dict(zip(names, values(job), strict=True))
    for name in digests:
        if (text := members[name]) is not None:
            members[name] = _digest(text)
    for name in times:
        if (at := members[name]) is not None:
            members[name] = format_utc(at)
    if "priority" in members:
        members["priority"] = WORDS[job.priority]
    return members


@lru_cache(maxsize=64)
def _reading(
    names: tuple[str, ...],
) -> tuple[Callable[[Job], tuple[Any, ...]], tuple[str, ...], tuple[str, ...]]:
    """A getter for these fields of a job, and which of them are written as digests and as times."""
    # One more name: with a single name there would be no tuple.
    read = attrgetter(*(DIGESTS.get(name, name) for name in names), "seq")
    digests, times = (tuple(name for name in names if name in some) for some in (DIGESTS, TIMES))
    return lambda job: read(job)[:-1], digests, times


def _digest(text: Any) -> str:
    return sha256(text.encode()).hexdigest()


def _first(job: Job) -> First:
    return First(
        action=job.action,
        attempt=job.attempt,
        correlation_id=job.correlation_id,
        idempotency_key=job.idempotency_key,
        max_attempts=job.max_attempts,
        object_id=job.object_id,
        object_type=job.object_type,
        payload_sha256=UNSET if job.payload is None else _digest(job.payload),
        priority=WORDS[job.priority],
        queue=job.queue,
        run_at=format_utc(job.run_at),
        scheduled_for=format_utc(job.scheduled_for),
        status=job.status,
    )


class Trail:
    """The events of one transaction, numbered and chained."""

    __slots__ = ("_hash", "_n", "metadata", "rows")

    def __init__(self, last_n: int, last_hash: bytes, metadata: Mapping[str, Json]) -> None:
        self._n = last_n
        self._hash = last_hash
        self.metadata = metadata
        self.rows: list[tuple[Any, ...]] = []  # values of `Row`; a struct would be unpacked again

    @property
    def head(self) -> tuple[int, bytes]:
        """The number and the hash of the last event."""
        return self._n, self._hash

    def mark(self) -> tuple[int, bytes, int]:
        return self._n, self._hash, len(self.rows)

    def back_to(self, mark: tuple[int, bytes, int]) -> None:
        """Drop the events added since the mark."""
        self._n, self._hash, kept = mark
        del self.rows[kept:]

    @property
    def next_id(self) -> str:
        return event_id(self._n + 1)

    def enqueued(self, job: Job, actor: Actor) -> str:
        return self._add(_of_job(job), job, None, _first(job), ENQUEUED, actor)

    def changed(self, before: Job, after: Job, names: tuple[str, ...], reason: Reason, actor: Actor) -> str:
        """A change of a job: every named field, old and new."""
        old, new = shown(before, names), shown(after, names)
        return self._add(_of_job(after), after, old, new, reason, actor)

    def object_changed(
        self,
        job: Job,
        old: Mapping[str, Json],
        new: Mapping[str, Json],
        reason: Reason,
        actor: Actor,
        refs: Sequence[str],
    ) -> str:
        return self._add((STATE_EVENT, job.object_type, job.object_id), job, old, new, reason, actor, refs=refs)

    def key_freed(self, key: str, hash: bytes, reason: str, actor: Actor, at: int) -> str:
        """The key of a removed job may be used again; the event is about the key."""
        before: dict[str, Json] = {"idempotency_key": key, "used": True}
        after: dict[str, Json] = {"idempotency_key": key, "used": False}
        about = hash.hex()
        return self._override((about, f"used_key:{about}"), before, after, stated(reason), actor, at=at)

    def restored(self, before: int, epoch: int, actor: Actor, at: int) -> str:
        """A copy replaced its store and continues job numbers and fences from `epoch`."""
        old: dict[str, Json] = {"next_job": before}
        new: dict[str, Json] = {"fences_from": epoch, "next_job": epoch + 1}
        return self._override(("store", "store:restored"), old, new, Reason("restored"), actor, at=at)

    def plan_changed(self, change: PlanChange, actor: Actor, at: int) -> str:
        """A time plan was put, removed, paused or resumed; the event is about the plan."""
        about = f"plan:{change.name}"
        return self._override((about, about), change.before, change.after, change.reason, actor, at=at)

    def time_set(
        self, before: Mapping[str, Json], after: Mapping[str, Json], reason: str, actor: Actor, *, at: int
    ) -> str:
        """A person corrected the store's time; the event is about the store."""
        return self._override(("store", "store:time"), before, after, stated(reason), actor, at=at)

    def governed(self, change: GovernanceEvent, actor: Actor, at: int) -> str:
        name, job = self.next_id, change.job
        of_job = () if job is None else (f"scheduler_job:{job.job_id}",)
        event = Event(
            actor=actor,
            after=change.after,
            before=change.before,
            correlation_id=None if job is None else job.correlation_id,
            event_type=change.event_type,
            evidence_refs=(*change.evidence, *of_job) or (f"{actor.type}:{actor.id}",),
            id=name,
            job_id=None if job is None else job.job_id,
            metadata=self.metadata,
            object_id=change.object_id,
            object_type=change.object_type,
            reason=change.reason,
            timestamp=format_utc(at),
            decision_trace_id=change.trace_id or UNSET,
            risk_tier=change.risk_tier or UNSET,
        )
        self._append(event, None if job is None else job.seq)
        return name

    def _override(
        self,
        about: tuple[str, str],
        before: Mapping[str, Json] | None,
        after: Mapping[str, Json],
        reason: Reason,
        actor: Actor,
        *,
        at: int,
    ) -> str:
        """An event without a job; `about` is its object id and its evidence reference."""
        name = event_id(self._n + 1)
        event = Event(
            actor=actor,
            after=after,
            before=before,
            correlation_id=None,
            event_type=OVERRIDE_EVENT,
            evidence_refs=(about[1],),
            id=name,
            job_id=None,
            metadata=self.metadata,
            object_id=about[0],
            object_type=JOB_EVENT,
            reason=reason,
            timestamp=format_utc(at),
        )
        self._append(event, None)
        return name

    def _add(
        self,
        about: tuple[str, str, str],
        job: Job,
        before: Mapping[str, Json] | None,
        after: First | Mapping[str, Json],
        reason: Reason,
        actor: Actor,
        *,
        refs: Sequence[str] = (),
    ) -> str:
        """One event; `about` is its type, and the type and id of its object."""
        event_type, object_type, object_id = about
        name = event_id(self._n + 1)
        event = Event(
            actor=actor,
            after=after,
            before=before,
            correlation_id=job.correlation_id,
            event_type=event_type,
            evidence_refs=(*refs, f"scheduler_job:{job.job_id}"),
            id=name,
            job_id=job.job_id,
            metadata=self.metadata,
            object_id=object_id,
            object_type=object_type,
            reason=reason,
            timestamp=format_utc(job.updated_at),
        )
        self._append(event, job.seq)
        return name

    def _append(self, event: Event, job_seq: int | None) -> None:
        self._n += 1
        body = _encode(event)
        self._hash = sha256(self._hash + body).digest()
        about = (event.event_type, event.object_type, event.object_id)
        self.rows.append((self._n, *about, job_seq, body.decode(), self._hash))


def _of_job(job: Job) -> tuple[str, str, str]:
    return JOB_EVENT, JOB_EVENT, job.job_id


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
