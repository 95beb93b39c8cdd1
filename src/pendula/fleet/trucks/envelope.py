"""The safety envelope of a truck and derived distances: lead and trail, turning radius, spacing.

An envelope is the rectangle `[-rear, front] x [-side, side]` in the frame of the truck, with every margin
counted once. Roots are rounded up, so that reservations are never too small.
"""

from collections.abc import Iterable, Sequence
from math import isqrt

from msgspec import Struct
from msgspec.structs import replace

from pendula.fleet.model import MoveStyle
from pendula.fleet.trucks.profiles import ErrorValue, RobotProfile
from pendula.fleet.units import MILLION, ceil_div


class Envelope(Struct, frozen=True):
    """Extents in micrometres; `gap_um` is the following gap and not part of the rectangle."""

    front_um: int
    rear_um: int
    side_um: int
    gap_um: int
    min_turn_radius_um: int

    @property
    def turn_radius_um(self) -> int:
        """`Rturn`: radius of the disc that contains the envelope at every yaw."""
        far = max(self.front_um, self.rear_um)
        square = far * far + self.side_um * self.side_um
        root = isqrt(square)
        return root if root * root == square else root + 1

    def lead_um(self, style: MoveStyle) -> int:
        """How far the envelope reaches ahead of the pivot in the direction of travel."""
        return self.front_um if style is MoveStyle.FORWARD else self.rear_um

    def trail_um(self, style: MoveStyle) -> int:
        return self.rear_um if style is MoveStyle.FORWARD else self.front_um

    def spacing_um(self, leader: MoveStyle, follower: MoveStyle) -> int:
        """`spacingPivot`: the least distance of two pivots on one lane in one direction."""
        return self.trail_um(leader) + self.lead_um(follower) + self.gap_um


def envelope_of(profile: RobotProfile) -> Envelope:
    inflation = profile.inflation_um
    front = profile.head_um + profile.safety_front_um + inflation
    rear = profile.tail_um + profile.safety_rear_um + inflation
    # sin x <= x, so the heading error bounds the sideways growth.
    sway = ceil_div(max(front, rear) * profile.heading_error_urad, MILLION)
    side = ceil_div(profile.width_um, 2) + profile.safety_side_um + inflation + sway
    return Envelope(front, rear, side, profile.min_following_gap_um, profile.min_turn_radius_um)


def spacing_um(leader: RobotProfile, ahead: MoveStyle, follower: RobotProfile, behind: MoveStyle) -> int:
    """`spacingPivot` of two trucks, each of its own type and driving style."""
    own = envelope_of(follower)
    return envelope_of(leader).trail_um(ahead) + own.lead_um(behind) + own.gap_um


def largest_envelope(profiles: Sequence[RobotProfile]) -> Envelope:
    """The component-wise maximum over all profiles; a map is compiled for it."""

    def bound(errors: Iterable[ErrorValue]) -> ErrorValue:
        return max(errors, key=lambda error: error.value_um)

    return envelope_of(
        replace(
            profiles[0],
            head_um=max(profile.head_um for profile in profiles),
            tail_um=max(profile.tail_um for profile in profiles),
            width_um=max(profile.width_um for profile in profiles),
            safety_front_um=max(profile.safety_front_um for profile in profiles),
            safety_rear_um=max(profile.safety_rear_um for profile in profiles),
            safety_side_um=max(profile.safety_side_um for profile in profiles),
            localization_error=bound(profile.localization_error for profile in profiles),
            tracking_error=bound(profile.tracking_error for profile in profiles),
            extra_margin_um=max(profile.extra_margin_um for profile in profiles),
            heading_error_urad=max(profile.heading_error_urad for profile in profiles),
            min_following_gap_um=max(profile.min_following_gap_um for profile in profiles),
            min_turn_radius_um=max(profile.min_turn_radius_um for profile in profiles),
        )
    )


def braking_um(profile: RobotProfile, v_um_s: int) -> int:
    """The greatest distance a truck drives until it stands: braking and latency, rounded up."""
    if not v_um_s:
        return 0
    # Rounds up inline: called several times per truck and tick.
    return -(-v_um_s * v_um_s // (2 * profile.brake_um_s2)) - (-v_um_s * profile.latency_us // MILLION)


def brakes_um(profile: RobotProfile, v_um_s: int) -> int:
    """The braking distance without latency, rounded up."""
    return -(-v_um_s * v_um_s // (2 * profile.brake_um_s2))


def stop_distance_um(profile: RobotProfile, v_um_s: int) -> int:
    """`forwardStopDistanceM`: braking, latency and the static margins."""
    return braking_um(profile, v_um_s) + profile.inflation_um


def allowed_speed_um_s(profile: RobotProfile, distance_um: int) -> int:
    """`vAllow`: the greatest speed from which a truck stops within the distance, rounded down, at most `vMax`."""
    brake, latency = profile.brake_um_s2, profile.latency_us
    lag = brake * latency
    if distance_um <= 0:
        return 0
    speed = (isqrt(lag * lag + 2 * brake * distance_um * MILLION * MILLION) - lag) // MILLION
    while speed > 0 and braking_um(profile, speed) > distance_um:
        speed -= 1
    return speed if speed < profile.v_max_um_s else profile.v_max_um_s
