"""Simulated trucks in virtual time: they drive, turn, load and report, over channels that delay and lose messages."""

from pendula.fleet.simulator.truck import Fault, FaultKind, FaultRate, WorldSettings
from pendula.fleet.simulator.world import SimulatedGateway, Telemetry, Trace, World

__all__ = ["Fault", "FaultKind", "FaultRate", "SimulatedGateway", "Telemetry", "Trace", "World", "WorldSettings"]
