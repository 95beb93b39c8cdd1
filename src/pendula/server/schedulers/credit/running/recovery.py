"""Runs whose engine is not open: those that a killed process left, and those that have ended; read from their journals.

A run that was left ends with a command in its journal, so that a replay ends as the record does. What was measured and
not yet stored, and the lines that its files lack, come out of the journal again.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import structlog

from pendula.credit.commands import Abandon
from pendula.credit.engine import Run
from pendula.credit.events import Event, LastError, Note, Ticked
from pendula.credit.model import Code
from pendula.credit.runs.artifacts import moment
from pendula.credit.served.artifacts import UnfinishedLines, finish_files
from pendula.credit.served.event_forms import StreamEncoder, note_form
from pendula.credit.served.lifecycle import RunState
from pendula.credit.served.records import Record
from pendula.credit.served.ring import event_id, numbered
from pendula.credit.served.series import Measured, measurements
from pendula.credit.served.store import Unwritten
from pendula.credit.settings import effective
from pendula.kernel.bodies import read_input
from pendula.kernel.canonical import Json, Reader, decode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import DiskLow, Driver
from pendula.kernel.errors import PendulaError
from pendula.kernel.frames import Record as JournalRecord
from pendula.kernel.journal import FileJournal, Journal, JournalMissing
from pendula.kernel.replay import Step, follow, newest_engine
from pendula.kernel.time import format_utc, parse_utc
from pendula.server.schedulers.credit.running.run_writer import (
    RunContext,
    description,
    repeat_of,
    summary_of,
    worst_lines,
)

RECOVERY = "recovery"
NOT_ENDED = LastError(DiskLow.code, {"kind": "SERVER_RESTARTED_DISK_FULL"})
RESTART = b'"command":{"type":"restart"}'

_read_event: Reader[Event] = Reader(Event)

log = structlog.get_logger("pendula.server")


class Replayed:
    """What the last life of a run says while its journal is applied again."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, bytes]] = []  # when it was decided, and the body
        self.measured: list[Measured] = []
        self.last: Ticked | None = None

    def __call__(self, engine: object, record: JournalRecord, step: Step) -> None:
        assert isinstance(engine, Run)
        assert step.outcome is not None
        if isinstance(step.command, dict) and step.command.get("type") == "restart":
            self.__init__()  # type: ignore[misc]
        at = read_input(record.body).meta.at
        ts = moment(0 if at is None else parse_utc(at))
        encoder = StreamEncoder(engine.network, ts, engine.settings.emit_tick_events)
        for event in map(_read_event, step.outcome.events):
            if isinstance(event, Note):
                self.lines.append((ts, note_form(event)))
            elif (told := encoder.encode_event(event)) is not None:
                self.lines.append((ts, told.body))
            if isinstance(event, Ticked):
                self.last = event
                self.measured += measurements(event)


def finish(record: Record, context: RunContext) -> Unwritten:
    """End a run that a process has left: in its journal, in its record, and in its files. Returns what is to be stored
    of it; its journal is replayed once."""
    directory, clock = context.journal(record.run_id), context.clock
    replayed = Replayed()
    run: Run | None = None
    try:
        lines = UnfinishedLines(context.artifacts(record.run_id))
        run = _abandoned(directory, lines.last_tick, replayed, lambda: format_utc(clock()))
        record.heard(run.status(), clock())
        if run.last_error is None and run.state_word != "stopped":
            record.failed(NOT_ENDED, clock())
        digests = run.digests()
        record.plan_digest, record.ledger_digest = digests["plan"], digests["ledger"]
        # Stopped cleanly, and only the record had not been written: then that is how it ended.
        state = RunState.STOPPED if run.state_word == "stopped" else RunState.ERROR
    except PendulaError as trouble:
        log.error("sim.run.unreadable", run_id=record.run_id, code=trouble.code, problem=trouble.message)
        facts: dict[str, Json] = {"kind": "JOURNAL_UNREADABLE"}
        record.failed(LastError(Code.INTERNAL_ERROR.value, facts), clock())
        state = RunState.ERROR
    record.ended(state, clock())
    record.last_seq = record.seq_reserved
    if run is None:
        return Unwritten(record)
    summary = {**summary_of(record, run), "dropped_lines": None}
    try:
        _finish_files(record, context, run, replayed, lines, summary)
    except OSError as trouble:
        log.error("sim.artifacts.failed", run_id=record.run_id, problem=trouble.strerror)
    return Unwritten(
        record,
        summary,
        measured=replayed.measured,
        bottlenecks=(worst_lines(run), moment(clock())),
        artifacts=context.index(record.run_id),
    )


