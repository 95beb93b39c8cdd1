"""Turns: the order in which trucks are asked, what waiting trucks bar and reserve, and the directions of lanes."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.contracts import Phase, PriorityClass
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.reasons import WAIT_CLOSED, WAIT_SAFE_STATE
from pendula.fleet.tick.records import Record
from pendula.fleet.traffic.lock_state import NO_TRUCK, Demand, LockState
from pendula.fleet.traffic.refuge import refuge

# Which truck waits for which in this tick, and what a waiting truck bars.
# A waiting truck bars lower-ranked trucks from a free resource only while its request is ripe, and never one that it
# waits for itself, directly or indirectly: bars are edges of the same graph, and one that would close a cycle is left
# out. A truck refused as unsafe bars no other, nor does one blocked by a failed truck.

Ints = NDArray[np.int64]
_LONGEST = 8


@dataclass(slots=True)
class Queue:
    """The waits of a tick so far. `waits`: for every waiting truck the trucks it waits for."""

    waits: dict[int, set[int]] = field(default_factory=dict)
    # Waiting trucks with ripe requests, in rank order, with all that their next unit excludes.
    ripe: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    # The waits of the last tick: those not known yet in this one may still close a cycle.
    before: dict[int, tuple[int, ...]] = field(default_factory=dict)
    # All that ripe requests exclude together: most units do not touch it.
    _excluded: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self._excluded = {resource for _, excluded in self.ripe for resource in excluded}

    def wait(self, i: int, others: tuple[int, ...]) -> None:
        self.waits.setdefault(i, set()).update(others)

    def ask(self, i: int, excluded: frozenset[int]) -> None:
        """The next unit of a truck is blocked by others, and nothing before it is missing."""
        self.ripe.append((i, excluded))
        self._excluded |= excluded

    def barred_by(self, i: int, unit: Ints) -> tuple[int, int] | None:
        """The first waiting truck that bars truck i from a unit, and the resource."""
        resources = unit.tolist()
        if self._excluded.isdisjoint(resources):
            return None
        for waiter, around in self.ripe:
            if waiter != i and not around.isdisjoint(resources) and not self.reaches(waiter, i):
                return waiter, next(resource for resource in resources if resource in around)
        return None

    def reaches(self, start: int, goal: int) -> bool:
        """Whether a truck waits for another one, directly or indirectly."""
        return any(other == goal for other in self.in_the_way_of(start))

    def in_the_way_of(self, start: int) -> Iterator[int]:
        """All trucks that a truck waits for, directly or indirectly; some more than once."""
        seen, todo = {start}, [start]
        while todo:
            here = todo.pop()
            for other in (*self.waits.get(here, ()), *self.before.get(here, ())):
                yield other
                if other not in seen:
                    seen.add(other)
                    todo.append(other)


def waited_for(records: list[Record]) -> dict[int, tuple[int, ...]]:
    """For every truck that waits since the last tick the trucks it waits for."""
    return {
        record.number: record.waiting.cycle or (record.waiting.by,)
        for record in records
        if record.waiting is not None and record.waiting.by is not None
    }


def ripe(record: Record, locks: LockState, whole: bool = False) -> frozenset[int]:
    """What no other truck may hold for the next unit of a truck. Of a unit of many cells only the first is ripe; the
    `whole` unit for a truck that has waited long, since in a stream it would never find all of it free."""
    track = record.track
    assert track is not None
    unit = track.taken(record.grant_um, track.stands[record.granted + 1])
    first = [use.resource for use in unit if whole or use.need_um == unit[0].need_um]
    return frozenset(locks.exclusion.around(np.array(first, dtype=np.int64)).tolist())


def recall(record: Record, locks: LockState) -> None:
    """Rebuild the requests of a restored truck. Its blocker is known and not asked again; otherwise the queue could be
    the answer."""
    waits = record.waiting is not None and record.waiting.theirs is not None and not record.at_rest
    record.ripe = ripe(record, locks) if waits else None


def pause_ms(params: TrafficParams, now_ms: int, since_ms: int | None) -> int:
    """How long nothing is searched for a truck that was refused as unsafe: the cooldown, or as long as the same trucks
    have prevented it, so that pauses double, up to eight cooldowns."""
    waited = 0 if since_ms is None else now_ms - since_ms
    return min(max(params.cooldown_ms, waited), _LONGEST * params.cooldown_ms)


# Directions of single lanes as ranking (FLT-RES-18, FLT-OSC-9): which direction stays preferred after a lane became
# empty, and which lanes are drained because a truck has waited too long at the other end.
# Nothing is locked here: trucks that the waiter waits for are exempt, and an empty lane is preferred only for a
# moment.

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


# The order in which trucks are asked: class and age, then the longer wait, then the id; a starving truck first.
# One total order per tick. It also uses the directions of single lanes: a truck in the preferred direction comes
# before those that would turn it.

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


# Reservations beyond what a truck needs to keep moving: up to `lookaheadM` ahead of it, and `lookbackM` behind it.
# They order the queue, show where each truck will go, and give way to every truck that needs the place: no lock, no
# witness and no wait depends on them. What others hold, or have reserved before, ends a reservation.

Bools = NDArray[np.bool_]


def reserve(order: Sequence[Record], locks: LockState, params: TrafficParams, now_ms: int) -> None:
    """Carry over reservations while the places are free, then extend them in the order of the trucks."""
    claims = Claims(locks)
    asking = []
    for record in order:
        if _asks(record, locks):
            asking.append((record, _last(record, locks, params)))
        else:
            record.reserve_anew()
    # Reservations of the last tick come before new ones: the first to reserve a place keeps it.
    for record, last in asking:
        _take(record, claims, record.granted, min(record.reserved, last))
    for record, _ in asking:
        _take_behind(record, claims, params)
    for record, last in asking:
        _take(record, claims, record.reserved, last)
        _note(record, now_ms)


class Claims:
    """The reservations of this tick, beside held resources."""

    def __init__(self, locks: LockState) -> None:
        self.locks = locks
        self.owner: Ints = np.full(len(locks.exclusion), NO_TRUCK, dtype=np.int64)
        # What failed trucks hold beside others; usually empty.
        self._crowd = np.array(sorted(locks.crowd), dtype=np.int64)
        self._reached = np.array(sorted(locks.reached), dtype=np.int64)

    def free(self, i: int, resources: Ints) -> Bools:
        """For each resource whether no other truck holds or has reserved what excludes it."""
        exclusion = self.locks.exclusion
        if not len(resources):
            return np.ones(0, dtype=np.bool_)
        around = exclusion.around(resources)
        counts = exclusion.at[resources + 1] - exclusion.at[resources]
        taken = self._is_other(i, self.locks.owner[around]) | self._is_other(i, self.owner[around])
        if len(self._crowd):
            taken |= np.isin(around, self._crowd)
        free: Bools = ~np.logical_or.reduceat(taken, np.cumsum(counts) - counts)
        if len(self._reached):
            free &= ~np.isin(resources, self._reached)
        for place in np.flatnonzero(exclusion.capacity[resources] > 1).tolist():
            resource = int(resources[place])
            inside = [j for j in self.locks.sharers[resource] if j != i]
            free[place] = len(inside) < int(exclusion.capacity[resource])
        return free

    def _is_other(self, i: int, owners: Ints) -> Bools:
        others: Bools = (owners != NO_TRUCK) & (owners != i)
        return others

    def take(self, i: int, resources: Ints) -> None:
        # A section for several trucks is not reserved: trucks inside count.
        self.owner[resources[self.locks.exclusion.capacity[resources] == 1]] = i


def _asks(record: Record, locks: LockState) -> bool:
    """A truck that is stopped, has a retraction or no route reserves nothing."""
    way = record.track is not None and record.stop_code is None and record.retraction is None
    return way and not locks.truck(record.number).frozen


def _last(record: Record, locks: LockState, params: TrafficParams) -> int:
    """The standing position up to which a truck reserves: the first at or beyond the lookahead, as for units."""
    track = record.track
    assert track is not None
    reach = min(record.at_um + params.lookahead_um, track.goal_um)
    return max(record.granted, min(bisect_left(track.stands, reach), locks.truck(record.number).goal - record.base))


def _take(record: Record, claims: Claims, first: int, last: int) -> None:
    """Reserve from one standing position to another, or to the first unit that is not free."""
    demand, base = claims.locks.truck(record.number).demand, record.base
    record.reserved = first
    if last <= first:
        return
    need = demand.needs(base + first, base + last)
    wrong = np.flatnonzero(~claims.free(record.number, need))
    if len(wrong):
        entry = demand.need_from[base + first + 1] + int(wrong[0])
        last = bisect_right(demand.need_from, entry) - 2 - base
        need = demand.needs(base + first, base + last)
    claims.take(record.number, need)
    record.reserved = last


def _note(record: Record, now_ms: int) -> None:
    """Since when each unit is reserved: kept if a truck in need takes the place, as long as the route stays."""
    kept = {k: since for k, since in record.reserved_ms.items() if k > record.granted}
    record.reserved_ms = {**dict.fromkeys(range(record.granted + 1, record.reserved + 1), now_ms), **kept}


def _take_behind(record: Record, claims: Claims, params: TrafficParams) -> None:
    """Reserve the cells that a truck has passed, if free, back to the end of the lookback."""
    track = record.track
    assert track is not None
    passed = track.taken(record.at_um - params.lookback_um, record.bound_um)
    left = (use.resource for use in passed if use.resource not in record.held)
    behind = np.array([resource for resource in left if resource < len(record.site.cells)], dtype=np.int64)
    claims.take(record.number, behind[claims.free(record.number, behind)])
