"""`pendula fleet`: compiled maps, reports and pictures of graphs; exit codes, and files written whole or not at all."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pendula.cli.commands.fleet.new import Scene
from pendula.documents import read_file
from pendula.fleet import compile_map, from_bytes
from pendula.fleet.compiler.samples import FL_STD, reference_fleet, reference_hall
from pendula.fleet.scenarios import Run, read_scenario
from pendula.kernel.canonical import decode, encode
from tests.cli.conftest import Finished, Pendula


class Site:
    """A folder with the reference hall, its truck and its fleet, as `pendula fleet new` writes them."""

    def __init__(self, folder: Path, pendula: Pendula) -> None:
        self.folder = folder
        self.graph, self.trucks, self.fleet = (folder / name for name in ("hall.json", "trucks.json", "fleet.json"))
        made = pendula(
            *("fleet", "new", "--scene", "hall", "-o", self.graph, "--profiles", self.trucks, "--fleet", self.fleet)
        )
        assert made.code == 0, made.err

    def path(self, name: str) -> Path:
        return self.folder / name

    def changed(self, name: str, file: Path, change: Callable[[Any], object]) -> Path:
        """A copy of one of the files with a change."""
        document = json.loads(file.read_text(encoding="utf-8"))
        change(document)
        target = self.path(name)
        target.write_text(json.dumps(document, indent=1), encoding="utf-8")
        return target


@pytest.fixture
def site(tmp_path: Path, pendula: Pendula, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("COLUMNS", "170")
    return Site(tmp_path, pendula)


def error(ended: Finished) -> Any:
    return json.loads(ended.err)["error"]


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def wrong_in_three_places(graph: Any) -> None:
    graph["edges"][0]["end"] = "NOPE"
    graph["edges"].append(dict(graph["edges"][3]))
    graph["edges"][5]["props"]["movestyle"] = "sideways"


def shared_rest(fleet: Any) -> None:
    fleet["robots"][1]["parkNodeId"] = "P1"


# compile


def test_compile_writes_the_bytes_of_the_library(site: Site, pendula: Pendula) -> None:
    out = site.path("hall.map.json")

    ended = pendula("fleet", "compile", site.graph, "--profiles", site.trucks, "-o", out)

    compiled = compile_map(reference_hall(), [FL_STD])
    assert (ended.code, ended.err) == (0, "")
    assert from_bytes(out.read_bytes()).compiled_hash == compiled.compiled_hash
    assert f"compiled {compiled.compiled_hash}" in lines(ended.out)
    assert "holds 12 nodes, 26 edges, 13 lanes, 592 cells, 13 corridors, 6 sections, 0 conflicts" in lines(ended.out)


def test_compile_with_json_prints_one_canonical_document(site: Site, pendula: Pendula) -> None:
    out = site.path("hall.map.json")

    ended = pendula("fleet", "compile", site.graph, "--profiles", site.trucks, "-o", out, "--json")

    said = decode(ended.out.encode())
    assert isinstance(said, dict)
    assert ended.out.encode() == encode(said) + b"\n"
    assert said["file"] == str(out)
    assert said["bytes"] == out.stat().st_size
    assert said["severities"] == {"ERROR": 0, "INFO": 0, "WARN": 0}
    assert said["certificate"] is None
    assert "findings" not in said


@pytest.mark.req("FLT-MAP-18")
def test_the_order_of_lists_does_not_change_the_bytes(site: Site, pendula: Pendula) -> None:
    turned = site.changed(
        "turned.json", site.graph, lambda graph: [graph[name].reverse() for name in ("nodes", "edges")]
    )

    for graph, out in ((site.graph, "a.json"), (turned, "b.json")):
        assert pendula("fleet", "compile", graph, "--profiles", site.trucks, "-o", site.path(out)).code == 0

    assert site.path("a.json").read_bytes() == site.path("b.json").read_bytes()


@pytest.mark.req("FLT-MAP-16")
def test_a_map_with_errors_is_refused_and_nothing_is_written(site: Site, pendula: Pendula) -> None:
    wrong = site.changed("wrong.json", site.graph, wrong_in_three_places)
    out = site.path("out.json")

    ended = pendula("fleet", "compile", wrong, "--profiles", site.trucks, "-o", out)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        f"pendula: {wrong} cannot be used: DANGLING_EDGE in line 5: edge 'e00001' names the node 'NOPE', which does "
        "not exist (add the node or remove the edge) and 2 more (map_refused)\n"
    )
    assert not out.exists()
    assert not list(site.folder.glob("*.part"))


def test_the_refusal_carries_every_finding(site: Site, pendula: Pendula) -> None:
    wrong = site.changed("wrong.json", site.graph, wrong_in_three_places)

    ended = pendula("fleet", "compile", wrong, "--profiles", site.trucks, "-o", site.path("x.json"), "--json")

    assert error(ended)["code"] == "map_refused"
    found = [(one["severity"], one["code"], one["place"]) for one in error(ended)["details"]["findings"]]
    assert found[:3] == [
        ("ERROR", "DANGLING_EDGE", f"{wrong}:5:3"),
        ("ERROR", "DUPLICATE_ID", f"{wrong}:265:3"),
        ("ERROR", "INVALID_DIRECTION", f"{wrong}:55:3"),
    ]


def test_a_report_of_a_refused_map_shows_its_findings(
    site: Site, pendula: Pendula, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # the path of the map is part of a row
    wrong = site.changed("wrong.json", site.graph, wrong_in_three_places)

    ended = pendula("fleet", "compile", wrong, "--profiles", site.trucks, "-o", site.path("x.json"), "--report")

    assert ended.code == 1
    assert any("DUPLICATE_ID" in line and "rename one" in line for line in lines(ended.out))


def test_a_report_of_an_accepted_map_shows_every_finding(site: Site, pendula: Pendula) -> None:
    graph, out = site.path("demo.json"), site.path("demo.map.json")
    pendula("fleet", "new", "--scene", "hall-demo", "-o", graph)

    told = pendula("fleet", "compile", graph, "--profiles", site.trucks, "-o", out, "--report", "--json")
    drawn = pendula("fleet", "compile", graph, "--profiles", site.trucks, "-o", out, "--report")

    said = json.loads(told.out)
    assert said["severities"] == {"ERROR": 0, "INFO": 3, "WARN": 3}
    assert [one["severity"] for one in said["findings"]] == ["WARN"] * 3 + ["INFO"] * 3
    assert said["findings"][1] == {
        "code": "MISSING_RETURN_EDGE",
        "details": {"edgeGroupKey": "LM7<->LM8"},
        "message": "one-way group",
        "place": "LM7<->LM8",
        "remedy": "add the edge back if trucks may drive both ways",
        "severity": "WARN",
    }
    assert any(line.startswith("WARN MISSING_RETURN_EDGE LM7<->LM8") for line in lines(drawn.out))


def test_the_option_granularity_takes_precedence_over_the_parameter_file(site: Site, pendula: Pendula) -> None:
    params = site.path("params.yaml")
    params.write_text("conflictGranularity: edge\ncellLenM: 1\n", encoding="utf-8")
    call = ("fleet", "compile", site.graph, "--profiles", site.trucks, "--params", params)

    of_file = json.loads(pendula(*call, "-o", site.path("a.json"), "--json").out)
    of_line = json.loads(pendula(*call, "-o", site.path("b.json"), "--granularity", "window", "--json").out)

    assert of_file["conflictGranularity"] == "edge"
    assert of_line["conflictGranularity"] == "window"
    assert of_file["sizes"]["cells"] < 592


def test_a_compilation_with_a_previous_map_has_the_bytes_of_a_full_one(site: Site, pendula: Pendula) -> None:
    before, full, quick = (site.path(name) for name in ("before.json", "full.json", "quick.json"))
    moved = site.changed("moved.json", site.graph, lambda graph: graph["nodes"][-1].update(x=38))
    pendula("fleet", "compile", site.graph, "--profiles", site.trucks, "-o", before)

    pendula("fleet", "compile", moved, "--profiles", site.trucks, "-o", full)
    ended = pendula("fleet", "compile", moved, "--profiles", site.trucks, "-o", quick, "--previous", before)

    assert ended.code == 0
    assert quick.read_bytes() == full.read_bytes()
    assert quick.read_bytes() != before.read_bytes()


def test_a_damaged_previous_map_is_refused(site: Site, pendula: Pendula) -> None:
    out, previous = site.path("hall.map.json"), site.path("damaged.json")
    pendula("fleet", "compile", site.graph, "--profiles", site.trucks, "-o", out)
    previous.write_bytes(out.read_bytes().replace(b'"lengthM":14', b'"lengthM":15', 1))

    ended = pendula(
        *("fleet", "compile", site.graph, "--profiles", site.trucks, "-o", site.path("x.json"), "--previous", previous)
    )

    assert ended == Finished(3, "", f"pendula: {previous}: The compiled map does not match its hash (map_damaged)\n")


def test_an_input_file_is_never_overwritten(site: Site, pendula: Pendula) -> None:
    before = site.graph.read_bytes()

    ended = pendula("fleet", "compile", site.graph, "--profiles", site.trucks, "-o", site.graph)

    assert ended.code == 2
    assert "is an input of this command; name another file to write" in ended.err
    assert site.graph.read_bytes() == before


def test_faults_of_the_graph_have_line_and_column(site: Site, pendula: Pendula) -> None:
    bad = site.path("bad.yaml")
    bad.write_text("contractVersion: 1.0.0\nmapId: x\nnodes: [{id: A, x: left, y: 0}]\nedges: 7\n", encoding="utf-8")

    ended = pendula("fleet", "compile", bad, "--profiles", site.trucks, "-o", site.path("x.json"))

    assert ended.code == 1
    assert {line.split(" ")[0] for line in ended.err.splitlines()} == {f"{bad}:3:20:", f"{bad}:4:8:"}


def test_a_missing_folder_is_refused(site: Site, pendula: Pendula) -> None:
    out = site.path("nowhere") / "x.json"

    ended = pendula("fleet", "compile", site.graph, "--profiles", site.trucks, "-o", out)

    assert ended.code == 3
    assert "No such file or directory" in ended.err


# the certificate


@pytest.mark.req("FLT-LIVE-7")
def test_a_live_fleet_gets_its_certificate(site: Site, pendula: Pendula) -> None:
    ended = pendula(
        *("fleet", "compile", site.graph, "--profiles", site.trucks, "-o", site.path("x.json"), "--fleet", site.fleet)
    )

    assert ended.code == 0
    assert "LIVE: 3 trucks and 18 ways meet W1 to W3." in lines(ended.out)


@pytest.mark.req("FLT-LIVE-7")
def test_a_fleet_that_could_deadlock_gets_the_counterexample_and_a_remedy(site: Site, pendula: Pendula) -> None:
    fleet = site.changed("shared.json", site.fleet, shared_rest)

    drawn = pendula("fleet", "check", site.graph, "--profiles", site.trucks, "--fleet", fleet)
    told = pendula("fleet", "check", site.graph, "--profiles", site.trucks, "--fleet", fleet, "--json")

    assert (drawn.code, told.code) == (1, 1)
    assert "NOT LIVE, W1: trucks 'R1' and 'R2' share the rest node 'P1'." in lines(drawn.out)
    assert "Remedy: add a parking spur for R2." in lines(drawn.out)
    why = json.loads(told.out)["certificate"]["counterexample"]
    assert (why["condition"], why["remedy"]) == ("W1", "add a parking spur for R2")


def test_a_map_that_is_not_live_for_the_fleet_is_not_written(site: Site, pendula: Pendula) -> None:
    fleet, out = site.changed("shared.json", site.fleet, shared_rest), site.path("x.json")

    ended = pendula("fleet", "compile", site.graph, "--profiles", site.trucks, "-o", out, "--fleet", fleet)

    assert ended.code == 1
    assert "MAP_NOT_LIVE: trucks 'R1' and 'R2' share the rest node 'P1' (add a parking spur for R2)" in ended.err
    assert not out.exists()


# check


def test_a_valid_map_prints_one_line_and_its_warnings(
    site: Site, pendula: Pendula, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")

    ended = pendula("fleet", "check", site.graph, "--profiles", site.trucks)

    doubt, last = lines(ended.out)
    assert (ended.code, ended.err) == (0, "")
    assert doubt.startswith("doubt: FL-STD: localizationErrorM rests on 'P95, hall test 2026-01'")
    sizes = "12 nodes, 26 edges, 13 lanes, 592 cells, 13 corridors, 6 sections, 0 conflicts"
    assert last == f"{site.graph} is sound: {sizes}; no findings."


@pytest.mark.req("FLT-MAP-15")
def test_check_prints_code_place_severity_and_remedy_of_every_finding(site: Site, pendula: Pendula) -> None:
    wrong = site.changed("wrong.json", site.graph, wrong_in_three_places)

    ended = pendula("fleet", "check", wrong, "--profiles", site.trucks, "--json")

    said = json.loads(ended.out)
    assert ended.code == 1
    assert error(ended)["details"] == {"errors": 3, "path": str(wrong)}
    assert (said["sound"], said["severities"]) == (False, {"ERROR": 3, "INFO": 0, "WARN": 2})
    assert {tuple(sorted(one)) for one in said["findings"]} == {
        ("code", "details", "message", "place", "remedy", "severity")
    }
    text = wrong.read_text(encoding="utf-8").splitlines()
    lines = [one["details"]["line"] for one in said["findings"][:3]]
    assert [one["place"] for one in said["findings"]] == [*(f"{wrong}:{one}:3" for one in lines), "A1<->A2", "B1<->B2"]
    # The first edge, the second one of that id, and the one with the strange style.
    assert [next(one for one in text[line:] if '"id"' in one).split('"')[3] for line in lines] == [
        *("e00001", "e00004", "e00006")
    ]
    assert lines[1] > lines[2]
    assert ended.out.encode() == encode(decode(ended.out.encode())) + b"\n"


def test_check_collects_the_faults_of_graph_and_profiles(site: Site, pendula: Pendula) -> None:
    graph = site.path("bad.yaml")
    graph.write_text("contractVersion: 1.0.0\nmapId: x\nnodes: [{id: A, x: .inf, y: 0}]\nedges: 7\n", encoding="utf-8")
    trucks = site.changed("short.json", site.trucks, lambda truck: truck["geometry"].pop("head"))

    ended = pendula("fleet", "check", graph, "--profiles", trucks, "--json")

    found = [(one["code"], one["place"]) for one in json.loads(ended.out)["findings"]]
    assert ended.code == 1
    assert ("MAP_PARSE_ERROR", f"{graph}:4:8") in found
    assert "PROFILE_MISSING_FIELD" in [code for code, _ in found]
    assert {place.rsplit(":", 2)[0] for _, place in found} == {str(graph), str(trucks)}


def test_a_fleet_is_not_checked_on_a_map_with_errors(site: Site, pendula: Pendula) -> None:
    wrong = site.changed("wrong.json", site.graph, wrong_in_three_places)

    ended = pendula("fleet", "check", wrong, "--profiles", site.trucks, "--fleet", site.fleet)

    assert "No certificate: fix the errors first." in lines(ended.out)


def test_a_truck_without_a_rest_node_is_a_finding(site: Site, pendula: Pendula) -> None:
    fleet = site.changed("lost.json", site.fleet, lambda one: one["robots"][0].update(parkNodeId="P9"))

    said = json.loads(pendula("fleet", "check", site.graph, "--profiles", site.trucks, "--fleet", fleet, "--json").out)

    assert [(one["code"], one["place"]) for one in said["findings"]] == [("MISSING_PARKING_NODE", "R1")]
    assert said["certificate"] is None


def test_many_findings_are_shortened(site: Site, pendula: Pendula, monkeypatch: pytest.MonkeyPatch) -> None:
    from pendula.cli.commands.fleet import tables

    monkeypatch.setattr(tables, "MOST_A_CODE", 2)
    wrong = site.changed("wrong.json", site.graph, lambda one: [edge.update(end="X") for edge in one["edges"][:4]])

    ended = pendula("fleet", "check", wrong, "--profiles", site.trucks)

    assert "DANGLING_EDGE and 3 more" in lines(ended.out)
    assert "--json lists all" in lines(ended.out)


def test_equal_findings_at_several_places_share_a_row(
    site: Site, pendula: Pendula, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pendula.cli.commands.fleet import tables

    monkeypatch.setattr(tables, "MOST_PLACES", 2)
    one_way = site.changed("one-way.json", site.graph, lambda one: one.update(edges=one["edges"][:12:2]))

    ended = pendula("fleet", "check", one_way, "--profiles", site.trucks)

    rows = [line for line in lines(ended.out) if "MISSING_RETURN_EDGE" in line]
    assert len(rows) == 1
    assert "A1<->A2; A1<->B1" in rows[0]
    assert "--json lists all" in lines(ended.out)


@pytest.mark.parametrize("place", ["nowhere/out.json", "folder"])
def test_an_unwritable_file_is_named_as_given(place: str, site: Site, pendula: Pendula) -> None:
    site.path("folder").mkdir()
    out = site.path(place)

    ended = pendula("fleet", "compile", site.graph, "--profiles", site.trucks, "-o", out)

    assert ended.code == 3
    assert f"{out}: " in ended.err


@pytest.mark.req("FLT-MAP-15")
def test_findings_are_grouped_by_code_with_the_rarest_first(site: Site, pendula: Pendula) -> None:
    def spoil(graph: Any) -> None:
        for edge in graph["edges"][:3]:
            edge["end"] = "X"
        graph["edges"][3]["props"]["movestyle"] = "sideways"
        graph["edges"][4]["props"]["moveStyle"] = "forward"

    wrong = site.changed("wrong.json", site.graph, spoil)

    said = json.loads(pendula("fleet", "check", wrong, "--profiles", site.trucks, "--json").out)

    codes = [(one["severity"], one["code"]) for one in said["findings"]]
    errors = [code for severity, code in codes if severity == "ERROR"]
    assert errors[:4] == ["INVALID_DIRECTION", "DANGLING_EDGE", "DANGLING_EDGE", "DANGLING_EDGE"]
    assert ("WARN", "MAP_PARSE_ERROR") in codes


def test_traffic_parameters_that_do_not_fit_a_truck_are_warned_about(site: Site, pendula: Pendula) -> None:
    def vaguely(profile: Any) -> None:
        profile["safety"]["localizationErrorM"]["value"] = 0.12

    vague = site.changed("vague.json", site.trucks, vaguely)
    told = json.loads(pendula("fleet", "check", site.graph, "--profiles", vague, "--json").out)["doubts"]

    assert [one.partition("parameters of traffic: ")[2] for one in told if "parameters of traffic" in one] == [
        "STOP_LINE_TOLERANCE: stopLineTolM is 0.1, the place of FL-STD is known to 0.12 only",
        "PROGRESS_TOLERANCE: progressRegressTolM is 0.3, two reports of FL-STD may be 0.32 apart",
    ]


@pytest.mark.req("FLT-FAIL-8")
def test_a_truck_more_precise_than_the_default_needs_no_other_parameters(site: Site, pendula: Pendula) -> None:
    def exactly(profile: Any) -> None:
        profile["safety"]["localizationErrorM"]["value"] = 0.05

    exact = site.changed("exact.json", site.trucks, exactly)
    told = json.loads(pendula("fleet", "check", site.graph, "--profiles", exact, "--json").out)["doubts"]

    assert [one for one in told if "parameters of traffic" in one] == []


def test_unknown_members_are_warned_about(site: Site, pendula: Pendula) -> None:
    params, fleet = site.path("params.json"), site.path("odd-fleet.json")
    params.write_text('{"contractVersion": "1.0.0", "cellLenm": 1, "cellLenM": 0.5}')
    known = json.loads(site.fleet.read_bytes())
    fleet.write_text(json.dumps({**known, "params": {"lookahedM": 9, "tickPeriodMs": 100}, "colour": "red"}))

    ended = pendula(
        *("fleet", "check", site.graph, "--profiles", site.trucks, "--params", params, "--fleet", fleet, "--json")
    )

    told = [doubt for doubt in json.loads(ended.out)["doubts"] if "has no effect" in doubt]
    assert ended.code == 0
    assert told == [
        f"{params}: the member 'cellLenm' is not known and has no effect (did you mean cellLenM?)",
        f"{fleet}: the member 'colour' is not known and has no effect",
        f"{fleet}: the member 'params.lookahedM' is not known and has no effect (did you mean lookaheadM?)",
    ]


def test_a_parameter_of_trucks_is_referred_to_their_profile(site: Site, pendula: Pendula) -> None:
    fleet = site.path("gap-fleet.json")
    fleet.write_text(json.dumps({**json.loads(site.fleet.read_bytes()), "params": {"minFollowingGapM": 3}}))

    ended = pendula("fleet", "check", site.graph, "--profiles", site.trucks, "--fleet", fleet, "--json")

    assert (
        f"{fleet}: the member 'params.minFollowingGapM' is not known and has no effect; it belongs to the truck "
        "profile: safety.minFollowingGapM"
    ) in json.loads(ended.out)["doubts"]


@pytest.mark.parametrize("call", [("check",), ("compile", "-o", "out.json")])
def test_missing_profiles_are_refused_with_a_way_to_get_one(
    site: Site, pendula: Pendula, call: tuple[str, ...]
) -> None:
    ended = pendula("fleet", *call, site.graph)

    assert ended.code == 2
    assert "Missing option '--profiles'" in ended.err
    assert "pendula fleet new --scene hall -o example.json --profiles trucks.json" in " ".join(ended.err.split())


# draw


def test_a_compiled_map_and_its_graph_give_the_same_picture(site: Site, pendula: Pendula) -> None:
    compiled, a, b = (site.path(name) for name in ("hall.map.json", "a.svg", "b.svg"))
    pendula("fleet", "compile", site.graph, "--profiles", site.trucks, "-o", compiled)

    first = pendula("fleet", "draw", compiled, "-o", a)
    second = pendula("fleet", "draw", site.graph, "--profiles", site.trucks, "-o", b)

    assert (first.code, second.code) == (0, 0)
    assert first.out == f"{a} shows reference-hall, {a.stat().st_size} bytes.\n"
    assert a.read_bytes() == b.read_bytes()
    assert ElementTree.parse(a).getroot().tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.req("FLT-MAP-21")
def test_a_file_that_ends_in_geojson_becomes_geojson(site: Site, pendula: Pendula) -> None:
    a, b = site.path("a.geojson"), site.path("b.GeoJSON")
    command = ("fleet", "draw", site.graph, "--profiles", site.trucks)

    first = pendula(*command, "-o", a)
    second = pendula(*command, "-o", b)
    few = pendula(*command, "-o", site.path("c.geojson"), "--layers", "zones")

    assert (first.code, second.code, few.code) == (0, 0, 0)
    assert a.read_bytes() == b.read_bytes()
    assert json.loads(a.read_bytes())["type"] == "FeatureCollection"
    kinds = {one["properties"]["kind"] for one in json.loads(site.path("c.geojson").read_bytes())["features"]}
    assert kinds == {"zone", "window"}


def test_geojson_has_no_highlights(site: Site, pendula: Pendula) -> None:
    out = site.path("a.geojson")

    ended = pendula("fleet", "draw", site.graph, "--profiles", site.trucks, "-o", out, "--highlight", "NODE:B2")

    assert ended.code == 2
    assert "--highlight is for SVG only" in ended.err
    assert not out.exists()


def test_json_output_has_layers_and_highlights(site: Site, pendula: Pendula) -> None:
    out = site.path("a.svg")

    ended = pendula(
        *("fleet", "draw", site.graph, "--profiles", site.trucks, "-o", out, "--layers", "labels, edges"),
        *("--highlight", "NODE:B2", "--highlight", "A1->A2#9", "--json"),
    )

    said = json.loads(ended.out)
    assert said["layers"] == ["edges", "labels"]
    assert said["highlight"] == ["NODE:B2", "A1->A2#9"]
    assert said["compiledMapHash"] == compile_map(reference_hall(), [FL_STD]).compiled_hash


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--layers", "edges,zone"], 2, "There is no layer 'zone' (did you mean zones?)"),
        (["--highlight", "WESt"], 1, "has no node, edge, group, corridor, conflict, section or cell 'WESt' (did you"),
    ],
)
def test_an_invalid_drawing_is_refused_and_nothing_is_written(
    more: list[str], code: int, said: str, site: Site, pendula: Pendula
) -> None:
    out = site.path("a.svg")

    ended = pendula("fleet", "draw", site.graph, "--profiles", site.trucks, "-o", out, *more)

    assert ended.code == code
    assert said in ended.err
    assert not out.exists()


def test_a_graph_without_profiles_is_not_a_compiled_map(site: Site, pendula: Pendula) -> None:
    ended = pendula("fleet", "draw", site.graph, "-o", site.path("a.svg"))

    said = f"pendula: {site.graph} is not a compiled map; for a graph pass --profiles FILE (wrong_usage)\n"
    assert ended == Finished(2, "", said)


def test_a_file_without_the_header_of_a_map_is_not_read_to_its_end(site: Site, pendula: Pendula) -> None:
    endless = site.path("zeros.map")
    endless.touch()
    os.truncate(endless, 1 << 40)  # a hole: nothing is on the disk, and no memory holds it

    ended = pendula("fleet", "draw", endless, "-o", site.path("a.svg"))

    said = f"pendula: {endless} is not a compiled map; for a graph pass --profiles FILE (wrong_usage)\n"
    assert ended == Finished(2, "", said)


def test_parameters_belong_to_a_graph(site: Site, pendula: Pendula) -> None:
    ended = pendula("fleet", "draw", site.graph, "-o", site.path("a.svg"), "--params", site.fleet)

    assert ended.code == 2
    assert "--params is for a graph" in ended.err


# new

GREAT = (Scene.WAREHOUSE, Scene.LARGE, Scene.BUILT_WAREHOUSE)


@pytest.mark.parametrize(
    "scene",
    [pytest.param(scene, marks=pytest.mark.long) if scene in GREAT else scene for scene in Scene],
)
def test_every_example_is_a_map_with_a_live_fleet(scene: Scene, site: Site, pendula: Pendula) -> None:
    graph, fleet, day = site.path("scene.json"), site.path("trucks-of-it.json"), site.path("day.json")

    made = pendula("fleet", "new", "--scene", scene.value, "-o", graph, "--fleet", fleet, "--scenario", day, "--json")
    checked = pendula("fleet", "check", graph, "--profiles", site.trucks, "--fleet", fleet, "--json")

    assert made.code == 0
    assert json.loads(checked.out)["severities"]["ERROR"] == 0
    assert json.loads(checked.out)["certificate"]["live"]
    begun = Run(read_scenario(read_file(day), day.parent))
    assert begun.step().refused_routes == ()
    assert [one.robot_id for one in begun.robots] == [one["robotId"] for one in json.loads(fleet.read_text())["robots"]]


@pytest.mark.parametrize("scene", ["tail-swing-bend", pytest.param("spur", marks=pytest.mark.long)])
def test_the_day_of_an_example_finishes(scene: str, tmp_path: Path, pendula: Pendula) -> None:
    maps, days = tmp_path / "maps", tmp_path / "days"
    maps.mkdir()
    days.mkdir()
    made = pendula("fleet", "new", "--scene", scene, "-o", maps / "g.json", "--scenario", days / "day.json")

    ended = pendula("fleet", "run", days / "day.json")

    assert (made.code, ended.code) == (0, 0), ended.err
    assert json.loads((days / "day.json").read_text())["mapFile"] == "../maps/g.json"


def test_new_writes_the_files_of_the_library(site: Site) -> None:
    from pendula.cli.commands.fleet import files

    assert files.read_trucks(site.trucks) == (FL_STD,)
    assert files.fleet_of(site.fleet) == reference_fleet()
    assert (
        compile_map(files.read_graph(site.graph), [FL_STD]).map_hash == compile_map(reference_hall(), [FL_STD]).map_hash
    )


def test_a_random_map_has_the_requested_nodes_and_is_reproducible(site: Site, pendula: Pendula) -> None:
    for name in ("a.json", "b.json"):
        call = ("fleet", "new", "--scene", "random", "--nodes", 9, "--seed", 4, "-o", site.path(name), "--json")
        assert json.loads(pendula(*call).out)["nodes"] == 9

    assert site.path("a.json").read_bytes() == site.path("b.json").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--scene", "hall", "--nodes", "9"], "--nodes is for random maps only"),
        (["--scene", "hall", "--seed", "9"], "--seed is for random maps and live-map only"),
        (["--scene", "random", "--nodes", "0"], "a random map has 1 to 2000 nodes"),
        (["--scene", "random", "--seed", "-1"], "it must be 0 to"),
        (["--scene", "random", "--nodes", "1", "--fleet", "f.json"], "No fleet was found for which random-0 is LIVE"),
        (["--scene", "hall", "--scenario", "x.json"], "need different files"),
        (["--scene", "hall", "--profiles", "x.json"], "need different files"),
        (["--scene", "hall", "--profiles", "x.yaml"], "its name must end in .json"),
        (["--scene", "halle"], "'halle' is not one of 'hall'"),
    ],
)
def test_an_impossible_map_is_wrong_usage(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    monkeypatch.chdir(tmp_path)

    ended = pendula("fleet", "new", "-o", "x.json", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert list(tmp_path.iterdir()) == []


# what all of them share


@pytest.mark.parametrize(
    "arguments",
    [
        ["compile", "g.json", "--profiles", "p.json", "-o", "m.json"],
        ["check", "g.json", "--profiles", "p.json"],
        ["draw", "m.json", "-o", "m.svg"],
        ["new", "--scene", "hall", "-o", "g.json"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_missing_extra_is_named_in_one_sentence(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    monkeypatch.setitem(sys.modules, "shapely", None)

    ended = pendula("fleet", *arguments)

    assert ended == Finished(
        3, "", 'pendula: This needs shapely; install with: pip install "pendula[fleet]" (missing_extra)\n'
    )


def test_help_loads_no_geometry(python: Callable[..., Finished]) -> None:
    code = "import sys\nfrom pendula.cli import main\ntry:\n main()\nfinally:\n print(*sys.modules, file=sys.stderr)"

    ended = python(code, "fleet", "compile", "--help")

    assert ended.code == 0
    assert not {"numpy", "scipy", "shapely"} & set(ended.err.split())


@pytest.mark.req("FLT-RTP-13")
def test_a_fleet_whose_trucks_are_never_admitted_is_invalid(site: Site, pendula: Pendula) -> None:
    deaf = site.changed("deaf.json", site.trucks, lambda one: one.update(capabilities=["turn", "ackseq"]))
    arguments = (site.graph, "--profiles", deaf)

    checked = pendula("fleet", "check", *arguments, "--fleet", site.fleet, "--json")
    compiled = pendula("fleet", "compile", *arguments, "--fleet", site.fleet, "-o", site.path("m.json"))
    alone = pendula("fleet", "check", *arguments, "--json")

    found = [(one["severity"], one["message"]) for one in json.loads(checked.out)["findings"]]
    known = "stop, pause, resume, turnInPlace, speedLimit, ackSeq, pathSlice"
    named = "ackseq (did you mean ackSeq?), turn"
    assert (checked.code, compiled.code, alone.code) == (1, 1, 0)
    assert [text for severity, text in found if severity == "ERROR"] == [
        f"FL-STD names {named}, which no gateway knows; known are {known}",
        "FL-STD can neither be stopped nor paused: no truck without a way to stop is let in",
    ]
    assert json.loads(checked.out)["certificate"] is None
    # For the map alone it is all one.
    assert [one["severity"] for one in json.loads(alone.out)["findings"] if "FL-STD" in one["message"]] == ["WARN"] * 2


def test_misspelt_names_are_refused_with_the_nearest_name(site: Site, pendula: Pendula) -> None:
    def spoil(graph: Any) -> None:
        graph["edges"][0]["end"] = graph["edges"][0]["end"].lower()
        graph["edges"][1]["props"]["direction"] = "bidirectional"
        next(one for one in graph["nodes"] if one.get("kind") == "ParkPoint")["kind"] = "Parkpoint"

    def misspell(profile: Any) -> None:
        profile["dynamics"]["aBrake"] = profile["dynamics"].pop("a_brake")
        profile["safety"]["localizationErrorM"]["source"] = "measured"

    wrong, odd = site.changed("wrong.json", site.graph, spoil), site.changed("odd.json", site.trucks, misspell)
    graph = json.loads(pendula("fleet", "check", wrong, "--profiles", site.trucks, "--json").out)
    profile = json.loads(pendula("fleet", "check", site.graph, "--profiles", odd, "--json").out)
    said = [one["message"] for one in (*graph["findings"], *profile["findings"])]

    assert any("which does not exist (did you mean A" in one for one in said)
    assert any("'bidirectional'" in one and "(did you mean both?)" in one for one in said)
    assert any("did you mean MEASURED?" in one for one in said)
    assert any("aBrake" in one and "(did you mean a_brake?)" in one for one in said)
    assert "1 node of the unknown kind 'Parkpoint' (did you mean ParkPoint?)" in graph["doubts"]


def test_misspelt_names_in_a_fleet_are_refused_with_the_nearest_name(site: Site, pendula: Pendula) -> None:
    def misspell(fleet: Any) -> None:
        fleet["robots"][0]["parkNodeId"] = fleet["robots"][0]["parkNodeId"].lower()
        fleet["robots"][1]["profileId"] = "FL_STD"
        fleet["streams"][0]["robotIds"] = ["RT1"]

    odd = site.changed("odd.json", site.fleet, misspell)
    ended = pendula("fleet", "check", site.graph, "--profiles", site.trucks, "--fleet", odd, "--json")
    said = " ".join(one["message"] for one in json.loads(ended.out)["findings"])

    assert all(f"(did you mean {name}?)" in said for name in ("P1", "FL-STD", "R1"))
