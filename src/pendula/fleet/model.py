"""Data of the scheduler: source maps, compile parameters, findings, errors.

Lengths are whole micrometres, angles microradians, as field names state.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NewType

from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused, WorldBroken

NodeId = NewType("NodeId", str)
EdgeKey = NewType("EdgeKey", str)
GroupKey = NewType("GroupKey", str)
COMPILER_VERSION = "1.0.0"
CONTRACT_VERSION = "1.0.0"
# Readers take every version with this number before the first dot.
MAJOR = "1"
# Most characters of the name of a map or a truck, and most bytes of it in UTF-8.
NAME_MOST = 128
NAME_BYTES = 4 * NAME_MOST


class MoveStyle(StrEnum):
    FORWARD = "forward"
    BACKWARD = "backward"


class Verb(StrEnum):
    """Verbs of commands for trucks."""

    GO = "go"
    HOLD = "hold"
    TURN = "turn"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"


class CurveKind(StrEnum):
    STRAIGHT = "Straight"
    POLYLINE = "Polyline"
    BEZIER = "Bezier"
    # In source maps only: the compiler turns both into Bézier curves.
    ARC = "Arc"
    SPLINE = "Spline"


class Direction(StrEnum):
    """The directions in which an edge of the source may be driven."""

    START_TO_END = "start_to_end"
    END_TO_START = "end_to_start"
    BOTH = "both"


class Granularity(StrEnum):
    """What two conflicting groups exclude: the cells that overlap, or the whole groups."""

    WINDOW = "window"
    EDGE = "edge"


class Stand(StrEnum):
    FREE = "free"
    UNWANTED = "unwanted"
    FORBIDDEN = "forbidden"


class TransitionKind(StrEnum):
    TANGENT = "TANGENT"
    NON_TANGENT = "NON_TANGENT"


class Origin(StrEnum):
    AUTHORED = "AUTHORED"
    GENERATED = "GENERATED"


class Severity(StrEnum):
    ERROR = "ERROR"
    WARN = "WARN"
    INFO = "INFO"


class Code(StrEnum):
    """Codes of findings; the names are a public contract."""

    MAP_PARSE_ERROR = "MAP_PARSE_ERROR"
    MAP_INVALID_GEOMETRY = "MAP_INVALID_GEOMETRY"
    EDGE_ZERO_LENGTH = "EDGE_ZERO_LENGTH"
    DANGLING_EDGE = "DANGLING_EDGE"
    DUPLICATE_ID = "DUPLICATE_ID"
    GRAPH_DISCONNECTED = "GRAPH_DISCONNECTED"
    INVALID_DIRECTION = "INVALID_DIRECTION"
    MISSING_RETURN_EDGE = "MISSING_RETURN_EDGE"
    TURN_TOO_TIGHT = "TURN_TOO_TIGHT"
    EDGES_CLOSE = "EDGES_CLOSE"
    NODE_GEOMETRY_GAP = "NODE_GEOMETRY_GAP"
    MISSING_PARKING_NODE = "MISSING_PARKING_NODE"
    MISSING_PICK_DROP_NODE = "MISSING_PICK_DROP_NODE"
    NODE_UNREACHABLE = "NODE_UNREACHABLE"
    PARKING_BLOCKS_TRAFFIC = "PARKING_BLOCKS_TRAFFIC"
    NO_SAFE_WAIT_POSITION = "NO_SAFE_WAIT_POSITION"
    DEAD_END_WITHOUT_TOKEN = "DEAD_END_WITHOUT_TOKEN"
    DEAD_END_HAS_ROOM = "DEAD_END_HAS_ROOM"
    CS_WITHOUT_EXIT_ROOM = "CS_WITHOUT_EXIT_ROOM"
    LANE_TOO_NARROW = "LANE_TOO_NARROW"
    NODE_ZONES_OVERLAP = "NODE_ZONES_OVERLAP"
    CONFLICT_BUILD_FAILED = "CONFLICT_BUILD_FAILED"
    PROFILE_MISSING_FIELD = "PROFILE_MISSING_FIELD"
    PROFILE_HASH_MISMATCH = "PROFILE_HASH_MISMATCH"
    MAP_NOT_LIVE = "MAP_NOT_LIVE"


_WARNINGS = frozenset(
    {
        Code.GRAPH_DISCONNECTED,
        Code.MISSING_RETURN_EDGE,
        Code.PARKING_BLOCKS_TRAFFIC,
        Code.NO_SAFE_WAIT_POSITION,
        Code.DEAD_END_WITHOUT_TOKEN,
        Code.CS_WITHOUT_EXIT_ROOM,
        Code.LANE_TOO_NARROW,
        Code.NODE_ZONES_OVERLAP,
    }
)


def severity_of(code: Code) -> Severity:
    if code in (Code.EDGES_CLOSE, Code.DEAD_END_HAS_ROOM):
        return Severity.INFO
    return Severity.WARN if code in _WARNINGS else Severity.ERROR


class Finding(Struct, frozen=True):
    """One result of the validator; `remedy` is what the author of the map can do about it.

    Compiled maps store code, severity and details; `sentences.map_finding` renders message and remedy from them.
    """

    code: Code
    severity: Severity
    message: str
    details: dict[str, Json]
    remedy: str = ""


def finding(code: Code, message: str, remedy: str = "", /, **details: Json) -> Finding:
    """A finding that no compiled map stores: an error."""
    return Finding(code, severity_of(code), message, details, remedy)


class Point(Struct, frozen=True):
    x_um: int
    y_um: int


class SourceNode(Struct, frozen=True):
    id: str
    at: Point
    kind: str = "LocationMark"
    turning: bool = True


class SourceEdge(Struct, frozen=True):
    """An edge as its author wrote it. `points`: the inner points of a polyline or spline, the two control points of a
    Bézier curve, or a point on an arc."""

    id: str
    start: str
    end: str
    kind: CurveKind = CurveKind.STRAIGHT
    points: tuple[Point, ...] = ()
    start_at: Point | None = None
    end_at: Point | None = None
    # As written; validated with the rest of the map.
    style: str = MoveStyle.FORWARD.value
    direction: str = Direction.START_TO_END.value
    width_um: int | None = None
    max_speed_um_s: int | None = None
    # Profiles that may use it; empty for all.
    allowed_profiles: tuple[str, ...] = ()
    penalty_ms: int = 0
    # The critical section that contains its whole lane.
    section: str | None = None


class SourceMember(Struct, frozen=True):
    """A part of a group that belongs to a section; the whole group without an interval."""

    group_key: str
    s0_um: int | None = None
    s1_um: int | None = None


class SourceSection(Struct, frozen=True):
    id: str
    capacity: int
    members: tuple[SourceMember, ...]


class SourceMap(Struct, frozen=True):
    """A graph as read. `stations` and `parking` add to the kinds of the nodes."""

    map_id: str
    nodes: tuple[SourceNode, ...]
    edges: tuple[SourceEdge, ...]
    sections: tuple[SourceSection, ...] = ()
    stations: tuple[str, ...] = ()
    parking: tuple[str, ...] = ()


STATION_KINDS = frozenset({"ActionPoint"})
PARKING_KINDS = frozenset({"ParkPoint"})
# The default kind of a node.
PLAIN_KIND = "LocationMark"
NODE_KINDS = (*sorted(STATION_KINDS), PLAIN_KIND, *sorted(PARKING_KINDS))


class CompileParams(Struct, frozen=True):
    """Options of the compiler; part of `mapHash`."""

    polyline_step_um: int = 50_000
    chord_error_um: int = 5_000
    conflict_margin_um: int = 0
    cell_len_um: int = 500_000
    geom_eps_um: int = 1
    max_rects_per_cell: int = 32
    tangent_eps_urad: int = 87_300
    granularity: Granularity = Granularity.WINDOW
    bend_extra_um: int = 0


class Truck(Struct, frozen=True):
    """A truck of a certified fleet."""

    robot_id: str
    profile_id: str
    park_node_id: str


class Stream(Struct, frozen=True):
    stream_id: str
    pick_node_ids: tuple[str, ...]
    drop_node_ids: tuple[str, ...]
    # The trucks that serve it; empty for all that can reach its stops.
    robot_ids: tuple[str, ...] = ()


def pick_is_drop(what: str, node: str) -> str:
    """Why a task from a node to itself is rejected: it moves nothing."""
    return f"{what} picks up and drops in the same node {node!r}; name two different nodes"


class Fleet(Struct, frozen=True):
    trucks: tuple[Truck, ...]
    streams: tuple[Stream, ...] = ()
    lookahead_um: int = 8_000_000
    rtp_lookahead_um: int = 3_000_000
    tick_ms: int = 100
    # A truck this close to its node has arrived.
    arrive_tol_um: int = 100_000


class MapRefused(InputRefused):
    """A map with findings of severity ERROR is not compiled. Facts: `findings`."""

    code = "map_refused"


class MapDamaged(WorldBroken):
    """An artifact whose bytes do not match their hash, or of a form that this version does not read."""

    code = "map_damaged"


def errors_of(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(found for found in findings if found.severity is Severity.ERROR)


def as_json(result: Finding) -> Mapping[str, Json]:
    form: dict[str, Json] = {
        "code": result.code.value,
        "severity": result.severity.value,
        "message": result.message,
        "details": result.details,
    }
    if result.remedy:
        form["remedy"] = result.remedy
    return form
