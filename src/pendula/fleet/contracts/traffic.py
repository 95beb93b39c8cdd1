"""Payloads of the running system as typed models: states, locks, commands, tasks, operators, ticks.

Members have the names of the public contract; members of the base contract stay, others may be added.
"""

from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType

from pendula.fleet.contracts.maps import Number
from pendula.fleet.model import MoveStyle, Verb
from pendula.kernel.canonical import Json


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
