"""One served run: its engine, its ticks, its stream of events.

The engine's thread applies commands and ticks; their events are published when they are durable. Only the event loop
changes the record. An ended run has no engine; a restart opens one.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

import structlog
from msgspec import Struct

from pendula.credit.commands import Commands, Restart, Stop, Tick
from pendula.credit.engine import Run
from pendula.credit.events import Event, LastError, Note, RunStatus
from pendula.credit.model import Code
from pendula.credit.runs.artifacts import moment
from pendula.credit.settings import setting_texts
from pendula.kernel.canonical import Json, encode
from pendula.kernel.commit import Busy
from pendula.kernel.driver import DiskLow, JournalFull
from pendula.kernel.engine import Outcome
from pendula.kernel.errors import PendulaError, WorldBroken
from pendula.kernel.journal import FileJournal
from pendula.server.runtime.engine_host import Beat, EngineHost, Work, real_disk
from pendula.server.schedulers.credit.counters import FrameWriter
from pendula.server.schedulers.credit.output import RunContext, RunOutput
from pendula.server.schedulers.credit.records import ENDED, Record, RunState, Verb, after
from pendula.server.schedulers.credit.stream import Bounds, Cursor, Renderer, RunStream, StreamEvent

METRONOME = "metronome"
SLOW_SECONDS = 2.0
PACE_SECONDS = 8
MINUTE_SECONDS = 60
SEQ_BLOCK = 100_000
TICK_FAILED: dict[str, Json] = {"kind": "REAL_MODE_TICK_FAILED"}
# Causes of failed ticks that an operator can fix, by error code; all others are defects.
LAST_ERRORS = {
    DiskLow.code: LastError(DiskLow.code, TICK_FAILED),
    JournalFull.code: LastError(JournalFull.code, TICK_FAILED),
}

STATUS_FIELDS = (
    "run_id",
    "scenario_id",
    "sim_time_ms",
    "intensity_percent",
    "ops_sec",
    "queue_depth",
    "attempts_total",
    "committed_total",
    "rejected_total",
    "errors_total",
    "timeouts_total",
    "consec_all_rejected_ticks",
    "last_event_type",
    "last_error",
)

T = TypeVar("T")

log = structlog.get_logger("pendula.server")


class StopRequest(Struct, frozen=True):
    """The source and the reason of a stop."""

    source: str | None
    reason: str | None
    client: str | None


class ServedRun:
    """The log of its engine: `publish` is called on the engine's thread, everything else on the event loop."""

    def __init__(self, record: Record, context: RunContext) -> None:
        self.record = record
        self.output = RunOutput(record, context)
        self.late_beats = 0
        self._context = context
        settings = context.settings
        bounds = Bounds(
            settings.event_buffer_size, settings.event_buffer_ttl_sec * 1_000_000, settings.sse_sub_queue_max
        )
        self.stream = RunStream(record.run_id, context.clock, bounds, record.seq_reserved)
        self.frames = FrameWriter()
        self._changing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._listeners: set[asyncio.Event] = set()
        self.host: EngineHost | None = None  # None if the run has ended
        # If both are due, the heartbeat comes first: the status is sent before the tick.
        self._beats = Beat(settings.heartbeat_ms / 1000, self._beat)
        self._ticks = Beat(settings.tick_period_ms / 1000, self._next_tick, self._count_missed)
        self._ending: asyncio.Task[None] | None = None
        self._samples: deque[tuple[float, int, int]] = deque()
        self._slow_logged = False
        self._failed_ticks = 0
        self.actions: dict[str, tuple[str, asyncio.Future[Any]]] = {}

    # Control

    async def open(self, config: Json) -> None:
        """Open the engine on a new journal with `config`, or on the existing one; raises if that fails."""
        host = self._context.make_host(self.record, config, self)
        await host.open(real_disk(self._context.journal(self.record.run_id)), config)
        if host.failure is not None:
            await host.retire()
            raise host.failure
        self.host = host

    async def begin(self) -> None:
        """Start the ticks of a new run."""
        record = self.record
        record.mark_started(self._context.clock())
        await self._start(is_restart=False)
        self.publish_status()
        self.output.save()
        log.info("sim.run.start", run_id=record.run_id, scenario_id=record.scenario_id, seed=record.seed)

    async def submit(self, command: Commands, by: str, request_id: str | None) -> Outcome[Event]:
        """Apply a command; raises if the engine broke."""
        if self.host is None:
            raise WorldBroken(f"The run {self.record.run_id} has ended")
        try:
            outcome = (await self.host.submit(command, by, request_id)).outcome
        except WorldBroken as error:
            if self.host is not None and self.host.failure is not None:
                self._fail_engine(error)
            raise
        return outcome

    async def pause_or_resume(self, verb: Verb, command: Commands, by: str, request_id: str | None) -> None:
        """Pause or resume; without effect in the current state only the status is published."""
        async with self._changing:
            if after(self.record.state, verb) is self.record.state:
                self.publish_status()
                return
            await self.submit(command, by, request_id)
            self.output.save()
        log.info(f"sim.run.{verb.value}", run_id=self.record.run_id)

    async def stop(self, request: StopRequest, by: str, request_id: str | None) -> None:
        """End the run and wait until it is closed."""
        async with self._changing:
            record = self.record
            if after(record.state, Verb.STOP) is record.state:
                self.publish_status()
                return
            record.state, record.stop_requested_at = RunState.STOPPING, moment(self._context.clock())
            record.stop_source, record.stop_reason, record.stop_client = request.source, request.reason, request.client
            self.publish_status()
            try:
                await self.submit(Stop(request.source, request.reason), by, request_id)
            except PendulaError as error:
                unclean = LastError(Code.INTERNAL_ERROR.value, {"kind": "UNCLEAN_END"})
                self._fail(LAST_ERRORS.get(error.code, unclean), error)
            await self._finish()
        log.info("sim.run.stop", run_id=record.run_id, scenario_id=record.scenario_id, source=request.source)

    async def restart(self, by: str, request_id: str | None) -> None:
        """Restart at tick 0 with the ledger of the scenario; event numbers continue."""
        await self.wait_ended()
        async with self._changing:
            if self.host is None:
                await self.open(None)
            else:
                await self._stop_beats()
            # Before the command: its events must already see the run as started.
            self.record.mark_started(self._context.clock())
            await self.submit(Restart(), by, request_id)
            self.actions.clear()
            await self._start(is_restart=True)
            self.output.save()
        log.info("sim.run.restart", run_id=self.record.run_id)

    async def _start(self, *, is_restart: bool) -> None:
        assert self.host is not None
        settings = setting_texts(_run(self.host.driver.engine).settings)
        # In a thread: it waits for the disk.
        await asyncio.to_thread(self.output.start, settings, is_restart=is_restart)
        self._beats.start()
        self._ticks.start()

    async def _stop_beats(self) -> None:
        await self._beats.stop()
        await self._ticks.stop()

    async def wait_ended(self) -> None:
        """Wait until a failed run is closed."""
        if self._ending is not None:
            await self._ending

    def _fail(self, last_error: LastError, cause: PendulaError) -> None:
        log.error("sim.run.failed", run_id=self.record.run_id, code=cause.code, problem=cause.message)
        now = self._context.clock()
        self.record.mark_failed(last_error, now)
        self.record.mark_ended(RunState.ERROR, now)
        self.publish_status()

    def _fail_engine(self, cause: PendulaError) -> None:
        """Fail the run because its engine broke."""
        if self.record.state in ENDED or self._ending is not None:
            return
        if self._context.disk_low():
            self._end_failed(LAST_ERRORS[DiskLow.code], cause)
        else:
            self._end_failed(LastError(Code.INTERNAL_ERROR.value, {"kind": "NOT_RECORDED"}), cause)

    def _end_failed(self, last_error: LastError, cause: PendulaError) -> None:
        self._fail(last_error, cause)
        self._ending = self._loop.create_task(self._finish_in_background())

    async def _finish_in_background(self) -> None:
        async with self._changing:
            await self._finish()
        self._ending = None

    async def _finish(self) -> None:
        """Close the engine, the ticks and the files."""
        await self._stop_beats()
        host, self.host = self.host, None
        if host is None:
            return
        self.record.last_seq = self.record.seq_reserved = self.stream.last_seq
        await self.output.finish(_run(host.driver.engine))
        await host.retire()

    # Ticks

    def _next_tick(self, late: float) -> Work | None:
        self._context.counters.tick_lag.observe(late)
        return self._tick if self.record.state is RunState.RUNNING else None

    def _count_missed(self) -> None:
        self.late_beats += 1

    def _beat(self, _: float = 0) -> None:
        if self.record.state in ENDED:
            # The last status was published. `_finish` saves the end of a run after its files; a crash before that
            # leaves it for recovery.
            return
        self._measure_pace()
        self.publish_status()
        self.output.save_if_due()

    async def _tick(self) -> None:
        counters, started = self._context.counters, self._loop.time()
        counters.in_flight.inc()
        try:
            await self.submit(Tick(), METRONOME, None)
            self._tick_succeeded()
        except Busy:
            # Waiting commands come first; skip this tick.
            self._count_missed()
        except PendulaError as error:
            self._tick_failed(error)
        finally:
            counters.in_flight.dec()
        elapsed = self._loop.time() - started
        counters.tick_seconds.labels("execute").observe(elapsed)
        if elapsed > SLOW_SECONDS and not self._slow_logged:
            self._slow_logged = True
            log.warning(
                "sim.tick.slow", run_id=self.record.run_id, tick=self.record.tick_index - 1, seconds=round(elapsed, 3)
            )

    def _tick_failed(self, cause: PendulaError) -> None:
        """Count a failed tick, for example on a full disk; too many in a row end the run. A series of failures is one
        line in the log."""
        record, host = self.record, self.host
        if host is None or record.state is not RunState.RUNNING:
            return
        self._failed_ticks += 1
        last_error = LAST_ERRORS.get(cause.code) or LastError(Code.INTERNAL_ERROR.value, TICK_FAILED)
        most = _run(host.driver.engine).settings.max_consec_tick_failures
        if 0 < most <= self._failed_ticks:
            self._end_failed(last_error, cause)
            return
        if self._failed_ticks == 1:
            record.mark_failed(last_error, self._context.clock())
            self.publish_status()
            self.output.dirty = True
            if most <= 0:
                log.warning("sim.tick.failed", run_id=record.run_id, code=cause.code, problem=cause.message)

    def _tick_succeeded(self) -> None:
        failed, self._failed_ticks = self._failed_ticks, 0
        if failed:
            log.warning("sim.tick.again", run_id=self.record.run_id, failed_before=failed)

    def _measure_pace(self) -> None:
        """Measure actions per second over the last seconds, and technical errors of the last minute."""
        now, record = self._loop.time(), self.record
        self._samples.append((now, record.attempts_total, record.errors_total))
        while self._samples[0][0] < now - MINUTE_SECONDS:
            self._samples.popleft()
        record.errors_last_1m = max(0, record.errors_total - self._samples[0][2])
        since, attempts, _ = next(sample for sample in self._samples if sample[0] >= now - PACE_SECONDS)
        actions, seconds = max(0, record.attempts_total - attempts), now - since
        record.ops_sec = Decimal(round(100 * actions / seconds)) / 100 if seconds > 0 else Decimal(0)

    # Events

    def publish(self, _: int, events: tuple[Event, ...], data: tuple[bytes, ...]) -> None:
        """Add durable events to the stream and the files; called on the engine's thread."""
        if not events:
            return
        assert self.host is not None
        run = _run(self.host.driver.engine)
        started = self._context.clock()
        renderer = Renderer(run.network, moment(started), run.settings.emit_tick_events)
        batch: list[StreamEvent] = []
        last_type = None
        for event, encoded in zip(events, data, strict=True):
            if isinstance(event, Note):
                self._publish_batch(batch)
                batch = []
                self.output.write_lines([self.stream.number(encoded)])
            elif (rendered := renderer.render(event, encoded)) is not None:
                batch.append(rendered)
                last_type = rendered.type
        self._publish_batch(batch)
        self.output.record_events(events, run)
        self._context.counters.count(events)
        self._context.counters.tick_seconds.labels("emit").observe((self._context.clock() - started) / 1_000_000)
        statuses = [event for event in events if isinstance(event, RunStatus)]
        self._loop.call_soon_threadsafe(self._update_record, run.status(), statuses, last_type)

    def _publish_batch(self, batch: list[StreamEvent]) -> None:
        if batch:
            self.output.write_lines([entry.data for entry in self.stream.put(batch)])

    def _update_record(self, now: RunStatus, statuses: list[RunStatus], last_type: str | None) -> None:
        """Update the record and wake all readers; called on the event loop."""
        record = self.record
        record.update(now, self._context.clock())
        record.last_event_type = last_type or record.last_event_type
        self.output.dirty = True
        for status in statuses:
            state = RunState(status.state)
            if state in ENDED and record.state not in ENDED:
                record.mark_ended(state, self._context.clock())
                if state is RunState.ERROR:
                    log.error("sim.run.failed", run_id=record.run_id, code=record.last_error and record.last_error.code)
                    self._ending = self._loop.create_task(self._finish_in_background())
            elif state not in ENDED and record.state is not RunState.STOPPING:
                record.state = state
            self.publish_status()
        self.wake()

    def status_event(self) -> StreamEvent:
        """The status of the run, for every reader."""
        form = {name: getattr(self.record, name) for name in STATUS_FIELDS}
        form |= {"type": "run_status", "state": self.record.state.value, "current_phase": self.phase}
        return StreamEvent("run_status", None, encode(form), terminal=self.record.state in ENDED)

    @property
    def phase(self) -> str | None:
        """The phase of a running tick."""
        return "payments" if self._ticks.working else None

    def publish_status(self) -> None:
        self.stream.put([self.status_event()])
        self._reserve_numbers()
        self.wake()

    def demonstrate(self, event: StreamEvent) -> str:
        """Publish what is no event of the engine; returns its id."""
        (entry,) = self.stream.put([event])
        self.wake()
        return entry.id

    def listen(self, wake: asyncio.Event) -> Callable[[], None]:
        self._listeners.add(wake)
        return lambda: self._listeners.discard(wake)

    def follow(self, equivalent: str, after_id: str | None) -> Cursor:
        """A cursor in the stream; raises `EventGone`."""
        cursor = self.stream.subscribe(equivalent, after_id, self.status_event())
        self.wake()
        return cursor

    @property
    def followers(self) -> int:
        return len(self._listeners)

    def wake(self) -> None:
        for event in self._listeners:
            event.set()

    # Queries

    async def ask(self, question: Callable[[Run], T]) -> T:
        """Query the engine on its thread; raises `WorldBroken` if the run has ended."""
        if self.host is None:
            raise WorldBroken(f"The run {self.record.run_id} has ended")
        return await self.host.ask(lambda driver: question(_run(driver.engine)))

    @property
    def is_open(self) -> bool:
        return self.host is not None

    @property
    def journal_bytes(self) -> int | None:
        if self.host is None:
            return None
        journal = self.host.driver.journal
        return journal.total_bytes if isinstance(journal, FileJournal) else None

    async def flush_measured(self) -> None:
        """Send all measurements to the store thread."""
        if self.host is not None:
            await self.host.ask(lambda _: self.output.write_measured())

    # Event numbers

    def _reserve_numbers(self) -> None:
        if self.stream.last_seq + SEQ_BLOCK // 2 > self.record.seq_reserved and self.record.state not in ENDED:
            self.record.seq_reserved = self.stream.last_seq + SEQ_BLOCK
            self.output.save()


def _run(engine: object) -> Run:
    assert isinstance(engine, Run)
    return engine
