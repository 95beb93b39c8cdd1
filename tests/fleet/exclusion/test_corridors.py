"""Corridors, critical sections, transitions, standing marks and mouths."""

import pytest
from msgspec.structs import replace

from pendula.fleet import CompiledMap, compile_map, examine
from pendula.fleet.exclusion.corridors import corridors_of
from pendula.fleet.model import Code, MoveStyle, Origin, SourceMember, SourceSection, Stand
from pendula.fleet.samples.scenes import FL_STD, Sketch, hall_demo, quarter
from tests.fleet.sites import SCENES, random_site, scene


def aisle(edges: int = 5) -> CompiledMap:
    """A chain of edges with a fork at both ends."""
    sketch = Sketch("aisle")
    for i in range(edges + 1):
        sketch.node(f"N{i}", i * 10, 0)
    sketch.chain(*(f"N{i}" for i in range(edges + 1)))
    last = f"N{edges}"
    for name, end, x, y in (("W1", "N0", -8, 8), ("W2", "N0", -8, -8), ("X1", last, 58, 8), ("X2", last, 58, -8)):
        sketch.node(name, x, y)
        sketch.lane(end, name)
    return compile_map(sketch.done(), [FL_STD])


def stands(site: CompiledMap, key: str) -> str:
    """One letter for every cell of an edge."""
    return "".join(site.stand(cell).value[1] for cell in site.cells.of_edge(site.edge_number[key]))


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

    assert sorted(group for one in corridors for group in one.groups) == list(range(len(network.groups)))
    assert len({one.id for one in corridors}) == len(corridors)
    for one in corridors:
        assert all(network.degree(node) == 2 for node in one.nodes[1:-1])
        assert one.nodes[0] <= one.nodes[-1]
        if one.nodes[0] != one.nodes[-1]:
            assert all(network.degree(node) != 2 for node in one.ends)


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

    assert len({one.id for one in site.corridors}) == 4


@pytest.mark.req("FLT-DCL-19", "FLT-MAP-13")
def test_dead_ends_with_a_purpose_become_sections() -> None:
    site = scene("hall-demo")

    assert {one.id: (one.capacity, one.origin) for one in site.sections} == {
        "SPUR-AP1": (1, Origin.GENERATED),
        "SPUR-PK1": (1, Origin.GENERATED),
        "SPUR-PK2": (1, Origin.GENERATED),
    }
    assert stands(site, "LM2->AP1") == "o" * 12


@pytest.mark.req("FLT-DCL-19")
def test_on_a_line_without_branches_each_end_is_a_section_of_its_own() -> None:
    sketch = Sketch("line")
    for name, x, kind in (("A", 0, "ActionPoint"), ("B", 12, ""), ("C", 24, ""), ("D", 36, "ParkPoint")):
        sketch.node(name, x, 0, kind)
    sketch.chain("A", "B", "C", "D")
    site = compile_map(sketch.done(), [FL_STD])

    members = {one.id: [site.network.groups[part.group].key for part in one.members] for one in site.sections}

    assert members == {"SPUR-A": ["A<->B"], "SPUR-D": ["C<->D"]}


@pytest.mark.req("FLT-DCL-19")
def test_a_spur_reaches_to_where_something_branches() -> None:
    sketch = Sketch("long-spur")
    for name, x, y in (("W", -20, 0), ("M", 0, 0), ("E", 20, 0), ("S1", 0, 10), ("S2", 0, 20)):
        sketch.node(name, x, y)
    sketch.node("P", 0, 30, "ParkPoint")
    sketch.chain("W", "M", "E")
    sketch.chain("M", "S1", "S2", "P")
    site = compile_map(sketch.done(), [FL_STD])

    (section,) = site.sections

    assert [site.network.groups[part.group].key for part in section.members] == ["M<->S1", "P<->S2", "S1<->S2"]


@pytest.mark.req("FLT-MAP-12", "FLT-MAP-13")
def test_an_authored_section_takes_the_place_of_the_generated_one() -> None:
    drawn = SourceSection("SPUR-AP1", 2, (SourceMember("AP1<->LM2"),))
    site = compile_map(replace(hall_demo(), sections=(drawn,)), [FL_STD])

    (section,) = (one for one in site.sections if one.id == "SPUR-AP1")

    assert (section.capacity, section.origin) == (2, Origin.AUTHORED)


