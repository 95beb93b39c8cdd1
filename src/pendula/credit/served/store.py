"""The database of served runs: uploaded scenarios, records, metrics, bottlenecks, lists of artifacts.

Amounts are text, never floats. Events are not stored here; they are in the journal of a run. The statements work in
SQLite and PostgreSQL. A store is used by one thread at a time.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from pendula.credit.served.bottlenecks import Bottleneck
from pendula.credit.served.lifecycle import ACTIVE
from pendula.credit.served.records import Record
from pendula.credit.served.series import ALL_UNITS, UNITS, Measured, Series, series
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.errors import WorldBroken

FORMAT = 1

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
    """The store in one SQLite file; raises `SimulatorStoreUnusable`."""

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

    def active(self) -> list[Record]:
        """The runs that a previous process left unfinished."""
        return [stored for stored in self.records() if stored.state in ACTIVE or stored.state == "idle"]

    def delete(self, run_id: str) -> None:
        """Delete a run and all its rows."""
        self._execute([("DELETE FROM runs WHERE run_id = ?", (run_id,))])

    def write(self, runs: Mapping[str, Unwritten]) -> None:
        """Write everything pending of these runs in one transaction."""
        self._execute(
            [statement for run_id, pending in runs.items() for statement in _statements_of_run(run_id, pending)]
        )

    def measure(self, run_id: str, values: Iterable[Measured]) -> None:
        self._execute(_upsert_metrics(run_id, values))

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

    def bottlenecks(self, run_id: str, equivalent: str) -> list[Bottleneck]:
        rows = self._rows(
            "SELECT details FROM bottlenecks WHERE run_id = ? AND equivalent = ? ORDER BY place", (run_id, equivalent)
        )
        return [_read_bottleneck(text.encode()) for (text,) in rows]

    def artifacts(self, run_id: str) -> list[Artifact]:
        """The last list of files of a run, in the order of their names."""
        columns = "name, url, content_type, size_bytes, sha256"
        rows = self._rows(f"SELECT {columns} FROM artifacts WHERE run_id = ? ORDER BY name", (run_id,))
        return [Artifact(*row) for row in rows]

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
    values: dict[str, Any] = {
        "run_id": record.run_id,
        "scenario_id": record.scenario_id,
        "mode": record.mode,
        "state": record.state.value,
        "started_at": record.started_at,
        "stopped_at": record.stopped_at,
        "sim_time_ms": record.sim_time_ms,
        "intensity_percent": record.intensity_percent,
        "ops_sec": str(record.ops_sec),
        "queue_depth": record.queue_depth,
        "errors_total": record.errors_total,
        "errors_last_1m": record.errors_last_1m,
        "last_event_type": record.last_event_type,
        "current_phase": None,
        "last_error": None if record.last_error is None else encode(record.last_error).decode(),
        "summary": None if summary is None else encode(summary).decode(),
        "seed": str(record.seed),
        "owner_id": record.owner.id,
        "owner_kind": record.owner.kind,
        "created_at": record.created_at,
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
_read_bottleneck = msgspec.json.Decoder(Bottleneck).decode
