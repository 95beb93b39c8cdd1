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
    AGAIN,
    BEFORE,
    CREDIT_JOURNALS,
    EXPECTED,
    JOURNALS,
    SECOND,
    SHOWN,
    SINCE_FILE,
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
from tests.compatibility.serving import ENGINES, state, told_of

NOTED: Mapping[str, Any] = json.loads(EXPECTED.read_text(encoding="utf-8"))
SINCE: Mapping[str, Any] = json.loads(SINCE_FILE.read_text(encoding="utf-8"))
OF_WORLDS: Mapping[str, Any] = json.loads(WORLDS_FILE.read_text(encoding="utf-8"))
ANSWERS = msgspec.convert({**NOTED["answers"], **SINCE["answers"], **OF_WORLDS["answers"]}, dict[str, Answer])
REPLAYED = msgspec.convert(SINCE["journals"], dict[str, Answer])
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


# A room that decides otherwise by now writes other journals; that it still reads those of then is tested above.
SAME_DECISIONS = [
    name
    for name, then in ((name, ANSWERS[f"replay {name}"].said) for name in WRITING)
    if ENGINES[then["room"]].decisions == then["decisions"]
]


@pytest.mark.parametrize("name", SAME_DECISIONS)
def test_a_journal_written_now_holds_what_it_held_then(before: Path, name: str) -> None:
    asked(Question(f"{WRITING[name]} journal"), before)

    told, then = asked(Question("replay journal --json"), before).said, ANSWERS[f"replay {name}"].said
    # The version that wrote it is the one thing that may differ.
    assert {**told, "package": then["package"]} == then


@pytest.mark.parametrize("name", AGAIN)
def test_a_credit_journal_written_now_holds_what_the_second_generation_holds(before: Path, name: str) -> None:
    asked(Question(f"{WRITING[name]} journal"), before)

    told, then = asked(Question("replay journal --json"), before).said, REPLAYED[name].said
    assert {**told, "package": then["package"]} == then


@pytest.mark.parametrize("name", CREDIT_JOURNALS)
def test_a_credit_journal_of_the_second_generation_is_read_as_it_was_then(tmp_path: Path, name: str) -> None:
    second = Path(shutil.copytree(SECOND, tmp_path / "second"))

    assert asked(Question(f"replay {CREDIT_JOURNALS[name]} --json"), second) == REPLAYED[name]
    assert state(second / CREDIT_JOURNALS[name]) == SINCE["states"][name]


@pytest.mark.parametrize("name", WORLD_JOURNALS)
def test_a_journal_of_a_world_of_the_second_version_is_read_as_it_was_then(tmp_path: Path, name: str) -> None:
    worlds = Path(shutil.copytree(WORLDS, tmp_path / "worlds"))

    told = asked(Question(f"replay {WORLD_JOURNALS[name]} --json"), worlds)
    assert msgspec.to_builtins(told) == OF_WORLDS["journals"][name]
    assert state(worlds / WORLD_JOURNALS[name]) == OF_WORLDS["states"][name]


def test_a_journal_of_a_run_of_actions_written_now_holds_what_it_held_since(before: Path) -> None:
    asked(Question(f"{WRITING['a run of actions']} journal"), before)

    told = asked(Question("replay journal --json"), before).said
    then = OF_WORLDS["journals"]["a run of actions"]["said"]
    assert {**told, "package": then["package"]} == then


def test_a_server_finds_its_engines_and_jobs_as_they_were(before: Path) -> None:
    assert told_of(before / "served") == NOTED["served"]


def test_a_credit_run_that_goes_on_leaves_a_sound_journal(before: Path) -> None:
    asked(STORED["go on with a credit run"], before)

    replayed = asked(Question("replay static-journal --json"), before)
    assert (replayed.code, replayed.said["commands"], replayed.said["verified"]) == (0, 24, True)


@pytest.mark.parametrize("file", CHANGED)
def test_a_changed_byte_in_what_was_stored_does_not_go_unnoticed(before: Path, file: str) -> None:
    name, place = CHANGED[file]
    data = bytearray((before / file).read_bytes())
    data[data.index(place) + len(place) - 1] ^= 1
    (before / file).write_bytes(data)

    assert asked(STORED[name], before) != ANSWERS[name]
