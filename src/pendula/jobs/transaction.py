"""What several calls do within their transaction: store jobs, make the follow-up of an object, end a delivery.

Each key is stored once: a repeat gets the stored job, other work under the key is refused. A delivery ends in the name
of its worker; a dead letter stores an alert.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pendula.jobs import decide, messages
from pendula.jobs.decide import JobChange
from pendula.jobs.hooks import governance
from pendula.jobs.messages import (
    BatchEntry,
    BatchResults,
    Enqueue,
    Enqueued,
    ErrorFacts,
    Message,
    job_of,
    status_of,
    utc_or_null,
)
from pendula.jobs.model import BATCH_MOST, TERMINAL, Actor, Code, Job, Policy, Priority, Refused, Status, in_full
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.store.protocol import EnqueueWriter, ObjectRow, StoreUnusable, Writer
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc

Body = Mapping[str, Any]


class Caller(Struct, frozen=True):
    """The caller, for the trail."""

    actor: Actor = Actor("service", "local")
    request_id: str | None = None

    @property
    def metadata(self) -> dict[str, Json]:
        return {} if self.request_id is None else {"request_id": self.request_id}


LOCAL = Caller()


Answer = Message | Refused


def not_found(job_id: str) -> Refused:
    return Refused(Code.JOB_NOT_FOUND, f"no job {job_id}", {"job_id": job_id})


def unreadable(job: Job, trouble: Exception) -> StoreUnusable:
    """The error for a row that was damaged or changed by hand, which is not a fault of the caller."""
    message = f"{job.job_id} cannot be read: {trouble}; `pendula jobs check` says what is wrong"
    return StoreUnusable(message, job_id=str(job.job_id))


def shown_job(job: Job) -> messages.Job:
    """The public form of a job; raises `StoreUnusable` where it cannot be read."""
    try:
        return job_of(job)
    except (LookupError, TypeError, InputRefused) as trouble:
        raise unreadable(job, trouble) from trouble


def no_plan(name: str) -> Refused:
    return Refused(Code.PLAN_NOT_FOUND, f"no plan {name[:64]}", {"name": name[:64]})


FAULTS_SHOWN = 3  # faulty entries in the message of a refused batch; the details have all
Stored = tuple[Job, bool] | Refused  # a job and whether it was stored before, or a refusal


def store_all(tx: EnqueueWriter, requests: Sequence[Enqueue], actor: Actor, now: int) -> list[Stored]:
    """The result of each request: all stored at once, or one by one where a key is taken."""
    refused = _refused(tx, requests)
    if not refused and (made := _all_new(tx, requests, actor, now)) is not None:
        return [(job, False) for job in made]
    keys = [_key(request, now) for request in requests]
    existing = tx.by_keys(keys)
    results: list[Stored] = []
    for n, (request, key) in enumerate(zip(requests, keys, strict=True)):
        stored = existing.get(key)
        if stored is not None:
            same = decide.duplicate(request, stored)
            results.append(same if isinstance(same, Refused) else (same, True))
        elif request.unique and (waiting := tx.waiting(request.object_type, request.object_id, request.action)):
            results.append((waiting, True))
        elif tx.used(key_hash(key)):
            results.append(_removed(key))
        elif n in refused:
            results.append(refused[n])
        else:
            job = decide.new_job(request, tx.next_seq(), now)
            if isinstance(job, Job):
                assert tx.insert([job], actor)
                existing[key] = job
                results.append((job, False))
            else:
                results.append(job)
    return results


def _refused(tx: EnqueueWriter, requests: Sequence[Enqueue]) -> dict[int, Refused]:
    """The requests, by their position, that a governed object is closed to."""
    if not tx.any_closed():
        return {}
    asked = governance()
    answers = ((n, asked.may_enqueue(tx, request)) for n, request in enumerate(requests))
    return {n: refused for n, refused in answers if refused is not None}


def _all_new(tx: EnqueueWriter, requests: Sequence[Enqueue], actor: Actor, now: int) -> list[Job] | None:
    """The common case: no key taken, no time in the past, no `unique`; None where it does not apply."""
    if any(request.unique or (request.run_at is not None and request.run_at < now) for request in requests):
        return None
    if tx.any_used() and any(tx.used(key_hash(_key(request, now))) for request in requests):
        return None
    first = tx.next_seq()
    jobs = []
    for number, request in enumerate(requests):
        job = decide.new_job(request, first + number, now)
        assert isinstance(job, Job)
        jobs.append(job)
    return jobs if tx.insert(jobs, actor) else None


def _key(request: Enqueue, now: int) -> str:
    if request.idempotency_key is not None:
        return request.idempotency_key
    return decide.derived_key(request, now if request.run_at is None else request.run_at)


def key_hash(key: str) -> bytes:
    """The stored hash of the key of a removed job."""
    return sha256(key.encode()).digest()


def _removed(key: str) -> Refused:
    details: dict[str, Json] = {"idempotency_key": key, "reason": "job_removed"}
    return Refused(Code.IDEMPOTENCY_KEY_CONFLICT, "the key belonged to a job that was removed", details)


def stored_reply(job: Job, deduplicated: bool) -> Enqueued:
    return Enqueued(deduplicated, job_of(job))


class Rejected(Exception):
    """Rolls back an atomic batch."""

    def __init__(self, stored: list[Stored]) -> None:
        super().__init__("rejected")
        self.stored = stored


class Batch(Struct, frozen=True):
    """Requests in order; those that could not be read are refusals."""

    read: list[Enqueue | Refused]
    atomic: bool

    @property
    def good(self) -> list[Enqueue]:
        return [entry for entry in self.read if isinstance(entry, Enqueue)]

    def store(self, tx: EnqueueWriter, actor: Actor, now: int) -> list[Stored]:
        """The results of the readable requests. Raises `Rejected` for an atomic batch with a fault."""
        good = self.good
        stored = store_all(tx, good, actor, now)
        if self.atomic and (len(good) < len(self.read) or any(isinstance(result, Refused) for result in stored)):
            raise Rejected(stored)
        return stored

    def reply(self, stored: Sequence[Stored]) -> BatchResults:
        """One result for each entry."""
        left = iter(stored)
        return BatchResults([_result(entry if isinstance(entry, Refused) else next(left)) for entry in self.read])

    def refusal(self, stored: Sequence[Stored] = ()) -> Refused:
        """The refusal of the whole batch; each entry's result says whether it was at fault."""
        left = iter(stored)
        entries = [entry if isinstance(entry, Refused) else next(left, None) for entry in self.read]
        results: list[Json] = [
            refused_json(entry) if isinstance(entry, Refused) else {"status": 422, "stored": False} for entry in entries
        ]
        faults = [
            f"entry {n}: {in_full(entry.message, entry.details)}"
            for n, entry in enumerate(entries)
            if isinstance(entry, Refused)
        ]
        more = f" (and {len(faults) - FAULTS_SHOWN} more)" if len(faults) > FAULTS_SHOWN else ""
        message = f"nothing was stored; {'; '.join(faults[:FAULTS_SHOWN])}{more}"
        return Refused(Code.BATCH_REJECTED, message, {"results": results})


