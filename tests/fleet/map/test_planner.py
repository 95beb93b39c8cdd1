"""Routes: costs, turns, ties, closed edges, and an independent exhaustive search."""

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from pendula.fleet import AtNode, Closed, CompiledMap, OnEdge, Planner, RobotProfile, certify, compile_map
from pendula.fleet.compiler.generated_maps import live_map, random_map
from pendula.fleet.compiler.samples import FL_STD, Sketch, grid
from pendula.fleet.map.planner import Way
from pendula.fleet.map.site_file import from_bytes, to_bytes
from pendula.fleet.model import MoveStyle
from pendula.kernel.engine import Refusal
from tests.fleet.sites import random_site, scene


def keys(site: CompiledMap, way: Way | Refusal) -> list[str]:
    assert isinstance(way, Way), way
    return [site.network.edges[edge].key for edge in way.edges]


def every_way(planner: Planner, first: int, goal: int, most: int) -> list[tuple[int, int, tuple[str, ...]]]:
    """Cost, length and keys of all ways without a repeated edge that begin with an edge, by plain depth-first search.

    Costs are computed from lengths and headings, in exact decimals.
    """
    site = planner.site
    found: list[tuple[int, int, tuple[str, ...]]] = []

    def time_us(edge: int) -> int:
        entry = site.network.edges[edge]
        factor = Decimal("1.5") if entry.style is MoveStyle.BACKWARD else Decimal(1)
        return int((Decimal(entry.path.length_um) / Decimal("1.2") * factor).quantize(Decimal(1), "ROUND_HALF_UP"))

    def turn_us(a: int, b: int) -> int:
        edge, two = site.network.edges[a], site.network.edges[b]
        bend = (two.path.yaws[0][0] - edge.path.yaws[-1][1]) / 1e6
        bend = abs((bend + np.pi) % (2 * np.pi) - np.pi)
        if edge.style is two.style and bend <= 0.0873 + 1e-9:
            return 0
        if edge.style is not two.style:
            bend = np.pi - bend
        return round(bend / 0.5 * 1e6)

    def search(path: list[int], cost: int) -> None:
        last = path[-1]
        if site.network.edges[last].end == goal:
            length = sum(site.network.edges[edge].path.length_um for edge in path)
            found.append((cost, length, tuple(site.network.edges[edge].key for edge in path)))
            return
        if len(path) < most:
            for after in site.network.outgoing[site.network.edges[last].end]:
                if after not in path:
                    search([*path, after], cost + turn_us(last, after) + time_us(after))

    search([first], time_us(first))
    return sorted(found)


@pytest.mark.req("FLT-PLAN-7")
def test_the_cost_of_the_contract_example() -> None:
    site = scene("hall-demo")
    planner = Planner(site, FL_STD)

    way = planner.way(OnEdge(site.edge_number["LM1->LM2"], 3_000_000), site.node_number["AP1"])

    assert isinstance(way, Way)
    assert way.cost_us == 5_833_333 + 7_500_000 + 6_283_185
    assert way.turns_urad == (0, 3_141_593)


@pytest.mark.req("FLT-PLAN-1", "FLT-PLAN-7")
@pytest.mark.parametrize("seed", range(12))
def test_the_cheapest_way_is_that_of_an_exhaustive_search(seed: int) -> None:
    source = random_map(seed, 4, 7)
    site = compile_map(source, [FL_STD])
    planner = Planner(site, FL_STD)
    for first in range(0, len(site.network.edges), 3):
        for goal in range(0, len(site.network.nodes), 2):
            ways = every_way(planner, first, goal, 9)
            way = planner.way(OnEdge(first, 0), goal)
            if not ways:
                assert isinstance(way, Refusal)
                continue
            assert isinstance(way, Way)
            # The search computes turns with floats: costs may differ by a microsecond a turn.
            assert abs(way.cost_us - ways[0][0]) <= len(way.edges)
            if len(ways) == 1 or ways[1][0] - ways[0][0] > 20:
                assert tuple(keys(site, way)) == ways[0][2]


