"""Bad maps and bad trucks: each code has an input that triggers it, and every input gives a report or a refusal."""

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from pendula.documents import DocumentRefused, Format, from_value, read_bytes
from pendula.fleet import (
    Code,
    Finding,
    Fleet,
    Report,
    Severity,
    Stream,
    Truck,
    certify,
    examine,
    findings_of,
    read_fleet,
    read_params,
    read_profiles,
    read_source_map,
)
from pendula.fleet.compiler.compile import source_form
from pendula.fleet.compiler.generated_maps import random_map
from pendula.fleet.compiler.samples import FL_STD, Sketch, hall_demo, plus_crossing, spur
from pendula.fleet.model import (
    CurveKind,
    Direction,
    Point,
    SourceEdge,
    SourceMap,
    SourceMember,
    SourceSection,
    errors_of,
)
from pendula.kernel.canonical import encode
from tests.fleet.compiler.test_validation import TRIGGERS
from tests.fleet.documents import golden
from tests.fleet.sites import scene

FAR_UM = 100_000_000_001
FUZZED, FUZZED_LONG = 500, 5000


def line(*edges: SourceEdge) -> SourceMap:
    """Two nodes, ten metres apart."""
    sketch = Sketch("line")
    sketch.node("A", 0, 0)
    sketch.node("B", 10, 0)
    return replace(sketch.done(), edges=edges)


def sectioned(*sections: SourceSection) -> SourceMap:
    return replace(plus_crossing(), sections=sections)


def metres(*pairs: tuple[float, float]) -> tuple[Point, ...]:
    return tuple(Point(round(x * 1_000_000), round(y * 1_000_000)) for x, y in pairs)


def hand_drawn(name: str, kind: CurveKind, *points: tuple[float, float], **more: Any) -> SourceEdge:
    return SourceEdge(name, "A", "B", kind, metres(*points), **more)


def with_node_at(x_um: int) -> SourceMap:
    source = line(SourceEdge("e", "A", "B"))
    return replace(source, nodes=(replace(source.nodes[0], at=Point(x_um, 0)), source.nodes[1]))


def with_ends_at(end: str) -> SourceMap:
    return replace(line(SourceEdge("e", "A", end)), stations=("A", "B"), parking=("A",))