@pytest.mark.req("FLT-MAP-13")
def test_an_interval_of_a_section_is_mirrored_on_the_way_back() -> None:
    part = SourceSection("NECK", 1, (SourceMember("LM1<->LM2", 2_000_000, 4_000_000),))
    site = compile_map(replace(hall_demo(), sections=(part,)), [FL_STD])

    inside = {
        site.cell_name(cell)
        for cell in site.sections_of_cell
        if site.sections[site.sections_of_cell[cell][0]].id == "NECK"
    }

    assert inside == {f"LM1->LM2#{i}" for i in range(4, 8)} | {f"LM2->LM1#{i}" for i in range(12, 16)}


@pytest.mark.req("FLT-MAP-12")
@pytest.mark.parametrize(
    "member", [SourceMember("LM2<->LM1"), SourceMember("X<->Y"), SourceMember("LM1<->LM2", 5_000_000, 5_000_000)]
)
def test_a_section_of_what_is_not_there_is_refused(member: SourceMember) -> None:
    report = examine(replace(hall_demo(), sections=(SourceSection("S", 1, (member,)),)), [FL_STD])

    assert report.compiled is None
    assert [one.code for one in report.findings if one.severity.value == "ERROR"] == [Code.MAP_PARSE_ERROR]


@pytest.mark.req("FLT-EVO-5")
def test_a_bend_that_goes_on_in_the_same_direction_is_tangent() -> None:
    site = scene("tail-swing-bend")
    edge = site.edge_number["A->B"]

    (move,) = site.transitions.of(edge)

    assert bool(site.transitions.tangent[move])
    assert abs(int(site.transitions.turn_urad[move])) <= 1


@pytest.mark.req("FLT-EVO-5")
def test_a_change_of_style_is_never_tangent() -> None:
    site = scene("hall-demo")
    into, out = site.edge_number["LM1->LM2"], site.edge_number["LM2->AP1"]

    move = next(k for k in site.transitions.of(into) if int(site.transitions.out[k]) == out)

    assert not bool(site.transitions.tangent[move])
    assert int(site.transitions.turn_urad[move]) == 3_141_593


@pytest.mark.req("FLT-EVO-5")
@pytest.mark.parametrize(("rise", "tangent"), [(0.86, True), (0.90, False)])
def test_tangents_may_differ_by_five_degrees(rise: float, tangent: bool) -> None:
    sketch = Sketch("kink")
    for name, x, y in (("A", 0, 0), ("B", 10, 0), ("C", 20, rise)):
        sketch.node(name, x, y)
    sketch.chain("A", "B", "C", back=False)
    site = compile_map(sketch.done(), [FL_STD])

    (move,) = site.transitions.of(site.edge_number["A->B"])

    assert bool(site.transitions.tangent[move]) is tangent


@pytest.mark.req("FLT-EVO-4")
def test_cells_are_free_between_and_unwanted_in_windows() -> None:
    site = scene("plus-crossing")

    # Away from the crossing's window (4.77 m) and that of the arm's end (from 7.43 m).
    assert stands(site, "X->E") == "n" * 10 + "r" * 4 + "n" * 10


@pytest.mark.req("FLT-EVO-4")
def test_the_reasons_of_a_mark_are_resource_ids() -> None:
    site = scene("hall-demo")
    seventh = int(site.cells.first[site.edge_number["LM1->LM2"]]) + 7
    inside = int(site.cells.first[site.edge_number["LM2->AP1"]])

    assert site.stand(seventh) is Stand.UNWANTED
    assert site.stand_reasons(seventh) == ("CONFLICT:C-8fb4d134b8ed", "NODE:LM1")
    assert "CS:SPUR-AP1" in site.stand_reasons(inside)


@pytest.mark.req("FLT-EVO-4")
def test_the_inner_nodes_of_a_straight_aisle_are_plain_passages() -> None:
    assert "n" not in stands(aisle(), "N2->N3")