@pytest.mark.req("FLT-PLAN-7")
@pytest.mark.parametrize("seed", range(6))
def test_a_cost_query_equals_the_cost_of_the_planned_way(seed: int) -> None:
    sample = live_map(seed)
    site = compile_map(sample.source, [FL_STD])
    certificate, _ = certify(site, sample.fleet, [FL_STD])
    assert certificate is not None
    plain = Planner(site, FL_STD)
    dear = plain.with_extra_costs(dict.fromkeys(range(0, len(site.network.edges), 5), 1_000_000), once=True)
    starts = [OnEdge(edge, at) for edge in range(0, len(site.network.edges), 4) for at in (0, 10**9)]
    closures = [Closed(), *certificate.closed.values()]

    def cost(way: Way | Refusal) -> int | None:
        return way.cost_us if isinstance(way, Way) else None

    compared = 0
    for planner in (plain, dear):
        for closed in closures:
            for goal in range(0, len(site.network.nodes), 2):
                anchors: list[OnEdge | AtNode] = [
                    *starts,
                    *(AtNode(node, yaw) for node in range(0, goal + 1, 3) for yaw in (None, 0)),
                ]
                for start in anchors:
                    assert planner.cost_us(start, goal, closed) == cost(planner.way(start, goal, closed))
                for edge in range(0, len(site.network.edges), 6):
                    assert planner.onward_us(edge, goal, closed) == cost(planner.onward(edge, goal, closed))
                compared += len(anchors)
    assert compared > 1000


@pytest.mark.req("FLT-PLAN-7")
def test_ties_go_to_the_smaller_sequence_of_keys() -> None:
    site = compile_map(grid(4, 4), [FL_STD])
    planner = Planner(site, FL_STD)
    start = AtNode(site.node_number["S000-000"])

    way = planner.way(start, site.node_number["S003-003"])

    # All monotone ways with one turn cost the same; up first has the smaller keys.
    assert keys(site, way) == [
        *(f"S000-00{i}->S000-00{i + 1}" for i in range(3)),
        *(f"S00{i}-003->S00{i + 1}-003" for i in range(3)),
    ]


@pytest.mark.req("FLT-PLAN-7")
def test_of_two_ways_of_equal_time_the_shorter_wins() -> None:
    sketch = Sketch("two-ways")
    sketch.node("A", 0, 0)
    sketch.node("B", 20, 0)
    sketch.node("Z", -20, 0)
    sketch.bezier("A", "B", (8, 6), (12, 6), back=False)
    sketch.lane("A", "B", back=False)
    sketch.lane("Z", "A", back=False)
    site = compile_map(sketch.done(), [FL_STD])
    bowed, direct = site.edge_number["A->B"], site.edge_number["A->B#2"]
    usual = Planner(site, FL_STD)
    more = usual.drive_us(bowed, site.network.edges[bowed].path.length_um) - usual.drive_us(direct, 20_000_000)

    # Coming from Z the truck turns into the bend.
    tilt = usual.turn_us(site.network.edges[bowed].path.yaws[0][0])

    def choice(penalty: int, start: str) -> list[str]:
        planner = Planner(site, FL_STD, penalties_us={direct: penalty})
        return keys(site, planner.way(AtNode(site.node_number[start]), site.node_number["B"]))

    assert choice(more, "A") == ["A->B#2"]
    assert choice(more + 1, "A") == ["A->B"]
    assert choice(more + tilt, "Z") == ["Z->A", "A->B#2"]
    assert choice(more + tilt + 1, "Z") == ["Z->A", "A->B"]


@pytest.mark.req("FLT-PLAN-7")
def test_turning_is_counted_at_nodes() -> None:
    """A longer way without turns beats a shorter one with two."""
    sketch = Sketch("turns")
    for name, x, y in (("A", 0, 0), ("B", 10, 0), ("C", 10, 5), ("D", 20, 5), ("E", 30, 5)):
        sketch.node(name, x, y)
    sketch.chain("A", "B", "C", "D", "E", back=False)
    sketch.bezier("B", "D", (15, 0), (14, 5), back=False)
    site = compile_map(sketch.done(), [FL_STD])

    assert keys(site, Planner(site, FL_STD).way(AtNode(0), site.node_number["E"])) == ["A->B", "B->D", "D->E"]


@pytest.mark.req("FLT-PLAN-7")
def test_driving_backward_costs_more() -> None:
    site = scene("hall-demo")
    planner = Planner(site, FL_STD)

    assert planner.drive_us(site.edge_number["LM2->AP1"], 6_000_000) == 7_500_000
    assert planner.drive_us(site.edge_number["AP1->LM2"], 6_000_000) == 5_000_000
    assert Planner(site, FL_STD, reverse_milli=2000).drive_us(site.edge_number["LM2->AP1"], 6_000_000) == 10_000_000


