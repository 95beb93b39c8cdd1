"""Keys, lanes and groups; valid parts of a source map and findings about the rest."""

import pytest
from msgspec.structs import replace

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.compiler.normal_form import normalised
from pendula.fleet.compiler.samples import FL_STD, Sketch, hall_demo
from pendula.fleet.map.network import Network
from pendula.fleet.model import Code, CompileParams, Direction, Finding, MoveStyle, Point, SourceEdge, SourceMap
from tests.fleet.sites import scene


def keys(site: CompiledMap) -> list[tuple[str, str]]:
    return [(edge.key, edge.group_key) for edge in site.network.edges]


def two_nodes(*edges: SourceEdge) -> SourceMap:
    sketch = Sketch("two")
    sketch.node("A", 0, 0)
    sketch.node("B", 10, 0)
    return replace(sketch.done(), edges=edges)


def found(source: SourceMap) -> tuple[Network, tuple[Finding, ...]]:
    network, _, findings = normalised(source, CompileParams())
    return network, findings


def bow(name: str, start: str, end: str, height: float) -> SourceEdge:
    sketch = Sketch("bow")
    near, far = ((3, height), (7, height)) if start < end else ((7, height), (3, height))
    sketch.bezier(start, end, near, far, back=False)
    return replace(sketch.edges[0], id=name)


@pytest.mark.req("FLT-MAP-6")
def test_both_directions_share_the_group_of_the_smaller_node_first() -> None:
    groups = {edge.key: edge.group_key for edge in scene("hall-demo").network.edges}

    assert groups["LM2->LM1"] == groups["LM1->LM2"] == "LM1<->LM2"


@pytest.mark.req("FLT-MAP-6")
def test_further_lanes_between_two_nodes_get_a_number_by_source_id() -> None:
    site = compile_map(two_nodes(bow("e9", "A", "B", 3), bow("e1", "B", "A", 3), bow("e2", "A", "B", -3)), [FL_STD])

    assert keys(site) == [("A->B", "A<->B#2"), ("A->B#2", "A<->B"), ("B->A", "A<->B")]


@pytest.mark.req("FLT-MAP-6", "FLT-MAP-7")
def test_directions_with_different_curves_are_two_groups_that_conflict_by_shape() -> None:
    site = compile_map(two_nodes(bow("e1", "A", "B", 2), bow("e2", "B", "A", -2)), [FL_STD])

    assert keys(site) == [("A->B", "A<->B"), ("B->A", "A<->B#2")]
    assert len(site.network.groups) == 2


@pytest.mark.req("FLT-MAP-7")
@pytest.mark.parametrize(("height", "groups"), [(0.04, 1), (0.20, 2)])
def test_geometries_within_five_centimetres_are_one_lane(height: float, groups: int) -> None:
    site = compile_map(two_nodes(bow("e1", "A", "B", height), SourceEdge("e2", "B", "A")), [FL_STD])

    assert len(site.network.groups) == groups


@pytest.mark.req("FLT-MAP-3")
def test_two_styles_on_one_lane_are_two_edges_of_one_group() -> None:
    backward = SourceEdge("e2", "A", "B", style=MoveStyle.BACKWARD.value)
    site = compile_map(two_nodes(SourceEdge("e1", "A", "B"), backward, SourceEdge("e3", "B", "A")), [FL_STD])

    assert keys(site) == [("A->B", "A<->B"), ("A->B#2", "A<->B"), ("B->A", "A<->B")]
    assert [edge.style for edge in site.network.edges] == [MoveStyle.FORWARD, MoveStyle.BACKWARD, MoveStyle.FORWARD]


@pytest.mark.req("FLT-MAP-3")
@pytest.mark.parametrize(
    ("direction", "expected"),
    [(Direction.START_TO_END, ["A->B"]), (Direction.END_TO_START, ["B->A"]), (Direction.BOTH, ["A->B", "B->A"])],
)
def test_the_permitted_direction_decides_which_edges_there_are(direction: Direction, expected: list[str]) -> None:
    network, findings = found(two_nodes(SourceEdge("e1", "A", "B", direction=direction.value)))

    assert [edge.key for edge in network.edges] == expected
    assert findings == ()


