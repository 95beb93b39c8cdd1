"""The one road into a live engine: apply, append, flush, acknowledge, publish, in order of record numbers.

Commands are applied at once in memory; callers and subscribers hear of them only after the flush that covers the
input. Outcomes need no flush of their own: after a crash they are computed again and must agree. Server, command line,
simulators and tests all use this road; a driver is safe for threads, its engine is touched by one at a time.
"""

import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, Generic, Self, TypeAlias, TypeVar

from pendula.kernel.bodies import (
    Meta,
    NoOutside,
    OutcomeBytes,
    Recorder,
    input_body,
    outcome_bytes,
    read_outcome,
    snapshot_body,
)
from pendula.kernel.canonical import encode
from pendula.kernel.engine import Engine, Outcome, Outside
from pendula.kernel.errors import InputRefused, LimitExceeded, WorldBroken, in_words
from pendula.kernel.frames import Record, fits
from pendula.kernel.journal import Journal, JournalBroken
from pendula.kernel.limits import JOURNAL_BYTES, SNAPSHOT_EVERY, STREAM_BUFFER_EVENTS
from pendula.kernel.replay import (
    Factory,
    Step,
    check_decisions,
    engine_from_snapshot,
    first_engine,
    follow,
    kind_for,
)
from pendula.kernel.stream import EventLog, Gap, Published, Stream

__all__ = ["DiskLow", "Driver", "EngineDefect", "Gap", "JournalFull", "Published", "ReplayDiffers", "Stream", "Ticket"]

C = TypeVar("C")
E = TypeVar("E")

NOTE_BYTES = 4096  # of a text in a note


class DiskLow(WorldBroken):
    """New inputs are refused before the disk is full, so that what runs can still be written down."""

    code = "disk_low"


class JournalFull(WorldBroken):
    """The journal has reached its limit of bytes and nothing in it may be pruned."""

    code = "journal_full"


class EngineDefect(WorldBroken):
    """An exception came out of an engine: our mistake. The command left no trace; the engine was built anew."""

    code = "engine_defect"


class ReplayDiffers(WorldBroken):
    """On recovery the engine came to another outcome than the journal holds; nothing is taken until that is cleared."""

    code = "replay_differs"


class UnknownRecord(InputRefused):
    code = "unknown_record"


# Sees the engine after an input of its journal was applied again, the record of the input, and what came out.
Watch: TypeAlias = Callable[[Engine[Any, Any], Record, Step], None]


class Ticket(Generic[E]):
    """A command that was applied; `outcome` may be read once it is durable."""

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


def engine_at(journal: Journal, kind: type[Engine[C, E]], n: int) -> Engine[C, E]:
    """An engine as it was after record `n`: the nearest snapshot before it, then replay. Raises `UnknownRecord`."""
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
        raise UnknownRecord(f"Record {n} lies before the first snapshot that is left", n=n, first_n=start - 1)
    # Nothing is drawn from `follow` beyond n: it applies an input before it hands the record out.
    for _ in islice(follow(engine, journal, start), n + 1 - start):
        pass
    return engine


