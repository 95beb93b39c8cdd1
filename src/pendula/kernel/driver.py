"""The driver of a live engine: apply, append, flush, acknowledge, publish, in order of record numbers.

Commands are applied at once in memory; callers and subscribers see them only after the flush that covers the input.
Outcomes need no flush of their own: after a crash they are computed again and must agree. Server, command line,
simulators and tests all use this driver. It is thread-safe; one thread at a time touches the engine.
"""

import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, Generic, Self, TypeAlias, TypeVar

from pendula.kernel.canonical import Json, encode
from pendula.kernel.disk import Disk
from pendula.kernel.engine import Engine, NoOutside, Outcome, Outside, Recorder
from pendula.kernel.errors import InputRefused, LimitExceeded, WorldBroken, in_words
from pendula.kernel.frames import (
    Meta,
    OutcomeBytes,
    Record,
    check_size,
    input_body,
    outcome_bytes,
    read_outcome,
    snapshot_body,
)
from pendula.kernel.journal import FileJournal, Journal, JournalBroken
from pendula.kernel.limits import JOURNAL_BYTES, MIN_FREE_BYTES, SEGMENT_BYTES, SNAPSHOT_EVERY, STREAM_BUFFER_EVENTS
from pendula.kernel.replay import (
    Factory,
    Step,
    check_decisions,
    engine_from_snapshot,
    first_engine,
    follow,
    kind_for,
)
from pendula.kernel.stream import EventLog, Log, Stream

C = TypeVar("C")
E = TypeVar("E")

NOTE_BYTES = 4096  # of each text in a note


class DiskLow(WorldBroken):
    """New inputs are refused before the disk is full, so that running work can still be recorded."""

    code = "disk_low"


class JournalFull(WorldBroken):
    """The journal has reached its size limit and nothing in it can be pruned."""

    code = "journal_full"


class EngineDefect(WorldBroken):
    """The engine raised an exception, which is a bug. The command left no trace; the engine was rebuilt."""

    code = "engine_defect"


class ReplayDiffers(WorldBroken):
    """On recovery an outcome differs from the recorded one; the driver refuses all commands until this is resolved."""

    code = "replay_differs"


class UnknownRecord(InputRefused):
    code = "unknown_record"


# Called after each replayed input with the engine, the input's record and the outcome.
Watch: TypeAlias = Callable[[Engine[Any, Any], Record, Step], None]


class Ticket(Generic[E]):
    """An applied command; `outcome` can be read once it is durable."""

    __slots__ = ("_bytes", "_error", "_outcome", "done", "n")

    def __init__(self, n: int, outcome: Outcome[E], encoded: OutcomeBytes) -> None:
        self.n = n
        self.done = False
        self._outcome = outcome
        self._bytes = encoded
        self._error: WorldBroken | None = None

    @property
    def outcome(self) -> Outcome[E]:
        if self._error is not None:
            raise self._error
        assert self.done, f"record {self.n} is not durable yet: flush the driver first"
        return self._outcome

    @property
    def encoded(self) -> OutcomeBytes:
        """The outcome as it is in the journal: its events need no second encoding."""
        return self._bytes


def engine_at(journal: Journal, kind: type[Engine[C, E]], n: int) -> Engine[C, E]:
    """The engine as of record `n`: nearest earlier snapshot, then replay. Raises `UnknownRecord`."""
    if not journal.first_n <= n <= journal.durable_n:
        raise UnknownRecord(
            f"There is no record {n}; the journal holds {journal.first_n} to {journal.durable_n}",
            n=n,
            first_n=journal.first_n,
            last_n=journal.durable_n,
        )
    earlier = [at for at, _ in journal.snapshots() if at <= n]
    if earlier:
        engine, start = engine_from_snapshot(journal, kind, earlier[-1])
    else:
        engine, start = first_engine(journal, kind)
    if start > n + 1:
        raise UnknownRecord(f"Record {n} is before the first remaining snapshot", n=n, first_n=start - 1)
    # `follow` must not be advanced past n: it applies an input before it yields the record.
    for _ in islice(follow(engine, journal, start), n + 1 - start):
        pass
    return engine


