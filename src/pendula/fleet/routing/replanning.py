"""When a waiting truck may replan, and when a new route is worth taking."""

from msgspec import Struct


class ReplanParams(Struct, frozen=True):
    cooldown_ms: int = 10_000
    gain_ms: int = 5_000


USUAL = ReplanParams()


def may_replan(now_ms: int, last_replan_ms: int | None, blocker_changed: bool, params: ReplanParams = USUAL) -> bool:
    """Whether a truck in `TRAFFIC_HOLD` may replan: after the cooldown, or when its blocker has changed."""
    return blocker_changed or last_replan_ms is None or now_ms - last_replan_ms >= params.cooldown_ms


def worth_taking(old_cost_us: int, new_cost_us: int, blocker_lost: bool, params: ReplanParams = USUAL) -> bool:
    """Whether a new route may replace the old one; `blocker_lost` means that a truck that is offline, faulty or in a
    safety stop blocks the old one. FLT-LIVE-4 is checked in any case."""
    return blocker_lost or old_cost_us - new_cost_us >= params.gain_ms * 1000
