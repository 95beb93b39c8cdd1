"""Contracts: golden payloads are parsed, validated, written and compared; schemas agree with models."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from pendula.documents import DocumentRefused, Format, read_bytes
from pendula.fleet import read_source_map, to_bytes
from pendula.fleet.contracts import CONTRACTS, ContractRefused, contract_of, parse, schema_of, serialise
from pendula.fleet.map.site_file import cell_form
from pendula.kernel.canonical import encode
from tests.fleet.sites import scene

EXAMPLES = Path(__file__).parents[2] / "examples/specifications"
GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))

# Names of the base that may never change.
BASE = {
    "RobotState": "robotId nowMs pose v status task.taskId task.phase progress.routeId progress.segmentIndex "
    "progress.sOnSegmentM progress.sOnRouteM",
    "LockResult-blocked": "ok holdReason blocker.blockerRobotId blocker.blockerResourceId holdPoint.kind "
    "holdPoint.edgeKey holdPoint.sM holdPoint.world",
    "LockSnapshot": "edgeGroups.edgeGroupKey edgeGroups.direction edgeGroups.occupants.robotId "
    "edgeGroups.occupants.sM edgeGroups.occupants.reservedAheadM nodeLocks.nodeId nodeLocks.robotId "
    "nodeLocks.radiusM conflictLocks.conflictId conflictLocks.robotId",
}


def contract(path: Path) -> str:
    return path.stem.split("-")[0]


def path_of(stem: str) -> Path:
    return next(path for path in GOLDEN if path.stem == stem)


def plain(path: Path) -> Any:
    return json.loads(path.read_text(), parse_float=Decimal)


def member(value: Any, name: str) -> Any:
    for part in name.split("."):
        value = value[part] if isinstance(value, dict) else value[0][part]
    return value


@pytest.mark.req("FLT-API-2", "FLT-API-3")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_payload_is_read_and_written_without_loss(path: Path) -> None:
    value = parse(contract(path), path.read_bytes())

    assert serialise(value) == encode(plain(path))


@pytest.mark.req("FLT-API-2", "FLT-API-3")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_payload_fits_its_schema_and_a_spoilt_one_does_not(path: Path) -> None:
    schema = jsonschema_rs.validator_for(schema_of(contract(path)))
    form = json.loads(path.read_text())

    schema.validate(form)

    for name in schema_of(contract(path))["$defs"][CONTRACTS[contract(path)].__name__]["required"]:
        assert not schema.is_valid({key: value for key, value in form.items() if key != name})
        wrong = 7 if isinstance(form[name], dict) else {"no": ["such", "thing"]}
        assert not schema.is_valid({**form, name: wrong})


NULLABLE = ("criticalSections", "stations", "parking")


def graphs() -> dict[str, dict[str, Any]]:
    """Source maps in every notation, valid and invalid."""
    nodes = [{"id": "A", "x": 0, "y": 0}, {"id": "B", "x": 9, "y": 0.5}]
    edge = {"id": "e", "start": "A", "end": "B"}
    whole: dict[str, Any] = {"contractVersion": "1.0.0", "mapId": "m", "nodes": nodes, "edges": [edge]}
    bezier = {**edge, "className": "Bezier", "controlPos1": [3, 0], "controlPos2": {"x": 6, "y": 0.5}}
    line = {**edge, "className": "Polyline", "points": [[0, 0], {"x": 4, "y": 0}, [9, 0.5]]}
    edges = {
        "bezier": bezier,
        "line": line,
        "three": {**line, "points": [[0, 0, 0], [9, 0.5]]},
        "text": {**bezier, "controlPos1": ["3", 0]},
        "null point": {**bezier, "controlPos1": None},
        "id": {**edge, "id": None},
        "class": {**edge, "className": None},
        **{name: {**edge, name: None} for name in ("startPos", "endPos", "props")},
        "start": {**edge, "startPos": [0, 0]},
        "width": {**edge, "props": {"width": None}},
        "style": {**edge, "props": {"movestyle": None}},
        "style on the edge": {**edge, "movestyle": "backward"},
        "null style on the edge": {**edge, "movestyle": None},
        "section on the edge": {**edge, "criticalSectionId": "S"},
        "null section": {**edge, "props": {"criticalSectionId": None}},
    }
    sections = {
        "member": [{"criticalSectionId": "S", "members": [{"edgeGroupKey": "A<->B", "s0M": None, "s1M": None}]}],
        "no members": [{"criticalSectionId": "S", "members": None}],
        "capacity": [{"criticalSectionId": "S", "capacity": None, "members": [{"edgeGroupKey": "A<->B"}]}],
    }
    return {
        "plain": whole,
        "kind": {**whole, "nodes": [{**nodes[0], "kind": None}, nodes[1]]},
        **{name: {**whole, name: None} for name in (*NULLABLE, "nodes", "edges", "mapId", "contractVersion")},
        **{name: {**whole, "edges": [edge]} for name, edge in edges.items()},
        **{name: {**whole, "criticalSections": section} for name, section in sections.items()},
    }


@pytest.mark.req("FLT-API-2")
@pytest.mark.parametrize("name", graphs())
def test_schema_model_and_loader_agree_about_source_maps(name: str) -> None:
    form = graphs()[name]

    def reads(read: Callable[[], object]) -> bool:
        try:
            read()
        except (ContractRefused, DocumentRefused):
            return False
        return True

    valid = jsonschema_rs.validator_for(schema_of("SourceMap")).is_valid(form)

    assert reads(lambda: read_source_map(read_bytes(json.dumps(form).encode(), Format.JSON))) is valid
    # The model also accepts a number in quotes.
    assert name == "text" or reads(lambda: parse("SourceMap", json.dumps(form).encode())) is valid


@pytest.mark.req("FLT-API-3")
def test_every_contract_has_a_golden_payload() -> None:
    assert {contract(path) for path in GOLDEN} == set(CONTRACTS)


@pytest.mark.req("FLT-API-1")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_unknown_members_are_no_error(path: Path) -> None:
    grown = {**plain(path), "novelty": {"a": [1]}}

    assert serialise(parse(contract(path), encode(grown))) == encode(plain(path))


@pytest.mark.req("FLT-API-1")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_missing_required_member_is_an_error(path: Path) -> None:
    form = plain(path)
    for name in schema_of(contract(path))["$defs"][CONTRACTS[contract(path)].__name__]["required"]:
        with pytest.raises(ContractRefused, match=name):
            parse(contract(path), encode({key: value for key, value in form.items() if key != name}))


@pytest.mark.req("FLT-API-1")
@pytest.mark.parametrize(("version", "fits"), [("1.0.0", True), ("1.7.2", True), ("2.0.0", False)])
def test_the_same_major_version_is_read(version: str, fits: bool) -> None:
    path = next(path for path in GOLDEN if path.stem == "RobotState")
    data = encode({**plain(path), "contractVersion": version})

    if fits:
        parse("RobotState", data)
    else:
        with pytest.raises(ContractRefused):
            parse("RobotState", data)


@pytest.mark.req("FLT-API-4")
@pytest.mark.parametrize("name", BASE)
def test_the_names_of_the_base_are_kept(name: str) -> None:
    path = next(path for path in GOLDEN if path.stem == name)
    written = json.loads(serialise(parse(contract(path), path.read_bytes())), parse_float=Decimal)

    for member_name in BASE[name].split():
        assert member(written, member_name) == member(plain(path), member_name)


@pytest.mark.req("FLT-API-2")
@pytest.mark.parametrize("name", CONTRACTS)
def test_schemas_are_plain_json_with_numbers_as_numbers(name: str) -> None:
    schema = schema_of(name)

    text = json.dumps(schema)

    assert schema["title"] == name
    assert "decimal" not in text
    assert schema == schema_of(name)


@pytest.mark.req("FLT-API-2")
def test_invalid_json_is_rejected() -> None:
    for data in (b"", b"[1]", b'{"contractVersion": 1}', b'{"x": NaN}'):
        with pytest.raises(ContractRefused):
            parse("RobotState", data)


@pytest.mark.req("FLT-MAP-2")
@pytest.mark.parametrize("name", ["hall-demo", "small-warehouse"])
def test_compiled_maps_fit_their_contract(name: str) -> None:
    parse("CompiledMap", to_bytes(scene(name)))


@pytest.mark.req("FLT-EVO-2")
def test_cells_fit_their_contract() -> None:
    for cell in range(0, len(scene("tail-swing-bend").cells), 9):
        parse("Cell", encode(cell_form(scene("tail-swing-bend"), cell)))


@pytest.mark.req("FLT-API-3")
@pytest.mark.parametrize("name", ["robot-state", "lock-result", "lock-snapshot"])
def test_an_example_with_comments_is_read_as_its_contract_and_written_without_loss(name: str) -> None:
    text = (EXAMPLES / f"fleet-{name}.json5").read_text(encoding="utf-8")
    kind = contract_of(text)

    assert kind.lower() == name.replace("-", "")
    assert serialise(parse(kind, text)) == encode(plain(path_of(f"{kind}-base")))


@pytest.mark.req("FLT-API-3")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_payload_is_recognised_by_its_members(path: Path) -> None:
    assert contract_of(path.read_bytes()) == contract(path)


@pytest.mark.req("FLT-API-1")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{colour: 'red'}", "no contract has its members; the contracts are RobotProfile"),
        ("[]", "no contract has its members"),
        ("{robotId: }", "payload:1:11"),
    ],
)
def test_an_unknown_payload_is_rejected_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ContractRefused, match=message):
        contract_of(text)
