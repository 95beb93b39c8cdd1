"""The manager of a live fleet: between its gateway and its journal, one tick at a time, whoever calls it.

What a tick decided goes out after it is with the operating system. A tick that took too long, or failed, sends no
command: what it decided is old, and the watchdogs of the trucks stop them.
"""

from collections.abc import Callable, Sequence

from pendula.fleet.commands import Tick
from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.events import FleetEvent
from pendula.fleet.gateway.protocol import Gateway
from pendula.fleet.runs.recording import Recording
from pendula.fleet.tasks import OperationDone, TaskEvent
from pendula.kernel.driver import EngineDefect
from pendula.kernel.engine import Outcome


class Manager:
    """`now_ms` reads the clock of the fleet; `withheld` counts ticks that sent no command."""

    def __init__(self, recording: Recording, gateway: Gateway, now_ms: Callable[[], int]) -> None:
        self.recording = recording
        self.withheld = 0
        self._gateway = gateway
        self._now_ms = now_ms

    def tick(
        self, task_events: Sequence[TaskEvent] = (), actions: Sequence[OperatorAction] = ()
    ) -> Outcome[FleetEvent] | None:
        """What a tick told; None where it failed, and left no trace but a note in the journal."""
        began = self._now_ms()
        heard = self._gateway.received()
        events = (*task_events, *map(OperationDone, heard.done))
        try:
            outcome = self.recording.apply(Tick(began, heard.reports, events, operator_actions=tuple(actions)))
        except EngineDefect:
            self.withheld += 1
            return None
        if outcome.refusal is None:
            self._send(began)
        else:
            self.withheld += 1
        return outcome

    def _send(self, began: int) -> None:
        engine = self.recording.engine
        orders = engine.orders_out
        self._gateway.announce(orders.routes)
        self._gateway.operate(orders.operations)
        late = self._now_ms() - began > 2 * engine.config.traffic.tick_period_ms
        if late or not orders.commands:
            self.withheld += 1
        else:
            self._gateway.send(orders.commands)
