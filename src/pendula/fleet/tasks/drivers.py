"""What a truck is about: its task, its phase, the route it was given last and the one that is in force."""

from dataclasses import dataclass

from pendula.fleet.contracts.traffic import Phase, TaskState
from pendula.fleet.routing.planner import Anchor, AtNode, Closed, Planner
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.tasks.book import Task
from pendula.fleet.tasks.model import TruckView
from pendula.kernel.canonical import Json

DRIVING = frozenset({Phase.TO_PICK, Phase.TO_DROP, Phase.TO_PARK})
OPERATING = frozenset({Phase.LOADING, Phase.UNLOADING})
OPERATION_TIMEOUT = "OPERATION_TIMEOUT"


@dataclass(slots=True)
class Driver:
    """`route` is the one the truck was given last, `since_ms` when; `kept` the last one that was admitted."""

    number: int
    robot_id: str
    planner: Planner
    closed: Closed
    rest: int
    # The node it stands in, or stood in last; where it began elsewhere than at rest, how it stood there.
    node: int
    anchor: Anchor | None = None
    phase: Phase = Phase.IDLE
    task: Task | None = None
    route: RoutePlan | None = None
    since_ms: int = 0
    admitted: bool = True
    # Why traffic will never admit the route, where it has said so.
    rejected: str | None = None
    kept: RoutePlan | None = None
    # Whether it was on its way to rest when it was given its task; where it leaves that way; and until when it is not
    # asked again.
    called_off: bool = False
    leaves_um: int = 0
    again_ms: int = 0
    routes: int = 0
    # An operation was not done in time, or not at all: a fault until somebody clears it.
    faulty: bool = False
    # It said that it has loaded or unloaded, and nothing came of that yet: it may have failed meanwhile.
    operated: bool = False
    # Somebody wants it to go on with the task that is held, and to do again what it did not finish.
    redo: bool = False
    gone: bool = False

    def not_done(self, timeout_ms: int) -> dict[str, Json] | None:
        """The operation that the truck failed at, until an operator clears the fault; `timeoutMs` where it took too
        long."""
        if not self.faulty:
            return None
        late = self.task is not None and self.task.cause == OPERATION_TIMEOUT
        operation = {Phase.LOADING: "LOAD", Phase.UNLOADING: "UNLOAD"}.get(self.phase)
        return {"operation": operation, "timeoutMs": timeout_ms if late else None}

    @property
    def is_free(self) -> bool:
        return self.phase is Phase.IDLE and self.task is None

    @property
    def at_rest(self) -> bool:
        return self.is_free and self.node == self.rest

    @property
    def shown_phase(self) -> Phase:
        """A truck that is to leave its way to rest is on it until it has come to the node where it does."""
        pending = self.task is not None and self.task.state is TaskState.PENDING_PREEMPT
        return Phase.TO_PARK if pending else self.phase

    def drives(self, view: TruckView) -> bool:
        """Whether the route the truck was given last is the one in force."""
        route = self.route
        return route is not None and (view.route_id, view.revision) == (route.route_id, route.revision)

    def here(self, view: TruckView) -> Anchor:
        """Where a truck that stands sets out from."""
        return self.anchor or AtNode(self.node, view.yaw_urad)

    def next_route_id(self) -> str:
        self.routes += 1
        return f"route-{self.robot_id}-{self.routes}"
