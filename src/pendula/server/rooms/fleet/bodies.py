"""Bodies that are sent to a fleet, and what is answered: names are those of the contract."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.fleet.contracts.maps import Number
from pendula.fleet.contracts.traffic import AnchorPlace, RollingTargetCommand
from pendula.fleet.simulator.faults import LONGEST_MS, FaultKind
from pendula.fleet.tick.observing import TruckReport

# The journal keeps every word of it, and the desk a thousand answers with what was asked.
Name = Annotated[str, Meta(min_length=1, max_length=128)]
Resource = Annotated[str, Meta(min_length=1, max_length=300)]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class ActionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a person wants (FLT-13.11). Who asks is known from the token; `actionId` makes it safe to ask again."""

    type: Name
    reason: Annotated[str, Meta(max_length=500)]
    actionId: Name | UnsetType = UNSET
    robotId: Name | UnsetType = UNSET
    taskId: Name | UnsetType = UNSET
    anchor: AnchorPlace | UnsetType = UNSET
    resources: Annotated[tuple[Resource, ...], Meta(max_length=500)] | UnsetType = UNSET
    physicallySecured: bool | UnsetType = UNSET
    confirmationOf: Name | UnsetType = UNSET


Priority = Annotated[int, Meta(ge=-1000, le=1000)]


class TaskBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A task to be done; without an id it gets one. `streamId`: the stream whose conditions and limit hold for it."""

    pickNodeId: Name
    dropNodeId: Name
    taskId: Name | UnsetType = UNSET
    priority: Priority = 10
    robotIds: Annotated[tuple[Name, ...], Meta(max_length=500)] = ()
    pickDurationMs: Annotated[int, Meta(ge=0, le=3_600_000)] = 12_000
    dropDurationMs: Annotated[int, Meta(ge=0, le=3_600_000)] = 8_000
    streamId: Name | None = None


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
    """What a gateway heard of its trucks, in the units of the engine. In `done` and `failed` the name of a truck alone
    stands for the operation that the orders fetched last had for it."""

    reports: Annotated[tuple[TruckReport, ...], Meta(max_length=500)] = ()
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


class TaskAccepted(Struct, frozen=True):
    task_id: str
