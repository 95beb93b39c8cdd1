"""Payloads of the scheduler as typed models, and their JSON Schemas: maps and routes, states, locks, tasks, operators.

Members have the names of the public contract; members of the base contract stay, others may be added. Unknown members
are ignored; a missing required member is an error. Numbers are exact decimals.
"""

from decimal import Decimal
from enum import StrEnum
from types import GenericAlias
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from pendula.documents import DocumentRefused, Format, read_bytes
from pendula.fleet.map.reading import Number, RobotProfileContract, SourceMapContract
from pendula.fleet.map.site_file import CompiledMapContract
from pendula.fleet.model import MAJOR, MoveStyle, Stand, TransitionKind, Verb
from pendula.kernel.canonical import Json, encode
from pendula.kernel.errors import InputRefused


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


# The running system: states, requests, locks, commands, tasks, operators.


class RobotStatus(StrEnum):
    OK = "OK"
    OFFLINE = "OFFLINE"
    FAULT = "FAULT"


class Phase(StrEnum):
    TO_PICK = "TO_PICK"
    LOADING = "LOADING"
    TO_DROP = "TO_DROP"
    UNLOADING = "UNLOADING"
    IDLE = "IDLE"
    TO_PARK = "TO_PARK"


class RobotHealth(StrEnum):
    HEALTHY = "HEALTHY"
    STALE = "STALE"
    OFFLINE = "OFFLINE"
    POSE_JUMP = "POSE_JUMP"
    OFF_ROUTE = "OFF_ROUTE"
    STUCK = "STUCK"
    FAULT = "FAULT"


class HoldReason(StrEnum):
    NONE = "NONE"
    TRAFFIC_HOLD = "TRAFFIC_HOLD"
    SAFETY_STOP = "SAFETY_STOP"
    NO_COMMS = "NO_COMMS"
    OFFLINE = "OFFLINE"
    ROBOT_FAULT = "ROBOT_FAULT"


class PriorityClass(StrEnum):
    OBSTACLE = "OBSTACLE"
    SERVICE = "SERVICE"
    TASK = "TASK"
    PARK = "PARK"
    IDLE = "IDLE"


class TaskState(StrEnum):
    WAITING = "WAITING"
    READY = "READY"
    ASSIGNED = "ASSIGNED"
    PENDING_PREEMPT = "PENDING_PREEMPT"
    IN_PROGRESS = "IN_PROGRESS"
    DONE = "DONE"
    HELD = "HELD"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class CommandMode(StrEnum):
    GO = "GO"
    HOLD = "HOLD"
    STOP = "STOP"
    TURN = "TURN"


class PoseContract(Struct, frozen=True):
    x: Number
    y: Number
    yaw: Number


class TaskView(Struct, frozen=True):
    taskId: str | None
    phase: Phase
    pendingTaskId: str | UnsetType | None = UNSET


class ProgressContract(Struct, frozen=True):
    routeId: str
    segmentIndex: int
    sOnSegmentM: Number
    sOnRouteM: Number | UnsetType = UNSET
    revision: int | UnsetType = UNSET
    lateralErrorM: Number | UnsetType = UNSET
    headingErrorRad: Number | UnsetType = UNSET
    confidence: Number | UnsetType = UNSET


class RobotState(Struct, frozen=True):
    """The report of a truck and its derived state. Members that a truck may leave out are optional."""

    robotId: str
    nowMs: int
    pose: PoseContract
    v: Number
    status: RobotStatus
    task: TaskView | UnsetType | None = UNSET
    progress: ProgressContract | UnsetType | None = UNSET
    contractVersion: str | UnsetType = UNSET
    profileId: str | UnsetType = UNSET
    lastStatusMs: int | UnsetType = UNSET
    loadOnBoard: bool | UnsetType = UNSET
    parkNodeId: str | UnsetType = UNSET
    lastAckSeq: int | UnsetType = UNSET
    health: RobotHealth | UnsetType = UNSET
    obstructed: bool | UnsetType = UNSET


class StreamConditions(Struct, frozen=True):
    pickHasGoods: bool
    dropHasRoom: bool


class StreamContract(Struct, frozen=True):
    contractVersion: str
    streamId: str
    pickNodeIds: tuple[str, ...]
    dropNodeIds: tuple[str, ...]
    pickDurationMs: int
    dropDurationMs: int
    priority: int
    maxConcurrent: int
    conditions: StreamConditions | UnsetType = UNSET
    robotIds: tuple[str, ...] | UnsetType = UNSET


class AssignReason(Struct, frozen=True):
    etaMs: int
    candidates: tuple[tuple[str, int], ...]


