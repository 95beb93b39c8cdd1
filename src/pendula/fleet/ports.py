"""The replaceable parts of a fleet, each a Protocol: Planner -> Corridor -> LockManager -> Dispatcher.

RoutePlanner       the route of a truck             `Dispatch.route_planner`
ProgressEstimator  its position on the route        `Traffic.ports.progress`
CorridorBuilder    the units it requests            `Traffic.ports.corridor`
LockManager        grants                           `FleetEngine.traffic`
TaskDispatcher     tasks for trucks                 `FleetEngine.dispatch`
RtpController      targets and stop lines           `Traffic.ports.rtp`
RobotGateway       the connection to the trucks     `Manager(recording, gateway, …)`, `Run.gateway`
LogSink            where ticks are written          `Manager(recording, …)`
Clock              the time                         `Manager(…, clock.now_ms)`
"""

from collections.abc import Sequence
from typing import Protocol

from pendula.fleet.commands import Tick
from pendula.fleet.events import FleetEvent
from pendula.fleet.gateway import Gateway as RobotGateway
from pendula.fleet.tasks import DispatchStep, TaskEvent
from pendula.fleet.tasks.assignment import RoutePlanner
from pendula.fleet.tasks.model import TruckView
from pendula.fleet.tick.aiming import CorridorBuilder, ProgressEstimator, RtpController, TickPorts
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
        """One atomic step: grants, and a command for every truck."""


class TaskDispatcher(Protocol):
    def dispatch(self, now_ms: int, trucks: Sequence[TruckView], events: Sequence[TaskEvent] = ()) -> DispatchStep:
        """Operations, and routes that traffic has to admit."""


class LogSink(Protocol):
    def write_tick(self, tick: Tick) -> Outcome[FleetEvent]:
        """Apply a tick and return its outcome once the record is with the operating system."""


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds; never goes back."""
