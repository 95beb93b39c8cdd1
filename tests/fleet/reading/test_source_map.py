"""Documents into models: maps as JSON and YAML, profiles with sources, parameters, fleets."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pendula.documents import DocumentRefused, Format, from_value, read_bytes
from pendula.fleet import compile_map, read_fleet, read_params, read_profiles, read_source_map
from pendula.fleet.compiler.source_form import source_form
from pendula.fleet.model import CompileParams, CurveKind, Fleet, Granularity, Point, SourceMap, Stream, Truck
from pendula.fleet.samples.halls import reference_hall
from pendula.fleet.samples.random_maps import random_map
from pendula.fleet.samples.scenes import FL_STD, hall_demo
from pendula.fleet.trucks.profiles import Source, doubts
from pendula.kernel.canonical import Json, encode
from tests.fleet.sites import scene

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(), parse_float=Decimal)


def changed(form: Any, path: str, value: Any) -> Any:
    """The form with one member replaced, or taken out where the value is Ellipsis."""
    first, _, rest = path.partition(".")
    if rest:
        return {**form, first: changed(form[first], rest, value)}
    if value is ...:
        return {name: one for name, one in form.items() if name != first}
    return {**form, first: value}


def faults(read: Any, form: Any) -> list[str]:
    with pytest.raises(DocumentRefused) as refused:
        read(from_value(form))
    return [fault.path for fault in refused.value.faults]


@pytest.mark.req("FLT-GEO-4", "FLT-API-2")
def test_the_profile_of_the_contract_is_the_reference_truck() -> None:
    assert read_profiles(read_bytes((GOLDEN / "RobotProfile.json").read_bytes())) == (FL_STD,)


@pytest.mark.req("FLT-GEO-4")
@pytest.mark.parametrize(
    "path",
    [
        *(f"geometry.{name}" for name in ("head", "tail", "width")),
        *(f"safety.safety{side}M" for side in ("Front", "Rear", "Side")),
        *(f"safety.{name}" for name in ("localizationErrorM", "trackingErrorM", "extraMarginM", "minFollowingGapM")),
        *(f"dynamics.{name}" for name in ("vMax", "accel", "a_brake", "controlLatencyS")),
    ],
)
def test_nothing_of_a_profile_is_supplied_in_silence(path: str) -> None:
    assert faults(read_profiles, changed(golden("RobotProfile"), path, ...)) == [f"$.{path}"]


@pytest.mark.req("FLT-GEO-4")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("geometry.width", 0),
        ("geometry.head", -1),
        ("dynamics.vMax", 0),
        ("dynamics.accel", 0),
        ("dynamics.a_brake", 0),
        ("safety.safetySideM", Decimal("-0.1")),
        ("safety.extraMarginM", "much"),
    ],
)
def test_numbers_that_make_no_truck_are_refused(path: str, value: Any) -> None:
    assert faults(read_profiles, changed(golden("RobotProfile"), path, value)) == [f"$.{path}"]


@pytest.mark.req("FLT-GEO-4")
def test_a_truck_without_length_is_refused() -> None:
    form = changed(changed(golden("RobotProfile"), "geometry.head", 0), "geometry.tail", 0)

    assert faults(read_profiles, form) == ["$.geometry"]


@pytest.mark.req("FLT-GEO-5")
@pytest.mark.parametrize("name", ["localizationErrorM", "trackingErrorM"])
def test_an_error_value_without_a_source_is_refused(name: str) -> None:
    form = golden("RobotProfile")

    assert faults(read_profiles, changed(form, f"safety.{name}.source", ...)) == [f"$.safety.{name}.source"]
    assert faults(read_profiles, changed(form, f"safety.{name}.source", "GUESSED")) == [f"$.safety.{name}.source"]
    assert faults(read_profiles, changed(form, f"safety.{name}", Decimal("0.1"))) == [f"$.safety.{name}"]


@pytest.mark.req("FLT-GEO-5")
def test_a_percentile_is_doubted() -> None:
    assert FL_STD.localization_error.source is Source.MEASURED
    assert len(doubts(FL_STD)) == 1
    assert "localizationErrorM" in doubts(FL_STD)[0]


def test_profiles_come_alone_in_a_list_or_under_their_name() -> None:
    form = golden("RobotProfile")

    for document in (form, [form], {"profiles": [form]}):
        assert read_profiles(from_value(document)) == (FL_STD,)


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

    assert sorted(again.edges, key=lambda one: one.id) == sorted(source.edges, key=lambda one: one.id)
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
            [{"id": "e", "start": "A", "end": "B", "className": "Polyline", "points": [[0]]}],
            "$.edges[0].points",
        ),
        (
            "criticalSections",
            [{"criticalSectionId": "C", "capacity": 0, "members": [{"edgeGroupKey": "A<->B"}]}],
            "$.criticalSections[0].capacity",
        ),
    ],
)
def test_what_a_map_cannot_say_is_refused_at_its_place(path: str, value: Any, fault: str) -> None:
    assert faults(read_source_map, changed(golden("SourceMap"), path, value)) == [fault]


@pytest.mark.req("FLT-API-1")
def test_members_that_are_not_known_are_passed_over() -> None:
    form = changed(golden("SourceMap"), "novelty", [1, 2])
    form["nodes"][0]["colour"] = "red"

    assert read_source_map(from_value(form)) == read_source_map(from_value(golden("SourceMap")))


def test_parameters_have_their_ranges() -> None:
    given: Json = {"cellLenM": Decimal("0.75"), "conflictGranularity": "edge", "offRouteExtraOnBendM": Decimal("0.1")}

    assert read_params(from_value(given)) == CompileParams(
        cell_len_um=750_000, granularity=Granularity.EDGE, bend_extra_um=100_000
    )
    assert read_params(from_value({})) == CompileParams()
    bad: Json = {"cellLenM": 2, "polylineStepM": Decimal("0.3"), "conflictGranularity": "both"}
    assert sorted(faults(read_params, bad)) == ["$.cellLenM", "$.conflictGranularity", "$.polylineStepM"]


def test_a_fleet_is_read_out_of_a_scenario() -> None:
    form: Json = {
        "robots": [{"robotId": "R1", "profileId": "FL-STD", "parkNodeId": "PK1", "startNodeId": "LM1"}],
        "streams": [golden("Stream")],
        "params": {"lookaheadM": 10, "tickPeriodMs": 200},
        "seed": 1,
    }

    fleet = read_fleet(from_value(form))

    assert fleet == replace(
        Fleet((Truck("R1", "FL-STD", "PK1"),), (Stream("S-A", ("AP1",), ("LM3",)),)),
        lookahead_um=10_000_000,
        tick_ms=200,
    )
    assert faults(read_fleet, {"robots": [{"robotId": "R1"}]}) == ["$.robots[0].parkNodeId", "$.robots[0].profileId"]