BEZIER, POLYLINE = CurveKind.BEZIER, CurveKind.POLYLINE
WHOLE_GROUP = SourceMember("E<->X")
# Further triggers of the same codes, not in the other list.
MAPS: list[tuple[Code, SourceMap]] = [
    (Code.MAP_PARSE_ERROR, sectioned(SourceSection("S", 1, (SourceMember("E<->NOWHERE"),)))),
    (Code.MAP_PARSE_ERROR, sectioned(SourceSection("S", 1, (SourceMember("E<->X", 3_000_000, 3_000_000),)))),
    (Code.MAP_PARSE_ERROR, sectioned(SourceSection("S", 1, (SourceMember("E<->X", 12_000_001, None),)))),
    (Code.MAP_INVALID_GEOMETRY, with_node_at(FAR_UM)),
    (Code.MAP_INVALID_GEOMETRY, with_node_at(-FAR_UM)),
    (Code.MAP_INVALID_GEOMETRY, line(SourceEdge("e", "A", "A"))),
    (Code.MAP_INVALID_GEOMETRY, line(SourceEdge("e", "A", "A", BEZIER, metres((5, 5), (5, -5))))),
    (Code.MAP_INVALID_GEOMETRY, line(SourceEdge("e", "A", "A", POLYLINE, metres((5, 5), (5, -5))))),
    (Code.MAP_INVALID_GEOMETRY, line(hand_drawn("e", BEZIER, (100_001, 0), (5, 0)))),
    (Code.MAP_INVALID_GEOMETRY, line(hand_drawn("e", POLYLINE, (5, -100_001)))),
    (Code.EDGE_ZERO_LENGTH, with_node_at(10_000_000)),
    (Code.EDGE_ZERO_LENGTH, with_node_at(9_999_001)),
    (
        Code.EDGE_ZERO_LENGTH,
        replace(with_node_at(10_000_000), edges=(hand_drawn("e", BEZIER, (10, 0), (10, 0)),)),
    ),
    (Code.EDGE_ZERO_LENGTH, replace(with_node_at(10_000_000), edges=(hand_drawn("e", POLYLINE, (10, 0)),))),
    (Code.DANGLING_EDGE, line(SourceEdge("e", "NOWHERE", "B"))),
    (Code.DANGLING_EDGE, line(SourceEdge("e", "NOWHERE", "NOWHERE"))),
    (Code.DUPLICATE_ID, line(SourceEdge("e", "A", "B"), SourceEdge("e", "B", "A"))),
    (Code.DUPLICATE_ID, line(SourceEdge("e", "A", "B"), SourceEdge("e", "A", "B"))),
    (Code.DUPLICATE_ID, sectioned(*(SourceSection("S", capacity, (WHOLE_GROUP,)) for capacity in (1, 2)))),
    (Code.INVALID_DIRECTION, line(SourceEdge("e", "A", "B", direction="sideways"))),
    (Code.INVALID_DIRECTION, line(SourceEdge("e", "A", "B", style="FORWARD"))),
    (Code.NODE_GEOMETRY_GAP, line(SourceEdge("e", "A", "B", start_at=Point(0, 20_001)))),
    (Code.NODE_GEOMETRY_GAP, line(hand_drawn("e", POLYLINE, (5, 0), end_at=Point(10_014_143, 14_143)))),
    (Code.NODE_GEOMETRY_GAP, line(hand_drawn("e", BEZIER, (4, 0), (6, 0), start_at=Point(FAR_UM, 0)))),
    (Code.TURN_TOO_TIGHT, line(hand_drawn("e", POLYLINE, (6, 0), (4, 0)))),
    (Code.TURN_TOO_TIGHT, line(hand_drawn("e", BEZIER, (20, 0), (-10, 0)))),
    (Code.TURN_TOO_TIGHT, line(hand_drawn("e", BEZIER, (10, 10), (0, 10)))),
    (Code.NODE_UNREACHABLE, with_ends_at("B")),
    (Code.GRAPH_DISCONNECTED, line()),
    (Code.NODE_ZONES_OVERLAP, with_node_at(9_000_000)),
]


def codes(findings: tuple[Finding, ...]) -> set[Code]:
    return {finding.code for finding in findings}


def sound(report: Report) -> Report:
    """A report whose parts agree: findings that can be serialised, an artifact if and only if there is no error."""
    forbidden = any(finding.severity is Severity.ERROR for finding in report.findings)
    assert (report.compiled is None) is (report.data is None) is forbidden
    assert encode(
        [[finding.code.value, finding.message, finding.details, finding.remedy] for finding in report.findings]
    )
    if report.compiled is not None:
        lengths = [edge.path.length_um for edge in report.compiled.network.edges]
        # The work is bounded by the lanes: half a metre per cell, and a remainder at the end of each edge.
        assert len(report.compiled.cells) <= sum(lengths) // report.compiled.params.cell_len_um + len(lengths)
    return report


@pytest.mark.req("FLT-MAP-14", "FLT-MAP-15")
@pytest.mark.parametrize(("code", "source"), MAPS)
def test_a_fault_is_found_on_every_path_of_the_api(code: Code, source: SourceMap) -> None:
    found = [finding for finding in sound(examine(source, [FL_STD])).findings if finding.code is code]

    assert found
    assert found[0].message
    assert found[0].details


def _of_fleet(fleet: Fleet) -> set[Code]:
    return codes(certify(scene("hall-demo"), fleet, [FL_STD])[1])


FLEETS: list[tuple[Code, Fleet]] = [
    (Code.PROFILE_MISSING_FIELD, Fleet((Truck("R", "OTHER", "PK1"),))),
    (Code.MISSING_PARKING_NODE, Fleet((Truck("R", "FL-STD", "NOWHERE"),))),
    (Code.MISSING_PICK_DROP_NODE, Fleet((), (Stream("S", ("NOWHERE",), ("AP1",)),))),
    (Code.MISSING_PICK_DROP_NODE, Fleet((), (Stream("S", ("AP1",), ("NOWHERE",)),))),
    (Code.MAP_NOT_LIVE, Fleet((Truck("R", "FL-STD", "PK1"),), (Stream("S", ("LM7",), ("AP1",)),))),
    (Code.MAP_NOT_LIVE, replace(Fleet((Truck("R", "FL-STD", "PK1"),)), lookahead_um=0)),
]


