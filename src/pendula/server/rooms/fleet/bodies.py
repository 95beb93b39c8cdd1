"""Bodies that are sent to a fleet, and what is answered: names are those of the contract."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.fleet.contracts.traffic import AnchorPlace, RollingTargetCommand
from pendula.fleet.simulator.faults import Fault
from pendula.fleet.tick.observing import TruckReport


class ActionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a person wants (FLT-13.11). Who asks is known from the token; `actionId` makes it safe to ask again."""

    type: str
    reason: str
    actionId: Annotated[str, Meta(min_length=1, max_length=128)] | UnsetType = UNSET
    robotId: str | UnsetType = UNSET
    taskId: str | UnsetType = UNSET
    anchor: AnchorPlace | UnsetType = UNSET
    resources: tuple[str, ...] | UnsetType = UNSET
    physicallySecured: bool | UnsetType = UNSET
    confirmationOf: str | UnsetType = UNSET


class TaskBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A task to be done; without an id it gets one."""

    pickNodeId: str
    dropNodeId: str
    taskId: Annotated[str, Meta(min_length=1, max_length=128)] | UnsetType = UNSET
    priority: Annotated[int, Meta(ge=-1000, le=1000)] = 10
    robotIds: tuple[str, ...] = ()
    pickDurationMs: Annotated[int, Meta(ge=0, le=3_600_000)] = 12_000
    dropDurationMs: Annotated[int, Meta(ge=0, le=3_600_000)] = 8_000


class StockBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How many goods are in a node, or for how many there is room."""

    nodeId: str
    goods: Annotated[int, Meta(ge=0)] | None = None
    room: Annotated[int, Meta(ge=0)] | None = None


class FaultBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What shall go wrong with a simulated truck, to see what the fleet makes of it."""

    robotId: str
    fault: Fault


class ReportsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a gateway heard of its trucks, in the units of the engine."""

    reports: Annotated[tuple[TruckReport, ...], Meta(max_length=500)] = ()
    done: Annotated[tuple[str, ...], Meta(max_length=500)] = ()
    failed: dict[str, str] = {}


class OperationView(Struct, frozen=True):
    robot_id: str
    kind: str
    node_id: str
    duration_ms: int


class OrdersView(Struct, frozen=True):
    """What trucks are to do now: the newest command of each, and what each is to load or unload."""

    tick: int
    now: int
    commands: list[RollingTargetCommand]
    operations: list[OperationView]


class TaskAccepted(Struct, frozen=True):
    task_id: str
