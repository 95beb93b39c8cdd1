"""Trucks: a type with its outline, margins and dynamics; its capabilities, its safety envelope.

No margin has a silent default. `hash_of` covers everything that shapes a map.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from enum import StrEnum
from math import isqrt
from re import compile as regex

from msgspec import Struct
from msgspec.structs import replace

from pendula.fleet.model import Code, Finding, MoveStyle, Severity
from pendula.fleet.units import MILLION, ceil_div, plain
from pendula.kernel.canonical import Json, digest, encode
from pendula.kernel.wording import suggestion

USUAL_STAMP_JITTER_MS = 100


class Source(StrEnum):
    """Where an error value comes from."""

    MEASURED = "MEASURED"
    ASSUMED = "ASSUMED"
    PROFILE = "PROFILE"


class ErrorValue(Struct, frozen=True):
    """A bound of an error with its source and its basis (free text)."""

    value_um: int
    source: Source
    basis: str


class RobotProfile(Struct, frozen=True):
    """One type of truck; lengths in micrometres, speeds in micrometres per second."""

    profile_id: str
    head_um: int
    tail_um: int
    width_um: int
    safety_front_um: int
    safety_rear_um: int
    safety_side_um: int
    localization_error: ErrorValue
    tracking_error: ErrorValue
    extra_margin_um: int
    min_following_gap_um: int
    v_max_um_s: int
    accel_um_s2: int
    brake_um_s2: int
    latency_us: int
    turn_rate_urad_s: int
    min_turn_radius_um: int
    heading_error_urad: int = 0
    # The greatest difference between the interval of two stamps and the interval of their measurements.
    stamp_jitter_ms: int = USUAL_STAMP_JITTER_MS
    capabilities: tuple[str, ...] = ()

    @property
    def inflation_um(self) -> int:
        return self.localization_error.value_um + self.tracking_error.value_um + self.extra_margin_um


def doubts(profile: RobotProfile) -> tuple[str, ...]:
    """Warnings about error values that are percentiles and therefore not bounds."""
    named = (("localizationErrorM", profile.localization_error), ("trackingErrorM", profile.tracking_error))
    return tuple(
        f"{profile.profile_id}: {name} rests on {error.basis!r}; a percentile is exceeded now and then"
        for name, error in named
        if _is_exceeded(error.basis)
    )


# P95, 95th percentile, percentile 95, 95 %.
_PERCENTILE = regex(
    r"\bp ?(\d+(?:[.,]\d+)?)|(\d+(?:[.,]\d+)?) ?(?:st|nd|rd|th)?[ -]?(?:percentile|%)|percentile (\d+(?:[.,]\d+)?)"
)
_SIGMA = regex(r"(\d+(?:[.,]\d+)?)[ -]?(?:sigma|σ)")
# Accepted as a bound: a value exceeded in at most 1 of 1000 cases, or that many deviations of a normal distribution.
# Percentages below 50 are margins, not percentiles of an error.
_LEAST_PERCENT, _ENOUGH_PERCENT, _ENOUGH_SIGMA = Decimal(50), Decimal("99.9"), Decimal("3.3")


def _is_exceeded(basis: str) -> bool:
    """Whether the basis of an error value says that it is exceeded now and then."""
    text = basis.lower()
    shares = [_number(next(filter(None, match.groups()))) for match in _PERCENTILE.finditer(text)]
    deviations = [_number(match[1]) for match in _SIGMA.finditer(text)]
    return any(_LEAST_PERCENT <= share < _ENOUGH_PERCENT for share in shares) or any(
        deviation < _ENOUGH_SIGMA for deviation in deviations
    )


def _number(text: str) -> Decimal:
    return Decimal(text.replace(",", "."))


def hash_of(profiles: Sequence[RobotProfile]) -> str:
    """`sha256:…` over geometry, margins and turning limits of all profiles, in any order."""
    # Two profiles may share an id by mistake; their order must not matter even then.
    forms = sorted((shape_of(profile) for profile in profiles), key=lambda form: (form["profileId"], encode(form)))
    return "sha256:" + digest(forms)


def shape_of(profile: RobotProfile) -> dict[str, Json]:
    """The part of a profile that a map depends on, in the names and units of the contract."""
    return {
        "profileId": profile.profile_id,
        "head": plain(profile.head_um),
        "tail": plain(profile.tail_um),
        "width": plain(profile.width_um),
        "safetyFrontM": plain(profile.safety_front_um),
        "safetyRearM": plain(profile.safety_rear_um),
        "safetySideM": plain(profile.safety_side_um),
        "localizationErrorM": plain(profile.localization_error.value_um),
        "trackingErrorM": plain(profile.tracking_error.value_um),
        "extraMarginM": plain(profile.extra_margin_um),
        "minFollowingGapM": plain(profile.min_following_gap_um),
        "headingErrorRad": plain(profile.heading_error_urad),
        "minTurnRadiusM": plain(profile.min_turn_radius_um),
    }


# Capabilities of a truck or its gateway, and why a truck is not admitted.


class Capability(StrEnum):
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    TURN_IN_PLACE = "turnInPlace"
    SPEED_LIMIT = "speedLimit"
    ACK_SEQ = "ackSeq"
    PATH_SLICE = "pathSlice"


def kept_out(profile: RobotProfile) -> Iterator[tuple[Code, str]]:
    """A sentence for each reason why no truck of a type is admitted (FLT-RTP-13), with the finding code."""
    known = tuple(Capability)
    unknown = sorted(set(profile.capabilities) - set(known))
    if unknown:
        names = ", ".join(f"{name}{suggestion(name, known)}" for name in unknown)
        text = f"{profile.profile_id} names {names}, which no gateway knows; known are {', '.join(known)}"
        yield Code.MAP_PARSE_ERROR, text
    if not {*profile.capabilities} & {Capability.STOP, Capability.PAUSE}:
        text = f"{profile.profile_id} can neither be stopped nor paused: no truck without a way to stop is let in"
        yield Code.PROFILE_MISSING_FIELD, text


def capability_findings(profiles: Iterable[RobotProfile], severity: Severity) -> list[Finding]:
    """The same as findings: a map can be compiled for such trucks, but a fleet with them does not start."""
    remedy = "correct the capabilities of the profile"
    return [
        Finding(code, severity, text, {"profileId": profile.profile_id}, remedy)
        for profile in profiles
        for code, text in kept_out(profile)
    ]


# The safety envelope of a truck and derived distances: lead and trail, turning radius, spacing.
# An envelope is the rectangle `[-rear, front] x [-side, side]` in the frame of the truck, with every margin counted
# once. Roots are rounded up, so that reservations are never too small.


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
