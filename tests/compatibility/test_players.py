"""Players' journals of decisions 2 and 3, with every wish and parts of the day, are read as they were, and a journal
written now is that of decisions 3.

    python -m tests.compatibility.test_players

wrote `players-3` and `players-3.json` when players came to decide by version 3; `players` is of version 2.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.compatibility.generation import Generation
from tests.compatibility.questions import Question
from tests.compatibility.serving import state

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

PLAYERS = Generation(
    name="players",
    file="frame.json",
    document=FRAME,
    run=Question("playback run frame.json --json"),
    journal="frame-journal",
    questions={"replay": Question("replay frame-journal --json")},
    state=state,
)


# Decisions 3: a reset does not show again at once what was given last.
PLAYERS_3 = msgspec.structs.replace(PLAYERS, name="players-3")


@pytest.mark.parametrize("generation", [PLAYERS, PLAYERS_3], ids=["2", "3"])
def test_the_journal_is_read_as_it_was_then(tmp_path: Path, generation: Generation) -> None:
    generation.assert_reads_as_then("replay", tmp_path)


@pytest.mark.parametrize("generation", [PLAYERS, PLAYERS_3], ids=["2", "3"])
def test_the_player_is_found_in_the_state_in_which_it_was_left(tmp_path: Path, generation: Generation) -> None:
    generation.assert_state_as_then(tmp_path)


def test_the_file_runs_as_it_did_then_and_its_journal_holds_the_same(tmp_path: Path) -> None:
    PLAYERS_3.assert_runs_as_then(tmp_path)


if __name__ == "__main__":
    PLAYERS_3.make()
