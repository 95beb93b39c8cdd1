"""What is asked of files that an earlier version wrote, and how: through the command line and public names only.

Modules move between versions; commands, what they print and what they store do not. An answer is what a command says
and the digests of what it writes, so that one that differs by a byte is another answer.
"""

import io
import json
import runpy
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec import Struct

from pendula.cli import main

HERE = Path(__file__).resolve().parent
BEFORE = HERE / "before"
EXPECTED = HERE / "expected.json"
# A second generation: worlds decide by version 2 since then.
WORLDS = HERE / "worlds"
WORLDS_FILE = HERE / "worlds.json"
EXAMPLES = HERE.parent.parent / "examples"
# Longer documents are told by their digest alone.
SHOWN_CHARACTERS = 1500


class Question(Struct, frozen=True):
    """Words after `pendula`, or after `python examples/`, and what they write that is compared as well; `since` are
    members of jobs that came later, `added` such members of the document, `reworded` sentences for people, as they are
    now and as they were then; programs go by the codes beside them."""

    words: str
    writes: tuple[str, ...] = ()
    since: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    reworded: tuple[tuple[str, str], ...] = ()


class Answer(Struct, frozen=True):
    """How a question was answered; `said` is the document on stdout where it is short enough to be read."""

    code: int
    stdout: str
    said: Any
    written: dict[str, str]


LIVE = "a live world with hooks, over several segments"
JOURNALS: Mapping[str, str] = {
    "a run of actions": "town-journal",
    LIVE: "live-journal",
    "a run of playback": "frame-journal",
    "a tally over several segments": "tally-journal",
    "a served tally": "served/rooms/tally/demo",
    "a served town": "served/rooms/actions/town",
    "a served picture frame": "served/rooms/playback/frame",
}
STORE = "served/stores/jobs/jobs.db"
DB = f"--db sqlite:///{STORE} --json"
# How the journals were written that a command writes: the last word, the folder, is to be added.
WRITING: Mapping[str, str] = {
    "a run of actions": "actions run town.yaml --json --journal",
    "a run of playback": "playback run frame.yaml --json --journal",
}
TRUCKS = "--profiles trucks.json --fleet fleet.json --json"

STORED: Mapping[str, Question] = {
    **{f"replay {name}": Question(f"replay {folder} --json") for name, folder in JOURNALS.items()},
    "replay a store of jobs": Question(f"replay {DB}"),
    "check a store of jobs": Question(f"jobs check {DB}"),
    "verify the trail of a store of jobs": Question(f"jobs audit verify {DB}"),
    "list the jobs of a store": Question(
        f"jobs list {DB}", since=("payload", "cancel_requested_at", "progress", "outcome_result")
    ),
    "read the trail of a store of jobs": Question(f"jobs audit --limit 500 {DB}"),
    "draw a compiled map": Question("fleet draw hall.map.json -o hall.svg --json", ("hall.svg",)),
    "compile a map on the one before": Question(
        f"fleet compile hall.json --previous hall.map.json -o again.map.json {TRUCKS}", ("again.map.json",)
    ),
    "inspect a cache": Question("playback cache inspect sea.pch --json"),
    "verify a cache": Question("playback cache verify sea.pch --json"),
    "verify a served cache": Question("playback cache verify served/stores/playback/tide.pch --json"),
}
WHOLE: Mapping[str, Question] = {
    "run the town": Question("actions run town.yaml --logs logs --gantt town.svg --json", ("logs", "town.svg")),
    "check the town": Question("actions check town.yaml --json"),
    "run the frame": Question("playback run frame.yaml --json"),
    "ask the frame why": Question(
        "playback why frame.yaml 5 --json",
        reworded=(
            ("ties go to the channel followed first.", "of equals the first in the order of following is taken."),
        ),
    ),
    "write a cache": Question(
        "playback cache write new.pch --channel sea --records sea.json --keep 16 --json", ("new.pch",)
    ),
    "invent a ring": Question("credit new --participants 5 --profile ring --seed 3 --json"),
    "invent a village": Question("credit new --participants 40 --profile village --seed 7 --json"),
    "compile the hall": Question(f"fleet compile hall.json -o new.map.json {TRUCKS}", ("new.map.json",)),
    "check the hall": Question(f"fleet check hall.json {TRUCKS}"),
    "draw the hall": Question("fleet draw hall.map.json -o hall.geojson --json", ("hall.geojson",)),
}
SHOWN: Mapping[str, Question] = {
    "a story of the town": Question("town/story.py town.svg", ("town.svg",)),
    "an evening before the frame": Question("frame/evening.py"),
    "pictures for the frame": Question("frame/pictures.py pictures", ("pictures",)),
}


WORLD_JOURNALS = {name: JOURNALS[name] for name in ("a run of actions", LIVE)}
# What the decisions of worlds and players and the form of their output changed.
SINCE_WORLDS = ("run the town", "run the frame", "a story of the town")


def asked(question: Question, folder: Path) -> Answer:
    """What the command says in this folder, which holds a copy of what was stored."""
    return _answer(question, folder, ["pendula", *question.words.split()], main)


def shown(question: Question, folder: Path) -> Answer:
    """What the script of the examples prints in this folder."""
    script, *words = question.words.split()
    path = str(EXAMPLES / script)
    return _answer(question, folder, [path, *words], lambda: runpy.run_path(path, run_name="__main__"))


def _answer(question: Question, folder: Path, argv: list[str], call: Callable[[], object]) -> Answer:
    out, code = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True), 0
    with chdir(folder), redirect_stdout(out), redirect_stderr(out), patch.object(sys, "argv", argv):
        try:
            call()
        except SystemExit as ended:
            code = int(ended.code or 0)
    out.seek(0)
    said = out.read()
    for now, then in question.reworded:
        said = said.replace(now, then)
    if question.since:
        said = _without(said, question.since)
    if question.added:
        told = {key: value for key, value in json.loads(said).items() if key not in question.added}
        said = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    written = {name: digest_of(folder / name) for name in question.writes}
    return Answer(code, sha256(said.encode()).hexdigest(), _readable(said), written)


def _without(said: str, members: tuple[str, ...]) -> str:
    """The document without members that jobs have got since; where they are new, they are null."""
    document = json.loads(said)
    for job in document["jobs"]:
        assert [job.pop(name) for name in members] == [None] * len(members)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def _readable(said: str) -> Any:
    if len(said) > SHOWN_CHARACTERS:
        return None
    return json.loads(said) if said.startswith("{") and said.count("\n") == 1 else said


def digest_of(path: Path) -> str:
    """Of a file its bytes; of a folder the names and bytes of its files, in the order of the names."""
    if path.is_file():
        return sha256(path.read_bytes()).hexdigest()
    files = sorted(file for file in path.rglob("*") if file.is_file())
    lines = (f"{file.relative_to(path).as_posix()} {digest_of(file)}\n" for file in files)
    return sha256("".join(lines).encode()).hexdigest()
