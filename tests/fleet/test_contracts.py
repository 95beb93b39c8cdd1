"""Contracts: golden payloads are parsed, validated, written and compared; schemas say what the models say."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pendula.fleet import to_bytes
from pendula.fleet.artifact_form import cell_form
from pendula.fleet.schema import CONTRACTS, ContractRefused, parse, schema_of, serialise
from pendula.kernel.canonical import encode
from tests.fleet.sites import scene

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

    for wanted in BASE[name].split():
        assert member(written, wanted) == member(plain(path), wanted)


@pytest.mark.req("FLT-API-2")
@pytest.mark.parametrize("name", CONTRACTS)
def test_schemas_are_plain_json_with_numbers_as_numbers(name: str) -> None:
    schema = schema_of(name)

    text = json.dumps(schema)

    assert schema["title"] == name
    assert "decimal" not in text
    assert schema == schema_of(name)


@pytest.mark.req("FLT-API-2")
def test_what_is_no_json_is_refused() -> None:
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
