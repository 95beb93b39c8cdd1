"""The tables of governed objects: the objects, gates, decision traces, rollbacks and counters."""

import sqlite3
from typing import Any

import msgspec
from msgspec import Struct

from pendula.governance.decisions import DEFERRALS_MOST
from pendula.governance.gates import EVERYTHING, Gate
from pendula.governance.model import Governed
from pendula.jobs.reasons import Reason
from pendula.jobs.store.protocol import Reader, StoreUnusable
from pendula.kernel.canonical import Json, decode, encode

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Governed).decode
_decode_reason = msgspec.json.Decoder(Reason).decode
TRACE = "trace_"
_GATE = ", ".join(Gate.__struct_fields__)

# The first two conditions as in the index, so that SQLite uses it; an object at its end has no next action.
_FOR_A_PERSON = """instr(body, '"decision_mode":"escalate"') > 0 AND instr(body, '"closed":') = 0
    AND instr(body, '"next_action":') > 0"""


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


class GovernedTables:
    """Reads and writes within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    # Objects

    def governed(self, object_type: str, object_id: str) -> Governed | None:
        query = "SELECT body FROM governed WHERE object_type = ? AND object_id = ?"
        try:
            row = self._connection.execute(query, (object_type, object_id)).fetchone()
        except UnicodeEncodeError:  # a lone surrogate cannot be stored
            return None
        return None if row is None else _read(row[0])

    def put(self, subject: Governed) -> None:
        self._connection.execute(
            "INSERT INTO governed (object_type, object_id, place, next_action_at, body) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (object_type, object_id) DO UPDATE SET place = excluded.place, "
            "next_action_at = excluded.next_action_at, body = excluded.body",
            (subject.object_type, subject.object_id, subject.place, subject.next_action_at, _encode(subject).decode()),
        )
        about = (subject.object_type, subject.object_id)
        if subject.closed is not None:
            self._connection.execute("INSERT INTO closed_objects VALUES (?, ?) ON CONFLICT DO NOTHING", about)
        else:
            self._connection.execute("DELETE FROM closed_objects WHERE object_type = ? AND object_id = ?", about)

    def page(self, object_type: str, place: str | None, after: str, limit: int) -> list[Governed]:
        """Objects of a type, all or those in one place, by id."""
        query = "SELECT body FROM governed WHERE object_type = ? AND object_id > ? ORDER BY object_id LIMIT ?"
        values: tuple[object, ...] = (object_type, after, limit)
        if place is not None:
            query = (
                "SELECT body FROM governed WHERE object_type = ? AND place = ? AND object_id > ? "
                "ORDER BY object_id LIMIT ?"
            )
            values = (object_type, place, after, limit)
        return [_read(row[0]) for row in self._connection.execute(query, values)]

    def stored(self, after: tuple[str, str], limit: int) -> list[Stored]:
        """Objects by type and id, including those that cannot be read."""
        query = (
            "SELECT object_type, object_id, place, next_action_at, body FROM governed "
            "WHERE (object_type, object_id) > (?, ?) ORDER BY object_type, object_id LIMIT ?"
        )
        rows = self._connection.execute(query, (*after, limit))
        return [Stored(kind, name, place, at, _readable(body)) for kind, name, place, at, body in rows]

    def places(self) -> list[tuple[str, str, int]]:
        """How many objects of each type are in each place."""
        query = "SELECT object_type, place, count(*) FROM governed GROUP BY object_type, place ORDER BY 1, 2"
        return [(row[0], row[1], row[2]) for row in self._connection.execute(query)]

    def for_a_person(self, limit: int) -> tuple[int, list[Governed]]:
        """How many objects wait for a person to decide, and the first of them by type and id."""
        [(count,)] = self._connection.execute(f"SELECT count(*) FROM governed WHERE {_FOR_A_PERSON}")
        query = f"SELECT body FROM governed WHERE {_FOR_A_PERSON} ORDER BY object_type, object_id LIMIT ?"
        return count, [_read(row[0]) for row in self._connection.execute(query, (limit,))]

    def closed(self) -> set[tuple[str, str]]:
        """Objects whose verification limit is reached."""
        rows = self._connection.execute("SELECT object_type, object_id FROM closed_objects")
        return {(row[0], row[1]) for row in rows}

    def waiting(self, object_type: str, object_id: str) -> list[str]:
        """Ids of the object's queued jobs, the oldest first."""
        query = (
            # The first condition on the status is that of the index.
            "SELECT job_id FROM jobs WHERE object_type = ? AND object_id = ? AND status IN ('queued', 'running') "
            "AND status = 'queued' ORDER BY seq"
        )
        return [row[0] for row in self._connection.execute(query, (object_type, object_id))]

    # Jobs

    def job(self, seq: int) -> JobInGovernance:
        query = "SELECT deferrals, begun_fence, begun_version FROM governed_jobs WHERE job_seq = ?"
        row = self._connection.execute(query, (seq,)).fetchone()
        return JobInGovernance() if row is None else JobInGovernance(*row)

    def put_job(self, seq: int, known: JobInGovernance) -> None:
        self._connection.execute(
            "INSERT INTO governed_jobs (job_seq, deferrals, begun_fence, begun_version) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (job_seq) DO UPDATE SET deferrals = excluded.deferrals, "
            "begun_fence = excluded.begun_fence, begun_version = excluded.begun_version",
            (seq, known.deferrals, known.begun_fence, known.begun_version),
        )

    def jobs_out_of_turn(self) -> list[str]:
        """Ids of jobs begun by a delivery that never happened, or deferred more often than allowed."""
        query = (
            "SELECT job_id FROM governed_jobs JOIN jobs ON seq = job_seq "
            "WHERE begun_fence > delivery_count OR deferrals NOT BETWEEN 0 AND ? ORDER BY seq"
        )
        return [row[0] for row in self._connection.execute(query, (DEFERRALS_MOST,))]

    # Gates

    def gates(self, scope: str | None = None) -> tuple[Gate, ...]:
        """Gates that apply to a scope: its own and those for everything. Without a scope, all gates."""
        query = f"SELECT {_GATE} FROM gates"
        if scope is None:
            rows = self._connection.execute(f"{query} ORDER BY name, scope")
        else:
            rows = self._connection.execute(f"{query} WHERE scope IN (?, ?) ORDER BY name, scope", (scope, EVERYTHING))
        return tuple(Gate(*row) for row in rows)

    def gate_page(self, scope: str | None, after: tuple[str, str], limit: int) -> list[Gate]:
        """Gates by scope and name, those for everything first: all, or those that apply to one scope."""
        among = "" if scope is None else "scope IN (?, ?) AND "
        values = () if scope is None else (scope, EVERYTHING)
        rows = self._connection.execute(
            f"SELECT {_GATE} FROM gates WHERE {among}(scope, name) > (?, ?) ORDER BY scope, name LIMIT ?",
            (*values, *after, limit),
        )
        return [Gate(*row) for row in rows]

    def put_gate(self, gate: Gate) -> None:
        self._connection.execute(
            f"INSERT INTO gates ({_GATE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (scope, name) DO UPDATE SET "
            "verdict = excluded.verdict, version = excluded.version, set_at = excluded.set_at, "
            "set_by = excluded.set_by, reason = excluded.reason, override_by = excluded.override_by",
            msgspec.structs.astuple(gate),
        )

    # Traces, rollbacks, counts

    def add_trace(self, object_type: str, object_id: str, body: Json) -> str:
        cursor = self._connection.execute(
            "INSERT INTO decision_traces (object_type, object_id, body) VALUES (?, ?, ?)",
            (object_type, object_id, encode(body).decode()),
        )
        return trace_id(cursor.lastrowid or 0)

    def traces(self, object_type: str, object_id: str, limit: int) -> list[tuple[str, Json]]:
        """The latest decisions about an object, the last first."""
        query = "SELECT n, body FROM decision_traces WHERE object_type = ? AND object_id = ? ORDER BY n DESC LIMIT ?"
        rows = self._connection.execute(query, (object_type, object_id, limit))
        return [(trace_id(row[0]), decode(row[1].encode())) for row in rows]

    def has_trace(self, name: str, object_type: str, object_id: str) -> bool:
        """Whether a decision about the object is stored under this name."""
        query = "SELECT 1 FROM decision_traces WHERE n = ? AND object_type = ? AND object_id = ?"
        number = int(name.removeprefix(TRACE))
        return self._connection.execute(query, (number, object_type, object_id)).fetchone() is not None

    def ask_rollback(self, subject: Governed, reason: Reason, job_id: str | None, now: int) -> int:
        cursor = self._connection.execute(
            "INSERT INTO rollbacks (object_type, object_id, asked_at, reason, job_id) VALUES (?, ?, ?, ?, ?)",
            (subject.object_type, subject.object_id, now, _encode(reason).decode(), job_id),
        )
        return cursor.lastrowid or 0

    def rollbacks(self, object_type: str, object_id: str) -> list[Rollback]:
        query = (
            "SELECT n, object_type, object_id, asked_at, reason, job_id, finished_at FROM rollbacks "
            "WHERE object_type = ? AND object_id = ? ORDER BY n"
        )
        return [_rollback(row) for row in self._connection.execute(query, (object_type, object_id))]

    def open_rollbacks(self, limit: int) -> list[Rollback]:
        query = (
            "SELECT n, object_type, object_id, asked_at, reason, job_id, finished_at FROM rollbacks "
            "WHERE finished_at IS NULL ORDER BY n LIMIT ?"
        )
        return [_rollback(row) for row in self._connection.execute(query, (limit,))]

    def finish_rollbacks(self, object_type: str, object_id: str, now: int) -> int:
        """Returns how many were open."""
        query = "UPDATE rollbacks SET finished_at = ? WHERE object_type = ? AND object_id = ? AND finished_at IS NULL"
        return self._connection.execute(query, (now, object_type, object_id)).rowcount

    def count(self, kind: str, word: str, by: int = 1) -> None:
        self._connection.execute(
            "INSERT INTO governance_counts VALUES (?, ?, ?) "
            "ON CONFLICT (kind, word) DO UPDATE SET count = count + excluded.count",
            (kind, word, by),
        )

    def counts(self) -> list[tuple[str, str, int]]:
        rows = self._connection.execute("SELECT kind, word, count FROM governance_counts ORDER BY kind, word")
        return [(row[0], row[1], row[2]) for row in rows]


def tables_of(tx: Reader) -> GovernedTables:
    """The tables in this transaction. Call it for each use: the transaction then drops its cached counts of them."""
    return tx.tables(GovernedTables)


def _rollback(row: tuple[Any, ...]) -> Rollback:
    rollback = Rollback(*row)
    return msgspec.structs.replace(rollback, reason=_decode_reason(row[4]))


def trace_id(n: int) -> str:
    return f"{TRACE}{n:012d}"


def _read(body: str) -> Governed:
    subject = _readable(body)
    if subject is None:
        raise StoreUnusable("A governed object cannot be read: the store is damaged; `pendula jobs check` says which")
    return subject


def _readable(body: str) -> Governed | None:
    try:
        return _decode(body)
    except ValueError:  # not JSON, not a governed object, or not even text
        return None
