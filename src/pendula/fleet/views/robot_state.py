"""A truck in the form of the contract: its last report, its position on the route, and its health."""

from pendula.fleet.contracts.traffic import (
    PoseContract,
    ProgressContract,
    RobotHealth,
    RobotState,
    RobotStatus,
    TaskView,
)
from pendula.fleet.driving.records import Record
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.units import metres


def robot_state(
    record: Record, now_ms: int, task_id: str | None, pending_task_id: str | None = None
) -> RobotState | None:
    """None for a truck that never reported. `pending_task_id`: the task it starts where it leaves its way to rest."""
    pose = record.pose
    if pose is None:
        return None
    return RobotState(
        contractVersion=CONTRACT_VERSION,
        robotId=record.robot_id,
        profileId=record.profile.profile_id,
        nowMs=now_ms,
        lastStatusMs=record.report_ms,
        pose=PoseContract(metres(pose.x_um), metres(pose.y_um), metres(pose.yaw_urad)),
        v=metres(record.v_um_s),
        status=status_of(record),
        task=TaskView(task_id, record.phase, pending_task_id),
        progress=_progress(record),
        loadOnBoard=record.load,
        parkNodeId=record.site.network.nodes[record.rest].id,
        lastAckSeq=record.ack_seq,
        health=record.health,
        obstructed=record.obstructed,
    )


def status_of(record: Record) -> RobotStatus:
    """The status (FLT-FAIL-9): `FAULT` for a truck in fault, `OFFLINE` for a silent one, whatever its last report
    says."""
    if record.status is RobotStatus.FAULT or record.health in (RobotHealth.FAULT, RobotHealth.STUCK):
        return RobotStatus.FAULT
    return RobotStatus.OFFLINE if record.health is RobotHealth.OFFLINE else record.status


def on_segment(record: Record) -> tuple[int, int] | None:
    """The segment of its route and the position on it; None without a route."""
    track = record.track
    if track is None or not track.plan.segments:
        return None
    number = track.plan.segment_at(max(record.at_um, 0))
    segment = track.plan.segments[number]
    return number, min(max(record.at_um - segment.route_s0_um, 0), segment.length_um)


def _progress(record: Record) -> ProgressContract | None:
    on = on_segment(record)
    if on is None or record.track is None:
        return None
    plan, (number, on_um) = record.track.plan, on
    return ProgressContract(
        routeId=plan.route_id,
        segmentIndex=number,
        sOnSegmentM=metres(on_um),
        sOnRouteM=metres(record.at_um),
        revision=plan.revision,
    )
