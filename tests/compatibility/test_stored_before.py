"""What a version before wrote is read by this one, and everything it printed then is printed now, byte for byte.

`before` holds journals, a store of jobs, a compiled map, caches and the data of a server as an earlier version left
them; `expected.json` is what that version said of them. `making.py` tells how both were made.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.compatibility.questions import (
    BEFORE,
    EXPECTED,
    JOURNALS,
    SHOWN,
    STORE,
    STORED,
    WHOLE,
    WORLD_JOURNALS,
    WORLDS,
    WORLDS_FILE,
    WRITING,
    Answer,
    Question,
    asked,
    shown,
)
from tests.compatibility.serving import state, told_of

NOTED: Mapping[str, Any] = json.loads(EXPECTED.read_text(encoding="utf-8"))
OF_WORLDS: Mapping[str, Any] = json.loads(WORLDS_FILE.read_text(encoding="utf-8"))
ANSWERS = msgspec.convert({**NOTED["answers"], **OF_WORLDS["answers"]}, dict[str, Answer])
# A question that reads the file, and a place in the file that is not filling.
CHANGED: Mapping[str, tuple[str, bytes]] = {
    **{f"{folder}/00000000.journal": (f"replay {name}", b'"outcome"') for name, folder in JOURNALS.items()},
    "live-journal/00000003.journal": (
        "replay a live world with hooks, over several segments",
        b'"outcome"',
    ),
    STORE: ("verify the trail of a store of jobs", b"mem_3"),
    "hall.map.json": ("draw a compiled map", b"P1->A2"),
    "sea.pch": ("verify a cache", b"Wild bay"),
    "served/stores/playback/tide.pch": ("verify a served cache", b"\x01"),
}


@pytest.fixture
def before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what was stored, without the settings of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith(("PENDULA_", "SIMULATOR_"))]:
        monkeypatch.delenv(name)
    return Path(shutil.copytree(BEFORE, tmp_path / "before"))


@pytest.mark.parametrize("name", STORED)
def test_what_was_stored_is_read_as_it_was_then(before: Path, name: str) -> None:
    assert asked(STORED[name], before) == ANSWERS[name]


@pytest.mark.parametrize("name", WHOLE)
def test_a_command_says_and_writes_what_it_did_then(before: Path, name: str) -> None:
    assert asked(WHOLE[name], before) == ANSWERS[name]


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_prints_and_draws_what_it_did_then(before: Path, name: str) -> None:
    assert shown(SHOWN[name], before) == ANSWERS[name]


@pytest.mark.parametrize("name", JOURNALS)
def test_an_engine_is_found_in_the_state_in_which_it_was_left(before: Path, name: str) -> None:
    assert state(before / JOURNALS[name]) == NOTED["states"][name]


@pytest.mark.parametrize("name", WORLD_JOURNALS)
def test_a_journal_of_a_world_of_the_second_version_is_read_as_it_was_then(tmp_path: Path, name: str) -> None:
    worlds = Path(shutil.copytree(WORLDS, tmp_path / "worlds"))

    told = asked(Question(f"replay {WORLD_JOURNALS[name]} --json"), worlds)
    assert msgspec.to_builtins(told) == OF_WORLDS["journals"][name]
    assert state(worlds / WORLD_JOURNALS[name]) == OF_WORLDS["states"][name]


def test_a_journal_of_a_run_of_actions_written_now_holds_what_it_held_since(before: Path) -> None:
    asked(Question(f"{WRITING['a run of actions']} journal"), before)

    told = asked(Question("replay journal --json"), before).said
    then = OF_WORLDS["written"]["a run of actions"]
    assert {**told, "package": then["package"]} == then


def test_a_server_finds_its_engines_and_jobs_as_they_were(before: Path) -> None:
    assert told_of(before / "served") == NOTED["served"]


@pytest.mark.parametrize("file", CHANGED)
def test_a_changed_byte_in_what_was_stored_does_not_go_unnoticed(before: Path, file: str) -> None:
    name, place = CHANGED[file]
    data = bytearray((before / file).read_bytes())
    data[data.index(place) + len(place) - 1] ^= 1
    (before / file).write_bytes(data)

    assert asked(STORED[name], before) != ANSWERS[name]
