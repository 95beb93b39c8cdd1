"""The village of the example: it runs out of credit, clearing helps, and it is reproducible."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pendula.credit.authoring.villages import village
from pendula.credit.reading import read_with_warnings

SCRIPT = Path(__file__).parents[3] / "examples/village/lives.py"
EXAMPLE = runpy.run_path(str(SCRIPT))
LIVES, TICKS, live = EXAMPLE["LIVES"], EXAMPLE["TICKS"], EXAMPLE["live"]


@pytest.fixture(scope="module")
def lives() -> dict[str, Any]:
    return {name: live(values) for name, values in LIVES.items()}


def test_the_village_equals_the_output_of_the_command() -> None:
    scenario = EXAMPLE["scenario"]()
    loaded, warnings = read_with_warnings(scenario)

    assert scenario.value == village(100, 7)
    assert (len(loaded.participants), loaded.seed, warnings) == (100, 7, ())


def test_the_village_runs_out_of_credit_unless_it_is_cleared(lives: dict[str, Any]) -> None:
    never, calendar, needed = lives.values()

    assert never.per_cent(0, 10) > 80
    assert never.per_cent(TICKS - 40, TICKS) < 20
    assert 2 * never.result.counters.committed_total < calendar.result.counters.committed_total
    assert calendar.result.counters.committed_total < needed.result.counters.committed_total
    assert not never.result.clearing
    assert calendar.result.clearing


def test_the_village_is_reproducible(lives: dict[str, Any]) -> None:
    name, values = next(iter(LIVES.items()))

    again = live(values)

    assert again == lives[name]
    assert len({life.result.digests["ledger"] for life in lives.values()}) == len(LIVES)


def test_a_share_of_zero_payments_is_zero(lives: dict[str, Any]) -> None:
    assert next(iter(lives.values())).per_cent(TICKS, TICKS + 10) == 0


@pytest.mark.campaign
def test_the_script_prints_every_life_and_draws_it(tmp_path: Path, lives: dict[str, Any]) -> None:
    picture = tmp_path / "village.svg"
    command = [sys.executable, str(SCRIPT), str(picture)]

    output = subprocess.run(command, capture_output=True, check=True, timeout=300).stdout.decode()

    for name, life in lives.items():
        assert f"{name}: {life.result.counters.committed_total} of" in output
    assert picture.read_text(encoding="utf-8").count("<polyline") == len(LIVES)


def test_the_example_has_no_other_files() -> None:
    names = sorted(path.name for path in SCRIPT.parent.iterdir() if path.name != "__pycache__")

    assert names == ["README.md", "lives.py"]
