"""Trucks that nobody can count on keep their cells and need nothing; one that is back takes up its way where it stands.

Others are judged anew at once: who cannot get past is named.
"""

from collections.abc import Callable

from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import FAILURES, Stop
from pendula.fleet.traffic.grants import Accepted, Effort, freeze, thaw
from pendula.fleet.traffic.lock_state import LockState


def freeze_failed(
    records: list[Record], locks: LockState, effort: Effort, tell: Callable[[Record, list[int]], None]
) -> None:
    """Freezes who has failed since the last tick and thaws who is back. `tell` hears of every failure, with those who
    are cut off by it."""
    for record in records:
        frozen = locks.truck(record.number).frozen
        if has_failed(record) and not frozen:
            tell(record, freeze(locks, record.number, [], effort=effort))
        elif frozen and not has_failed(record):
            _take_up(record, locks, effort)


def has_failed(record: Record) -> bool:
    return record.stop_code in FAILURES


def _take_up(record: Record, locks: LockState, effort: Effort) -> None:
    one = locks.truck(record.number)
    answer = thaw(locks, record.number, one.demand, one.position, effort=effort)
    if not isinstance(answer, Accepted) and record.stop_code is None:
        record.stop_code = Stop.SAFE_STATE
