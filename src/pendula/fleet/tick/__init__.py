"""One tick of traffic after the other: where trucks are, who may go on, what they are told, and why.

traffic       `Traffic`: the fleet between two ticks, and the tick
phases        the steps of a tick in their order
observing     reports become progress, a release bound and health
ranks         the one order in which trucks are asked
queueing      who waits for whom, and whom a waiter bars
aiming        hold point, rolling target and command of every truck
reasons       why a truck stands
"""

from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.tick.phases import RefusedRoute
from pendula.fleet.tick.reasons import Reason
from pendula.fleet.tick.traffic import TickInputs, TickOutputs, Traffic, TrafficRefused
from pendula.fleet.traffic.params import NodeLockPolicy, TrafficParams

__all__ = [
    "NodeLockPolicy",
    "Reason",
    "RefusedRoute",
    "TickInputs",
    "TickOutputs",
    "Traffic",
    "TrafficParams",
    "TrafficRefused",
    "TruckReport",
]
