"""The loop of one served fleet: every tick period it applies reports and requests and sends commands.

One task runs it, so the locks have one writer. Requests wait for the next tick, whose outcome answers them. The engine
reports late ticks; the loop never catches up in a burst, and raises an alert when it falls behind.

A request that makes a tick fail must not fail the others: after a failed tick comes one without requests, and then the
requests of the failed tick are tried in halves, until only the one that causes the failure is rejected.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import structlog

from pendula.fleet.commands import Tick
from pendula.fleet.contracts import HoldReason, OperatorAction, OperatorAnswer
from pendula.fleet.engine import LOGGING_DEGRADED, LOGGING_RESTORED, FleetEngine, took_place
from pendula.fleet.events import FleetEvent, OperatorAnswered, ReportDropped
from pendula.fleet.gateway import Selected, abilities, read_gateway
from pendula.fleet.runs import Bundler, RingJournal, Watch
from pendula.fleet.tasks import TaskEvent
from pendula.fleet.tasks.model import TaskEventRefused
from pendula.fleet.tasks.operators import is_same
from pendula.fleet.tick.observing import LastDropped, TruckReport
from pendula.fleet.tick.reasons import code_of, hold_reason
from pendula.fleet.tick.records import Record
from pendula.fleet.units import MILLION
from pendula.kernel import canonical
from pendula.kernel.commit import Busy, Closed
from pendula.kernel.driver import EngineDefect
from pendula.kernel.engine import Outcome
from pendula.kernel.errors import InputRefused, PendulaError, in_words
from pendula.kernel.journal import FileJournal
from pendula.server.errors import HttpRefused
from pendula.server.runtime.engine_host import EngineHost
from pendula.server.schedulers.fleet.alerts import AlertNow, Punctuality, PunctualityChange, standing_alerts
from pendula.server.schedulers.fleet.metrics import FleetMetrics
from pendula.server.schedulers.fleet.trucks import RemoteTrucks, SimulatedTrucks, Simulation, Trucks
from pendula.server.schedulers.fleet.views import map_of
from pendula.server.views import State, encode_view

PendingAction = tuple[OperatorAction, asyncio.Future[OperatorAnswer]]
PendingEvent = tuple[TaskEvent, asyncio.Future[TaskEventRefused | None]]
PendingWrite = tuple[None, asyncio.Future[None]]

# Unknown trucks come from outside, so their number is limited.
MOST_UNKNOWN = 16
_MALFORMED = "REPORT_MALFORMED"
_OUTDATED = "REPORT_OUTDATED"
MANAGER = "fleet"
FALLS_BEHIND = "FLEET_FALLS_BEHIND"
KEEPS_UP = "FLEET_KEEPS_UP"
MOST_ALERTS = 200
MOST_WAITING = 256
# The fleet stops after this many failed ticks in a row.
MOST_FAILED = 10
ANSWER_SECONDS = 10.0

R = TypeVar("R")
A = TypeVar("A")
log = structlog.get_logger("pendula.server")


@dataclass(frozen=True, slots=True)
class RequestBatch:
    """The requests of one tick."""

    actions: Sequence[PendingAction] = ()
    events: Sequence[PendingEvent] = ()

    @property
    def count(self) -> int:
        return len(self.actions) + len(self.events)

    def halves(self) -> tuple[Self, Self]:
        """Two non-empty parts of at least two requests."""
        a, e = len(self.actions) // 2, (len(self.events) + 1) // 2
        return type(self)(self.actions[:a], self.events[:e]), type(self)(self.actions[a:], self.events[e:])

    def unanswered(self) -> Self:
        """Without requests that were cancelled or timed out."""
        return type(self)(_unanswered(self.actions), _unanswered(self.events))


@dataclass(frozen=True, slots=True)
class Waiting:
    """All that waits for one tick. `writes` wait until the journal has the tick; `retried_writes` are those of the tick
    before, which failed."""

    batch: RequestBatch
    writes: Sequence[PendingWrite]
    retried_writes: Sequence[PendingWrite]

    def all(self) -> Iterator[tuple[object, asyncio.Future[Any]]]:
        for line in (self.batch.actions, self.batch.events, self.writes, self.retried_writes):
            yield from line

    def answer(self, events: Sequence[FleetEvent]) -> None:
        """Answer the requests with the events of their tick; cancelled requests are skipped."""
        answers = {
            event.answer.actionId: event.answer.answer for event in events if isinstance(event, OperatorAnswered)
        }
        for action, action_answer in self.batch.actions:
            if not action_answer.done() and action.actionId in answers:
                action_answer.set_result(answers[action.actionId])
        refusals = [event for event in events if isinstance(event, TaskEventRefused)]
        for task_event, event_answer in self.batch.events:
            if not event_answer.done():
                refusal = next((refusal for refusal in refusals if refusal.event == task_event), None)
                event_answer.set_result(refusal)
        for _, write in (*self.retried_writes, *self.writes):
            if not write.done():
                write.set_result(None)


@dataclass(slots=True)
class RequestQueue:
    """Everything that waits for ticks to come. Only the event loop uses it."""

    actions: list[PendingAction] = field(default_factory=list)
    events: list[PendingEvent] = field(default_factory=list)
    writes: list[PendingWrite] = field(default_factory=list)
    _retried_writes: Sequence[PendingWrite] = ()
    # Parts of the requests of a failed tick, each for a tick of its own.
    _parts: deque[RequestBatch] = field(default_factory=deque)
    _skip_requests: bool = False

    def take(self) -> Waiting:
        """Take what the next tick answers."""
        waiting = Waiting(self._next_batch(), self.writes, self._retried_writes)
        self.writes, self._retried_writes, self._skip_requests = [], (), False
        return waiting

    def _next_batch(self) -> RequestBatch:
        if self._skip_requests:
            return RequestBatch()
        while self._parts:
            part = self._parts.popleft().unanswered()
            if part.count:
                return part
        now, self.actions = _first_of_each_id(self.actions)
        events, self.events = self.events, []
        return RequestBatch(now, events)

    def failed(self, waiting: Waiting, error: PendulaError, *, retried: bool, may_be_cause: bool) -> None:
        """Handle a failed tick, which left no trace.

        `retried`: the next tick repeats its operations, so its writes wait for that. `may_be_cause`: one of its
        requests may have made it fail; several requests wait to be tried in parts, a single one is rejected.
        """
        self._skip_requests = True
        self._retried_writes, writes = (waiting.writes, ()) if retried else ((), waiting.writes)
        rejected = waiting.batch
        if may_be_cause and rejected.count > 1:
            self._parts.extendleft(reversed(rejected.halves()))
            rejected = RequestBatch()
        reject(Waiting(rejected, writes, waiting.retried_writes).all(), error)

    def end(self, error: PendulaError) -> None:
        """Reject everything: no tick comes any more."""
        reject((*self.actions, *self.events, *self.writes, *self._retried_writes), error)
        for part in self._parts:
            reject((*part.actions, *part.events), error)


def reject(pending: Iterable[tuple[object, asyncio.Future[Any]]], error: PendulaError) -> None:
    for _, answer in pending:
        if not answer.done():
            answer.set_exception(error)


def _unanswered(pending: Sequence[tuple[Any, asyncio.Future[Any]]]) -> list[Any]:
    return [entry for entry in pending if not entry[1].done()]


def _first_of_each_id(pending: Sequence[PendingAction]) -> tuple[list[PendingAction], list[PendingAction]]:
    """The actions of this tick and those of the next. Answers are matched by action id, so a different action with the
    same id waits for the next tick and is rejected there; a repeated action gets the same answer."""
    first: dict[str, OperatorAction] = {}
    now: list[PendingAction] = []
    later: list[PendingAction] = []
    for entry in pending:
        action, _ = entry
        (now if is_same(first.setdefault(action.actionId, action), action) else later).append(entry)
    return now, later


def dropped_after(
    before: Mapping[str, LastDropped], command: Tick, events: Iterable[FleetEvent], records: Sequence[Record]
) -> Mapping[str, LastDropped]:
    """The dropped reports after a tick. An accepted report removes the entry of its truck."""
    dropped = [event for event in events if isinstance(event, ReportDropped)]
    if not dropped and not before:
        return before
    after = dict(before)
    for event in dropped:
        # Moved to the end: the oldest unknown trucks are dropped first.
        after.pop(event.robot_id, None)
        after[event.robot_id] = LastDropped(event.code, command.now_ms, _stamp(event, command.reports))
    known = {record.robot_id: record for record in records}
    unknown = [name for name in after if name not in known]
    over = {
        *unknown[:-MOST_UNKNOWN],
        *(name for name, record in known.items() if _accepted_since(record, after.get(name))),
    }
    return {name: report for name, report in after.items() if name not in over}


def _stamp(dropped: ReportDropped, reports: Iterable[TruckReport]) -> int | None:
    """The time of the report; of several in one tick, the time farthest off."""
    stamps = [report.at_ms for report in reports if report.robot_id == dropped.robot_id]
    if not stamps or dropped.code == _MALFORMED:
        return None
    return min(stamps) if dropped.code == _OUTDATED else max(stamps)


def _accepted_since(record: Record, dropped: LastDropped | None) -> bool:
    return dropped is not None and record.pose is not None and record.report_ms >= dropped.now_ms


# Also logged: they concern the machine, not a truck.
JOURNAL_ALERTS = (LOGGING_DEGRADED, LOGGING_RESTORED)


class FleetBusy(HttpRefused):
    """The next tick of the fleet is full. Try again in a moment."""

    code = "fleet_busy"
    status = 503
    retry_after = 1


class FleetStopped(HttpRefused):
    """No tick came in time: the fleet is closed, or its engine is broken."""

    code = "fleet_stopped"
    status = 503
    retry_after = 1


class ServedJournal(RingJournal):
    """The journal of a served fleet. Closing it writes pending incident bundles, and logs which records are lost."""

    def __init__(self, inner: FileJournal) -> None:
        super().__init__(inner)
        self.bundler = None if self.directory is None else Bundler(self, self.directory)

    def close(self) -> None:
        if self.bundler is not None:
            self.bundler.close()
        super().close()
        if self.degraded is not None:
            lost = f"records after {self.written_n} were not written: {self.degraded}"
            log.error("journal_incomplete", path=str(self.directory), problem=lost)


class FleetLoop:
    """One served fleet. Only the event loop uses it."""

    def __init__(self, host: EngineHost, simulation: Simulation | None, metrics: FleetMetrics) -> None:
        self.host = host
        self.simulation = simulation
        # Alerts from before the fleet was opened whose cause still exists.
        self.alerts: deque[AlertNow] = deque(standing_alerts(self.engine), maxlen=MOST_ALERTS)
        self.trucks: Trucks = (
            RemoteTrucks(self.engine.traffic.robot_ids)
            if simulation is None
            else SimulatedTrucks(self.engine, simulation)
        )
        self._abilities = abilities(self.engine.traffic.records)
        # Reports about operations from a failed tick; the next tick repeats them.
        self._retried_events: tuple[TaskEvent, ...] = ()
        self._failures = 0
        self._metrics = metrics
        self._metrics_failed = False
        self.watch = Watch(self.engine.traffic.records, self.engine.config.traffic)
        self._queue = RequestQueue()
        self._map: asyncio.Future[bytes] | None = None
        # A restored state knows nothing about its trucks until they report.
        self._restarted = self.engine.traffic.tick_number > 0
        journal = host.driver.journal
        assert isinstance(journal, ServedJournal)
        self._journal = journal
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(lambda _: self._ended())

    @property
    def engine(self) -> FleetEngine:
        engine = self.host.driver.engine
        assert isinstance(engine, FleetEngine)
        return engine

    @property
    def folder(self) -> Path | None:
        """The directory of the journal; None if it has none."""
        return self._journal.directory

    def require_running(self) -> None:
        """Raises `FleetStopped`."""
        if self._task.done():
            raise self._stopped()

    def require_space(self) -> None:
        """Raises `FleetBusy` if too many requests wait for a write."""
        _require_space(self._queue.writes)

    def _stopped(self) -> FleetStopped:
        return FleetStopped(f"Fleet {self.host.name} has stopped; see the server log")

    def _mark_stopped(self, error: Exception) -> None:
        """Log why the fleet has stopped, and show it in its state."""
        if isinstance(error, PendulaError):
            problem = error.message
            log.error("fleet_stopped", fleet=self.host.name, code=error.code, problem=problem)
        else:
            problem = in_words(error)
            log.error("fleet_stopped", fleet=self.host.name, code="internal_error", problem=problem, exc_info=error)
        self.host.mark_broken(FleetStopped(f"The fleet has stopped: {problem}. Close it and open it again"))

    def _ended(self) -> None:
        self._queue.end(self._stopped())
        self._count(lambda: self._metrics.forget(self.host.name))

    async def map(self) -> bytes:
        """The encoded map: it never changes, so it is encoded once, in a thread, to keep ticks on time."""
        if self._map is None or (self._map.done() and self._map.exception() is not None):
            self._map = asyncio.ensure_future(asyncio.to_thread(self._encode_map))
        return await asyncio.shield(self._map)

    def _encode_map(self) -> bytes:
        return encode_view(map_of(self.engine, simulated=self.simulation is not None))

    async def act(self, action: OperatorAction) -> OperatorAnswer:
        """Submit an operator action; the next tick answers it. Raises `NotCanonical`."""
        # Checked here: a value that cannot be encoded would make the tick fail.
        canonical.encode(action)
        return await self._submit(self._queue.actions, action)

    async def report_task_event(self, event: TaskEvent) -> TaskEventRefused | None:
        """Submit an event about tasks; the refusal, or None if it was accepted. Raises `NotCanonical`."""
        canonical.encode(event)
        return await self._submit(self._queue.events, event)

    async def wait_until_written(self) -> None:
        """Wait until the journal has a tick with every report received so far."""
        await self._submit(self._queue.writes, None)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _submit(self, line: list[tuple[R, asyncio.Future[A]]], request: R) -> A:
        self.require_running()
        _require_space(line)
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        line.append((request, answer))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            raise FleetStopped(
                f"No tick within {ANSWER_SECONDS:g} s; the request may or may not have been applied"
            ) from None

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        speed = 1 if self.simulation is None else self.simulation.speed
        period = self.engine.config.traffic.tick_period_ms
        begun, began_ms = loop.time(), self.engine.now() + self._downtime_ms()
        due, every = begun, period / 1000 / speed
        punctuality = Punctuality(int(every * MILLION))
        while not self.host.closed and self.host.state is State.READY:
            now_ms = self.engine.next_due() if self.simulation else began_ms + int((loop.time() - begun) * 1000)
            try:
                await self._tick(now_ms, period)
            except Closed:
                return
            except Exception as error:
                # The watchdogs stop the trucks; clients must see that the fleet has stopped.
                self._mark_stopped(error)
                return
            lost = max(0.0, loop.time() - due - every)
            self._report_punctuality(punctuality.ticked(int(lost * MILLION)), lost)
            due += every + lost
            await asyncio.sleep(max(0.0, due - loop.time()))

    def _report_punctuality(self, change: PunctualityChange | None, lost_s: float) -> None:
        """Count lost time; a change becomes an alert and a log entry."""
        self._count(lambda: self._metrics.lost(self.host.name, lost_s))
        if change is None:
            return
        code = FALLS_BEHIND if change.behind else KEEPS_UP
        tick, now = self.engine.traffic.tick_number, self.engine.now()
        self.alerts.append(AlertNow(tick, now, "alert", None, code=code, robot_ids=[], message=change.message))
        log_change = log.warning if change.behind else log.info
        log_change(code.lower(), fleet=self.host.name, problem=change.message)

    def _downtime_ms(self) -> int:
        """The assumed downtime after a restart with real trucks: the real one is unknown, and moving trucks drove on
        until they stopped. Long enough that they count as offline; otherwise their movement would be a pose jump."""
        params = self.engine.config.traffic
        return params.robot_offline_ms + params.tick_period_ms if self._restarted and self.simulation is None else 0

    async def _tick(self, now_ms: int, period_ms: int) -> None:
        waiting = self._queue.take()
        try:
            await self._decide(now_ms, period_ms, waiting)
        except BaseException:
            # Also when cancelled: its requests get no other answer.
            reject(waiting.all(), self._stopped())
            raise

    async def _decide(self, now_ms: int, period_ms: int, waiting: Waiting) -> None:
        received = self.trucks.poll()
        operations: tuple[TaskEvent, ...] = (*received.over, *self.trucks.take_failed())
        command = Tick(
            now_ms,
            read_gateway(received).reports,
            task_events=(*self._retried_events, *operations, *(event for event, _ in waiting.batch.events)),
            operator_actions=tuple({action.actionId: action for action, _ in waiting.batch.actions}.values()),
            restarted=self._restarted,
        )
        command = self.engine.with_news(command, *self._journal.news())
        before = asyncio.get_running_loop().time()
        try:
            outcome = (await self.host.submit(command, MANAGER, None)).outcome
        except Exception as error:
            self._handle_failure(error, waiting, operations)
            return
        seconds = asyncio.get_running_loop().time() - before
        self._failures, self._retried_events = 0, ()
        if outcome.refusal is None:
            self._journal.mark_reported(command.missing)
        self._restarted = self._restarted and not took_place(outcome)
        # Only this task submits ticks, so the engine's orders are those of this tick.
        engine = self.engine
        orders = engine.orders_out
        self.trucks.announce(orders.routes)
        self.trucks.operate(orders.operations if self.simulation else engine.dispatch.operations())
        if not self._is_late(before, period_ms):
            self.trucks.send(Selected(orders.aims, self._abilities))
        self.trucks.follow(engine.traffic.records)
        engine.dropped = dropped_after(engine.dropped, command, outcome.events, engine.traffic.records)
        self._record_alerts(engine, outcome.events)
        if self._journal.bundler is not None:
            self._journal.bundler.note(outcome.events, engine.now())
        waiting.answer(outcome.events)
        self._count(lambda: self._count_tick(outcome, seconds, period_ms))
        await asyncio.to_thread(self.trucks.drive, now_ms + period_ms)

    def _count_tick(self, outcome: Outcome[FleetEvent], seconds: float, period_ms: int) -> None:
        engine = self.engine
        self._metrics.ticked(self.host.name, seconds, outcome.events)
        self._metrics.waited(self.host.name, period_ms, _speeds_and_codes(engine))
        if engine.last is not None and took_place(outcome):
            self.watch.note(engine.last)

    def _count(self, count: Callable[[], None]) -> None:
        """Update metrics; an error must not stop the fleet, and is logged once."""
        try:
            count()
        except Exception:
            if not self._metrics_failed:
                log.exception("metrics_failed", fleet=self.host.name)
            self._metrics_failed = True

    def _is_late(self, began: float, period_ms: int) -> bool:
        """Whether the commands of a tick are too old for real trucks; their watchdogs stop them."""
        return self.simulation is None and asyncio.get_running_loop().time() - began > 2 * period_ms / 1000

    def _handle_failure(self, error: Exception, waiting: Waiting, operations: tuple[TaskEvent, ...]) -> None:
        """Handle a tick that left no trace: find the request that causes it, and repeat reports about operations.

        Raises `error` if the next tick would fail as well: the journal cannot be written, or `MOST_FAILED` ticks
        without requests have failed in a row.
        """
        mistake = None if isinstance(error, PendulaError) else error
        failure = error if isinstance(error, PendulaError) else EngineDefect(f"A tick failed: {in_words(error)}")
        busy = isinstance(failure, Busy)
        self._failures += 0 if busy or waiting.batch.count else 1
        if not isinstance(failure, Busy | EngineDefect | InputRefused) or self._failures >= MOST_FAILED:
            reject(waiting.all(), failure)
            raise error
        # Repeated once only: after that the operation times out, or the gateway posts its end again.
        self._retried_events = operations
        self._queue.failed(waiting, failure, retried=bool(operations), may_be_cause=not busy)
        log.error("tick_failed", fleet=self.host.name, code=failure.code, problem=failure.message, exc_info=mistake)

    def _record_alerts(self, engine: FleetEngine, events: Sequence[FleetEvent]) -> None:
        tick, now = engine.traffic.tick_number, engine.now()
        for event in events:
            alert = AlertNow.of(event, tick, now, engine.dropped)
            if alert is None:
                continue
            self.alerts.append(alert)
            if alert.code in JOURNAL_ALERTS:
                log.warning(alert.code.lower(), fleet=self.host.name, problem=alert.message)


def _speeds_and_codes(engine: FleetEngine) -> Iterator[tuple[int, HoldReason, str]]:
    for record in engine.traffic.records:
        yield record.v_um_s, hold_reason(record), code_of(record) or "NONE"


def _require_space(line: Sequence[object]) -> None:
    if len(line) >= MOST_WAITING:
        raise FleetBusy(f"{len(line)} requests already wait for the next tick; try again in a moment")
