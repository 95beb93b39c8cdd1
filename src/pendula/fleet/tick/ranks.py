"""In which order trucks are asked: class and age, then who waited longer, then the id; the starved one before all.

One total order a tick. Directions of single lanes act through it too: who holds the direction that stays preferred is
asked before those who would turn it.
"""

from pendula.fleet.contracts.traffic import Phase, PriorityClass
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record

CLASS_RANK = {
    PriorityClass.OBSTACLE: 100,
    PriorityClass.SERVICE: 90,
    PriorityClass.TASK: 20,
    PriorityClass.PARK: 10,
    PriorityClass.IDLE: 0,
}
_CLASS_OF = {
    Phase.LOADING: PriorityClass.SERVICE,
    Phase.UNLOADING: PriorityClass.SERVICE,
    Phase.TO_PICK: PriorityClass.TASK,
    Phase.TO_DROP: PriorityClass.TASK,
    Phase.TO_PARK: PriorityClass.PARK,
    Phase.IDLE: PriorityClass.IDLE,
}
_AGED = frozenset({PriorityClass.TASK, PriorityClass.PARK, PriorityClass.IDLE})


def class_of(record: Record) -> PriorityClass:
    """A truck that is failed or stopped for safety asks for nothing and keeps everything."""
    return PriorityClass.OBSTACLE if record.failed or record.stop_code is not None else _CLASS_OF[record.phase]


def rank_of(record: Record, now_ms: int, params: TrafficParams) -> int:
    """The effective rank: aging lifts all classes but the highest to one common cap."""
    base = CLASS_RANK[record.priority]
    if record.priority not in _AGED:
        return base
    since = record.waited_since_ms
    waited = 0 if since is None else now_ms - since
    bonus = min(waited // params.fairness_step_ms, params.fairness_cap_ms // params.fairness_step_ms)
    return min(base + bonus, params.aged_rank_cap)


def starved(records: list[Record], now_ms: int, params: TrafficParams) -> Record | None:
    """The truck that has waited longest, where it has waited longer than `starve_ms`; of equals the smallest id."""
    waiting = [
        (one.waited_since_ms, one.robot_id, one)
        for one in records
        if one.waited_since_ms is not None and one.stop_code is None
    ]
    if not waiting:
        return None
    since, _, first = min(waiting, key=lambda one: one[:2])
    assert since is not None
    return first if now_ms - since > params.starve_ms else None


def order_of(records: list[Record], first: Record | None, against: frozenset[int], now_ms: int) -> list[Record]:
    """The one total order: the starved truck, then effective rank, then those whose direction stays, then the older
    request, then the id."""

    def key(one: Record) -> tuple[bool, int, bool, int, str]:
        asked = one.request_ms if one.request_ms is not None else now_ms
        return one is not first, -one.rank, one.number in against, asked, one.robot_id

    return sorted(records, key=key)