@pytest.mark.req("FLT-PLAN-4")
def test_from_the_middle_of_an_edge_the_way_continues_to_its_end() -> None:
    site = scene("hall-demo")

    way = Planner(site, FL_STD).way(OnEdge(site.edge_number["LM2->LM1"], 1_000_000), site.node_number["LM2"])

    assert keys(site, way) == ["LM2->LM1", "LM1->LM2"]


@pytest.mark.req("FLT-PLAN-5")
def test_a_route_to_the_node_of_the_truck_is_empty_and_valid() -> None:
    site = scene("hall-demo")

    assert Planner(site, FL_STD).way(AtNode(2), 2) == Way((), 0, ())


@pytest.mark.req("FLT-PLAN-12")
def test_a_missing_route_names_the_goal_and_the_closed_resources() -> None:
    site = scene("hall-demo")
    closed = Closed(frozenset({site.edge_number["LM2->AP1"]}))

    refusal = Planner(site, FL_STD).way(AtNode(site.node_number["LM1"]), site.node_number["AP1"], closed)

    assert isinstance(refusal, Refusal)
    assert refusal.code == "NO_ROUTE"
    assert refusal.facts == {"goal": "AP1", "blocked": ["LM2->AP1"]}


@pytest.mark.req("FLT-PLAN-12")
def test_a_closed_edge_is_gone_around() -> None:
    site = scene("ring-with-bypass")
    planner = Planner(site, FL_STD)
    start, goal = AtNode(site.node_number["M"]), site.node_number["N"]

    assert keys(site, planner.way(start, goal)) == ["M->N"]
    around = planner.way(start, goal, Closed(frozenset({site.edge_number["M->N"]})))
    assert keys(site, around) == ["M->A", "A->B", "B->N"]


@pytest.mark.req("FLT-LIVE-7")
def test_no_turn_is_made_where_turning_is_closed() -> None:
    site = scene("ring-with-bypass")
    planner = Planner(site, FL_STD)
    closed = Closed(frozenset(), frozenset({site.node_number["M"], site.node_number["A"]}))

    way = planner.way(OnEdge(site.edge_number["D->M"], 0), site.node_number["N"], closed)

    assert isinstance(way, Refusal)
    around = planner.way(OnEdge(site.edge_number["C->D"], 0), site.node_number["N"], closed)
    assert keys(site, around) == ["C->D", "D->C", "C->N"]


@pytest.mark.req("FLT-PLAN-13")
def test_the_order_of_queries_changes_no_result() -> None:
    site = random_site(6)
    questions = [(start, goal) for start in range(len(site.network.nodes)) for goal in range(len(site.network.nodes))]
    fresh = {q: Planner(site, FL_STD).way(AtNode(q[0], 0), q[1]) for q in questions[::7]}
    used = Planner(site, FL_STD)
    used.prepare(list(range(len(site.network.nodes))))

    assert {q: used.way(AtNode(q[0], 0), q[1]) for q in reversed(questions[::7])} == fresh


@pytest.mark.req("FLT-PLAN-7")
def test_the_yaw_at_the_start_counts() -> None:
    site = scene("plus-crossing")
    planner = Planner(site, FL_STD)
    x, e = site.node_number["X"], site.node_number["E"]

    ahead, behind = planner.cost_us(AtNode(x, 0), e), planner.cost_us(AtNode(x, 3_141_593), e)

    assert ahead == 10_000_000
    assert behind == 16_283_185


@pytest.mark.parametrize("seed", range(5))
def test_ways_are_connected_and_end_at_the_goal(seed: int) -> None:
    site = random_site(seed)
    planner = Planner(site, FL_STD)
    edges = site.network.edges
    for goal in range(len(site.network.nodes)):
        way = planner.way(AtNode(0, 0), goal)
        if isinstance(way, Way) and way.edges:
            assert edges[way.edges[0]].start == 0
            assert edges[way.edges[-1]].end == goal
            assert all(edges[a].end == edges[b].start for a, b in pairwise(way.edges))
            assert len(way.turns_urad) == len(way.edges)


@pytest.mark.req("FLT-PLAN-12", "FLT-LIVE-7")
def test_no_route_ends_where_a_truck_may_not_stop() -> None:
    site = scene("plus-crossing")
    planner = Planner(site, FL_STD)
    goal, other = site.node_number["X"], site.node_number["N"]
    into = site.edge_number["E->X"]
    closed = Closed(turns=frozenset({goal}))

    for refused in (
        planner.way(AtNode(other), goal, closed),
        planner.way(OnEdge(into, 5_000_000), goal, closed),
        planner.onward(into, goal, closed),
    ):
        assert isinstance(refused, Refusal)
        assert refused.facts == {"goal": "X", "blocked": ["NODE:X"]}
    assert isinstance(planner.way(OnEdge(into, 5_000_000), site.node_number["W"], closed), Way)