def _finish_files(
    record: Record, context: RunContext, run: Run, replayed: Replayed, lines: UnfinishedLines, summary: dict[str, Any]
) -> None:
    directory = context.artifacts(record.run_id)
    directory.mkdir(parents=True, exist_ok=True)
    bodies = [body for _, body in replayed.lines]
    first_tick = msgspec.json.decode(bodies[0])["tick_index"] if bodies else 0
    missing = replayed.lines[lines.missing(bodies, first_tick) :]
    numbers = range(record.seq_reserved + 1, record.seq_reserved + 1 + len(missing))
    # What these lines were numbered when they were streamed is not known; no number is given twice.
    lines.append(
        numbered(event_id(record.run_id, number), ts, body) for number, (ts, body) in zip(numbers, missing, strict=True)
    )
    record.last_seq = record.seq_reserved = record.seq_reserved + len(missing)
    finish_files(
        directory,
        replayed.last,
        description(record, effective(run.settings)),
        summary,
        repeat_of(record, run, context),
    )


def disk_of(directory: Path) -> RealDisk:
    """Where the journal is; raises `JournalMissing`: who was killed early has not even made the directory."""
    try:
        return RealDisk(directory, make=False)
    except OSError as trouble:
        raise JournalMissing(f"The run {directory.parent.name} has no journal: {trouble.strerror}") from trouble


def _abandoned(directory: Path, last_tick: int | None, watch: Replayed, now_text: Callable[[], str]) -> Run:
    """The run as its journal ends, with the command that ends it; `watch` hears at least all that comes after the tick
    of the last line that was written."""
    disk = disk_of(directory)
    try:
        journal = FileJournal.open(disk)
        before = _first_to_hear(journal, last_tick)
        driver = Driver.recover(journal, lambda _: Run, before=before, watch=watch, clock=now_text, keep_events=False)
    except BaseException:
        disk.close()
        raise
    try:
        with suppress(DiskLow):  # the record says how it ended, and the journal where
            driver.submit(Abandon(), RECOVERY)
            driver.flush()
        run = driver.engine
        assert isinstance(run, Run)
        return run
    finally:
        driver.close()


def _first_to_hear(journal: Journal, last_tick: int | None) -> int:
    """The number before which the replay begins: after the newest snapshot of this life that is not younger than the
    last line, else with the life itself."""
    began = 0
    for record in journal.read():
        if record.kind == "input" and RESTART in bytes(record.body):
            began = record.n
    usable = [n for n, t in journal.snapshots() if n > began and last_tick is not None and t <= last_tick]
    if usable:
        return usable[-1] + 1
    # Where the beginning was pruned, what is left has to do.
    oldest = min((n for n, _ in journal.snapshots()), default=-1)
    return began if journal.first_n == 0 else max(began, oldest + 1)


def last_state(directory: Path) -> Run:
    """A run that has ended, as it stood then; raises what is wrong with its journal."""
    disk = disk_of(directory)
    try:
        journal = FileJournal.open(disk, read_only=True)
        engine, start = newest_engine(journal, Run)
        for _ in follow(engine, journal, start):
            pass
        assert isinstance(engine, Run)
        return engine
    finally:
        disk.close()


def checkpoint(run: Run) -> Json:
    """The state of a run that has ended, as one that goes on from there begins."""
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
