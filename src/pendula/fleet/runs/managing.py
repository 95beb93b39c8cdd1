"""The manager of a live fleet: connects its gateway and its journal, one tick at a time.

Commands are sent after the tick is written to the operating system. A tick that took too long, or failed, sends none:
its commands are outdated, and the watchdogs stop the trucks. A failing gateway costs no tick: trucks without reports
are judged as silent, unsent messages are repeated, and the next tick raises an alert.
"""

import threading
from collections.abc import Callable, Sequence
from math import nan

import numpy as np
from msgspec import UNSET

from pendula.fleet.checker import Closest, Poses
from pendula.fleet.commands import Tick
from pendula.fleet.contracts import OperatorAction
from pendula.fleet.events import FleetEvent
from pendula.fleet.gateway import Gateway, GatewayInput, IssuedOperations, Selected, abilities, read_gateway, register
from pendula.fleet.runs.recording import Recording
from pendula.fleet.tasks import OperationDone, TaskEvent
from pendula.fleet.tick import TickOutputs
from pendula.fleet.tick.health import is_fresh
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.records import Record, Stop
from pendula.fleet.tick.snapshot import on_segment
from pendula.fleet.tick.swings import Swings
from pendula.fleet.units import MILLION
from pendula.kernel.driver import EngineDefect
from pendula.kernel.engine import Outcome
from pendula.kernel.errors import WrongUsage, in_words

MOST_WORDS = 500


class Manager:
    """`now_ms` reads a clock that never goes back, such as `time.monotonic`; the clock of a host may be set back.

    Start the clock of a resumed fleet at `recording.engine.now()` plus the time without a manager, at least two
    seconds: trucks have driven on until they stopped, and in less time their movement would be a jump. `withheld`
    counts ticks without commands; `trouble` is the error of the gateway in the last tick.
    """

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
        # An unreported error, completed operations that are in no tick yet, and whether to send all routes and
        # operations again, because some may be lost.
        self._news: str | None = None
        self._done: tuple[OperationDone, ...] = ()
        self._issued = IssuedOperations()
        self._again = False

    def tick(
        self, task_events: Sequence[TaskEvent] = (), actions: Sequence[OperatorAction] = ()
    ) -> Outcome[FleetEvent] | None:
        """Run one tick. None if it failed, which leaves only a note in the journal. Raises `WrongUsage`, and decides
        nothing, while another tick runs, in a thread or in the gateway, and for an invalid time, event or action."""
        if not self._ticks.acquire(blocking=False):
            raise WrongUsage("a tick is running: call tick() from one thread at a time, and never from a gateway")
        try:
            return self._tick(task_events, actions)
        finally:
            self._ticks.release()

    def _tick(self, task_events: Sequence[TaskEvent], actions: Sequence[OperatorAction]) -> Outcome[FleetEvent] | None:
        before, self.trouble = self.trouble, None
        began = self._now_ms()
        came = self._receive()
        over = self._issued.with_ids(came.done)
        done = tuple(dict.fromkeys((*self._done, *over)))
        news = UNSET if self._news is None else self._news
        events = (*task_events, *done)
        tick = Tick(began, came.reports, events, operator_actions=tuple(actions), gateway=news)
        # Kept for the next tick if this one is rejected.
        self._done = done
        try:
            outcome = self.recording.write_tick(tick)
            if outcome.refusal is None:
                self._done, self._news = (), None
                self._send_orders(began)
            else:
                self.withheld += 1
            return outcome
        except EngineDefect:
            # Only completions of this tick are repeated, and once; others time out.
            self._done = over
            self.withheld += 1
            return None
        finally:
            self._news = self.trouble if before is None and self.trouble is not None else self._news

    def _receive(self) -> GatewayInput:
        try:
            return read_gateway(self._gateway.poll())
        except Exception as error:
            self.trouble = _words(error)
            return GatewayInput()

    def _send_orders(self, began: int) -> None:
        engine = self.recording.engine
        orders = engine.orders_out
        # Set until everything is sent, in case the program is interrupted.
        pending, self._again = engine.all_orders() if self._again else orders, True
        try:
            self._gateway.announce(pending.routes)
            self._gateway.operate(pending.operations)
            self._issued.note(pending.operations)
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


# Swings and distances of the trucks of a served fleet (FLT-OBS-9), measured as in scenarios, but from reports.

# The place of a truck without a route: on no edge.
_NOWHERE = (-1, 0)
_UNSEEN = (nan, nan, nan)


class Watch:
    """Extremes since the fleet was opened."""

    def __init__(self, records: Sequence[Record], params: TrafficParams) -> None:
        self._params = params
        self.swings = Swings(records[0].site)
        self.closest = Closest([record.profile for record in records])

    def note(self, outputs: TickOutputs) -> None:
        """Note a tick that took place."""
        records, now_ms = outputs.scene.records, outputs.now_ms
        for record, aim in zip(records, outputs.aims, strict=True):
            self.swings.note(record, aim.mode, now_ms)
        self.swings.note_routes(outputs.accepted_routes, now_ms)
        self.swings.note_places([_place(record) for record in records], now_ms)
        seen = np.array([self._pose(record, now_ms) for record in records])[None] / MILLION
        self.closest.look(Poses(seen[:, :, 0], seen[:, :, 1], seen[:, :, 2]))

    def _pose(self, record: Record, now_ms: int) -> tuple[float, float, float]:
        """The reported pose; NaN if the truck is absent, silent or lost."""
        pose, doubt = record.pose, record.doubt
        lost = record.absent or (doubt is not None and doubt.code == Stop.POSE_JUMP)
        if pose is None or lost or not is_fresh(record, now_ms, self._params):
            return _UNSEEN
        return pose.x_um, pose.y_um, pose.yaw_urad


def _place(record: Record) -> tuple[int, int]:
    on = on_segment(record)
    if on is None or record.track is None:
        return _NOWHERE
    number, on_um = on
    return record.track.plan.segments[number].edge, on_um
