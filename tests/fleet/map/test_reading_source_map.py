"""Source maps as JSON and YAML: valid ones are read, faults are reported at their places."""

from decimal import Decimal
from typing import Any

import pytest

from pendula.documents import Document, DocumentRefused, Format, from_value, read_bytes
from pendula.fleet import compile_map, read_source_map
from pendula.fleet.compiler.compile import source_form
from pendula.fleet.compiler.generated_maps import random_map
from pendula.fleet.compiler.samples import FL_STD, hall_demo, reference_hall
from pendula.fleet.map.reading import unread_graph
from pendula.fleet.model import Code, CurveKind, Point, Severity, SourceMap
from pendula.kernel.canonical import encode
from tests.fleet.documents import GOLDEN, changed, faults, golden
from tests.fleet.sites import scene


@pytest.mark.req("FLT-MAP-3", "FLT-API-2")
def test_the_map_of_the_contract_is_read() -> None:
    source = read_source_map(read_bytes((GOLDEN / "SourceMap.json").read_bytes()))

    assert (len(source.nodes), len(source.edges), len(source.sections)) == (8, 11, 1)
    assert source.edges[2].kind is CurveKind.BEZIER
    assert source.edges[2].style == "backward"
    assert source.edges[2].points == (Point(12_000_000, 0), Point(14_000_000, 0))
    assert compile_map(source, [FL_STD]).named == scene("hall-demo").named


@pytest.mark.req("FLT-MAP-3")
def test_yaml_and_json_are_the_same_map() -> None:
    text = """
contractVersion: 1.0.0
mapId: m
nodes:
- {id: A, x: 0, y: 0}
- {id: B, x: 10.5, y: 0, kind: ParkPoint}
edges:
- {id: e1, start: A, end: B, className: Polyline, points: [[0, 0], {x: 5, y: 0.1}, [10.5, 0]]}
- {id: e2, start: B, end: A, props: {movestyle: backward, width: 3, direction: both}}
parking: [A]
"""
    yaml = read_source_map(read_bytes(text.encode(), Format.YAML))
    again = read_source_map(read_bytes(encode(source_form(yaml))))

    assert again == yaml
    assert yaml.edges[0].points == (Point(5_000_000, 100_000),)
    assert (yaml.edges[1].width_um, yaml.edges[1].direction) == (3_000_000, "both")


@pytest.mark.parametrize("make", [hall_demo, reference_hall, lambda: random_map(3), lambda: random_map(11)])
def test_a_source_map_survives_its_canonical_form(make: Any) -> None:
    source: SourceMap = make()

    again = read_source_map(read_bytes(encode(source_form(source))))

    assert sorted(again.edges, key=lambda edge: edge.id) == sorted(source.edges, key=lambda edge: edge.id)
    assert source_form(again) == source_form(source)


@pytest.mark.req("FLT-API-1")
@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("contractVersion", "2.0.0", "$.contractVersion"),
        ("contractVersion", "one", "$.contractVersion"),
        ("contractVersion", ..., "$.contractVersion"),
        ("nodes", 5, "$.nodes"),
        ("nodes", [{"id": "A->B", "x": 0, "y": 0}], "$.nodes[0].id"),
        ("nodes", [{"id": "A#2", "x": 0, "y": 0}], "$.nodes[0].id"),
        ("edges", [{"id": "e", "start": "A", "end": "B", "className": "Circle"}], "$.edges[0].className"),
        (
            "edges",
            [{"id": "e", "start": "A", "end": "B", "className": "Polyline", "points": [[0, 0]]}],
            "$.edges[0].points",
        ),
        (
            "criticalSections",
            [{"criticalSectionId": "C", "capacity": 0, "members": [{"edgeGroupKey": "A<->B"}]}],
            "$.criticalSections[0].capacity",
        ),
    ],
)
def test_an_invalid_value_is_rejected_at_its_place(path: str, value: Any, fault: str) -> None:
    assert faults(read_source_map, changed(golden("SourceMap"), path, value)) == [fault]


@pytest.mark.req("FLT-API-1")
def test_unknown_members_are_ignored() -> None:
    form = changed(golden("SourceMap"), "novelty", [1, 2])
    form["nodes"][0]["colour"] = "red"

    assert read_source_map(from_value(form)) == read_source_map(from_value(golden("SourceMap")))


def document(**members: object) -> Document:
    graph: Any = {
        "contractVersion": "1.0.0",
        "mapId": "m",
        "nodes": [{"id": "Dock 1", "x": 0, "y": 0, "turning": False}, {"id": "B", "x": 10, "y": 0}],
        "edges": [{"id": "e", "start": "Dock 1", "end": "B", **members}],
    }
    return from_value(graph)


@pytest.mark.req("FLT-MAP-3")
def test_restrictions_of_an_edge_are_read() -> None:
    props = {"maxSpeedMps": Decimal("0.5"), "allowedProfiles": ["FL-STD", "FL-BIG"], "penaltyMs": 2500}

    (edge,) = read_source_map(document(props=props)).edges

    assert edge.max_speed_um_s == 500_000
    assert edge.allowed_profiles == ("FL-BIG", "FL-STD")
    assert edge.penalty_ms == 2500


