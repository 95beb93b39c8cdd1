"""Loads of the benchmark of jobs: bodies, a scheduler on its own file, and stores filled to a size.

Every body has its own key and, if it is due later, its own time, so that no cache makes a batch too cheap.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from pendula.jobs.calls import Calls
from pendula.jobs.messages import Message, plain
from pendula.jobs.model import SECOND, Durability, Policy, job_id
from pendula.jobs.store.sqlite import SqliteStore
from pendula.kernel.time import format_utc
from pendula.kernel.wallclock import WallClock

HOUR = 3600 * SECOND
WORKER = "bench"
LEASE_SEC = 3600
FILLED_AT_ONCE = 100_000
EVENT_BYTES = 640


class Desk:
    """One scheduler on a new file; every body it makes is different."""

    def __init__(self, path: Path, durability: Durability = Durability.FULL, policy: Policy | None = None) -> None:
        self.store = SqliteStore(path, durability=durability)
        self.calls = Calls(self.store, policy or Policy(durability=durability), WallClock().now)
        self._made = 0

    def bodies(self, count: int, due_in: int = HOUR) -> list[dict[str, Any]]:
        """Bodies of jobs that are due in this many microseconds; 0 means now."""
        first, now = self._made, self.calls.clock()
        self._made += count
        return [body(number, now + due_in + number if due_in else None) for number in range(first, first + count)]

    def enqueues(self, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Each entry's answer."""
        found: list[dict[str, Any]] = granted(self.calls.enqueue_batch({"jobs": bodies}))["results"]
        return found

    def enqueues_one_by_one(self, bodies: list[dict[str, Any]]) -> None:
        for body in bodies:
            granted(self.calls.enqueue(body))

    def pulls(self, count: int) -> list[dict[str, Any]]:
        reply = granted(self.calls.pull({"worker_id": WORKER, "limit": count, "lease_sec": LEASE_SEC}))
        assert reply["count"] == count, reply["count"]
        jobs: list[dict[str, Any]] = reply["jobs"]
        return jobs

    def acks(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Each entry's answer."""
        found: list[dict[str, Any]] = granted(self.calls.ack_batch({"acks": entries}))["results"]
        return found

    def pulls_and_acks_one_by_one(self, count: int) -> None:
        for _ in range(count):
            [job] = self.pulls(1)
            granted(self.calls.ack(job["job_id"], proof(job)))

    def close(self) -> None:
        self.store.close()


def body(number: int, run_at: int | None = None) -> dict[str, Any]:
    members = {
        "object_type": "memory",
        "object_id": f"mem_{number:09d}",
        "action": "verify",
        "priority": "high",
        "idempotency_key": f"bench:verify:{number:09d}",
    }
    return members if run_at is None else {**members, "run_at": format_utc(run_at)}


def ack_entries(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"job_id": job["job_id"], **proof(job)} for job in jobs]


def proof(job: dict[str, Any]) -> dict[str, Any]:
    return {"result": "succeeded", "worker_id": WORKER, "lease_token": job["lease_token"]}


def assert_all(status: int, results: list[dict[str, Any]]) -> None:
    assert all(result["status"] == status for result in results), results


def granted(answer: object) -> dict[str, Any]:
    assert isinstance(answer, Message), answer
    return plain(answer)


def filled(path: Path, *, waiting: int = 0, in_order: int = 0, finished: int = 0) -> None:
    """A new store with this many jobs, first the finished ones; each job has one event of the usual size.

    All queued jobs are due. The first `in_order` of them are due in their order of enqueue, the others after these, and
    scattered over the file. The rows are written by SQL, as a million calls would take minutes: the trail is long, but
    its chain is not valid.
    """
    SqliteStore(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # This file need not survive a power cut.
        connection.execute("PRAGMA synchronous = OFF")
        connection.create_function("job_id", 1, job_id, deterministic=True)
        last = finished + waiting
        facts = {"in_order": finished + in_order, "last": last, "event": "x" * EVENT_BYTES}
        for status, begin, end in (("succeeded", 0, finished), ("queued", finished, last)):
            for first in range(begin, end, FILLED_AT_ONCE):
                upto = min(first + FILLED_AT_ONCE, end)
                _fill(connection, {**facts, "status": status, "first": first, "upto": upto})
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _fill(connection: sqlite3.Connection, facts: dict[str, Any]) -> None:
    connection.execute("BEGIN")
    for statement in (_JOBS, _AUDIT, _COUNTS):
        connection.execute(statement, facts)
    connection.execute("COMMIT")


_NUMBERS = "WITH RECURSIVE numbers (n) AS (SELECT :first + 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :upto)"
# A prime as factor: no due time repeats. All of them are in the first hours of 1970.
_DUE = "iif(n <= :in_order, n, :last + n * 7919 % :last)"
_JOBS = f"""{_NUMBERS}
INSERT INTO jobs (seq, job_id, object_type, object_id, action, run_at, priority, attempt, max_attempts,
    idempotency_key, status, last_error, created_at, updated_at, scheduled_for, worker_id, lease, lease_expires_at,
    delivery_count, correlation_id, audit_event_id, outcome, queue, last_lease, ended, expired)
SELECT n, job_id(n), 'memory', printf('old_%09d', n), 'verify', {_DUE}, 0, 0, 3, printf('filled:verify:%09d', n),
    :status, NULL, n, n, {_DUE}, NULL, NULL, NULL, 0, NULL, NULL, NULL, 'default', NULL, NULL, 0
FROM numbers"""
_AUDIT = f"""{_NUMBERS}
INSERT INTO audit (n, event_type, object_type, object_id, job_seq, body, hash)
SELECT n, 'scheduler_job', 'scheduler_job', job_id(n), n, :event, zeroblob(32) FROM numbers"""
_COUNTS = """
INSERT INTO counts (status, object_type, action, priority, queue, n)
VALUES (:status, 'memory', 'verify', 0, 'default', :upto - :first)
ON CONFLICT (status, object_type, action, priority, queue) DO UPDATE SET n = n + excluded.n"""