class TaskContract(Struct, frozen=True):
    contractVersion: str
    taskId: str
    streamId: str | None
    state: TaskState
    pickNodeId: str
    dropNodeId: str
    priority: int
    createdTs: int
    assignedRobotId: str | None
    assignedTs: int | None
    assignReason: AssignReason | None


class GrantUnit(Struct, frozen=True):
    unitId: int
    s0M: Number
    s1M: Number
    resources: tuple[str, ...]


class CorridorRequest(Struct, frozen=True):
    contractVersion: str
    robotId: str
    routeId: str
    revision: int
    nowMs: int
    priorityClass: PriorityClass
    currentS: Number
    lookaheadM: Number
    lookbackM: Number
    units: tuple[GrantUnit, ...]


class Blocker(Struct, frozen=True):
    """The blocking truck and the resource it holds."""

    blockerRobotId: str
    blockerResourceId: str


class HoldPoint(Struct, frozen=True):
    kind: str
    edgeKey: str
    sM: Number
    world: PoseContract
    sOnRouteM: Number | UnsetType = UNSET


class HoldComponents(Struct, frozen=True):
    grantsS: Number | UnsetType | None = UNSET
    followingS: Number | UnsetType | None = UNSET
    nodeS: Number | UnsetType | None = UNSET
    criticalSectionS: Number | UnsetType | None = UNSET


class LockResult(Struct, frozen=True):
    robotId: str
    ok: bool
    holdReason: HoldReason
    blocker: Blocker | None
    holdPoint: HoldPoint | None
    contractVersion: str | UnsetType = UNSET
    reasonCode: str | UnsetType | None = UNSET
    queuePosition: int | UnsetType | None = UNSET
    waitMs: int | UnsetType = UNSET
    holdComponents: HoldComponents | UnsetType = UNSET
    # The requested resource; for WAIT_SAFE_STATE the trucks of the cycle, each blocked by the next.
    requestedResourceId: str | UnsetType = UNSET
    cycle: tuple[str, ...] | UnsetType = UNSET


class Occupant(Struct, frozen=True):
    robotId: str
    sM: Number
    reservedAheadM: Number
    state: str | UnsetType = UNSET


class Queued(Struct, frozen=True):
    robotId: str
    requestTs: int
    priorityClass: PriorityClass
    rank: int | UnsetType = UNSET


class GroupLocks(Struct, frozen=True):
    edgeGroupKey: str
    direction: str
    occupants: tuple[Occupant, ...]
    queue: tuple[Queued, ...]


class NodeLock(Struct, frozen=True):
    nodeId: str
    robotId: str
    radiusM: Number
    state: str | UnsetType = UNSET


class ConflictLock(Struct, frozen=True):
    conflictId: str
    robotId: str


class SectionLock(Struct, frozen=True):
    criticalSectionId: str
    robotIds: tuple[str, ...]
    capacity: int


class ResourceQueue(Struct, frozen=True):
    resourceId: str
    queue: tuple[Queued, ...]


class DirectionState(Struct, frozen=True):
    edgeGroupKey: str
    direction: str
    closedForNewEntries: bool
    emptySinceMs: int | None


class SnapshotRobot(Struct, frozen=True):
    robotId: str
    routeId: str | None
    revision: int
    grantEndS: Number
    farthestStopLineS: Number
    health: RobotHealth


class ClosedPlace(Struct, frozen=True):
    resourceId: str
    sinceMs: int
    actionId: str
    operatorId: str
    reason: str


class LockSnapshot(Struct, frozen=True):
    nowMs: int
    edgeGroups: tuple[GroupLocks, ...]
    nodeLocks: tuple[NodeLock, ...]
    conflictLocks: tuple[ConflictLock, ...]
    contractVersion: str | UnsetType = UNSET
    tick: int | UnsetType = UNSET
    compiledMapHash: str | UnsetType = UNSET
    liveOverride: bool | UnsetType = UNSET
    csLocks: tuple[SectionLock, ...] | UnsetType = UNSET
    queues: tuple[ResourceQueue, ...] | UnsetType = UNSET
    directionState: tuple[DirectionState, ...] | UnsetType = UNSET
    retractions: tuple[Json, ...] | UnsetType = UNSET
    robots: tuple[SnapshotRobot, ...] | UnsetType = UNSET
    # Resources closed by operators; absent if there are none.
    closings: tuple[ClosedPlace, ...] | UnsetType = UNSET


class TickSnapshot(Struct, frozen=True):
    contractVersion: str
    tick: int
    nowMs: int
    robots: tuple[RobotState, ...]
    lockResults: tuple[LockResult, ...]
    locks: LockSnapshot
    commands: tuple["RollingTargetCommand", ...]


