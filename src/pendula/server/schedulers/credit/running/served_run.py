"""One run while it is served: its engine, its time, those who follow it, and what is written down of it.

Commands and ticks are applied by the engine's own thread and told when they are durable. What is known of the run (its
record) is changed by the event loop alone. A run that has ended has no engine: it is opened again to begin anew.
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
from pendula.credit.served.event_forms import StreamEncoder, note_form, status_event
from pendula.credit.served.lifecycle import ENDED, RunState, Verb, after
from pendula.credit.served.records import Record
from pendula.credit.served.ring import Bounds, Cursor, Ring, StreamEvent
from pendula.credit.settings import effective
from pendula.kernel.canonical import Json
from pendula.kernel.commit import Busy
from pendula.kernel.driver import DiskLow, JournalFull, Published, Stream
from pendula.kernel.engine import Outcome
from pendula.kernel.errors import PendulaError, WorldBroken
from pendula.kernel.journal import FileJournal
from pendula.server.hosting.engine_host import EngineHost, real_disk
from pendula.server.schedulers.credit.running.counters import FrameWriter
from pendula.server.schedulers.credit.running.metronome import Metronome
from pendula.server.schedulers.credit.running.run_writer import RunContext, RunWriter

METRONOME = "metronome"
SLOW_SECONDS = 2.0
PACE_SECONDS = 8
MINUTE_SECONDS = 60
SEQ_BLOCK = 100_000
ALL = 1_000_000
TICK_FAILED: dict[str, Json] = {"kind": "REAL_MODE_TICK_FAILED"}
# What of a failed tick is not our mistake and can be mended outside, by the code of the trouble.
LAST_ERRORS = {
    DiskLow.code: LastError(DiskLow.code, TICK_FAILED),
    JournalFull.code: LastError(JournalFull.code, TICK_FAILED),
}

T = TypeVar("T")

log = structlog.get_logger("pendula.server")


class StopRequest(Struct, frozen=True):
    """Who wants a run to stop, and why."""

    source: str | None
    reason: str | None
    client: str | None


class Batch(Struct, frozen=True):
    """What became durable, on its way from the engine's thread to the event loop."""

    statuses: list[RunStatus]
    last_type: str | None
    now: RunStatus


