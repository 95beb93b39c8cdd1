"""Runs without an open engine, read from their journals: abandoned ones of a killed process, and ended ones.

An abandoned run ends with a command in its journal, so that a replay agrees with the record. Measurements that were
not stored, and lines missing in its files, are restored from the journal.
"""

import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import structlog

from pendula.credit.commands import Abandon
from pendula.credit.engine import Run
from pendula.credit.events import Event, LastError, Note, Ticked
from pendula.credit.model import Code
from pendula.credit.runs.artifacts import STATUS, SUMMARY, event_id, event_json, moment, write_final
from pendula.credit.settings import setting_texts
from pendula.credit.views import Measured, measurements
from pendula.kernel.canonical import Json, Reader, decode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import DiskLow, Driver, engine_at
from pendula.kernel.errors import PendulaError
from pendula.kernel.frames import Record as JournalRecord
from pendula.kernel.frames import read_input
from pendula.kernel.journal import FileJournal, Journal, JournalMissing
from pendula.kernel.replay import Step
from pendula.kernel.time import format_utc, parse_utc
from pendula.server.runtime.past import Lane, Moments, PastEngines
from pendula.server.schedulers.credit.output import (
    RunContext,
    UnfinishedLines,
    description,
    repeat_of,
    summary_of,
    worst_lines,
)
from pendula.server.schedulers.credit.records import Record, RunState
from pendula.server.schedulers.credit.store import Unwritten
from pendula.server.schedulers.credit.stream import Renderer

T = TypeVar("T")

RECOVERY = "recovery"
NOT_ENDED = LastError(DiskLow.code, {"kind": "SERVER_RESTARTED_DISK_FULL"})
RESTART = b'"command":{"type":"restart"}'

_read_event: Reader[Event] = Reader(Event)

log = structlog.get_logger("pendula.server")


