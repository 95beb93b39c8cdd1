"""A truck whose place is in doubt is protected at both places; whoever has a right to be there stops (FLT-FAIL-5, 6).

What the lost truck may cover contains everything that comes near its disc, so another truck is in danger exactly where
it holds something of that.
"""

from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.uses import Ground
from pendula.fleet.health.places import covered


def protect(records: list[Record], ground: Ground, params: TrafficParams) -> list[tuple[Record, Record]]:
    """Looks up what lost trucks may cover, and notes for every other one whom it has to stop for. Returns who has to
    from now on, with the lost truck."""
    for record in records:
        if record.doubt is not None:
            record.doubt = covered(record, ground, params)
    lost = [one for one in records if one.doubt is not None and one.doubt.extra]
    found = []
    for record in records:
        if lost or record.foreign is not None:
            before, record.foreign = record.foreign, _stranger(record, lost)
            if record.foreign not in (None, before):
                found.append((record, records[record.foreign]))
    return found


def _stranger(record: Record, lost: list[Record]) -> int | None:
    """The first lost truck that may be where a truck has a right to be."""
    keeps = frozenset(record.keeps)
    near = (one for one in lost if one is not record and one.doubt is not None)
    return next((one.number for one in near if one.doubt and not keeps.isdisjoint(one.doubt.extra)), None)
