"""Corridors, and the following distance in them."""

import pytest
from msgspec.structs import replace

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.compiler.samples import FL_STD, Sketch, straight_lane
from pendula.fleet.map.corridors import corridors_of
from pendula.fleet.model import MoveStyle
from tests.fleet.sites import aisle, random_site, sketched


@pytest.mark.req("FLT-EVO-3")
def test_an_aisle_of_five_edges_is_one_corridor() -> None:
    site = aisle()
    corridor = site.corridors[site.corridor_of_group[site.network.group_of[site.edge_number["N2->N3"]]]]

    assert [site.network.nodes[node].id for node in corridor.nodes] == [f"N{i}" for i in range(6)]
    assert corridor.id.startswith("C:N0->N5:")
    assert corridor.offsets == (0, 10_000_000, 20_000_000, 30_000_000, 40_000_000)
    assert corridor.along == (True,) * 5


@pytest.mark.req("FLT-EVO-3")
@pytest.mark.parametrize("seed", range(6))
def test_every_group_is_in_exactly_one_corridor_and_inner_nodes_do_not_branch(seed: int) -> None:
    network = random_site(seed).network

    corridors = corridors_of(network)

    assert sorted(group for corridor in corridors for group in corridor.groups) == list(range(len(network.groups)))
    assert len({corridor.id for corridor in corridors}) == len(corridors)
    for corridor in corridors:
        assert all(network.degree(node) == 2 for node in corridor.nodes[1:-1])
        assert corridor.nodes[0] <= corridor.nodes[-1]
        if corridor.nodes[0] != corridor.nodes[-1]:
            assert all(network.degree(node) != 2 for node in corridor.ends)


@pytest.mark.req("FLT-EVO-3")
def test_a_closed_ring_is_cut_at_its_smallest_node() -> None:
    sketch = Sketch("ring")
    for name, x, y in (("C", 0, 0), ("A", 20, 0), ("B", 20, 20), ("D", 0, 20)):
        sketch.node(name, x, y)
    sketch.chain("C", "A", "B", "D", "C")
    site = compile_map(sketch.done(), [FL_STD])

    (corridor,) = site.corridors

    assert [site.network.nodes[node].id for node in corridor.nodes] == ["A", "B", "D", "C", "A"]


@pytest.mark.req("FLT-EVO-3")
def test_two_lanes_between_two_nodes_are_two_corridors() -> None:
    sketch = Sketch("lanes")
    for name, x, y in (("A", 0, 0), ("B", 20, 0), ("C", -10, 0), ("D", 30, 0)):
        sketch.node(name, x, y)
    sketch.lane("C", "A")
    sketch.lane("B", "D")
    sketch.bezier("A", "B", (5, 5), (15, 5))
    sketch.bezier("A", "B", (5, -5), (15, -5))
    site = compile_map(sketch.done(), [FL_STD])

    assert len({corridor.id for corridor in site.corridors}) == 4


def closest_follower_um(site: CompiledMap, leader: int, held: set[int]) -> int:
    """How far behind a leader at the start of its cell a follower on A->B may come, when the leader holds `held`."""
    taken = {other for resource in held for other in site.conflicts.members(resource)}
    taken |= {other for resource in held if resource < len(site.cells) for other in site.following.members(resource)}
    own = site.cells.of_edge(site.edge_number["A->B"])
    free = [cell for cell in own if cell < leader and cell not in taken]
    return int(site.cells.s0[leader]) - int(site.cells.s1[free[-1]])


