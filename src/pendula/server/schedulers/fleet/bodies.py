"""Bodies that are sent to a fleet, and what is answered: names are those of the contract."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.fleet.contracts.maps import Number
from pendula.fleet.contracts.traffic import AnchorPlace, RobotState, RollingTargetCommand
from pendula.fleet.model import NAME_MOST, pick_is_drop
from pendula.fleet.operators.measure import LONGEST_EDGE_M, MOST_REASON, MOST_RESOURCES, off_every_edge, too_many
from pendula.fleet.simulator.faults import LONGEST_MS, FaultKind
from pendula.fleet.tasks.model import Conditions

# The journal keeps every word of it, and the desk a thousand answers with what was asked.
Name = Annotated[str, Meta(min_length=1, max_length=NAME_MOST)]
Resource = Annotated[str, Meta(min_length=1, max_length=300)]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class AnchorBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A place on the map: so many metres along a directed edge."""

    edgeKey: Annotated[str, Meta(min_length=1, max_length=300)]
    sM: Annotated[Any, Meta(extra_json_schema={"type": "number", "minimum": 0, "maximum": LONGEST_EDGE_M})]

    def __post_init__(self) -> None:
        # An exact number may be written as text elsewhere, and text can be NaN.
        wrong = off_every_edge(AnchorPlace(self.edgeKey, self.sM))
        if wrong is not None:
            raise ValueError(wrong)


class ActionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a person wants (FLT-13.11). Who asks is known from the token; `actionId` makes it safe to ask again."""

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
    """A task to be done; without an id it gets one. `streamId`: the stream whose conditions and limit hold for it."""

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
    """Goods that go from some nodes to others again and again, in the members of scenario files; `lastMs` is a time of
    the fleet, after which no task is made."""

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
        both = next((one for one in self.dropNodeIds if one in self.pickNodeIds), None)
        if both is not None:
            raise ValueError(f"dropNodeIds: {pick_is_drop('the stream', both)}")


class StreamEndBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The stream that makes no more tasks."""

    streamId: Name


class PriorityBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How urgent an open task is from now on: of those that wait, the highest is served first."""

    taskId: Name
    priority: Priority


class StockBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How many goods are in a node, or for how many there is room."""

    nodeId: Name
    goods: Count | None = None
    room: Count | None = None


class FaultBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What shall go wrong with a simulated truck at once, as an event of a scenario says it: which members a type needs
    is in docs/reference/fleet-scenarios.md."""

    robotId: Name
    type: FaultKind
    forMs: Annotated[int, Meta(ge=1, le=LONGEST_MS)] | UnsetType = UNSET
    dxM: Number | UnsetType = UNSET
    dyM: Number | UnsetType = UNSET
    byM: Number | UnsetType = UNSET
    byMs: Annotated[int, Meta(ge=1, le=LONGEST_MS)] | UnsetType = UNSET


# Of one body.
MOST_REPORTS = 500
Trouble = Annotated[str, Meta(max_length=500)]
# The id of a task, and what is done about it.
OperationName = Annotated[str, Meta(min_length=1, max_length=300)]


class DoneBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A truck has loaded or unloaded; `operationId` is `operation_id` of the orders."""

    robotId: Name
    operationId: OperationName


class FailedBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A truck could not load or unload, and why."""

    robotId: Name
    operationId: OperationName
    reason: Trouble


class ReportsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a gateway heard of its trucks, in metres and radians. One `RobotState` alone, or a list of them, is a body
    too. In `done` and `failed` the name of a truck alone stands for the operation that the orders fetched last had for
    it."""

    reports: Annotated[tuple[RobotState, ...], Meta(max_length=MOST_REPORTS)] = ()
    done: Annotated[tuple[Name | DoneBody, ...], Meta(max_length=500)] = ()
    failed: (
        Annotated[tuple[FailedBody, ...], Meta(max_length=500)] | Annotated[dict[Name, Trouble], Meta(max_length=500)]
    ) = ()


class OperationView(Struct, frozen=True):
    """What a truck is to do in the node it stands in; what is to be done again has another `operation_id`."""

    robot_id: str
    kind: str
    node_id: str
    duration_ms: int
    operation_id: str


class OrdersView(Struct, frozen=True):
    """What trucks are to do now: the newest command of each, and what each is to load or unload."""

    tick: int
    now: int
    commands: list[RollingTargetCommand]
    operations: list[OperationView]


class StreamNow(Struct, frozen=True):
    """A stream and how far it is; `last`: no task is made later than this."""

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
