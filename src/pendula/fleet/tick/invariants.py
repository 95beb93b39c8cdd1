"""Invariants after every tick (I-1 to I-8, I-12 to I-14), as functions that yield what is broken.

Envelopes and discs themselves (I-2, I-7) are judged from poses by the independent checker; here they follow from cells
and zones that exclude each other. Code of this module shares nothing with the grants it judges but the relation.
"""

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.contracts import Phase
from pendula.fleet.map.trucks import brakes_um
from pendula.fleet.tick.aiming import Aim
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.reasons import WAIT_QUEUE_ORDER, held_against
from pendula.fleet.tick.records import Record
from pendula.fleet.traffic.lock_state import LockState
from pendula.kernel.errors import WorldBroken

Ints = NDArray[np.int64]
_NOTHING = np.zeros(0, dtype=np.int64)


class InvariantBroken(WorldBroken):
    """A tick broke an invariant: it is not committed, and all trucks stop. Facts: `invariant`."""

    code = "fleet_invariant_broken"


def broken(
    records: list[Record],
    locks: LockState,
    aims: Iterable[Aim],
    params: TrafficParams,
    touched: Iterable[int] | None = None,
    replay: bool = True,
) -> Iterator[tuple[str, str]]:
    """Every broken invariant, with what is wrong. `touched`: the trucks that hold something new; the others were
    checked before."""
    changed = records if touched is None else [records[number] for number in touched]
    yield from opposite_directions(changed, records, locks)
    yield from beyond_the_hold_point(records, aims)
    yield from occupied_but_not_granted(records)
    yield from conflicting_grants(changed, records, locks)
    yield from unable_to_stop(records, params)
    if replay:
        yield from no_way_to_rest(locks)


def held_between_ticks(records: list[Record], locks: LockState, params: TrafficParams) -> Iterator[tuple[str, str]]:
    """Every broken invariant of a state, without commands."""
    yield from opposite_directions(records, records, locks)
    yield from occupied_but_not_granted(records)
    yield from conflicting_grants(records, records, locks)
    yield from unable_to_stop(records, params)
    if params.refuge:
        yield from no_way_to_rest(locks)


def opposite_directions(
    changed: Iterable[Record], records: list[Record], locks: LockState
) -> Iterator[tuple[str, str]]:
    """I-1: of one group no two trucks hold cells of different directions. A lost truck may cover both: that is no
    grant, and other trucks near it have stopped."""
    lost = _lost(records)
    for record in changed:
        network, cells = record.site.network, record.site.cells
        for edge in sorted(record.edges):
            group = network.groups[network.group_of[edge]]
            for other in group.edges:
                if network.edges[other].forward_on_axis == network.edges[edge].forward_on_axis:
                    continue
                owners = locks.owner[int(cells.first[other]) : int(cells.first[other + 1])]
                wrong = _strangers(owners, record.number, lost)
                if len(wrong):
                    name = records[int(wrong[0])].robot_id
                    yield "I-1", f"{record.robot_id} and {name} hold both directions of {group.key}"


def beyond_the_hold_point(records: list[Record], aims: Iterable[Aim]) -> Iterator[tuple[str, str]]:
    """I-3: no target and no stop line lies beyond the hold point, no hold point beyond the grant."""
    for record, aim in zip(records, aims, strict=True):
        if record.track is None:
            continue
        limit = max(record.hold_um, record.at_um)
        if aim.target_um > limit or aim.stop_um > limit or record.hold_um > record.grant_um:
            yield "I-3", f"{record.robot_id} is sent beyond its hold point"


def occupied_but_not_granted(records: list[Record]) -> Iterator[tuple[str, str]]:
    """I-5: a truck holds every cell and zone in which it may be."""
    for record in records:
        if record.track is None:
            continue
        if record.at_um > record.grant_um:
            yield "I-5", f"{record.robot_id} is beyond the end of its grant"
        used = record.track.used.not_passed(record.bound_um - _LONGEST_UM, record.at_um, record.bound_um)
        if not all(map(record.held.__contains__, used)):
            name = record.site.resource_name(next(resource for resource in used if resource not in record.held))
            yield "I-5", f"{record.robot_id} is in {name} and does not hold it"


