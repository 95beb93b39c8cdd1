"""Documents into the nouns of the room: source maps, truck profiles, compile parameters, fleets. Every fault at once.

Members that are not known are passed over, as the contract wants it within a major version; what is missing or of the
wrong kind is a fault with its place.
"""

from collections.abc import Callable
from decimal import Decimal
from enum import StrEnum
from re import compile as regex

from pendula.documents import Cursor, Document, DocumentRefused, Members
from pendula.fleet.model import (
    Code,
    CompileParams,
    CurveKind,
    Finding,
    Fleet,
    Granularity,
    Point,
    SourceEdge,
    SourceMap,
    SourceMember,
    SourceNode,
    SourceSection,
    Stream,
    Truck,
    finding,
)
from pendula.fleet.trucks.profiles import ErrorValue, RobotProfile, Source
from pendula.fleet.units import micro
from pendula.kernel.canonical import Json


class FaultCode(StrEnum):
    """Faults of a map that other documents do not have."""

    UNKNOWN_VERSION = "unknown_version"
    COORDINATE_OUT_OF_RANGE = "coordinate_out_of_range"


MAJOR = "1"
# Beyond this a number is no length; it would only cost time to say so later.
HUGE = Decimal(10) ** 9
# No part of a truck is longer: products of lengths of shapes that meet then fit into 64 bits.
TRUCK_MOST = Decimal(20)
HEADING_MOST = Decimal("1.570797")
LEAST = Decimal("0.000001")
NAME_MOST = 128
_VERSION = regex(r"[0-9]+\.[0-9]+\.[0-9]+")
# Keys are made of ids: what joins them may not occur in them.
_ID = regex(r"(?!.*->)[^\s#|\x00-\x1f]+")
_ID_FORM = "text without spaces, '#', '|' and '->'"
FLEET_MEMBERS = ("robots", "streams", "params")
FLEET_PARAMS = ("lookaheadM", "rtpLookaheadM", "tickPeriodMs")
PARAMS = (
    *("polylineStepM", "chordErrorM", "conflictMarginM", "cellLenM", "maxRectsPerCell", "tangentEps"),
    *("conflictGranularity", "offRouteExtraOnBendM", "turningExtraMarginM"),
)
_GEOMETRY = frozenset({"not_finite", "number_too_long", FaultCode.COORDINATE_OUT_OF_RANGE})


def read_source_map(document: Document) -> SourceMap:
    """The graph of a document; raises `DocumentRefused` with every fault."""
    return document.read(_source_map)


def read_profiles(document: Document) -> tuple[RobotProfile, ...]:
    """One profile, a list of them, or an object with the member `profiles`; raises `DocumentRefused`."""
    return document.read(_profiles)


def read_params(document: Document) -> CompileParams:
    return document.read(params)


def read_fleet(document: Document) -> Fleet:
    """Trucks with rest nodes, and streams; raises `DocumentRefused`."""
    return document.read(_fleet)


def findings_of(refused: DocumentRefused, profile: bool = False) -> tuple[Finding, ...]:
    """The faults of a document as findings of the validator, with their places."""
    result = []
    for fault in refused.faults:
        code = Code.MAP_INVALID_GEOMETRY if fault.code in _GEOMETRY else Code.MAP_PARSE_ERROR
        if profile and fault.code == "missing_field":
            code = Code.PROFILE_MISSING_FIELD
        remedy = f"allowed: {', '.join(fault.allowed)}" if fault.allowed else ""
        place: dict[str, Json] = {
            "file": refused.source_name,
            "path": fault.path,
            "line": fault.line,
            "column": fault.column,
        }
        result.append(finding(code, f"{fault.path}: {fault.message}", remedy, **place))
    return tuple(result)


def version(it: Members) -> None:
    """Refuses a contract of another major version."""
    at = it["contractVersion"]
    text = at.text(pattern=_VERSION, form="a version such as 1.0.0")
    if text and text.split(".")[0] != MAJOR:
        at.refuse(
            f"contract version {text} is not read here", code=FaultCode.UNKNOWN_VERSION, allowed=(f"{MAJOR}.x.y",)
        )


def length(at: Cursor, most: Decimal = HUGE) -> int:
    """A length (or angle, or time) as micrometres."""
    return micro(at.decimal(min=0, max=most))


def positive(at: Cursor, most: Decimal = HUGE) -> int:
    return micro(at.decimal(min=LEAST, max=most))


