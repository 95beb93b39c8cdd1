"""Tiny maps and ways on them, drawn from a seed: eight cells and three trucks at most, every rest node off the ways.

Trucks are one or two cells long, ways go forth and back along cells that all directions share, in some cells no
truck may stand, and a section with room for one or two may lie across.
"""

from dataclasses import dataclass
from random import Random

from pendula.fleet.traffic.lock_state import Demand, Exclusion

SHARED_MAX = 5


@dataclass(frozen=True, eq=False)
class Way:
    """A way in plain lists, independent of `Demand`."""

    need: tuple[tuple[int, ...], ...]
    stand: tuple[tuple[int, ...], ...]

    def demand(self) -> Demand:
        return Demand.of_rows(self.need, self.stand)


@dataclass(frozen=True)
class TinyMap:
    count: int
    pairs: tuple[tuple[int, int], ...]
    capacity: dict[int, int]
    # For each truck the ways it takes one after the other, each from its rest node back to it.
    ways: tuple[tuple[Way, ...], ...]
    # For (truck, way) another way that branches off at a position, and that position.
    changes: dict[tuple[int, int], tuple[Way, int]]

    def exclusion(self) -> Exclusion:
        return Exclusion.of_pairs(self.count, self.pairs, self.capacity)


def tiny_map(seed: int) -> TinyMap:
    random = Random(seed)
    trucks = random.choice((2, 3, 3, 3))
    shared = random.randint(2, SHARED_MAX)
    rests = [shared + i for i in range(trucks)]
    token = shared + trucks
    links = _links(random, shared)
    pairs = tuple((a, b) for a in range(shared) for b in range(a) if random.random() < 0.12)
    section = frozenset(random.sample(range(shared), random.randint(1, 2))) if random.random() < 0.3 else frozenset()
    capacity = {token: random.choice((1, 2))} if section else {}
    layout = _Layout(links, section, token)
    ways, changes = [], {}
    for i in range(trucks):
        own = [_way(random, layout, rests[i]) for _ in range(random.choice((1, 1, 1, 2)) if trucks == 3 else 2)]
        ways.append(tuple(way for way, _ in own))
        for number, (way, cells) in enumerate(own):
            if random.random() < 0.3 and len(way.need) > 2:
                changes[i, number] = _change(random, layout, rests[i], way, cells)
    return TinyMap(token + 1, pairs, capacity, tuple(ways), changes)


@dataclass(frozen=True)
class _Layout:
    links: dict[int, list[int]]
    section: frozenset[int]
    token: int


def _links(random: Random, shared: int) -> dict[int, list[int]]:
    """A line, and sometimes a ring or a short cut."""
    pairs = {(a, a + 1) for a in range(shared - 1)}
    if shared > 2 and random.random() < 0.5:
        pairs.add((0, shared - 1))
    for _ in range(random.randint(0, 2)):
        a, b = random.randrange(shared), random.randrange(shared)
        if a != b:
            pairs.add((min(a, b), max(a, b)))
    links: dict[int, list[int]] = {cell: [] for cell in range(shared)}
    for a, b in sorted(pairs):
        links[a].append(b)
        links[b].append(a)
    return links


def _walk(random: Random, layout: _Layout, start: int, length: int) -> list[int]:
    cells = [start]
    for _ in range(length - 1):
        # Seldom straight back: a walk that only swings between two cells tests little.
        back = random.random() < 0.2
        onward = [cell for cell in layout.links[cells[-1]] if back or len(cells) < 2 or cell != cells[-2]]
        cells.append(random.choice(onward or layout.links[cells[-1]]))
    return cells


def _way(random: Random, layout: _Layout, rest: int) -> tuple[Way, list[int]]:
    cells = [rest, *_walk(random, layout, random.randrange(len(layout.links)), random.randint(2, 5)), rest]
    long = random.random() < 0.3
    forbidden = [0 < k < len(cells) - 1 and random.random() < 0.15 for k in range(len(cells))]
    return _rows(layout, cells, long, forbidden)


def _rows(layout: _Layout, cells: list[int], long: bool, forbidden: list[bool]) -> tuple[Way, list[int]]:
    need: list[tuple[int, ...]] = []
    stand: list[tuple[int, ...]] = []
    kept_cells: list[int] = []
    taken: set[int] = set()
    for k, cell in enumerate(cells):
        taken |= {cell} | ({layout.token} if cell in layout.section else set())
        if forbidden[k]:
            continue
        body = {cell, cells[k - 1]} if long and 0 < k < len(cells) - 1 else {cell}
        body |= {layout.token} if body & layout.section else set()
        need.append(tuple(sorted(taken)))
        stand.append(tuple(sorted(body)))
        kept_cells.append(cell)
        taken = set()
    return Way(tuple(need), tuple(stand)), kept_cells


def _change(random: Random, layout: _Layout, rest: int, way: Way, cells: list[int]) -> tuple[Way, int]:
    """Another end of a way, from one of its positions on."""
    at = random.randrange(1, len(way.need) - 1)
    begin = random.choice(layout.links[cells[at]])
    onward = [*_walk(random, layout, begin, random.randint(1, 3)), rest]
    fresh, _ = _rows(layout, onward, False, [False] * len(onward))
    return Way((*way.need[: at + 1], *fresh.need), (*way.stand[: at + 1], *fresh.stand)), at
