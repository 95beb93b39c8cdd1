"""Journals of fleets that decided by earlier versions are refused in words."""

import shutil
from pathlib import Path

import pytest

from pendula.fleet.engine import FleetEngine
from tests.compatibility.questions import HERE, Question, asked

BEFORE = {2: "fleets", 3: "fleets-3", 4: "fleets-4"}
QUESTIONS = {
    "replay": Question("replay crossing-journal --json"),
    "why": Question("fleet why crossing-journal --tick 100 --robot R2 --json"),
}


@pytest.mark.req("FLT-OBS-4")
@pytest.mark.parametrize("decisions", BEFORE)
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_journal_of_the_decisions_before_is_refused_in_words(tmp_path: Path, name: str, decisions: int) -> None:
    fleets = Path(shutil.copytree(HERE / BEFORE[decisions], tmp_path / "before"))

    answer = asked(QUESTIONS[name], fleets)

    assert answer.code == 1
    assert answer.said["error"]["code"] == "other_decisions"
    said = f"was written with decisions {decisions}, this version decides by {FleetEngine.decisions}"
    assert said in answer.said["error"]["message"]
