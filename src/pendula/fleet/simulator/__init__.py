"""Trucks in virtual time: they drive, turn, load, drift and report, over channels that delay and lose.

settings      how good positioning, tracking and radio are
tracks        poses on all edges of a map at once
kinematics    one truck: speed, braking, turning on the spot, its newest command, its watchdog
noise         drifts and jitters, each from a stream of its own
connection    the hall as a gateway
channel       messages on their way
faults        what goes wrong with a truck, and until when
misfortune    faults that come by chance, so many an hour
standing      trucks where a fleet believes them to be, in the middle of its life
world         all trucks, step by step; what they report and where they truly are
"""

from pendula.fleet.simulator.connection import SimulatedGateway
from pendula.fleet.simulator.faults import Fault, FaultKind
from pendula.fleet.simulator.settings import WorldSettings
from pendula.fleet.simulator.world import Telemetry, Trace, World

__all__ = ["Fault", "FaultKind", "SimulatedGateway", "Telemetry", "Trace", "World", "WorldSettings"]
