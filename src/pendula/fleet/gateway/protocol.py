"""What a connection to trucks must do. The simulated hall implements it, and so does whoever connects real ones.

Nothing here decides: a gateway carries commands out and reports in, as they are, in metres, radians, metres a second
and milliseconds. It may lose and delay both; it may not invent anything.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from pendula.fleet.contracts.traffic import RobotState, RollingTargetCommand
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.tasks import Operation, OperationDone


class Received(Struct, frozen=True):
    """What came in since it was last asked for. `done`: operations that are over; the name of a truck alone stands for
    the one that its gateway was told last."""

    reports: Sequence[RobotState] = ()
    done: tuple[str | OperationDone, ...] = ()

    @property
    def over(self) -> tuple[OperationDone, ...]:
        """What is done, as it was said."""
        return tuple([OperationDone(one) if isinstance(one, str) else one for one in self.done])


class Gateway(Protocol):
    def send(self, commands: Sequence[RollingTargetCommand]) -> None:
        """Sends commands on their way. A truck obeys the newest it has heard, by `seq`, and acknowledges it in its
        reports; without a new one for `validForMs` it stops by itself, within the stop line it knows."""

    def announce(self, routes: Sequence[RoutePlan]) -> None:
        """Makes routes known that commands will name. A truck that follows `pathSlice` alone needs none."""

    def operate(self, operations: Sequence[Operation]) -> None:
        """Has trucks load or unload in the node they stand in. One with an id that is known was told before."""

    def poll(self) -> Received:
        """What came in, each report once or again; whoever reads them drops what is old."""
