"""Effects that happen once: written together with their record, under the lease of the delivery that makes them.

A delivery that has lost its lease writes nothing. A later delivery of the same job finds the record, applies nothing,
and gets the result of the first. The record stays when the job is done.

This holds for what goes through `Transaction`, and for nothing else: mails, calls and files lie outside of the store,
and a handler that makes them may make them again.
"""

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.calls import Calls, write_back
from pendula.jobs.model import Actor, Code, Job, JobRefused, Refused
from pendula.jobs.request_reading import Faults
from pendula.jobs.requests import Proof, read_enqueue
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
    """A database of the effect's own made trouble; nothing of the effect was written."""

    code = "effect_failed"


class Transaction:
    """What an effect may do; all of it is committed together with its record, or none of it.

    `job` is the job as the store has it, `now` the store's time in microseconds.
    """

    def __init__(self, tx: EffectWriter, job: Job, now: int, calls: Calls) -> None:
        self._tx = tx
        self._calls = calls
        self._actor = Actor("worker", str(job.worker_id))
        self._lock = threading.RLock()
        self._over = False
        self._begun = 0
        self._whole = 0
        self._trouble: BaseException | None = None
        self.job = job
        self.now = now

    def end(self) -> None:
        """Whoever kept it can do nothing with it any more.

        Raises `EffectFailed` where something was begun here and not brought to its end, even if the effect went on.
        Counted, not caught: an interrupt may strike anywhere, also while another is being handled.
        """
        with self._lock:
            self._over = True
        if isinstance(self._trouble, TransactionGone | EffectTooLong):
            raise self._trouble
        if self._begun != self._whole:
            raise EffectFailed("The effect was broken off in the middle of a change; nothing of it was written") from (
                self._trouble
            )

    def execute(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run one SQL statement on tables of your own in the same file; gives its rows.

        Raises `StatementRefused` when the statement is faulty or breaks a constraint, and where it would end the
        transaction. The tables of the scheduler are not yours to write.
        """
        # Before everybody waits: making a value of an object runs foreign code, which may take its time.
        bound = plain_values(values)
        return self._part(lambda: self._tx.execute(statement, bound))

    @property
    def object(self) -> ObjectRow | None:
        """What the store knows of the job's object."""
        return self._tx.object(self.job.object_type, self.job.object_id)

    def change_object(
        self,
        reason: str,
        *,
        state: str | UnsetType | None = UNSET,
        next_action_at: int | UnsetType | None = UNSET,
        evidence: Sequence[str] = (),
    ) -> ObjectRow:
        """Give the job's object another state or time, with its event in the trail; what is unset stays.

        `evidence` are the references the decision rests on, or where there are none the sources of the object; the
        event names them before the job.
        """
        self._check_ungoverned()
        named = tuple(evidence)
        return self._part(lambda: self._change_object(reason, state, next_action_at, named))

    def _change_object(
        self,
        reason: str,
        state: str | UnsetType | None,
        next_action_at: int | UnsetType | None,
        evidence: Sequence[str],
    ) -> ObjectRow:
        there = self.object
        row = there or ObjectRow(self.job.object_type, self.job.object_id, None, 0, None)
        after = replace(
            row,
            state=row.state if state is UNSET else state,
            next_action_at=row.next_action_at if next_action_at is UNSET else next_action_at,
        )
        if after == row:
            return row
        after = replace(after, version=row.version + 1)
        old, new = _shown(row), _shown(after)
        touched = [name for name in old if old[name] != new[name]]
        self._tx.object_event(
            replace(self.job, updated_at=self.now),
            {name: old[name] for name in touched},
            {name: new[name] for name in touched},
            reason,
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

    def enqueue(self, **members: Any) -> Job:
        """Another job, stored with this effect or not at all; for a repeat, the stored one. Raises `JobRefused`."""
        request = read_enqueue(members, self._calls.policy, self.now)
        if isinstance(request, Faults):
            raise JobRefused(request.refusal())
        stored = self._part(lambda: self._calls.store_in(self._tx, request, self._actor, self.now))
        if isinstance(stored, Refused):
            raise JobRefused(stored)
        return stored[0]

    def _part(self, work: Callable[[], T]) -> T:
        """Something that is done as a whole, or refused as a whole."""
        with self._lock:
            if self._over:
                raise TransactionGone("The effect is over; its transaction cannot be used any more")
            return self._counted(work)

    def _counted(self, work: Callable[[], T]) -> T:
        self._begun += 1
        try:
            found = work()
        except StatementRefused:
            self._whole += 1
            raise
        except BaseException as trouble:
            self._trouble = self._trouble or trouble
            raise
        self._whole += 1
        return found


def plain_values(values: Sequence[Any] | Mapping[str, Any]) -> list[Any] | dict[str, Any]:
    """The values of a statement as SQLite stores them, by the adapters of `sqlite3`; raises `StatementRefused`."""
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
            return kind(made)  # of a kind derived from it, too
    if isinstance(made, memoryview):
        return bytes(made)
    raise StatementRefused(f"A value of type {type(made).__name__} cannot be stored; see sqlite3.register_adapter")


def once(calls: Calls, job: Mapping[str, Any], effect: Callable[[Transaction], Json]) -> Json:
    """The result of the job's effect, now or when it was applied. `job` is the delivery, as pull gave it.

    Raises `LeaseGone` when the delivery holds no lease any more; nothing is written then, nor when `effect` raises.
    """
    worker_id, token = proof_of(job)

    def work(tx: EffectWriter) -> Json:
        now = calls.clock()
        stored = tx.job(str(job["job_id"]))
        if stored is None:
            raise LeaseGone(f"{job['job_id']} is gone", job_id=job["job_id"], reason="job_not_found")
        refused = decide.holding(stored, Proof(worker_id, token), now)
        if refused is not None:
            raise _gone(stored, refused)
        done = tx.effect(stored.idempotency_key)
        if done is not None:
            return done.result
        # As a later delivery would read it: tuples are lists, and what has no canonical form is refused here.
        transaction = Transaction(tx, stored, now, calls)
        result = decode(encode(_applied(effect, transaction)))
        transaction.end()
        tx.put_effect(Effect(stored.idempotency_key, stored.seq, stored.delivery_count, result, now))
        return result

    return calls.store.write_effect(work)


def _applied(effect: Callable[[Transaction], Json], transaction: Transaction) -> Json:
    try:
        return effect(transaction)
    except sqlite3.Error as trouble:
        # Somebody's own database, most likely: no reason to fail all who share this commit. Where it is this one, the
        # commit fails.
        raise EffectFailed(f"The effect failed: {trouble!r}") from trouble


def _gone(job: Job, refused: Refused) -> LeaseGone:
    message = f"The lease of {job.job_id} is lost: {refused.message}"
    return LeaseGone(message, job_id=job.job_id, reason=refused.code.value)


def _shown(row: ObjectRow) -> dict[str, Json]:
    return {
        "next_action_at": None if row.next_action_at is None else format_utc(row.next_action_at),
        "state": row.state,
    }