def read_batch(body: Body, policy: Policy, now: int) -> Batch | Refused:
    if wrong := batch_faults(body, "jobs", {"jobs", "atomic"}):
        return wrong
    return Batch([_entry(entry, policy, now) for entry in body["jobs"]], body.get("atomic", False))


def _entry(entry: Any, policy: Policy, now: int) -> Enqueue | Refused:
    if not isinstance(entry, Mapping):
        return Refused(Code.INVALID_FIELD, "an entry is an object", {"fields": []})
    request = read(Enqueue, entry, policy, now)
    return request.refusal() if isinstance(request, Faults) else request


def batch_faults(body: Body, name: str, known: set[str]) -> Refused | None:
    """Faults of a batch as a whole; `name` is the member with its entries."""
    faults = Faults()
    for member in body:
        if member not in known:
            faults.add(member, Code.UNKNOWN_FIELD, allowed=sorted(known))
    entries = body.get(name)
    if name not in body:
        faults.add(name, Code.MISSING_FIELD)
    elif not isinstance(entries, list | tuple) or not 1 <= len(entries) <= BATCH_MOST:
        faults.add(name, Code.INVALID_FIELD, allowed=f"a list of 1 to {BATCH_MOST} entries")
    if not isinstance(body.get("atomic", False), bool):
        faults.add("atomic", Code.INVALID_FIELD, allowed="true or false")
    return faults.refusal() if faults.entries else None


