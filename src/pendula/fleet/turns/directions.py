"""Directions of single lanes as ranking (FLT-RES-18, FLT-OSC-9): which direction stays preferred after a lane became
empty, and which lanes are drained because a truck has waited too long at the other end.

Nothing is locked here: trucks that the waiter waits for are exempt, and an empty lane is preferred only for a moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.traffic.lock_state import LockState
from pendula.fleet.traffic.refuge import refuge
from pendula.fleet.turns.queueing import Queue
from pendula.fleet.views.reasons import WAIT_CLOSED, WAIT_SAFE_STATE

# No lane is drained for a truck that waits with one of these codes: it would not help.
_UNENDED = frozenset({WAIT_CLOSED, WAIT_SAFE_STATE})


@dataclass(slots=True)
class Directions:
    """`active`: the direction (along the axis of the group?) of every held two-way group; `empty_since`: the last
    direction of groups that became empty, and when; `drained`: groups closed for new entries in a direction, and the
    truck that waits for it."""

    active: dict[int, bool] = field(default_factory=dict)
    empty_since: dict[int, tuple[bool, int]] = field(default_factory=dict)
    drained: dict[int, tuple[bool, int]] = field(default_factory=dict)
    # What the waiters for drained groups still need up to their refuges; rebuilt in each tick.
    ways: dict[int, frozenset[int]] = field(default_factory=dict)

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
    """The two-way groups that the next unit of a truck enters, with the direction; not those it is already in."""
    if record.entering is None:
        record.entering = _entered_next(record, among)
    return record.entering


def _entered_next(record: Record, among: frozenset[int]) -> dict[int, bool]:
    track = record.track
    if track is None or record.granted + 1 >= len(track.stands):
        return {}
    site = record.site
    ways = {}
    for use in track.taken(record.grant_um, track.stands[record.granted + 1]):
        if use.resource < len(site.cells):
            edge = int(site.cells.edge[use.resource])
            if site.network.group_of[edge] in among:
                ways[site.network.group_of[edge]] = site.network.edges[edge].forward_on_axis
    for group in {site.network.group_of[edge] for edge in record.edges} & ways.keys():
        del ways[group]
    return ways


def look(directions: Directions, records: list[Record], among: frozenset[int], now_ms: int, hold_ms: int) -> None:
    """Update the held directions; groups that became empty are remembered for a while."""
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
    """The trucks that would turn a direction which stays preferred because another truck is about to use it."""
    if not directions.empty_since:
        return frozenset()
    entering = {record.number: entered_next(record, among) for record in records}
    requested = {(group, way) for ways in entering.values() for group, way in ways.items()}
    numbers = set()
    for number, ways in entering.items():
        for group, way in ways.items():
            preferred = directions.empty_since.get(group)
            if preferred is not None and preferred[0] != way and (group, preferred[0]) in requested:
                numbers.add(number)
    return frozenset(numbers)


def drain(
    directions: Directions, records: list[Record], among: frozenset[int], now_ms: int, params: TrafficParams
) -> None:
    """Drain groups whose other end has waited too long: the first waiter of each closes the opposite direction until it
    is in. Its blocker may change meanwhile, from the lane to the mouth and back; that it waits does not."""
    directions.drained = {}
    waiting = sorted(
        (record.waiting_since_ms, record.robot_id, record)
        for record in records
        if record.waiting is not None and record.waiting.code not in _UNENDED and record.waiting_since_ms is not None
    )
    for since, _, record in waiting:
        if now_ms - since <= params.dir_switch_max_wait_ms:
            break
        for group, forward in sorted(entered_next(record, among).items()):
            # A lane already driven in its own direction is not what it waits for.
            if directions.active.get(group) is not forward:
                directions.drained.setdefault(group, (not forward, record.number))


def keep_clear(directions: Directions, locks: LockState) -> None:
    """Note the routes of trucks for which lanes are drained: to the first refuge behind the ends of their grants."""
    directions.ways = {}
    for group, (_, waiter) in directions.drained.items():
        truck = locks.truck(waiter)
        end = refuge(locks, waiter, truck.position + 1)
        own = truck.demand.needs(truck.position, truck.goal if end is None else end)
        directions.ways[group] = frozenset(locks.exclusion.around(own).tolist())


def kept_out_by(
    directions: Directions, record: Record, among: frozenset[int], queue: Queue, unit: Sequence[int]
) -> tuple[int, int] | None:
    """The waiter for which a truck must not enter a lane, and the group; None if it may. It stays out of the mouth as
    well, where it would block the waiter."""
    for group, (closed, waiter) in sorted(directions.drained.items()):
        if waiter == record.number or not _leads_into(record, group, closed):
            continue
        enters = entered_next(record, among).get(group) is closed
        if (enters or not directions.ways[group].isdisjoint(unit)) and not queue.reaches(waiter, record.number):
            return waiter, group
    return None


def _leads_into(record: Record, group: int, forward: bool) -> bool:
    """Whether the rest of a truck's route leads through a group in a direction, of which it holds nothing yet."""
    network, track = record.site.network, record.track
    if track is None or any(network.group_of[edge] == group for edge in record.edges):
        return False
    return any(
        network.group_of[segment.edge] == group
        and network.edges[segment.edge].forward_on_axis is forward
        and segment.route_s0_um + segment.length_um > record.grant_um
        for segment in track.segments
    )
