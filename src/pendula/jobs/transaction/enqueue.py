"""Store jobs: one or many in a transaction, each key once. A repeat gets the stored job; other work is refused."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct

from pendula.jobs import decide
from pendula.jobs.hooks import governance
from pendula.jobs.messages import (
    BatchEntry,
    BatchResults,
    Enqueue,
    Enqueued,
    ErrorFacts,
    job_of,
    status_of,
)
from pendula.jobs.model import BATCH_MOST, Actor, Code, Job, Policy, Refused, in_full
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.store.protocol import EnqueueWriter
from pendula.jobs.transaction.replies import Body
from pendula.kernel.canonical import Json

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
