"""Batches and single jobs beside raw SQL: prepared rows, written to the same tables and indexes with the same settings.

Raw SQL validates, decides, hashes, encodes and answers nothing; its rows are those that our side has just written.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from bench.jobs_loads import Desk, ack_entries, assert_all
from bench.measuring.wall_time import Turns
from pendula.cli.benchmarks import Progress, Row, Target, compared
from pendula.jobs.model import Job
from pendula.jobs.store.sqlite import SqliteStore

ENQUEUED, PULLED, SINGLE = 1000, 100, 20
ROUNDS, QUICK_ROUNDS = 21, 7
SIXTENTHS, EIGHT_TENTHS = Target(">=", Decimal("0.6")), Target(">=", Decimal("0.8"))
MORE_THAN_SIXTENTHS = Target(">=", Decimal("0.65"))
OURS, RAW = "ours", "raw"
SETTINGS = ("journal_mode", "synchronous", "foreign_keys", "cache_size")

JOBS = ", ".join(Job.__struct_fields__)
AUDIT = "n, event_type, object_type, object_id, job_seq, body, hash"
OBJECTS = "object_type, object_id, next_action_at, version, state"
COUNTS = "status, object_type, action, priority, queue, n"
ENDED = "second, succeeded, failed, dead_letter, attempts, requeues"
CHANGING = (
    "run_at", "attempt", "status", "last_error", "updated_at", "worker_id", "lease", "lease_expires_at",
    "delivery_count", "audit_event_id", "outcome", "last_lease", "ended", "expired",
)  # fmt: skip
UPDATE = f"UPDATE jobs SET {', '.join(f'{name} = ?' for name in CHANGING)} WHERE seq = ?"

Values = Sequence[tuple[Any, ...]]


class Raw:
    """A connection to a separate store."""

    def __init__(self, path: Path, like: sqlite3.Connection) -> None:
        SqliteStore(path).close()
        self._connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        for name in SETTINGS:
            self._connection.execute(f"PRAGMA {name} = {_setting(like, name)}")
        assert [_setting(self._connection, name) for name in SETTINGS] == [_setting(like, name) for name in SETTINGS]

    def writes(self, steps: Iterable[tuple[str, Values]]) -> None:
        """Statements with their rows, in one transaction."""
        self._connection.execute("BEGIN IMMEDIATE")
        for statement, rows in steps:
            self._connection.executemany(statement, rows)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class Seen:
    """The rows that our side wrote since the last call, as statements and rows for raw SQL."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)
        self._seq = self._n = 0
        self._objects = 0

    def added(self) -> list[tuple[str, Values]]:
        jobs = self._rows(f"SELECT {JOBS} FROM jobs WHERE seq > ? ORDER BY seq", self._seq)
        self._seq += len(jobs)
        return [(_insert("jobs", JOBS), jobs), *self._beside()]

    def changed(self, first: int) -> list[tuple[str, Values]]:
        """The jobs from number `first` on, and the rows that belong to their change."""
        columns = ", ".join((*CHANGING, "seq"))
        jobs = self._rows(f"SELECT {columns} FROM jobs WHERE seq >= ? ORDER BY seq", first)
        return [(UPDATE, jobs), *self._beside()]

    @property
    def last_seq(self) -> int:
        return self._seq

    def close(self) -> None:
        self._connection.close()

    def _beside(self) -> Iterable[tuple[str, Values]]:
        events = self._rows(f"SELECT {AUDIT} FROM audit WHERE n > ? ORDER BY n", self._n)
        self._n += len(events)
        yield _insert("audit", AUDIT), events
        # Objects are sorted by id, so the new ones are the last ones.
        objects = self._rows(
            f"SELECT {OBJECTS} FROM objects ORDER BY object_type, object_id LIMIT -1 OFFSET ?", self._objects
        )
        self._objects += len(objects)
        if objects:
            yield _insert("objects", OBJECTS), objects
        yield _insert("counts", COUNTS, "REPLACE"), self._rows(f"SELECT {COUNTS} FROM counts")
        ended = self._rows(f"SELECT {ENDED} FROM ended ORDER BY second DESC LIMIT 1")
        if ended:
            yield _insert("ended", ENDED, "REPLACE"), ended

    def _rows(self, query: str, *values: int) -> Values:
        return self._connection.execute(query, values).fetchall()