@pytest.mark.req("FLT-EVO-5", "FLT-GEO-14")
def test_a_platoon_through_a_tangent_node_needs_no_disc() -> None:
    """Compared with the distance that the turning disc of the node requires: 4.57 m before it and 4.77 m behind it."""
    sketch = Sketch("platoon")
    for name, x in (("A", 0), ("B", 30), ("C", 60)):
        sketch.node(name, x, 0)
    sketch.chain("A", "B", "C", back=False)
    site = compile_map(sketch.done(), [FL_STD])
    (move,) = site.transitions.of(site.edge_number["A->B"])
    last = site.cells.of_edge(site.edge_number["A->B"])[-1]
    node = site.node_number["B"]
    window = {site.network.edges[window.edge].key: window for window in site.zones.by_node[node]}

    close = closest_follower_um(site, last, {last})

    assert bool(site.transitions.tangent[move])
    assert 4_900_000 <= close <= 4_900_000 + 2 * site.params.cell_len_um
    # With the disc the leader has it until its tail is out, and the follower stays before it.
    behind, before = window["B->C"].s1, 30_000_000 - window["A->B"].s0
    assert (behind + before) / 1e6 == pytest.approx(9.34, abs=0.001)
    assert closest_follower_um(site, last, {last, site.zone(node)}) > before - site.params.cell_len_um


@pytest.mark.req("FLT-RES-15")
def test_either_of_two_edges_of_a_lane_follows_the_other() -> None:
    sketch = sketched(("A", 0, 0), ("B", 30, 0))
    sketch.lane("A", "B", back=False)
    sketch.lane("A", "B", back=False, style=MoveStyle.BACKWARD)
    site = compile_map(sketch.done(), [replace(FL_STD, min_following_gap_um=3_000_000)])
    a, b = site.edge_number["A->B"], site.edge_number["A->B#2"]
    for follower in (a, b):
        for leader in (a, b):
            assert site.following.holds(site.cells.at(follower, 10_100_000), site.cells.at(leader, 16_100_000))


def test_a_ring_keeps_the_following_gap_at_every_node_also_where_it_is_cut() -> None:
    """A square of equal lanes, driven one way: the surroundings of all four nodes are the same."""
    sketch = sketched(("A", 0, 0), ("B", 30, 0), ("C", 30, 30), ("D", 0, 30))
    sketch.chain("A", "B", "C", "D", "A", back=False)
    site = compile_map(sketch.done(), [FL_STD])
    order = [site.edge_number[key] for key in ("A->B", "B->C", "C->D", "D->A")]

    close = []
    for before, after in zip(order, [*order[1:], order[0]], strict=True):
        pairs = [(a, b) for a in site.cells.of_edge(before) for b in site.cells.of_edge(after)]
        close.append(sum(bool(site.following.holds(a, b)) for a, b in pairs))

    assert close[0] > 0
    assert len(set(close)) == 1


def cell(site: CompiledMap, key: str, s_m: float) -> int:
    return site.cells.at(site.edge_number[key], round(s_m * 1e6))


@pytest.mark.req("FLT-RES-15", "FLT-EVO-3")
def test_the_following_gap_reaches_over_the_inner_nodes_of_a_corridor() -> None:
    sketch = Sketch("aisle")
    for i in range(6):
        sketch.node(f"N{i}", i * 10, 0)
    sketch.chain(*(f"N{i}" for i in range(6)))
    site = compile_map(sketch.done(), [replace(FL_STD, min_following_gap_um=6_000_000)])

    follower, leader = cell(site, "N1->N2", 5.2), cell(site, "N2->N3", 5.7)

    assert not site.conflicts.holds(follower, leader)
    assert site.following.holds(follower, leader)
    assert not site.following.holds(follower, cell(site, "N2->N3", 6.2))


@pytest.mark.req("FLT-GEO-9", "FLT-RES-15")
def test_backward_edges_keep_the_spacing_of_their_style() -> None:
    source = straight_lane(40.0, back=False)
    backward = replace(source, edges=tuple(replace(edge, style=MoveStyle.BACKWARD.value) for edge in source.edges))
    mixed = compile_map(backward, [replace(FL_STD, tail_um=3_000_000)])
    middle = 40

    # Leader and follower both backward: trail 2.10, lead 3.60, and the gap.
    inside = [c for c in mixed.conflicts.members(middle) if c < len(mixed.cells)]
    assert inside == list(range(middle - 12, middle + 13))
    assert mixed.following.members(middle) == [middle - 13, middle + 13]
