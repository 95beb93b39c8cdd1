"""A fleet's journal of decisions 4, with meetings, troubles and what people did, is read and written as it was; those
of decisions 2 and 3 are refused in words.

    python -m tests.compatibility.test_fleets

wrote `fleets-4` and `fleets-4.json` when fleets came to decide by version 4. `fleets` is of version 2.
"""

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pendula.fleet.engine import FleetEngine
from pendula.fleet.runs import fleet_at, last_tick, reading
from tests.compatibility.generation import Generation
from tests.compatibility.questions import HERE, Question, asked

DECISIONS = 4
BEFORE = {2: "fleets", 3: "fleets-3"}

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


# Stops count since then as time that trucks stood, beside waits.
STOOD = (
    '{"STOP_OFFLINE":3000,"STOP_OPERATOR":3000,"STOP_STALE_TELEMETRY":1500,"WAIT_NODE":10600}',
    '{"WAIT_NODE":10600}',
)

FLEETS = Generation(
    name="fleets-4",
    file="crossing.yaml",
    document=CROSSING,
    run=Question("fleet run crossing.yaml --json", reworded=(STOOD,)),
    journal="crossing-journal",
    questions={
        "replay": Question("replay crossing-journal --json"),
        "why": Question("fleet why crossing-journal --tick 100 --robot R2 --json"),
    },
    state=state,
)


def test_the_journal_is_of_the_decisions_of_today() -> None:
    # Fleets that decide otherwise get a generation of their own; the one before stays, and is refused as below.
    assert FleetEngine.decisions == DECISIONS


@pytest.mark.req("FLT-OBS-4")
@pytest.mark.parametrize("decisions", BEFORE)
@pytest.mark.parametrize("name", FLEETS.questions)
def test_a_journal_of_the_decisions_before_is_refused_in_words(tmp_path: Path, name: str, decisions: int) -> None:
    fleets = Path(shutil.copytree(HERE / BEFORE[decisions], tmp_path / "before"))

    answer = asked(FLEETS.questions[name], fleets)

    assert answer.code == 1
    assert answer.said["error"]["code"] == "other_decisions"
    assert f"was written with decisions {decisions}, this version decides by 4" in answer.said["error"]["message"]


@pytest.mark.req("FLT-OBS-4", "FLT-TEST-50")
@pytest.mark.parametrize("name", FLEETS.questions)
def test_the_journal_is_read_as_it_was_then(tmp_path: Path, name: str) -> None:
    FLEETS.assert_reads_as_then(name, tmp_path)


def test_the_fleet_is_found_in_the_state_in_which_it_was_left(tmp_path: Path) -> None:
    FLEETS.assert_state_as_then(tmp_path)


def test_the_file_runs_as_it_did_then_and_its_journal_holds_the_same(tmp_path: Path) -> None:
    FLEETS.assert_runs_as_then(tmp_path)


if __name__ == "__main__":
    FLEETS.make()
