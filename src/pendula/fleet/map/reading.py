"""Readers of source maps, truck profiles, parameters and fleets; each reports all faults of a document at once.

Unknown members are ignored, as the contract requires within a major version; missing members and wrong types are
faults.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from re import compile as regex
from typing import Any

from msgspec.structs import replace

from pendula.documents import Cursor, Document, DocumentRefused, Members, Path, path_text
from pendula.documents.faults import Fault
from pendula.fleet.map.trucks import USUAL_STAMP_JITTER_MS, ErrorValue, RobotProfile, Source
from pendula.fleet.model import (
    MAJOR,
    NAME_MOST,
    PLAIN_KIND,
    Code,
    CompileParams,
    CurveKind,
    Finding,
    Fleet,
    Granularity,
    Point,
    Severity,
    SourceEdge,
    SourceMap,
    SourceMember,
    SourceNode,
    SourceSection,
    Stream,
    Truck,
    finding,
    pick_is_drop,
)
from pendula.fleet.units import micro
from pendula.kernel.canonical import Json
from pendula.kernel.wording import suggestion


class FaultCode(StrEnum):
    """Faults of a map that other documents do not have."""

    UNKNOWN_VERSION = "unknown_version"
    COORDINATE_OUT_OF_RANGE = "coordinate_out_of_range"


# The limit of all lengths, to reject absurd numbers early.
HUGE = Decimal(10) ** 9
LEAST = Decimal("0.000001")
_VERSION = regex(r"[0-9]+\.[0-9]+\.[0-9]+")
# Keys join ids with these separators, so ids must not contain them.
_ID = regex(r"(?!.*->)[^\s#|\x00-\x1f]+(?: +[^\s#|\x00-\x1f]+)*")
_ID_FORM = "text without '#', '|', '->' and line breaks, with spaces only inside"


def version(members: Members) -> None:
    """Reject another major version of the contract."""
    at = members["contractVersion"]
    text = at.text(pattern=_VERSION, form="a version such as 1.0.0")
    if text and text.split(".")[0] != MAJOR:
        at.refuse(
            f"contract version {text} is not supported", code=FaultCode.UNKNOWN_VERSION, allowed=(f"{MAJOR}.x.y",)
        )


def length(at: Cursor, most: Decimal = HUGE) -> int:
    """A length (or angle, or time) as micrometres."""
    return micro(at.decimal(min=0, max=most))


def positive(at: Cursor, most: Decimal = HUGE) -> int:
    return micro(at.decimal(min=LEAST, max=most))


def name(at: Cursor) -> str:
    return at.text(min=1, max=NAME_MOST, pattern=_ID, form=_ID_FORM)


def drop_of(at: Cursor, picks: Collection[str], what: str) -> str:
    """The drop node of a stream or task; must not be one of its pick nodes."""
    node = name(at)
    if node and node in picks:
        at.refuse(pick_is_drop(what, node))
    return node


# Reader of compile parameters, with the names of the contract; missing members have their defaults.

PARAMS = (
    *("polylineStepM", "chordErrorM", "conflictMarginM", "cellLenM", "maxRectsPerCell", "tangentEps"),
    *("conflictGranularity", "offRouteExtraOnBendM", "turningExtraMarginM"),
)


def read_params(document: Document) -> CompileParams:
    return document.read(params)


def params(root: Cursor) -> CompileParams:
    """The compile parameters of an object; missing members have their defaults."""
    members = root.object(optional=PARAMS, unknown="keep")
    usual = CompileParams()

    def within(member: str, least: str, most: str, default: int) -> int:
        if member not in members:
            return default
        return micro(members[member].decimal(min=Decimal(least), max=Decimal(most)))

    return CompileParams(
        polyline_step_um=within("polylineStepM", "0.05", "0.2", usual.polyline_step_um),
        chord_error_um=within("chordErrorM", "0.0005", "0.1", usual.chord_error_um),
        conflict_margin_um=within("conflictMarginM", "0", "10", usual.conflict_margin_um),
        cell_len_um=within("cellLenM", "0.5", "1", usual.cell_len_um),
        max_rects_per_cell=members["maxRectsPerCell"].integer(min=1, max=256, default=usual.max_rects_per_cell),
        tangent_eps_urad=within("tangentEps", "0", "0.5", usual.tangent_eps_urad),
        granularity=members["conflictGranularity"].choice(Granularity, default=usual.granularity),
        bend_extra_um=within("offRouteExtraOnBendM", "0", "5", 0) + within("turningExtraMarginM", "0", "5", 0),
    )


# Reader of fleet documents: trucks, the streams of goods they serve, and the lookahead.

FLEET_MEMBERS = ("robots", "streams", "params")
FLEET_PARAMS = ("lookaheadM", "rtpLookaheadM", "tickPeriodMs", "arriveTolM")


def read_fleet(document: Document) -> Fleet:
    """The fleet of a document; raises `DocumentRefused`."""
    return document.read(_fleet)


def _fleet(root: Cursor) -> Fleet:
    members = root.object(required=("robots",), optional=("streams", "params"), unknown="keep")
    usual = Fleet(())
    given = members["params"].unless_null()
    limits = (given if given.given else root).object(optional=FLEET_PARAMS, unknown="keep")
    return Fleet(
        members["robots"].list_of(_truck),
        members["streams"].unless_null().list_of(_stream, default=()),
        length(limits["lookaheadM"]) if "lookaheadM" in limits else usual.lookahead_um,
        length(limits["rtpLookaheadM"]) if "rtpLookaheadM" in limits else usual.rtp_lookahead_um,
        limits["tickPeriodMs"].integer(min=1) if "tickPeriodMs" in limits else usual.tick_ms,
        length(limits["arriveTolM"]) if "arriveTolM" in limits else usual.arrive_tol_um,
    )


def _truck(at: Cursor) -> Truck:
    members = at.object(required=("robotId", "profileId", "parkNodeId"), unknown="keep")
    return Truck(name(members["robotId"]), name(members["profileId"]), name(members["parkNodeId"]))


def _stream(at: Cursor) -> Stream:
    members = at.object(required=("streamId", "pickNodeIds", "dropNodeIds"), optional=("robotIds",), unknown="keep")
    stream_id, picks = name(members["streamId"]), members["pickNodeIds"].list_of(name)
    return Stream(
        stream_id,
        picks,
        members["dropNodeIds"].list_of(lambda drop: drop_of(drop, picks, f"stream {stream_id!r}")),
        members["robotIds"].unless_null().list_of(name, default=()),
    )


# Reader of truck profiles: a document holds one profile, a list of them, or an object with the list.

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


# Reader of source maps: graphs of aisles.

MAP_REQUIRED = ("contractVersion", "mapId", "nodes", "edges")
MAP_OPTIONAL = ("criticalSections", "stations", "parking")
NODE = ("id", "x", "y", "kind", "turning")
EDGE_REQUIRED = ("id", "start", "end")
# Members that may be in the `props` of an edge or on the edge itself.
PROPS = ("movestyle", "direction", "width", "maxSpeedMps", "allowedProfiles", "penaltyMs", "criticalSectionId")
EDGE_OPTIONAL = ("className", "controlPos1", "controlPos2", "viaPos", "points", "startPos", "endPos", "props", *PROPS)
SECTION = ("criticalSectionId", "members", "capacity")
MEMBER = ("edgeGroupKey", "s0M", "s1M")
# The limit of a penalty is one day.
PENALTY_MOST_MS = 86_400_000


def read_source_map(document: Document) -> SourceMap:
    """The source map of a document; raises `DocumentRefused` with every fault."""
    return document.read(source_map)


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
    members = at.object(required=("x", "y"), unknown="keep")
    return Point(_coordinate(members["x"]), _coordinate(members["y"]))


def _optional(at: Cursor, read: Callable[[Cursor], Point]) -> Point | None:
    return read(at) if at.unless_null().given else None


def source_map(root: Cursor) -> SourceMap:
    members = root.object(
        required=MAP_REQUIRED,
        optional=MAP_OPTIONAL,
        unknown="keep",
    )
    version(members)
    return SourceMap(
        members["mapId"].text(min=1, max=NAME_MOST),
        members["nodes"].list_of(_node),
        members["edges"].list_of(_edge),
        members["criticalSections"].unless_null().list_of(_section, default=()),
        members["stations"].unless_null().list_of(name, default=()),
        members["parking"].unless_null().list_of(name, default=()),
    )


def _node(at: Cursor) -> SourceNode:
    members = at.object(required=("id", "x", "y"), optional=("kind", "turning"), unknown="keep")
    where = Point(_coordinate(members["x"]), _coordinate(members["y"]))
    kind = members["kind"].text(max=NAME_MOST, default=PLAIN_KIND)
    return SourceNode(name(members["id"]), where, kind, members["turning"].boolean(default=True))


def _edge(at: Cursor) -> SourceEdge:
    members = at.object(
        required=EDGE_REQUIRED,
        optional=EDGE_OPTIONAL,
        unknown="keep",
    )
    kind = members["className"].choice(CurveKind, default=CurveKind.STRAIGHT)
    points: tuple[Point, ...] = ()
    start_at, end_at = _optional(members["startPos"], _point), _optional(members["endPos"], _point)
    if kind is CurveKind.BEZIER:
        points = (_point(members["controlPos1"]), _point(members["controlPos2"]))
    elif kind is CurveKind.ARC:
        points = (_point(members["viaPos"]),)
    elif kind in (CurveKind.POLYLINE, CurveKind.SPLINE):
        vertices = members["points"].list_of(_point, min=2)
        # The first and the last point are the ends; like other ends, they must be at the nodes.
        if vertices:
            points, start_at, end_at = vertices[1:-1], vertices[0], vertices[-1]
    plain = SourceEdge(
        id=members["id"].text(min=1, max=NAME_MOST),
        start=members["start"].text(min=1, max=NAME_MOST),
        end=members["end"].text(min=1, max=NAME_MOST),
        kind=kind,
        points=points,
        start_at=start_at,
        end_at=end_at,
    )
    return _with_props(plain, members)


def _with_props(edge: SourceEdge, members: Members) -> SourceEdge:
    """Read members that may be in `props` or on the edge; a member in both places is rejected."""
    props = members["props"].object(optional=PROPS, unknown="keep") if members["props"].unless_null().given else None

    def member(key: str) -> Cursor:
        if props is None or key not in props:
            return members[key]
        if key in members:
            members[key].refuse(f"{key} is given here and in props; remove one of them")
        return props[key]

    width, speed, section = (member(key).unless_null() for key in ("width", "maxSpeedMps", "criticalSectionId"))
    return replace(
        edge,
        style=member("movestyle").text(default=edge.style),
        direction=member("direction").text(default=edge.direction),
        width_um=length(width) if width.given else None,
        max_speed_um_s=positive(speed) if speed.given else None,
        allowed_profiles=tuple(sorted(set(member("allowedProfiles").unless_null().list_of(name, default=())))),
        penalty_ms=member("penaltyMs").unless_null().integer(min=0, max=PENALTY_MOST_MS, default=0),
        section=name(section) if section.given else None,
    )


def _section(at: Cursor) -> SourceSection:
    members = at.object(required=("criticalSectionId", "members"), optional=("capacity",), unknown="keep")
    return SourceSection(
        name(members["criticalSectionId"]),
        members["capacity"].integer(min=1, max=1000, default=1),
        members["members"].list_of(_member, min=1),
    )


def _member(at: Cursor) -> SourceMember:
    members = at.object(required=("edgeGroupKey",), optional=("s0M", "s1M"), unknown="keep")
    low, high = members["s0M"].unless_null(), members["s1M"].unless_null()
    return SourceMember(
        members["edgeGroupKey"].text(min=1),
        length(low) if low.given else None,
        length(high) if high.given else None,
    )


# Unknown members: allowed within a major version, but often a misspelling, so they are reported as warnings.
# In graphs and profiles they are findings of the validator, with their places; in parameters and fleets sentences.
# Members whose names begin with `x-` are private and ignored.

_VERSION_MEMBER = "contractVersion"
_PRIVATE = "x-"


def unread_graph(document: Document) -> tuple[Finding, ...]:
    """A finding for each unknown member of a graph."""
    return _warnings(document, _unread_graph)


def unread_profiles(document: Document) -> tuple[Finding, ...]:
    """A finding for each unknown member of a file of truck profiles."""
    return _warnings(document, _unread_profiles)


def unread_params(document: Document) -> tuple[str, ...]:
    """A sentence for each unknown member of a file of compile parameters."""
    return _unread(document.source_name, "", document.value, PARAMS)


def unread_fleet(document: Document) -> tuple[str, ...]:
    """A sentence for each unknown member of a fleet file or of its `params`."""
    root = document.value
    inner = root.get("params") if isinstance(root, Mapping) else None
    # Without a `params` object its members are at the top level.
    known = FLEET_MEMBERS if isinstance(inner, Mapping) else (*FLEET_MEMBERS, *FLEET_PARAMS)
    return (
        *_unread(document.source_name, "", root, known),
        *_unread(document.source_name, "params.", inner, FLEET_PARAMS),
    )


def _unread(file: str, path: str, value: Any, known: Collection[str]) -> tuple[str, ...]:
    if not isinstance(value, Mapping):
        return ()
    return tuple(
        f"{file}: the member {path + name!r} is not known and has no effect{_suggest(name, known)}"
        for name in value
        if name not in known and name != _VERSION_MEMBER
    )


def _suggest(name: str, known: Collection[str]) -> str:
    if name in PLACES:
        return f"; it belongs to the truck profile: {PLACES[name]}"
    return suggestion(name, tuple(known))


def _warnings(document: Document, walk: Callable[[Cursor], None]) -> tuple[Finding, ...]:
    """Warnings for members that `walk`, which reads all known members, finds unknown."""
    try:
        document.read(walk)
    except DocumentRefused as refused:
        return tuple(_finding(refused.source_name, fault) for fault in refused.faults if _is_unknown_member(fault))
    return ()


def _is_unknown_member(fault: Fault) -> bool:
    return fault.code == "unknown_field" and not _unread_member(fault).startswith(_PRIVATE)


def _unread_member(fault: Fault) -> str:
    """The last step of a path: after a dot, or quoted in brackets if it is not a plain name."""
    head, _, quoted = fault.path.rpartition("[")
    return quoted.strip("\"']") if head and fault.path.endswith(('"]', "']")) else fault.path.rpartition(".")[2]


def _correct(fault: Fault) -> str:
    return suggestion(_unread_member(fault), tuple(fault.allowed))


def _finding(file: str, fault: Fault) -> Finding:
    place: dict[str, Json] = {"file": file, "path": fault.path, "line": fault.line, "column": fault.column}
    message = f"{fault.path}: this member is not known and has no effect{_correct(fault)}"
    remedy = f"correct its name, remove it, or let it begin with {_PRIVATE}"
    return Finding(Code.MAP_PARSE_ERROR, Severity.WARN, message, place, remedy)


def _unread_graph(root: Cursor) -> None:
    members = root.object(optional=(*MAP_REQUIRED, *MAP_OPTIONAL))
    members["nodes"].list_of(lambda at: at.object(optional=NODE))
    members["edges"].list_of(_unread_edge)
    if members["criticalSections"].unless_null().given:
        members["criticalSections"].list_of(_unread_section)


def _unread_edge(at: Cursor) -> None:
    members = at.object(optional=(*EDGE_REQUIRED, *EDGE_OPTIONAL))
    if members["props"].unless_null().given:
        members["props"].object(optional=PROPS)


def _unread_section(at: Cursor) -> None:
    members = at.object(optional=SECTION)
    members["members"].list_of(lambda member: member.object(optional=MEMBER))


def _unread_profiles(root: Cursor) -> None:
    if root.is_list:
        root.list_of(_unread_profile)
        return
    members = root.object(optional=("profiles",), unknown="keep")
    if "profiles" in members:
        root.object(optional=("profiles", _VERSION_MEMBER))
        members["profiles"].list_of(_unread_profile)
    else:
        _unread_profile(root)


def _unread_profile(at: Cursor) -> None:
    members = at.object(optional=(*PROFILE, "capabilities"))
    members["geometry"].object(optional=GEOMETRY)
    safety = members["safety"].object(optional=(*SAFETY, *SAFETY_OPTIONAL))
    members["dynamics"].object(optional=(*DYNAMICS, *DYNAMICS_OPTIONAL))
    for error in ("localizationErrorM", "trackingErrorM"):
        safety[error].object(optional=ERROR)


# Faults of a document as findings of the validator, and findings about its edges, with their places.

_GEOMETRY = frozenset({"not_finite", "number_too_long", FaultCode.COORDINATE_OUT_OF_RANGE})


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


def with_places(findings: Iterable[Finding], graph: Document) -> tuple[Finding, ...]:
    """Add the place in the graph to findings about a single edge or about a duplicate id."""
    all_findings = tuple(findings)
    paths = _paths(graph.value)
    edge_paths = [
        paths.get(("edge", item.details.get("edge"))) or paths.get(("id", item.details.get("id")))
        for item in all_findings
    ]
    known = [path for path in edge_paths if path is not None]
    places = dict(zip(known, graph.places(known), strict=True)) if known else {}
    result = []
    for item, path in zip(all_findings, edge_paths, strict=True):
        if path is not None:
            line, column = places[path].line, places[path].column
            where = {"file": graph.source_name, "path": path_text(path), "line": line, "column": column}
            item = replace(item, details={**item.details, **where})
        result.append(item)
    return tuple(result)


def _paths(graph: Any) -> dict[tuple[str, Any], Path]:
    """The paths of edges by id, and of the second occurrence of an id."""
    paths: dict[tuple[str, Any], Path] = {}
    for member in ("nodes", "edges"):
        known = set()
        for number, item in enumerate(graph[member]):
            if item["id"] in known:
                paths.setdefault(("id", item["id"]), (member, number))
            elif member == "edges":
                paths["edge", item["id"]] = member, number
            known.add(item["id"])
    return paths
