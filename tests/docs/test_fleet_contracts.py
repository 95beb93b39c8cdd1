"""The page of contracts and the schemas beside it are what the models say."""

from pathlib import Path
from typing import get_args

import pytest

from pendula.fleet.contracts import CONTRACTS
from pendula.fleet.events import FleetEvent
from scripts import contracts

LINES = (contracts.FOLDER / "contracts.toml").read_text(encoding="utf-8")


@pytest.mark.req("FLT-API-2")
def test_the_page_and_the_schemas_are_up_to_date() -> None:
    assert contracts.main(["--check"]) == 0


@pytest.mark.req("FLT-API-2")
def test_every_contract_has_its_schema_and_there_are_no_others() -> None:
    there = sorted(path.stem for path in (contracts.FOLDER / "schemas").iterdir())

    assert there == sorted(CONTRACTS)


def test_a_schema_changed_by_hand_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "contracts.toml").write_text(LINES, encoding="utf-8")
    monkeypatch.setattr(contracts, "FOLDER", tmp_path)
    assert contracts.main([]) == 0
    assert contracts.main(["--check"]) == 0
    schema = tmp_path / "schemas/Task.json"
    schema.write_text(schema.read_text(encoding="utf-8").replace("integer", "number"), encoding="utf-8")

    assert contracts.main(["--check"]) == 1
    told = "docs/reference/schemas/Task.json is not up to date; run python scripts/contracts.py\n"
    assert capsys.readouterr().err == told


def test_a_member_without_a_line_and_a_line_without_a_member_are_found() -> None:
    with pytest.raises(contracts.Unexplained, match=r"no line for Task\.taskId; no such member as Task\.taskID"):
        contracts.page(LINES.replace('\ntaskId = "name of the task"', '\ntaskID = "name of the task"'))


@pytest.mark.req("FLT-OBS-1")
def test_every_event_of_a_fleet_is_in_the_page_with_its_members_and_a_sentence() -> None:
    table = contracts.page().partition("\n## Events\n")[2]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")][1:]

    assert {row[0].strip("`") for row in rows} == {event.__struct_config__.tag for event in get_args(FleetEvent)}
    assert all(len(row) == 3 and row[2].endswith(".") for row in rows)
    assert ["`granted`", "`robotId`, `routeId`, `revision`, `grantEndUm`"] in [row[:2] for row in rows]
