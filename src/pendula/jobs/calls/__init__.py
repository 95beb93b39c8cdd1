"""Every call of the scheduler, as HTTP names them: a body in, a reply or a refusal out; one transaction each.

The Python API, HTTP and the command line all come through here, so they give the same results and the same errors.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from secrets import token_hex
from typing import Any, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.audit import number_of
from pendula.jobs.decide import Done
from pendula.jobs.model import (
    BATCH_MOST,
    SECOND,
    SYSTEM,
    TERMINAL,
    Actor,
    AuditCheck,
    Code,
    Ended,
    Job,
    Policy,
    Priority,
    PullOrder,
    Refused,
    Status,
    job_json,
)
from pendula.jobs.ordering import weighted
from pendula.jobs.request_reading import Faults
from pendula.jobs.requests import (
    Ack,
    Enqueue,
    Pull,
    read_ack,
    read_cancel,
    read_enqueue,
    read_fail,
    read_proof,
    read_pull,
    read_release,
    read_renew,
    read_requeue,
)
from pendula.jobs.store.protocol import ObjectRow, Store, Writer
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

T = TypeVar("T")
Body = Mapping[str, Any]
POLL_SECONDS = 0.05  # how soon a waiting pull sees what another process wrote


class Caller(Struct, frozen=True):
    """Who calls, for the trail."""

    actor: Actor = Actor("service", "local")
    request_id: str | None = None

    @property
    def metadata(self) -> dict[str, Json]:
        return {} if self.request_id is None else {"request_id": self.request_id}


LOCAL = Caller()


class Reply(Struct, frozen=True):
    """What a call gives when it is granted."""

    status: int
    body: dict[str, Json]


Answer = Reply | Refused
GIVEN_UP = (Status.FAILED, Status.DEAD_LETTER)


class Calls:
    """The scheduler over one store. `clock` gives microseconds since 1970 and never goes back."""

    def __init__(
        self,
        store: Store,
        policy: Policy,
        clock: Callable[[], int],
        tokens: Callable[[], str] = lambda: "lt_" + token_hex(16),
    ) -> None:
        self.store = store
        self.policy = policy
        self.clock = clock
        self._tokens = tokens
        self._written = threading.Condition()
        self._writes = 0

    # Enqueue

    def enqueue(self, body: Body, caller: Caller = LOCAL) -> Answer:
        request = read_enqueue(body, self.policy, self.clock())
        if isinstance(request, Faults):
            return request.refusal()
        [found] = self._write(lambda tx: self._store_all(tx, [request], caller.actor), caller)
        return found if isinstance(found, Refused) else _stored(*found)

    def enqueue_batch(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Many at once: each entry has its own answer; with `atomic` one fault spoils them all."""
        if wrong := _batch_faults(body, "jobs", {"jobs", "atomic"}):
            return wrong
        atomic = body.get("atomic", False)
        now = self.clock()
        read = [_entry(entry, lambda one: read_enqueue(one, self.policy, now)) for entry in body["jobs"]]
        good = [request for request in read if isinstance(request, Enqueue)]

        def work(tx: Writer) -> list[tuple[Job, bool] | Refused]:
            stored = self._store_all(tx, good, caller.actor)
            if atomic and (len(good) < len(read) or any(isinstance(one, Refused) for one in stored)):
                raise _Rejected(stored)
            return stored

        try:
            stored = iter(self._write(work, caller) if good else [])
        except _Rejected as rejected:
            return _rejected(read, rejected.stored)
        if atomic and not good:
            return _rejected(read, [])
        results = [_result(one if isinstance(one, Refused) else next(stored)) for one in read]
        return Reply(200, {"results": results})

    def store_in(
        self, tx: Writer, request: Enqueue, actor: Actor, now: int | None = None
    ) -> tuple[Job, bool] | Refused:
        """Enqueue within somebody's transaction, at the time it goes by."""
        return self._store_all(tx, [request], actor, now)[0]

    def _store_all(
        self, tx: Writer, requests: Sequence[Enqueue], actor: Actor, at: int | None = None
    ) -> list[tuple[Job, bool] | Refused]:
        """Each request's job and whether it was there before; first all at once, one by one where a key is taken."""
        now = self.clock() if at is None else at
        if (made := self._all_new(tx, requests, now, actor)) is not None:
            return [(job, False) for job in made]
        keys = [_key(request, now) for request in requests]
        there = tx.by_keys(keys)
        found: list[tuple[Job, bool] | Refused] = []
        for request, key in zip(requests, keys, strict=True):
            stored = there.get(key)
            if stored is not None:
                same = decide.duplicate(request, stored)
                found.append(same if isinstance(same, Refused) else (same, True))
            elif tx.used(_hash(key)):
                details: dict[str, Json] = {"idempotency_key": key, "reason": "job_removed"}
                found.append(
                    Refused(Code.IDEMPOTENCY_KEY_CONFLICT, "the key belonged to a job that was removed", details)
                )
            else:
                job = decide.new_job(request, tx.next_seq(), now)
                if isinstance(job, Job):
                    assert tx.insert([job], actor)
                    there[key] = job
                    found.append((job, False))
                else:
                    found.append(job)
        return found

    def _all_new(self, tx: Writer, requests: Sequence[Enqueue], now: int, actor: Actor) -> list[Job] | None:
        """The common case: nothing is taken, nothing lies in the past."""
        if any(request.run_at is not None and request.run_at < now for request in requests):
            return None
        if tx.any_used() and any(tx.used(_hash(_key(request, now))) for request in requests):
            return None
        first = tx.next_seq()
        jobs = []
        for number, request in enumerate(requests):
            job = decide.new_job(request, first + number, now)
            assert isinstance(job, Job)
            jobs.append(job)
        return jobs if tx.insert(jobs, actor) else None

    # Pull

    def pull(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Due jobs for a worker; with `wait_ms`, as soon as there is one."""
        now = self.clock()
        request = read_pull(body, self.policy, now)
        if isinstance(request, Faults):
            return request.refusal()
        until = now + request.wait_ms * 1000
        while True:
            seen = self._writes
            reply = self._pull(request, caller)
            now = self.clock()
            if reply.body["count"] or reply.body["reclaimed"] or now >= until:
                return reply
            self._wait(seen, request, now, until)

    def _pull(self, request: Pull, caller: Caller) -> Reply:
        seen = self.clock()
        if not self.store.read(lambda look: look.anything_to_pull(request.now or seen, seen, request)):
            return _pulled(seen if request.now is None else request.now, [], 0)
        lease_us = request.lease_us or self.policy.lease_sec * SECOND
        worker = Actor("worker", request.worker_id)

        def work(tx: Writer) -> tuple[int, list[dict[str, Json]], int]:
            # Read here: waiting for the file must not eat into a lease.
            now = self.clock()
            due_by = now if request.now is None else request.now
            reclaimed = self._reclaim(tx, now)
            given = []
            for job in tx.due(request, due_by, self._order(tx)):
                token = self._tokens()
                done = decide.deliver(job, request.worker_id, decide.hashed(token), now, lease_us)
                after = tx.change(job, done.job, done.touched, done.reason, worker)
                given.append(job_json(after, token))
            return due_by, given, reclaimed

        due_by, given, reclaimed = self.store.write(work, metadata=caller.metadata)
        if reclaimed:
            self._tell()
        return _pulled(due_by, given, reclaimed)

    def _order(self, tx: Writer) -> Callable[[Iterable[Job], int], list[Job]] | None:
        policy = self.policy
        starts = policy.head_start_sec if policy.pull_order is PullOrder.WEIGHTED else (0, 0, 0)
        if policy.one_running_per_object:
            busy = tx.running_objects()
            return lambda jobs, limit: weighted(jobs, limit, starts, busy)
        if policy.pull_order is PullOrder.WEIGHTED:
            return lambda jobs, limit: weighted(jobs, limit, starts)
        return None

    def _reclaim(self, tx: Writer, now: int) -> int:
        """Put back every job whose lease has run out."""
        lost = tx.expired(now)
        for job in lost:
            self._carry_out(tx, job, decide.expired(job, now, self.policy), SYSTEM)
        return len(lost)

    def reclaim(self) -> int:
        """Put back what expired, outside of any pull."""
        now = self.clock()
        if not self.store.read(lambda look: look.anything_expired(now)):
            return 0
        return self._write(lambda tx: self._reclaim(tx, now), Caller(SYSTEM))

    def _wait(self, seen: int, request: Pull, now: int, until: int) -> None:
        """Sleep until something may have come: a job due, a write here, or one elsewhere at the next look."""
        coming = self.store.read(lambda look: look.next_time())
        # A request's own `now` does not move, so only a write can bring it something.
        # What is due already and did not come is not for this caller.
        due = until if coming is None or request.now is not None or coming <= now else coming
        seconds = min(POLL_SECONDS, max(0, min(due, until) - now) / SECOND)
        with self._written:
            if self._writes == seen:
                self._written.wait(max(seconds, 0.001))

    # Ack and fail

    def ack(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: self._ack(tx, job_id, body, caller.actor, self.clock()), caller)

    def ack_batch(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Many at once, each with its own answer."""
        if wrong := _batch_faults(body, "acks", {"acks"}):
            return wrong

        def work(tx: Writer) -> list[Json]:
            results: list[Json] = []
            ids = (entry.get("job_id") for entry in body["acks"] if isinstance(entry, Mapping))
            tx.expect([job_id for job_id in ids if isinstance(job_id, str)])
            now = self.clock()
            for entry in body["acks"]:
                if not isinstance(entry, Mapping) or not isinstance(entry.get("job_id"), str):
                    faults = Faults()
                    faults.add("job_id", Code.MISSING_FIELD)
                    results.append(_result(faults.refusal()))
                    continue
                members = dict(entry)
                answer = self._ack(tx, members.pop("job_id"), members, caller.actor, now)
                results.append(
                    _result(answer) if isinstance(answer, Refused) else {"status": answer.status, **answer.body}
                )
            return results

        return Reply(200, {"results": self._write(work, caller)})

    def _ack(self, tx: Writer, job_id: str, body: Body, actor: Actor, now: int) -> Answer:
        job = tx.job(job_id)
        if job is None:
            return not_found(job_id)
        proof = read_proof(body)
        if job.status == Status.SUCCEEDED and decide.repeats(job, proof, Ended.ACK):
            row = tx.object(job.object_type, job.object_id)
            return Reply(200, {"already_acked": True, **_acked(job, row, None)})
        if (refused := decide.holding(job, proof, now)) is not None:
            return refused
        request = read_ack(body, self.policy, now)
        if isinstance(request, Faults):
            return _ack_refusal(request)
        if (refused := self._unknown_event(tx, job, request)) is not None:
            return refused
        done = decide.acked(job, request, now)
        linked = replace(done.job, audit_event_id=request.audit_event_id or tx.next_event_id())
        who = _holder(job, actor)
        after = tx.change(job, linked, done.touched, done.reason, who)
        row, followup = self._write_back(tx, after, request, who, now)
        return Reply(200, {"already_acked": False, **_acked(after, row, followup)})

    def _unknown_event(self, tx: Writer, job: Job, request: Ack) -> Refused | None:
        if self.policy.audit_event_check is not AuditCheck.STRICT or request.audit_event_id is None:
            return None
        number = number_of(request.audit_event_id)
        if number is not None and tx.event_about(number, job):
            return None
        faults = Faults()
        faults.add("audit_event_id", Code.AUDIT_EVENT_UNKNOWN)
        return faults.refusal("no stored event of this id is about the job or its object")

    def _write_back(self, tx: Writer, job: Job, request: Ack, actor: Actor, now: int) -> tuple[ObjectRow, str | None]:
        """The object's next time, and the job that follows from it."""
        there = tx.object(job.object_type, job.object_id)
        row = there or ObjectRow(job.object_type, job.object_id, None, 0, None)
        if request.next_action_at is not UNSET and request.next_action_at != row.next_action_at:
            old, new = _time(row.next_action_at), _time(request.next_action_at)
            reason = f"{job.action} succeeded"
            tx.object_event(job, {"next_action_at": old}, {"next_action_at": new}, reason, actor)
            row = replace(row, next_action_at=request.next_action_at, version=row.version + 1)
            if self.policy.objects_elsewhere:
                tx.write_back(write_back(job, row))
        if row is not there:
            tx.put_object(row)
        if not isinstance(request.next_action_at, int) or not self.policy.auto_followup:
            return row, None
        follow = Enqueue(
            job.object_type,
            job.object_id,
            request.next_action or job.action,
            request.next_action_at,
            job.priority,
            job.max_attempts,
            None,
            job.correlation_id,
            job.queue,
        )
        stored = self.store_in(tx, follow, actor, now)
        if isinstance(stored, Refused) or stored[0].status in TERMINAL:
            # Other work has the key, or work that is over. One of its own, or the object would be forgotten.
            derived = decide.derived_key(follow, request.next_action_at)
            own = f"followup:{_hash(f'{job.idempotency_key} {derived}').hex()}"
            stored = self.store_in(tx, replace(follow, idempotency_key=own), actor, now)
        return row, None if isinstance(stored, Refused) else stored[0].job_id

    def fail(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: self._fail(tx, job_id, body, caller.actor), caller)

    def _fail(self, tx: Writer, job_id: str, body: Body, actor: Actor) -> Answer:
        now = self.clock()
        job = tx.job(job_id)
        if job is None:
            return not_found(job_id)
        proof = read_proof(body)
        if decide.repeats(job, proof, Ended.FAIL):
            return Reply(200, {"already_failed": True, "retry": job.status not in GIVEN_UP, "job": job_json(job)})
        if (refused := decide.holding(job, proof, now)) is not None:
            return refused
        request = read_fail(body)
        if isinstance(request, Faults):
            return request.refusal()
        done = decide.failed(job, request, now, self.policy)
        after = self._carry_out(tx, job, done, _holder(job, actor))
        return Reply(200, {"already_failed": False, "retry": after.status == Status.QUEUED, "job": job_json(after)})

    def _carry_out(self, tx: Writer, job: Job, done: Done, actor: Actor) -> Job:
        """A change that may be the job's last: then an alert goes with it."""
        event = tx.next_event_id()
        after = tx.change(job, done.job, done.touched, done.reason, actor)
        if after.status == Status.DEAD_LETTER:
            alert_id = f"dead_letter:{after.job_id}:{after.delivery_count}"
            tx.alert(alert_id, _alert(after, alert_id, event))
        return after

    # The other calls on one job

    def renew(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        def work(tx: Writer) -> Answer:
            now = self.clock()
            job = tx.job(job_id)
            if job is None:
                return not_found(job_id)
            if (refused := decide.holding(job, read_proof(body), now)) is not None:
                return refused
            request = read_renew(body)
            if isinstance(request, Faults):
                return request.refusal()
            after = decide.renewed(job, now, request.lease_us or self.policy.lease_sec * SECOND)
            tx.touch(after)
            return Reply(200, {"lease_expires_at": _time(after.lease_expires_at)})

        return self._write(work, caller)

    def release(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        def work(tx: Writer) -> Answer:
            now = self.clock()
            job = tx.job(job_id)
            if job is None:
                return not_found(job_id)
            proof = read_proof(body)
            if proof.lease_token is not None and decide.repeats(job, proof, Ended.RELEASE):
                return Reply(200, {"job": job_json(job)})
            if (refused := decide.holding(job, proof, now)) is not None:
                return refused
            if (faults := read_release(body)) is not None:
                return faults.refusal()
            done = decide.released(job, now)
            after = tx.change(job, done.job, done.touched, done.reason, _holder(job, caller.actor))
            return Reply(200, {"job": job_json(after)})

        return self._write(work, caller)

    def cancel(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        reason = read_cancel(body)
        return self._decided(job_id, reason, lambda job, now: decide.cancelled(job, str(reason), now), caller)

    def requeue(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        request = read_requeue(body, self.clock())

        def decided(job: Job, now: int) -> Done | Refused:
            assert not isinstance(request, Faults)
            return decide.requeued(job, request.run_at, request.reason, caller.actor, now)

        return self._decided(job_id, request, decided, caller)

    def _decided(
        self, job_id: str, read: object, decided: Callable[[Job, int], Done | Refused], caller: Caller
    ) -> Answer:
        def work(tx: Writer) -> Answer:
            job = tx.job(job_id)
            if job is None:
                return not_found(job_id)
            if isinstance(read, Faults):
                return read.refusal()
            done = decided(job, self.clock())
            if isinstance(done, Refused):
                return done
            return Reply(200, {"job": job_json(tx.change(job, done.job, done.touched, done.reason, caller.actor))})

        return self._write(work, caller)

    # Inside

    def _write(self, work: Callable[[Writer], T], caller: Caller) -> T:
        result = self.store.write(work, metadata=caller.metadata)
        self._tell()
        return result

    def _tell(self) -> None:
        """Something was written: pulls that wait look again."""
        with self._written:
            self._writes += 1
            self._written.notify_all()


class _Rejected(Exception):
    """Undoes a batch that is all or nothing."""

    def __init__(self, stored: list[tuple[Job, bool] | Refused]) -> None:
        super().__init__("rejected")
        self.stored = stored


def _key(request: Enqueue, now: int) -> str:
    if request.idempotency_key is not None:
        return request.idempotency_key
    return decide.derived_key(request, now if request.run_at is None else request.run_at)


def _hash(key: str) -> bytes:
    return sha256(key.encode()).digest()


def _stored(job: Job, deduplicated: bool) -> Reply:
    return Reply(200 if deduplicated else 201, {"deduplicated": deduplicated, "job": job_json(job)})


def _entry(entry: Any, read: Callable[[Body], Enqueue | Faults]) -> Enqueue | Refused:
    if not isinstance(entry, Mapping):
        return Refused(Code.INVALID_FIELD, "an entry is an object", {"fields": []})
    request = read(entry)
    return request.refusal() if isinstance(request, Faults) else request


def _batch_faults(body: Body, name: str, known: set[str]) -> Refused | None:
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
    return faults.refusal() if faults.found else None


def _result(found: tuple[Job, bool] | Refused) -> dict[str, Json]:
    if isinstance(found, Refused):
        return {"status": found.status, "error": found.as_json()}
    job, deduplicated = found
    return {"status": 200 if deduplicated else 201, "deduplicated": deduplicated, "job": job_json(job)}


def _rejected(read: Sequence[Enqueue | Refused], stored: Sequence[tuple[Job, bool] | Refused]) -> Refused:
    """Nothing was stored; each entry's own answer says whether it was its fault."""
    left = iter(stored)
    results: list[Json] = []
    for one in read:
        found = one if isinstance(one, Refused) else next(left, None)
        results.append(_result(found) if isinstance(found, Refused) else {"status": 422, "stored": False})
    return Refused(Code.BATCH_REJECTED, "nothing was stored: some entries are faulty", {"results": results})


def _pulled(due_by: int, jobs: list[dict[str, Json]], reclaimed: int) -> Reply:
    return Reply(200, {"now": format_utc(due_by), "count": len(jobs), "reclaimed": reclaimed, "jobs": jobs})


def _acked(job: Job, row: ObjectRow | None, followup: str | None) -> dict[str, Json]:
    shown = {
        "object_type": job.object_type,
        "object_id": job.object_id,
        "next_action_at": None if row is None else _time(row.next_action_at),
    }
    return {"job": job_json(job), "object": shown, "followup_job_id": followup}


def _ack_refusal(faults: Faults) -> Refused:
    if len(faults.found) == 1 and faults.found[0]["code"] == Code.INVALID_RESULT:
        return faults.refusal("the only result of an ack is succeeded; a failure is told with the call fail")
    return faults.refusal()


def write_back(job: Job, row: ObjectRow) -> dict[str, Json]:
    """What an object elsewhere is to be told; `version` is its fence, `fence` that of the job's delivery."""
    return {
        "object_type": row.object_type,
        "object_id": row.object_id,
        "next_action_at": _time(row.next_action_at),
        "state": row.state,
        "version": row.version,
        "job_id": job.job_id,
        "fence": job.delivery_count,
    }


def not_found(job_id: str) -> Refused:
    return Refused(Code.JOB_NOT_FOUND, f"no job {job_id}", {"job_id": job_id})


def _holder(job: Job, actor: Actor) -> Actor:
    """A delivery is ended by its worker, whoever carried the message."""
    return Actor("worker", job.worker_id) if job.worker_id is not None else actor


def _alert(job: Job, alert_id: str, event: str) -> dict[str, Json]:
    return {
        "alert": "job.dead_letter",
        "alert_id": alert_id,
        "severity": "critical" if job.priority == Priority.HIGH else "warning",
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


def _time(at: int | None) -> str | None:
    return None if at is None else format_utc(at)
