"""The output of a served run: its record, metrics and bottlenecks in the store, and its files.

The files are those of a run without a server (`runs.artifacts`); the lines are the streamed events and notes. No write
blocks or fails a run: the store has its own thread, lines are dropped and counted if the disk is too slow, and errors
are logged.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from queue import Full
from typing import Any

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import asdict

from pendula.credit.engine import Run
from pendula.credit.events import Event, Ticked
from pendula.credit.runs.artifacts import (
    EVENTS,
    LAST_TICK,
    NAMES,
    STATUS,
    SUMMARY,
    Lines,
    moment,
    repeat_files,
    write_final,
    write_json,
)
from pendula.credit.runs.recording import last_life, reading
from pendula.credit.views import Bottleneck, Measured, measurements, worst
from pendula.kernel.cancellation import check
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.errors import PendulaError
from pendula.kernel.stream import Log
from pendula.server.runtime.engine_host import EngineHost
from pendula.server.schedulers.credit.counters import RunCounters
from pendula.server.schedulers.credit.records import Record
from pendula.server.schedulers.credit.settings import ServedSettings
from pendula.server.schedulers.credit.store import Artifact, StoreThread

BOTTLENECKS_KEPT = 200
CONTENT_TYPES = {".ndjson": "application/x-ndjson", ".json": "application/json", ".zip": "application/zip"}
LINES_READ = 5000  # of the newest lines, to find a few
BLOCK = 1 << 20

log = structlog.get_logger("pendula.server")


class _Line(Struct):
    tick_index: int


_read_line = msgspec.json.Decoder(_Line).decode


class RunContext(Struct, frozen=True):
    """What all runs of a server have in common."""

    settings: ServedSettings
    clock: Callable[[], int]
    store: StoreThread
    counters: RunCounters
    runs_folder: Path
    make_host: Callable[[Record, Json, Log[Event]], EngineHost]
    artifact_url: Callable[[str, str], str]
    disk_low: Callable[[], bool]

    def journal(self, run_id: str) -> Path:
        return self.runs_folder / run_id / "journal"

    def artifacts(self, run_id: str) -> Path:
        return self.runs_folder / run_id / "artifacts"

    def index(self, run_id: str) -> list[Artifact]:
        """The files of a run; reads and hashes them."""
        most = self.settings.artifact_sha_max_bytes
        return _index(self.artifacts(run_id), lambda name: self.artifact_url(run_id, name), most)


class RunOutput:
    """`write_lines` and `record_events` are called on the engine's thread, the rest on the event loop."""

    def __init__(self, record: Record, context: RunContext) -> None:
        self.dropped_lines = 0
        self.dirty = False
        self._record = record
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._disk: RealDisk | None = None
        self._lines: Lines | None = None
        self._last: Ticked | None = None
        self._last_written = 0
        self._measured: list[Measured] = []
        self._settings: dict[str, str] = {}
        self._saved_at = self._listed_at = 0.0
        self._listing: asyncio.Task[None] | None = None

    def start(self, settings: dict[str, str], *, is_restart: bool = False) -> None:
        """Start with these settings; a restart discards everything written before."""
        self._close_files()
        self._settings, self._measured = settings, []
        self._last, self._last_written, self.dropped_lines = None, 0, 0
        run_id, context = self._record.run_id, self._context
        if is_restart:
            context.store.forget_measured(run_id)
        try:
            self._disk = RealDisk(context.artifacts(run_id))
            for name in self._disk.list():
                self._disk.remove(name)
            self._lines = Lines(self._disk, EVENTS)
        except OSError as error:
            log.error("sim.artifacts.failed", run_id=run_id, problem=error.strerror)
        self._write_file(STATUS, self._description())

    def write_lines(self, lines: Iterable[bytes]) -> None:
        writer, dropped = self._lines, 0
        if writer is None:
            return
        for line in lines:
            try:
                writer.put(line, wait=False)
            except (Full, OSError):
                dropped += 1
        if dropped:
            self.dropped_lines += dropped
            self._context.counters.dropped.labels("artifacts").inc(dropped)

    def record_events(self, events: Iterable[Event], run: Run) -> None:
        """Record all durable events."""
        for event in events:
            if isinstance(event, Ticked):
                self._record_tick(event, run)

    def _record_tick(self, event: Ticked, run: Run) -> None:
        settings = self._context.settings
        self._measured += measurements(event)
        if event.tick_index % settings.metrics_every_n_ticks == 0:
            self.write_measured()
        if event.tick_index % settings.bottlenecks_every_n_ticks == 0:
            self._write_bottlenecks(run)
        self._last, now = event, self._context.clock()
        if 0 < settings.last_tick_write_every_ms * 1000 <= now - self._last_written:
            self._last_written = now
            self._write_file(LAST_TICK, event)

    def save(self, summary: Json = None) -> None:
        """Save a copy of the record."""
        self.dirty, self._saved_at = False, self._loop.time()
        copy = Record(**{name: getattr(self._record, name) for name in self._record.__struct_fields__})
        self._context.store.save(copy, summary)

    def save_if_due(self) -> None:
        settings = self._context.settings
        every = settings.run_persist_dirty_every_ms if self.dirty else settings.run_persist_every_ms
        if self._loop.time() - self._saved_at >= every / 1000:
            self.save()
        every = settings.artifacts_sync_every_ms
        if 0 < every / 1000 <= self._loop.time() - self._listed_at:
            self._listed_at = self._loop.time()
            self._listing = self._loop.create_task(self._list_artifacts())

    async def _list_artifacts(self) -> None:
        run_id = self._record.run_id
        artifacts = await asyncio.to_thread(self._context.index, run_id)
        self._context.store.save_artifacts(run_id, artifacts)

    def write_measured(self) -> None:
        values, self._measured = self._measured, []
        if values:
            self._context.store.measure(self._record.run_id, values)

    def _write_bottlenecks(self, run: Run) -> None:
        run_id, now = self._record.run_id, moment(self._context.clock())
        self._context.store.save_bottlenecks(run_id, worst_lines(run), now)

    async def finish(self, run: Run) -> None:
        """Write everything pending of an ended run; close and list its files."""
        digests = run.digests()
        self._record.plan_digest, self._record.ledger_digest = digests["plan"], digests["ledger"]
        summary = await asyncio.to_thread(self._close, run)
        self.write_measured()
        self._write_bottlenecks(run)
        if self._listing is not None:
            await self._listing
        await self._list_artifacts()
        self.save(summary)

    def _close(self, run: Run) -> dict[str, Any]:
        """Sync all lines and write the final files; returns the summary."""
        summary = summary_of(self._record, run)
        if self._disk is None or self._lines is None:
            return summary
        repeat = repeat_of(self._record, run, self._context)
        final = {STATUS: self._description(), SUMMARY: {**summary, "dropped_lines": self.dropped_lines}, **repeat}
        with suppress(OSError):
            self._lines.close()
        with suppress(OSError):
            write_final(self._disk, self._last, final)
        self._close_files()
        return summary

    def _close_files(self) -> None:
        disk, lines, self._disk, self._lines = self._disk, self._lines, None, None
        if lines is not None:
            with suppress(OSError):
                lines.close()
        if disk is not None:
            disk.close()

    def _write_file(self, name: str, value: object) -> None:
        disk = self._disk
        if disk is not None and self._lines is not None:
            with suppress(OSError):
                write_json(disk, name, value)

    def _description(self) -> dict[str, Any]:
        return description(self._record, self._settings)


