"""The tick of traffic: where trucks are, what they are granted, their commands, and why.

traffic       `Traffic`: the fleet between two ticks, and the tick
phases        the steps of a tick in order
closing       places that operators close and open
rerouting     detours round failed trucks, and notices of long waits
granting      grants of units, truck by truck, or why not
draft         the data that the phases of a tick change
observing     from reports to progress, release bound and health
aiming        hold point, rolling target and command of every truck
ports         replaceable parts of a tick
alarms        alerts and notices for operators
invariants    what holds after every tick
starting_state  where a fleet starts, and whether it may start there
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
