"""Which report of each truck was dropped last, for answers about trucks that seem silent. No part of the state."""

from collections.abc import Iterable, Mapping, Sequence

from pendula.fleet.commands import Tick
from pendula.fleet.driving.records import Record
from pendula.fleet.events import FleetEvent, ReportDropped
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.views.dropped import LastDropped

# Of trucks that are not known: their names come from outside.
MOST_UNKNOWN = 16
_MALFORMED = "REPORT_MALFORMED"
_OUTDATED = "REPORT_OUTDATED"


def dropped_after(
    before: Mapping[str, LastDropped], command: Tick, events: Iterable[FleetEvent], records: Sequence[Record]
) -> Mapping[str, LastDropped]:
    """What is known after a tick. A report that is taken in later ends the entry of its truck."""
    fresh = [one for one in events if isinstance(one, ReportDropped)]
    if not fresh and not before:
        return before
    found = dict(before)
    for one in fresh:
        # At the end: of strangers the oldest are given up.
        found.pop(one.robot_id, None)
        found[one.robot_id] = LastDropped(one.code, command.now_ms, _stamp(one, command.reports))
    known = {one.robot_id: one for one in records}
    strangers = [name for name in found if name not in known]
    over = {*strangers[:-MOST_UNKNOWN], *(name for name, one in known.items() if _heard_since(one, found.get(name)))}
    return {name: one for name, one in found.items() if name not in over}


def _stamp(dropped: ReportDropped, reports: Iterable[TruckReport]) -> int | None:
    """The time of the report: of several in one tick that of the one that is farthest off."""
    stamps = [one.at_ms for one in reports if one.robot_id == dropped.robot_id]
    if not stamps or dropped.code == _MALFORMED:
        return None
    return min(stamps) if dropped.code == _OUTDATED else max(stamps)


def _heard_since(record: Record, dropped: LastDropped | None) -> bool:
    return dropped is not None and record.pose is not None and record.report_ms >= dropped.now_ms
