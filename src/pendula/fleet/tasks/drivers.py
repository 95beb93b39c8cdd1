"""The driver of a truck: its task, its phase, its last route and the route in force."""

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
    """`route`: the last one sent to traffic, at `since_ms`; `kept`: the last admitted one."""

    number: int
    robot_id: str
    planner: Planner
    closed: Closed
    rest: int
    # Its node, or its last one; `anchor`: its start if that is not its rest node.
    node: int
    anchor: Anchor | None = None
    phase: Phase = Phase.IDLE
    task: Task | None = None
    route: RoutePlan | None = None
    since_ms: int = 0
    admitted: bool = True
    # Why traffic rejected the route for good.
    rejected: str | None = None
    kept: RoutePlan | None = None
    # Whether it was on its way to rest when it got its task; where it leaves that way; when it may be asked again.
    called_off: bool = False
    leaves_um: int = 0
    again_ms: int = 0
    routes: int = 0
    # An operation failed or timed out: a fault until an operator clears it.
    faulty: bool = False
    # It reported an operation done that was not processed yet: the truck may have failed meanwhile.
    operated: bool = False
    # An operator resumed its held task: it repeats the unfinished operation.
    redo: bool = False
    gone: bool = False

    def not_done(self, timeout_ms: int) -> dict[str, Json] | None:
        """The failed operation, until an operator clears the fault; `timeoutMs` if it timed out."""
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
        """The phase to show: a truck that will leave its way to rest stays on it until the node where it leaves."""
        pending = self.task is not None and self.task.state is TaskState.PENDING_PREEMPT
        return Phase.TO_PARK if pending else self.phase

    def drives(self, view: TruckView) -> bool:
        """Whether its last route is in force."""
        route = self.route
        return route is not None and (view.route_id, view.revision) == (route.route_id, route.revision)

    def here(self, view: TruckView) -> Anchor:
        """The start of its next route while it stands."""
        return self.anchor or AtNode(self.node, view.yaw_urad)

    def next_route_id(self) -> str:
        self.routes += 1
        return f"route-{self.robot_id}-{self.routes}"
