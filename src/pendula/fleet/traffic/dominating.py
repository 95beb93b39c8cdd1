"""Positions where a truck blocks less than at all positions it passes; moving there needs no branch (FLT-LIVE-13)."""

from collections.abc import Sequence

import numpy as np

from pendula.fleet.traffic.lock_state import Ints, LockState
from pendula.fleet.traffic.refuge import needed_by_words, reach

# How many positions ahead a truck looks for one that blocks less: each costs as much as a whole refuge.
_NEAR = 32


def dominating(state: LockState, i: int) -> int | None:
    """The furthest near position that blocks only what *every* passed position blocks, the present one included. Equal
    to the last passed one is not enough: between them may be a position where the truck blocked nothing."""
    truck = state.truck(i)
    far = min(reach(state, i), truck.position + _NEAR)
    if far == truck.position:
        return None
    # Trucks first: a position that blocks a truck which a passed one does not cannot qualify.
    fits = np.ones(far - truck.position, dtype=np.bool_)
    for word in needed_by_words(state, i, truck.position, far):
        fits &= (word[1:] & ~np.bitwise_and.accumulate(word)[:-1]) == 0
    return _dominating(state, i, (fits.nonzero()[0] + truck.position + 1).tolist())


def _dominating(state: LockState, i: int, candidates: list[int]) -> int | None:
    """The last candidate that blocks only what every position before it blocks, if any."""
    here = state.truck(i).position
    candidates = _within(state, i, here, candidates)
    if not candidates:
        return None
    count = candidates[-1] - here + 1
    blocked, place = _blocked_needs(state, i, range(here, here + count))
    # Blocked for the n-th time at place n means blocked at every place before.
    always = _nth_time(blocked) == place
    size, common = np.bincount(place, minlength=count), np.bincount(place[always], minlength=count)
    fits = (size[1:] == common[1:]) & (common[:-1] > 0)
    return max((position for position in candidates if fits[position - here - 1]), default=None)


def _within(state: LockState, i: int, here: int, candidates: list[int]) -> list[int]:
    """The candidates that block only what the present position blocks."""
    now, _ = _blocked_needs(state, i, range(here, here + 1))
    if not len(now) or not candidates:
        return []
    state.marks[now] = True
    blocked, place = _blocked_needs(state, i, candidates)
    beyond = set(place[~state.marks[blocked]].tolist())
    state.marks[now] = False
    return [position for k, position in enumerate(candidates) if k not in beyond]


def _blocked_needs(state: LockState, i: int, positions: Sequence[int]) -> tuple[Ints, Ints]:
    """What others still need that a truck at one of the positions excludes, and at which of them."""
    shadows = [state.shadow(i, position) for position in positions]
    around = np.concatenate(shadows)
    needed = state.wanted.besides(i, around).nonzero()[0]
    place = np.repeat(np.arange(len(shadows)), [len(shadow) for shadow in shadows])
    return around[needed], place[needed]


def _nth_time(numbers: Ints) -> Ints:
    """For each entry how often its number occurred before."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.diff(ordered, prepend=-1) > 0
    index = np.arange(len(numbers))
    times = np.empty(len(numbers), dtype=np.int64)
    times[order] = index - np.maximum.accumulate(np.where(begins, index, 0))
    return times
