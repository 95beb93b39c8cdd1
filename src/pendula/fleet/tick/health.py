"""The reason to stop of a truck: the first in the order of `Stop`. A truck without one is healthy.

Only reports, their times and commands are considered; nothing here frees space.
"""

from pendula.fleet.contracts import RobotHealth, RobotStatus
from pendula.fleet.map.geometry import turn_urad
from pendula.fleet.tick.observing import STANDING_UM_S, cover_reported_place, new_doubt
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.records import Record, Stop
from pendula.fleet.tick.track import NEVER_UM, Act, Ground

# Commands that are not acknowledged, or are acknowledged and have no effect.
# A truck that reports an obstacle continues by itself; one that does not move or turn without a reason is stuck until
# an operator clears it (FLT-FAIL-13).

# A truck must move to a target farther ahead than this, and by at least this distance.
_AHEAD_UM = 300_000
_MOVED_UM = 50_000
# Smallest change of heading that counts as a turn: above noise, and the tolerance of a completed turn.
_TURNED_URAD = 50_000
# A hold point this near explains why a truck stands.
_HELD_UM = 500_000
ACKNOWLEDGES = "ackSeq"


def is_unheard(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether commands are sent but no longer acknowledged (FLT-FAIL-18)."""
    if ACKNOWLEDGES not in record.profile.capabilities or record.seq <= record.ack_seq:
        return False
    if record.ack_ms is None:
        record.ack_ms = now_ms
    return now_ms - record.ack_ms > params.ack_timeout_ms


def yaw_to_turn_to(record: Record, params: TrafficParams) -> int | None:
    """The target yaw of a truck that must turn in its node; None if it need not, or already has that heading."""
    act = record.act
    if act is None or act.stop or act.yaw_urad is None or record.pose is None:
        return None
    there = record.at_um >= act.s_um - params.arrive_tol_um
    return act.yaw_urad if there and abs(turn_urad(record.pose.yaw_urad, act.yaw_urad)) > params.turn_tol_urad else None


def is_stuck(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck has a command to drive or turn but has not done so for too long, without a known reason."""
    turns = yaw_to_turn_to(record, params) is not None
    if record.obstructed or not (turns or _is_sent(record, params)):
        record.crawl_ms = None
        return False
    if record.crawl_ms is None or turns is (record.crawl_urad is None) or _has_moved(record):
        yaw = record.pose.yaw_urad if turns and record.pose is not None else None
        record.crawl_um, record.crawl_urad, record.crawl_ms = record.at_um, yaw, now_ms
    return now_ms - record.crawl_ms > params.stuck_timeout_ms


def _has_moved(record: Record) -> bool:
    if record.crawl_urad is None or record.pose is None:
        return record.at_um - record.crawl_um >= _MOVED_UM
    # In either direction: some trucks have to turn the longer way.
    return abs(turn_urad(record.crawl_urad, record.pose.yaw_urad)) >= _TURNED_URAD


def _is_sent(record: Record, params: TrafficParams) -> bool:
    """Whether a truck must move: to a target well ahead, or the last bit to a position it must reach exactly."""
    held = record.waiting is not None and record.hold_um - record.at_um <= _HELD_UM
    left_um = record.target_um - record.at_um
    return not held and left_um > (params.arrive_tol_um if _is_exact(record) else _AHEAD_UM)


def _is_exact(record: Record) -> bool:
    """Whether the target of a truck is its goal, or a node in which it must act."""
    act, track = record.act, record.track
    return track is not None and record.target_um == (track.goal_um if act is None else act.s_um)


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


# A truck with a doubtful position is protected at both places; trucks with a grant there stop (FLT-FAIL-5, 6).
# If two trucks are too close from the first report on, both stop, and an operator decides (FLT-FAIL-15).
# `extra` of a lost truck contains everything near the disc it may cover, so another truck is in danger exactly if it
# holds some of that.


def protect(records: list[Record], ground: Ground, params: TrafficParams, now_ms: int) -> list[tuple[Record, Record]]:
    """Update what lost trucks may cover, and note the truck for which each other truck must stop. Returns the newly
    stopped trucks, each with the truck it stops for."""
    for record in records:
        if record.doubt is not None:
            record.doubt = cover_reported_place(record, ground, params)
    lost = [record for record in records if record.doubt is not None and record.doubt.extra]
    begun = [record for record in lost if record.doubt is not None and record.doubt.first]
    stopped = []
    for record in records:
        if lost or record.foreign is not None:
            before, close = record.foreign, _too_close(record, records, begun)
            record.foreign = _endangering_truck(record, lost, params, now_ms) if close is None else close
            record.too_close = close is not None
            if record.foreign not in (None, before):
                stopped.append((record, records[record.foreign]))
    return stopped


def _endangering_truck(record: Record, lost: list[Record], params: TrafficParams, now_ms: int) -> int | None:
    """The first lost truck that may be inside the grant of a truck."""
    keeps = frozenset(record.keeps)
    others = (other for other in lost if other is not record)
    return next((other.number for other in others if _endangers(other, record, keeps, params, now_ms)), None)


def _endangers(lost: Record, record: Record, keeps: frozenset[int], params: TrafficParams, now_ms: int) -> bool:
    """Whether a lost truck may be inside the grant of another. The position of a truck that stands beyond its stop line
    is certain: trucks that no longer enter that place may leave."""
    met = keeps.intersection(_danger(lost))
    if not met or not _stands_beyond(lost, params, now_ms):
        return bool(met)
    return any(_is_ahead(record, resource, params) for resource in met)


def _stands_beyond(lost: Record, params: TrafficParams, now_ms: int) -> bool:
    known = lost.doubt is not None and lost.doubt.code == Stop.OVERRUN and not lost.doubt.torn
    return known and lost.v_um_s < STANDING_UM_S and is_fresh(lost, now_ms, params)


def _is_ahead(record: Record, resource: int, params: TrafficParams) -> bool:
    """Whether a truck may still enter something it holds: it has not passed the cell, or may turn in the disc. Critical
    sections do not count, since they consist of cells."""
    site = record.site
    if resource < len(site.cells):
        return record.held.get(resource, NEVER_UM) > record.at_um
    acts = () if record.track is None else record.track.acts[record.acted :]
    return resource < site.token(0) and any(
        site.zone(act.node) == resource and _may_turn(record, act, params) for act in acts
    )


def _may_turn(record: Record, act: Act, params: TrafficParams) -> bool:
    """Whether a truck may still turn in a node: false once it is there with the target heading."""
    if act.yaw_urad is None:
        return False
    if record.pose is None or record.at_um < act.s_um - params.arrive_tol_um:
        return True
    return abs(turn_urad(record.pose.yaw_urad, act.yaw_urad)) > params.turn_tol_urad


def _too_close(record: Record, records: list[Record], begun: list[Record]) -> int | None:
    """The first truck whose place may overlap that of this one, if one of the two was lost from the start."""
    others = records if any(first is record for first in begun) else begun
    return next((other.number for other in others if other is not record and _overlap(record, other)), None)


def _overlap(a: Record, b: Record) -> bool:
    of_a, of_b = _danger(a), _danger(b)
    return not (of_a.isdisjoint(of_b) and of_a.isdisjoint(b.keeps) and of_b.isdisjoint(a.keeps))


def _danger(lost: Record) -> set[int]:
    """Places that no other truck may enter."""
    return set() if lost.doubt is None else set(lost.doubt.extra)
