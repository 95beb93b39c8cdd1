"""The reason to stop of a truck: the first in the order of `Stop`. A truck without one is healthy.

Only reports, their times and commands are considered; nothing here frees space.
"""

from pendula.fleet.contracts.traffic import RobotHealth, RobotStatus
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop
from pendula.fleet.health.obedience import is_stuck, is_unheard
from pendula.fleet.health.places import STANDING_UM_S, new_doubt

# Rejected reports in a row that make a truck stale (FLT-FAIL-17).
MOST_BAD = 3
_HEALTH = {
    Stop.ROBOT_FAULT: RobotHealth.FAULT,
    Stop.STUCK: RobotHealth.STUCK,
    Stop.OFFLINE: RobotHealth.OFFLINE,
    Stop.OVERRUN: RobotHealth.FAULT,
    Stop.POSE_JUMP: RobotHealth.POSE_JUMP,
    Stop.OFF_ROUTE: RobotHealth.OFF_ROUTE,
    Stop.STALE_TELEMETRY: RobotHealth.STALE,
}
# After these a truck may be anywhere on its grant, until its reports are steady again.
_UNSEEN = frozenset({Stop.ROBOT_FAULT, Stop.OFFLINE, Stop.STUCK})


def judge(record: Record, now_ms: int, params: TrafficParams) -> None:
    """Set the health of a truck and its reason to stop."""
    if record.removed_ms is not None and is_silent(record, now_ms, params):
        # A removed truck that still reported becomes absent when its reports end.
        record.absent = True
    stops = _stops(record, now_ms, params)
    if stops or record.stop_code == Stop.SAFE_STATE:
        # A truck that is stopped, silent or waiting for others is not stuck.
        record.crawl_ms = None
    elif is_stuck(record, now_ms, params):
        record.latched = Stop.STUCK
        stops = [Stop.STUCK]
    stop = next((code for code in Stop if code in stops), None) if stops else None
    if stop in _UNSEEN and record.doubt is None and record.pose is not None:
        record.doubt = new_doubt(record, stop, now_ms, params, torn=False)
    record.stop_code = stop
    # Of two trucks too close to each other, only the one with a reason of its own is unhealthy.
    own = record.doubt.code if stop is Stop.OCCUPANCY_CONFLICT and record.doubt is not None else stop
    record.health = RobotHealth.HEALTHY if own is None else _HEALTH.get(Stop(own), RobotHealth.HEALTHY)


def drives_on(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck that must stop drives for longer than latency and braking explain. It gets no further grant,
    and an alert reports it."""
    # Lost communication has a code of its own.
    must_stop = record.stop_code not in (None, Stop.NO_COMMS) and record.rejoin_um is None
    if not must_stop or record.v_um_s < STANDING_UM_S or not is_fresh(record, now_ms, params):
        record.rolls_ms = None
        return False
    if record.rolls_ms is None:
        record.rolls_ms = now_ms
    braking_ms = record.profile.v_max_um_s * 1000 // record.profile.brake_um_s2
    return now_ms - record.rolls_ms > params.stuck_timeout_ms + braking_ms


def is_fresh(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck has reported recently, and readably."""
    recent = record.pose is not None and not record.unheard and now_ms - record.report_ms <= params.max_status_age_ms
    return recent and record.bad_reports < MOST_BAD


def is_silent(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck that has reported before is silent for too long (FLT-FAIL-9)."""
    return record.pose is not None and now_ms - record.report_ms > params.robot_offline_ms


def _stops(record: Record, now_ms: int, params: TrafficParams) -> list[Stop]:
    """All reasons to stop a truck."""
    stops = []
    if record.status is RobotStatus.FAULT:
        stops.append(Stop.ROBOT_FAULT)
    if record.status is RobotStatus.OFFLINE or record.absent or is_silent(record, now_ms, params):
        stops.append(Stop.OFFLINE)
    if not is_fresh(record, now_ms, params):
        stops.append(Stop.STALE_TELEMETRY)
    elif is_unheard(record, now_ms, params):
        stops.append(Stop.NO_COMMS)
    if record.latched is not None:
        stops.append(Stop(record.latched))
    if record.doubt is not None:
        stops.append(Stop(record.doubt.code))
    if record.foreign is not None:
        stops.append(Stop.OCCUPANCY_CONFLICT if record.too_close else Stop.FOREIGN_OCCUPANCY)
    if record.paused:
        stops.append(Stop.OPERATOR)
    return stops
