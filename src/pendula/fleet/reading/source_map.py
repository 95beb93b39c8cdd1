"""Reader of source maps: graphs of aisles."""

from collections.abc import Callable

from msgspec.structs import replace

from pendula.documents import Cursor, Document, Members
from pendula.fleet.model import (
    NAME_MOST,
    PLAIN_KIND,
    CurveKind,
    Point,
    SourceEdge,
    SourceMap,
    SourceMember,
    SourceNode,
    SourceSection,
)
from pendula.fleet.reading.values import HUGE, FaultCode, length, name, positive, version
from pendula.fleet.units import micro

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
