"""What follows from commands that are not acknowledged, and from those that are and move nothing.

A truck that says something is in its way stands for a reason and goes on by itself; one that does not say why it stays
is stuck until somebody has looked (FLT-FAIL-13).
"""

from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record

# A target this far ahead makes a truck move; less than this in a while is no movement.
_AHEAD_UM = 300_000
_MOVED_UM = 50_000
# A hold point this near explains that a truck stands.
_HELD_UM = 500_000
ACKNOWLEDGES = "ackSeq"


def is_unheard(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether commands go out and none is acknowledged any more (FLT-FAIL-18)."""
    if ACKNOWLEDGES not in record.profile.capabilities or record.seq <= record.ack_seq:
        return False
    if record.ack_ms is None:
        record.ack_ms = now_ms
    return now_ms - record.ack_ms > params.ack_timeout_ms


def has_stuck(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck was sent ahead and has not moved for too long, for no reason that is known."""
    if not _is_sent(record):
        record.crawl_ms = None
        return False
    if record.crawl_ms is None or record.at_um - record.crawl_um >= _MOVED_UM:
        record.crawl_um, record.crawl_ms = record.at_um, now_ms
    return now_ms - record.crawl_ms > params.stuck_timeout_ms


def _is_sent(record: Record) -> bool:
    held = record.waiting is not None and record.hold_um - record.at_um <= _HELD_UM
    sent = record.target_um - record.at_um > _AHEAD_UM
    return sent and not held and not record.obstructed
