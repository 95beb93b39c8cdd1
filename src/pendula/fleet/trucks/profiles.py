"""A type of truck: its outline, its margins with their sources, its dynamics.

No margin has a silent default. `hash_of` covers everything that shapes a map.
"""

from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from re import compile as regex

from msgspec import Struct

from pendula.fleet.units import plain
from pendula.kernel.canonical import Json, digest, encode

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
