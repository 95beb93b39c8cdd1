"""Bundles: the inputs of a run, repeated with equal digests."""

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from pendula.credit.authoring.villages import village
from pendula.credit.commands import Pay
from pendula.credit.runs.artifacts import Artifacts, BundleDiffers, InvalidBundle, read_bundle, repeat_bundle
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.documents import from_value
from pendula.kernel.canonical import decode, encode

SETTINGS = change_settings(
    Settings(), {"amount_cap": "200", "clearing_policy": "adaptive", "clearing_every_n_ticks": "5"}
)


def write_bundle(folder: Path, *by_hand: Pay) -> Headless:
    """A run of twelve ticks with artifacts in the folder."""
    plan = plan_run(from_value(village(12, 3)), seed=5, intensity=60, settings=SETTINGS)
    headless = Headless(plan)
    with Artifacts(folder, plan, lambda: 0) as artifacts:
        for command in by_hand:
            headless.do(command)
        headless.step(12, artifacts.write)
        artifacts.finish(headless.run, headless.result())
    return headless


def test_a_bundle_repeats_its_run_with_equal_digests(tmp_path: Path) -> None:
    headless = write_bundle(tmp_path)

    result = repeat_bundle(read_bundle(tmp_path / "bundle.zip"))

    assert result.digests == headless.run.digests()
    assert (result.counters, result.ticks, result.seed) == (headless.run.counters, 12, 5)


def test_a_bundle_holds_the_scenario_the_settings_and_the_last_ledger(tmp_path: Path) -> None:
    headless = write_bundle(tmp_path)

    with ZipFile(tmp_path / "bundle.zip") as archive:
        files: dict[str, Any] = {
            name: decode(archive.read(name)) for name in archive.namelist() if name.endswith(".json")
        }

    assert set(files) == {f"{name}.json" for name in ("last_tick", "ledger", "repeat", "scenario", "status", "summary")}
    assert encode(files["scenario.json"]) == encode(headless.plan.config.scenario)
    assert files["repeat.json"]["config"]["settings"]["amount_cap"] == 200 * 10**8
    book = headless.run.network.ledgers["UNIT"].book
    assert len(files["ledger.json"]["UNIT"]["debts"]) == len(list(book.debt_rows())) > 0
    assert len(files["ledger.json"]["UNIT"]["lines"]) == len(book)


def test_a_manually_steered_run_differs_when_repeated(tmp_path: Path) -> None:
    scenario: Any = village(12, 3)
    people = [participant["id"] for participant in scenario["participants"]]
    write_bundle(tmp_path, *(Pay(a, b, "UNIT", "5") for a in people[:4] for b in people[4:8]))

    with pytest.raises(BundleDiffers) as differs:
        repeat_bundle(read_bundle(tmp_path / "bundle.zip"))

    assert differs.value.details["recorded"] != differs.value.details["repeated"]


@pytest.mark.parametrize("missing", ["scenario.json", "repeat.json"])
def test_an_archive_without_a_required_file_is_rejected(tmp_path: Path, missing: str) -> None:
    write_bundle(tmp_path / "run")
    with ZipFile(tmp_path / "run" / "bundle.zip") as whole, ZipFile(tmp_path / "part.zip", "w") as part:
        for name in whole.namelist():
            if name != missing:
                part.writestr(name, whole.read(name))

    with pytest.raises(InvalidBundle, match=missing):
        read_bundle(tmp_path / "part.zip")


def test_a_file_that_is_no_archive_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "bundle.zip").write_text("not an archive")

    with pytest.raises(InvalidBundle):
        read_bundle(tmp_path / "bundle.zip")


@pytest.mark.parametrize("decisions", [0, 2])
def test_a_bundle_of_another_decisions_version_is_rejected(tmp_path: Path, decisions: int) -> None:
    write_bundle(tmp_path)
    bundle = read_bundle(tmp_path / "bundle.zip")

    with pytest.raises(InvalidBundle, match=f"decisions {decisions}"):
        repeat_bundle(type(bundle)(bundle.config, decisions, 12, bundle.digests))
