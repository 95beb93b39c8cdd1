"""Directions of single lanes as ranking (FLT-RES-18, FLT-OSC-9): which direction stays preferred after a lane became
empty, and into which lanes nobody new is let because somebody has waited too long at the other end.

Nothing is locked here: who waits for the waiter is exempt, and an empty lane is preferred for a moment only.
"""

from dataclasses import dataclass, field

from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.turns.queueing import Queue
from pendula.fleet.views.reasons import WAIT_EDGE_DIRECTION


@dataclass(slots=True)
class Directions:
    """`active`: the direction (along the axis of the group or against it) of every two-way group that is held;
    `empty_since`: the last direction of those that became empty, and when; `drained`: groups into which nobody new goes
    in a direction, and the truck that waits for it."""

    active: dict[int, bool] = field(default_factory=dict)
    empty_since: dict[int, tuple[bool, int]] = field(default_factory=dict)
    drained: dict[int, tuple[bool, int]] = field(default_factory=dict)

    def copied(self) -> "Directions":
        return Directions(dict(self.active), dict(self.empty_since), dict(self.drained))


def two_way(site: CompiledMap) -> frozenset[int]:
    """The groups that are driven in both directions."""
    edges = site.network.edges
    return frozenset(
        number
        for number, group in enumerate(site.network.groups)
        if len({edges[edge].forward_on_axis for edge in group.edges}) > 1
    )


def entered_next(record: Record, among: frozenset[int]) -> dict[int, bool]:
    """The two-way groups that the next unit of a truck enters, with the direction; not those it is in already."""
    if record.entering is None:
        record.entering = _entered_next(record, among)
    return record.entering


def _entered_next(record: Record, among: frozenset[int]) -> dict[int, bool]:
    track = record.track
    if track is None or record.granted + 1 >= len(track.stands):
        return {}
    site = record.site
    found = {}
    for use in track.taken(record.grant_um, track.stands[record.granted + 1]):
        if use.resource < len(site.cells):
            edge = int(site.cells.edge[use.resource])
            if site.network.group_of[edge] in among:
                found[site.network.group_of[edge]] = site.network.edges[edge].forward_on_axis
    for group in {site.network.group_of[edge] for edge in record.edges} & found.keys():
        del found[group]
    return found


def look(directions: Directions, records: list[Record], among: frozenset[int], now_ms: int, hold_ms: int) -> None:
    """The directions as they are held now; groups that became empty are remembered for a while."""
    active: dict[int, bool] = {}
    for record in records:
        group_of, edges = record.site.network.group_of, record.site.network.edges
        for edge in record.edges:
            group = group_of[edge]
            if group in among:
                active[group] = edges[edge].forward_on_axis
    for group, forward in directions.active.items():
        if group not in active:
            directions.empty_since[group] = (forward, now_ms)
    directions.active = active
    directions.empty_since = {
        group: (forward, since)
        for group, (forward, since) in directions.empty_since.items()
        if group not in active and now_ms - since <= hold_ms
    }


def against(directions: Directions, records: list[Record], among: frozenset[int]) -> frozenset[int]:
    """The trucks that would turn a direction which stays preferred because somebody else is about to use it."""
    if not directions.empty_since:
        return frozenset()
    entering = {record.number: entered_next(record, among) for record in records}
    wanted = {(group, way) for ways in entering.values() for group, way in ways.items()}
    found = set()
    for number, ways in entering.items():
        for group, way in ways.items():
            kept = directions.empty_since.get(group)
            if kept is not None and kept[0] != way and (group, kept[0]) in wanted:
                found.add(number)
    return frozenset(found)


def drain(directions: Directions, records: list[Record], now_ms: int, params: TrafficParams) -> None:
    """Groups whose other end has waited too long: the first waiter of each closes the direction against it."""
    directions.drained = {}
    waiting = sorted(
        (record.request_ms, record.robot_id, record)
        for record in records
        if record.waiting is not None and record.waiting.code == WAIT_EDGE_DIRECTION and record.request_ms is not None
    )
    for since, _, record in waiting:
        assert record.waiting is not None
        assert record.waiting.resource is not None
        if now_ms - since > params.dir_switch_max_wait_ms:
            edge = int(record.site.cells.edge[record.waiting.resource])
            closed = not record.site.network.edges[edge].forward_on_axis
            directions.drained.setdefault(record.site.network.group_of[edge], (closed, record.number))


def kept_out_by(directions: Directions, record: Record, among: frozenset[int], queue: Queue) -> tuple[int, int] | None:
    """The waiter for whose sake a truck does not enter a lane, and the group; None where it may."""
    if not directions.drained:
        return None
    for group, forward in sorted(entered_next(record, among).items()):
        closed = directions.drained.get(group)
        if closed is None or closed[0] != forward or closed[1] == record.number:
            continue
        if not queue.reaches(closed[1], record.number):
            return closed[1], group
    return None
