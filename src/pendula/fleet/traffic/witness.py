"""The stored schedule that brings everybody to rest (FLT-LIVE-13), and whether it survives a grant.

A witness is an ordered list of moves (truck, standing position). Each is free of where all others stand at that point,
and the last leaves everybody at rest.
"""

from pendula.fleet.traffic.lock_state import LockState, Move


def replays_after(state: LockState, i: int, to: int) -> bool:
    """Whether the stored witness brings everybody to rest once the grant of truck i ends at `to`, its next position.

    Only moves before the truck's own next one can suffer, and only from what its new standing set excludes and the old
    one did not: afterwards everything is as it was."""
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
    """The truck whose move comes first. Those that are at the end of theirs, as all at rest, have none left to make."""
    return next((i for i, position in state.witness if position > state.truck(i).position), None)


def trimmed(moves: list[Move], i: int, position: int) -> list[Move]:
    """The moves that are left when the grant of a truck ends at a position."""
    return [move for move in moves if move[0] != i or move[1] > position]