@pytest.mark.req("FLT-MAP-14")
@pytest.mark.parametrize(
    ("edge", "code"),
    [
        (SourceEdge("e1", "A", "Z"), Code.DANGLING_EDGE),
        (SourceEdge("e1", "A", "A"), Code.MAP_INVALID_GEOMETRY),
        (SourceEdge("e1", "A", "B", style="sideways"), Code.INVALID_DIRECTION),
        (SourceEdge("e1", "A", "B", direction="up"), Code.INVALID_DIRECTION),
        (SourceEdge("e1", "A", "B", end_at=Point(10_000_000, 30_000)), Code.NODE_GEOMETRY_GAP),
        (replace(bow("e1", "A", "B", 2), points=(Point(0, 0), Point(10**12, 0))), Code.MAP_INVALID_GEOMETRY),
    ],
)
def test_an_edge_that_cannot_be_used_is_left_out_and_named(edge: SourceEdge, code: Code) -> None:
    network, findings = found(two_nodes(edge, SourceEdge("e2", "B", "A")))

    assert [finding.code for finding in findings] == [code]
    assert findings[0].details["edge"] == "e1"
    assert findings[0].remedy
    assert [edge.key for edge in network.edges] == ["B->A"]


def test_the_nearest_node_name_is_suggested() -> None:
    sketch = two_nodes(SourceEdge("e1", "A", "DOKC"))
    sketch = replace(sketch, nodes=(*sketch.nodes, replace(sketch.nodes[0], id="DOCK", at=Point(0, 20_000_000))))

    _, findings = found(sketch)

    assert findings[0].message == "edge 'e1' names the node 'DOKC', which does not exist (did you mean DOCK?)"


@pytest.mark.req("FLT-MAP-14")
def test_ends_within_two_centimetres_are_moved_onto_their_nodes() -> None:
    network, findings = found(two_nodes(SourceEdge("e1", "A", "B", end_at=Point(10_000_000, 15_000))))

    assert findings == ()
    assert network.edges[0].path.point(10**9) == (10_000_000, 0)


@pytest.mark.req("FLT-MAP-14")
def test_an_edge_without_length_is_named() -> None:
    sketch = Sketch("twins")
    sketch.node("A", 0, 0)
    sketch.node("B", 0, 0)
    sketch.lane("A", "B", back=False)

    assert [finding.code for finding in found(sketch.done())[1]] == [Code.EDGE_ZERO_LENGTH]


@pytest.mark.req("FLT-MAP-14")
def test_duplicate_ids_are_reported_once() -> None:
    source = hall_demo()
    doubled = replace(source, nodes=(*source.nodes, source.nodes[0]), edges=(*source.edges, source.edges[0]))

    codes = [(finding.code, finding.details["id"]) for finding in found(doubled)[1]]

    assert codes == [(Code.DUPLICATE_ID, "LM1"), (Code.DUPLICATE_ID, "e00001")]


@pytest.mark.req("FLT-MAP-14")
def test_a_node_far_outside_is_named_and_its_edges_are_left_out() -> None:
    sketch = Sketch("far")
    sketch.node("A", 0, 0)
    sketch.node("B", 200_000, 0)
    sketch.lane("A", "B")

    network, findings = found(sketch.done())

    assert [finding.code for finding in findings] == [Code.MAP_INVALID_GEOMETRY]
    assert network.edges == ()


@pytest.mark.req("FLT-MAP-14", "FLT-TASK-3")
def test_stations_and_parking_must_be_nodes() -> None:
    source = replace(hall_demo(), stations=("LM3", "LM99"), parking=("PK77",))

    network, findings = found(source)

    assert [finding.code for finding in findings] == [Code.MISSING_PICK_DROP_NODE, Code.MISSING_PARKING_NODE]
    assert [node.id for node in network.nodes if node.station] == ["AP1", "LM3"]
