"""One tick of traffic after the other: where trucks are, who may go on, what they are told, and why.

traffic       `Traffic`: the fleet between two ticks, and the tick
phases        the steps of a tick in their order
closing       places that operators close and open
rerouting     ways round trucks that have failed, and what is told of long waits
granting      units of their ways, truck by truck, or why not
draft         a tick in the making
observing     reports become progress, a release bound and health
aiming        hold point, rolling target and command of every truck
ports         parts of a tick that can be replaced alone
alarms        what an operator is told
invariants    what holds after every tick
starting_state  where a fleet starts from, and whether it may
saving        traffic as bytes and back
"""

from pendula.fleet.contracts.traffic import CommandMode, Phase, RobotStatus
from pendula.fleet.driving.params import NodeLockPolicy, TrafficParams
from pendula.fleet.health.orders import AppliedOrder, Order, OrderKind
from pendula.fleet.tick.draft import RefusedRoute
from pendula.fleet.tick.observing import DroppedReport
from pendula.fleet.tick.traffic import TickInputs, TickOutputs, Traffic, TrafficRefused
from pendula.fleet.views.reasons import Reason

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
