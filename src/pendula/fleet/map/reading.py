"""Documents about maps and trucks: their forms, which contracts share, and the models read from them.

A reader reports all faults of a document at once. Unknown members are ignored, as the contract requires within a major
version, and reported as warnings; missing members and wrong types are faults.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from re import compile as regex
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import fields, replace

from pendula.documents import Cursor, Document, DocumentRefused, Members, Path, path_text
from pendula.documents.faults import Fault
from pendula.documents.typed import NULL_IS_ABSENT, Read, Unique, read_at, unknown_members
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
    MoveStyle,
    Origin,
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

# The limit of all lengths, to reject absurd numbers early.
HUGE = 1_000_000_000
_LEAST = Decimal("0.000001")
# The limit of lengths of a truck: products of lengths of shapes that meet fit into 64 bits.
_TRUCK_MOST = 20
# The limit of a penalty is one day.
_PENALTY_MOST_MS = 86_400_000
# A report with a stamp farther ahead is dropped (FLT-FAIL-17).
_STAMP_JITTER_MOST_MS = 200
_VERSION = regex(r"[0-9]+\.[0-9]+\.[0-9]+")
# Keys join ids with these separators, so ids must not contain them.
_ID = r"^(?!.*->)[^\s#|\x00-\x1f]+(?: +[^\s#|\x00-\x1f]+)*$"
_ID_FORM = "text without '#', '|', '->' and line breaks, with spaces only inside"


class FaultCode(StrEnum):
    """Faults of a map that other documents do not have."""

    UNKNOWN_VERSION = "unknown_version"
    COORDINATE_OUT_OF_RANGE = "coordinate_out_of_range"


def _version(at: Cursor) -> str:
    """Reject another major version of the contract."""
    text = at.text(pattern=_VERSION, form="a version such as 1.0.0")
    if text and text.split(".")[0] != MAJOR:
        at.refuse(
            f"contract version {text} is not supported", code=FaultCode.UNKNOWN_VERSION, allowed=(f"{MAJOR}.x.y",)
        )
    return text


def _coordinate(at: Cursor) -> Decimal:
    value = at.decimal()
    if abs(value) > HUGE:
        at.refuse(
            "the coordinate is out of range", code=FaultCode.COORDINATE_OUT_OF_RANGE, allowed=(f"at most {HUGE} m",)
        )
        return Decimal(0)
    return value


def limited(**limits: Any) -> Meta:
    """Limits that documents are read with. They are not in the schemas: payloads only have the types of a contract."""
    return Meta(extra=limits)


Number = Decimal
Version = Annotated[str, Read(_version, "")]
Text = Annotated[str, limited(min_length=1)]
Title = Annotated[str, limited(min_length=1, max_length=NAME_MOST)]
Name = Annotated[str, limited(min_length=1, max_length=NAME_MOST, pattern=_ID, form=_ID_FORM)]
Natural = Annotated[int, limited(ge=0)]
# Metres, radians or seconds.
Length = Annotated[Number, limited(ge=0, le=HUGE)]
Positive = Annotated[Number, limited(ge=_LEAST, le=HUGE)]
TruckLength = Annotated[Number, limited(ge=0, le=_TRUCK_MOST)]
Coordinate = Annotated[Number, Read(_coordinate, Decimal(0))]


class ErrorBound(Struct, frozen=True):
    value: TruckLength
    source: Source
    basis: Text


class ProfileGeometry(Struct, frozen=True):
    head: TruckLength
    tail: TruckLength
    width: Annotated[Number, limited(ge=_LEAST, le=_TRUCK_MOST)]

    def check(self, at: Members) -> None:
        if self.head + self.tail == 0 and at["head"].given and at["tail"].given:
            at.owner.refuse("head and tail together must be greater than 0")


class ProfileSafety(Struct, frozen=True):
    safetyFrontM: TruckLength
    safetyRearM: TruckLength
    safetySideM: TruckLength
    localizationErrorM: ErrorBound
    trackingErrorM: ErrorBound
    extraMarginM: TruckLength
    minFollowingGapM: Length
    headingErrorRad: Annotated[Number, limited(ge=0, le=Decimal("1.570797"))] | UnsetType = UNSET


class ProfileDynamics(Struct, frozen=True):
    vMax: Positive
    accel: Positive
    a_brake: Positive
    controlLatencyS: Length
    turnRateRadS: Positive
    minTurnRadiusM: Length
    stampJitterMs: Annotated[int, limited(ge=0, le=_STAMP_JITTER_MOST_MS)] | UnsetType = UNSET


class RobotProfileContract(Struct, frozen=True):
    contractVersion: Version
    profileId: Name
    geometry: ProfileGeometry
    safety: ProfileSafety
    dynamics: ProfileDynamics
    capabilities: tuple[Text, ...] | UnsetType = UNSET


Profiles = Annotated[tuple[RobotProfileContract, ...], Unique("profileId", noun="profile"), limited(min_length=1)]


class _ProfilesFile(Struct, frozen=True):
    profiles: Profiles
    contractVersion: Any = UNSET


# Paths of the numbers of a profile.
PLACES = {
    number.encode_name: f"{group}.{number.encode_name}"
    for group, form in (("geometry", ProfileGeometry), ("safety", ProfileSafety), ("dynamics", ProfileDynamics))
    for number in fields(form)
}


def read_profiles(document: Document) -> tuple[RobotProfile, ...]:
    """One profile, a list of them, or an object with the member `profiles`; raises `DocumentRefused`."""
    return document.read(profiles_at)


def profiles_at(root: Cursor) -> tuple[RobotProfile, ...]:
    if root.is_list:
        return tuple(map(_profile, read_at(root, Profiles)))
    if root.is_object and "profiles" in root.object(optional=("profiles",), unknown="keep"):
        return tuple(map(_profile, read_at(root, _ProfilesFile).profiles))
    return (_profile(read_at(root, RobotProfileContract)),)


def _profile(form: RobotProfileContract) -> RobotProfile:
    shape, safety, dynamics = form.geometry, form.safety, form.dynamics
    return RobotProfile(
        profile_id=form.profileId,
        head_um=micro(shape.head),
        tail_um=micro(shape.tail),
        width_um=micro(shape.width),
        safety_front_um=micro(safety.safetyFrontM),
        safety_rear_um=micro(safety.safetyRearM),
        safety_side_um=micro(safety.safetySideM),
        localization_error=_error_value(safety.localizationErrorM),
        tracking_error=_error_value(safety.trackingErrorM),
        extra_margin_um=micro(safety.extraMarginM),
        min_following_gap_um=micro(safety.minFollowingGapM),
        v_max_um_s=micro(dynamics.vMax),
        accel_um_s2=micro(dynamics.accel),
        brake_um_s2=micro(dynamics.a_brake),
        latency_us=micro(dynamics.controlLatencyS),
        turn_rate_urad_s=micro(dynamics.turnRateRadS),
        min_turn_radius_um=micro(dynamics.minTurnRadiusM),
        heading_error_urad=0 if safety.headingErrorRad is UNSET else micro(safety.headingErrorRad),
        stamp_jitter_ms=USUAL_STAMP_JITTER_MS if dynamics.stampJitterMs is UNSET else dynamics.stampJitterMs,
        capabilities=form.capabilities or (),
    )


def _error_value(form: ErrorBound) -> ErrorValue:
    return ErrorValue(micro(form.value), form.source, form.basis)


def refuse_unknown(at: Cursor, known: Collection[str]) -> None:
    """Reject unknown members of parameters; for a member of truck profiles the message names its place there."""
    given = at.any()
    of_trucks = [name for name in given if name in PLACES and name not in known] if isinstance(given, dict) else []
    members = at.object(optional=(*known, *of_trucks))
    for member in of_trucks:
        members[member].refuse(f"{member!r} belongs to the truck profile: {PLACES[member]}", code="unknown_field")


class XY(Struct, frozen=True):
    x: Coordinate
    y: Coordinate


# A point is an object or a pair.
Place = XY | tuple[Coordinate, Coordinate]
# A point that only some kinds of curves have: null is none.
InnerPlace = Annotated[Place | UnsetType, NULL_IS_ABSENT]


class GraphNode(Struct, frozen=True):
    id: Name
    x: Coordinate
    y: Coordinate
    kind: Annotated[str, limited(max_length=NAME_MOST)] | UnsetType = UNSET
    turning: bool | UnsetType = UNSET


# Members that may be in the `props` of an edge or on the edge itself.
class EdgeProps(Struct, frozen=True):
    # Style and direction are validated with the rest of the map.
    movestyle: Annotated[MoveStyle | UnsetType, Read(lambda at: at.text())] = UNSET
    direction: str | UnsetType = UNSET
    width: Length | UnsetType | None = UNSET
    maxSpeedMps: Positive | UnsetType | None = UNSET
    allowedProfiles: tuple[Name, ...] | UnsetType | None = UNSET
    penaltyMs: Annotated[int, limited(ge=0, le=_PENALTY_MOST_MS)] | UnsetType | None = UNSET
    criticalSectionId: Name | UnsetType | None = UNSET


# The members with the inner points of a curve.
_POINTS: Mapping[CurveKind, tuple[str, ...]] = {
    CurveKind.STRAIGHT: (),
    CurveKind.BEZIER: ("controlPos1", "controlPos2"),
    CurveKind.ARC: ("viaPos",),
    CurveKind.POLYLINE: ("points",),
    CurveKind.SPLINE: ("points",),
}


class GraphEdge(EdgeProps, frozen=True, kw_only=True):
    id: Title
    start: Title
    end: Title
    className: CurveKind | UnsetType = UNSET
    controlPos1: InnerPlace = UNSET
    controlPos2: InnerPlace = UNSET
    viaPos: InnerPlace = UNSET
    points: Annotated[tuple[Place, ...] | UnsetType, NULL_IS_ABSENT] = UNSET
    startPos: Place | UnsetType | None = UNSET
    endPos: Place | UnsetType | None = UNSET
    props: EdgeProps | UnsetType | None = UNSET

    @property
    def kind(self) -> CurveKind:
        return CurveKind.STRAIGHT if self.className is UNSET else self.className

    def check(self, at: Members) -> None:
        for member in _POINTS[self.kind]:
            if member == "points":
                if at[member].is_list or not self.points:
                    at[member].list_of(lambda point: point, min=2)
            elif getattr(self, member) is UNSET:
                at[member].object()
        for prop in fields(EdgeProps) if isinstance(self.props, EdgeProps) else ():
            if prop.name in at and getattr(self.props, prop.name) is not UNSET:
                at[prop.name].refuse(f"{prop.name} is given here and in props; remove one of them")


class SectionMember(Struct, frozen=True):
    edgeGroupKey: Text
    s0M: Length | UnsetType | None = UNSET
    s1M: Length | UnsetType | None = UNSET


class CriticalSection(Struct, frozen=True):
    criticalSectionId: Name
    members: Annotated[tuple[SectionMember, ...], limited(min_length=1)]
    capacity: Annotated[int, limited(ge=1, le=1000)] | UnsetType = UNSET
    origin: Origin | UnsetType = UNSET


class SourceMapContract(Struct, frozen=True):
    contractVersion: Version
    mapId: Title
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    criticalSections: tuple[CriticalSection, ...] | UnsetType | None = UNSET
    stations: tuple[Name, ...] | UnsetType | None = UNSET
    parking: tuple[Name, ...] | UnsetType | None = UNSET


def read_source_map(document: Document) -> SourceMap:
    """The source map of a document; raises `DocumentRefused` with every fault."""
    return document.read(source_map_at)


def source_map_at(root: Cursor) -> SourceMap:
    form = read_at(root, SourceMapContract)
    return SourceMap(
        form.mapId,
        tuple(map(_node, form.nodes)),
        tuple(map(_edge, form.edges)),
        tuple(map(_section, form.criticalSections or ())),
        form.stations or (),
        form.parking or (),
    )


def _node(form: GraphNode) -> SourceNode:
    kind = PLAIN_KIND if form.kind is UNSET else form.kind
    return SourceNode(form.id, Point(micro(form.x), micro(form.y)), kind, form.turning is not False)


def _point(place: Place) -> Point:
    x, y = (place.x, place.y) if isinstance(place, XY) else place
    return Point(micro(x), micro(y))


def _edge(form: GraphEdge) -> SourceEdge:
    start_at, end_at = (_point(place) if place else None for place in (form.startPos, form.endPos))
    points: tuple[Point, ...] = ()
    if form.kind in (CurveKind.POLYLINE, CurveKind.SPLINE):
        # The first and the last point are the ends; like other ends, they must be at the nodes.
        vertices = tuple(map(_point, form.points or ()))
        if vertices:
            points, start_at, end_at = vertices[1:-1], vertices[0], vertices[-1]
    else:
        places = [getattr(form, member) for member in _POINTS[form.kind]]
        points = tuple(_point(place) for place in places if place is not UNSET)

    def member(name: str) -> Any:
        """From the edge or its `props`; None if it is in neither."""
        value = getattr(form, name)
        if value is UNSET and isinstance(form.props, EdgeProps):
            value = getattr(form.props, name)
        return None if value is UNSET else value

    width, speed, direction = member("width"), member("maxSpeedMps"), member("direction")
    usual = SourceEdge(form.id, form.start, form.end)
    return replace(
        usual,
        kind=form.kind,
        points=points,
        start_at=start_at,
        end_at=end_at,
        style=usual.style if member("movestyle") is None else member("movestyle"),
        direction=usual.direction if direction is None else direction,
        width_um=None if width is None else micro(width),
        max_speed_um_s=None if speed is None else micro(speed),
        allowed_profiles=tuple(sorted(set(member("allowedProfiles") or ()))),
        penalty_ms=member("penaltyMs") or 0,
        section=member("criticalSectionId"),
    )


def _section(form: CriticalSection) -> SourceSection:
    members = tuple(
        SourceMember(member.edgeGroupKey, *(None if s in (UNSET, None) else micro(s) for s in (member.s0M, member.s1M)))
        for member in form.members
    )
    return SourceSection(form.criticalSectionId, 1 if form.capacity is UNSET else form.capacity, members)


def micros(least: str = "0", most: str = str(HUGE)) -> Read:
    """Annotation: metres, radians or seconds as millionths."""
    return Read(lambda at: micro(at.decimal(min=Decimal(least), max=Decimal(most))), 0)


Um = Annotated[int, micros()]


def given(form: Struct, of: type[Struct] | None = None) -> dict[str, Any]:
    """The members of a form that are given, by the names of the model; only those of a base of the form, if named."""
    names = (of or form).__struct_fields__
    return {name: value for name in names if (value := getattr(form, name)) is not UNSET}


class _ParamsForm(Struct, frozen=True):
    polyline_step_um: Annotated[int, micros("0.05", "0.2")] | UnsetType = field(default=UNSET, name="polylineStepM")
    chord_error_um: Annotated[int, micros("0.0005", "0.1")] | UnsetType = field(default=UNSET, name="chordErrorM")
    conflict_margin_um: Annotated[int, micros("0", "10")] | UnsetType = field(default=UNSET, name="conflictMarginM")
    cell_len_um: Annotated[int, micros("0.5", "1")] | UnsetType = field(default=UNSET, name="cellLenM")
    max_rects_per_cell: Annotated[int, limited(ge=1, le=256)] | UnsetType = field(default=UNSET, name="maxRectsPerCell")
    tangent_eps_urad: Annotated[int, micros("0", "0.5")] | UnsetType = field(default=UNSET, name="tangentEps")
    granularity: Granularity | UnsetType = field(default=UNSET, name="conflictGranularity")
    off_route_um: Annotated[int, micros("0", "5")] = field(default=0, name="offRouteExtraOnBendM")
    turning_um: Annotated[int, micros("0", "5")] = field(default=0, name="turningExtraMarginM")


PARAMS = tuple(member.encode_name for member in fields(_ParamsForm))


def read_params(document: Document) -> CompileParams:
    return document.read(params_at)


def params_at(root: Cursor) -> CompileParams:
    """The compile parameters of an object, with the names of the contract; missing members have their defaults."""
    members = given(read_at(root, _ParamsForm))
    return CompileParams(bend_extra_um=members.pop("off_route_um") + members.pop("turning_um"), **members)


class _TruckForm(Struct, frozen=True, rename="camel"):
    robot_id: Name
    profile_id: Name
    park_node_id: Name


class _StreamForm(Struct, frozen=True, rename="camel"):
    stream_id: Name
    pick_node_ids: tuple[Name, ...]
    drop_node_ids: tuple[Name, ...]
    robot_ids: Annotated[tuple[Name, ...], NULL_IS_ABSENT] = ()

    def check(self, at: Members) -> None:
        refuse_picks(at["dropNodeIds"], self.pick_node_ids, f"stream {self.stream_id!r}")


class _FleetParams(Struct, frozen=True):
    lookahead_um: Um | UnsetType = field(default=UNSET, name="lookaheadM")
    rtp_lookahead_um: Um | UnsetType = field(default=UNSET, name="rtpLookaheadM")
    tick_ms: Annotated[int, limited(ge=1)] | UnsetType = field(default=UNSET, name="tickPeriodMs")
    arrive_tol_um: Um | UnsetType = field(default=UNSET, name="arriveTolM")


class _FleetForm(Struct, frozen=True):
    """Trucks, the streams of goods they serve, and parameters, which may also be at the top level."""

    robots: tuple[_TruckForm, ...]
    streams: Annotated[tuple[_StreamForm, ...], NULL_IS_ABSENT] = ()
    params: _FleetParams | None = None


FLEET_MEMBERS = tuple(member.encode_name for member in fields(_FleetForm))
FLEET_PARAMS = tuple(member.encode_name for member in fields(_FleetParams))


def refuse_picks(drops: Cursor, picks: Collection[str], what: str) -> None:
    """Refuse the drop nodes of a stream or task that are also its pick nodes."""
    for node in drops.list_of(lambda drop: drop) if drops.is_list else (drops,):
        name = node.any()
        if isinstance(name, str) and name and name in picks:
            node.refuse(pick_is_drop(what, name))


def read_fleet(document: Document) -> Fleet:
    """The fleet of a document; raises `DocumentRefused`."""
    return document.read(_fleet)


def _fleet(root: Cursor) -> Fleet:
    form = read_at(root, _FleetForm)
    return Fleet(
        tuple(Truck(**given(truck)) for truck in form.robots),
        tuple(Stream(**given(stream)) for stream in form.streams),
        **given(form.params or read_at(root, _FleetParams)),
    )


# Unknown members: allowed within a major version, but often a misspelling, so they are reported as warnings.
# In graphs and profiles they are findings of the validator, with their places; in parameters and fleets sentences.
# Members whose names begin with `x-` are private and ignored.

_VERSION_MEMBER = "contractVersion"
_PRIVATE = "x-"


def unread_graph(document: Document) -> tuple[Finding, ...]:
    """A finding for each unknown member of a graph."""
    return _warnings(document, source_map_at)


def unread_profiles(document: Document) -> tuple[Finding, ...]:
    """A finding for each unknown member of a file of truck profiles."""
    return _warnings(document, profiles_at)


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


def _warnings(document: Document, read: Callable[[Cursor], object]) -> tuple[Finding, ...]:
    return tuple(
        _finding(document.source_name, fault)
        for fault in unknown_members(document, read)
        if not _unread_member(fault).startswith(_PRIVATE)
    )


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
