"""The interface to trucks: the simulator implements it, and so does a connection to real trucks.

A gateway only transports commands and reports, in metres, radians, metres per second and milliseconds. It may lose or
delay them, but not invent them.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from pendula.fleet.contracts.traffic import RobotState, RollingTargetCommand
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.tasks import Operation, OperationDone


class Received(Struct, frozen=True):
    """What arrived since the last poll. `done`: completed operations; the name of a truck alone means the last
    operation that its gateway got."""

    reports: Sequence[RobotState] = ()
    done: tuple[str | OperationDone, ...] = ()

    @property
    def over(self) -> tuple[OperationDone, ...]:
        return tuple([OperationDone(done) if isinstance(done, str) else done for done in self.done])


class Gateway(Protocol):
    def send(self, commands: Sequence[RollingTargetCommand]) -> None:
        """Send commands. A truck obeys the newest by `seq` and acknowledges it in its reports; without a new one for
        `validForMs` it stops by itself, before its last stop line."""

    def announce(self, routes: Sequence[RoutePlan]) -> None:
        """Send the routes that commands refer to. A truck that only follows `pathSlice` needs none."""

    def operate(self, operations: Sequence[Operation]) -> None:
        """Let trucks load or unload in their current nodes. A known id is a repetition."""

    def poll(self) -> Received:
        """What has arrived. Reports may repeat; outdated ones are dropped later."""
