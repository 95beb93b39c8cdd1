"""The parts of a fleet that can be replaced alone, each a Protocol: Planner -> Corridor -> LockManager -> Dispatcher.

RoutePlanner       where a truck drives             `Dispatch.route_planner`
ProgressEstimator  where on its way a truck is      `Traffic.ports.progress`
CorridorBuilder    what it asks for                 `Traffic.ports.corridor`
LockManager        who may go on                    `FleetEngine.traffic`
TaskDispatcher     who does what                    `FleetEngine.dispatch`
RtpController      where a truck is told to go      `Traffic.ports.rtp`
RobotGateway       the connection to the trucks     `Manager(recording, gateway, …)`, `Run.gateway`
LogSink            where ticks are written          `Manager(recording, …)`
Clock              what time it is                  `Manager(…, clock.now_ms)`
"""

from collections.abc import Sequence
from typing import Protocol

from pendula.fleet.commands import Tick
from pendula.fleet.events import FleetEvent
from pendula.fleet.gateway.protocol import Gateway as RobotGateway
from pendula.fleet.tasks import DispatchStep, TaskEvent
from pendula.fleet.tasks.model import TruckView
from pendula.fleet.tasks.ports import RoutePlanner
from pendula.fleet.tick.ports import CorridorBuilder, ProgressEstimator, RtpController, TickPorts
from pendula.fleet.tick.traffic import TickInputs, TickOutputs
from pendula.kernel.engine import Outcome

__all__ = [
    "Clock",
    "CorridorBuilder",
    "LockManager",
    "LogSink",
    "ProgressEstimator",
    "RobotGateway",
    "RoutePlanner",
    "RtpController",
    "TaskDispatcher",
    "TickPorts",
]


class LockManager(Protocol):
    def tick(self, inputs: TickInputs) -> TickOutputs:
        """One atomic step: who may go on, and what every truck is told."""


class TaskDispatcher(Protocol):
    def dispatch(self, now_ms: int, trucks: Sequence[TruckView], events: Sequence[TaskEvent] = ()) -> DispatchStep:
        """What trucks do next, with the routes that are to be admitted for it."""


class LogSink(Protocol):
    def write_tick(self, tick: Tick) -> Outcome[FleetEvent]:
        """Have a tick decided once it is with the operating system, and say what it told."""


class Clock(Protocol):
    def now_ms(self) -> int:
        """The time of the fleet, which never goes back."""
