"""`pendula fleet tune`: the best trial, and refused options."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Pendula

FILE = """\
contractVersion: 1.0.0
name: small
sample: {name: plus-crossing}
robots: [{robotId: R1, parkNodeId: E}, {robotId: R2, parkNodeId: W}]
streams: [{streamId: S, pickNodeIds: [N], dropNodeIds: [S], pickDurationMs: 1000, dropDurationMs: 1000}]
durationMs: 1000
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(FILE)
    return file


@pytest.mark.req("FLT-LIVE-11")
def test_every_trial_has_a_row_and_one_is_the_best(pendula: Pendula, small: Path, tmp_path: Path) -> None:
    picture = tmp_path / "throughput.svg"
    ended = pendula(
        *("fleet", "tune", small, "--minutes", "1", "--workers", "1"),
        *("--one-way", "0", "--svg", picture, "--json"),
    )
    form = json.loads(ended.out)

    assert ended.code == 0, ended.err
    assert [row["trucks"] for row in form["rows"]] == [1, 2]
    assert form["best"] in form["rows"]
    assert picture.read_text().startswith("<svg")


@pytest.mark.campaign
@pytest.mark.req("FLT-LIVE-11", "FLT-LIVE-14")
def test_the_preferred_directions_of_the_best_trial_are_named(pendula: Pendula, tmp_path: Path) -> None:
    scenario = tmp_path / "hall.yaml"
    hall = "contractVersion: 1.0.0\nname: hall\nsample: {name: reference-hall, trucks: 1}\ndurationMs: 1000\n"
    scenario.write_text(hall)
    asked = ("fleet", "tune", scenario, "--minutes", "2", "--workers", "1", "--one-way", "2000")
    form = json.loads(pendula(*asked, "--json").out)
    there = [one.split("->") for one in form["directions"]]

    assert there
    assert not any([b, a] in there for a, b in there)
    assert f"prefers these directions: {form['directions'][0]}" in pendula(*asked).out


def test_a_map_without_lanes_in_two_directions_is_reported(pendula: Pendula, small: Path) -> None:
    ended = pendula("fleet", "tune", small, "--minutes", "1", "--workers", "1", "--trucks", "1", "--one-way", "0,2000")

    assert "--one-way 0 is enough" in " ".join(ended.out.split())


def test_the_table_marks_the_best(pendula: Pendula, small: Path) -> None:
    ended = pendula("fleet", "tune", small, "--minutes", "1", "--workers", "1", "--trucks", "1", "--one-way", "0")

    assert ended.code == 0, ended.err
    assert "best" in ended.out
    assert "tasks an hour" in ended.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--trucks", "3"), "1 to 2 can be tried"),
        (("--trucks", "many"), "not a list of whole numbers"),
        (("--one-way", "a,b"), "not a list of whole numbers"),
        (("--vary", "starveMs"), "not of the form NAME=V1,V2"),
        (("--vary", "starvMs=1"), "did you mean"),
        (("--svg", "nowhere/at/all.svg"), "does not exist"),
    ],
)
def test_an_invalid_option_is_wrong_usage(arguments: tuple[str, ...], says: str, pendula: Pendula, small: Path) -> None:
    ended = pendula("fleet", "tune", small, *arguments, "--json")

    assert ended.code == 2
    assert says in json.loads(ended.err)["error"]["message"]


def test_a_parameter_that_does_not_fit_the_trucks_is_named_as_the_reason(pendula: Pendula, small: Path) -> None:
    ended = pendula(
        *("fleet", "tune", small, "--minutes", "1", "--workers", "1", "--trucks", "1", "--one-way", "0"),
        *("--vary", "lookaheadM=1"),
    )
    said = " ".join(ended.out.split())

    assert "not LIVE" not in said
    assert "1 truck cannot run on this map with lookaheadM=1: traffic cannot start: LOOKAHEAD_TOO_SHORT" in said
    assert "No combination was acceptable: fix the combinations that cannot run (LOOKAHEAD_TOO_SHORT)." in said
