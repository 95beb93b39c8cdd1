"""A fleet's journal of decisions 2, with meetings, troubles and what people did, is read and written as it was.

    python -m tests.compatibility.test_fleets

wrote `fleets` and `fleets.json` when fleets came to decide by version 2. They are never made again: a version that
writes other bytes gets a generation of its own beside them.
"""

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pendula.fleet.engine import FleetEngine
from pendula.fleet.runs import fleet_at, last_tick, reading
from tests.compatibility.questions import HERE, Answer, Question, asked

FLEETS = HERE / "fleets"
NOTED = HERE / "fleets.json"
JOURNAL = "crossing-journal"
RUN = Question("fleet run crossing.yaml --json")
QUESTIONS = {
    "replay": Question(f"replay {JOURNAL} --json"),
    "why": Question(f"fleet why {JOURNAL} --tick 100 --robot R2 --json"),
}
DECISIONS = 2
# What a file that says nothing of it meant then: usual values may change, what a journal says of them stays.
USUAL_THEN = {"searchNodesPerTick": 24}

CROSSING: dict[str, Any] = {
    "contractVersion": "1.0.0",
    "name": "crossing",
    "title": "Two trucks cross, one falls silent for a while, and people hold and release the other.",
    "sample": {"name": "plus-crossing"},
    "robots": [{"robotId": "R1", "parkNodeId": "E"}, {"robotId": "R2", "parkNodeId": "W"}],
    "tasks": [
        {"taskId": "T1", "pickNodeId": "N", "dropNodeId": "S", "pickDurationMs": 1000, "dropDurationMs": 1000},
        {"taskId": "T2", "pickNodeId": "S", "dropNodeId": "N", "pickDurationMs": 1000, "dropDurationMs": 1000},
    ],
    "events": [
        {"atMs": 3000, "type": "NOISE", "robotId": "R1", "forMs": 2000, "byM": 0.03},
        {"atMs": 6000, "type": "OFFLINE", "robotId": "R2", "forMs": 3000},
        {"atMs": 12000, "type": "PAUSE_ROBOT", "robotId": "R1", "reason": "somebody walks by"},
        {"atMs": 15000, "type": "RESUME_ROBOT", "robotId": "R1", "reason": "nobody is there any more"},
    ],
    "world": {"localizationShare": 0.9, "trackingShare": 0.9, "telemetryLoss": 0.01, "commandLoss": 0.01},
    "durationMs": 26000,
    "seed": 7,
    "expect": [],
}


def state(journal: Path) -> str:
    """The digest of the state in which the fleet left its journal."""
    with reading(journal) as read:
        return sha256(fleet_at(read, last_tick(read)).state()).hexdigest()


def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FLEETS, tmp_path / "fleets"))


def noted() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(NOTED.read_text(encoding="utf-8"))
    return told


# A fleet that decides otherwise by now refuses the journal in words, and gets a generation of its own.
SAME = FleetEngine.decisions == DECISIONS
same_decisions = pytest.mark.skipif(not SAME, reason="fleets decide by another version now")


@same_decisions
@pytest.mark.req("FLT-OBS-4", "FLT-TEST-50")
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_journal_is_read_as_it_was_then(tmp_path: Path, name: str) -> None:
    assert asked(QUESTIONS[name], copied(tmp_path)) == msgspec.convert(noted()[name], Answer)


@same_decisions
def test_the_fleet_is_found_in_the_state_in_which_it_was_left(tmp_path: Path) -> None:
    assert state(copied(tmp_path) / JOURNAL) == noted()["state"]


@same_decisions
def test_the_file_runs_as_it_did_then_and_its_journal_holds_the_same(tmp_path: Path) -> None:
    fleets = copied(tmp_path)
    shutil.rmtree(fleets / JOURNAL)
    (fleets / "crossing.yaml").write_text(json.dumps({**CROSSING, "params": USUAL_THEN}), encoding="utf-8")

    assert asked(RUN, fleets) == msgspec.convert(noted()["run"], Answer)
    asked(Question(f"{RUN.words} --journal {JOURNAL}"), fleets)
    told, then = asked(QUESTIONS["replay"], fleets).said, noted()["replay"]["said"]
    # The version that wrote it is the one thing that may differ.
    assert {**told, "package": then["package"]} == then


def make() -> None:
    FLEETS.mkdir()
    (FLEETS / "crossing.yaml").write_text(json.dumps(CROSSING, indent=1) + "\n", encoding="utf-8")
    answers = {"run": asked(RUN, FLEETS)}
    assert asked(Question(f"{RUN.words} --journal {JOURNAL}"), FLEETS).code == 0
    answers |= {name: asked(question, FLEETS) for name, question in QUESTIONS.items()}
    for path in FLEETS.rglob("*lock"):
        path.unlink()
    told = {**msgspec.to_builtins(answers), "state": state(FLEETS / JOURNAL)}
    NOTED.write_text(json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make()
