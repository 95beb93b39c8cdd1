"""What holds after every tick (I-1 to I-8 and I-12 of FLT-TEST), as functions that name what is broken.

Envelopes and discs themselves (I-2, I-7) are judged from poses by the independent checker; here they follow from cells
and zones that exclude each other. Code of this module shares nothing with the grants it judges but the relation.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from pendula.fleet.contracts.traffic import RollingTargetCommand
from pendula.fleet.traffic.lock_state import LockState
from pendula.fleet.traffic.params import TrafficParams
from pendula.fleet.traffic.records import Record
from pendula.fleet.trucks.envelope import braking_um
from pendula.fleet.units import micro
from pendula.kernel.errors import WorldBroken


class InvariantBroken(WorldBroken):
    """A tick came to a state that must not be: it is not committed, and everybody stops. Facts: `invariant`."""

    code = "fleet_invariant_broken"


def broken(
    records: list[Record], locks: LockState, commands: Iterable[RollingTargetCommand], params: TrafficParams
) -> Iterator[tuple[str, str]]:
    """Every invariant that does not hold, with what is wrong."""
    yield from opposite_directions(records)
    yield from beyond_the_hold_point(records, commands)
    yield from occupied_but_not_granted(records)
    yield from conflicting_grants(records, locks)
    yield from unable_to_stop(records, params)
    if params.refuge:
        yield from no_way_to_rest(locks)


def opposite_directions(records: list[Record]) -> Iterator[tuple[str, str]]:
    """I-1: of one group no two trucks hold cells of different directions."""
    if not records:
        return
    site = records[0].site
    count = len(site.cells)
    ways: dict[int, dict[bool, int]] = {}
    for record in records:
        edges = {int(site.cells.edge[cell]) for cell in record.keeps if cell < count}
        for edge in sorted(edges):
            one = site.network.edges[edge]
            holders = ways.setdefault(site.network.group_of[edge], {})
            other = holders.get(not one.forward_on_axis)
            if other is not None and other != record.number:
                yield "I-1", f"{record.robot_id} and {records[other].robot_id} hold both directions of {one.group_key}"
            holders[one.forward_on_axis] = record.number


def beyond_the_hold_point(records: list[Record], commands: Iterable[RollingTargetCommand]) -> Iterator[tuple[str, str]]:
    """I-3: no target and no stop line lies beyond the hold point, no hold point beyond the grant."""
    for record, command in zip(records, commands, strict=True):
        if record.track is None:
            continue
        limit = max(record.hold_um, record.at_um)
        if max(micro(command.targetS), micro(command.stopLineS)) > limit or record.hold_um > record.grant_um:
            yield "I-3", f"{record.robot_id} is sent beyond its hold point"


def occupied_but_not_granted(records: list[Record]) -> Iterator[tuple[str, str]]:
    """I-5: a truck holds every cell and zone that it may be in."""
    for record in records:
        if record.track is None:
            continue
        if record.at_um > record.grant_um:
            yield "I-5", f"{record.robot_id} is beyond the end of its grant"
        for use in record.track.taken(record.bound_um - _LONGEST_UM, record.at_um):
            if use.free_um > record.bound_um and use.resource not in record.held:
                yield "I-5", f"{record.robot_id} is in {record.site.resource_name(use.resource)} and does not hold it"


# No cell is longer: what begins this far behind the release bound is passed, but for zones and sections.
_LONGEST_UM = 2_000_000


def conflicting_grants(records: list[Record], locks: LockState) -> Iterator[tuple[str, str]]:
    """I-6 (and with it I-7): grants of different trucks do not conflict, sections hold no more than they may."""
    for record in records:
        held = np.array(record.keeps, dtype=np.int64)
        if set(record.keeps) - locks.truck(record.number).held:
            yield "I-6", f"{record.robot_id} believes it holds what the locks do not know of"
        owners = locks.owner[locks.exclusion.around(held)]
        wrong = owners[(owners >= 0) & (owners != record.number)]
        if len(wrong):
            other = records[int(wrong.min())].robot_id
            yield "I-6", f"what {record.robot_id} and {other} hold conflicts"
    for resource, holders in locks.sharers.items():
        if len(holders) > int(locks.exclusion.capacity[resource]):
            yield "I-6", f"{records[0].site.resource_name(resource)} holds more trucks than it may"


def unable_to_stop(records: list[Record], params: TrafficParams) -> Iterator[tuple[str, str]]:
    """I-8: each truck can stop before its stop line."""
    for record in records:
        if not can_stop(record, params):
            yield "I-8", f"{record.robot_id} cannot stop before its stop line"


def can_stop(record: Record, params: TrafficParams) -> bool:
    """Whether what a truck still drives ends before its stop line. The control latency contains the tick that has
    passed since the speed was told, so that part of it is over."""
    if record.track is None or record.stop_code is not None:
        return True
    driven = record.v_um_s * params.tick_period_ms // 1000
    left = record.hold_um - record.at_um + params.stop_line_tol_um
    return braking_um(record.profile, record.v_um_s) - driven <= left


def no_way_to_rest(locks: LockState) -> Iterator[tuple[str, str]]:
    """I-12: the stored witness replays: every move of it is free of where the others stand, and all end at rest."""
    positions = [None if one is None else one.position for one in locks.trucks]
    around = {i: locks.exclusion.around(locks.standing(i)) for i in locks.known()}
    taken = np.zeros(len(locks.exclusion), dtype=np.int64)
    for blocked in around.values():
        taken[np.unique(blocked)] += 1
    for i, to in locks.witness:
        one, at = locks.truck(i), positions[i]
        assert at is not None
        taken[np.unique(around[i])] -= 1
        need = one.demand.needs(at, to)
        if np.any(taken[need] >= locks.exclusion.capacity[need]):
            yield "I-12", f"the witness does not replay: truck {i} does not get to position {to}"
            return
        positions[i] = to
        around[i] = locks.exclusion.around(one.demand.stands(to))
        taken[np.unique(around[i])] += 1
    for i in locks.moving():
        if positions[i] != locks.truck(i).goal:
            yield "I-12", f"the witness leaves truck {i} at position {positions[i]}"
