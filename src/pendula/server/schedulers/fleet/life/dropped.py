"""The last dropped report of each truck, to explain trucks that seem silent. Not part of the engine's state."""

from collections.abc import Iterable, Mapping, Sequence

from pendula.fleet.commands import Tick
from pendula.fleet.events import FleetEvent, ReportDropped
from pendula.fleet.tick.observing import LastDropped, TruckReport
from pendula.fleet.tick.records import Record

# Unknown trucks come from outside, so their number is limited.
MOST_UNKNOWN = 16
_MALFORMED = "REPORT_MALFORMED"
_OUTDATED = "REPORT_OUTDATED"


def dropped_after(
    before: Mapping[str, LastDropped], command: Tick, events: Iterable[FleetEvent], records: Sequence[Record]
) -> Mapping[str, LastDropped]:
    """The dropped reports after a tick. An accepted report removes the entry of its truck."""
    dropped = [event for event in events if isinstance(event, ReportDropped)]
    if not dropped and not before:
        return before
    after = dict(before)
    for event in dropped:
        # Moved to the end: the oldest unknown trucks are dropped first.
        after.pop(event.robot_id, None)
        after[event.robot_id] = LastDropped(event.code, command.now_ms, _stamp(event, command.reports))
    known = {record.robot_id: record for record in records}
    unknown = [name for name in after if name not in known]
    over = {
        *unknown[:-MOST_UNKNOWN],
        *(name for name, record in known.items() if _accepted_since(record, after.get(name))),
    }
    return {name: report for name, report in after.items() if name not in over}


def _stamp(dropped: ReportDropped, reports: Iterable[TruckReport]) -> int | None:
    """The time of the report; of several in one tick, the time farthest off."""
    stamps = [report.at_ms for report in reports if report.robot_id == dropped.robot_id]
    if not stamps or dropped.code == _MALFORMED:
        return None
    return min(stamps) if dropped.code == _OUTDATED else max(stamps)


def _accepted_since(record: Record, dropped: LastDropped | None) -> bool:
    return dropped is not None and record.pose is not None and record.report_ms >= dropped.now_ms
