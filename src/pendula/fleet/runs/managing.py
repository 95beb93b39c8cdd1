"""The manager of a live fleet: connects its gateway and its journal, one tick at a time.

Commands are sent after the tick is written to the operating system. A tick that took too long, or failed, sends none:
its commands are outdated, and the watchdogs stop the trucks. A failing gateway costs no tick: trucks without reports
are judged as silent, unsent messages are repeated, and the next tick raises an alert.
"""

import threading
from collections.abc import Callable, Sequence

from msgspec import UNSET

from pendula.fleet.commands import Tick
from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.events import FleetEvent
from pendula.fleet.gateway.operations import IssuedOperations
from pendula.fleet.gateway.protocol import Gateway
from pendula.fleet.gateway.reception import Heard, heard
from pendula.fleet.gateway.registration import register
from pendula.fleet.gateway.selection import Selected, abilities
from pendula.fleet.runs.recording import Recording
from pendula.fleet.tasks import OperationDone, TaskEvent
from pendula.kernel.driver import EngineDefect
from pendula.kernel.engine import Outcome
from pendula.kernel.errors import WrongUsage, in_words

MOST_WORDS = 500


class Manager:
    """`now_ms` reads the clock of the fleet, which never goes back: that of the host may be set, `time.monotonic` is
    not. A fleet that goes on from a journal goes on with its time, `recording.engine.now()`, and with as much more as
    nobody managed it, two seconds at least: trucks have driven on until they stopped, and in less time what they did
    would be a jump. `withheld` counts ticks that sent no command; `trouble` is what went wrong with the gateway in the
    last one."""

    def __init__(self, recording: Recording, gateway: Gateway, now_ms: Callable[[], int]) -> None:
        """Raises `RobotRefused` for a truck that cannot be stopped."""
        register(recording.engine.config.profiles)
        self.recording = recording
        self.withheld = 0
        self.trouble: str | None = None
        self._gateway = gateway
        self._can = abilities(recording.engine.traffic.records)
        self._now_ms = now_ms
        self._ticks = threading.Lock()
        # Errors that are not reported yet, operations that are done and are in no tick yet, and whether routes and
        # operations may not have reached the trucks.
        self._news: str | None = None
        self._done: tuple[OperationDone, ...] = ()
        self._told = IssuedOperations()
        self._again = False

    def tick(
        self, task_events: Sequence[TaskEvent] = (), actions: Sequence[OperatorAction] = ()
    ) -> Outcome[FleetEvent] | None:
        """The outcome of a tick; None where it failed, and left no trace but a note in the journal. Raises `WrongUsage`
        where one is under way, in another thread or in the gateway that calls this, and where the time, an event or an
        action is none: then nothing is decided."""
        if not self._ticks.acquire(blocking=False):
            raise WrongUsage("a tick is under way: one thread at a time calls tick, and no gateway does")
        try:
            return self._tick(task_events, actions)
        finally:
            self._ticks.release()

    def _tick(self, task_events: Sequence[TaskEvent], actions: Sequence[OperatorAction]) -> Outcome[FleetEvent] | None:
        before, self.trouble = self.trouble, None
        began = self._now_ms()
        came = self._received()
        over = self._told.with_ids(came.done)
        done = tuple(dict.fromkeys((*self._done, *over)))
        news = UNSET if self._news is None else self._news
        events = (*task_events, *done)
        tick = Tick(began, came.reports, events, operator_actions=tuple(actions), gateway=news)
        # Where the tick is refused, as no tick or by the engine, nothing is decided and all of it is heard in the next.
        self._done = done
        try:
            outcome = self.recording.write_tick(tick)
            if outcome.refusal is None:
                self._done, self._news = (), None
                self._tell(began)
            else:
                self.withheld += 1
            return outcome
        except EngineDefect:
            # Repeated once only; after that the operation times out.
            self._done = over
            self.withheld += 1
            return None
        finally:
            self._news = self.trouble if before is None and self.trouble is not None else self._news

    def _received(self) -> Heard:
        try:
            return heard(self._gateway.poll())
        except Exception as error:
            self.trouble = _words(error)
            return Heard()

    def _tell(self, began: int) -> None:
        engine = self.recording.engine
        orders = engine.orders_out
        # Set until everything is sent, in case the program is interrupted.
        pending, self._again = engine.all_orders() if self._again else orders, True
        try:
            self._gateway.announce(pending.routes)
            self._gateway.operate(pending.operations)
            self._told.note(pending.operations)
            self._again = False
            late = self._now_ms() - began > 2 * engine.config.traffic.tick_period_ms
            if late or not orders.commands:
                self.withheld += 1
            else:
                self._gateway.send(Selected(orders.aims, self._can))
        except Exception as error:
            self.withheld += 1
            self.trouble = self.trouble or _words(error)


def _words(error: Exception) -> str:
    """The text of an error of third-party code, shortened."""
    return in_words(error)[:MOST_WORDS]