class ServedRun:
    """Everything is called on the event loop, except `_feed`, which belongs to the engine's thread."""

    def __init__(self, record: Record, context: RunContext) -> None:
        self.record = record
        self.writer = RunWriter(record, context)
        self.late_beats = 0
        self._context = context
        settings = context.settings
        bounds = Bounds(
            settings.event_buffer_size, settings.event_buffer_ttl_sec * 1_000_000, settings.sse_sub_queue_max
        )
        self.ring = Ring(record.run_id, context.clock, bounds, record.seq_reserved)
        self.frames = FrameWriter()
        self._changing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._listeners: set[asyncio.Event] = set()
        self._host: EngineHost | None = None
        self._stream: Stream[Event] | None = None
        self._metronome = self._new_metronome()
        self._ending: asyncio.Task[None] | None = None
        self._samples: deque[tuple[float, int, int]] = deque()
        self._slow_told = False
        self._failed_ticks = 0
        self.actions: dict[str, tuple[str, asyncio.Future[Any]]] = {}

    # Beginning and ending

    async def open(self, config: Json) -> None:
        """Open the engine, on a new journal with `config` or on the one that is there; raises what prevents it."""
        host = self._context.make_host(self.record, config)
        await host.open(real_disk(self._context.journal(self.record.run_id)), config)
        if host.failure is not None:
            await host.retire()
            raise host.failure
        self._host = host
        self._stream = host.driver.subscribe(None)
        host.driver.on_publish(self._feed)

    async def begin(self) -> None:
        """The run is there: it is told, and its time begins."""
        record = self.record
        record.begun(self._context.clock())
        await self._start(again=False)
        self.tell_status()
        self.writer.save()
        log.info("sim.run.start", run_id=record.run_id, scenario_id=record.scenario_id, seed=record.seed)

    async def do(self, command: Commands, by: str, request_id: str | None) -> Outcome[Event]:
        """A command that leaves the run open; raises what broke the engine."""
        if self._host is None:
            raise WorldBroken(f"The run {self.record.run_id} has ended")
        try:
            _, outcome = await self._host.submit(command, by, request_id)
        except WorldBroken as broken:
            if self._host is not None and self._host.failure is not None:
                self._broke(broken)
            raise
        return outcome

    async def steer(self, verb: Verb, command: Commands, by: str, request_id: str | None) -> None:
        """Pause or resume; where that does not apply, the run is told as it stands."""
        async with self._changing:
            if after(self.record.state, verb) is self.record.state:
                self.tell_status()
                return
            await self.do(command, by, request_id)
            self.writer.save()
        log.info(f"sim.run.{verb.value}", run_id=self.record.run_id)

    async def stop(self, asked: StopRequest, by: str, request_id: str | None) -> None:
        """End the run; when this returns nothing of it goes on any more."""
        async with self._changing:
            record = self.record
            if after(record.state, Verb.STOP) is record.state:
                self.tell_status()
                return
            record.state, record.stop_requested_at = RunState.STOPPING, moment(self._context.clock())
            record.stop_source, record.stop_reason, record.stop_client = asked.source, asked.reason, asked.client
            self.tell_status()
            try:
                await self.do(Stop(asked.source, asked.reason), by, request_id)
            except PendulaError as trouble:
                unclean = LastError(Code.INTERNAL_ERROR.value, {"kind": "UNCLEAN_END"})
                self._fail(LAST_ERRORS.get(trouble.code, unclean), trouble)
            await self._finish()
        log.info("sim.run.stop", run_id=record.run_id, scenario_id=record.scenario_id, source=asked.source)

    async def restart(self, by: str, request_id: str | None) -> None:
        """Tick 0 again, with the ledger of the scenario; numbers of events go on."""
        await self.ended()
        async with self._changing:
            if self._host is None:
                await self.open(None)
            else:
                await self._metronome.stop()
            # Begun before the command is told: what it tells is the first word of the new life.
            self.record.begun(self._context.clock())
            await self.do(Restart(), by, request_id)
            self.actions.clear()
            await self._start(again=True)
            self.writer.save()
        log.info("sim.run.restart", run_id=self.record.run_id)

    async def _start(self, *, again: bool) -> None:
        assert self._host is not None
        settings = effective(_run(self._host.driver.engine).settings)
        # In a thread: it waits for the disk several times.
        await asyncio.to_thread(self.writer.begin, settings, again=again)
        self._metronome = self._new_metronome()
        self._metronome.start()

    async def ended(self) -> None:
        """Wait until a run that a guardrail has ended is closed."""
        if self._ending is not None:
            await self._ending

    def _fail(self, error: LastError, trouble: PendulaError) -> None:
        log.error("sim.run.failed", run_id=self.record.run_id, code=trouble.code, problem=trouble.message)
        now = self._context.clock()
        self.record.failed(error, now)
        self.record.ended(RunState.ERROR, now)
        self.tell_status()

    def _broke(self, trouble: PendulaError) -> None:
        """The engine cannot go on: the run has failed, whatever it was about to do."""
        if self.record.state in ENDED or self._ending is not None:
            return
        if self._context.disk_low():
            self._end_failed(LAST_ERRORS[DiskLow.code], trouble)
        else:
            self._end_failed(LastError(Code.INTERNAL_ERROR.value, {"kind": "NOT_RECORDED"}), trouble)

    def _end_failed(self, error: LastError, trouble: PendulaError) -> None:
        self._fail(error, trouble)
        self._ending = self._loop.create_task(self._end_later())

    async def _end_later(self) -> None:
        async with self._changing:
            await self._finish()
        self._ending = None

    async def _finish(self) -> None:
        """Close everything that a run needs only while it goes on."""
        await self._metronome.stop()
        host, self._host = self._host, None
        if host is None:
            return
        self.record.last_seq = self.record.seq_reserved = self.ring.last_seq
        await self.writer.finish(_run(host.driver.engine))
        await host.retire()

    # Time

    def _new_metronome(self) -> Metronome:
        settings = self._context.settings
        heartbeat, pace = settings.heartbeat_ms / 1000, settings.tick_period_ms / 1000
        return Metronome(heartbeat, pace, self._beat, self._wanted, self._tick, self._missed)

    def _wanted(self, late: float) -> bool:
        """Whether the run is to have a tick now."""
        self._context.counters.tick_lag.observe(late)
        return self.record.state is RunState.RUNNING

    def _beat(self) -> None:
        self._measure_pace()
        self.tell_status()
        if self.record.state not in ENDED:
            # That a run has ended is stored when its files are complete; until then a crash leaves it unfinished.
            self.writer.save_if_due()

    def _missed(self) -> None:
        self.late_beats += 1

    async def _tick(self) -> None:
        counters, begun = self._context.counters, self._loop.time()
        counters.in_flight.inc()
        try:
            await self.do(Tick(), METRONOME, None)
            self._tick_passed()
        except Busy:
            # The commands that wait come first; this beat has no tick.
            self._missed()
        except PendulaError as trouble:
            self._tick_failed(trouble)
        finally:
            counters.in_flight.dec()
        elapsed = self._loop.time() - begun
        counters.tick_seconds.labels("execute").observe(elapsed)
        if elapsed > SLOW_SECONDS and not self._slow_told:
            self._slow_told = True
            log.warning(
                "sim.tick.slow", run_id=self.record.run_id, tick=self.record.tick_index - 1, seconds=round(elapsed, 3)
            )

    def _tick_failed(self, trouble: PendulaError) -> None:
        """A tick that could not be made, such as on a full disk, may pass; so many in a row that the guardrail for
        failed ticks says end the run. Each such row is one line in the log, however long it is."""
        record, host = self.record, self._host
        if host is None or record.state is not RunState.RUNNING:
            return
        self._failed_ticks += 1
        error = LAST_ERRORS.get(trouble.code) or LastError(Code.INTERNAL_ERROR.value, TICK_FAILED)
        most = _run(host.driver.engine).settings.max_consec_tick_failures
        if 0 < most <= self._failed_ticks:
            self._end_failed(error, trouble)
            return
        if self._failed_ticks == 1:
            record.failed(error, self._context.clock())
            self.tell_status()
            self.writer.dirty = True
            if most <= 0:
                log.warning("sim.tick.failed", run_id=record.run_id, code=trouble.code, problem=trouble.message)

    def _tick_passed(self) -> None:
        failed, self._failed_ticks = self._failed_ticks, 0
        if failed:
            log.warning("sim.tick.again", run_id=self.record.run_id, failed_before=failed)

    def _measure_pace(self) -> None:
        """Actions a second over the last seconds, and technical errors of the last minute."""
        now, record = self._loop.time(), self.record
        self._samples.append((now, record.attempts_total, record.errors_total))
        while self._samples[0][0] < now - MINUTE_SECONDS:
            self._samples.popleft()
        record.errors_last_1m = max(0, record.errors_total - self._samples[0][2])
        since, attempts, _ = next(one for one in self._samples if one[0] >= now - PACE_SECONDS)
        done, seconds = max(0, record.attempts_total - attempts), now - since
        record.ops_sec = Decimal(round(100 * done / seconds)) / 100 if seconds > 0 else Decimal(0)

    # What is told

    def _feed(self) -> None:
        """On the engine's thread, after a flush: what became durable goes into the ring and into the files."""
        host = self._host
        if host is None or self._stream is None:
            # The last flush, of a run that is being closed: there is nothing more to tell.
            return
        run = _run(host.driver.engine)
        events = [item.event for item in self._stream.take(ALL) if isinstance(item, Published)]
        if not events:
            # A flush after a command that was not taken, as on a full disk: nothing of the run has changed.
            return
        begun = self._context.clock()
        encoder = StreamEncoder(run.network, moment(begun), run.settings.emit_tick_events)
        statuses: list[RunStatus] = []
        told: list[StreamEvent] = []
        last_type = None
        for event in events:
            match event:
                case RunStatus():
                    statuses.append(event)
                case Note():
                    self._put(told)
                    told = []
                    self.writer.lines([self.ring.number(note_form(event))])
                case _:
                    form = encoder.encode_event(event)
                    if form is not None:
                        told.append(form)
                        last_type = form.type
        self._put(told)
        self.writer.heard(events, run)
        self._context.counters.count(events)
        self._context.counters.tick_seconds.labels("emit").observe((self._context.clock() - begun) / 1_000_000)
        self._loop.call_soon_threadsafe(self._heard, Batch(statuses, last_type, run.status()))

    def _put(self, told: list[StreamEvent]) -> None:
        if told:
            self.writer.lines([entry.data for entry in self.ring.put(told)])

    def _heard(self, batch: Batch) -> None:
        """On the event loop: the record follows, and everybody who listens looks again."""
        record = self.record
        record.heard(batch.now, self._context.clock())
        record.last_event_type = batch.last_type or record.last_event_type
        self.writer.dirty = True
        for status in batch.statuses:
            state = RunState(status.state)
            if state in ENDED and record.state not in ENDED:
                record.ended(state, self._context.clock())
                if state is RunState.ERROR:
                    log.error("sim.run.failed", run_id=record.run_id, code=record.last_error and record.last_error.code)
                    self._ending = self._loop.create_task(self._end_later())
            elif state not in ENDED and record.state is not RunState.STOPPING:
                record.state = state
            self.tell_status()
        self.wake()

    def status_event(self) -> StreamEvent:
        return status_event(self.record, self.phase, terminal=self.record.state in ENDED)

    @property
    def phase(self) -> str | None:
        """What a tick that is under way does."""
        return "payments" if self._metronome.ticking else None

    def tell_status(self) -> None:
        self.ring.put([self.status_event()])
        self._reserve_numbers()
        self.wake()

    def tell(self, told: StreamEvent) -> str:
        """Something that no engine did: a demonstration. Returns its id."""
        (entry,) = self.ring.put([told])
        self.wake()
        return entry.id

    def listen(self, wake: asyncio.Event) -> Callable[[], None]:
        self._listeners.add(wake)
        return lambda: self._listeners.discard(wake)

    def follow(self, equivalent: str, after_id: str | None) -> Cursor:
        """A place in the stream; raises `EventGone`."""
        place = self.ring.subscribe(equivalent, after_id, self.status_event())
        self.wake()
        return place

    @property
    def followers(self) -> int:
        return len(self._listeners)

    def wake(self) -> None:
        for event in self._listeners:
            event.set()

    # What is asked

    async def ask(self, question: Callable[[Run], T]) -> T:
        """Read-only work on the engine's thread; raises `WorldBroken` when there is none."""
        if self._host is None:
            raise WorldBroken(f"The run {self.record.run_id} has ended")
        return await self._host.ask(lambda driver: question(_run(driver.engine)))

    @property
    def label(self) -> str:
        """What counters call the engine; 0 where there is none."""
        return "0" if self._host is None else self._host.label

    @property
    def host(self) -> EngineHost | None:
        """The engine, for reading its past; None where there is none."""
        return self._host

    @property
    def is_open(self) -> bool:
        return self._host is not None

    @property
    def journal_bytes(self) -> int | None:
        if self._host is None:
            return None
        journal = self._host.driver.journal
        return journal.total_bytes if isinstance(journal, FileJournal) else None

    async def flush_measured(self) -> None:
        """Everything that was measured so far is on its way to the store."""
        if self._host is not None:
            await self._host.ask(lambda _: self.writer.write_measured())

    # Numbers

    def _reserve_numbers(self) -> None:
        if self.ring.last_seq + SEQ_BLOCK // 2 > self.record.seq_reserved and self.record.state not in ENDED:
            self.record.seq_reserved = self.ring.last_seq + SEQ_BLOCK
            self.writer.save()


def _run(engine: object) -> Run:
    assert isinstance(engine, Run)
    return engine