@pytest.mark.req("FLT-MAP-15", "FLT-LIVE-7")
@pytest.mark.parametrize(("code", "fleet"), FLEETS)
def test_a_fleet_that_does_not_fit_its_map_is_found(code: Code, fleet: Fleet) -> None:
    assert _of_fleet(fleet) == {code}


@pytest.mark.req("FLT-MAP-15")
def test_every_code_has_an_input_that_triggers_it() -> None:
    triggered = {code for code, _ in (*TRIGGERS, *MAPS, *FLEETS)}

    # These two are tested elsewhere: too dense a map, a map for other trucks.
    assert set(Code) - triggered == {Code.CONFLICT_BUILD_FAILED, Code.PROFILE_HASH_MISMATCH}


@pytest.mark.req("FLT-MAP-14")
@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize(
    "text",
    ["NaN", ".nan", "Infinity", "-.inf", "1e999999999", "-1e10", "1" + "0" * 5000, "0x10", '"5"', "null", "[1]", "{}"],
)
def test_an_invalid_coordinate_is_rejected_with_its_place(text: str, form: Format) -> None:
    if (text, form) == ("0x10", Format.JSON5):
        text = "0x1g"  # hexadecimal numbers are part of JSON5
    data = '{"contractVersion": "1.0.0", "mapId": "m", "nodes": [{"id": "A", "y": 0, "x": ' + text + '}], "edges": []}'

    with pytest.raises(DocumentRefused) as refused:
        read_source_map(read_bytes(data.encode(), form))

    found = findings_of(refused.value)
    assert codes(found) <= {Code.MAP_PARSE_ERROR, Code.MAP_INVALID_GEOMETRY}
    assert all(finding.details["line"] == 1 for finding in found)


@pytest.mark.req("FLT-MAP-14")
@pytest.mark.parametrize("text", ["1e-7", "-0.0000004", "1e-400", "-0.0", "0.00000049999999999999999999999999999999"])
def test_less_than_half_a_micrometre_rounds_to_zero(text: str) -> None:
    data = '{"contractVersion": "1.0.0", "mapId": "m", "nodes": [{"id": "A", "y": 0, "x": ' + text + '}], "edges": []}'

    (node,) = read_source_map(read_bytes(data.encode())).nodes

    assert node.at == Point(0, 0)