def _result(stored: Stored) -> BatchEntry:
    """The result of one entry."""
    if isinstance(stored, Refused):
        return BatchEntry(status_of(stored), error=error_of(stored))
    job, deduplicated = stored
    return BatchEntry(200 if deduplicated else 201, deduplicated, job_of(job))


def error_of(refused: Refused) -> ErrorFacts:
    return ErrorFacts(refused.code.value, refused.message, refused.details)


def refused_json(refused: Refused) -> dict[str, Json]:
    return {"status": status_of(refused), "error": refused.as_json()}


FOLLOWUP = "followup:"  # prefix of the key of a follow-up whose derived key is taken


def enqueue_next(tx: Writer, follow: Enqueue, after: str, actor: Actor, now: int) -> str | None:
    """Enqueue the follow-up and return its id; `after` is the key of the job or change it follows."""
    assert follow.run_at is not None
    [stored] = store_all(tx, [follow], actor, now)
    if isinstance(stored, Refused) or stored[0].status in TERMINAL:
        # Other or finished work has the key. Use another key, or the object would be left without a job.
        derived = decide.derived_key(follow, follow.run_at)
        own = f"{FOLLOWUP}{key_hash(f'{after} {derived}').hex()}"
        [stored] = store_all(tx, [replace(follow, idempotency_key=own)], actor, now)
    return None if isinstance(stored, Refused) else stored[0].job_id


OVER = (Status.FAILED, Status.DEAD_LETTER)


def carry_out(tx: Writer, job: Job, done: JobChange, actor: Actor) -> Job:
    """Apply a change; one that makes a dead letter stores an alert, too."""
    event = tx.next_event_id()
    after = tx.change(job, done.job, done.touched, done.reason, actor)
    if after.status == Status.DEAD_LETTER:
        alert_id = f"dead_letter:{after.job_id}:{after.delivery_count}"
        if job.status != Status.RUNNING:
            alert_id += f":{event}"  # without a delivery the same job may fail again after a requeue
        is_risky = tx.is_governed(after.object_type, after.object_id) and governance().on_dead_letter(tx, after)
        tx.alert(alert_id, _alert(after, alert_id, event, is_risky=is_risky))
    return after


def tell_governance(tx: Writer, before: Job, after: Job, actor: Actor, policy: Policy, now: int) -> None:
    """Report a job that has failed for good, if its object is governed."""
    if after.status in OVER and tx.is_governed(after.object_type, after.object_id):
        governance().on_end(tx, before, after, actor, policy, now)


def holder(job: Job, actor: Actor) -> Actor:
    """The worker of the delivery, which ends it whatever token the call came with."""
    return Actor("worker", job.worker_id) if job.worker_id is not None else actor


def _alert(job: Job, alert_id: str, event: str, *, is_risky: bool) -> dict[str, Json]:
    return {
        "alert": "job.dead_letter",
        "alert_id": alert_id,
        "severity": "critical" if is_risky or job.priority == Priority.HIGH else "warning",
        "job_id": job.job_id,
        "object_type": job.object_type,
        "object_id": job.object_id,
        "action": job.action,
        "priority": Priority(job.priority).word,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "last_error": job.last_error,
        "audit_event_id": event,
        "at": format_utc(job.updated_at),
    }


def write_back(job: Job, row: ObjectRow) -> dict[str, Json]:
    """The write-back for an object in another database; `version` is its fence, `fence` that of the delivery."""
    return {
        "object_type": row.object_type,
        "object_id": row.object_id,
        "next_action_at": utc_or_null(row.next_action_at),
        "state": row.state,
        "version": row.version,
        "job_id": job.job_id,
        "fence": job.delivery_count,
    }
