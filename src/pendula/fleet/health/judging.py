"""The reason to stop of a truck: the first in the order of `Stop`. A truck without one is healthy.

Only reports, their times and commands are considered; nothing here frees space.
"""

from pendula.fleet.contracts.traffic import RobotHealth, RobotStatus
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop
from pendula.fleet.health.obedience import has_stuck, is_unheard
from pendula.fleet.health.places import STANDING_UM_S, doubted

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
        # It may have reported since it was removed: when it does so no more it is not there, as was said of it.
        record.absent = True
    found = _stops(record, now_ms, params)
    if found or record.stop_code == Stop.SAFE_STATE:
        # Who is stopped already, or silent, or does not hear, or has to let others go first, is not stuck.
        record.crawl_ms = None
    elif has_stuck(record, now_ms, params):
        record.latched = Stop.STUCK
        found = [Stop.STUCK]
    stop = next((one for one in Stop if one in found), None) if found else None
    if stop in _UNSEEN and record.doubt is None and record.pose is not None:
        record.doubt = doubted(record, stop, now_ms, params, torn=False)
    record.stop_code = stop
    # Of two that stand too close to each other, only what is wrong with a truck itself is a matter of its health.
    own = record.doubt.code if stop is Stop.OCCUPANCY_CONFLICT and record.doubt is not None else stop
    record.health = RobotHealth.HEALTHY if own is None else _HEALTH.get(Stop(own), RobotHealth.HEALTHY)


def drives_on(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck that must stop drives for longer than latency and braking explain. It gets no further grant, and
    an alert reports that it does not obey."""
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
    heard = record.pose is not None and not record.unheard and now_ms - record.report_ms <= params.max_status_age_ms
    return heard and record.bad_reports < MOST_BAD


def is_silent(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck that has reported before is silent for too long (FLT-FAIL-9)."""
    return record.pose is not None and now_ms - record.report_ms > params.robot_offline_ms


def _stops(record: Record, now_ms: int, params: TrafficParams) -> list[Stop]:
    """All reasons to stop a truck."""
    found = []
    if record.status is RobotStatus.FAULT:
        found.append(Stop.ROBOT_FAULT)
    if record.status is RobotStatus.OFFLINE or record.absent or is_silent(record, now_ms, params):
        found.append(Stop.OFFLINE)
    if not is_fresh(record, now_ms, params):
        found.append(Stop.STALE_TELEMETRY)
    elif is_unheard(record, now_ms, params):
        found.append(Stop.NO_COMMS)
    if record.latched is not None:
        found.append(Stop(record.latched))
    if record.doubt is not None:
        found.append(Stop(record.doubt.code))
    if record.foreign is not None:
        found.append(Stop.OCCUPANCY_CONFLICT if record.too_close else Stop.FOREIGN_OCCUPANCY)
    if record.paused:
        found.append(Stop.OPERATOR)
    return found
