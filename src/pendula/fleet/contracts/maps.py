"""Payloads of maps, trucks and routes as typed models; `schema` generates JSON Schemas from them.

Members have the names of the public contract. Unknown members are ignored; a missing required member is an error.
Numbers are exact decimals. The payloads of the running system are in `traffic`.
"""

from decimal import Decimal

from msgspec import UNSET, Struct, UnsetType

from pendula.fleet.model import Code, CurveKind, Granularity, MoveStyle, Origin, Severity, Stand, TransitionKind
from pendula.fleet.trucks.profiles import Source
from pendula.kernel.canonical import Json

Number = Decimal


class ErrorBound(Struct, frozen=True):
    value: Number
    source: Source
    basis: str


class ProfileGeometry(Struct, frozen=True):
    head: Number
    tail: Number
    width: Number


class ProfileSafety(Struct, frozen=True):
    safetyFrontM: Number
    safetyRearM: Number
    safetySideM: Number
    localizationErrorM: ErrorBound
    trackingErrorM: ErrorBound
    extraMarginM: Number
    minFollowingGapM: Number
    headingErrorRad: Number | UnsetType = UNSET


class ProfileDynamics(Struct, frozen=True):
    vMax: Number
    accel: Number
    a_brake: Number
    controlLatencyS: Number
    turnRateRadS: Number
    minTurnRadiusM: Number
    stampJitterMs: int | UnsetType = UNSET


class RobotProfileContract(Struct, frozen=True):
    contractVersion: str
    profileId: str
    geometry: ProfileGeometry
    safety: ProfileSafety
    dynamics: ProfileDynamics
    capabilities: tuple[str, ...] | UnsetType = UNSET


class XY(Struct, frozen=True):
    x: Number
    y: Number


# A point is an object or a pair.
Place = XY | tuple[Number, Number]


class GraphNode(Struct, frozen=True):
    id: str
    x: Number
    y: Number
    kind: str | UnsetType = UNSET
    turning: bool | UnsetType = UNSET


class EdgeProps(Struct, frozen=True):
    movestyle: MoveStyle | UnsetType = UNSET
    direction: str | UnsetType = UNSET
    width: Number | UnsetType | None = UNSET
    maxSpeedMps: Number | UnsetType | None = UNSET
    allowedProfiles: tuple[str, ...] | UnsetType | None = UNSET
    penaltyMs: int | UnsetType | None = UNSET
    criticalSectionId: str | UnsetType | None = UNSET


class GraphEdge(EdgeProps, frozen=True, kw_only=True):
    id: str
    start: str
    end: str
    className: CurveKind | UnsetType = UNSET
    controlPos1: Place | UnsetType = UNSET
    controlPos2: Place | UnsetType = UNSET
    viaPos: Place | UnsetType = UNSET
    points: tuple[Place, ...] | UnsetType = UNSET
    startPos: Place | UnsetType | None = UNSET
    endPos: Place | UnsetType | None = UNSET
    props: EdgeProps | UnsetType | None = UNSET


class SectionMember(Struct, frozen=True):
    edgeGroupKey: str
    s0M: Number | UnsetType | None = UNSET
    s1M: Number | UnsetType | None = UNSET


class CriticalSection(Struct, frozen=True):
    criticalSectionId: str
    members: tuple[SectionMember, ...]
    capacity: int | UnsetType = UNSET
    origin: Origin | UnsetType = UNSET


class SourceMapContract(Struct, frozen=True):
    contractVersion: str
    mapId: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    criticalSections: tuple[CriticalSection, ...] | UnsetType | None = UNSET
    stations: tuple[str, ...] | UnsetType | None = UNSET
    parking: tuple[str, ...] | UnsetType | None = UNSET


class Units(Struct, frozen=True):
    length: str
    angle: str
    time: str


class CompileParamsContract(Struct, frozen=True):
    polylineStepM: Number
    chordErrorM: Number
    conflictMarginM: Number
    cellLenM: Number
    geomEps: Number
    maxRectsPerCell: int | UnsetType = UNSET
    tangentEps: Number | UnsetType = UNSET
    conflictGranularity: Granularity | UnsetType = UNSET
    bendExtraM: Number | UnsetType = UNSET


class CompiledNode(Struct, frozen=True):
    nodeId: str
    x: Number
    y: Number
    kind: str
    station: bool | UnsetType = UNSET
    parking: bool | UnsetType = UNSET
    turning: bool | UnsetType = UNSET