def rows(place: Path, quick: bool, progress: Progress, unfair: str | None) -> list[Row]:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    desk = Desk(place / "ours.db")
    with closing(desk), closing(Seen(place / "ours.db")) as seen, closing(_raw_like(desk, place)) as raw:
        progress(f"enqueue of {ENQUEUED}, ours and raw")
        enqueue = enqueue_turns(desk, seen, raw, rounds)
        progress("enqueue, one by one, ours and raw")
        single = single_turns(desk, seen, raw, rounds)
        progress(f"pull and ack of {PULLED}, ours and raw")
        pull = pull_turns(desk, seen, raw, rounds)
    return [
        _row(
            f"batch enqueue of {ENQUEUED}, full durability",
            ENQUEUED,
            enqueue,
            SIXTENTHS,
            unfair=unfair,
            fairness="ours validates, checks the key, answers each entry and writes, hashes and chains its event; "
            "every entry has a key and a due time of its own",
        ),
        _row(
            "enqueue, one by one, full durability",
            SINGLE,
            single,
            EIGHT_TENTHS,
            unfair=unfair,
            fairness="a transaction a job on both sides, in turns",
        ),
        _row(
            f"pull and ack of {PULLED}, full durability",
            PULLED,
            pull,
            MORE_THAN_SIXTENTHS,
            unfair=unfair,
            fairness="two transactions on both sides; ours also finds the due jobs, makes and proves the leases, "
            "answers each entry and writes, hashes and chains two events a job",
        ),
    ]  # fmt: skip


def enqueue_turns(desk: Desk, seen: Seen, raw: Raw, rounds: int) -> Turns:
    turns = Turns()
    for _ in turns.rounds(rounds):
        bodies = desk.bodies(ENQUEUED)
        results = turns.take(OURS, partial(desk.enqueues, bodies))
        assert_all(201, results)
        turns.take(RAW, partial(raw.writes, seen.added()))
    return turns


def single_turns(desk: Desk, seen: Seen, raw: Raw, rounds: int) -> Turns:
    turns = Turns()
    for _ in turns.rounds(rounds):
        for body in desk.bodies(SINGLE):
            turns.take(OURS, partial(desk.enqueues_one_by_one, [body]))
            turns.take(RAW, partial(raw.writes, seen.added()))
    return turns


def pull_turns(desk: Desk, seen: Seen, raw: Raw, rounds: int) -> Turns:
    turns = Turns()
    for _ in turns.rounds(rounds):
        assert_all(201, desk.enqueues(desk.bodies(PULLED, due_in=0)))
        first = seen.last_seq + 1
        raw.writes(seen.added())
        entries = ack_entries(turns.take(OURS, partial(desk.pulls, PULLED)))
        turns.take(RAW, partial(raw.writes, seen.changed(first)))
        results = turns.take(OURS, partial(desk.acks, entries))
        assert_all(200, results)
        turns.take(RAW, partial(raw.writes, seen.changed(first)))
    return turns


def _row(name: str, count: int, turns: Turns, target: Target, *, unfair: str | None, fairness: str) -> Row:
    return compared(
        name,
        count / turns.seconds(OURS),
        count / turns.seconds(RAW),
        "jobs/s",
        against="raw",
        ratio=1 / turns.share(OURS, RAW),
        target=target,
        unfair=unfair,
        fairness=fairness,
    )


def _raw_like(desk: Desk, place: Path) -> Raw:
    """With the settings of our committing connection."""
    return Raw(place / "raw.db", desk.store._connection)


def _setting(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _insert(table: str, columns: str, otherwise: str = "ABORT") -> str:
    return f"INSERT OR {otherwise} INTO {table} ({columns}) VALUES ({', '.join('?' * len(columns.split(', ')))})"
