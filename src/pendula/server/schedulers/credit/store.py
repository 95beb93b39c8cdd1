"""The database of served runs (uploaded scenarios, records, metrics, bottlenecks, lists of artifacts) and its thread.

Amounts are text, never floats. Events are not stored here; they are in the journal of a run. The statements work in
SQLite and PostgreSQL.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from pendula.credit.views import ALL_UNITS, UNITS, Bottleneck, Measured, Series, series
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.commit import Closed, GroupCommit
from pendula.kernel.errors import PendulaError, WorldBroken
from pendula.server.schedulers.credit.records import Record

FORMAT = 1
# Columns of `runs` with a member of the record each.
SAME_COLUMNS = (
    *("run_id", "scenario_id", "mode", "created_at", "started_at", "stopped_at", "sim_time_ms", "intensity_percent"),
    *("queue_depth", "errors_total", "errors_last_1m", "last_event_type"),
)
# A query waits for at most one transaction; 5 000 rows take a few hundredths of a second.
ROWS_AT_ONCE = 5_000
# Pending measurements of one run while the disk is blocked: two hours of a run with one equivalent.
MEASURED_MOST = 50_000

T = TypeVar("T")

log = structlog.get_logger("pendula.server")

Statement: TypeAlias = tuple[str, Sequence[Any]]

TABLES = (
    "CREATE TABLE IF NOT EXISTS store_format (format INTEGER NOT NULL)",
    """CREATE TABLE IF NOT EXISTS scenarios (
        scenario_id TEXT PRIMARY KEY, name TEXT, description TEXT, schema_version TEXT NOT NULL,
        base_equivalent TEXT, equivalents TEXT NOT NULL, document TEXT NOT NULL, created_at TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS runs (
        run_id TEXT PRIMARY KEY, scenario_id TEXT NOT NULL,
        mode TEXT NOT NULL CHECK (mode IN ('fixtures', 'real')),
        state TEXT NOT NULL CHECK (state IN ('idle', 'running', 'paused', 'stopping', 'stopped', 'error')),
        started_at TEXT, stopped_at TEXT, sim_time_ms BIGINT NOT NULL CHECK (sim_time_ms >= 0),
        intensity_percent INTEGER NOT NULL CHECK (intensity_percent BETWEEN 0 AND 100),
        ops_sec TEXT NOT NULL, queue_depth INTEGER NOT NULL CHECK (queue_depth >= 0),
        errors_total INTEGER NOT NULL CHECK (errors_total >= 0),
        errors_last_1m INTEGER NOT NULL CHECK (errors_last_1m >= 0),
        last_event_type TEXT, current_phase TEXT, last_error TEXT, summary TEXT, seed TEXT NOT NULL,
        owner_id TEXT NOT NULL, owner_kind TEXT NOT NULL, created_at TEXT NOT NULL, record TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS metrics (
        run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
        equivalent TEXT NOT NULL, key TEXT NOT NULL, t_ms BIGINT NOT NULL, value TEXT,
        PRIMARY KEY (run_id, equivalent, key, t_ms))""",
    """CREATE TABLE IF NOT EXISTS bottlenecks (
        run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
        equivalent TEXT NOT NULL, computed_at TEXT NOT NULL, target_type TEXT NOT NULL, target_id TEXT NOT NULL,
        score TEXT NOT NULL, reason_code TEXT NOT NULL, details TEXT NOT NULL, place INTEGER NOT NULL,
        PRIMARY KEY (run_id, equivalent, place))""",
    """CREATE TABLE IF NOT EXISTS artifacts (
        run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
        name TEXT NOT NULL, content_type TEXT, size_bytes BIGINT, sha256 TEXT, url TEXT NOT NULL,
        PRIMARY KEY (run_id, name))""",
)


class SimulatorStoreUnusable(WorldBroken):
    """The file of the store cannot be opened or written. Facts: `file`, and `reason` if the database gives one."""

    code = "simulator_store_unusable"


class Artifact(Struct, frozen=True):
    """One file of a run, as its index lists it."""

    name: str
    url: str
    content_type: str | None
    size_bytes: int | None
    sha256: str | None


class StoreDisabled(WorldBroken):
    """The store is disabled (SIMULATOR_DB_ENABLED) or closed."""

    code = "simulator_store_disabled"


class Unwritten(Struct, frozen=True):
    """Pending writes of one run: the newest of each kind, and all measurements, oldest first."""

    record: Record | None = None
    summary: Json = None
    forget_measured: bool = False  # before `measured` is written
    measured: list[Measured] = []
    bottlenecks: tuple[Mapping[str, Sequence[Bottleneck]], str] | None = None  # and when they were computed
    artifacts: Sequence[Artifact] | None = None

    @property
    def rows(self) -> int:
        """The approximate number of rows."""
        bottlenecks = 0 if self.bottlenecks is None else sum(map(len, self.bottlenecks[0].values()))
        return 1 + len(self.measured) + bottlenecks + len(self.artifacts or ())


class ScenarioRow(Struct, frozen=True):
    document: Json
    created_at: str


class Store:
    """The store in one SQLite file, used by one thread at a time; raises `SimulatorStoreUnusable`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error
        try:
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"):
                self._connection.execute(statement)
            self._prepare()
        except sqlite3.Error as error:
            self._connection.close()
            raise self._unusable(error) from error

    def close(self) -> None:
        self._connection.close()

    def scenarios(self) -> list[ScenarioRow]:
        rows = self._rows("SELECT document, created_at FROM scenarios ORDER BY scenario_id")
        return [ScenarioRow(decode(document.encode()), created_at) for document, created_at in rows]

    def add_scenario(self, document: Mapping[str, Any], equivalents: Sequence[str], created_at: str) -> None:
        facts = [
            document.get(name) for name in ("scenario_id", "name", "description", "schema_version", "baseEquivalent")
        ]
        values = (*facts, ",".join(equivalents), encode(document).decode(), created_at)
        self._execute([(f"INSERT INTO scenarios VALUES ({_marks(values)})", values)])

    def save(self, record: Record, summary: Json = None) -> None:
        """Insert or update a record."""
        self._execute([_upsert_run(record, summary)])

    def records(self) -> list[Record]:
        """All runs, the oldest first."""
        rows = self._rows("SELECT record FROM runs ORDER BY created_at, run_id")
        return [_read_record(text.encode()) for (text,) in rows]

    def record(self, run_id: str) -> Record | None:
        rows = self._rows("SELECT record FROM runs WHERE run_id = ?", (run_id,))
        return _read_record(rows[0][0].encode()) if rows else None

    def delete(self, run_id: str) -> None:
        """Delete a run and all its rows."""
        self._execute([("DELETE FROM runs WHERE run_id = ?", (run_id,))])

    def write(self, runs: Mapping[str, Unwritten]) -> None:
        """Write everything pending of these runs in one transaction."""
        self._execute(
            [statement for run_id, pending in runs.items() for statement in _statements_of_run(run_id, pending)]
        )

    def series(self, run_id: str, equivalent: str, times: range, *, extended: bool = False) -> list[Series]:
        """The keys of the protocol at these times; additional ones if `extended`."""
        last = times[-1] if len(times) else -1
        rows = self._rows(
            "SELECT key, t_ms, value FROM metrics "
            "WHERE run_id = ? AND equivalent = ? AND t_ms <= ? AND value IS NOT NULL ORDER BY key, t_ms",
            (run_id, equivalent, last),
        )
        by_key: dict[str, list[tuple[int, str]]] = {key: [] for key in (ALL_UNITS if extended else UNITS)}
        for key, t_ms, value in rows:
            if key in by_key:
                by_key[key].append((t_ms, value))
        return [series(key, values, times) for key, values in by_key.items()]

    def _prepare(self) -> None:
        for table in TABLES:
            self._connection.execute(table)
        formats = self._connection.execute("SELECT format FROM store_format").fetchall()
        if not formats:
            self._connection.execute("INSERT INTO store_format VALUES (?)", (FORMAT,))
        elif formats[0][0] != FORMAT:
            raise SimulatorStoreUnusable(
                f"The store {self._path} has format {formats[0][0]}, this version reads {FORMAT};"
                " use the version that wrote it",
                file=str(self._path),
            )

    def _execute(self, statements: Sequence[Statement]) -> None:
        """Execute all statements in one transaction."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                for statement, values in statements:
                    self._connection.execute(statement, values)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> SimulatorStoreUnusable:
        message = f"The store {self._path} cannot be used: {error}"
        return SimulatorStoreUnusable(message, file=str(self._path), reason=str(error))


def _upsert_run(record: Record, summary: Json) -> Statement:
    values: dict[str, Any] = {name: getattr(record, name) for name in SAME_COLUMNS} | {
        "state": record.state.value,
        "ops_sec": str(record.ops_sec),
        "current_phase": None,
        "last_error": None if record.last_error is None else encode(record.last_error).decode(),
        "summary": None if summary is None else encode(summary).decode(),
        "seed": str(record.seed),
        "owner_id": record.owner.id,
        "owner_kind": record.owner.kind,
        "record": msgspec.json.encode(record).decode(),
    }
    # Keep an existing summary: only the end of a run has a new one.
    changed = [name for name in values if name != "run_id" and (name != "summary" or summary is not None)]
    updates = ", ".join(f"{name} = excluded.{name}" for name in changed)
    statement = (
        f"INSERT INTO runs ({', '.join(values)}) VALUES ({_marks(list(values))}) "
        f"ON CONFLICT (run_id) DO UPDATE SET {updates}"
    )
    return statement, list(values.values())


def _statements_of_run(run_id: str, pending: Unwritten) -> Iterator[Statement]:
    if pending.record is not None:
        yield _upsert_run(pending.record, pending.summary)
    if pending.forget_measured:
        yield "DELETE FROM metrics WHERE run_id = ?", (run_id,)
    yield from _upsert_metrics(run_id, pending.measured)
    if pending.bottlenecks is not None:
        yield "DELETE FROM bottlenecks WHERE run_id = ?", (run_id,)
        yield from _insert_bottlenecks(run_id, *pending.bottlenecks)
    if pending.artifacts is not None:
        yield "DELETE FROM artifacts WHERE run_id = ?", (run_id,)
        columns = "run_id, name, content_type, size_bytes, sha256, url"
        for artifact in pending.artifacts:
            values = (run_id, artifact.name, artifact.content_type, artifact.size_bytes, artifact.sha256, artifact.url)
            yield f"INSERT INTO artifacts ({columns}) VALUES ({_marks(values)})", values


def _upsert_metrics(run_id: str, values: Iterable[Measured]) -> list[Statement]:
    statement = (
        "INSERT INTO metrics (run_id, equivalent, key, t_ms, value) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (run_id, equivalent, key, t_ms) DO UPDATE SET value = excluded.value"
    )
    return [(statement, (run_id, entry.equivalent, entry.key, entry.t_ms, entry.value)) for entry in values]


def _insert_bottlenecks(
    run_id: str, bottlenecks: Mapping[str, Sequence[Bottleneck]], computed_at: str
) -> Iterator[Statement]:
    for equivalent, worst in bottlenecks.items():
        for place, bottleneck in enumerate(worst):
            ends, whole = encode(bottleneck.target).decode(), encode(bottleneck).decode()
            facts = (
                computed_at,
                bottleneck.target.kind,
                ends,
                str(bottleneck.score),
                bottleneck.reason_code,
                whole,
                place,
            )
            yield f"INSERT INTO bottlenecks VALUES ({_marks('x' * 9)})", (run_id, equivalent, *facts)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


_read_record = msgspec.json.Decoder(Record).decode


class StoreThread:
    """The only thread that uses the store, so that neither the event loop nor a run waits for a disk.

    Queries come first, in order: creating a run never waits for measurements. Pending writes are merged per run (newest
    record, bottlenecks, file list, and all measurements) and written for all runs in one transaction. A failed write is
    logged and counted; the run continues. With the store disabled nothing is written, and queries are rejected.
    """

    def __init__(self, on_dropped: Callable[[int], object] = lambda _: None) -> None:
        """`on_dropped` gets the number of measurements that were dropped because too many were pending."""
        self._on_dropped = on_dropped
        self._lock = threading.Lock()
        self._unwritten: dict[str, Unwritten] = {}  # longest waiting first
        self._woken = False
        self._store: Store | None = None
        self.failures = 0
        self._failing = False
        self._commit: GroupCommit[Callable[[], Any], Any] = GroupCommit(
            lambda work: work(), self._write_batch, name="pendula-simulator-store"
        )

    async def open(self, make: Callable[[], Store]) -> None:
        """Raises `SimulatorStoreUnusable`."""
        self._store = await self._commit.submit(make)

    @property
    def has_store(self) -> bool:
        return self._store is not None

    async def ask(self, question: Callable[[Store], T], *, of: str | None = None) -> T:
        """Query the store before any pending writes, except those of the run `of`; raises what `question` raises."""
        store = self._store
        if store is None:
            raise StoreDisabled("The store is disabled; set SIMULATOR_DB_ENABLED to enable it")

        def answer() -> T:
            while of is not None and self._write_run(of, store):
                pass
            return question(store)

        try:
            result: T = await self._commit.submit(answer)
        except Closed:
            raise StoreDisabled("The store of runs is closed") from None
        return result

    async def delete(self, run_id: str) -> None:
        """Delete a run and its pending writes."""
        with self._lock:
            self._unwritten.pop(run_id, None)
        await self.ask(lambda store: store.delete(run_id))

    # Deferred writes: errors are only logged

    def save(self, record: Record, summary: Json = None) -> None:
        """Save the record; without a new summary a pending one stays."""
        self._defer(record.run_id, lambda pending: replace(pending, record=record, summary=summary or pending.summary))

    def measure(self, run_id: str, values: Iterable[Measured]) -> None:
        self._defer(run_id, lambda pending: self._add_measured(pending, list(values)))

    def forget_measured(self, run_id: str) -> None:
        """Delete all measurements of the run, stored or pending."""
        self._defer(run_id, lambda pending: replace(pending, forget_measured=True, measured=[]))

    def save_bottlenecks(self, run_id: str, bottlenecks: dict[str, list[Bottleneck]], computed_at: str) -> None:
        self._defer(run_id, lambda pending: replace(pending, bottlenecks=(bottlenecks, computed_at)))

    def save_artifacts(self, run_id: str, artifacts: list[Artifact]) -> None:
        self._defer(run_id, lambda pending: replace(pending, artifacts=artifacts))

    async def close(self) -> None:
        """Write everything pending, then close the store."""
        await asyncio.to_thread(self._commit.close)
        if self._store is not None:
            store, self._store = self._store, None
            await asyncio.to_thread(self._close, store)

    def _defer(self, run_id: str, merge: Callable[[Unwritten], Unwritten]) -> None:
        if self._store is None:
            return
        with self._lock:
            self._unwritten[run_id] = merge(self._unwritten.get(run_id) or Unwritten())
            self._wake()

    def _wake(self) -> None:
        """Have the thread write what is pending; `close` does it in the end."""
        if not self._woken:
            with suppress(Closed):
                self._commit.post(self._wake_up)
                self._woken = True

    def _wake_up(self) -> None:
        with self._lock:
            self._woken = False

    def _add_measured(self, pending: Unwritten, values: list[Measured]) -> Unwritten:
        # In place: copying on each tick would take quadratic time while the disk is blocked.
        pending.measured.extend(values)
        excess = len(pending.measured) - MEASURED_MOST
        if excess > 0:
            # Drop the oldest: pages show the newest.
            del pending.measured[:excess]
            self._on_dropped(excess)
        return pending

    # On the thread

    def _write_batch(self) -> None:
        """Write the runs that have waited longest, in one transaction, unless queries wait."""
        taken: dict[str, Unwritten] = {}
        with self._lock:
            if self._store is None or self._commit.waiting > self._woken:
                return
            rows = ROWS_AT_ONCE
            while self._unwritten and rows > 0:
                run_id = next(iter(self._unwritten))
                taken[run_id] = self._take(run_id, rows)
                rows -= taken[run_id].rows
            if self._unwritten:
                self._wake()
        if taken:
            self._write(taken, self._store)

    def _write_run(self, run_id: str, store: Store) -> bool:
        """Write one batch of a run; returns whether anything was pending."""
        with self._lock:
            if run_id not in self._unwritten:
                return False
            taken = self._take(run_id, ROWS_AT_ONCE)
        self._write({run_id: taken}, store)
        return True

    def _take(self, run_id: str, most: int) -> Unwritten:
        pending = self._unwritten.pop(run_id)
        if len(pending.measured) <= most:
            return pending
        # The rest goes to the end of the queue.
        self._unwritten[run_id] = Unwritten(measured=pending.measured[most:])
        return replace(pending, measured=pending.measured[:most])

    def _write(self, taken: dict[str, Unwritten], store: Store) -> None:
        try:
            store.write(taken)
        except Exception as error:
            if len(taken) > 1:
                # One by one: a fault of one run must not lose the writes of others.
                for run_id, unwritten in taken.items():
                    self._write({run_id: unwritten}, store)
                return
            self.failures += 1
            if isinstance(error, PendulaError):
                # One log line for consecutive failures: a full disk causes many a second.
                if not self._failing:
                    log.error("sim.store.failed", code=error.code, problem=error.message)
                self._failing = True
            else:
                log.exception("sim.store.failed")
        else:
            if self._failing:
                log.warning("sim.store.again", failures=self.failures)
            self._failing = False

    def _close(self, store: Store) -> None:
        while self._unwritten:
            self._write_run(next(iter(self._unwritten)), store)
        store.close()
