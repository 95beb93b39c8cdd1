"""The stored schedule that brings everybody to rest (FLT-LIVE-13), and whether it survives a grant.

A witness is an ordered list of moves (truck, standing position). Each is free of where all others stand at that point,
and the last leaves everybody at rest.
"""

import numpy as np

from pendula.fleet.traffic.lock_state import LockState, Move, mask_of


def replays_after(state: LockState, i: int, to: int) -> bool:
    """Whether the stored witness brings everybody to rest once the grant of truck i ends at `to`.

    Only moves before the truck's own next one can suffer, and only from what its new standing set excludes and the old
    one did not: afterwards everything is as it was."""
    one = state.truck(i)
    before = state.exclusion.around(one.demand.stands(one.position))
    after = state.exclusion.around(one.demand.stands(to))
    state.marks[after] = True
    state.marks[before] = False
    fresh = after[state.marks[after]]
    hit = bool(len(fresh)) and _hits_a_move(state, i, mask_of(np.bitwise_or.reduce(state.wanted[fresh], axis=0)))
    state.marks[after] = False
    return not hit


def _hits_a_move(state: LockState, i: int, needing: int) -> bool:
    """Whether one of the trucks that need something marked needs it in a move before truck i's next."""
    needing &= ~(1 << i)
    furthest: dict[int, int] = {}
    for j, position in state.witness if needing else ():
        if j == i:
            break
        if needing >> j & 1:
            furthest[j] = position
    return any(_needs_marked(state, j, position) for j, position in furthest.items())


def _needs_marked(state: LockState, j: int, upto: int) -> bool:
    other = state.truck(j)
    return bool(state.marks[other.demand.needs(other.position, upto)].any())


def trimmed(moves: list[Move], i: int, position: int) -> list[Move]:
    """The moves that are left when the grant of a truck ends at a position."""
    return [move for move in moves if move[0] != i or move[1] > position]
