"""Commands that are not acknowledged, or are acknowledged and have no effect.

A truck that reports an obstacle continues by itself; one that does not move or turn without a reason is stuck until an
operator clears it (FLT-FAIL-13).
"""

from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.geometry.angles import turn_urad

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
