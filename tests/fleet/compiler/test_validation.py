"""Every code of the validator has a map that triggers it; a bad map gives a report and never a traceback."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pendula.documents import DocumentRefused, Format, from_value, read_bytes
from pendula.fleet import (
    Code,
    Finding,
    Fleet,
    MapRefused,
    Severity,
    Stream,
    Truck,
    certify,
    compile_map,
    examine,
    findings_of,
    read_profiles,
    read_source_map,
)
from pendula.fleet.compiler.samples import FL_STD, Sketch, hall_demo, plus_crossing, spur
from pendula.fleet.map.network import MAP_PAIRS
from pendula.fleet.model import (
    CurveKind,
    Direction,
    Point,
    SourceEdge,
    SourceMap,
    SourceMember,
    SourceNode,
    SourceSection,
    severity_of,
)
from pendula.kernel.canonical import Json
from tests.fleet.sites import scene

ERRORS = {
    *("MAP_PARSE_ERROR", "MAP_INVALID_GEOMETRY", "EDGE_ZERO_LENGTH", "DANGLING_EDGE", "DUPLICATE_ID"),
    *("INVALID_DIRECTION", "TURN_TOO_TIGHT", "NODE_GEOMETRY_GAP", "MISSING_PARKING_NODE", "MISSING_PICK_DROP_NODE"),
    *("NODE_UNREACHABLE", "CONFLICT_BUILD_FAILED", "PROFILE_MISSING_FIELD", "PROFILE_HASH_MISMATCH", "MAP_NOT_LIVE"),
}


def sketched(*nodes: tuple[str, float, float, str]) -> Sketch:
    sketch = Sketch("sketch")
    for name, x, y, kind in nodes:
        sketch.node(name, x, y, kind)
    return sketch


def mark(name: str, x: float, y: float) -> tuple[str, float, float, str]:
    return (name, x, y, "LocationMark")


def tight() -> SourceMap:
    sketch = sketched(mark("A", 0, 0), mark("B", 1, 1))
    sketch.bezier("A", "B", (0.55, 0), (1, 0.45))
    return sketch.done()


def corner() -> SourceMap:
    sketch = sketched(mark("A", 0, 0), mark("B", 10, 10))
    sketch.polyline("A", "B", [(10, 0)])
    return sketch.done()


def narrow() -> SourceMap:
    source = plus_crossing()
    return replace(source, edges=(replace(source.edges[0], width_um=1_390_000), *source.edges[1:]))


def unreachable() -> SourceMap:
    source = spur()
    return replace(source, edges=tuple(edge for edge in source.edges if edge.end != "P"))


def no_return() -> SourceMap:
    source = spur()
    return replace(source, edges=tuple(edge for edge in source.edges if edge.start != "P"))


def parked_on_the_way() -> SourceMap:
    sketch = sketched(mark("A", 0, 0), ("P", 10, 0, "ParkPoint"), mark("B", 20, 0))
    sketch.chain("A", "P", "B")
    return sketch.done()


def crowded() -> SourceMap:
    """Short ways in: every waiting truck stands in the mouth."""
    sketch = sketched(mark("A", 0, 0), mark("M", 20, 0), mark("B", 24, 3), mark("C", 24, -3))
    sketch.lane("A", "M")
    sketch.lane("M", "B")
    sketch.lane("M", "C")
    return sketch.done()


def no_way_out() -> SourceMap:
    """A section whose only exit leads into two metres of dead end."""
    sketch = sketched(mark("A", 0, 0), mark("B", 20, 0), mark("C", 22, 0))
    sketch.chain("A", "B", "C", back=False)
    return replace(sketch.done(), sections=(SourceSection("NECK", 1, (SourceMember("A<->B"),)),))


def dangling() -> SourceMap:
    return replace(hall_demo(), edges=(*hall_demo().edges, SourceEdge("x", "LM1", "NOWHERE")))


def doubled() -> SourceMap:
    return replace(hall_demo(), nodes=(*hall_demo().nodes, hall_demo().nodes[0]))


def edited(**changes: object) -> Callable[[], SourceMap]:
    def make() -> SourceMap:
        source = hall_demo()
        return replace(source, edges=(replace(source.edges[0], **changes), *source.edges[1:]))

    return make


def _zero_length() -> SourceMap:
    sketch = sketched(mark("A", 0, 0), mark("B", 0, 0))
    sketch.lane("A", "B")
    return sketch.done()


def aisle_of_stations(between: float = 8.0) -> SourceMap:
    """A dead end with three stations one behind the other."""
    sketch = Sketch("aisle")
    for name, x in (("W", -20.0), ("M", 0.0), ("E", 20.0)):
        sketch.node(name, x, 0)
    for number in (1, 2, 3):
        sketch.node(f"T{number}", 0, 4 + number * between, "ActionPoint")
    sketch.chain("W", "M", "E")
    sketch.chain("M", "T1", "T2", "T3")
    return sketch.done()


TRIGGERS: list[tuple[Code, Callable[[], SourceMap]]] = [
    (Code.MAP_INVALID_GEOMETRY, edited(end="LM1")),
    (Code.EDGE_ZERO_LENGTH, _zero_length),
    (Code.DANGLING_EDGE, dangling),
    (Code.DUPLICATE_ID, doubled),
    (Code.GRAPH_DISCONNECTED, hall_demo),
    (Code.INVALID_DIRECTION, edited(style="diagonal")),
    (Code.MISSING_RETURN_EDGE, hall_demo),
    (Code.TURN_TOO_TIGHT, tight),
    (Code.TURN_TOO_TIGHT, corner),
    (Code.EDGES_CLOSE, hall_demo),
    (Code.DEAD_END_HAS_ROOM, aisle_of_stations),
    (Code.NODE_GEOMETRY_GAP, edited(end_at=Point(10_000_000, 21_000))),
    (Code.MISSING_PARKING_NODE, lambda: replace(hall_demo(), parking=("NOWHERE",))),
    (Code.MISSING_PICK_DROP_NODE, lambda: replace(hall_demo(), stations=("NOWHERE",))),
    (Code.NODE_UNREACHABLE, unreachable),
    (Code.NODE_UNREACHABLE, no_return),
    (Code.PARKING_BLOCKS_TRAFFIC, parked_on_the_way),
    (Code.NO_SAFE_WAIT_POSITION, crowded),
    (Code.DEAD_END_WITHOUT_TOKEN, crowded),
    (Code.CS_WITHOUT_EXIT_ROOM, no_way_out),
    (Code.LANE_TOO_NARROW, narrow),
    (Code.NODE_ZONES_OVERLAP, hall_demo),
]


def of_code(findings: tuple[Finding, ...], code: Code) -> list[Finding]:
    return [finding for finding in findings if finding.code is code]


@pytest.mark.req("FLT-MAP-14", "FLT-MAP-15", "FLT-MAP-17")
@pytest.mark.parametrize(("code", "make"), TRIGGERS)
def test_every_code_has_a_map_that_triggers_it(code: Code, make: Callable[[], SourceMap]) -> None:
    report = examine(make(), [FL_STD])

    found = of_code(report.findings, code)

    assert found
    assert found[0].message
    assert found[0].details
    assert found[0].severity is severity_of(code)
    assert (report.compiled is None) is any(finding.severity is Severity.ERROR for finding in report.findings)


@pytest.mark.req("FLT-MAP-15")
@pytest.mark.parametrize("code", Code)
def test_severities_are_those_of_the_contract(code: Code) -> None:
    expected = Severity.ERROR if code.value in ERRORS else Severity.WARN
    if code in (Code.EDGES_CLOSE, Code.DEAD_END_HAS_ROOM):
        expected = Severity.INFO

    assert severity_of(code) is expected


@pytest.mark.req("FLT-MAP-16")
def test_a_map_with_an_error_makes_no_artifact() -> None:
    with pytest.raises(MapRefused) as refused:
        compile_map(dangling(), [FL_STD])

    assert of_code(refused.value.findings, Code.DANGLING_EDGE)


@pytest.mark.req("FLT-MAP-17")
def test_an_aisle_of_exactly_the_needed_width_is_not_too_narrow() -> None:
    source = narrow()
    wide = replace(source, edges=(replace(source.edges[0], width_um=1_400_000), *source.edges[1:]))

    assert not of_code(examine(wide, [FL_STD]).findings, Code.LANE_TOO_NARROW)


@pytest.mark.req("FLT-MAP-17")
def test_a_dead_end_with_room_to_wait_outside_is_fine() -> None:
    assert not of_code(scene("hall-demo").findings, Code.DEAD_END_WITHOUT_TOKEN)
    assert not of_code(scene("hall-demo").findings, Code.NO_SAFE_WAIT_POSITION)


@pytest.mark.req("FLT-MAP-15")
def test_one_run_finds_all_faults() -> None:
    source = hall_demo()
    edges = [replace(source.edges[0], end="NOWHERE"), replace(source.edges[1], style="?"), *source.edges[2:]]

    codes = {finding.code for finding in examine(replace(source, edges=tuple(edges)), [FL_STD]).findings}

    assert {Code.DANGLING_EDGE, Code.INVALID_DIRECTION, Code.NODE_ZONES_OVERLAP} <= codes


@pytest.mark.req("FLT-MAP-14")
@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999999", "123456789012345"])
def test_invalid_coordinates_are_found(text: str) -> None:
    data = b'{"contractVersion": "1.0.0", "mapId": "m", "nodes": [{"id": "A", "x": ' + text.encode()
    data += b', "y": 0}], "edges": []}'

    with pytest.raises(DocumentRefused) as refused:
        read_source_map(read_bytes(data))

    (found,) = findings_of(refused.value)
    assert found.code is Code.MAP_INVALID_GEOMETRY
    assert found.details["line"] == 1


@pytest.mark.req("FLT-MAP-15")
def test_a_document_of_the_wrong_form_is_a_parse_error_with_its_place() -> None:
    data = b"contractVersion: 1.0.0\nmapId: m\nnodes:\n- {id: A, x: 0}\nedges: {}\n"

    with pytest.raises(DocumentRefused) as refused:
        read_source_map(read_bytes(data, Format.YAML))

    found = findings_of(refused.value)
    assert {finding.code for finding in found} == {Code.MAP_PARSE_ERROR}
    assert [finding.details["path"] for finding in found] == ["$.nodes[0].y", "$.edges"]


@pytest.mark.req("FLT-GEO-4", "FLT-MAP-15")
def test_a_profile_without_a_side_margin_is_refused() -> None:
    with pytest.raises(DocumentRefused) as refused:
        read_profiles(
            from_value({"contractVersion": "1.0.0", "profileId": "X", "geometry": {}, "safety": {}, "dynamics": {}})
        )

    found = findings_of(refused.value, profile=True)
    assert {finding.code for finding in found} == {Code.PROFILE_MISSING_FIELD}
    assert "$.safety.safetySideM" in {finding.details["path"] for finding in found}


@pytest.mark.req("FLT-FAIL-12", "FLT-MAP-16")
def test_a_map_for_other_trucks_does_not_fit_the_fleet() -> None:
    certificate, findings = certify(scene("hall-demo"), Fleet(()), [replace(FL_STD, head_um=1_300_001)])

    assert certificate is None
    assert [finding.code for finding in findings] == [Code.PROFILE_HASH_MISMATCH]


@pytest.mark.req("FLT-LIVE-7", "FLT-MAP-15")
def test_a_map_on_which_trucks_block_each_other_is_not_live() -> None:
    fleet = Fleet((Truck("R1", "FL-STD", "PK1"), Truck("R2", "FL-STD", "PK1")), (Stream("S", ("AP1",), ("LM3",)),))

    _, findings = certify(scene("hall-demo"), fleet, [FL_STD])

    assert [finding.code for finding in findings] == [Code.MAP_NOT_LIVE]


@pytest.mark.req("FLT-MAP-15")
def test_too_many_overlapping_edges_are_rejected_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pendula.fleet.compiler.overlaps.MAP_PAIRS", replace(MAP_PAIRS, default=1000))
    lanes = tuple(SourceEdge(f"e{i}", "A", "B", direction=Direction.BOTH.value) for i in range(30))
    source = replace(sketched(mark("A", 0, 0), mark("B", 10, 0)).done(), edges=lanes)

    report = examine(source, [FL_STD])

    assert of_code(report.findings, Code.CONFLICT_BUILD_FAILED)
    assert report.compiled is None


def test_dozens_of_parallel_edges_compile() -> None:
    lanes = tuple(SourceEdge(f"e{i:03}", "A", "B", direction=Direction.BOTH.value) for i in range(40))
    source = replace(sketched(mark("A", 0, 0), mark("B", 4, 0)).done(), edges=lanes)

    site = compile_map(source, [FL_STD])

    assert len(site.network.groups) == 1
    assert len(site.network.edges) == 80


def test_an_empty_map_has_nothing_to_drive_on() -> None:
    site = compile_map(SourceMap("nothing", (), ()), [FL_STD])

    assert len(site.cells) == 0
    assert [(finding.code, finding.severity) for finding in site.findings] == [(Code.GRAPH_DISCONNECTED, Severity.WARN)]
    assert "nothing to drive on" in site.findings[0].message


words = st.sampled_from(["A", "B", "C", ""])
places = st.one_of(st.integers(-3, 3).map(lambda n: n * 1_000_000), st.integers(-(10**13), 10**13), st.integers(-2, 2))


@pytest.mark.req("FLT-MAP-14")
@given(
    st.lists(st.tuples(words, places, places), max_size=4),
    st.lists(
        st.tuples(words, words, words, st.lists(st.tuples(places, places), min_size=2, max_size=2), st.integers(0, 2)),
        max_size=4,
    ),
)
def test_every_map_gets_a_report(
    nodes: list[tuple[str, int, int]], edges: list[tuple[str, str, str, list[tuple[int, int]], int]]
) -> None:
    kinds = list(CurveKind)
    source = SourceMap(
        "any",
        tuple(SourceNode(name, Point(x, y), "ActionPoint") for name, x, y in nodes),
        tuple(
            SourceEdge(name, start, end, kinds[kind], tuple(Point(*point) for point in points) if kind else ())
            for name, start, end, points, kind in edges
            if all(abs(a) + abs(b) < 50_000_000 or abs(a) > 10**11 or abs(b) > 10**11 for a, b in points)
        ),
    )
    short = all(abs(x) + abs(y) < 50_000_000 or max(abs(x), abs(y)) > 10**11 for _, x, y in nodes)
    if short:
        report = examine(source, [FL_STD])
        assert (report.data is None) is any(finding.severity is Severity.ERROR for finding in report.findings)


@pytest.mark.req("FLT-DCL-19")
@pytest.mark.parametrize(("between", "capacity"), [(8.0, 3), (4.0, 2), (2.0, None)])
def test_a_dead_end_with_several_stations_reports_how_many_trucks_could_stand_in_it(
    between: float, capacity: int | None
) -> None:
    report = examine(aisle_of_stations(between), [FL_STD])

    capacities = [finding.details["capacity"] for finding in report.findings if finding.code is Code.DEAD_END_HAS_ROOM]
    assert capacities == ([] if capacity is None else [capacity])


@pytest.mark.req("FLT-MAP-14")
def test_a_tight_bend_is_reported_with_radius_place_and_edge() -> None:
    sketch = Sketch("bend")
    sketch.node("A", 0, 0)
    sketch.node("B", 9, 9)
    sketch.polyline("A", "B", [(9, 0)], back=False)

    (found,) = [finding for finding in examine(sketch.done(), [FL_STD]).findings if finding.code is Code.TURN_TOO_TIGHT]

    assert found.details["edge"] == "e00001"
    assert (found.details["sM"], found.details["x"], found.details["y"]) == (9, 9, 0)
    assert 0 < float(str(found.details["radiusM"])) < 1.5
    assert "at (9, 0), 9 m from its start" in found.message


@pytest.mark.req("FLT-MAP-14")
def test_a_tight_bend_that_is_driven_both_ways_is_reported_once() -> None:
    way: dict[str, Json] = {"className": "Polyline", "points": [[0, 0], [9, 0], [9, 9]], "props": {"direction": "both"}}
    graph: Json = {
        "contractVersion": "1.0.0",
        "mapId": "bend",
        "nodes": [{"id": "Z", "x": 0, "y": 0}, {"id": "A", "x": 9, "y": 9}],
        "edges": [{"id": "w1", "start": "Z", "end": "A", **way}],
    }
    report = examine(read_source_map(from_value(graph, "bend")), [FL_STD])

    (found,) = [finding for finding in report.findings if finding.code is Code.TURN_TOO_TIGHT]
    assert (found.details["edge"], found.details["edgeKey"]) == ("w1", "Z->A")


@pytest.mark.req("FLT-LIVE-7", "FLT-MAP-8")
def test_networks_without_a_common_edge_share_a_floor_and_their_conflicts_count() -> None:
    sketch = Sketch("two")
    for name, y in (("A", 0.0), ("B", 1.5)):
        for end, x in (("W", -20.0), ("M", 0.0), ("E", 20.0)):
            sketch.node(f"{name}{end}", x, y)
        sketch.chain(f"{name}W", f"{name}M", f"{name}E")
        sketch.node(f"{name}P", 0, y + (12 if name == "B" else -12), "ParkPoint")
        sketch.lane(f"{name}M", f"{name}P")
    report = examine(sketch.done(), [FL_STD])

    assert report.compiled is not None, report.findings
    assert Code.GRAPH_DISCONNECTED in {finding.code for finding in report.findings}
    groups = report.compiled.network.groups
    assert any(
        {groups[conflict.a].key, groups[conflict.b].key} == {"AM<->AW", "BM<->BW"} for conflict in report.compiled.named
    )