class UnfinishedLines:
    """The lines of a run of a killed process: the last ones may be missing or incomplete."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / EVENTS
        self._end = 0
        self.last_tick: int | None = None
        """The tick of the last line; None without lines."""
        for end, line in _backwards(self._path):
            self.last_tick = _tick_of(line)
            if self.last_tick is not None:
                self._end = end
                break

    def missing(self, bodies: list[bytes], first_tick: int) -> int:
        """The number of `bodies`, which start at the tick `first_tick`, that the file already has."""
        present = []
        for end, line in _backwards(self._path):
            tick = _tick_of(line)
            if end <= self._end and (tick is None or tick < first_tick):
                break
            if end <= self._end:
                present.append(_identity(line))
        present.reverse()
        identities = [_identity(body) for body in bodies]
        # Lines of the first tick may be older than the first body.
        for older in range(len(present)):
            rest = present[older:]
            if rest == identities[: len(rest)]:
                return len(rest)
        if present and present[-1] in identities:
            # Dropped lines leave gaps; the lines after the last one are missing nevertheless.
            return len(identities) - identities[::-1].index(present[-1])
        return 0

    def append(self, lines: Iterable[bytes]) -> None:
        """Truncate an incomplete line and append these; raises `OSError`."""
        with self._path.open("r+b" if self._path.exists() else "w+b") as file:
            file.truncate(self._end)
            file.seek(self._end)
            file.writelines(line + b"\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())


def summary_of(record: Record, run: Run) -> dict[str, Any]:
    """The content of `summary.json`: the results of the run."""
    return {
        "run_id": record.run_id,
        "scenario_id": record.scenario_id,
        "seed": record.seed,
        "ticks": run.tick,
        "state": record.state.value,
        "counters": asdict(run.counters),
        "digests": run.digests(),
        "metrics": run.measured,
    }


def repeat_of(record: Record, run: Run, context: RunContext) -> dict[str, Json]:
    """The files that `pendula credit run bundle.zip` needs; none if the journal cannot be read."""
    try:
        with reading(context.journal(record.run_id)) as journal:
            config, commands = last_life(journal)
    except (PendulaError, OSError) as error:
        log.error("sim.bundle.failed", run_id=record.run_id, problem=str(error))
        return {}
    digests: dict[str, Json] = {**run.digests()}
    return repeat_files(run, config, {"ticks": run.tick, "digests": digests, "commands": commands})


def description(record: Record, settings: dict[str, str]) -> dict[str, Any]:
    """The content of `status.json`: the settings and the status of the run."""
    facts = {name: getattr(record, name) for name in record.__struct_fields__}
    for name in ("last_seq", "seq_reserved", "plan_digest", "ledger_digest"):
        del facts[name]
    return {**facts, "state": record.state.value, "settings": settings}


def worst_lines(run: Run) -> dict[str, list[Bottleneck]]:
    """The worst bottlenecks of each equivalent."""
    return {code: worst(ledger, BOTTLENECKS_KEPT) for code, ledger in run.network.ledgers.items()}


def _backwards(path: Path) -> Iterator[tuple[int, bytes]]:
    """The complete lines of a file, last one first, each with its end position."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        place = end = file.seek(0, os.SEEK_END)
        rest = b""
        torn = True
        while place > 0:
            place -= (length := min(BLOCK, place))
            file.seek(place)
            first, *lines = (file.read(length) + rest).split(b"\n")
            rest = first
            if torn and lines:
                # The rest after the last newline is an incomplete line, or empty.
                torn = False
                end -= len(lines.pop())
                lines = [*lines]
            for line in reversed(lines):
                yield end, line
                end -= len(line) + 1
        if not torn:
            yield end, rest