def test_a_truck_that_stands_where_it_may_not_stop_has_arrived() -> None:
    site = scene("plus-crossing")
    planner = Planner(site, FL_STD)
    goal, into = site.node_number["X"], site.edge_number["E->X"]
    closed = Closed(turns=frozenset({goal}))

    assert planner.way(AtNode(goal), goal, closed) == Way((), 0, ())
    at_its_end = planner.way(OnEdge(into, site.network.edges[into].path.length_um), goal, closed)
    assert at_its_end == Way((into,), 0, (0,))


@pytest.mark.req("FLT-PLAN-1", "FLT-LIVE-7")
@pytest.mark.parametrize("seed", range(6))
def test_a_truck_with_the_common_trees_finds_the_same_ways_as_with_its_own(seed: int) -> None:
    sample = live_map(seed, 6)
    site = compile_map(sample.source, [FL_STD])
    made, _ = certify(site, sample.fleet, [FL_STD])
    assert made is not None
    planner, alone = Planner(site, FL_STD), Planner(site, FL_STD)
    stations = [number for number, node in enumerate(site.network.nodes) if node.station]

    for truck in sample.fleet.trucks:
        shared = made.closed[truck.robot_id]
        own = Closed(shared.edges, shared.turns)
        rest = site.node_number[truck.park_node_id]
        assert shared.common is not None
        into = site.network.incoming[rest][0]
        for goal in stations:
            assert planner.way(AtNode(rest), goal, shared) == alone.way(AtNode(rest), goal, own)
            assert planner.way(OnEdge(into, 0), goal, shared) == alone.way(OnEdge(into, 0), goal, own)
            assert planner.way(AtNode(goal), rest, shared) == alone.way(AtNode(goal), rest, own)
    # One tree for each station, shared by all trucks, and one for each rest node.
    assert len(planner._detours) == len(stations) + len(sample.fleet.trucks)


def two_ways(**members: object) -> CompiledMap:
    """From A to B over C, 20 m, or over D, 21 m; members of the edge A->C are given."""
    sketch = Sketch("ways")
    for name, x, y in (("A", 0.0, 0.0), ("C", 10.0, 0.0), ("B", 20.0, 0.0), ("D", 10.0, 3.2)):
        sketch.node(name, x, y)
    sketch.chain("A", "C", "B", back=False)
    sketch.chain("A", "D", "B", back=False)
    source = sketch.done()
    edges = (replace(source.edges[0], **members), *source.edges[1:])
    return compile_map(replace(source, edges=edges), [FL_STD])


def driven(site: CompiledMap, profile: RobotProfile = FL_STD) -> list[str]:
    number = site.node_number
    return keys(site, Planner(site, profile).way(AtNode(number["A"]), number["B"]))


@pytest.mark.req("FLT-MAP-3", "FLT-PLAN-7")
@pytest.mark.parametrize("members", [{"max_speed_um_s": 300_000}, {"penalty_ms": 30_000}])
def test_speed_limits_and_penalties_raise_the_cost_of_an_edge(members: dict[str, int]) -> None:
    assert driven(two_ways()) == ["A->C", "C->B"]
    assert driven(two_ways(**members)) == ["A->D", "D->B"]


@pytest.mark.req("FLT-MAP-3", "FLT-PLAN-1")
def test_an_edge_is_driven_by_the_types_of_trucks_it_allows() -> None:
    site = two_ways(allowed_profiles=("BIG",))

    assert driven(site) == ["A->D", "D->B"]
    assert driven(site, replace(FL_STD, profile_id="BIG")) == ["A->C", "C->B"]


@pytest.mark.req("FLT-MAP-2", "FLT-MAP-3")
def test_restrictions_of_edges_are_in_the_file_of_a_map() -> None:
    site = two_ways(max_speed_um_s=300_000, penalty_ms=5, allowed_profiles=("BIG", "FL-STD"))
    again = from_bytes(to_bytes(site))

    edge = again.network.edges[again.edge_number["A->C"]]
    assert (edge.max_speed_um_s, edge.penalty_ms, edge.allowed_profiles) == (300_000, 5, ("BIG", "FL-STD"))
    assert to_bytes(again) == to_bytes(site)