@pytest.mark.parametrize("size_um", [1_000, 1_001, 49_999, 50_000, 499_999, 500_001])
@pytest.mark.parametrize("kind", CurveKind)
def test_tiny_edges_are_edges(kind: CurveKind, size_um: int) -> None:
    source = with_node_at(10_000_000 - size_um)
    inner = {
        CurveKind.STRAIGHT: (),
        CurveKind.POLYLINE: (Point(10_000_000 - size_um // 2, 0),),
        CurveKind.BEZIER: (Point(10_000_000 - size_um, 0), Point(10_000_000, 0)),
        CurveKind.ARC: (Point(10_000_000 - size_um // 2, 0),),
        CurveKind.SPLINE: (Point(10_000_000 - size_um // 2, 0),),
    }[kind]
    edge = SourceEdge("e", "A", "B", kind, inner, direction=Direction.BOTH.value)

    report = sound(examine(replace(source, edges=(edge,)), [FL_STD]))

    assert codes(report.findings) == {Code.NODE_ZONES_OVERLAP}
    assert report.compiled is not None
    assert len(report.compiled.cells) == 2 * max(1, -(-size_um // 500_000) - (0 < size_um % 500_000 < 50_000))


@pytest.mark.parametrize("corner", [(-100_000, -100_000), (100_000, 100_000), (-100_000, 100_000)])
def test_a_map_at_the_edge_of_the_world_is_the_map_at_the_origin(corner: tuple[int, int]) -> None:
    dx, dy = corner[0] * 1_000_000, corner[1] * 1_000_000
    source = plus_crossing(12.0)
    inward = 12_000_000
    moved = replace(
        source,
        nodes=tuple(
            replace(
                node,
                at=Point(
                    node.at.x_um + dx + (inward if dx < 0 else -inward),
                    node.at.y_um + dy + (inward if dy < 0 else -inward),
                ),
            )
            for node in source.nodes
        ),
    )

    here, there = examine(source, [FL_STD]).compiled, examine(moved, [FL_STD]).compiled

    assert here is not None
    assert there is not None
    assert there.conflicts.lo.tolist() == here.conflicts.lo.tolist()
    assert there.conflicts.hi.tolist() == here.conflicts.hi.tolist()
    assert there.zones == here.zones


def test_empty_documents_make_empty_maps_or_are_refused() -> None:
    head = {"contractVersion": "1.0.0", "mapId": "m"}
    whole: dict[str, Any] = {**head, "nodes": [], "edges": [], "criticalSections": [], "stations": [], "parking": []}
    lone: dict[str, Any] = {**head, "nodes": [{"id": "A", "x": 0, "y": 0, "kind": "ParkPoint"}], "edges": []}

    assert len(sound(examine(read_source_map(from_value(whole)), [FL_STD])).findings) == 1
    assert sound(examine(read_source_map(from_value(lone)), [FL_STD])).compiled is not None
    nothings: tuple[Any, ...] = (None, [], {}, "", 0, head)
    for nothing in nothings:
        with pytest.raises(DocumentRefused):
            read_source_map(from_value(nothing))
    for data in (b"", b" ", b"\xff", b"{", b"[" * 100, b'{"a": 1, "a": 2}'):
        with pytest.raises(DocumentRefused):
            read_source_map(read_bytes(data))


def places(form: Any, before: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value of a form."""
    if before:
        yield before
    if isinstance(form, dict):
        for name in form:
            yield from places(form[name], (*before, name))
    elif isinstance(form, list):
        for index in range(len(form)):
            yield from places(form[index], (*before, index))


def put(form: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy of the form with another value at the path; without it if the value is Ellipsis."""
    copy = deepcopy(form)
    at = copy
    for step in path[:-1]:
        at = at[step]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy


STRANGE: tuple[Any, ...] = (..., None, True, -1, 0, Decimal("0.5"), 10**30, "", "LM1", "A->B", "\x00", [], [[]], {})


def read_or_refused(read: Callable[[Any], Any], form: Any) -> Any:
    """The value read, or None if the document is rejected with places and reasons."""
    try:
        return read(from_value(form))
    except DocumentRefused as error:
        refused = error
    assert refused.faults
    assert all(fault.path and fault.message for fault in refused.faults)
    return None


@pytest.mark.req("FLT-MAP-15", "FLT-API-1")
def test_a_map_with_one_strange_value_anywhere_is_read_or_refused() -> None:
    form = golden("SourceMap")
    form["nodes"], form["edges"] = form["nodes"][:4], [form["edges"][0], form["edges"][2]]
    form.update(stations=["LM1"], parking=["LM2"])
    form["edges"][0].update(startPos={"x": 0, "y": 0}, className="Polyline", points=[[0, 0], {"x": 10, "y": 0}])
    form["criticalSections"][0]["members"][0].update(s0M=0, s1M=3)
    seen = set()
    for path in places(form):
        for value in STRANGE:
            source = read_or_refused(read_source_map, put(form, path, value))
            if source is not None and source not in seen:
                seen.add(source)
                sound(examine(source, [FL_STD]))

    assert len(seen) > 50


HUGE = Decimal(10) ** 9
SIZES = (0, -1, Decimal("0.000001"), Decimal("1e-7"), Decimal("-0.000001"), HUGE + 1, Decimal("1e400"), "1", None, True)


@pytest.mark.req("FLT-GEO-4")
def test_a_truck_with_one_strange_value_anywhere_is_read_or_refused() -> None:
    form = golden("RobotProfile")
    read = 0
    for path in places(form):
        for value in (*STRANGE, *SIZES):
            profiles = read_or_refused(read_profiles, put(form, path, value))
            if profiles is not None:
                read += 1
                sound(examine(line(SourceEdge("e", "A", "B")), profiles))
                certify(scene("straight-lane"), Fleet((Truck("R", "FL-STD", "A"),)), profiles)

    assert read > 50


@pytest.mark.req("FLT-GEO-4")
@pytest.mark.parametrize("member", ["vMax", "accel", "a_brake", "controlLatencyS", "turnRateRadS", "minTurnRadiusM"])
def test_dynamics_of_any_size_make_no_other_shapes(member: str) -> None:
    usual = examine(spur(), [FL_STD]).compiled
    profiles = read_profiles(from_value(put(golden("RobotProfile"), ("dynamics", member), HUGE)))

    report = sound(examine(spur(), profiles))

    assert usual is not None
    assert report.compiled is not None
    assert report.compiled.cells.quads.tolist() == usual.cells.quads.tolist()


@pytest.mark.req("FLT-MAP-15")
def test_parameters_and_fleets_with_one_strange_value_anywhere_are_read_or_refused() -> None:
    params: Any = {"cellLenM": 1, "conflictMarginM": 0, "maxRectsPerCell": 3, "conflictGranularity": "edge"}
    fleet: Any = {
        "robots": [{"robotId": "R1", "profileId": "FL-STD", "parkNodeId": "PK1"}],
        "streams": [{"streamId": "S", "pickNodeIds": ["AP1"], "dropNodeIds": ["LM3"]}],
        "params": {"lookaheadM": 10, "rtpLookaheadM": 3, "tickPeriodMs": 200},
    }

    for path in places(params):
        for value in (*STRANGE, *SIZES):
            given = read_or_refused(read_params, put(params, path, value))
            if given is not None:
                sound(examine(hall_demo(), [FL_STD], given))
    for path in places(fleet):
        for value in STRANGE:
            trucks = read_or_refused(read_fleet, put(fleet, path, value))
            if trucks is not None:
                certificate, findings = certify(scene("hall-demo"), trucks, [FL_STD])
                assert (certificate is not None and certificate.live) is not bool(errors_of(findings))


def junk(draw: random.Random) -> Any:
    number = draw.choice((0, 1, -1, 5, 20, 10**6, -(10**9), 10**12)) + draw.randint(-3, 3)
    return draw.choice(
        [*STRANGE[1:], number, Decimal(number).scaleb(-3), "N00", "N01", "both", "backward", "Bezier", "ParkPoint"]
    )


def mutated(form: Any, draw: random.Random) -> Any:
    """The form after a few mutations: values lost, replaced, doubled, swapped, moved."""
    for _ in range(draw.randint(1, 6)):
        every = list(places(form))
        path = draw.choice(every)
        parent: Any = form
        for step in path[:-1]:
            parent = parent[step]
        value = parent[path[-1]]
        match draw.randrange(6):
            case 0:
                form = put(form, path, ...)
            case 1:
                form = put(form, path, junk(draw))
            case 2 if isinstance(parent, list):
                form = put(form, path[:-1], [*parent, deepcopy(value)])
            case 3:
                other = draw.choice([place for place in every if place[-1] == path[-1]])
                source: Any = form
                for step in other:
                    source = source[step]
                form = put(form, path, deepcopy(source))
            case 4 if isinstance(value, int | Decimal) and not isinstance(value, bool):
                form = put(form, path, value + Decimal(draw.randint(-30_000, 30_000)).scaleb(-3))
            case _:
                form = put(form, path, draw.choice(["N00", "N01", "N02"]) if isinstance(value, str) else value)
        if not isinstance(form, dict):
            break
    return form


def fuzz(seeds: range) -> tuple[int, int, int]:
    """The numbers of fuzzed graphs refused, reported with errors, and compiled."""
    forms = [json.loads(encode(source_form(random_map(seed, 3, 5))), parse_float=Decimal) for seed in range(8)]
    refused = failed = compiled = 0
    for seed in seeds:
        draw = random.Random(seed)
        source = read_or_refused(read_source_map, mutated(draw.choice(forms), draw))
        if source is None:
            refused += 1
        elif sound(examine(source, [FL_STD])).compiled is None:
            failed += 1
        else:
            compiled += 1
    return refused, failed, compiled


@pytest.mark.req("FLT-MAP-14", "FLT-MAP-16")
def test_fuzzed_graphs_are_refused_reported_or_compiled() -> None:
    assert min(fuzz(range(FUZZED))) > FUZZED // 20


@pytest.mark.long
@pytest.mark.req("FLT-MAP-14", "FLT-MAP-16")
def test_many_fuzzed_graphs_are_refused_reported_or_compiled() -> None:
    assert min(fuzz(range(FUZZED, FUZZED + FUZZED_LONG))) > FUZZED_LONG // 20
