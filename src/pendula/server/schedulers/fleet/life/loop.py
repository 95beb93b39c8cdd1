"""The life of one served fleet: every tick period what trucks report and people want is decided upon and carried out.

One task runs it, so there is one writer of the locks. What people ask for waits for the next tick, whose outcome
answers them. A tick that comes late is told as late by the engine; the loop never makes up for lost ones in a burst,
and says so where it cannot keep up.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import structlog

from pendula.fleet.commands import Tick
from pendula.fleet.contracts.traffic import HoldReason, OperatorAction, OperatorAnswer
from pendula.fleet.engine import LOGGING_DEGRADED, LOGGING_RESTORED, FleetEngine, took_place
from pendula.fleet.events import FleetEvent, TaskEventRefused
from pendula.fleet.gateway import Selected, abilities, heard
from pendula.fleet.runs import Bundler, RingJournal, Watch
from pendula.fleet.tasks import TaskEvent
from pendula.fleet.units import MILLION
from pendula.fleet.views.reasons import code_of, hold_reason
from pendula.kernel import canonical
from pendula.kernel.commit import Busy, Closed
from pendula.kernel.driver import EngineDefect
from pendula.kernel.engine import Outcome
from pendula.kernel.errors import InputRefused, PendulaError, in_words
from pendula.kernel.journal import FileJournal
from pendula.server.errors import HttpRefused
from pendula.server.hosting.engine_host import EngineHost
from pendula.server.schedulers.fleet.alerts import AlertNow, Punctuality, Told, standing
from pendula.server.schedulers.fleet.figures import Figures
from pendula.server.schedulers.fleet.life.dropped import dropped_after
from pendula.server.schedulers.fleet.life.trucks import RemoteTrucks, SimulatedTrucks, Simulation, Trucks
from pendula.server.schedulers.fleet.life.wishes import Waiting, WaitingLine, refuse
from pendula.server.schedulers.fleet.views import map_of
from pendula.server.views import State, encode_view

MANAGER = "fleet"
FALLS_BEHIND = "FLEET_FALLS_BEHIND"
KEEPS_UP = "FLEET_KEEPS_UP"
# What whoever keeps the machine has to know, though no truck stands.
OF_THE_JOURNAL = (LOGGING_DEGRADED, LOGGING_RESTORED)
MOST_ALERTS = 200
MOST_WAITING = 256
# So many ticks in a row may fail, each without a trace, before a fleet counts as one that does not tick any more.
MOST_FAILED = 10
ANSWER_SECONDS = 10.0

W = TypeVar("W")
A = TypeVar("A")

log = structlog.get_logger("pendula.server")


class FleetBusy(HttpRefused):
    """More is asked of the fleet than fits into its next tick. Try again in a moment."""

    code = "fleet_busy"
    status = 503
    retry_after = 1


class FleetStands(HttpRefused):
    """No tick came in time: the fleet is closed, or its engine is broken."""

    code = "fleet_stopped"
    status = 503
    retry_after = 1


class ServedJournal(RingJournal):
    """The journal of a served fleet. Bundles of incidents are made before it ends; what only memory has is lost with
    its end, and the log says so."""

    def __init__(self, inner: FileJournal) -> None:
        super().__init__(inner)
        self.bundler = None if self.directory is None else Bundler(self, self.directory)

    def close(self) -> None:
        if self.bundler is not None:
            self.bundler.close()
        super().close()
        if self.degraded is not None:
            lost = f"what was decided after record {self.written_n} is in no journal: {self.degraded}"
            log.error("journal_not_whole", path=str(self.directory), problem=lost)


class FleetLoop:
    """One fleet while it is served. Everything here belongs to the event loop."""

    def __init__(self, host: EngineHost, simulation: Simulation | None, figures: Figures) -> None:
        self.host = host
        self.simulation = simulation
        # What was told before the fleet was opened, and is still so, is told again.
        self.alerts: deque[AlertNow] = deque(standing(self.engine), maxlen=MOST_ALERTS)
        self.trucks: Trucks = (
            RemoteTrucks(self.engine.traffic.robot_ids)
            if simulation is None
            else SimulatedTrucks(self.engine, simulation)
        )
        self._can = abilities(self.engine.traffic.records)
        # What a tick that failed had to say of operations.
        self._again: tuple[TaskEvent, ...] = ()
        self._failures = 0
        self._figures = figures
        self._miscounts = False
        self.watch = Watch(self.engine.traffic.records, self.engine.config.traffic)
        self._line = WaitingLine()
        self._map: asyncio.Future[bytes] | None = None
        # Whoever goes on with an old state knows nothing of its trucks before they were heard.
        self._restarted = self.engine.traffic.tick_number > 0
        journal = host.driver.journal
        assert isinstance(journal, ServedJournal)
        self._journal = journal
        self._task = asyncio.get_running_loop().create_task(self._live())
        self._task.add_done_callback(lambda _: self._ended())

    @property
    def engine(self) -> FleetEngine:
        engine = self.host.driver.engine
        assert isinstance(engine, FleetEngine)
        return engine

    @property
    def folder(self) -> Path | None:
        """Where its journal lies; None where that is no directory."""
        return self._journal.directory

    def require_life(self) -> None:
        """Raises `FleetStands`."""
        if self._task.done():
            raise self._no_more()

    def require_place(self) -> None:
        """That one more may wait until a tick is written down; raises `FleetBusy`."""
        _require_place(self._line.said)

    def _no_more(self) -> FleetStands:
        return FleetStands(f"The fleet {self.host.name} ticks no more; the log of the server says why")

    def _stand(self, error: Exception) -> None:
        """Tells why the fleet ticks no more, to the log and to whoever looks at its state."""
        if isinstance(error, PendulaError):
            words = error.message
            log.error("fleet_stopped", fleet=self.host.name, code=error.code, problem=words)
        else:
            words = in_words(error)
            log.error("fleet_stopped", fleet=self.host.name, code="internal_error", problem=words, exc_info=error)
        self.host.mark_broken(FleetStands(f"The fleet ticks no more: {words}. Close it and open it again"))

    def _ended(self) -> None:
        """Nobody waits for a tick that does not come."""
        self._line.end(self._no_more())
        self._count(lambda: self._figures.forget(self.host.name))

    async def map(self) -> bytes:
        """The map as it is sent: made once, for it does not change, and not where ticks are decided."""
        if self._map is None or (self._map.done() and self._map.exception() is not None):
            self._map = asyncio.ensure_future(asyncio.to_thread(self._drawn))
        return await asyncio.shield(self._map)

    def _drawn(self) -> bytes:
        return encode_view(map_of(self.engine, simulated=self.simulation is not None))

    async def act(self, action: OperatorAction) -> OperatorAnswer:
        """What came of an action of a person, told by the next tick. Raises `NotCanonical`."""
        # Before it waits: what cannot be written down would make a tick fail.
        canonical.encode(action)
        return await self._asked(self._line.actions, action)

    async def tell(self, event: TaskEvent) -> TaskEventRefused | None:
        """What is wrong with something said about tasks; None where nothing is. Raises `NotCanonical`."""
        canonical.encode(event)
        return await self._asked(self._line.events, event)

    async def written(self) -> None:
        """Wait until a tick is written down that has all that trucks have said by now."""
        await self._asked(self._line.said, None)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _asked(self, line: list[tuple[W, asyncio.Future[A]]], wish: W) -> A:
        self.require_life()
        _require_place(line)
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        line.append((wish, answer))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            raise FleetStands("The fleet has not ticked; nothing is known of what was asked") from None

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        speed = 1 if self.simulation is None else self.simulation.speed
        period = self.engine.config.traffic.tick_period_ms
        begun, began_ms = loop.time(), self.engine.now() + self._away_ms()
        due, every = begun, period / 1000 / speed
        punctuality = Punctuality(int(every * MILLION))
        while not self.host.closed and self.host.state is State.READY:
            now_ms = self.engine.next_due() if self.simulation else began_ms + int((loop.time() - begun) * 1000)
            try:
                await self._tick(now_ms, period)
            except Closed:
                return
            except Exception as error:
                # Trucks stop by their watchdogs; nobody must think that the fleet still ticks.
                self._stand(error)
                return
            lost = max(0.0, loop.time() - due - every)
            self._look_at_the_clock(punctuality.ticked(int(lost * MILLION)), lost)
            due += every + lost
            await asyncio.sleep(max(0.0, due - loop.time()))

    def _look_at_the_clock(self, told: Told | None, lost_s: float) -> None:
        """Whoever looks at the fleet, its log or its figures sees that it cannot keep up."""
        self._count(lambda: self._figures.lost(self.host.name, lost_s))
        if told is None:
            return
        code = FALLS_BEHIND if told.behind else KEEPS_UP
        tick, now = self.engine.traffic.tick_number, self.engine.now()
        self.alerts.append(AlertNow(tick, now, "alert", None, code=code, robot_ids=[], message=told.message))
        tell = log.warning if told.behind else log.info
        tell(code.lower(), fleet=self.host.name, problem=told.message)

    def _away_ms(self) -> int:
        """For how long real trucks were without a manager, at least: nobody knows it, and those who drove have driven
        on until they stopped. So long that they count as not heard; in less time what they did would be a jump."""
        params = self.engine.config.traffic
        return params.robot_offline_ms + params.tick_period_ms if self._restarted and self.simulation is None else 0

    async def _tick(self, now_ms: int, period_ms: int) -> None:
        waiting = self._line.take()
        try:
            await self._decide(now_ms, period_ms, waiting)
        except BaseException:
            # Whatever ended it: nobody waits for an answer that does not come.
            refuse(waiting.all(), self._no_more())
            raise

    async def _decide(self, now_ms: int, period_ms: int, waiting: Waiting) -> None:
        came = self.trucks.poll()
        operations: tuple[TaskEvent, ...] = (*came.over, *self.trucks.take_failed())
        command = Tick(
            now_ms,
            heard(came).reports,
            task_events=(*self._again, *operations, *(event for event, _ in waiting.wishes.events)),
            operator_actions=tuple({action.actionId: action for action, _ in waiting.wishes.actions}.values()),
            restarted=self._restarted,
        )
        command = self.engine.with_news(command, *self._journal.news())
        before = asyncio.get_running_loop().time()
        try:
            _, outcome = await self.host.submit(command, MANAGER, None)
        except Exception as error:
            self._fail(error, waiting, operations)
            return
        seconds = asyncio.get_running_loop().time() - before
        self._failures, self._again = 0, ()
        if outcome.refusal is None:
            self._journal.told(command.missing)
        self._restarted = self._restarted and not took_place(outcome)
        # Nobody else submits, so what goes out is what this tick decided.
        engine = self.engine
        orders = engine.orders_out
        self.trucks.announce(orders.routes)
        self.trucks.operate(orders.operations if self.simulation else engine.dispatch.operations())
        if not self._is_late(before, period_ms):
            self.trucks.send(Selected(orders.aims, self._can))
        self.trucks.follow(engine.traffic.records)
        engine.dropped = dropped_after(engine.dropped, command, outcome.events, engine.traffic.records)
        self._note(engine, outcome.events)
        if self._journal.bundler is not None:
            self._journal.bundler.hear(outcome.events, engine.now())
        waiting.answer(outcome.events)
        self._count(lambda: self._count_tick(outcome, seconds, period_ms))
        await asyncio.to_thread(self.trucks.drive, now_ms + period_ms)

    def _count_tick(self, outcome: Outcome[FleetEvent], seconds: float, period_ms: int) -> None:
        engine = self.engine
        self._figures.ticked(self.host.name, seconds, outcome.events)
        self._figures.waited(self.host.name, period_ms, _standing(engine))
        if engine.last is not None and took_place(outcome):
            self.watch.note(engine.last)

    def _count(self, count: Callable[[], None]) -> None:
        """Figures end no fleet; that they are wrong is told once."""
        try:
            count()
        except Exception:
            if not self._miscounts:
                log.exception("figures_failed", fleet=self.host.name)
            self._miscounts = True

    def _is_late(self, began: float, period_ms: int) -> bool:
        """Whether what a tick decided is too old for real trucks: their watchdogs stop them."""
        return self.simulation is None and asyncio.get_running_loop().time() - began > 2 * period_ms / 1000

    def _fail(self, error: Exception, waiting: Waiting, operations: tuple[TaskEvent, ...]) -> None:
        """A tick left no trace: its wishes are looked at, and what it had to say of operations is said again. Raises
        what it was where the next one cannot be better: the journal cannot be written, or ticks without any wish fail,
        one after the other."""
        mistake = None if isinstance(error, PendulaError) else error
        told = error if isinstance(error, PendulaError) else EngineDefect(f"A tick failed: {in_words(error)}")
        crowded = isinstance(told, Busy)
        self._failures += 0 if crowded or waiting.wishes.count else 1
        if not isinstance(told, Busy | EngineDefect | InputRefused) or self._failures >= MOST_FAILED:
            refuse(waiting.all(), told)
            raise error
        # One that made a tick fail twice is not tried for ever: the operation ends with its time, or is posted again.
        self._again = operations
        self._line.failed(waiting, told, again=bool(operations), guilty=not crowded)
        log.error("tick_failed", fleet=self.host.name, code=told.code, problem=told.message, exc_info=mistake)

    def _note(self, engine: FleetEngine, events: Sequence[FleetEvent]) -> None:
        tick, now = engine.traffic.tick_number, engine.now()
        for event in events:
            found = AlertNow.of(event, tick, now, engine.dropped)
            if found is None:
                continue
            self.alerts.append(found)
            if found.code in OF_THE_JOURNAL:
                log.warning(found.code.lower(), fleet=self.host.name, problem=found.message)


def _standing(engine: FleetEngine) -> Iterator[tuple[int, HoldReason, str]]:
    for one in engine.traffic.records:
        yield one.v_um_s, hold_reason(one), code_of(one) or "NONE"


def _require_place(line: Sequence[object]) -> None:
    if len(line) >= MOST_WAITING:
        raise FleetBusy(f"{len(line)} things wait for the next tick already; try again in a moment")