@pytest.mark.req("FLT-EVO-4", "FLT-DCL-18")
@pytest.mark.parametrize("name", SCENES)
def test_waiting_cells_touch_neither_the_mouth_nor_the_corridor(name: str) -> None:
    site = scene(name)

    for mouth in site.standing.mouths:
        groups = set(site.corridors[mouth.corridor].groups)
        for cell in mouth.waiting:
            others = site.conflicts.members(cell)
            assert site.zone(mouth.node) not in others
            inside = {site.network.group_of[int(site.cells.edge[c])] for c in others if c < len(site.cells)}
            assert not inside & groups
            assert site.stand(cell) is not Stand.FORBIDDEN


@pytest.mark.req("FLT-EVO-4")
def test_the_mouths_of_a_single_lane_have_waiting_cells_on_every_branch() -> None:
    site = scene("head-on-lane")
    node = site.node_number["B"]
    lane = site.corridor_of_group[site.network.group_of[site.edge_number["A->B"]]]

    (mouth,) = (one for one in site.standing.mouths if one.node == node and one.corridor == lane)

    assert sorted({site.network.edges[int(site.cells.edge[c])].key for c in mouth.waiting}) == ["E1->B", "E2->B"]


def test_a_quarter_bend_joins_two_lanes_tangentially_both_ways() -> None:
    sketch = Sketch("bend")
    for name, x, y in (("A", 0, 0), ("B", 10, 0), ("C", 13, 3), ("D", 13, 13)):
        sketch.node(name, x, y)
    sketch.lane("A", "B")
    quarter(sketch, "B", "C", (13, 0))
    sketch.lane("C", "D")
    site = compile_map(sketch.done(), [FL_STD])

    for into, out in (("A->B", "B->C"), ("B->C", "C->D"), ("D->C", "C->B"), ("C->B", "B->A")):
        edge = site.edge_number[into]
        move = next(k for k in site.transitions.of(edge) if int(site.transitions.out[k]) == site.edge_number[out])
        assert bool(site.transitions.tangent[move]), (into, out)
    assert all(edge.style is MoveStyle.FORWARD for edge in site.network.edges)


def closest_follower_um(site: CompiledMap, leader: int, held: set[int]) -> int:
    """How far behind a leader at the start of its cell a follower on A->B may come, when the leader holds `held`."""
    taken = {other for one in held for other in site.conflicts.members(one)}
    taken |= {other for one in held if one < len(site.cells) for other in site.following.members(one)}
    own = site.cells.of_edge(site.edge_number["A->B"])
    free = [cell for cell in own if cell < leader and cell not in taken]
    return int(site.cells.s0[leader]) - int(site.cells.s1[free[-1]])


@pytest.mark.req("FLT-EVO-5", "FLT-GEO-14")
def test_a_platoon_through_a_tangent_node_needs_no_disc() -> None:
    """Against the distance that the turning disc of the node would demand: 4.57 m before it and 4.77 m behind it."""
    sketch = Sketch("platoon")
    for name, x in (("A", 0), ("B", 30), ("C", 60)):
        sketch.node(name, x, 0)
    sketch.chain("A", "B", "C", back=False)
    site = compile_map(sketch.done(), [FL_STD])
    (move,) = site.transitions.of(site.edge_number["A->B"])
    last = site.cells.of_edge(site.edge_number["A->B"])[-1]
    node = site.node_number["B"]
    window = {site.network.edges[one.edge].key: one for one in site.zones.by_node[node]}

    close = closest_follower_um(site, last, {last})

    assert bool(site.transitions.tangent[move])
    assert 4_900_000 <= close <= 4_900_000 + 2 * site.params.cell_len_um
    # With the disc the leader has it until its tail is out, and the follower stays before it.
    behind, before = window["B->C"].s1, 30_000_000 - window["A->B"].s0
    assert (behind + before) / 1e6 == pytest.approx(9.34, abs=0.001)
    assert closest_follower_um(site, last, {last, site.zone(node)}) > before - site.params.cell_len_um