def name(at: Cursor) -> str:
    return at.text(min=1, max=NAME_MOST, pattern=_ID, form=_ID_FORM)


def _coordinate(at: Cursor) -> int:
    value = at.decimal()
    if abs(value) > HUGE:
        at.refuse(
            "the coordinate is out of range", code=FaultCode.COORDINATE_OUT_OF_RANGE, allowed=(f"at most {HUGE} m",)
        )
        return 0
    return micro(value)


def _point(at: Cursor) -> Point:
    if at.is_list:
        pair = at.list_of(_coordinate, min=2, max=2)
        return Point(*pair) if len(pair) == 2 else Point(0, 0)
    it = at.object(required=("x", "y"), unknown="keep")
    return Point(_coordinate(it["x"]), _coordinate(it["y"]))


def _optional(at: Cursor, read: Callable[[Cursor], Point]) -> Point | None:
    return read(at) if at.unless_null().given else None


def _source_map(root: Cursor) -> SourceMap:
    it = root.object(
        required=("contractVersion", "mapId", "nodes", "edges"),
        optional=("criticalSections", "stations", "parking"),
        unknown="keep",
    )
    version(it)
    return SourceMap(
        it["mapId"].text(min=1, max=NAME_MOST),
        it["nodes"].list_of(_node),
        it["edges"].list_of(_edge),
        it["criticalSections"].unless_null().list_of(_section, default=()),
        it["stations"].unless_null().list_of(name, default=()),
        it["parking"].unless_null().list_of(name, default=()),
    )


def _node(at: Cursor) -> SourceNode:
    it = at.object(required=("id", "x", "y"), optional=("kind",), unknown="keep")
    where = Point(_coordinate(it["x"]), _coordinate(it["y"]))
    return SourceNode(name(it["id"]), where, it["kind"].text(max=NAME_MOST, default="LocationMark"))


def _edge(at: Cursor) -> SourceEdge:
    it = at.object(
        required=("id", "start", "end"),
        optional=("className", "controlPos1", "controlPos2", "points", "startPos", "endPos", "props"),
        unknown="keep",
    )
    kind = it["className"].choice(CurveKind, default=CurveKind.STRAIGHT)
    points: tuple[Point, ...] = ()
    start_at, end_at = _optional(it["startPos"], _point), _optional(it["endPos"], _point)
    if kind is CurveKind.BEZIER:
        points = (_point(it["controlPos1"]), _point(it["controlPos2"]))
    elif kind is CurveKind.POLYLINE:
        every = it["points"].list_of(_point, min=2)
        # The first and the last point are the ends; they must lie in the nodes like any other end.
        if every:
            points, start_at, end_at = every[1:-1], every[0], every[-1]
    style, direction, width = _props(it["props"])
    return SourceEdge(
        it["id"].text(min=1, max=NAME_MOST),
        it["start"].text(min=1, max=NAME_MOST),
        it["end"].text(min=1, max=NAME_MOST),
        kind,
        points,
        start_at,
        end_at,
        style,
        direction,
        width,
    )


def _props(at: Cursor) -> tuple[str, str, int | None]:
    if not at.unless_null().given:
        return "forward", "start_to_end", None
    it = at.object(optional=("movestyle", "direction", "width"), unknown="keep")
    width = it["width"].unless_null()
    return (
        it["movestyle"].text(default="forward"),
        it["direction"].text(default="start_to_end"),
        length(width) if width.given else None,
    )


def _section(at: Cursor) -> SourceSection:
    it = at.object(required=("criticalSectionId", "members"), optional=("capacity",), unknown="keep")
    return SourceSection(
        name(it["criticalSectionId"]),
        it["capacity"].integer(min=1, max=1000, default=1),
        it["members"].list_of(_member, min=1),
    )


def _member(at: Cursor) -> SourceMember:
    it = at.object(required=("edgeGroupKey",), optional=("s0M", "s1M"), unknown="keep")
    low, high = it["s0M"].unless_null(), it["s1M"].unless_null()
    return SourceMember(
        it["edgeGroupKey"].text(min=1),
        length(low) if low.given else None,
        length(high) if high.given else None,
    )


def _profiles(root: Cursor) -> tuple[RobotProfile, ...]:
    if root.is_list:
        return root.list_of(_one_of_a_name(), min=1)
    it = root.object(optional=("profiles",), unknown="keep")
    if "profiles" in it:
        return it["profiles"].list_of(_one_of_a_name(), min=1)
    return (_profile(root),)


