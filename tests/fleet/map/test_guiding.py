"""A search guided by lower bounds finds the ways of a whole tree, to the last tie."""

import numpy as np
import pytest

from pendula.fleet import AtNode, Closed, CompiledMap, OnEdge, Planner, compile_map
from pendula.fleet.compiler.samples import FL_STD, grid
from pendula.fleet.map.planner import Anchor, guided_costs
from tests.fleet.sites import random_site


def anchors(site: CompiledMap, chance: np.random.Generator) -> list[Anchor]:
    edge = int(chance.integers(len(site.network.edges)))
    length = site.network.edges[edge].path.length_um
    return [AtNode(int(chance.integers(len(site.network.nodes)))), OnEdge(edge, length // 2), OnEdge(edge, length)]


def closures(site: CompiledMap, chance: np.random.Generator) -> Closed:
    edges = chance.choice(len(site.network.edges), size=2).tolist()
    return Closed(frozenset(edges), frozenset(chance.choice(len(site.network.nodes), size=1).tolist()))


def assert_same_ways(site: CompiledMap, seed: int) -> None:
    chance = np.random.default_rng(seed)
    planner = Planner(site, FL_STD)
    for _ in range(6):
        # Whole seconds: some ways keep equal costs.
        some = chance.choice(len(site.network.edges), size=max(1, len(site.network.edges) // 4)).tolist()
        more = {int(edge): int(chance.integers(1, 4)) * 1_000_000 for edge in some}
        whole, led = Planner(site, FL_STD, penalties_us=more), planner.with_extra_costs(more, once=True)
        usual = closures(site, chance)
        further = Closed(usual.edges | closures(site, chance).edges, usual.turns, usual=usual)
        for closed in (Closed(), usual, further):
            for goal in range(0, len(site.network.nodes), 3):
                for start in anchors(site, chance):
                    assert led.way(start, goal, closed) == whole.way(start, goal, closed)


@pytest.mark.req("FLT-PLAN-2", "FLT-PERF-2")
@pytest.mark.parametrize("seed", range(4))
def test_on_random_maps_the_ways_are_those_of_a_planner_that_knows_the_costs_from_the_start(seed: int) -> None:
    assert_same_ways(random_site(seed), seed)


@pytest.mark.req("FLT-PLAN-2")
def test_among_many_ways_of_equal_cost_the_same_one_is_chosen() -> None:
    site = compile_map(grid(4, 4), [FL_STD])
    planner, nodes = Planner(site, FL_STD), range(len(site.network.nodes))
    for edge in range(0, len(site.network.edges), 5):
        whole, led = Planner(site, FL_STD, penalties_us={edge: 1}), planner.with_extra_costs({edge: 1}, once=True)
        for start in nodes:
            for goal in nodes:
                assert led.way(AtNode(start), goal) == whole.way(AtNode(start), goal)


@pytest.mark.req("FLT-PERF-2")
def test_a_way_is_found_without_searching_the_rest_of_the_map() -> None:
    """A long line with a branch at every place: only the line is searched."""
    line, seen = 100, []

    def onward(edge: int) -> list[tuple[int, int]]:
        seen.append(edge)
        return [] if edge >= line else [(edge + 1, 10), (edge + line + 1, 10)]

    least = [*(10 * (line - at) for at in range(line + 1)), *([5_000] * line)]
    found = guided_costs([(0, 0)], {line}, least, onward)

    assert (found[0], len(found), len(seen)) == (1_000, line + 1, line)


def test_every_way_of_equal_cost_is_found_also_one_that_comes_late() -> None:
    ways = {0: [(1, 10), (2, 20)], 1: [(9, 10)], 9: [(4, 10)], 2: [(3, 10)]}
    least = {0: 30, 1: 20, 2: 10, 9: 10, 3: 0, 4: 0}
    found = guided_costs([(0, 0)], {3, 4}, [least.get(edge) for edge in range(10)], lambda edge: ways[edge])

    assert found == least
