"""Trucks as tasks see them: from what traffic knows after its last tick, and from what they report for the next.

A truck that traffic has not heard of yet counts from its first report on, so that it can be sent somewhere before it is
sent to rest.
"""

from collections.abc import Sequence

from pendula.fleet.contracts.traffic import RobotHealth, RobotStatus
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import FAILURES
from pendula.fleet.health.places import STANDING_UM_S
from pendula.fleet.routing.route_plan import Pose
from pendula.fleet.tasks.model import TruckView
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.turns.ranks import starved


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
