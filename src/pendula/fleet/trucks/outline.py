"""The corners of a truck and of its safety envelope at a pose, in metres, for pictures and external checks.

They are floats: no decision uses them.
"""

from math import cos, sin

from pendula.fleet.trucks.envelope import Envelope
from pendula.fleet.trucks.profiles import RobotProfile

Corners = tuple[tuple[float, float], ...]


def body_corners(profile: RobotProfile, x_m: float, y_m: float, yaw_rad: float) -> Corners:
    """The body itself: front left, rear left, rear right, front right."""
    half = profile.width_um / 2
    return _placed(profile.head_um, profile.tail_um, half, x_m, y_m, yaw_rad)


def envelope_corners(envelope: Envelope, x_m: float, y_m: float, yaw_rad: float) -> Corners:
    """The safety envelope, in the same order."""
    return _placed(envelope.front_um, envelope.rear_um, envelope.side_um, x_m, y_m, yaw_rad)


def _placed(front: float, rear: float, side: float, x: float, y: float, yaw: float) -> Corners:
    c, s = cos(yaw), sin(yaw)
    local = ((front, side), (-rear, side), (-rear, -side), (front, -side))
    return tuple((x + (a * c - b * s) / 1e6, y + (a * s + b * c) / 1e6) for a, b in local)