class RollingTargetCommand(Struct, frozen=True):
    contractVersion: str
    robotId: str
    seq: int
    nowMs: int
    mode: CommandMode
    holdReason: HoldReason
    routeId: str
    revision: int
    currentS: Number
    targetS: Number
    stopLineS: Number
    target: PoseContract
    pathSlice: tuple[tuple[Number, Number], ...]
    movestyle: MoveStyle
    validForMs: int
    speedLimitMps: Number | UnsetType = UNSET
    targetYaw: Number | UnsetType = UNSET
    verbs: tuple[Verb, ...] | UnsetType = UNSET


class Acknowledgement(Struct, frozen=True):
    contractVersion: str
    robotId: str
    lastAckSeq: int
    appliedStopLineS: Number
    ts: int


class AnchorPlace(Struct, frozen=True):
    edgeKey: str
    sM: Number


class OperatorAction(Struct, frozen=True):
    contractVersion: str
    actionId: str
    ts: int
    operatorId: str
    type: str
    reason: str
    robotId: str | UnsetType = UNSET
    taskId: str | UnsetType = UNSET
    anchor: AnchorPlace | UnsetType = UNSET
    resources: tuple[str, ...] | UnsetType = UNSET
    physicallySecured: bool | UnsetType = UNSET
    confirmationOf: str | UnsetType = UNSET
    # Apply it despite the consequences.
    force: bool | UnsetType = UNSET
    # The role of the operator, set by the server that authenticated the request.
    role: str | UnsetType = UNSET


class OperatorAnswer(Struct, frozen=True):
    contractVersion: str
    actionId: str
    accepted: bool
    code: str | None
    message: str
    appliedTick: int | None
    freedResources: tuple[str, ...]


class Alert(Struct, frozen=True):
    alertId: str
    code: str
    severity: str
    sinceMs: int
    details: dict[str, Json]
    robotId: str | UnsetType = UNSET


class TickHashes(Struct, frozen=True):
    compiledMapHash: str
    robotProfileHash: str
    paramsHash: str


class TickInputsForm(Struct, frozen=True):
    robotStates: tuple[Json, ...]
    routePlans: tuple[Json, ...]
    taskEvents: tuple[Json, ...]
    operatorActions: tuple[Json, ...]


class TickDecisions(Struct, frozen=True):
    assignments: tuple[Json, ...]
    replans: tuple[Json, ...]
    requests: tuple[Json, ...]
    lockResults: tuple[Json, ...]
    snapshotDigest: str


class TickOutputsForm(Struct, frozen=True):
    commands: tuple[Json, ...]


class TickMetrics(Struct, frozen=True):
    # Null if it was not measured, as in a replay.
    tickUs: int | None
    minEnvelopeDistanceM: Number | None


class TickRecord(Struct, frozen=True):
    contractVersion: str
    tick: int
    nowMs: int
    hashes: TickHashes
    inputs: TickInputsForm
    decisions: TickDecisions
    outputs: TickOutputsForm
    metrics: TickMetrics
    alerts: tuple[Alert, ...]


class Grant(Struct, frozen=True):
    robotId: str
    grantedCells: tuple[str, ...]
    nodeZones: tuple[str, ...]
    tokens: tuple[str, ...]
    holdComponents: HoldComponents
    holdPointRouteS: Number


# The table of all contracts: parse, serialise, schemas.

DRAFT = "https://json-schema.org/draft/2020-12/schema"
CONTRACTS: dict[str, type[msgspec.Struct]] = {
    "RobotProfile": RobotProfileContract,
    "SourceMap": SourceMapContract,
    "CompiledMap": CompiledMapContract,
    "RoutePlan": RoutePlanContract,
    "Cell": CellContract,
    "Transition": TransitionContract,
    "RobotState": RobotState,
    "Stream": StreamContract,
    "Task": TaskContract,
    "CorridorRequest": CorridorRequest,
    "LockResult": LockResult,
    "LockSnapshot": LockSnapshot,
    "TickSnapshot": TickSnapshot,
    "RollingTargetCommand": RollingTargetCommand,
    "Acknowledgement": Acknowledgement,
    "OperatorAction": OperatorAction,
    "OperatorAnswer": OperatorAnswer,
    "TickRecord": TickRecord,
    "Alert": Alert,
    "Grant": Grant,
}
# Members under which HTTP bodies and answers wrap lists of payloads, and the other members of such answers.
LISTS = {"lockResults": "LockResult", "robots": "RobotState", "reports": "RobotState"}
_OF_ANSWERS = ("tick", "nowMs")


