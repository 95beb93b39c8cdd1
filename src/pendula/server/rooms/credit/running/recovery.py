"""Runs whose engine is not open: those that a killed process left, and those that have ended; read from their journals.

A run that was left ends with a command in its journal, so that a replay ends as the record does. What was measured and
not yet stored comes out of the journal again.
"""

from collections.abc import Callable
from pathlib import Path

import structlog

from pendula.credit.commands import Abandon
from pendula.credit.engine import Run
from pendula.credit.events import Event, LastError, Ticked
from pendula.credit.model import Code
from pendula.credit.served.lifecycle import RunState
from pendula.credit.served.records import Record
from pendula.credit.served.series import Measured, measurements
from pendula.credit.served.store import Store
from pendula.kernel.canonical import Json, Reader, decode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import Driver
from pendula.kernel.errors import PendulaError
from pendula.kernel.journal import FileJournal, JournalMissing
from pendula.kernel.replay import follow, newest_engine

RECOVERY = "recovery"

_read_event: Reader[Event] = Reader(Event)

log = structlog.get_logger("pendula.server")


def abandon(record: Record, directory: Path, clock: Callable[[], int], now_text: Callable[[], str]) -> list[Measured]:
    """End a run that a process has left: in its journal, and in its record. Returns what its last ticks measured."""
    found: list[Measured] = []
    try:
        found = _measured_last(directory)
        run = _abandoned(directory, now_text)
        record.heard(run.status(), clock())
        digests = run.digests()
        record.plan_digest, record.ledger_digest = digests["plan"], digests["ledger"]
        # Stopped cleanly, and only the record had not been written: then that is how it ended.
        state = RunState.STOPPED if run.state_word == "stopped" else RunState.ERROR
    except PendulaError as trouble:
        log.error("sim.run.unreadable", run_id=record.run_id, code=trouble.code, problem=trouble.message)
        facts: dict[str, Json] = {"kind": "JOURNAL_UNREADABLE"}
        message = "The server was restarted while the run was active, and its journal cannot be read"
        record.failed(LastError(Code.INTERNAL_ERROR.value, message, facts), clock())
        state = RunState.ERROR
    record.ended(state, clock())
    record.last_seq = record.seq_reserved
    return found


def disk_of(directory: Path) -> RealDisk:
    """Where the journal is; raises `JournalMissing`: who was killed early has not even made the directory."""
    try:
        return RealDisk(directory, make=False)
    except OSError as trouble:
        raise JournalMissing(f"The run {directory.parent.name} has no journal: {trouble.strerror}") from trouble


def store_ended(record: Record, found: list[Measured], store: Store) -> None:
    store.save(record)
    store.measure(record.run_id, found)


def _measured_last(directory: Path) -> list[Measured]:
    """What was measured since the last checkpoint: the end of it may not have been stored."""
    disk = disk_of(directory)
    try:
        journal = FileJournal.open(disk, read_only=True)
        engine, start = newest_engine(journal, Run.deciding_by(journal.header.decisions))
        found: list[Measured] = []
        for _, step in follow(engine, journal, start):
            if step is not None and step.outcome is not None:
                ticks = [event for event in map(_read_event, step.outcome.events) if isinstance(event, Ticked)]
                found += [one for tick in ticks for one in measurements(tick)]
        return found
    finally:
        disk.close()


def _abandoned(directory: Path, now_text: Callable[[], str]) -> Run:
    disk = disk_of(directory)
    try:
        driver = Driver.recover(FileJournal.open(disk), lambda _: Run, clock=now_text, keep_events=False)
    except BaseException:
        disk.close()
        raise
    try:
        driver.submit(Abandon(), RECOVERY)
        driver.flush()
        run = driver.engine
        assert isinstance(run, Run)
        return run
    finally:
        driver.close()


def last_state(directory: Path) -> Run:
    """A run that has ended, as it stood then; raises what is wrong with its journal."""
    disk = disk_of(directory)
    try:
        journal = FileJournal.open(disk, read_only=True)
        engine, start = newest_engine(journal, Run.deciding_by(journal.header.decisions))
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