class ReplayedEvents:
    """Collects the events since the last restart of a run while its journal is replayed."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, bytes]] = []  # time and body
        self.measured: list[Measured] = []
        self.last: Ticked | None = None

    def __call__(self, engine: object, record: JournalRecord, step: Step) -> None:
        assert isinstance(engine, Run)
        assert step.outcome is not None
        if isinstance(step.command, dict) and step.command.get("type") == "restart":
            self.__init__()  # type: ignore[misc]
        at = read_input(record.body).meta.at
        ts = moment(0 if at is None else parse_utc(at))
        renderer = Renderer(engine.network, ts, engine.settings.emit_tick_events)
        for data in step.outcome.events:
            event = _read_event(data)
            if isinstance(event, Note):
                self.lines.append((ts, data))
            elif (rendered := renderer.render(event, data)) is not None:
                self.lines.append((ts, rendered.body))
            if isinstance(event, Ticked):
                self.last = event
                self.measured += measurements(event)


def finish_abandoned(record: Record, context: RunContext) -> Unwritten:
    """End an abandoned run in its journal, its record and its files; returns the rows to store. Replays the journal
    once."""
    directory, clock = context.journal(record.run_id), context.clock
    replayed = ReplayedEvents()
    run: Run | None = None
    try:
        lines = UnfinishedLines(context.artifacts(record.run_id))
        run = _abandon(directory, lines.last_tick, replayed, lambda: format_utc(clock()))
        record.update(run.status(), clock())
        if run.last_error is None and run.state_word != "stopped":
            record.mark_failed(NOT_ENDED, clock())
        digests = run.digests()
        record.plan_digest, record.ledger_digest = digests["plan"], digests["ledger"]
        # The run was stopped, and only its record was not written.
        state = RunState.STOPPED if run.state_word == "stopped" else RunState.ERROR
    except PendulaError as error:
        log.error("sim.run.unreadable", run_id=record.run_id, code=error.code, problem=error.message)
        facts: dict[str, Json] = {"kind": "JOURNAL_UNREADABLE"}
        record.mark_failed(LastError(Code.INTERNAL_ERROR.value, facts), clock())
        state = RunState.ERROR
    record.mark_ended(state, clock())
    record.last_seq = record.seq_reserved
    if run is None:
        return Unwritten(record)
    summary = {**summary_of(record, run), "dropped_lines": None}
    try:
        _finish_files(record, context, run, replayed, lines, summary)
    except OSError as error:
        log.error("sim.artifacts.failed", run_id=record.run_id, problem=error.strerror)
    return Unwritten(
        record,
        summary,
        measured=replayed.measured,
        bottlenecks=(worst_lines(run), moment(clock())),
        artifacts=context.index(record.run_id),
    )


def _finish_files(
    record: Record,
    context: RunContext,
    run: Run,
    replayed: ReplayedEvents,
    lines: UnfinishedLines,
    summary: dict[str, Any],
) -> None:
    directory = context.artifacts(record.run_id)
    directory.mkdir(parents=True, exist_ok=True)
    bodies = [body for _, body in replayed.lines]
    first_tick = msgspec.json.decode(bodies[0])["tick_index"] if bodies else 0
    missing = replayed.lines[lines.missing(bodies, first_tick) :]
    numbers = range(record.seq_reserved + 1, record.seq_reserved + 1 + len(missing))
    # The original numbers of these lines are unknown; new ones keep numbers unique.
    lines.append(
        event_json(event_id(record.run_id, number), ts, body)
        for number, (ts, body) in zip(numbers, missing, strict=True)
    )
    record.last_seq = record.seq_reserved = record.seq_reserved + len(missing)
    status = description(record, setting_texts(run.settings))
    disk = RealDisk(directory)
    try:
        write_final(disk, replayed.last, {STATUS: status, SUMMARY: summary, **repeat_of(record, run, context)})
    finally:
        disk.close()


def open_disk(directory: Path) -> RealDisk:
    """Open the directory of a journal; raises `JournalMissing` if the process was killed before it was created."""
    try:
        return RealDisk(directory, make=False)
    except OSError as error:
        raise JournalMissing(f"The run {directory.parent.name} has no journal: {error.strerror}") from error


def _abandon(directory: Path, last_tick: int | None, watch: ReplayedEvents, now_text: Callable[[], str]) -> Run:
    """Recover the run and end it with a command; `watch` gets at least everything after `last_tick`, the tick of the
    last written line."""
    disk = open_disk(directory)
    try:
        journal = FileJournal.open(disk)
        before = _first_replayed(journal, last_tick)
        driver = Driver.recover(journal, lambda _: Run, before=before, watch=watch, clock=now_text, keep_events=False)
    except BaseException:
        disk.close()
        raise
    try:
        with suppress(DiskLow):  # the record says that and why it ended
            driver.submit(Abandon(), RECOVERY)
            driver.flush()
        run = driver.engine
        assert isinstance(run, Run)
        return run
    finally:
        driver.close()


def _first_replayed(journal: Journal, last_tick: int | None) -> int:
    """The first record to replay: after the newest snapshot since the last restart that is not later than `last_tick`,
    else the restart itself."""
    restarted = 0
    for record in journal.read():
        if record.kind == "input" and RESTART in bytes(record.body):
            restarted = record.n
    usable = [n for n, t in journal.snapshots() if n > restarted and last_tick is not None and t <= last_tick]
    if usable:
        return usable[-1] + 1
    # If that was pruned, the oldest snapshot has to do.
    oldest = min((n for n, _ in journal.snapshots()), default=-1)
    return restarted if journal.first_n == 0 else max(restarted, oldest + 1)


class EndedRun:
    """The journal of an ended run, read only, with its moments and the run at each of them; raises if it is damaged.

    It closes when it is garbage collected: another request may still read it when it leaves the cache.
    """

    def __init__(self, directory: Path) -> None:
        disk = open_disk(directory)
        weakref.finalize(self, disk.close)
        self.journal = FileJournal.open(disk, read_only=True)
        self.past = PastEngines(self.journal, lambda n: engine_at(self.journal, Run, n))
        self.moments = Moments(self.journal, {})

    def ask(self, question: Callable[[Run], T]) -> T:
        """The result of `question` for the last state."""
        if self.journal.durable_n < 0:
            # The server was killed before the first command, and the disk had no space for one since.
            return question(Run.create(self.journal.header.config))
        with self.past.at(self.journal.durable_n) as run:
            assert isinstance(run, Run)
            return question(run)


class EndedRuns:
    """Ended runs; caches the last one. Used on the event loop only."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._last: tuple[Path, str | None, EndedRun] | None = None

    async def look(self, directory: Path, stopped_at: str | None) -> EndedRun:
        """The run in this directory; `stopped_at` is in the key because a restarted run has a longer journal."""
        if self._last is None or self._last[:2] != (directory, stopped_at):
            self._last = directory, stopped_at, await self._lane.look(lambda: EndedRun(directory))
        return self._last[2]


def checkpoint(run: Run) -> Json:
    """The last state of an ended run, as the first state of its continuation."""
    state = decode(run.state())
    assert isinstance(state, dict)
    return {
        **state,
        "state": "running",
        "last_error": None,
        "stop_source": None,
        "stop_reason": None,
        "failed_ticks": 0,
    }