# Longer than any cell: what begins this far behind the release bound is passed, except zones and sections.
_LONGEST_UM = 2_000_000


def conflicting_grants(changed: Iterable[Record], records: list[Record], locks: LockState) -> Iterator[tuple[str, str]]:
    """I-6 (and with it I-7): grants of different trucks do not conflict, sections hold no more than they may."""
    lost = _lost(records)
    for record in changed:
        held = np.array(record.keeps, dtype=np.int64)
        if set(record.keeps) - locks.truck(record.number).held:
            yield "I-6", f"{record.robot_id} believes it holds something that the locks do not know"
        owners = locks.owner[locks.exclusion.around(held)]
        wrong = _strangers(owners, record.number, lost)
        if len(wrong):
            other = records[int(wrong.min())].robot_id
            yield "I-6", f"what {record.robot_id} and {other} hold conflicts"
    for resource, holders in locks.sharers.items():
        if len(holders) > int(locks.exclusion.capacity[resource]):
            yield "I-6", f"{records[0].site.resource_name(resource)} holds more trucks than it may"


def _strangers(owners: Ints, own: int, lost: list[int]) -> Ints:
    strangers: Ints = owners[(owners >= 0) & (owners != own)]
    if lost and len(strangers):
        strangers = strangers[~np.isin(strangers, lost)]
    return strangers


def _lost(records: list[Record]) -> list[int]:
    """Trucks that may cover what they were not granted."""
    return [record.number for record in records if record.doubt is not None and record.doubt.extra]


def falsely_blamed(records: list[Record], locks: LockState) -> Iterator[tuple[str, str]]:
    """I-14: a truck named as blocker holds the resource named with it (FLT-DCL-14)."""
    for record in records:
        held = held_against(record, records)
        if held is None:
            continue
        doubt, number = held.by.doubt, held.by.number
        if held.resource in locks.truck(number).held or (doubt is not None and held.resource in doubt.extra):
            continue
        name = record.site.resource_name(held.resource)
        yield "I-14", f"{record.robot_id} is said to wait for {held.by.robot_id}, which does not hold {name}"


def unable_to_stop(records: list[Record], params: TrafficParams) -> Iterator[tuple[str, str]]:
    """I-8: each truck can stop before its stop line."""
    for record in records:
        if not can_stop(record, params):
            yield "I-8", f"{record.robot_id} cannot stop before its stop line"


def can_stop(record: Record, params: TrafficParams) -> bool:
    """Whether a braking truck stops before its stop line; it knows the line, so no latency is added."""
    if record.track is None or record.stop_code is not None:
        return True
    left = record.hold_um - record.at_um + params.stop_line_tol_um
    return brakes_um(record.profile, record.v_um_s) <= left


def no_way_to_rest(locks: LockState) -> Iterator[tuple[str, str]]:
    """I-12: the stored witness replays: every move avoids where the others stand and what is closed, and all trucks end
    at rest."""
    yield from _led_into_closed_places(locks)
    shadow = locks.exclusion.shadow
    positions = [None if truck is None else truck.position for truck in locks.trucks]
    around = {i: shadow(locks.standing(i)) for i in locks.moving()}
    around |= {i: np.unique(locks.kept_from_others(i)) for i in locks.known() if locks.truck(i).frozen}
    # Free capacity of each resource beside the standing trucks; a shadow names each resource once.
    taken = np.bincount(np.concatenate([_NOTHING, *around.values()]), minlength=len(locks.exclusion))
    room = locks.exclusion.capacity - taken
    for i, to in locks.witness:
        truck, at = locks.truck(i), positions[i]
        assert at is not None
        room[around[i]] += 1
        need = truck.demand.needs(at, to)
        if len(need) and np.minimum.reduce(room[need]) <= 0:
            yield "I-12", f"the witness does not replay: truck {i} does not get to position {to}"
            return
        positions[i] = to
        around[i] = shadow(truck.demand.stands(to))
        room[around[i]] -= 1
    for i in locks.moving():
        if positions[i] != locks.truck(i).goal:
            yield "I-12", f"the witness leaves truck {i} at position {positions[i]}"