class Driver(Generic[C, E]):
    """Owns an engine and its journal. `clock` gives the wall-clock text kept with each input; nothing decides by it.

    Without `keep_events` the journal holds the digest of what came out, and a replay makes the events again: for
    engines that say much and are read from the buffer alone. Who comes back too late for the buffer is told of a gap.
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
        # Between the beginning of a command and its records the engine says what the journal does not.
        self._torn = False
        self._pending: deque[Ticket[E]] = deque()
        self._lock = threading.RLock()
        self._log: EventLog[E] = EventLog(journal, type(engine).events, buffer_events)

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
        """The engine as the journal left it: newest snapshot, then every input after it, outcomes compared.

        With `before` it is the newest snapshot before that record; `watch` sees each input that is applied again, with
        the engine after it.
        """
        kind = kind_for(journal.header, factory)
        check_decisions(journal.header, kind)
        engine, since_snapshot, lost = _caught_up(journal, kind, before, watch)
        driver = cls(engine, journal, **options)
        driver._since_snapshot = since_snapshot
        for n, outcome in lost:
            # The crash took the outcome of an input that is there: it is computed again, and written now.
            journal.append("outcome", engine.now(), outcome.body(n, keep_events=driver._keep_events))
        if lost:
            journal.flush()
        return driver

    def submit(self, command: C, by: str, request_id: str | None = None, *, encoded: bytes | None = None) -> Ticket[E]:
        """Apply a command in memory and buffer its records; raises `WorldBroken` when nothing more is taken. `encoded`
        are its canonical bytes, from whoever has them already.

        `InputRefused` (what cannot be written down, or is too large to be) and `EngineDefect` leave no trace.
        """
        with self._lock:
            self._refuse_if_not_well()
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
                    fits(body)
            except LimitExceeded:
                self._rebuild()
                raise
            except Exception as defect:
                raise self._defect(defect, encoded_command) from defect
            except BaseException as end:
                if threading.current_thread() is threading.main_thread():
                    raise  # the program ends, and has no time to build anything
                # Nobody interrupts another thread: the engine itself wanted to end the program.
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
        self._log.tell()
        return durable

    def subscribe(self, after: str | None = None) -> Stream[E]:
        """Events after the id `n.k`, from the buffer or the journal; without an id, from now on."""
        return self._log.subscribe(after)

    def on_publish(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback`, on the thread that flushes, after new events; the returned function ends that."""
        return self._log.on_publish(callback)

    def engine_at(self, n: int) -> Engine[C, E]:
        """A separate engine as it was after record `n`: the nearest snapshot before it, then replay."""
        return engine_at(self.journal, type(self.engine), n)

    def close(self) -> None:
        """A clean stop: snapshot, flush, close the journal. A second call does nothing."""
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

    def _refuse_if_not_well(self) -> None:
        if self.broken is not None:
            raise self.broken
        if self._torn:
            raise WorldBroken("A command was broken off in its middle; close, and recover from the journal")
        if self.journal.disk_low:
            raise DiskLow("The disk is nearly full; no new input is taken until there is room")
        if self.journal.total_bytes > self.journal_bytes and not self._may_go_on():
            raise JournalFull(
                f"The journal has {self.journal.total_bytes} bytes; the limit is {self.journal_bytes}",
                value=self.journal.total_bytes,
                allowed=self.journal_bytes,
            )

    def _may_go_on(self) -> bool:
        """Makes room in a journal that has more than its share; false where nothing more may go into it."""
        if not self.journal.goes_on_when_full:
            return self._free_journal_space()
        if self.commands >= self._freeing_again_at:
            # Not for every command: two snapshots each would soon be more than what is too much.
            self._freeing_again_at = self.commands + self._snapshot_every
            self._free_journal_space()
        return True

    def _free_journal_space(self) -> bool:
        """Two snapshots in a new segment make everything before them prunable; tried once for what was written."""
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
        # By bytes too: pruning needs two snapshots well within the journal's limit.
        grown = self.journal.total_bytes - self._bytes_at_snapshot
        return self._since_snapshot >= self._snapshot_every or grown > self.journal_bytes // 8

    def _snapshot(self) -> None:
        """Never fails: without a snapshot the inputs are still there, and recovery takes longer."""
        self._since_snapshot = 0
        size = 0
        try:
            body = snapshot_body(self.engine.decisions, self.engine.state())
            fits(body)
            self.journal.append("snapshot", self.engine.now(), body)
            size = len(body)
        except JournalBroken:
            raise
        except Exception as trouble:
            self._note({"snapshot": in_words(trouble)})
        if self.journal.total_bytes > self.journal_bytes // 2:
            self.journal.prune(self.journal_bytes // 2)
        # With its own size, which is not flushed yet: a large state must not make the next snapshot due at once.
        self._bytes_at_snapshot = self.journal.total_bytes + size

    def _rebuild(self) -> None:
        """Throw the engine away, whatever state it is in, and build it from the journal again, outcomes compared."""
        self.flush()
        try:
            self.engine = _caught_up(self.journal, type(self.engine))[0]
            self._torn = False
        except Exception as trouble:
            self.broken = WorldBroken(f"The engine failed and could not be built again: {in_words(trouble)}")
            raise self.broken from trouble

    def _defect(self, defect: BaseException, encoded_command: bytes) -> EngineDefect:
        """The error for a command that the engine failed on, once the engine is built anew and that is noted."""
        self._rebuild()
        words = in_words(defect)
        self._note({"command": encoded_command[:NOTE_BYTES].decode(errors="replace"), "defect": words})
        return EngineDefect(f"The engine failed on a command: {words}. The command left no trace", defect=words)

    def _note(self, facts: dict[str, str]) -> None:
        cut = {name: text[:NOTE_BYTES] for name, text in facts.items()}
        self.journal.append("note", self.engine.now(), encode(cut))


def _caught_up(
    journal: Journal, kind: type[Engine[C, E]], before: int | None = None, watch: Watch | None = None
) -> tuple[Engine[C, E], int, list[tuple[int, OutcomeBytes]]]:
    """The engine after all that the journal holds, the inputs since its snapshot, and the outcomes that are lost."""
    snapshots = [n for n, _ in journal.snapshots() if before is None or n < before]
    engine, start = engine_from_snapshot(journal, kind, snapshots[-1] if snapshots else None)
    computed: dict[int, OutcomeBytes] = {}
    inputs = 0
    for record, step in follow(engine, journal, start):
        if step is not None:
            if step.outcome is None:
                raise ReplayDiffers(f"Record {step.n} cannot be applied again: {step.defect}", n=step.n)
            computed[step.n] = step.outcome
            inputs += 1
            if watch is not None:
                watch(engine, record, step)
        elif record.kind == "outcome":
            recorded = read_outcome(record.body)
            again = computed.pop(recorded.of, None)
            if again is not None and again.digest() != recorded.digest:
                raise ReplayDiffers(
                    f"Record {recorded.of} has another outcome than the journal holds; `pendula replay` shows it",
                    n=recorded.of,
                )
    return engine, inputs, sorted(computed.items())
