"""One tick of traffic: where trucks are, what they are granted, their commands, and why.

`Traffic` is the fleet between two ticks; `phases` has the steps in order, functions over a draft.
"""

from pendula.fleet.contracts import CommandMode, Phase, RobotStatus
from pendula.fleet.tick.draft import RefusedRoute
from pendula.fleet.tick.observing import DroppedReport
from pendula.fleet.tick.orders import AppliedOrder, Order, OrderKind
from pendula.fleet.tick.params import NodeLockPolicy, TrafficParams
from pendula.fleet.tick.reasons import Reason
from pendula.fleet.tick.traffic import TickInputs, TickOutputs, Traffic, TrafficRefused

__all__ = [
    "AppliedOrder",
    "CommandMode",
    "DroppedReport",
    "NodeLockPolicy",
    "Order",
    "OrderKind",
    "Phase",
    "Reason",
    "RefusedRoute",
    "RobotStatus",
    "TickInputs",
    "TickOutputs",
    "Traffic",
    "TrafficParams",
    "TrafficRefused",
]
