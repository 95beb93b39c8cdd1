"""Reader of truck profiles: a document holds one profile, a list of them, or an object with the list."""

from collections.abc import Callable, Collection
from decimal import Decimal

from pendula.documents import Cursor, Document
from pendula.fleet.reading.values import length, name, positive, version
from pendula.fleet.trucks.profiles import USUAL_STAMP_JITTER_MS, ErrorValue, RobotProfile, Source

PROFILE = ("contractVersion", "profileId", "geometry", "safety", "dynamics")
GEOMETRY = ("head", "tail", "width")
SAFETY = (
    *("safetyFrontM", "safetyRearM", "safetySideM", "localizationErrorM", "trackingErrorM"),
    *("extraMarginM", "minFollowingGapM"),
)
SAFETY_OPTIONAL = ("headingErrorRad",)
DYNAMICS = ("vMax", "accel", "a_brake", "controlLatencyS", "turnRateRadS", "minTurnRadiusM")
DYNAMICS_OPTIONAL = ("stampJitterMs",)
# Paths of the numbers of a profile.
PLACES = {
    name: f"{group}.{name}"
    for group, names in (
        ("geometry", GEOMETRY),
        ("safety", (*SAFETY, *SAFETY_OPTIONAL)),
        ("dynamics", (*DYNAMICS, *DYNAMICS_OPTIONAL)),
    )
    for name in names
}
ERROR = ("value", "source", "basis")
# The limit of lengths of a truck: products of lengths of shapes that meet fit into 64 bits.
TRUCK_MOST = Decimal(20)
HEADING_MOST = Decimal("1.570797")
# A report with a stamp farther ahead is dropped (FLT-FAIL-17).
STAMP_JITTER_MOST_MS = 200


def read_profiles(document: Document) -> tuple[RobotProfile, ...]:
    """One profile, a list of them, or an object with the member `profiles`; raises `DocumentRefused`."""
    return document.read(profiles)


def profiles(root: Cursor) -> tuple[RobotProfile, ...]:
    if root.is_list:
        return root.list_of(_unique_profile(), min=1)
    members = root.object(optional=("profiles",), unknown="keep")
    if "profiles" in members:
        return members["profiles"].list_of(_unique_profile(), min=1)
    return (_profile(root),)


def refuse_unknown(at: Cursor, known: Collection[str]) -> None:
    """Reject unknown members of parameters; for a member of truck profiles the message names its place there."""
    given = at.any()
    of_trucks = [name for name in given if name in PLACES and name not in known] if isinstance(given, dict) else []
    members = at.object(optional=(*known, *of_trucks))
    for member in of_trucks:
        members[member].refuse(f"{member!r} belongs to the truck profile: {PLACES[member]}", code="unknown_field")


def _unique_profile() -> Callable[[Cursor], RobotProfile]:
    """A reader of one profile after the other; a repeated id is a fault at its second occurrence."""
    seen: set[str] = set()

    def read(at: Cursor) -> RobotProfile:
        profile = _profile(at)
        if profile.profile_id and profile.profile_id in seen:
            place = at.object(optional=("profileId",), unknown="keep")["profileId"]
            place.refuse(f"the profile {profile.profile_id!r} is defined twice", code="not_unique")
        seen.add(profile.profile_id)
        return profile

    return read


def _profile(at: Cursor) -> RobotProfile:
    members = at.object(
        required=PROFILE,
        optional=("capabilities",),
        unknown="keep",
    )
    version(members)
    shape = members["geometry"].object(required=GEOMETRY, unknown="keep")
    safety = members["safety"].object(
        required=SAFETY,
        optional=SAFETY_OPTIONAL,
        unknown="keep",
    )
    dynamics = members["dynamics"].object(required=DYNAMICS, optional=DYNAMICS_OPTIONAL, unknown="keep")
    head, tail = length(shape["head"], TRUCK_MOST), length(shape["tail"], TRUCK_MOST)
    if head + tail == 0 and shape["head"].given and shape["tail"].given:
        members["geometry"].refuse("head and tail together must be greater than 0")
    return RobotProfile(
        profile_id=name(members["profileId"]),
        head_um=head,
        tail_um=tail,
        width_um=positive(shape["width"], TRUCK_MOST),
        safety_front_um=length(safety["safetyFrontM"], TRUCK_MOST),
        safety_rear_um=length(safety["safetyRearM"], TRUCK_MOST),
        safety_side_um=length(safety["safetySideM"], TRUCK_MOST),
        localization_error=_error_value(safety["localizationErrorM"]),
        tracking_error=_error_value(safety["trackingErrorM"]),
        extra_margin_um=length(safety["extraMarginM"], TRUCK_MOST),
        min_following_gap_um=length(safety["minFollowingGapM"]),
        v_max_um_s=positive(dynamics["vMax"]),
        accel_um_s2=positive(dynamics["accel"]),
        brake_um_s2=positive(dynamics["a_brake"]),
        latency_us=length(dynamics["controlLatencyS"]),
        turn_rate_urad_s=positive(dynamics["turnRateRadS"]),
        min_turn_radius_um=length(dynamics["minTurnRadiusM"]),
        heading_error_urad=length(safety["headingErrorRad"], HEADING_MOST) if "headingErrorRad" in safety else 0,
        stamp_jitter_ms=dynamics["stampJitterMs"].integer(
            min=0, max=STAMP_JITTER_MOST_MS, default=USUAL_STAMP_JITTER_MS
        ),
        capabilities=members["capabilities"].list_of(lambda item: item.text(min=1), default=()),
    )


def _error_value(at: Cursor) -> ErrorValue:
    members = at.object(required=ERROR, unknown="keep")
    return ErrorValue(
        length(members["value"], TRUCK_MOST), members["source"].choice(Source), members["basis"].text(min=1)
    )