@pytest.mark.req("FLT-MAP-3")
def test_a_node_without_turning_and_an_id_with_a_space_are_read() -> None:
    source = read_source_map(document())

    assert [(node.id, node.turning) for node in source.nodes] == [("Dock 1", False), ("B", True)]
    assert [edge.key for edge in compile_map(source, [FL_STD]).network.edges] == ["Dock 1->B"]


@pytest.mark.parametrize("name", [" A", "A ", "A\tB", "A\nB", "A->B", "A#B"])
def test_ids_with_separators_of_keys_are_rejected(name: str) -> None:
    graph: Any = {"contractVersion": "1.0.0", "mapId": "m", "nodes": [{"id": name, "x": 0, "y": 0}], "edges": []}

    with pytest.raises(DocumentRefused):
        read_source_map(from_value(graph))


@pytest.mark.req("FLT-MAP-3")
@pytest.mark.parametrize(
    ("members", "kind", "points"),
    [
        ({"className": "Arc", "viaPos": {"x": 5, "y": 1}}, CurveKind.ARC, 1),
        ({"className": "Spline", "points": [[0, 0], [3, 1], [7, 1], [10, 0]]}, CurveKind.SPLINE, 2),
    ],
)
def test_arcs_and_splines_are_read_and_written_again(members: dict[str, object], kind: CurveKind, points: int) -> None:
    source = read_source_map(document(**members))

    (edge,) = source.edges
    assert (edge.kind, len(edge.points)) == (kind, points)
    assert source_form(read_source_map(from_value(source_form(source)))) == source_form(source)


@pytest.mark.req("FLT-MAP-3")
def test_misspelt_members_of_a_graph_are_warnings_with_the_nearest_name_and_their_place() -> None:
    found = unread_graph(document(props={"moveStyle": "backward", "x-colour": "red"}, startNode="A"))

    assert [(finding.code, finding.severity) for finding in found] == [(Code.MAP_PARSE_ERROR, Severity.WARN)] * 2
    assert any("movestyle" in finding.message and "moveStyle" in finding.message for finding in found)
    assert {finding.details["path"] for finding in found} == {"$.edges[0].props.moveStyle", "$.edges[0].startNode"}


def test_a_graph_without_misspelt_members_has_no_warnings() -> None:
    assert unread_graph(document(props={"width": 3})) == ()


@pytest.mark.req("FLT-MAP-3", "FLT-MAP-12")
def test_props_are_read_on_the_edge_too() -> None:
    members: Any = {
        "movestyle": "backward",
        "direction": "both",
        "width": 3,
        "maxSpeedMps": Decimal("0.5"),
        "allowedProfiles": ["FL-STD"],
        "penaltyMs": 7,
        "criticalSectionId": "NECK",
    }
    on_the_edge, in_props = document(**members), document(props=members)

    assert read_source_map(on_the_edge) == read_source_map(in_props)
    assert unread_graph(on_the_edge) == unread_graph(in_props) == ()
    assert read_source_map(on_the_edge).edges[0].section == "NECK"
    again = read_source_map(from_value(source_form(read_source_map(in_props))))
    assert again.edges == read_source_map(in_props).edges


@pytest.mark.req("FLT-MAP-3")
@pytest.mark.parametrize("key", ["movestyle", "criticalSectionId", "maxSpeedMps"])
def test_a_member_in_props_and_on_the_edge_is_rejected(key: str) -> None:
    value: Any = 1 if key == "maxSpeedMps" else "forward"

    with pytest.raises(DocumentRefused) as refused:
        read_source_map(document(**{key: value}, props={key: value}))

    assert [fault.path for fault in refused.value.faults] == [f"$.edges[0].{key}"]


@pytest.mark.req("FLT-MAP-12")
def test_a_section_named_on_an_edge_holds_one_truck_on_its_whole_lane() -> None:
    site = compile_map(read_source_map(document(direction="both", criticalSectionId="NECK")), [FL_STD])

    (section,) = [section for section in site.sections if section.id == "NECK"]
    (member,) = section.members
    group = site.network.groups[member.group]
    assert (section.capacity, member.s0, member.s1, len(group.edges)) == (1, 0, group.length_um, 2)


@pytest.mark.req("FLT-MAP-12")
def test_a_section_named_on_an_edge_has_the_capacity_and_members_of_its_declaration() -> None:
    def compiled(more: list[dict[str, Any]], mark: dict[str, Any]) -> Any:
        graph = golden("SourceMap")
        graph["criticalSections"] = [{"criticalSectionId": "S", "capacity": 2, "members": more}]
        graph["edges"][0] = {**graph["edges"][0], **mark}
        return compile_map(read_source_map(from_value(graph)), [FL_STD]).sections

    both = [{"edgeGroupKey": "LM1<->LM2"}, {"edgeGroupKey": "LM2<->LM3"}]

    assert (
        compiled(both[1:], {"criticalSectionId": "S"})
        == compiled(both, {})
        == compiled(both, {"criticalSectionId": "S"})
    )


def test_inner_points_of_another_form_of_path_are_ignored_but_must_be_points() -> None:
    straight = {"id": "e", "start": "A", "end": "B", "controlPos1": None, "viaPos": [1, 2], "points": []}
    document = changed(golden("SourceMap"), "edges", [straight])

    assert read_source_map(from_value(document)).edges[0].points == ()
    assert faults(read_source_map, changed(document, "edges", [{**straight, "viaPos": "x"}])) == ["$.edges[0].viaPos"]
