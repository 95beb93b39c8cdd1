"""New artwork events: a small pool that interrupts the channels at random, less often each time an artwork was shown.

The pool is immutable: five levels (32, 16, 8, 4, 2 sixty-fourths), each a tuple of entries in order of insertion. Every
change returns a new pool.
"""

from bisect import bisect_left

from pendula.playback.model import Entry, InsertResult, Levels

PRIORITIES = (32, 16, 8, 4, 2)
EMPTY: Levels = ((), (), (), (), ())
CERTAIN = 64
DRAW_SHIFT = 26  # a draw has 32 bits, a probability is in 64ths


def probability(pool: Levels) -> int:
    """The chance of an interruption, in 64ths."""
    first, second, third, fourth, fifth = pool
    whole = 32 * len(first) + 16 * len(second) + 8 * len(third) + 4 * len(fourth) + 2 * len(fifth)
    return whole if whole < CERTAIN else CERTAIN


def chance(pool: Levels) -> int:
    """A draw below this number is an interruption."""
    return probability(pool) << DRAW_SHIFT


def triggers(draw: int, pool: Levels) -> bool:
    return draw < chance(pool)


def size(pool: Levels) -> int:
    return sum(map(len, pool))


def insert(pool: Levels, entry: Entry, cap: int) -> tuple[Levels, InsertResult, Entry | None]:
    """The pool with `entry` at the top priority, the result, and the entry that was evicted."""
    for place, level in enumerate(pool):
        for index, there in enumerate(level):
            if there.id == entry.id:
                top, *lower = _without(pool, place, index)
                merge_changes = _with(top, Entry(there.number, entry.id, entry.raw))
                return (merge_changes, *lower), InsertResult.MERGED, None
    grown = ((*pool[0], entry), *pool[1:])
    if size(grown) <= cap:
        return grown, InsertResult.INSERTED, None
    # The lowest priority is evicted, on ties the oldest. The new entry has the top priority and the largest number.
    place = max(place for place, level in enumerate(grown) if level)
    return _without(grown, place, 0), InsertResult.INSERTED, grown[place][0]


def choose(pool: Levels) -> tuple[Entry, Levels, bool]:
    """The entry of the highest priority (on ties the oldest), the pool after its decay, whether it was removed."""
    place = 0
    while not pool[place]:
        place += 1
    levels = list(pool)
    entry, levels[place] = pool[place][0], pool[place][1:]
    gone = place + 1 == len(PRIORITIES)
    if not gone:
        levels[place + 1] = _with(pool[place + 1], entry)
    return entry, tuple(levels), gone


def holds(pool: Levels, id: int) -> bool:
    return any(entry.id == id for level in pool for entry in level)


def without(pool: Levels, id: int) -> Levels:
    """The pool without the entry of this id."""
    return tuple(tuple(entry for entry in level if entry.id != id) for level in pool)


def _with(level: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    at = bisect_left(level, entry)
    return (*level[:at], entry, *level[at:])


def _without(pool: Levels, place: int, index: int) -> Levels:
    level = pool[place]
    return (*pool[:place], level[:index] + level[index + 1 :], *pool[place + 1 :])
