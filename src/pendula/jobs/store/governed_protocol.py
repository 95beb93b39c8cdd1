"""What governance needs of a transaction: governed objects, gates, decision traces, rollbacks and counters."""

from typing import Protocol

from msgspec import Struct

from pendula.governance.gates import Gate
from pendula.governance.model import Governed
from pendula.jobs.reasons import Reason
from pendula.kernel.canonical import Json


class JobInGovernance(Struct, frozen=True):
    """How often a gate deferred a job, and which delivery of it entered the verifier.

    `begun_version` is the version of the object that this delivery read; its verdict is about that version.
    """

    deferrals: int = 0
    begun_fence: int = 0
    begun_version: int | None = None


class Rollback(Struct, frozen=True):
    """A request to take back everything that was built on an object."""

    n: int
    object_type: str
    object_id: str
    asked_at: int
    reason: Reason
    job_id: str | None
    finished_at: int | None


class Stored(Struct, frozen=True):
    """An object with the columns it is indexed by; `subject` is None where it cannot be read."""

    object_type: str
    object_id: str
    place: str
    next_action_at: int | None
    subject: Governed | None


class GovernedReading(Protocol):
    """Queries within one transaction."""

    def governed(self, object_type: str, object_id: str) -> Governed | None: ...

    def page(self, object_type: str, place: str | None, after: str, limit: int) -> list[Governed]:
        """Objects of a type, all or those in one place, by id."""
        ...

    def places(self) -> list[tuple[str, str, int]]:
        """How many objects of each type are in each place."""
        ...

    def for_a_person(self, limit: int) -> tuple[int, list[Governed]]:
        """How many objects wait for a person to decide, and the first of them by type and id."""
        ...

    def stored(self, after: tuple[str, str], limit: int) -> list[Stored]:
        """Objects by type and id, including those that cannot be read."""
        ...

    def closed(self) -> set[tuple[str, str]]:
        """Objects whose verification limit is reached."""
        ...

    def job(self, seq: int) -> JobInGovernance: ...

    def jobs_out_of_turn(self) -> list[str]:
        """Ids of jobs begun by a delivery that never happened, or deferred more often than allowed."""
        ...

    def gates(self, scope: str | None = None) -> tuple[Gate, ...]:
        """Gates that apply to a scope: its own and those for everything. Without a scope, all gates."""
        ...

    def gate_page(self, scope: str | None, after: tuple[str, str], limit: int) -> list[Gate]:
        """Gates by scope and name, those for everything first: all, or those that apply to one scope."""
        ...

    def traces(self, object_type: str, object_id: str, limit: int) -> list[tuple[str, Json]]:
        """The latest decisions about an object, the last first."""
        ...

    def has_trace(self, name: str, object_type: str, object_id: str) -> bool:
        """Whether a decision about the object is stored under this name."""
        ...

    def rollbacks(self, object_type: str, object_id: str) -> list[Rollback]: ...

    def open_rollbacks(self, limit: int) -> list[Rollback]: ...

    def counts(self) -> list[tuple[str, str, int]]:
        """Counters, by kind and word."""
        ...

    def waiting(self, object_type: str, object_id: str) -> list[str]:
        """Ids of the object's queued jobs, the oldest first."""
        ...


class GovernedWriting(GovernedReading, Protocol):
    """Writes within one transaction."""

    def put(self, subject: Governed) -> None: ...

    def put_job(self, seq: int, known: JobInGovernance) -> None: ...

    def put_gate(self, gate: Gate) -> None: ...

    def add_trace(self, object_type: str, object_id: str, body: Json) -> str:
        """Store how a decision came about; returns its id."""
        ...

    def ask_rollback(self, subject: Governed, reason: Reason, job_id: str | None, now: int) -> int: ...

    def finish_rollbacks(self, object_type: str, object_id: str, now: int) -> int:
        """Returns how many were open."""
        ...

    def count(self, kind: str, word: str, by: int = 1) -> None: ...