def _led_into_closed_places(locks: LockState) -> Iterator[tuple[str, str]]:
    """The witness leads no truck into a closed place, except one that already stands in it."""
    for i in locks.moving() if locks.shut else ():
        truck = locks.truck(i)
        stands, needs = (
            set(resources.tolist()) for resources in (locks.standing(i), truck.demand.needs(truck.position, truck.goal))
        )
        if any(shut.resources & needs and not shut.resources & stands for shut in locks.shut):
            yield "I-12", f"the witness leads truck {i} into what is closed"


class FirstMove(Struct, frozen=True):
    """The first unit of the stored witness, and for how many ticks in a row it was free and not granted."""

    truck: int
    position: int
    ticks: int = 1


def first_move(
    records: list[Record], locks: LockState, drained: Collection[int], before: FirstMove | None
) -> FirstMove | None:
    """The first unit of the witness after a tick, if its truck can use it and nothing held excludes it. `drained`: the
    trucks for which lanes are drained, a ranking rule (FLT-RES-18) that ends by itself."""
    i = next((i for i, to in locks.witness if to > locks.truck(i).position), None)
    if i is None or any(record.unheard and not (record.absent or record.is_out) for record in records):
        return None
    position = locks.truck(i).position
    waiting = records[i].waiting
    if waiting is not None and waiting.code == WAIT_QUEUE_ORDER and waiting.by in drained:
        return None
    if not _wants_on(records[i]) or _is_held(locks, i, locks.truck(i).demand.needs(position, position + 1)):
        return None
    same = before is not None and (before.truck, before.position) == (i, position)
    return FirstMove(i, position, before.ticks + 1) if before is not None and same else FirstMove(i, position)


def _wants_on(record: Record) -> bool:
    """Whether a truck can use its next unit: it is not stopped, not at work in a node, and has no retraction."""
    track = record.track
    if track is None or record.stop_code is not None or record.retraction is not None:
        return False
    at_work = record.phase in (Phase.LOADING, Phase.UNLOADING)
    return not at_work and record.grant_um < min(record.at_um + record.asked_um, track.goal_um)


def _is_held(locks: LockState, i: int, unit: Ints) -> bool:
    """Whether other trucks hold what excludes a unit; a section for several trucks excludes once it is full."""
    single = unit[locks.exclusion.capacity[unit] == 1]
    excluded = set(locks.exclusion.around(single).tolist())
    others = [locks.truck(j).held for j in locks.known() if j != i]
    reached = [locks.truck(j).reaches for j in locks.known() if j != i]
    if any(not excluded.isdisjoint(held - part) for held, part in zip(others, reached, strict=True)):
        return True
    if any(not part.isdisjoint(single.tolist()) for part in reached):
        return True
    several = unit[locks.exclusion.capacity[unit] > 1].tolist()
    return any(
        sum(resource in held for held in others) >= int(locks.exclusion.capacity[resource]) for resource in several
    )


def passed_over(records: list[Record], first: FirstMove | None, params: TrafficParams) -> Iterator[tuple[str, str]]:
    """I-13: no memory, pause or budget keeps the first truck of the witness from its unit."""
    if first is not None and params.refuge and first.ticks > params.witness_grant_ticks:
        name = records[first.truck].robot_id
        yield "I-13", f"the witness begins with {name}, which was not granted its unit for {first.ticks} ticks"
