"""What a waiting truck waits for: its blocker, what that holds against it, and its queue.

Computed from the records of one tick, so that the answer agrees with its locks: a blocker holds what is named.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop
from pendula.fleet.traffic.resources import Exclusion


class Held(Struct, frozen=True):
    """A blocking truck, and the resource it holds against another one."""

    by: Record
    resource: int


def shown_of(record: Record) -> frozenset[int]:
    """Everything a truck closes to others, as in the snapshot: a lost one also covers its reported position."""
    extra = () if record.doubt is None else record.doubt.extra
    return frozenset((*record.keeps, *extra))


def blocker_of(record: Record) -> int | None:
    """The blocker of a truck; None for a truck that stands for a reason of its own."""
    if record.stop_code in (Stop.FOREIGN_OCCUPANCY, Stop.OCCUPANCY_CONFLICT):
        return record.foreign
    if record.stop_code is not None and record.stop_code != Stop.SAFE_STATE:
        return None
    return None if record.waiting is None else record.waiting.by


def held_against(record: Record, records: Sequence[Record]) -> Held | None:
    """What the blocker of a truck holds against its next unit; None for a truck without a blocker."""
    number = blocker_of(record)
    if number is None:
        return None
    other = records[number]
    shown = shown_of(other)
    waiting = record.waiting
    if record.stop_code is None and waiting is not None and waiting.theirs in shown:
        return Held(other, waiting.theirs)
    exclusion = Exclusion.of_site(record.site)
    resource = _first_excluded(record, shown, exclusion)
    return None if resource is None else Held(other, resource)


def _first_excluded(record: Record, shown: frozenset[int], exclusion: Exclusion) -> int | None:
    """The first resource of the blocker that excludes what a truck is in or needs on its route; otherwise a resource
    that the blocker stands on."""
    held = np.array(sorted(shown), dtype=np.int64)
    if not len(held):
        return None
    around = exclusion.around(held)
    if record.stop_code is not None:
        own = np.array(record.keeps, dtype=np.int64)
    else:
        own = np.zeros(0, dtype=np.int64)
    track = record.track
    if track is not None:
        used = track.used
        own = np.concatenate([own, used.resource[used.need_um >= record.grant_um]])
    met = np.flatnonzero(np.isin(own, around))
    if not len(met):
        return int(held[0])
    row: list[int] = exclusion.row(int(own[met[0]])).tolist()
    return next(resource for resource in row if resource in shown)


def queue_of(record: Record, records: Sequence[Record]) -> int | None:
    """The resource in whose queue a truck waits: what its blocker holds. A truck that may not overtake a waiting one is
    behind it in the same queue. None without a blocker."""
    seen = {record.number}
    at = record
    while at.waiting is not None and at.waiting.code == _QUEUE_ORDER and at.stop_code is None:
        by = at.waiting.by
        if by is None or by in seen or records[by].waiting is None or records[by].stop_code is not None:
            break
        seen.add(by)
        at = records[by]
    held = held_against(at, records)
    return None if held is None else held.resource


_QUEUE_ORDER = "WAIT_QUEUE_ORDER"