class Driver(Generic[C, E]):
    """Owns an engine and its journal. `clock` gives the wall-clock text stored with each input; no decision uses it.

    Without `keep_events` the journal stores only the digest of each outcome, and a replay computes the events again:
    for engines with many events that are read from the buffer. A reader that has fallen out of the buffer gets a gap.
    With a `log` the events go there instead of into the buffer for `subscribe`.
    """

    def __init__(
        self,
        engine: Engine[C, E],
        journal: Journal,
        *,
        outside: Outside | None = None,
        clock: Callable[[], str] | None = None,
        snapshot_every: int = SNAPSHOT_EVERY.default,
        journal_bytes: int = JOURNAL_BYTES.default,
        buffer_events: int = STREAM_BUFFER_EVENTS.default,
        keep_events: bool = True,
        log: Log[E] | None = None,
    ) -> None:
        self.engine = engine
        self.journal = journal
        self.broken: WorldBroken | None = None
        self.commands = 0
        self._outside: Outside = outside if outside is not None else NoOutside()
        self._clock = clock
        self._snapshot_every = snapshot_every
        self.journal_bytes = journal_bytes
        self._keep_events = keep_events
        self._since_snapshot = 0
        self._bytes_at_snapshot = journal.total_bytes
        self._freed_at = -1
        self._freeing_again_at = 0
        self._closed = False
        # True from the start of a command until its records are appended: the engine is ahead of the journal.
        self._torn = False
        self._pending: deque[Ticket[E]] = deque()
        self._lock = threading.RLock()
        self._log: Log[E] = EventLog(journal, type(engine).events, buffer_events) if log is None else log
        self._callbacks: list[Callable[[], None]] = []

    @classmethod
    def recover(
        cls,
        journal: Journal,
        factory: Factory[C, E],
        *,
        before: int | None = None,
        watch: Watch | None = None,
        **options: Any,
    ) -> Self:
        """Restore the engine: newest snapshot, then every later input, with outcomes compared.

        With `before`, start from the newest snapshot before that record. `watch` is called after each replayed input.
        """
        kind = kind_for(journal.header, factory)
        check_decisions(journal.header, kind)
        engine, since_snapshot, lost = _caught_up(journal, kind, before, watch)
        driver = cls(engine, journal, **options)
        driver._since_snapshot = since_snapshot
        for n, outcome in lost:
            # The crash lost the outcome of a recorded input: append the recomputed one.
            journal.append("outcome", engine.now(), outcome.body(n, keep_events=driver._keep_events))
        if lost:
            journal.flush()
        return driver

    def submit(self, command: C, by: str, request_id: str | None = None, *, encoded: bytes | None = None) -> Ticket[E]:
        """Apply a command in memory and buffer its records. `encoded`: its canonical bytes, if the caller has them.

        Raises `WorldBroken` when the driver accepts no more commands. `InputRefused` (a command that cannot be encoded
        or is too large) and `EngineDefect` leave no trace.
        """
        with self._lock:
            self._require_healthy()
            encoded_command = encode(command) if encoded is None else encoded
            meta = encode(Meta(by, self._clock() if self._clock else None, request_id))
            recorder = Recorder(self._outside)
            self.engine.outside = recorder
            self._torn = True
            try:
                outcome = self.engine.apply(command)
                out = outcome_bytes(outcome)
                now, n = self.engine.now(), self.journal.next_n
                bodies = (
                    input_body(encoded_command, recorder.answers, meta),
                    out.body(n, keep_events=self._keep_events),
                )
                for body in bodies:
                    check_size(body)
            except LimitExceeded:
                self._rebuild()
                raise
            except Exception as defect:
                raise self._defect(defect, encoded_command) from defect
            except BaseException as end:
                if threading.current_thread() is threading.main_thread():
                    raise  # the program is ending; do not rebuild
                # Only the main thread is interrupted from outside: here the engine itself raised it.
                raise self._defect(end, encoded_command) from end
            self.journal.append("input", now, bodies[0])
            self.journal.append("outcome", now, bodies[1])
            self._torn = False
            ticket = Ticket(n, outcome, out)
            self._pending.append(ticket)
            self.commands += 1
            self._since_snapshot += 1
            if self._snapshot_is_due():
                self._snapshot()
            return ticket

    def flush(self) -> int:
        """Make everything submitted so far durable, then acknowledge and publish it, in order."""
        try:
            durable = self.journal.flush()
        except JournalBroken as trouble:
            with self._lock:
                self.broken = trouble
                for ticket in self._pending:
                    ticket._error = trouble
                self._pending.clear()
            raise
        with self._lock:
            while self._pending and self._pending[0].n <= durable:
                ticket = self._pending.popleft()
                ticket.done = True
                self._log.publish(ticket.n, ticket._outcome.events, ticket._bytes.events)
        for callback in list(self._callbacks):
            callback()
        return durable

    def subscribe(self, after: str | None = None) -> Stream[E]:
        """Stream events after the id `n.k`, from the buffer or the journal; without an id, new events only."""
        assert isinstance(self._log, EventLog)
        return self._log.subscribe(after)

    def on_publish(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` on the flushing thread after new events; returns a function that unsubscribes it."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def engine_at(self, n: int) -> Engine[C, E]:
        """A separate engine as of record `n`: nearest earlier snapshot, then replay."""
        return engine_at(self.journal, type(self.engine), n)

    def close(self) -> None:
        """Stop cleanly: snapshot, flush, close the journal. A second call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                if self.broken is None:
                    if self._since_snapshot and not self._torn:
                        self._snapshot()
                    self.flush()
            finally:
                self.journal.close()

    def _require_healthy(self) -> None:
        if self.broken is not None:
            raise self.broken
        if self._torn:
            raise WorldBroken("A command was interrupted; close the driver and recover from the journal")
        if self.journal.disk_low:
            raise DiskLow("The disk is nearly full; free space to continue")
        if self.journal.total_bytes > self.journal_bytes and not self._make_space():
            raise JournalFull(
                f"The journal has {self.journal.total_bytes} bytes; the limit is {self.journal_bytes}",
                value=self.journal.total_bytes,
                allowed=self.journal_bytes,
            )

    def _make_space(self) -> bool:
        """Prune a journal that is over its limit; false if it must not grow any further."""
        if not self.journal.goes_on_when_full:
            return self._free_journal_space()
        if self.commands >= self._freeing_again_at:
            # Not on every command: two snapshots each time would grow the journal further.
            self._freeing_again_at = self.commands + self._snapshot_every
            self._free_journal_space()
        return True

    def _free_journal_space(self) -> bool:
        """Write two snapshots into a new segment, which makes everything before them prunable. Not repeated until more
        is written."""
        if self._freed_at == self.journal.durable_n:
            return False
        self.journal.rotate()
        for _ in range(2):
            self._snapshot()
        self.flush()
        self.journal.prune(self.journal_bytes // 2)
        self._freed_at = self.journal.durable_n
        return self.journal.total_bytes <= self.journal_bytes

    def _snapshot_is_due(self) -> bool:
        # By size too: pruning needs two snapshots well within the journal's limit.
        grown = self.journal.total_bytes - self._bytes_at_snapshot
        return self._since_snapshot >= self._snapshot_every or grown > self.journal_bytes // 8

    def _snapshot(self) -> None:
        """Append a snapshot. Engine errors are noted, not raised: without a snapshot recovery takes longer."""
        self._since_snapshot = 0
        size = 0
        try:
            body = snapshot_body(self.engine.decisions, self.engine.state())
            check_size(body)
            self.journal.append("snapshot", self.engine.now(), body)
            size = len(body)
        except JournalBroken:
            raise
        except Exception as trouble:
            self._note({"snapshot": in_words(trouble)})
        if self.journal.total_bytes > self.journal_bytes // 2:
            self.journal.prune(self.journal_bytes // 2)
        # Includes this snapshot, which is not flushed yet: a large state must not make the next one due at once.
        self._bytes_at_snapshot = self.journal.total_bytes + size

    def _rebuild(self) -> None:
        """Discard the engine and rebuild it from the journal, with outcomes compared."""
        self.flush()
        try:
            self.engine = _caught_up(self.journal, type(self.engine))[0]
            self._torn = False
        except Exception as trouble:
            self.broken = WorldBroken(f"The engine failed and could not be rebuilt: {in_words(trouble)}")
            raise self.broken from trouble

    def _defect(self, defect: BaseException, encoded_command: bytes) -> EngineDefect:
        """Rebuild the engine after a failed command, note the failure, and return the error to raise."""
        self._rebuild()
        words = in_words(defect)
        self._note({"command": encoded_command[:NOTE_BYTES].decode(errors="replace"), "defect": words})
        return EngineDefect(f"The engine failed on a command: {words}; the command left no trace", defect=words)

    def _note(self, facts: dict[str, str]) -> None:
        cut = {name: text[:NOTE_BYTES] for name, text in facts.items()}
        self.journal.append("note", self.engine.now(), encode(cut))


def _caught_up(
    journal: Journal, kind: type[Engine[C, E]], before: int | None = None, watch: Watch | None = None
) -> tuple[Engine[C, E], int, list[tuple[int, OutcomeBytes]]]:
    """The engine after the last record, the number of inputs since its snapshot, and the outcomes that are missing."""
    snapshots = [n for n, _ in journal.snapshots() if before is None or n < before]
    engine, start = engine_from_snapshot(journal, kind, snapshots[-1] if snapshots else None)
    computed: dict[int, OutcomeBytes] = {}
    inputs = 0
    for record, step in follow(engine, journal, start):
        if step is not None:
            if step.outcome is None:
                raise ReplayDiffers(f"Record {step.n} cannot be replayed: {step.defect}", n=step.n)
            computed[step.n] = step.outcome
            inputs += 1
            if watch is not None:
                watch(engine, record, step)
        elif record.kind == "outcome":
            recorded = read_outcome(record.body)
            again = computed.pop(recorded.of, None)
            if again is not None and again.digest() != recorded.digest:
                raise ReplayDiffers(
                    f"The outcome of record {recorded.of} differs from the journal; `pendula replay` shows where",
                    n=recorded.of,
                )
    return engine, inputs, sorted(computed.items())


def new_journal(
    kind: type[Engine[Any, Any]],
    config: Json,
    disk: Disk,
    *,
    segment_bytes: int = SEGMENT_BYTES.default,
    min_free_bytes: int = MIN_FREE_BYTES.default,
) -> FileJournal:
    """An empty journal for an engine class and configuration; raises `JournalExists`, `JournalBroken`."""
    return FileJournal.create(
        disk,
        scheduler=kind.scheduler,
        decisions=kind.decisions,
        time_unit=kind.time_unit,
        config=config,
        segment_bytes=segment_bytes,
        min_free_bytes=min_free_bytes,
    )


def begin_recording(
    engine: Engine[C, E],
    config: Json,
    disk: Disk,
    *,
    outside: Outside | None = None,
    min_free_bytes: int = MIN_FREE_BYTES.default,
    **options: Any,
) -> Driver[C, E]:
    """The driver of a fresh engine created with `config`, with a new journal; the driver closes the disk.

    The header of the journal comes from the engine class, so that `pendula replay` can find that class again. Other
    options are those of `Driver`. Raises `JournalExists` and `JournalBroken`, with the disk closed.
    """
    try:
        journal = new_journal(type(engine), config, disk, min_free_bytes=min_free_bytes)
        return Driver(engine, journal, outside=outside, **options)
    except BaseException:
        disk.close()
        raise


def send(driver: Driver[C, E], command: C, by: str) -> Outcome[E]:
    """Apply one command, wait until it is durable, and return its outcome."""
    ticket = driver.submit(command, by=by)
    driver.flush()
    return ticket.outcome
