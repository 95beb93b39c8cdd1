"""A served engine: its clock, its driver, its thread and its listeners.

The event loop never applies a command: it passes it to the engine's thread and gets the result once it is durable. An
engine that cannot be opened, or breaks, does not affect the others; readiness names it.

The clock of an engine in real time advances it when something is due and before each command. It continues from the
engine's time when it is opened. It cannot be set, and it pauses while the machine sleeps or the program is stopped for
more than a minute.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog
from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.kernel.commit import GroupCommit
from pendula.kernel.disk import Disk
from pendula.kernel.driver import DiskLow, Driver, Ticket, new_journal
from pendula.kernel.engine import Engine, Outside
from pendula.kernel.errors import PendulaError, WorldBroken
from pendula.kernel.journal import FileJournal, Journal, claimed
from pendula.kernel.limits import (
    MIN_FREE_BYTES,
    SEGMENT_BYTES,
    SNAPSHOT_EVERY,
    STREAM_BUFFER_EVENTS,
    WAITING_COMMANDS,
)
from pendula.kernel.replay import OtherDecisions, require_scheduler
from pendula.kernel.stream import Log, Stream
from pendula.kernel.time import format_utc
from pendula.kernel.wallclock import WallClock
from pendula.server.errors import EngineUnavailable
from pendula.server.monitoring import Metrics
from pendula.server.runtime.past import Incidents, Moments, PastEngines
from pendula.server.settings import Settings
from pendula.server.views import EngineView, State

NANOSECONDS = {"us": 1_000, "ms": 1_000_000, "min": 60_000_000_000}
SECOND_NS = 1_000_000_000
# The shortest interval between two calls; a call catches up on everything due.
LEAST_SECONDS = 0.02
# A longer delay means that the program or machine was stopped; that time is skipped.
STOPPED_NS = 60 * SECOND_NS


# The one command that advances an engine to a time and then does a command, if there is one.
Timed = Callable[[int, Any], object]

CLOCK_CALLER = "clock"
KEPT_BYTES = 1024 * 1024  # of the last answer to a question

A = TypeVar("A")
log = structlog.get_logger("pendula.server")


class Pace:
    """The clock of one engine. `due` and `end` run on the event loop, the others on the engine's thread."""

    def __init__(self, timed: Timed, time_unit: str, steady_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._timed = timed
        self._unit_ns = NANOSECONDS[time_unit]
        self._steady_ns = steady_ns
        self._start = (0, steady_ns())
        self._next: int | None = None
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = False

    def begin(self, engine: Engine[Any, Any]) -> None:
        """Start at the engine's time."""
        self._loop = asyncio.get_running_loop()
        self._start = (engine.now(), self._steady_ns())
        self._next = engine.next_due()

    def reading(self) -> int:
        """The current engine time, which the engine itself may not have reached."""
        at, since = self._start
        return at + (self._steady_ns() - since) // self._unit_ns

    def present(self, engine: Engine[Any, Any]) -> int:
        """The current time; time that was lost while the program or the machine was stopped is skipped."""
        now, due = self.reading(), engine.next_due()
        if due is not None and (now - due) * self._unit_ns > STOPPED_NS:
            now, self._start = due, (due, self._steady_ns())
        return now

    def due_step(self, engine: Engine[Any, Any], now: int) -> object | None:
        """The command that does what is due by `now`; None if nothing is."""
        due = engine.next_due()
        return self._timed(now, None) if due is not None and due <= now else None

    def timed(self, engine: Engine[Any, Any], now: int, command: object) -> object:
        """The command at the time `now`, in one: unless the engine is there already, or not done with what is due."""
        due = engine.next_due()
        is_later = now > engine.now() and (due is None or due > now)
        return self._timed(now, command) if is_later else command

    def follow(self, engine: Engine[Any, Any]) -> None:
        """Update after a command, which may have changed what is due next or advanced the time."""
        if engine.now() > self.reading():
            self._start = (engine.now(), self._steady_ns())
        due = engine.next_due()
        if due != self._next and self._loop is not None and not self._loop.is_closed():
            self._next = due
            self._loop.call_soon_threadsafe(self._changed.set)

    async def due(self) -> bool:
        """Wait until something is due; False once the engine is closed."""
        await asyncio.sleep(LEAST_SECONDS)
        while not self._ended:
            self._changed.clear()
            seconds = self._seconds()
            if seconds is not None and seconds <= 0:
                return True
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
            except TimeoutError:
                continue
        return False

    def end(self) -> None:
        """Stop the clock."""
        self._ended = True
        self._changed.set()

    def _seconds(self) -> float | None:
        if self._next is None:
            return None
        at, since = self._start
        return (since + (self._next - at) * self._unit_ns - self._steady_ns()) / SECOND_NS


AnyDriver = Driver[Any, Any]
# What to say of an engine as of a record.
Question = Callable[[Any, int], bytes]


Work = Callable[[], Coroutine[Any, Any, None]]


class Beat:
    """A clock of wall time: calls `act` each period with its delay in seconds. `act` may return work, which runs beside
    the next beats; while it runs, further work is not started but reported to `on_missed`.

    Missed beats are skipped: after a delay of a period or more, the next one is a period later.
    """

    def __init__(
        self, seconds: float, act: Callable[[float], Work | None], on_missed: Callable[[], None] = lambda: None
    ) -> None:
        self._seconds = seconds
        self._act = act
        self._on_missed = on_missed
        self._task: asyncio.Task[None] | None = None
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def working(self) -> bool:
        """Whether work runs."""
        return self._running is not None and not self._running.done()

    async def stop(self) -> None:
        """Stop the beats; waits for running work."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._seconds
        while True:
            await asyncio.sleep(max(0.0, due - loop.time()))
            late = max(0.0, loop.time() - due)
            work = self._act(late)
            if work is not None and self.working:
                self._on_missed()
            elif work is not None:
                self._running = loop.create_task(work())
            due = due + self._seconds if late < self._seconds else loop.time() + self._seconds


class Call(Struct, frozen=True):
    """A queued command; None advances time to what is due."""

    command: object | None
    by: str
    request_id: str | None


class Opened(Struct, frozen=True):
    """What an open engine consists of: its driver, its thread, its past states, the index of its journal."""

    driver: AnyDriver
    commit: GroupCommit[Call, Ticket[Any] | None]
    past: PastEngines
    moments: Moments


class EngineHost:
    """One engine of one scheduler, opened and closed by the supervisor.

    For an engine in real time, `timed` creates its commands at a time. `label` is the engine's metrics label,
    shared if engines come and go too often to be labels. `keep_events` and `log` are those of the driver, `journal` and
    `bound` are those of the scheduler.
    """

    def __init__(
        self,
        scheduler: str,
        name: str,
        kind: type[Engine[Any, Any]],
        *,
        settings: Settings,
        metrics: Metrics,
        clock: WallClock,
        journal_bytes: int,
        timed: Timed | None = None,
        bound: Callable[[Any, Any], None] | None = None,
        outside: Outside | None = None,
        label: str | None = None,
        keep_events: bool = True,
        log: Log[Any] | None = None,
        snapshot_every: int | None = None,
        journal: Callable[[FileJournal], Journal] | None = None,
        incidents: Incidents | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.name = name
        self.kind = kind
        self.pace = Pace(timed, kind.time_unit) if timed else None
        self._bound = bound
        self._outside = outside
        self._clock = clock
        self._settings = settings
        self._labels = (scheduler, name if label is None else label)
        self._keep_events = keep_events
        self._log = log
        self._snapshot_every = snapshot_every or settings.allowed(SNAPSHOT_EVERY)
        self._journal_bytes = journal_bytes
        self._made_of = journal
        self._metrics = metrics
        self._opened: Opened | None = None
        self._incidents = incidents or {}
        self._failure: PendulaError | None = None
        self._now = 0
        self._looks: dict[Question, asyncio.Future[bytes]] = {}
        self._answers: dict[Question, tuple[int, bytes]] = {}
        self._listeners: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = False
        self.tail_note: str | None = None  # the torn tail cut off its journal when it was opened
        self.closed = False
        metrics.waiting.labels(*self._labels).set_function(lambda: self._opened.commit.waiting if self._opened else 0)
        metrics.engines_broken.labels(*self._labels).set_function(lambda: int(self.state is State.BROKEN))

    async def open(
        self, disk: Callable[[], Disk], config: Json, outdated: Callable[[OtherDecisions], None] | None = None
    ) -> None:
        """Recover the engine from its journal, or create it with `config`; a failure is stored, not raised. `outdated`
        moves a journal of other decisions away, and the engine starts with a new one."""
        self._loop = asyncio.get_running_loop()
        try:
            driver = await asyncio.to_thread(self._recover_or_begin_anew, disk, config, outdated)
        except PendulaError as error:
            self._fail(error)
        except Exception as error:
            self._fail(WorldBroken(f"The engine could not be opened: {type(error).__name__}: {error}"))
        else:
            driver.on_publish(self._published)
            self._now = driver.engine.now()
            if self.pace is not None:
                self.pace.begin(driver.engine)
            limit = self._settings.allowed(WAITING_COMMANDS)
            # The limit may have changed while the journal was opened.
            driver.journal_bytes = self._journal_bytes
            self._opened = Opened(
                driver,
                GroupCommit(self._submit, self._flush, limit, f"{self.scheduler}/{self.name}"),
                PastEngines(driver.journal, driver.engine_at),
                Moments(driver.journal, self._incidents, type(driver.engine)),
            )

    def allow(self, journal_bytes: int) -> None:
        """Set the size limit of the journal; the next command prunes any excess."""
        self._journal_bytes = journal_bytes
        if self._opened is not None:
            self._opened.driver.journal_bytes = journal_bytes

    def _recover_or_begin_anew(
        self, disk: Callable[[], Disk], config: Json, outdated: Callable[[OtherDecisions], None] | None
    ) -> AnyDriver:
        try:
            return self._recover(disk, config)
        except OtherDecisions as error:
            if outdated is None:
                raise
            outdated(error)
        return self._recover(disk, config)

    def _recover(self, disk: Callable[[], Disk], config: Json) -> AnyDriver:
        place = disk()
        try:
            journal = self._journal_on(place, config)
            return self._driver_on(journal if self._made_of is None else self._made_of(journal))
        except BaseException:
            place.close()
            raise

    def _journal_on(self, place: Disk, config: Json) -> FileJournal:
        segment, free = self._settings.allowed(SEGMENT_BYTES), self._settings.allowed(MIN_FREE_BYTES)
        if any(name.endswith(".journal") for name in place.list()):
            journal = FileJournal.open(place, segment_bytes=segment, min_free_bytes=free)
            # Before anything is restored from it.
            require_scheduler(journal.header, self.kind)
            self.tail_note = journal.tail_note
            return journal
        # A refused configuration must not be stored: the journal would keep it permanently.
        self.kind.create(config)
        return new_journal(self.kind, config, place, segment_bytes=segment, min_free_bytes=free)

    def _driver_on(self, journal: Journal) -> AnyDriver:
        return Driver.recover(
            journal,
            lambda _: self.kind,
            outside=self._outside,
            clock=lambda: format_utc(self._clock.now()),
            snapshot_every=self._snapshot_every,
            journal_bytes=self._journal_bytes,
            buffer_events=self._settings.allowed(STREAM_BUFFER_EVENTS),
            keep_events=self._keep_events,
            log=self._log,
        )

    def _fail(self, error: PendulaError) -> None:
        self._failure = error
        log.error("engine_failed", scheduler=self.scheduler, engine=self.name, code=error.code, problem=error.message)

    def mark_broken(self, why: PendulaError) -> None:
        """Count the engine as broken until it is opened again, because the task that drives it has ended. The caller
        logs it."""
        self._failure = self.failure or why

    async def close(self) -> None:
        """Finish queued commands, write a snapshot, flush and close the journal."""
        if self._opened is None:
            return
        await asyncio.to_thread(self._opened.commit.close)
        try:
            await asyncio.to_thread(self._opened.driver.close)
        except PendulaError as error:
            # Acknowledged commands are durable; only the snapshot is lost, which would have saved time.
            log.error("engine_not_closed", scheduler=self.scheduler, engine=self.name, problem=error.message)

    async def retire(self) -> None:
        """Close this engine while others continue: end its streams and remove its metrics."""
        self.closed = True
        self.wake()
        if self.pace is not None:
            self.pace.end()
        await self.close()
        for counted in (self._metrics.waiting, self._metrics.engines_broken):
            counted.remove(*self._labels)

    @property
    def label(self) -> str:
        """The metrics label of the engine."""
        return self._labels[1]

    @property
    def failure(self) -> PendulaError | None:
        """Why the engine refuses all commands; None while it is ready or starting."""
        return self._failure or (self._opened.driver.broken if self._opened else None)

    @property
    def state(self) -> State:
        if self.failure is not None:
            return State.BROKEN
        return State.STARTING if self._opened is None else State.READY

    @property
    def not_ready(self) -> str | None:
        """The code of what prevents commands, permanently or temporarily; None if ready."""
        if self.failure is not None:
            return self.failure.code
        if self._opened is None:
            return State.STARTING.value
        return DiskLow.code if self._opened.driver.journal.disk_low else None

    def view(self) -> EngineView:
        failure = self.failure
        commands = self._opened.driver.commands if self._opened else 0
        return EngineView(self.name, self.kind.time_unit, self._now, commands, failure.message if failure else None)

    @property
    def opened(self) -> Opened:
        """The parts of an open engine; raises `EngineUnavailable`."""
        if self._opened is None:
            why = self._failure.message if self._failure else "it is starting"
            raise EngineUnavailable(
                f"The engine {self.scheduler}/{self.name} is not available: {why}", engine=self.name
            )
        return self._opened

    @property
    def driver(self) -> AnyDriver:
        """The driver, for reads of the past from any thread."""
        return self.opened.driver

    @property
    def journal(self) -> Journal:
        return self.opened.driver.journal

    @property
    def past(self) -> PastEngines:
        return self.opened.past

    @property
    def moments(self) -> Moments:
        return self.opened.moments

    async def submit(self, command: object, by: str, request_id: str | None) -> Ticket[Any]:
        """Apply a command; returns when it is durable. Raises `Busy` or the error that broke the engine."""
        ticket = await self.opened.commit.submit(Call(command, by, request_id))
        assert ticket is not None
        result = "done" if ticket.outcome.refusal is None else "refused"
        self._metrics.commands.labels(*self._labels, result).inc()
        return ticket

    async def advance(self) -> None:
        """Advance time if something is due; raises the error that broke the engine."""
        await self.opened.commit.submit(Call(None, CLOCK_CALLER, None))

    async def ask(self, question: Callable[[AnyDriver], A]) -> A:
        """Run a read-only function between commands; returns when everything it saw is durable."""
        driver = self.driver
        return await self.opened.commit.ask(lambda: question(driver))

    async def look(self, question: Question) -> bytes:
        """What `question` says of the engine and its last record. All callers share the answer until the next record;
        `question` is always the same function."""
        asked = self._looks.get(question)
        if asked is None or asked.done():
            asked = asyncio.ensure_future(self.ask(lambda driver: self._answer(driver, question)))
            self._looks[question] = asked
            asked.add_done_callback(partial(self._looked, question))
        return await asyncio.shield(asked)

    def _answer(self, driver: AnyDriver, question: Question) -> bytes:
        # Earlier commands may not be durable yet; after a flush the state is that of the last record.
        n = driver.flush()
        kept = self._answers.pop(question, None)
        answer = kept[1] if kept is not None and kept[0] == n else question(driver.engine, n)
        if len(answer) <= KEPT_BYTES:
            self._answers[question] = n, answer
        return answer

    def _looked(self, question: Question, asked: asyncio.Future[bytes]) -> None:
        if self._looks.get(question) is asked:
            del self._looks[question]
        if not asked.cancelled():
            # Retrieve the exception here: all callers may have left.
            asked.exception()

    async def subscribe(self, after: str | None) -> Stream[Any]:
        # In a thread: resuming after an old event may read the journal.
        return await asyncio.to_thread(self.driver.subscribe, after)

    def listen(self, wake: asyncio.Event) -> Callable[[], None]:
        """Set `wake` whenever there may be new events; returns a function that unsubscribes it."""
        self._listeners.add(wake)
        return lambda: self._listeners.discard(wake)

    def wake(self) -> None:
        """Wake every listener."""
        self._told = False
        for event in self._listeners:
            event.set()

    def count_gap(self) -> None:
        self._metrics.gaps.labels(*self._labels).inc()

    def _submit(self, call: Call) -> Ticket[Any] | None:
        # On the engine's thread, since the cost depends on the engine's state.
        if self._bound is not None and call.command is not None:
            self._bound(self.driver.engine, call.command)
        if self.pace is None:
            return self.driver.submit(call.command, call.by, call.request_id)
        try:
            ticket = None
            now = self.pace.present(self.driver.engine)
            step = self.pace.due_step(self.driver.engine, now)
            if step is not None:
                ticket = self.driver.submit(step, CLOCK_CALLER, None)
            if call.command is not None:
                # The command happens at the present time, not when something was last due.
                command = self.pace.timed(self.driver.engine, now, call.command)
                ticket = self.driver.submit(command, call.by, call.request_id)
            return ticket
        finally:
            self.pace.follow(self.driver.engine)

    def _flush(self) -> None:
        self.driver.flush()
        self._metrics.flushes.labels(*self._labels).inc()

    def _published(self) -> None:
        """On the engine's thread, after a flush: schedule at most one wake-up of the event loop."""
        self._now = self.driver.engine.now()
        if not self._told and self._loop is not None and not self._loop.is_closed():
            self._told = True
            self._loop.call_soon_threadsafe(self.wake)


def real_disk(path: Path) -> Callable[[], Disk]:
    """A factory for the directory at `path`, created on first use and locked until it is closed."""
    return lambda: claimed(path, "another program has this journal open")
