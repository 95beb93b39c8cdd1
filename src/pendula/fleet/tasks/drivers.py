"""Drivers: what each truck is about. Views: each truck as tasks see it."""

from collections.abc import Sequence
from dataclasses import dataclass

from pendula.fleet.contracts import Phase, RobotHealth, RobotStatus, TaskState
from pendula.fleet.map.planner import Anchor, AtNode, Closed, Planner
from pendula.fleet.map.routes import Pose, RoutePlan
from pendula.fleet.tasks.book import Task
from pendula.fleet.tasks.model import TruckView
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.places import STANDING_UM_S
from pendula.fleet.tick.records import FAILURES, Record
from pendula.fleet.tick.turns import starved
from pendula.kernel.canonical import Json

# The driver of a truck: its task, its phase, its last route and the route in force.

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


# Trucks as tasks see them: from what traffic knows after its last tick, and from what they report for the next.
# A truck that traffic has not heard of yet counts from its first report on, so that it can be sent somewhere before
# it is sent to rest.


def truck_views(
    records: Sequence[Record], params: TrafficParams, now_ms: int, reports: Sequence[TruckReport] = ()
) -> list[TruckView]:
    fresh = {report.robot_id: report for report in reports}
    starving = starved(list(records), now_ms, params)
    return [_view(record, params, fresh.get(record.robot_id), record is starving) for record in records]


def _view(record: Record, params: TrafficParams, report: TruckReport | None, starving: bool) -> TruckView:
    track, pose = record.track, record.pose
    healthy = record.health is RobotHealth.HEALTHY and record.stop_code is None
    if pose is None and report is not None:
        healthy, pose = report.status is RobotStatus.OK, Pose(report.x_um, report.y_um, report.yaw_urad)
    return TruckView(
        number=record.number,
        robot_id=record.robot_id,
        route_id=None if track is None else track.plan.route_id,
        revision=0 if track is None else track.plan.revision,
        at_um=record.at_um,
        bound_um=max(record.at_um + record.asked_um, record.grant_um),
        at_goal=_is_at_goal(record, params),
        yaw_urad=None if pose is None else pose.yaw_urad,
        ok=healthy and pose is not None,
        failed=record.stop_code in FAILURES,
        paused=record.paused,
        load=record.load if report is None else report.load,
        starving=starving,
    )


def _is_at_goal(record: Record, params: TrafficParams) -> bool:
    """Whether a truck stands at the end of its route, with the right to be there."""
    track = record.track
    if track is None or record.v_um_s >= STANDING_UM_S:
        return False
    return record.grant_um >= track.goal_um and record.at_um >= track.goal_um - params.arrive_tol_um
