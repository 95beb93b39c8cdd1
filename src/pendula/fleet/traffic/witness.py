"""The stored schedule that brings all trucks to rest (FLT-LIVE-13), and whether it survives a grant.

A witness is an ordered list of moves (truck, standing position). Each avoids where all others stand at that point, and
after the last all trucks are at rest.
"""

from pendula.fleet.traffic.lock_state import LockState, Move
from pendula.fleet.traffic.refuge import reach_and_blockers


def replays_after(state: LockState, i: int, to: int) -> bool:
    """Whether the stored witness is still valid when the grant of truck i ends at `to`, its next position.

    Only moves before the truck's own next one can break, and only by what its new standing set excludes and the old one
    did not.
    """
    fresh = state.fresh(i, to)
    needing = state.wanted.over(fresh) & ~(1 << i)
    if not needing:
        return True
    state.marks[fresh] = True
    hit = _hits_a_move(state, i, needing)
    state.marks[fresh] = False
    return not hit


def _hits_a_move(state: LockState, i: int, needing: int) -> bool:
    """Whether one of the trucks that need something marked needs it in a move before truck i's next."""
    furthest: dict[int, int] = {}
    for j, position in state.witness:
        if j == i:
            break
        if needing >> j & 1:
            furthest[j] = position
    return any(_needs_marked(state, j, position) for j, position in furthest.items())


def _needs_marked(state: LockState, j: int, upto: int) -> bool:
    other = state.truck(j)
    return bool(state.marks[other.demand.needs(other.position, upto)].any())


def first_to_go(state: LockState) -> int | None:
    """The truck with the first move; trucks at their goals have none left."""
    return next((i for i, position in state.witness if position > state.truck(i).position), None)


def trimmed(moves: list[Move], i: int, position: int) -> list[Move]:
    """The remaining moves when the grant of a truck ends at a position."""
    return [move for move in moves if move[0] != i or move[1] > position]


def going_on(state: LockState, moves: list[Move]) -> list[Move] | None:
    """The moves of an older witness as one from the ends of all grants, each up to the goal of its truck; None if they
    do not bring all trucks there. A truck without a move goes last."""
    start = {i: state.truck(i).position for i in state.known()}
    last = [(i, state.truck(i).goal) for i in state.moving()]
    ahead = [(i, min(to, state.truck(i).goal)) for i, to in [*moves, *last] if not state.truck(i).frozen]
    made = [move for move in ahead if move[1] > state.truck(move[0]).position and _goes(state, *move)]
    there = all(state.truck(i).position == goal for i, goal in last)
    for i, position in start.items():
        if position != state.truck(i).position:
            state.place(i, position)
    return made if there else None


def _goes(state: LockState, i: int, to: int) -> bool:
    """Move a truck if its route avoids where the others stand."""
    free = reach_and_blockers(state, i, to)[0] == to
    if free:
        state.place(i, to)
    return free