def _one_of_a_name() -> Callable[[Cursor], RobotProfile]:
    """Reads one profile after the other; a name that was there before is a fault at its second place."""
    seen: set[str] = set()

    def read(at: Cursor) -> RobotProfile:
        profile = _profile(at)
        if profile.profile_id and profile.profile_id in seen:
            place = at.object(optional=("profileId",), unknown="keep")["profileId"]
            place.refuse(f"the profile {profile.profile_id!r} is there twice", code="not_unique")
        seen.add(profile.profile_id)
        return profile

    return read


def _profile(at: Cursor) -> RobotProfile:
    it = at.object(
        required=("contractVersion", "profileId", "geometry", "safety", "dynamics"),
        optional=("capabilities",),
        unknown="keep",
    )
    version(it)
    shape = it["geometry"].object(required=("head", "tail", "width"), unknown="keep")
    safety = it["safety"].object(
        required=(
            *("safetyFrontM", "safetyRearM", "safetySideM", "localizationErrorM", "trackingErrorM"),
            *("extraMarginM", "minFollowingGapM"),
        ),
        optional=("headingErrorRad",),
        unknown="keep",
    )
    dynamics = it["dynamics"].object(
        required=("vMax", "accel", "a_brake", "controlLatencyS", "turnRateRadS", "minTurnRadiusM"), unknown="keep"
    )
    head, tail = length(shape["head"], TRUCK_MOST), length(shape["tail"], TRUCK_MOST)
    if head + tail == 0 and shape["head"].given and shape["tail"].given:
        it["geometry"].refuse("head and tail together must be greater than 0")
    return RobotProfile(
        profile_id=name(it["profileId"]),
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
        capabilities=it["capabilities"].list_of(lambda one: one.text(min=1), default=()),
    )


def _error_value(at: Cursor) -> ErrorValue:
    it = at.object(required=("value", "source", "basis"), unknown="keep")
    return ErrorValue(length(it["value"], TRUCK_MOST), it["source"].choice(Source), it["basis"].text(min=1))


def params(root: Cursor) -> CompileParams:
    """Compile parameters in the names of the contract; what is not given has its default."""
    it = root.object(optional=PARAMS, unknown="keep")
    usual = CompileParams()

    def within(member: str, least: str, most: str, default: int) -> int:
        if member not in it:
            return default
        return micro(it[member].decimal(min=Decimal(least), max=Decimal(most)))

    return CompileParams(
        polyline_step_um=within("polylineStepM", "0.05", "0.2", usual.polyline_step_um),
        chord_error_um=within("chordErrorM", "0.0005", "0.1", usual.chord_error_um),
        conflict_margin_um=within("conflictMarginM", "0", "10", usual.conflict_margin_um),
        cell_len_um=within("cellLenM", "0.5", "1", usual.cell_len_um),
        max_rects_per_cell=it["maxRectsPerCell"].integer(min=1, max=256, default=usual.max_rects_per_cell),
        tangent_eps_urad=within("tangentEps", "0", "0.5", usual.tangent_eps_urad),
        granularity=it["conflictGranularity"].choice(Granularity, default=usual.granularity),
        bend_extra_um=within("offRouteExtraOnBendM", "0", "5", 0) + within("turningExtraMarginM", "0", "5", 0),
    )


def _fleet(root: Cursor) -> Fleet:
    it = root.object(required=("robots",), optional=("streams", "params"), unknown="keep")
    usual = Fleet(())
    given = it["params"].unless_null()
    limits = (given if given.given else root).object(optional=FLEET_PARAMS, unknown="keep")
    return Fleet(
        it["robots"].list_of(_truck),
        it["streams"].unless_null().list_of(_stream, default=()),
        length(limits["lookaheadM"]) if "lookaheadM" in limits else usual.lookahead_um,
        length(limits["rtpLookaheadM"]) if "rtpLookaheadM" in limits else usual.rtp_lookahead_um,
        limits["tickPeriodMs"].integer(min=1) if "tickPeriodMs" in limits else usual.tick_ms,
    )


def _truck(at: Cursor) -> Truck:
    it = at.object(required=("robotId", "profileId", "parkNodeId"), unknown="keep")
    return Truck(name(it["robotId"]), name(it["profileId"]), name(it["parkNodeId"]))


def _stream(at: Cursor) -> Stream:
    it = at.object(required=("streamId", "pickNodeIds", "dropNodeIds"), unknown="keep")
    return Stream(name(it["streamId"]), it["pickNodeIds"].list_of(name), it["dropNodeIds"].list_of(name))
