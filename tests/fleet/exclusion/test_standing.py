"""Many edges in one node: the work grows with what meets, and the answers are those of a plain search."""

from collections import Counter
from math import cos, pi, sin

import pytest

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.exclusion.turning_discs import Bools, Zones
from pendula.fleet.model import Code, SourceMap, Stand
from pendula.fleet.samples.scenes import FL_STD, Sketch
from tests.fleet.sites import SCENES, random_site, scene


def star(arms: int) -> SourceMap:
    sketch = Sketch(f"star-{arms}")
    sketch.node("C", 0, 0)
    for arm in range(arms):
        name = f"N{arm:03}"
        sketch.node(name, 20 * cos(2 * pi * arm / arms), 20 * sin(2 * pi * arm / arms))
        sketch.lane("C", name)
    return sketch.done()


def test_the_windows_of_a_node_are_looked_up_once_however_many_groups_meet_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: Counter[int] = Counter()
    answer = Zones.inside

    def counted(zones: Zones, node: int, count: int) -> Bools:
        asked[node] += 1
        return answer(zones, node, count)

    monkeypatch.setattr(Zones, "inside", counted)

    site = compile_map(star(24), [FL_STD])

    assert asked == {site.node_number["C"]: 1}
    assert len(site.named) > 24


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
        # Something branches, so that the two edges are no corridor.
        sketch.node(f"{name}3", -20, 4 * way)
        sketch.lane(f"{name}1", f"{name}3")
    return compile_map(sketch.done(), [FL_STD])


@pytest.mark.req("FLT-EVO-4", "FLT-MAP-15")
@pytest.mark.parametrize(("before", "room"), [(20.0, True), (1.0, False)])
def test_a_truck_may_wait_on_the_edge_before_the_last_one(before: float, room: bool) -> None:
    site = short_last_edges(before)
    mouth = next(one for one in site.standing.mouths if one.node == site.node_number["A"] and "B" in _far(site, one))

    waits = {site.network.edges[int(site.cells.edge[cell])].key for cell in mouth.waiting}
    warned = [
        one
        for one in site.findings
        if one.code is Code.NO_SAFE_WAIT_POSITION
        and one.details == {"nodeId": "A", "corridorId": site.corridors[mouth.corridor].id}
    ]

    assert {"N3->N1", "S3->S1"} <= waits
    assert ({"N2->N1", "S2->S1"} <= waits) is room
    assert not warned


def _far(site: CompiledMap, mouth: object) -> set[str]:
    ends = site.corridors[mouth.corridor].ends  # type: ignore[attr-defined]
    return {site.network.nodes[node].id for node in ends}
