"""Data of tasks: streams, orders, task events, operations, transitions.

Times are milliseconds, positions micrometres along a route. Nodes have their names here: numbers are the site's.
"""

from msgspec import UNSET, Struct, UnsetType

from pendula.fleet.contracts import TaskState
from pendula.fleet.contracts import TaskState as State
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.sentences import sentence_of
from pendula.kernel.canonical import Json


class Conditions(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What must be reported before a stream creates a task. A stream without conditions never runs out."""

    pick_has_goods: bool = False
    drop_has_room: bool = False


class TaskStream(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A steady flow of goods: creates tasks from its picks to its drops."""

    stream_id: str
    pick_node_ids: tuple[str, ...]
    drop_node_ids: tuple[str, ...]
    pick_ms: int = 12_000
    drop_ms: int = 8_000
    priority: int = 10
    # Default: the number of trucks.
    max_concurrent: int | None = None
    # No task is created after this time.
    last_ms: int | None = None
    # The trucks that serve it; empty for all that can.
    robot_ids: tuple[str, ...] = ()
    conditions: Conditions = Conditions()


class TaskOrder(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One task. The nearest free truck takes it, of `robot_ids` if given."""

    task_id: str
    pick_node_id: str
    drop_node_id: str
    at_ms: int = 0
    robot_ids: tuple[str, ...] = ()
    pick_ms: int = 12_000
    drop_ms: int = 8_000
    priority: int = 10
    # The stream whose conditions and limit apply to it.
    stream_id: str | None = None


class GoodsReported(Struct, frozen=True, rename="camel", tag="goods"):
    """The number of goods in a node."""

    node_id: str
    count: int


class RoomReported(Struct, frozen=True, rename="camel", tag="room"):
    """The number of goods for which a node has room."""

    node_id: str
    count: int


class TaskSubmitted(Struct, frozen=True, rename="camel", tag="task"):
    order: TaskOrder


class PriorityChanged(Struct, frozen=True, rename="camel", tag="priority"):
    task_id: str
    priority: int


class StreamSet(Struct, frozen=True, rename="camel", tag="stream"):
    """Add or replace a stream; open tasks of a replaced one continue."""

    stream: TaskStream


class StreamEnded(Struct, frozen=True, rename="camel", tag="streamEnded"):
    """A stream creates no more tasks; its open tasks continue."""

    stream_id: str


class OperationDone(Struct, frozen=True, rename="camel", tag="operationDone"):
    """A truck has loaded or unloaded. Without `operation_id` it is the operation under way."""

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
    """A truck as tasks see it: from traffic, never the true position of a simulated truck.

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
    # It has waited so long that the other trucks let it go first.
    starving: bool = False


class Operation(Struct, frozen=True):
    """A truck has to load or unload in its node. A repeated operation has a new id."""

    robot_id: str
    kind: str
    node_id: str
    duration_ms: int
    operation_id: str


class Transition(Struct, frozen=True):
    """A task changed its state; `before` is None for a new task."""

    at_ms: int
    task_id: str
    before: TaskState | None
    state: TaskState
    cause: str
    robot_id: str | None = None
    # The operator who decided it.
    by: str | None = None


class TaskEventRefused(Struct, frozen=True, rename="camel", tag="task_event_refused"):
    """A report about a task or a node that changes nothing."""

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
    """Output of a step: routes that traffic has to admit, operations, transitions."""

    routes: tuple[RoutePlan, ...] = ()
    operations: tuple[Operation, ...] = ()
    transitions: tuple[Transition, ...] = ()
    refused: tuple[TaskEventRefused, ...] = ()
    alerts: tuple[TaskAlert, ...] = ()


class DispatchParams(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    # How long a truck waits in a drop for its next task to be admitted before it goes to rest.
    patience_ms: int = 3_000
    # Extra cost of a lane for every route in the opposite direction, in thousandths.
    opposition_milli: int = 3_000
    # Extra cost of a lane that all streams drive in the opposite direction, in thousandths.
    one_way_milli: int = 2_000
    # An operation not reported done after this time is a fault of the truck.
    operation_timeout_ms: int = 120_000
    # How long a truck on its way to rest is not asked again after it could not leave its way.
    asked_again_ms: int = 10_000
    # Tasks assigned in one step: each costs a plan, and traffic admits few routes in a tick.
    most_a_step: int = 4
    # How much younger a task may be and still be assigned first because its stations are less busy.
    overtake_ms: int = 0
    # Most tasks under way to a node at a time, as pick or drop.
    node_limits: dict[str, int] = {}


# The states of a task and their legal transitions; any other transition is a bug.

ALLOWED: dict[State | None, frozenset[State]] = {
    None: frozenset({State.WAITING}),
    # Its conditions hold, or no longer hold.
    State.WAITING: frozenset({State.READY, State.HELD, State.CANCELLED}),
    State.READY: frozenset({State.WAITING, State.ASSIGNED, State.PENDING_PREEMPT, State.HELD, State.CANCELLED}),
    # A truck has it and waits for its route, or drives on to the node where it leaves its way to rest.
    State.ASSIGNED: frozenset({State.IN_PROGRESS, State.READY, State.HELD, State.CANCELLED}),
    State.PENDING_PREEMPT: frozenset({State.IN_PROGRESS, State.READY, State.HELD, State.CANCELLED}),
    # Back to READY only before it is loaded.
    State.IN_PROGRESS: frozenset({State.DONE, State.READY, State.HELD, State.FAILED, State.CANCELLED}),
    # A loaded task continues with the same truck.
    State.HELD: frozenset({State.READY, State.IN_PROGRESS, State.FAILED, State.CANCELLED}),
    State.DONE: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELLED: frozenset(),
}
OVER = frozenset(state for state, onward in ALLOWED.items() if state is not None and not onward)
# Tasks that have a truck.
TAKEN = frozenset({State.ASSIGNED, State.PENDING_PREEMPT, State.IN_PROGRESS})


def check(before: State | None, after: State) -> None:
    """Raises `AssertionError` for a transition that is not in the table."""
    assert after in ALLOWED[before], f"a task does not get from {before} to {after}"