def _tick_of(line: bytes) -> int | None:
    try:
        return _read_line(line).tick_index
    except msgspec.DecodeError:
        return None


def _identity(line: bytes) -> bytes:
    """A line without everything that depends on the time of writing: number, times, display keys."""
    facts: Any = decode(line)
    for name in ("event_id", "ts", "node_patch", "edge_patch"):
        facts.pop(name, None)
    for part, name in (("error", "at"), ("payload", "edge_patch")):
        if isinstance(facts.get(part), dict):
            facts[part].pop(name, None)
    return encode(facts)


class _EventLine(Struct):
    event_id: str
    equivalent: str | None = None


_read_event = msgspec.json.Decoder(_EventLine).decode


def last_events(directory: Path, equivalent: str, most: int, known: Collection[str]) -> list[bytes]:
    """The newest events in the file of a run, as JSON, oldest first: of one equivalent and of all, without the `known`
    ids. Empty without a file."""
    events: list[bytes] = []
    with suppress(OSError):
        for _, line in islice(_backwards(directory / EVENTS), LINES_READ):
            check()
            if len(events) == most:
                break
            with suppress(msgspec.DecodeError):  # notes
                read = _read_event(line)
                if read.event_id not in known and read.equivalent in (None, equivalent):
                    events.append(line)
    return events[::-1]


def _index(directory: Path, url: Callable[[str], str], hashed_most: int) -> list[Artifact]:
    """The existing files in the order of their names; only those of at most `hashed_most` bytes are hashed."""
    artifacts = []
    for name in sorted(NAMES):
        path = directory / name
        with suppress(OSError):
            size = path.stat().st_size
            digest = sha256(path.read_bytes()).hexdigest() if size <= hashed_most else None
            artifacts.append(Artifact(name, url(name), CONTENT_TYPES[path.suffix], size, digest))
    return artifacts
