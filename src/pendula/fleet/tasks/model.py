"""What tasks are made of: streams, tasks one by one, what is reported about them, what trucks are to do. Nothing acts.

Times are milliseconds, positions micrometres along a route. Nodes have their names here: numbers are the site's.
"""

from msgspec import UNSET, Struct, UnsetType

from pendula.fleet.contracts.traffic import TaskState
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.sentences import sentence_of
from pendula.kernel.canonical import Json


class Conditions(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What must have been reported before a stream makes a task. A stream without conditions never runs out."""

    pick_has_goods: bool = False
    drop_has_room: bool = False


class TaskStream(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Goods that keep coming: tasks are made one after the other from its picks and drops."""

    stream_id: str
    pick_node_ids: tuple[str, ...]
    drop_node_ids: tuple[str, ...]
    pick_ms: int = 12_000
    drop_ms: int = 8_000
    priority: int = 10
    # As many as there are trucks where it is not said.
    max_concurrent: int | None = None
    # No task is made later than this.
    last_ms: int | None = None
    # Who serves it; nobody named: everybody who can.
    robot_ids: tuple[str, ...] = ()
    conditions: Conditions = Conditions()


class TaskOrder(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One task; the nearest free truck takes it, of those that are named or, where none is, of all."""

    task_id: str
    pick_node_id: str
    drop_node_id: str
    at_ms: int = 0
    robot_ids: tuple[str, ...] = ()
    pick_ms: int = 12_000
    drop_ms: int = 8_000
    priority: int = 10
    # The stream whose conditions and limit hold for it too.
    stream_id: str | None = None


class GoodsReported(Struct, frozen=True, rename="camel", tag="goods"):
    """So many goods are in a node now."""

    node_id: str
    count: int


class RoomReported(Struct, frozen=True, rename="camel", tag="room"):
    """There is room for so many goods in a node now."""

    node_id: str
    count: int


class TaskSubmitted(Struct, frozen=True, rename="camel", tag="task"):
    order: TaskOrder


class PriorityChanged(Struct, frozen=True, rename="camel", tag="priority"):
    task_id: str
    priority: int


class StreamSet(Struct, frozen=True, rename="camel", tag="stream"):
    """A stream from now on: another one, or in the place of the one of that name, whose tasks go on."""

    stream: TaskStream


class StreamEnded(Struct, frozen=True, rename="camel", tag="streamEnded"):
    """A stream makes no more tasks; those that it made go on."""

    stream_id: str


class OperationDone(Struct, frozen=True, rename="camel", tag="operationDone"):
    """A truck has loaded or unloaded. Without an operation it is the one that the truck is about."""

    robot_id: str
    operation_id: str | UnsetType = UNSET


class OperationFailed(Struct, frozen=True, rename="camel", tag="operationFailed"):
    robot_id: str
    reason: str
    operation_id: str | UnsetType = UNSET


TaskEvent = (
    GoodsReported
    | RoomReported
    | TaskSubmitted
    | PriorityChanged
    | StreamSet
    | StreamEnded
    | OperationDone
    | OperationFailed
)


class TruckView(Struct, frozen=True, gc=False):
    """What tasks know of a truck: what traffic knows, never where a simulated truck truly is.

    `at_um` and `bound_um` are on the route in force: where it is, and how far it may have been granted its way. At its
    goal it has arrived within the tolerance and stands. A truck that is not `ok` gets no task; one that has `failed`
    loses the task it has not loaded.
    """

    number: int
    robot_id: str
    route_id: str | None = None
    revision: int = 0
    at_um: int = 0
    bound_um: int = 0
    at_goal: bool = False
    yaw_urad: int | None = None
    ok: bool = True
    failed: bool = False
    paused: bool = False
    load: bool = False
    # It has waited so long that others have to let it go first.
    starving: bool = False


class Operation(Struct, frozen=True):
    """A truck is to load or to unload in the node it stands in. What is to be done again has another id."""

    robot_id: str
    kind: str
    node_id: str
    duration_ms: int
    operation_id: str


class Transition(Struct, frozen=True):
    """A task came into another state; `before` is None for one that is new."""

    at_ms: int
    task_id: str
    before: TaskState | None
    state: TaskState
    cause: str
    robot_id: str | None = None
    # The operator who decided it.
    by: str | None = None


class RefusedEvent(Struct, frozen=True):
    """An event that changes nothing, and why."""

    event: TaskEvent
    code: str
    facts: dict[str, Json]

    @property
    def message(self) -> str:
        return sentence_of(self.code, self.facts)


class TaskAlert(Struct, frozen=True):
    """An alert about tasks, the journal or the gateway."""

    code: str
    severity: str
    robot_id: str | None
    details: dict[str, Json]


class DispatchStep(Struct, frozen=True):
    """What came of a step: routes that traffic has to admit, what trucks do, which tasks changed."""

    routes: tuple[RoutePlan, ...] = ()
    operations: tuple[Operation, ...] = ()
    transitions: tuple[Transition, ...] = ()
    refused: tuple[RefusedEvent, ...] = ()
    alerts: tuple[TaskAlert, ...] = ()


class DispatchParams(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    # How long a truck waits in a drop for its next task to be admitted before it goes to rest.
    patience_ms: int = 3_000
    # What a lane costs more for every route that runs the other way, in thousandths.
    opposition_milli: int = 3_000
    # What a lane costs more that all streams drive the other way, in thousandths.
    one_way_milli: int = 2_000
    # After this an operation that is not reported done is a fault of the truck.
    operation_timeout_ms: int = 120_000
    # How long a truck that goes to rest is not asked again after it was not let off its way.
    asked_again_ms: int = 10_000
    # How many tasks are handed out in one step: each costs a plan, and traffic admits few routes in a tick anyway.
    most_a_step: int = 4
    # How much later a task may be made and still be assigned first, where its stations are less sought after.
    overtake_ms: int = 0
    # How many tasks at most may be under way to a node at a time, as pick or as drop.
    node_limits: dict[str, int] = {}
