"""Mistakes of former prototypes of the lock core, planted again: the search must find a deadlock with each."""

from collections.abc import Callable

from pendula.fleet.traffic.grants import Accepted, Blocked, Granted, Rule, Wait, extend
from pendula.fleet.traffic.lock_state import Demand, LockState
from pendula.fleet.traffic.refuge import trimmed
from tests.fleet.traffic.exhaustive import World, by_the_rule

Mistake = Callable[[World, int], Granted | Blocked]
REFUSED = Blocked(Wait.HELD)


def rule_off(world: World, i: int) -> Granted | Blocked:
    """Locks alone: every free resource is granted."""
    return extend(world.state, i, rule=Rule.OFF)


def unchecked(state: LockState, i: int, demand: Demand, position: int) -> Accepted:
    """Routes are accepted unchecked; only units are checked."""
    known = state.trucks[i] is not None
    state.install(i, state.prepared(i, demand, position))
    if not known:
        state.hold(i, demand.stands(position).tolist())
    state.witness = [*(move for move in state.witness if move[0] != i), (i, demand.last)]
    return Accepted()


def direction_lock(world: World, i: int) -> Granted | Blocked:
    """A corridor has one direction at a time, kept beside the relation: cell numbers are its axis."""
    mine = _direction(world, i, world.state.truck(i).position + 1)
    for j in range(len(world.state)):
        if j != i and mine and _direction(world, j, world.state.truck(j).position) == -mine:
            return REFUSED
    return by_the_rule(world, i)


def _direction(world: World, i: int, position: int) -> int:
    """The direction of a truck that moves to a position, if it was and is on the corridor."""
    rests = {ways[0].stand[0][0] for ways in world.map.ways}
    way = world.way[i]
    if not 0 < position < len(way.need):
        return 0
    before, here = way.stand[position - 1][-1], way.stand[position][-1]
    return 0 if {before, here} & rests else (here > before) - (here < before)


def literal_barring(world: World, i: int) -> Granted | Blocked:
    """A waiter bars all trucks of lower rank from what it waits for, without exemption."""
    mine = _next_unit(world, i)
    for j in range(i):
        waits = isinstance(by_the_rule(world.copy(), j), Blocked)
        if waits and any(world.judge().excludes(a, b) for a in mine for b in _next_unit(world, j)):
            return REFUSED
    return by_the_rule(world, i)


def _next_unit(world: World, i: int) -> tuple[int, ...]:
    position = world.state.truck(i).position + 1
    return world.way[i].need[position] if position < len(world.way[i].need) else ()


def skips_refuges(world: World, i: int) -> Granted | Blocked:
    """On to the furthest position that blocks no more than the present one, regardless of those between."""
    state, truck = world.state, world.state.truck(i)
    now = _blocked_needs(world, i, truck.position)
    free = [k for k in _free_positions(world, i) if _blocked_needs(world, i, k) <= now]
    if not free:
        return by_the_rule(world, i)
    taken = truck.demand.needs(truck.position, free[-1]).tolist()
    state.place(i, free[-1])
    state.hold(i, taken)
    state.witness = trimmed(state.witness, i, free[-1])
    return Granted(free[-1])


def _free_positions(world: World, i: int) -> list[int]:
    truck = world.state.truck(i)
    others = [sorted(world.state.truck(j).held) for j in range(len(world.state)) if j != i]
    found = []
    for position in range(truck.position + 1, truck.demand.last + 1):
        if not world.judge().free(world.way[i].need[position], others):
            break
        found.append(position)
    return found


def _blocked_needs(world: World, i: int, position: int) -> set[int]:
    judge = world.judge()
    needs = set()
    for j in range(len(world.state)):
        if j != i:
            needs |= {r for row in world.way[j].need[world.state.truck(j).position + 1 :] for r in row}
    return {r for r in needs for s in world.way[i].stand[position] if judge.excludes(r, s)}
