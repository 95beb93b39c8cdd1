"""Two trucks that block each other for good: even alone they could not get to rest (FLT-LIVE-13).

Then they cannot among other trucks either, so such a state needs no search. Exact within its window; trucks that leave
the window may still get to rest.
"""

import numpy as np

from pendula.fleet.traffic.lock_state import LockState

# Positions of each truck that are checked: trucks that met on a lane seldom have more ahead.
_WINDOW = 32


def stuck_together(state: LockState, i: int, at_i: int, j: int, at_j: int) -> bool:
    """Whether two trucks at these positions never get to rest, whatever all others do."""
    end_i, end_j = min(state.truck(i).goal, at_i + _WINDOW), min(state.truck(j).goal, at_j + _WINDOW)
    mine = _blocked(state, i, range(at_i, end_i + 1), j, range(at_j, end_j + 1))
    theirs = _blocked(state, j, range(at_j, end_j + 1), i, range(at_i, end_i + 1))
    # Where truck j can be while truck i stands at one position after the other.
    places = _onward([True] + [False] * (end_j - at_j), theirs[0])
    for step in range(end_i - at_i):
        if places[-1] and end_j < state.truck(j).goal:
            return False
        passed = [here and not row[step] for here, row in zip(places, mine, strict=True)]
        places = _onward(passed, theirs[step + 1])
    return not (places[-1] if end_i == state.truck(i).goal else any(places))


def _onward(places: list[bool], blocked: list[bool]) -> list[bool]:
    """Positions of a truck, and all it reaches from them over unblocked units."""
    reached = places[:1]
    for here, barred in zip(places[1:], blocked, strict=True):
        reached.append(here or (reached[-1] and not barred))
    return reached


def _blocked(state: LockState, i: int, own: range, j: int, theirs: range) -> list[list[bool]]:
    """For every position of truck j and every unit of truck i between its own, whether one blocks the other."""
    demand = state.truck(i).demand
    need = demand.needs(own[0], own[-1])
    # A section for several trucks is never filled by two.
    single = state.exclusion.capacity[need] == 1
    begins = np.array(demand.need_from[own[0] + 1 : own[-1] + 2], dtype=np.int64) - demand.need_from[own[0] + 1]
    met = np.zeros(len(need) + 1, dtype=np.int64)
    rows: list[list[bool]] = []
    for position in theirs:
        shadow = state.shadow(j, position)
        state.marks[shadow] = True
        np.cumsum(state.marks[need] & single, out=met[1:])
        state.marks[shadow] = False
        rows.append((met[begins[1:]] > met[begins[:-1]]).tolist())
    return rows
