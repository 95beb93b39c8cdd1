"""The search of FLT-LIVE-8: every reachable state of the lock core on a tiny map.

A step is a unit granted, a truck at the end of its grant that has released what it passed, a next way from
rest, or a change of way. A deadlock is a state with a truck on its way, no truck moving and no unit granted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pendula.fleet.traffic.grants import (
    Accepted,
    Blocked,
    Effort,
    Granted,
    RouteRefused,
    accept_route,
    extend,
    release_passed,
)
from pendula.fleet.traffic.lock_state import Demand, LockState
from tests.fleet.traffic.oracle import Judge
from tests.fleet.traffic.tiny_maps import TinyMap, Way


@dataclass
class World:
    """A lock state, and for each truck the number of its way, or one beyond them all."""

    map: TinyMap
    state: LockState
    number: list[int]
    way: list[Way]

    def judge(self) -> Judge:
        return Judge(self.map.pairs, self.map.capacity)

    def key(self) -> tuple[object, ...]:
        trucks = [self.state.truck(i) for i in range(len(self.state))]
        return (
            tuple(self.number),
            tuple(self.way),
            tuple((truck.position, tuple(sorted(truck.held))) for truck in trucks),
            tuple(self.state.witness),
        )

    def copy(self) -> "World":
        return World(self.map, self.state.copy(), list(self.number), list(self.way))

    def positions(self) -> list[int]:
        return [self.state.truck(i).position for i in range(len(self.state))]

    def settled(self, i: int) -> bool:
        truck = self.state.truck(i)
        return truck.held == set(self.way[i].stand[truck.position])


Accept = Callable[[LockState, int, Demand, int], Accepted | RouteRefused]
Extend = Callable[["World", int], Granted | Blocked]


def by_the_rule(world: World, i: int) -> Granted | Blocked:
    return extend(world.state, i)


@dataclass
class Report:
    states: int = 0
    deadlocks: int = 0
    unsafe: int = 0
    broken_witnesses: int = 0
    overlaps: int = 0
    # States in which the first move of the witness is free, and not granted without a search.
    withheld: int = 0
    # Units that were refused although brute force finds a schedule, and all units that were safe.
    over_strict: int = 0
    safe_units: int = 0
    # Whether the search visited all states.
    complete: bool = True


@dataclass
class Explorer:
    map: TinyMap
    accept: Accept = accept_route
    extend: Extend = by_the_rule
    witnessed: bool = True
    limit: int = 4000
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        self.judge = Judge(self.map.pairs, self.map.capacity)
        self.demands: dict[Way, Demand] = {}
        self.judged: dict[tuple[tuple[Way, ...], tuple[int, ...]], bool] = {}

    def demand(self, way: Way) -> Demand:
        return self.demands.setdefault(way, way.demand())

    def safe(self, ways: list[Way], positions: list[int]) -> bool:
        """The verdict of the oracle, computed once for each state."""
        key = tuple(ways), tuple(positions)
        if key not in self.judged:
            self.judged[key] = self.judge.can_all_rest(ways, positions)
        return self.judged[key]

    def run(self) -> Report:
        count = len(self.map.ways)
        world = World(
            self.map, LockState(self.map.exclusion(), count), [0] * count, [ways[0] for ways in self.map.ways]
        )
        for i in range(count):
            answer = self.accept(world.state, i, self.demand(world.way[i]), 0)
            assert answer == Accepted(), "a truck at rest is always taken in"
        seen = {world.key()}
        todo = [world]
        while todo and len(seen) < self.limit:
            here = todo.pop()
            self.judge_state(here)
            for onward in self.steps(here):
                key = onward.key()
                if key not in seen:
                    seen.add(key)
                    todo.append(onward)
        self.report.states += len(seen)
        self.report.complete = not todo
        return self.report

    def steps(self, world: World) -> Iterator[World]:
        moved = False
        for i in range(len(world.state)):
            for onward in (self.granted(world, i), self.arrived(world, i)):
                if onward is not None:
                    moved = True
                    yield onward
            yield from self.rerouted(world, i)
        if not moved and any(at < len(way.need) - 1 for at, way in zip(world.positions(), world.way, strict=True)):
            self.report.deadlocks += 1

    def granted(self, world: World, i: int) -> World | None:
        onward = world.copy()
        granted = isinstance(self.extend(onward, i), Granted)
        self.compare(world, i, granted)
        return onward if granted else None

    def compare(self, world: World, i: int, granted: bool) -> None:
        at = world.positions()
        if at[i] == len(world.way[i].need) - 1:
            return
        others = [sorted(world.state.truck(j).held) for j in range(len(at)) if j != i]
        if not self.judge.free(world.way[i].need[at[i] + 1], others):
            return
        if self.safe(world.way, [*at[:i], at[i] + 1, *at[i + 1 :]]):
            self.report.safe_units += 1
            self.report.over_strict += not granted

    def arrived(self, world: World, i: int) -> World | None:
        if world.settled(i):
            return None
        onward = world.copy()
        release_passed(onward.state, i, onward.state.truck(i).position)
        return onward

    def rerouted(self, world: World, i: int) -> Iterator[World]:
        truck, number = world.state.truck(i), world.number[i]
        if truck.position == len(world.way[i].need) - 1 and number + 1 < len(self.map.ways[i]):
            yield from self.accepted(world, i, self.map.ways[i][number + 1], 0, number + 1)
        change = self.map.changes.get((i, number))
        if change is not None and world.way[i] != change[0] and truck.position <= change[1]:
            yield from self.accepted(world, i, change[0], truck.position, number)

    def accepted(self, world: World, i: int, way: Way, position: int, number: int) -> Iterator[World]:
        onward = world.copy()
        if self.accept(onward.state, i, self.demand(way), position) == Accepted():
            onward.way[i], onward.number[i] = way, number
            yield onward

    def judge_state(self, world: World) -> None:
        positions = world.positions()
        held = [sorted(world.state.truck(i).held) for i in range(len(positions))]
        self.report.overlaps += not self.judge.disjoint(held)
        self.report.unsafe += not self.safe(world.way, positions)
        if self.witnessed:
            self.report.broken_witnesses += not self.judge.replays(world.way, positions, world.state.witness)
            self.report.withheld += self.withholds_the_first_move(world, positions, held)

    def withholds_the_first_move(self, world: World, positions: list[int], held: list[list[int]]) -> bool:
        i = next((i for i, to in world.state.witness if to > positions[i]), None)
        if i is None or not self.judge.free(world.way[i].need[positions[i] + 1], held[:i] + held[i + 1 :]):
            return False
        return not isinstance(extend(world.copy().state, i, effort=Effort(left=0)), Granted)
