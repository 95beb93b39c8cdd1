"""The order in which trucks are asked: class and age, then the longer wait, then the id; a starving truck first.

One total order per tick. It also uses the directions of single lanes: a truck in the preferred direction comes before
those that would turn it.
"""

import numpy as np

from pendula.fleet.contracts.traffic import Phase, PriorityClass
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.traffic.demand import Demand
from pendula.fleet.traffic.lock_state import LockState
from pendula.fleet.traffic.refuge import refuge
from pendula.fleet.views.reasons import WAIT_CLOSED

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
    """A failed or safety-stopped truck requests nothing and keeps everything."""
    return PriorityClass.OBSTACLE if record.stop_code is not None else _CLASS_OF[record.phase]


def rank_of(record: Record, now_ms: int, params: TrafficParams) -> int:
    """The effective rank: aging lifts all classes but the highest up to one common cap."""
    base = CLASS_RANK[record.priority]
    if record.priority not in _AGED:
        return base
    since = record.waited_since_ms
    waited = 0 if since is None else now_ms - since
    bonus = min(waited, params.fairness_cap_ms) // params.fairness_step_ms if waited else 0
    return min(base + bonus, params.aged_rank_cap)


def starved(records: list[Record], now_ms: int, params: TrafficParams) -> Record | None:
    """The truck that has waited longest, if longer than `starve_ms`; of equals the smallest id. A truck that waits for
    a stopped one does not count: no other truck can let it go on, and barring others for it would stop the whole fleet
    until an operator acts."""
    starving = [
        (since, record.robot_id, record)
        for record in records
        if (since := record.waited_since_ms) is not None
        and record.stop_code is None
        and now_ms - since > params.starve_ms
        and not _waits_for_a_stopped_one(record, records)
        and not _waits_for_an_opening(record)
    ]
    return min(starving, key=lambda entry: entry[:2])[2] if starving else None


def _waits_for_a_stopped_one(record: Record, records: list[Record]) -> bool:
    """Whether the chain of blockers of a truck ends at a stopped truck."""
    seen, by = {record.number}, _waits_for(record)
    while by is not None and by not in seen:
        if records[by].stop_code is not None or _waits_for_an_opening(records[by]):
            return True
        seen.add(by)
        by = _waits_for(records[by])
    return False


def _waits_for_an_opening(record: Record) -> bool:
    """Whether a truck waits before a closed place."""
    return record.waiting is not None and record.waiting.code == WAIT_CLOSED


def _waits_for(record: Record) -> int | None:
    if record.waiting is not None:
        return record.waiting.by
    against = record.refused_cycle if record.pending is not None else ()
    return next((number for number in against if number != record.number), None)


def bars(first: Record, locks: LockState, demand: Demand, now_ms: int, params: TrafficParams) -> bool:
    """Whether a new route has to wait for a starving truck: if it meets the route of that truck up to its first refuge
    behind its grant. When the truck has waited twice as long, every new route has to wait."""
    since, truck = first.waited_since_ms, locks.truck(first.number)
    if since is None or now_ms - since > 2 * params.starve_ms or truck.position >= truck.goal:
        return True
    end = refuge(locks, first.number, truck.position + 1)
    own = truck.demand.needs(truck.position, truck.goal if end is None else end)
    return bool(np.isin(demand.need, locks.exclusion.around(own)).any())


def order_of(records: list[Record], first: Record | None, against: frozenset[int], now_ms: int) -> list[Record]:
    """The total order: the starving truck, effective rank, trucks whose direction is kept, older request, id."""

    def key(record: Record) -> tuple[bool, int, bool, int, str]:
        requested_ms = record.asked_ms if record.asked_ms is not None else now_ms
        return record is not first, -record.rank, record.number in against, requested_ms, record.robot_id

    return sorted(records, key=key)
