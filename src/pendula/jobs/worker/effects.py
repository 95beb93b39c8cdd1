"""Effects applied at most once: written in the same transaction as their record, under the lease of the delivery.

A delivery that has lost its lease writes nothing. A later delivery of the same job finds the record, applies nothing,
and returns the stored result. The record stays when the job has finished.

This covers only writes through `Transaction`. Mails, network calls and files are outside the store and may happen
again.
"""

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Unpack

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from pendula.jobs import decide, messages
from pendula.jobs.calls import Calls, write_back
from pendula.jobs.messages import Enqueue, JobRefused, Proof
from pendula.jobs.model import Actor, Code, Job, Refused
from pendula.jobs.reasons import stated
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.scheduler_calls import EnqueueMembers
from pendula.jobs.store.protocol import (
    Effect,
    EffectTooLong,
    EffectWriter,
    ObjectRow,
    StatementRefused,
    TransactionGone,
)
from pendula.jobs.worker.leases import LeaseGone, proof_of
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc

T = TypeVar("T")

STORED: tuple[type[Any], ...] = (int, str, bytes, float, bytearray)


class EffectFailed(InputRefused):
    """The effect raised a database error or did not complete; nothing of it was written."""

    code = "effect_failed"


class Transaction:
    """The writes of one effect, committed together with its record or not at all.

    `job` is the stored job, `now` the store's time in microseconds.
    """

    def __init__(self, tx: EffectWriter, job: Job, now: int, calls: Calls) -> None:
        self._tx = tx
        self._calls = calls
        self._actor = Actor("worker", str(job.worker_id))
        self._lock = threading.RLock()
        self._over = False
        self._started = 0
        self._completed = 0
        self._trouble: BaseException | None = None
        self.job = job
        self.now = now

    def end(self) -> None:
        """Close the transaction; any later use raises `TransactionGone`.

        Raises `EffectFailed` if a change started and did not complete, even if the effect caught the error. Changes are
        counted because an interrupt can arrive anywhere, even in an exception handler.
        """
        with self._lock:
            self._over = True
        if isinstance(self._trouble, TransactionGone | EffectTooLong):
            raise self._trouble
        if self._started != self._completed:
            raise EffectFailed("A change of the effect did not complete; nothing of the effect was written") from (
                self._trouble
            )

    def execute(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run one SQL statement on your own tables in the same file; return its rows.

        Raises `StatementRefused` when the statement is faulty, breaks a constraint, would end the transaction or writes
        to a table of the scheduler.
        """
        # Before the statement runs: adapters are user code and may be slow.
        bound = plain_values(values)
        return self._run_part(lambda: self._tx.execute(statement, bound))

    @property
    def object(self) -> ObjectRow | None:
        """The stored row of the job's object."""
        return self._tx.object(self.job.object_type, self.job.object_id)

    def change_object(
        self,
        reason: str,
        *,
        state: str | UnsetType | None = UNSET,
        next_action_at: int | UnsetType | None = UNSET,
        evidence: Sequence[str] = (),
    ) -> ObjectRow:
        """Change the state or the next time of the job's object, with an audit event; unset values stay.

        `evidence` are the references of the decision (default: the sources of the object), listed in the event before
        the job.
        """
        self._check_ungoverned()
        refs = tuple(evidence)
        return self._run_part(lambda: self._change_object(reason, state, next_action_at, refs))

    def _change_object(
        self,
        reason: str,
        state: str | UnsetType | None,
        next_action_at: int | UnsetType | None,
        evidence: Sequence[str],
    ) -> ObjectRow:
        row = self.object or ObjectRow(self.job.object_type, self.job.object_id, None, 0, None)
        after = replace(
            row,
            state=row.state if state is UNSET else state,
            next_action_at=row.next_action_at if next_action_at is UNSET else next_action_at,
        )
        if after == row:
            return row
        after = replace(after, version=row.version + 1)
        old, new = _row_json(row), _row_json(after)
        touched = [name for name in old if old[name] != new[name]]
        self._tx.object_event(
            replace(self.job, updated_at=self.now),
            {name: old[name] for name in touched},
            {name: new[name] for name in touched},
            stated(reason),
            self._actor,
            evidence,
        )
        self._tx.put_object(after)
        if self._calls.policy.objects_elsewhere:
            self._tx.write_back(write_back(self.job, after))
        return after

    def _check_ungoverned(self) -> None:
        kind, name = self.job.object_type, self.job.object_id
        row = self.object
        if row is not None and row.state is not None and self._tx.is_governed(kind, name):
            details: dict[str, Json] = {"object_type": kind, "object_id": name}
            message = f"{kind} {name} is governed: only a verdict changes its state"
            raise JobRefused(Refused(Code.OBJECT_GOVERNED, message, details))

    def enqueue(self, **members: Unpack[EnqueueMembers]) -> Job:
        """Enqueue another job together with this effect; a repeat returns the stored job. Raises `JobRefused`."""
        request = read(Enqueue, members, self._calls.policy, self.now)
        if isinstance(request, Faults):
            raise JobRefused(request.refusal())
        stored = self._run_part(lambda: self._calls.store_in(self._tx, request, self._actor, self.now))
        if isinstance(stored, Refused):
            raise JobRefused(stored)
        return stored[0]

    def _run_part(self, work: Callable[[], T]) -> T:
        """Run one change that either completes or is rejected as a whole."""
        with self._lock:
            if self._over:
                raise TransactionGone("The effect has ended; its transaction cannot be used any more")
            return self._count_part(work)

    def _count_part(self, work: Callable[[], T]) -> T:
        self._started += 1
        try:
            result = work()
        except StatementRefused:
            self._completed += 1
            raise
        except BaseException as trouble:
            self._trouble = self._trouble or trouble
            raise
        self._completed += 1
        return result


def plain_values(values: Sequence[Any] | Mapping[str, Any]) -> list[Any] | dict[str, Any]:
    """Convert statement parameters to SQLite values with the `sqlite3` adapters. Raises `StatementRefused`."""
    if isinstance(values, Mapping):
        return {name: _plain(value) for name, value in values.items()}
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if value is None or type(value) in STORED:
        return value
    made = sqlite3.adapt(value, sqlite3.PrepareProtocol, value)
    if made is None:
        return None
    for kind in STORED:
        if isinstance(made, kind):
            return kind(made)  # a subclass, too
    if isinstance(made, memoryview):
        return bytes(made)
    raise StatementRefused(f"A value of type {type(made).__name__} cannot be stored; see sqlite3.register_adapter")


def once(calls: Calls, job: messages.Job, effect: Callable[[Transaction], Json | Struct]) -> Json:
    """Apply the effect unless its record exists, and return its result. `job` is the delivery that pull returned.

    Raises `LeaseGone` when the delivery has lost its lease. Nothing is written then, nor when `effect` raises.
    """
    worker_id, token = proof_of(job)

    def work(tx: EffectWriter) -> Json:
        now = calls.clock()
        stored = tx.job(job.job_id)
        if stored is None:
            raise LeaseGone(f"{job.job_id} is gone", job_id=job.job_id, reason="job_not_found")
        refused = decide.holding(stored, Proof(worker_id, token), now)
        if refused is not None:
            raise _lease_gone(stored, refused)
        done = tx.effect(stored.idempotency_key)
        if done is not None:
            return done.result
        # Encode and decode, so that the first delivery gets the same value as later ones (tuples become lists).
        transaction = Transaction(tx, stored, now, calls)
        result = decode(encode(_call(effect, transaction)))
        transaction.end()
        tx.put_effect(Effect(stored.idempotency_key, stored.seq, stored.delivery_count, result, now))
        return result

    return calls.store.write_effect(work)


def _call(effect: Callable[[Transaction], Json | Struct], transaction: Transaction) -> Json | Struct:
    try:
        return effect(transaction)
    except sqlite3.Error as trouble:
        # Most likely another database of the handler: do not fail the other writers in this commit. If it is this
        # database, the commit fails anyway.
        raise EffectFailed(f"The effect failed: {trouble!r}") from trouble


def _lease_gone(job: Job, refused: Refused) -> LeaseGone:
    message = f"The lease of {job.job_id} is lost: {refused.message}"
    return LeaseGone(message, job_id=job.job_id, reason=refused.code.value)


def _row_json(row: ObjectRow) -> dict[str, Json]:
    return {
        "next_action_at": None if row.next_action_at is None else format_utc(row.next_action_at),
        "state": row.state,
    }