class ContractRefused(InputRefused):
    """A payload does not match its contract. Facts: `contract`, `reason`."""

    code = "contract_refused"


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of a contract; decimals are numbers."""
    (form,), definitions = msgspec.json.schema_components([CONTRACTS[name]], ref_template="#/$defs/{name}")
    whole = {"$schema": DRAFT, "title": name, **form, "$defs": definitions}
    result: dict[str, Any] = _numbers(whole)
    return result


def _numbers(form: Any) -> Any:
    if isinstance(form, dict):
        if form.get("format") == "decimal":
            return {"type": "number"}
        return {name: _numbers(value) for name, value in form.items()}
    return [_numbers(item) for item in form] if isinstance(form, list) else form


def parse(name: str, data: bytes | str) -> msgspec.Struct:
    """A payload, JSON or JSON5, as its model; raises `ContractRefused` for a wrong form or another major version."""
    try:
        value = _read(name, data.encode() if isinstance(data, str) else data)
    except (msgspec.ValidationError, DocumentRefused) as error:
        raise ContractRefused(f"This is not a valid {name}: {error}", contract=name, reason=str(error)) from error
    _require_version(value, name)
    return value


def _require_version(value: msgspec.Struct, name: str) -> None:
    version = getattr(value, "contractVersion", msgspec.UNSET)
    given = f"{MAJOR}.0.0" if version is msgspec.UNSET else version
    if given.split(".")[0] != MAJOR:
        reason = f"contract version {given} is not supported, only {MAJOR}.x.y"
        raise ContractRefused(f"This is not a {name} of this version: {reason}", contract=name, reason=reason)


def list_of(data: bytes | str) -> str | None:
    """The member under which an HTTP answer wraps a list of payloads; None if the payload is not such a list."""
    try:
        value = read_bytes(data.encode() if isinstance(data, str) else data, Format.JSON5, "payload").value
    except DocumentRefused:
        return None
    if not isinstance(value, dict) or not value.keys() <= {*LISTS, *_OF_ANSWERS}:
        return None
    return next((member for member in LISTS if isinstance(value.get(member), list)), None)


def parse_list(member: str, data: bytes | str) -> msgspec.Struct:
    """The payloads wrapped in `member`, each validated; raises `ContractRefused` with the place of a fault."""
    name = LISTS[member]
    wrapped = msgspec.defstruct(
        f"{name}s",
        [
            (member, GenericAlias(tuple, (CONTRACTS[name], ...))),
            *((other, Any, msgspec.UNSET) for other in _OF_ANSWERS),
        ],
        frozen=True,
    )
    try:
        value = _read_as(wrapped, name, data.encode() if isinstance(data, str) else data)
    except (msgspec.ValidationError, DocumentRefused) as error:
        raise ContractRefused(f"This is no list of valid {name}: {error}", contract=name, reason=str(error)) from error
    for item in getattr(value, member):
        _require_version(item, name)
    return value


def contract_of(data: bytes | str) -> str:
    """The name of the contract that fits a payload best: fewest missing required members, then fewest unknown members.
    Raises `ContractRefused` if no contract knows any of its members."""
    try:
        value = read_bytes(data.encode() if isinstance(data, str) else data, Format.JSON5, "payload").value
    except DocumentRefused as error:
        raise ContractRefused(f"This is no payload: {error}", contract=None, reason=str(error)) from error
    given = set(value) if isinstance(value, dict) else set()
    # Ties are broken by name.
    fits = sorted((*_fit(CONTRACTS[name], given), name) for name in CONTRACTS)
    _, unknown, name = fits[0]
    if unknown == len(given):
        reason = f"no contract has its members; the contracts are {', '.join(CONTRACTS)}"
        raise ContractRefused(f"This is no payload: {reason}", contract=None, reason=reason)
    return name


def _fit(model: type[msgspec.Struct], given: set[str]) -> tuple[int, int]:
    """The number of missing required members and of unknown members."""
    fields = msgspec.structs.fields(model)
    required = {field.encode_name for field in fields if field.required}
    return len(required - given), len(given - {field.encode_name for field in fields})


def _read(name: str, data: bytes) -> msgspec.Struct:
    return _read_as(CONTRACTS[name], name, data)


def _read_as(form: type[msgspec.Struct], name: str, data: bytes) -> msgspec.Struct:
    try:
        value: msgspec.Struct = msgspec.json.Decoder(form, float_hook=Decimal).decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # Perhaps JSON5 written by hand; otherwise the document reader reports the syntax error.
        return msgspec.convert(read_bytes(data, Format.JSON5, name).value, form)
    return value


def serialise(value: msgspec.Struct) -> bytes:
    """The canonical bytes of a payload."""
    return encode(value)
