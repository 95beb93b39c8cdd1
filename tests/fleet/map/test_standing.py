"""Where a truck may stand, with the reasons, and where it waits at a mouth."""

import pytest

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.model import Code, Stand
from tests.fleet.sites import SCENES, aisle, random_site, scene


def plain_waiting(site: CompiledMap, corridor: int, node: int, edge: int) -> int | None:
    """The last cell of an edge that is in no section and relates neither to the disc nor to a cell of the corridor."""
    groups = site.corridors[corridor].groups
    inner = {c for g in groups for e in site.network.groups[g].edges for c in site.cells.of_edge(e)}
    for cell in reversed(site.cells.of_edge(edge)):
        related = set(site.conflicts.members(cell))
        if site.stand(cell) is not Stand.FORBIDDEN and not related & inner and site.zone(node) not in related:
            return cell
    return None


@pytest.mark.req("FLT-EVO-4")
@pytest.mark.parametrize("site", [*(scene(name) for name in SCENES), *(random_site(seed) for seed in range(6))])
def test_waiting_cells_are_those_of_a_plain_search(site: CompiledMap) -> None:
    for mouth in site.standing.mouths:
        groups = site.corridors[mouth.corridor].groups
        ways_in = [edge for edge in site.network.incoming[mouth.node] if site.network.group_of[edge] not in groups]
        near = [plain_waiting(site, mouth.corridor, mouth.node, edge) for edge in ways_in]

        assert [cell for cell in near if cell is not None] == list(mouth.waiting[: len(near) - near.count(None)])
        for cell in mouth.waiting:
            edge = int(site.cells.edge[cell])
            assert cell == plain_waiting(site, mouth.corridor, mouth.node, edge)


def short_last_edges(before: float) -> CompiledMap:
    """A lane of 30 m from A; every other way into A ends in an edge too short to wait on, with `before` before it."""
    sketch = Sketch("short")
    sketch.node("A", 0, 0)
    sketch.node("B", 30, 0)
    sketch.lane("A", "B")
    for name, way in (("N", 1), ("S", -1)):
        sketch.node(f"{name}1", 0, 4 * way)
        sketch.node(f"{name}2", 0, (4 + before) * way)
        sketch.lane(f"{name}2", f"{name}1")
        sketch.lane(f"{name}1", "A")
        # A branch, so that the two edges are no corridor.
        sketch.node(f"{name}3", -20, 4 * way)
        sketch.lane(f"{name}1", f"{name}3")
    return compile_map(sketch.done(), [FL_STD])


@pytest.mark.req("FLT-EVO-4", "FLT-MAP-15")
@pytest.mark.parametrize(("before", "room"), [(20.0, True), (1.0, False)])
def test_a_truck_may_wait_on_the_edge_before_the_last_one(before: float, room: bool) -> None:
    site = short_last_edges(before)
    mouth = next(
        mouth for mouth in site.standing.mouths if mouth.node == site.node_number["A"] and "B" in _far(site, mouth)
    )

    waits = {site.network.edges[int(site.cells.edge[cell])].key for cell in mouth.waiting}
    warned = [
        finding
        for finding in site.findings
        if finding.code is Code.NO_SAFE_WAIT_POSITION
        and finding.details == {"nodeId": "A", "corridorId": site.corridors[mouth.corridor].id}
    ]

    assert {"N3->N1", "S3->S1"} <= waits
    assert ({"N2->N1", "S2->S1"} <= waits) is room
    assert not warned


def _far(site: CompiledMap, mouth: object) -> set[str]:
    ends = site.corridors[mouth.corridor].ends  # type: ignore[attr-defined]
    return {site.network.nodes[node].id for node in ends}


def stands(site: CompiledMap, key: str) -> str:
    """One letter for every cell of an edge."""
    return "".join(site.stand(cell).value[1] for cell in site.cells.of_edge(site.edge_number[key]))


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

    (mouth,) = (mouth for mouth in site.standing.mouths if mouth.node == node and mouth.corridor == lane)

    assert sorted({site.network.edges[int(site.cells.edge[c])].key for c in mouth.waiting}) == ["E1->B", "E2->B"]
