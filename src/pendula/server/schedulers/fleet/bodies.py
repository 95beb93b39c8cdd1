"""Request bodies and answers of a fleet, with the names of the contract."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.fleet.contracts import AnchorPlace, Number, RobotState, RollingTargetCommand
from pendula.fleet.model import NAME_MOST, pick_is_drop
from pendula.fleet.simulator.faults import LONGEST_MS, FaultKind
from pendula.fleet.tasks.model import Conditions
from pendula.fleet.tasks.operators import LONGEST_EDGE_M, MOST_REASON, MOST_RESOURCES, anchor_problem, too_many

# Limited because the journal stores all of it, and the last thousand answers are kept with their actions.
Name = Annotated[str, Meta(min_length=1, max_length=NAME_MOST)]
Resource = Annotated[str, Meta(min_length=1, max_length=300)]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class AnchorBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A position on a directed edge, `sM` metres from its start."""

    edgeKey: Annotated[str, Meta(min_length=1, max_length=300)]
    sM: Annotated[Any, Meta(extra_json_schema={"type": "number", "minimum": 0, "maximum": LONGEST_EDGE_M})]

    def __post_init__(self) -> None:
        # Numbers may be given as text, and text can be NaN.
        wrong = anchor_problem(AnchorPlace(self.edgeKey, self.sM))
        if wrong is not None:
            raise ValueError(wrong)


class ActionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An operator action (FLT-13.11). The operator comes from the token; with an `actionId` it may be repeated."""

    type: Name
    reason: Annotated[str, Meta(max_length=MOST_REASON)]
    actionId: Name | UnsetType = UNSET
    robotId: Name | UnsetType = UNSET
    taskId: Name | UnsetType = UNSET
    anchor: AnchorBody | UnsetType = UNSET
    resources: Annotated[tuple[Resource, ...], Meta(max_length=MOST_RESOURCES)] | UnsetType = UNSET
    physicallySecured: bool | UnsetType = UNSET
    confirmationOf: Name | UnsetType = UNSET
    force: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        excess = None if self.resources is UNSET else too_many(self.resources)
        if excess is not None:
            raise ValueError(excess)


Priority = Annotated[int, Meta(ge=-1000, le=1000)]
Duration = Annotated[int, Meta(ge=0, le=3_600_000)]


class TaskBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A task; without an id it gets one. `streamId`: the stream whose conditions and limit apply."""

    pickNodeId: Name
    dropNodeId: Name
    taskId: Name | UnsetType = UNSET
    priority: Priority = 10
    robotIds: Annotated[tuple[Name, ...], Meta(max_length=500)] = ()
    pickDurationMs: Duration = 12_000
    dropDurationMs: Duration = 8_000
    streamId: Name | None = None

    def __post_init__(self) -> None:
        if self.pickNodeId == self.dropNodeId:
            raise ValueError(f"dropNodeId: {pick_is_drop('the task', self.dropNodeId)}")


Nodes = Annotated[tuple[Name, ...], Meta(min_length=1, max_length=500)]


class StreamBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A stream of goods from some nodes to others, as in scenario files; after `lastMs`, a time of the fleet, it
    creates no task."""

    streamId: Name
    pickNodeIds: Nodes
    dropNodeIds: Nodes
    pickDurationMs: Duration = 12_000
    dropDurationMs: Duration = 8_000
    priority: Priority = 10
    maxConcurrent: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    lastMs: Count | None = None
    robotIds: Annotated[tuple[Name, ...], Meta(max_length=500)] = ()
    conditions: Conditions = Conditions()

    def __post_init__(self) -> None:
        both = next((node for node in self.dropNodeIds if node in self.pickNodeIds), None)
        if both is not None:
            raise ValueError(f"dropNodeIds: {pick_is_drop('the stream', both)}")


class StreamEndBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The stream to end."""

    streamId: Name


class PriorityBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The new priority of an open task; the highest is served first."""

    taskId: Name
    priority: Priority


class StockBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of goods in a node, or of goods it has room for."""

    nodeId: Name
    goods: Count | None = None
    room: Count | None = None


class FaultBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault of a simulated truck, starting now. docs/reference/fleet-scenarios.md lists the members of each type."""

    robotId: Name
    type: FaultKind
    forMs: Annotated[int, Meta(ge=1, le=LONGEST_MS)] | UnsetType = UNSET
    dxM: Number | UnsetType = UNSET
    dyM: Number | UnsetType = UNSET
    byM: Number | UnsetType = UNSET
    byMs: Annotated[int, Meta(ge=1, le=LONGEST_MS)] | UnsetType = UNSET


# Reports in one body.
MOST_REPORTS = 500
Trouble = Annotated[str, Meta(max_length=500)]
# The id of a task and the kind of operation.
OperationName = Annotated[str, Meta(min_length=1, max_length=300)]


class DoneBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A completed operation; `operationId` is `operation_id` of the orders."""

    robotId: Name
    operationId: OperationName


class FailedBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A failed operation."""

    robotId: Name
    operationId: OperationName
    reason: Trouble


class ReportsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Reports of trucks, in metres and radians. A single `RobotState`, or a list, is also a body. In `done` and
    `failed` the name of a truck alone means its operation in the orders fetched last."""

    reports: Annotated[tuple[RobotState, ...], Meta(max_length=MOST_REPORTS)] = ()
    done: Annotated[tuple[Name | DoneBody, ...], Meta(max_length=500)] = ()
    failed: (
        Annotated[tuple[FailedBody, ...], Meta(max_length=500)] | Annotated[dict[Name, Trouble], Meta(max_length=500)]
    ) = ()


class OperationView(Struct, frozen=True):
    """An operation of a truck in its current node; a repeated operation has a new `operation_id`."""

    robot_id: str
    kind: str
    node_id: str
    duration_ms: int
    operation_id: str


class OrdersView(Struct, frozen=True):
    """The newest command of each truck, and its operation."""

    tick: int
    now: int
    commands: list[RollingTargetCommand]
    operations: list[OperationView]


class StreamNow(Struct, frozen=True):
    """A stream and its progress; after `last` it creates no task."""

    stream_id: str
    pick_node_ids: list[str]
    drop_node_ids: list[str]
    priority: int
    most: int
    open: int
    made: int
    last: int | None


class TaskAccepted(Struct, frozen=True):
    task_id: str
