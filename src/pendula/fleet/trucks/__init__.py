"""Trucks: profiles, capabilities and safety envelopes.

profiles      a type of truck: its outline, its margins with their sources, its dynamics
capabilities  capabilities, and why a truck is not admitted
envelope      the safety envelope and derived lengths: lead and trail, turning radius, stopping distances
outline       the corners of a truck and of its envelope at a pose, in metres
"""

from pendula.fleet.trucks.envelope import Envelope, envelope_of, largest_envelope, stop_distance_um
from pendula.fleet.trucks.outline import body_corners, envelope_corners
from pendula.fleet.trucks.profiles import ErrorValue, RobotProfile, Source, doubts

__all__ = [
    "Envelope",
    "ErrorValue",
    "RobotProfile",
    "Source",
    "body_corners",
    "doubts",
    "envelope_corners",
    "envelope_of",
    "largest_envelope",
    "stop_distance_um",
]
