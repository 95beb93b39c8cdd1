"""The nouns of the scheduler: source maps, compile parameters, findings, errors. Nothing here acts.

Lengths are whole micrometres, angles microradians; names of fields say so.
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
# Characters of a name of a map or a truck; and its bytes, whatever it is written in.
NAME_MOST = 128
NAME_BYTES = 4 * NAME_MOST


class MoveStyle(StrEnum):
    FORWARD = "forward"
    BACKWARD = "backward"


class Verb(StrEnum):
    """What a truck is told, in words of its own."""

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
    # Told by the author alone: the compiler makes curves of both.
    ARC = "Arc"
    SPLINE = "Spline"


class Direction(StrEnum):
    """Which ways an edge of the source may be driven."""

    START_TO_END = "start_to_end"
    END_TO_START = "end_to_start"
    BOTH = "both"


class Granularity(StrEnum):
    """How far a conflict of two groups reaches: the cells that overlap, or the groups as wholes."""

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
    """What a validator can find; the names are a public contract."""

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
    """One thing the validator has to say; `remedy` is what the author of the map can do about it."""

    code: Code
    severity: Severity
    message: str
    details: dict[str, Json]
    remedy: str = ""


def finding(code: Code, message: str, remedy: str = "", /, **details: Json) -> Finding:
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
    """An edge as its author wrote it. `points` are the inner points of a polyline or spline, the two controls of a
    Bézier, or a point on the way of an arc."""

    id: str
    start: str
    end: str
    kind: CurveKind = CurveKind.STRAIGHT
    points: tuple[Point, ...] = ()
    start_at: Point | None = None
    end_at: Point | None = None
    # The words of the author; what they mean is checked with the rest of the map.
    style: str = MoveStyle.FORWARD.value
    direction: str = Direction.START_TO_END.value
    width_um: int | None = None
    max_speed_um_s: int | None = None
    # Types of trucks that may use it; empty for all.
    allowed_profiles: tuple[str, ...] = ()
    penalty_ms: int = 0
    # The critical section to which its whole lane belongs.
    section: str | None = None


class SourceMember(Struct, frozen=True):
    """A part of a group that belongs to a section; whole where no interval is given."""

    group_key: str
    s0_um: int | None = None
    s1_um: int | None = None


class SourceSection(Struct, frozen=True):
    id: str
    capacity: int
    members: tuple[SourceMember, ...]


class SourceMap(Struct, frozen=True):
    """A graph as read. `stations` and `parking` add to what the kinds of the nodes say."""

    map_id: str
    nodes: tuple[SourceNode, ...]
    edges: tuple[SourceEdge, ...]
    sections: tuple[SourceSection, ...] = ()
    stations: tuple[str, ...] = ()
    parking: tuple[str, ...] = ()


STATION_KINDS = frozenset({"ActionPoint"})
PARKING_KINDS = frozenset({"ParkPoint"})
# What a node is of which nothing is said.
PLAIN_KIND = "LocationMark"
NODE_KINDS = (*sorted(STATION_KINDS), PLAIN_KIND, *sorted(PARKING_KINDS))


class CompileParams(Struct, frozen=True):
    """What the compiler is told beside map and trucks; part of `mapHash`."""

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
    """A truck of the fleet that a certificate is about."""

    robot_id: str
    profile_id: str
    park_node_id: str


class Stream(Struct, frozen=True):
    stream_id: str
    pick_node_ids: tuple[str, ...]
    drop_node_ids: tuple[str, ...]
    # The trucks that serve it; empty for all that can be where its stops are.
    robot_ids: tuple[str, ...] = ()


def pick_is_drop(what: str, node: str) -> str:
    """Why a task from a node to itself is refused: it moves nothing, and no truck would drive."""
    return f"{what} picks up and drops in the same node {node!r}; name two different nodes"


class Fleet(Struct, frozen=True):
    trucks: tuple[Truck, ...]
    streams: tuple[Stream, ...] = ()
    lookahead_um: int = 8_000_000
    rtp_lookahead_um: int = 3_000_000
    tick_ms: int = 100
    # A truck has arrived when it stands this close to its node.
    arrive_tol_um: int = 100_000


class MapRefused(InputRefused):
    """A map with findings of severity ERROR makes no artifact. Facts: `findings`."""

    code = "map_refused"


class MapDamaged(WorldBroken):
    """An artifact whose bytes are not what their hash says, or of a form this version does not read."""

    code = "map_damaged"


def errors_of(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(one for one in findings if one.severity is Severity.ERROR)


def as_json(one: Finding) -> Mapping[str, Json]:
    form: dict[str, Json] = {
        "code": one.code.value,
        "severity": one.severity.value,
        "message": one.message,
        "details": one.details,
    }
    if one.remedy:
        form["remedy"] = one.remedy
    return form
