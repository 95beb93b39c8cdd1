"""A truck whose place is in doubt is protected at both places; whoever has a right to be there stops (FLT-FAIL-5, 6).

What the lost truck may cover contains everything that comes near its disc, so another truck is in danger exactly where
it holds something of that.
"""

from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop
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
    return next((one.number for one in lost if one is not record and not keeps.isdisjoint(_danger(one))), None)


def _danger(lost: Record) -> set[int]:
    """What nobody else may be in: of a truck that has passed its stop line, all that meets what it is in."""
    assert lost.doubt is not None
    if lost.doubt.code != Stop.OVERRUN:
        return set(lost.doubt.extra)
    conflicts = lost.site.conflicts
    return {number for one in lost.doubt.extra if one < len(conflicts) for number in conflicts.members(one)}
