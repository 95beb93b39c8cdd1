"""Which of all reasons to stop counts: the first in the order of `Stop`. A truck without one is healthy.

What a truck is judged on is what it said and when; nothing of it frees space.
"""

from pendula.fleet.contracts.traffic import Health, RobotStatus
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop

_HEALTH = {
    Stop.ROBOT_FAULT: Health.FAULT,
    Stop.OFFLINE: Health.OFFLINE,
    Stop.POSE_JUMP: Health.POSE_JUMP,
    Stop.OFF_ROUTE: Health.OFF_ROUTE,
    Stop.STALE_TELEMETRY: Health.STALE,
}


def judge(record: Record, now_ms: int, params: TrafficParams) -> None:
    """The health of a truck and why it has to stand."""
    stop = _stop(record, now_ms, params)
    record.stop_code = stop
    record.health = Health.HEALTHY if stop is None else _HEALTH.get(stop, Health.HEALTHY)


def _stop(record: Record, now_ms: int, params: TrafficParams) -> Stop | None:
    age = now_ms - record.report_ms
    if record.status is RobotStatus.FAULT:
        return Stop.ROBOT_FAULT
    if record.status is RobotStatus.OFFLINE or (record.pose is not None and age > params.robot_offline_ms):
        return Stop.OFFLINE
    if record.lost is not None:
        return Stop(record.lost)
    if record.pose is None or age > params.max_status_age_ms:
        return Stop.STALE_TELEMETRY
    return Stop.OPERATOR if record.paused else None
