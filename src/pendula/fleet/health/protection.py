"""A truck whose place is in doubt is protected at both places; whoever has a right to be there stops (FLT-FAIL-5, 6).

Where that is so from the first report on, both stand for each other, and a person decides (FLT-FAIL-15).

What the lost truck may cover contains everything that comes near its disc, so another truck is in danger exactly where
it holds something of that.
"""

from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop
from pendula.fleet.driving.uses import Ground
from pendula.fleet.health.places import covered


def protect(records: list[Record], ground: Ground, params: TrafficParams) -> list[tuple[Record, Record]]:
    """Looks up what lost trucks may cover, and notes for every one whom it has to stop for. Returns who has to from now
    on, with that other truck."""
    for record in records:
        if record.doubt is not None:
            record.doubt = covered(record, ground, params)
    lost = [one for one in records if one.doubt is not None and one.doubt.extra]
    begun = [one for one in lost if one.doubt is not None and one.doubt.first]
    found = []
    for record in records:
        if lost or record.foreign is not None:
            before, close = record.foreign, _too_close(record, records, begun)
            record.foreign = _stranger(record, lost) if close is None else close
            record.too_close = close is not None
            if record.foreign not in (None, before):
                found.append((record, records[record.foreign]))
    return found


def _stranger(record: Record, lost: list[Record]) -> int | None:
    """The first lost truck that may be where a truck has a right to be."""
    keeps = frozenset(record.keeps)
    return next((one.number for one in lost if one is not record and not keeps.isdisjoint(_danger(one))), None)


def _too_close(record: Record, records: list[Record], begun: list[Record]) -> int | None:
    """The first truck that may be where this one may be, where one of the two was lost from the start."""
    others = records if any(one is record for one in begun) else begun
    return next((one.number for one in others if one is not record and _meet(record, one)), None)


def _meet(a: Record, b: Record) -> bool:
    of_a, of_b = _danger(a), _danger(b)
    return not (of_a.isdisjoint(of_b) and of_a.isdisjoint(b.keeps) and of_b.isdisjoint(a.keeps))


def _danger(lost: Record) -> set[int]:
    """What nobody else may be in: of a truck that has passed its stop line, all that meets what it is in."""
    if lost.doubt is None:
        return set()
    if lost.doubt.code != Stop.OVERRUN:
        return set(lost.doubt.extra)
    conflicts = lost.site.conflicts
    return {number for one in lost.doubt.extra if one < len(conflicts) for number in conflicts.members(one)}