class CompiledEdge(Struct, frozen=True, rename={"start": "from", "end": "to"}):
    edgeKey: str
    edgeGroupKey: str
    start: str
    end: str
    lengthM: Number
    movestyle: MoveStyle
    polyline: tuple[tuple[Number, Number], ...]
    criticalSectionId: str | None
    sourceId: str | UnsetType = UNSET
    className: CurveKind | UnsetType = UNSET
    arcUm: tuple[int, ...] | UnsetType = UNSET
    headingsUrad: tuple[int, ...] | UnsetType = UNSET
    widthM: Number | UnsetType = UNSET
    maxSpeedMps: Number | UnsetType = UNSET
    allowedProfiles: tuple[str, ...] | UnsetType = UNSET
    penaltyMs: int | UnsetType = UNSET


class EdgeGroup(Struct, frozen=True):
    edgeGroupKey: str
    axis: tuple[str, str]
    lengthM: Number
    edgeKeys: tuple[str, ...]
    directionPolicy: str


class EdgeSpan(Struct, frozen=True):
    edgeKey: str
    s0M: Number
    s1M: Number


class NamedConflict(Struct, frozen=True):
    conflictId: str
    members: tuple[str, str]
    cause: str
    minDistanceM: Number
    windows: tuple[EdgeSpan, ...] | UnsetType = UNSET


class NodeZone(Struct, frozen=True):
    nodeId: str
    radiusM: Number
    overlapsNodes: tuple[str, ...]
    windows: tuple[EdgeSpan, ...]


class FindingContract(Struct, frozen=True):
    code: Code
    severity: Severity
    details: dict[str, Json]
    # Compiled maps have neither: both are rendered from the code and the details.
    message: str | UnsetType = UNSET
    remedy: str | UnsetType = UNSET


class CompiledMapContract(Struct, frozen=True):
    """The named part of a compiled map; its columns of cells and relations are ignored."""

    contractVersion: str
    compilerVersion: str
    mapId: str
    mapHash: str
    robotProfileHash: str
    compiledMapHash: str
    units: Units
    params: CompileParamsContract
    nodes: tuple[CompiledNode, ...]
    edges: tuple[CompiledEdge, ...]
    edgeGroups: tuple[EdgeGroup, ...]
    conflicts: tuple[NamedConflict, ...]
    edgeConflictGroups: dict[str, tuple[str, ...]]
    nodeZones: tuple[NodeZone, ...]
    criticalSections: tuple[CriticalSection, ...]
    validation: tuple[FindingContract, ...]


class AnchorContract(Struct, frozen=True):
    """`ON_EDGE` with edge and position, or `AT_NODE` with the node."""

    kind: str
    edgeKey: str | UnsetType = UNSET
    sM: Number | UnsetType = UNSET
    nodeId: str | UnsetType = UNSET


class EndNode(Struct, frozen=True):
    nodeId: str
    mustStop: bool
    turnRad: Number


class RouteSegment(Struct, frozen=True):
    segmentIndex: int
    edgeKey: str
    edgeGroupKey: str
    lengthM: Number
    routeS0M: Number
    movestyle: MoveStyle
    geometryRef: str
    endNode: EndNode


class RoutePlanContract(Struct, frozen=True):
    contractVersion: str
    routeId: str
    revision: int
    robotId: str
    compiledMapHash: str
    start: AnchorContract
    goalNodeId: str
    restNodeId: str | None
    onwardEdgeKeys: tuple[str, ...]
    lengthM: Number
    costMs: int
    segments: tuple[RouteSegment, ...]
    reason: str
    onwardStops: tuple[int, ...] | UnsetType = UNSET


class Rect(Struct, frozen=True):
    cx: Number
    cy: Number
    yaw: Number
    hx: Number
    hy: Number


class SweptShape(Struct, frozen=True):
    kind: str
    bbox: tuple[Number, Number, Number, Number]
    rects: tuple[Rect, ...]


class CellContract(Struct, frozen=True):
    cellId: str
    edgeKey: str
    corridorId: str
    s0M: Number
    s1M: Number
    dir: str
    stand: Stand
    standReasons: tuple[str, ...]
    criticalSectionId: str | None
    sweptShape: SweptShape
    conflictSet: tuple[str, ...]
    followingSet: tuple[str, ...]


class TransitionContract(Struct, frozen=True):
    nodeId: str
    inEdgeKey: str
    outEdgeKey: str
    transitionGeomKind: TransitionKind
    turnRad: Number
