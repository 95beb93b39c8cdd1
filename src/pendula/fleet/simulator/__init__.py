"""Simulated trucks in virtual time: they drive, turn, load and report, over channels that delay and lose messages.

settings        quality of positioning, tracking and radio
tracks          vectorised poses on all edges of a map
kinematics      one truck: speed, braking, turning on the spot, its newest command, its watchdog
noise           drifts and jitters, each from its own random stream
connection      the simulated hall as a gateway
channel         messages in transit
faults          active faults of a truck, and when they end
random_faults   faults at random times with given rates
restored_world  a simulation that starts from the state of a running fleet
world           all trucks, step by step: reports and true poses
"""

from pendula.fleet.simulator.connection import SimulatedGateway
from pendula.fleet.simulator.faults import Fault, FaultKind
from pendula.fleet.simulator.settings import FaultRate, WorldSettings
from pendula.fleet.simulator.world import Telemetry, Trace, World

__all__ = ["Fault", "FaultKind", "FaultRate", "SimulatedGateway", "Telemetry", "Trace", "World", "WorldSettings"]
