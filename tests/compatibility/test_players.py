"""A player's journal of decisions 2, with every wish and parts of the day, is read and written as it was.

    python -m tests.compatibility.test_players

wrote `players` and `players.json` when players came to decide by version 2. They are never made again: a version that
writes other bytes gets a generation of its own beside them.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec

from tests.compatibility.questions import HERE, Answer, Question, asked
from tests.compatibility.serving import state

PLAYERS = HERE / "players"
NOTED = HERE / "players.json"
JOURNAL = "frame-journal"
RUN = Question("playback run frame.json --json")
REPLAY = Question(f"replay {JOURNAL} --json")

FRAME: dict[str, Any] = {
    "seed": 20,
    "channels": [
        {"id": "sea", "records": [{"id": n, "ts": 1000 - n, "dwell_ms": 100 * n} for n in range(1, 13)]},
        {"id": "hills", "records": [{"id": n, "ts": 1000 - n} for n in (3, 21, 22, 23)]},
        {"id": "town", "records": [{"id": n, "ts": 1000 - n} for n in (31, 32)]},
    ],
    "lookahead": 5,
    "history": 8,
    "refresh": "keep",
    "zone": "Europe/Berlin",
    "day_parts": [
        {"name": "morning", "start": "06:00", "end": "09:30", "weights": {"sea": 2, "town": 1}, "days": ["mon", "sun"]},
        {"name": "night", "start": "22:00", "end": "06:00", "weights": {"hills": 0.5}},
    ],
    "calls": [
        {"next": 9},
        {"nae_insert": {"id": 900, "ts": 5}},
        {"show_next": {"id": 77, "ts": 5}},
        {"prev": 2},
        {"next": 4},
        {"pause_channel": "sea"},
        {"next": 7},
        {"ban_artwork": 3},
        {"show_next": {"id": 3, "ts": 5}},
        {"resume_channel": "sea"},
        {"next": 12},
        {"clock": "2026-03-28T22:30:00Z"},
        {"next": 5},
        {"set": {"pick": {"mode": "random", "r": 3}}},
        {"next": 9},
        {"lift": 3},
        {"clock": "2026-03-29T04:30:00Z"},
        {"next": 9},
        {"set": {"refresh": "reset", "exposure": {"mode": "PrE", "total_count": {"sea": 12, "town": 2}}}},
        {"clock": "2026-03-29T10:00:00Z"},
        {"next": 9},
        "reset",
        {"next": 3},
    ],
}


def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PLAYERS, tmp_path / "players"))


def noted() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(NOTED.read_text(encoding="utf-8"))
    return told


def test_the_journal_is_read_as_it_was_then(tmp_path: Path) -> None:
    players = copied(tmp_path)

    assert asked(REPLAY, players) == msgspec.convert(noted()["replay"], Answer)
    assert state(players / JOURNAL) == noted()["state"]


def test_the_file_runs_as_it_did_then_and_its_journal_holds_the_same(tmp_path: Path) -> None:
    players = copied(tmp_path)
    shutil.rmtree(players / JOURNAL)

    assert asked(RUN, players) == msgspec.convert(noted()["run"], Answer)
    asked(Question(f"{RUN.words} --journal {JOURNAL}"), players)
    told, then = asked(REPLAY, players).said, noted()["replay"]["said"]
    # The version that wrote it is the one thing that may differ.
    assert {**told, "package": then["package"]} == then


def make() -> None:
    PLAYERS.mkdir()
    (PLAYERS / "frame.json").write_text(json.dumps(FRAME, indent=1) + "\n", encoding="utf-8")
    answers = {"run": asked(RUN, PLAYERS)}
    assert asked(Question(f"{RUN.words} --journal {JOURNAL}"), PLAYERS).code == 0
    for path in PLAYERS.rglob("*lock"):
        path.unlink()
    answers["replay"] = asked(REPLAY, PLAYERS)
    for path in PLAYERS.rglob("*lock"):
        path.unlink()
    told = {**msgspec.to_builtins(answers), "state": state(PLAYERS / JOURNAL)}
    NOTED.write_text(json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make()
