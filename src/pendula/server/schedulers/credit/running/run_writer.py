"""Writes the record, metrics, bottlenecks and files of one served run.

No write blocks or fails a run: the store has its own thread, files drop lines if the disk is too slow, and errors are
logged.
"""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import structlog
from msgspec import Struct
from msgspec.structs import asdict

from pendula.credit.engine import Run
from pendula.credit.events import Event, Ticked
from pendula.credit.runs.artifacts import moment, repeat_files
from pendula.credit.runs.recording import last_life, reading
from pendula.credit.served.artifacts import ServedArtifacts, index
from pendula.credit.served.bottlenecks import Bottleneck, worst
from pendula.credit.served.records import Record
from pendula.credit.served.series import Measured, measurements
from pendula.credit.served.settings import ServedSettings
from pendula.credit.served.store import Artifact
from pendula.kernel.canonical import Json
from pendula.kernel.errors import PendulaError
from pendula.kernel.stream import Log
from pendula.server.runtime.engine_host import EngineHost
from pendula.server.schedulers.credit.running.counters import RunCounters
from pendula.server.schedulers.credit.running.store_thread import StoreThread

BOTTLENECKS_KEPT = 200

log = structlog.get_logger("pendula.server")


class RunContext(Struct, frozen=True):
    """What all runs of a server have in common."""

    settings: ServedSettings
    clock: Callable[[], int]
    store_thread: StoreThread
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
        return index(self.artifacts(run_id), lambda name: self.artifact_url(run_id, name), most)


class RunWriter:
    """`write_lines` and `record_events` are called on the engine's thread, the rest on the event loop."""

    def __init__(self, record: Record, context: RunContext) -> None:
        self._record = record
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._artifacts: ServedArtifacts | None = None
        self._measured: list[Measured] = []
        self._settings: dict[str, str] = {}
        self._saved_at = self._listed_at = 0.0
        self._listing: asyncio.Task[None] | None = None
        self.dirty = False

    def start(self, settings: dict[str, str], *, is_restart: bool = False) -> None:
        """Start with these settings; a restart discards everything written before."""
        self._settings, self._measured = settings, []
        run_id, context = self._record.run_id, self._context
        if is_restart:
            context.store_thread.forget_measured(run_id)
        try:
            every_us = context.settings.last_tick_write_every_ms * 1000
            self._artifacts = ServedArtifacts(context.artifacts(run_id), context.clock, every_us)
            self._artifacts.status(self._description())
        except OSError as error:
            self._artifacts = None
            log.error("sim.artifacts.failed", run_id=run_id, problem=error.strerror)

    def write_lines(self, lines: list[bytes]) -> None:
        if self._artifacts is not None:
            before = self._artifacts.dropped
            self._artifacts.write(lines)
            if self._artifacts.dropped > before:
                self._context.counters.dropped.labels("artifacts").inc(self._artifacts.dropped - before)

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
        if self._artifacts is not None:
            self._artifacts.tick(event)

    @property
    def dropped_lines(self) -> int:
        return self._artifacts.dropped if self._artifacts is not None else 0

    def save(self, summary: Json = None) -> None:
        """Save a copy of the record."""
        self.dirty, self._saved_at = False, self._loop.time()
        copy = Record(**{name: getattr(self._record, name) for name in self._record.__struct_fields__})
        self._context.store_thread.save(copy, summary)

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
        self._context.store_thread.save_artifacts(run_id, artifacts)

    def write_measured(self) -> None:
        values, self._measured = self._measured, []
        if values:
            self._context.store_thread.measure(self._record.run_id, values)

    def _write_bottlenecks(self, run: Run) -> None:
        run_id, now = self._record.run_id, moment(self._context.clock())
        self._context.store_thread.save_bottlenecks(run_id, worst_lines(run), now)

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
        summary = summary_of(self._record, run)
        if self._artifacts is not None:
            repeat = repeat_of(self._record, run, self._context)
            self._artifacts.finish(self._description(), summary, repeat)
        return summary

    def _description(self) -> dict[str, Any]:
        return description(self._record, self._settings)


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
