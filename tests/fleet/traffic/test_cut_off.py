"""Failed trucks: they keep their cells, the others get as far as they can, and get home when the truck rejoins."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from pendula.fleet.traffic.grants import (
    Accepted,
    Blocked,
    Effort,
    Granted,
    Wait,
    accept_route,
    cut_off,
    extend,
    freeze,
    in_the_way,
    release_passed,
    thaw,
)
from pendula.fleet.traffic.lock_state import Demand, Exclusion, Ints, LockState
from tests.fleet.traffic.oracle import Judge
from tests.fleet.traffic.tiny_maps import TinyMap, tiny_map


@dataclass
class Run:
    """A tiny map driven at random, with a truck that fails and rejoins."""

    map: TinyMap
    random: Random
    frozen: int | None = None
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.judge = Judge(self.map.pairs, self.map.capacity)
        self.ways = [ways[0] for ways in self.map.ways]
        self.state = LockState(self.map.exclusion(), len(self.ways))
        for i, way in enumerate(self.ways):
            assert accept_route(self.state, i, way.demand()) == Accepted()

    def positions(self) -> list[int]:
        return [self.state.truck(i).position for i in range(len(self.ways))]

    def drive(self, steps: int) -> None:
        """Random units; afterwards every truck is at the end of its grant."""
        for _ in range(steps):
            granted = [i for i in self.shuffled() if isinstance(extend(self.state, i), Granted)]
            self.check()
            for i in self.shuffled():
                release_passed(self.state, i, self.state.truck(i).position)
            if not granted:
                return

    def shuffled(self) -> list[int]:
        return self.random.sample(range(len(self.ways)), self.random.randint(1, len(self.ways)))

    def check(self) -> None:
        """The witness brings every truck that has not failed to its goal, each move without conflict."""
        at = self.positions()
        for truck, position in self.state.witness:
            needed = [r for row in self.ways[truck].need[at[truck] + 1 : position + 1] for r in row]
            assert position > at[truck]
            assert truck != self.frozen
            assert self.judge.free(needed, [self.stand(j, at[j]) for j in range(len(at)) if j != truck])
            at[truck] = position
        assert all(at[i] == self.state.truck(i).goal for i in range(len(at)) if i != self.frozen)

    def stand(self, i: int, position: int) -> list[int]:
        return sorted(self.state.truck(i).held) if i == self.frozen else list(self.ways[i].stand[position])


def settle(run: Run) -> None:
    """Extend all trucks until none moves."""
    granted = True
    while granted:
        for i in range(len(run.ways)):
            release_passed(run.state, i, run.state.truck(i).position)
        granted = bool([i for i in range(len(run.ways)) if isinstance(extend(run.state, i), Granted)])
        run.check()


# With these seeds a cut off truck can only wait on the way of the failed truck.
ON_ITS_WAY = (227, 467, 483)


@pytest.mark.req("FLT-LIVE-9", "FLT-FAIL-7")
@pytest.mark.parametrize("seeds", [range(100), range(100, 200), ON_ITS_WAY])
def test_others_reach_their_goals_around_a_failed_truck_and_get_home_after_it_rejoins(seeds: Sequence[int]) -> None:
    for seed in seeds:
        run = Run(tiny_map(seed), Random(seed))
        run.drive(run.random.randint(0, 6))
        failed = run.random.randrange(len(run.ways))
        freeze(run.state, failed, [])
        run.frozen = failed
        run.check()
        settle(run)
        assert all(run.state.truck(i).position == run.state.truck(i).goal for i in range(len(run.ways)) if i != failed)
        run.frozen = None
        back = thaw(run.state, failed, run.ways[failed].demand(), run.positions()[failed])
        assert back == Accepted(), f"tiny map {seed}"
        settle(run)
        assert run.positions() == [len(way.need) - 1 for way in run.ways], f"tiny map {seed}"


# With this seed only the order of the witness is found without a search.
IN_ITS_ORDER = 605


@pytest.mark.req("FLT-LIVE-9", "FLT-FAIL-7")
def test_a_truck_that_cuts_off_no_other_rejoins_at_once() -> None:
    checked = 0
    for seed in (*range(100), IN_ITS_ORDER):
        run = Run(tiny_map(seed), Random(seed))
        run.drive(run.random.randint(1, 6))
        back = run.random.randrange(len(run.ways))
        if freeze(run.state, back, []):
            continue
        checked += 1
        # All others have got new ways meanwhile, and the search budget is used up.
        run.state.home = []
        effort = Effort(left=0)
        answer = thaw(run.state, back, run.state.truck(back).demand, run.positions()[back], effort=effort)
        assert answer == Accepted(), f"tiny map {seed}"
        run.check()
    assert checked > 40


def line_of_four() -> LockState:
    """Cells 0 to 3 in a row; truck 0 rests on 4 and drives all of them, truck 1 rests on 5 and crosses cell 2."""
    state = LockState(Exclusion.of_pairs(6, []), 2)
    along = [[4], [0], [1], [2], [3], [4]]
    across = [[5], [2], [5]]
    accept_route(state, 0, Demand.of_rows(along, along))
    accept_route(state, 1, Demand.of_rows(across, across))
    return state


@pytest.mark.req("FLT-LIVE-9")
def test_a_cut_off_truck_waits_where_it_blocks_no_other() -> None:
    state = line_of_four()
    extend(state, 1)

    assert freeze(state, 1, []) == [0]
    assert [extend(state, 0) for _ in range(3)] == [Granted(1), Granted(2), Blocked(Wait.CUT_OFF)]


@pytest.mark.req("FLT-LIVE-9")
def test_a_failed_truck_holds_all_it_may_cover_even_where_another_holds_a_grant() -> None:
    state = line_of_four()
    extend(state, 0)

    assert freeze(state, 1, [0, 1]) == [0]
    assert extend(state, 0) == Blocked(Wait.CUT_OFF)
    assert state.in_the_way(1, state.truck(0).demand.stands(1)) == [(0, 0)]


@pytest.mark.req("FLT-LIVE-9", "FLT-OBS-7")
def test_a_truck_is_cut_off_by_the_first_failed_truck_on_its_way() -> None:
    state = LockState(Exclusion.of_pairs(7, []), 3)
    along, across, behind = [[4], [0], [1], [2], [3], [4]], [[5], [2], [5]], [[6], [1], [6]]
    for i, way in enumerate((along, across, behind)):
        accept_route(state, i, Demand.of_rows(way, way))
    extend(state, 1)
    extend(state, 2)
    nobody_failed = in_the_way(state, 0)
    freeze(state, 1, [])

    assert nobody_failed == (1, 2)
    assert in_the_way(state, 0) == (2, 1)


@pytest.mark.req("FLT-LIVE-9")
def test_no_truck_is_cut_off_after_a_failed_truck_rejoins() -> None:
    state = line_of_four()
    extend(state, 1)
    freeze(state, 1, [])

    assert thaw(state, 1, state.truck(1).demand, 1) == Accepted()
    assert cut_off(state) == []


@pytest.mark.req("FLT-LIVE-9")
@pytest.mark.parametrize(("rows", "left"), [([[3], [4], [5]], [(1, 2)]), ([[3], [4], [6]], [])])
def test_a_truck_that_rejoins_farther_along_keeps_its_moves_in_the_witness(
    rows: list[list[int]], left: list[tuple[int, int]]
) -> None:
    state = LockState(Exclusion.of_pairs(7, []), 2)
    for i, way in enumerate(([[0], [1]], [[2], [3], [4], [5]])):
        accept_route(state, i, Demand.of_rows(way, way))
    freeze(state, 0, [])
    freeze(state, 1, [])
    state.hold(1, [3])
    answer = thaw(state, 1, Demand.of_rows(rows, rows), 0)

    assert answer == Accepted()
    assert [move for move in state.home if move[0] == 1] == left


@pytest.mark.req("FLT-LIVE-9", "FLT-PERF-1")
def test_the_cost_of_a_failure_grows_less_than_the_square_of_the_trucks(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    around = Exclusion.around

    def counted(self: Exclusion, resources: Ints) -> Ints:
        looked.append(len(resources))
        return around(self, resources)

    monkeypatch.setattr(Exclusion, "around", counted)
    costs = []
    for trucks in (8, 16):
        # Each truck waits on its own siding before a lane in which the first one has failed.
        state = LockState(Exclusion.of_pairs(1 + 3 * trucks, []), trucks)
        for i in range(trucks):
            own, siding, rest = 1 + 3 * i, 2 + 3 * i, 3 + 3 * i
            way = [[own], [siding], [0], [rest]]
            accept_route(state, i, Demand.of_rows(way, way))
        extend(state, 0)
        extend(state, 0)
        looked.clear()
        assert freeze(state, 0, []) == list(range(1, trucks))
        costs.append(sum(looked))

    assert costs[1] < 3 * costs[0]
