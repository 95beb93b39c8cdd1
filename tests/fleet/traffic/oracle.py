"""The oracle of the lock core: plain sets and brute force, without the code under test."""

from collections.abc import Sequence

from tests.fleet.traffic.tiny_maps import Way

Pairs = frozenset[tuple[int, int]]


class Judge:
    """Conflicts and schedules on a tiny map."""

    def __init__(self, pairs: Sequence[tuple[int, int]], capacity: dict[int, int]) -> None:
        self.pairs = {frozenset(pair) for pair in pairs}
        self.capacity = capacity

    def excludes(self, a: int, b: int) -> bool:
        return a == b or frozenset((a, b)) in self.pairs

    def free(self, needed: Sequence[int], stands: Sequence[Sequence[int]]) -> bool:
        """Whether resources may be taken while the others stand at their positions."""
        for resource in needed:
            room = self.capacity.get(resource, 1)
            if sum(any(self.excludes(resource, other) for other in stand) for stand in stands) >= room:
                return False
        return True

    def replays(self, ways: Sequence[Way], positions: Sequence[int], moves: Sequence[tuple[int, int]]) -> bool:
        """Whether the moves, in order, bring all trucks to rest, each without conflict with the standing trucks."""
        at = list(positions)
        for truck, position in moves:
            needed = [r for row in ways[truck].need[at[truck] + 1 : position + 1] for r in row]
            others = [ways[j].stand[at[j]] for j in range(len(ways)) if j != truck]
            if position <= at[truck] or not self.free(needed, others):
                return False
            at[truck] = position
        return all(at[i] == len(way.need) - 1 for i, way in enumerate(ways))

    def can_all_rest(self, ways: Sequence[Way], positions: Sequence[int]) -> bool:
        """Try every order of single steps."""
        seen = {tuple(positions)}
        todo = [tuple(positions)]
        ends = tuple(len(way.need) - 1 for way in ways)
        while todo:
            at = todo.pop()
            if at == ends:
                return True
            for i, way in enumerate(ways):
                others = [ways[j].stand[at[j]] for j in range(len(ways)) if j != i]
                if at[i] < ends[i] and self.free(way.need[at[i] + 1], others):
                    onward = (*at[:i], at[i] + 1, *at[i + 1 :])
                    if onward not in seen:
                        seen.add(onward)
                        todo.append(onward)
        return False

    def disjoint(self, held: Sequence[Sequence[int]]) -> bool:
        """Whether the resources of different trucks do not conflict."""
        return all(self.free(own, [*held[:i], *held[i + 1 :]]) for i, own in enumerate(held))
