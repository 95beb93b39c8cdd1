"""Makes a generation of stored files, to be read by the versions to come, and notes what this version says of them.

python -m tests.compatibility.making FOLDER
python -m tests.compatibility.making --worlds

What is in `before` was made by the version before the modules got their present places. It is never made again: a
version that writes other bytes gets a generation of its own beside it, and the old one must still be read.

`worlds` holds the journals of worlds that decide by version 2, and `worlds.json` what was said of them, and what
commands answer since then that answered otherwise by the rules of before.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from pendula.actions import Advance as Live
from pendula.actions import LiveWorld, Request, Submit, World
from pendula.documents import read_file
from pendula.jobs import Scheduler
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import Driver
from pendula.kernel.engine import Engine
from pendula.kernel.journal import FileJournal
from pendula.kernel.time import format_utc, parse_utc
from pendula.testing.tally import Add, Advance, Ask, Draw, Take, Tally
from tests.compatibility.questions import (
    BEFORE,
    JOURNALS,
    SHOWN,
    SINCE_WORLDS,
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
from tests.compatibility.serving import served, states, told_of

SEGMENT_BYTES = 2000
SERVED_SECONDS = 12
DAY = {"index": 0, "start_at": "2025-07-01T08:00:00", "end_at": "2025-07-02T08:00:00"}


def make(folder: Path) -> None:
    """All files of a generation, in a new folder."""
    folder.mkdir(parents=True)
    _documents(folder)
    commands = (
        "playback cache write sea.pch --channel sea --records sea.json --keep 16 --json",
        "credit new --participants 5 --profile ring --seed 3 -o ring.json",
        *(f"{words} {JOURNALS[name]}" for name, words in WRITING.items()),
        "fleet new --scene hall -o hall.json --profiles trucks.json --fleet fleet.json",
        "fleet compile hall.json --profiles trucks.json --fleet fleet.json -o hall.map.json",
    )
    for words in commands:
        answer = asked(Question(words), folder)
        assert answer.code == 0, (words, answer)
    _live_world(folder / "live-journal")
    _tally(folder / "tally-journal")
    with served(folder / "served", "--demo"):
        time.sleep(SERVED_SECONDS)
    # The store of the demo is at whatever moment it was left.
    (folder / STORE).unlink()
    _jobs(folder / STORE)
    for path in folder.rglob("*lock"):
        path.unlink()
    for path in folder.rglob("*.turn"):
        path.unlink()


def _documents(folder: Path) -> None:
    """The files that come with the package, as they are now."""
    (folder / "town.yaml").write_bytes((files("pendula.actions") / "example/town.yaml").read_bytes())
    (folder / "frame.yaml").write_bytes((files("pendula.playback") / "example/frame.yaml").read_bytes())
    frame: Any = read_file(folder / "frame.yaml").value
    (folder / "sea.json").write_text(json.dumps(frame["channels"][0]["records"], indent=1), encoding="utf-8")


# ---- journals --------------------------------------------------------------------------------------------------------


def _live_world(folder: Path) -> None:
    """A world with a hook, modifiers and a process; then found again, and driven on over several segments."""

    def verb(minutes: int, *locks: str, **more: object) -> dict[str, object]:
        return {"base_duration_min": minutes, "effort": "medium", "interruptible": True, "locks": list(locks), **more}

    def rest(question: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        yield {"id": f"rest after {question['action_id']}", "actor": question["actor"], "verb": "rest"}

    def rain(question: Mapping[str, Any]) -> dict[str, Any]:
        return {"rain": Decimal("1.5")} if question["verb"] == "paint" else {}

    def walk() -> Iterator[dict[str, Any]]:
        outcome = yield {"actor": "cleo", "verb": "paint"}
        assert outcome
        yield {"actor": "cleo", "verb": "rest"}

    verbs = {"repair": verb(50, "workshop", may_trigger_event=True), "paint": verb(20, "workshop"), "rest": verb(30)}
    world = LiveWorld({"epoch": DAY, "action_defs": verbs}, journal=RealDisk(folder), hook=rest, modifiers=rain)
    world.submit({"id": "car", "actor": "bo", "verb": "repair"}, {"id": "sign", "actor": "ann", "verb": "paint"})
    world.run(walk(), "walk")  # type: ignore[arg-type]
    world.advance_to(20)
    world.interrupt("car", 9, hold_min=5)
    world.advance_to(200)
    world.close()
    driver = _found_again(folder, World)
    for number in range(12):
        wish = {"id": f"late-{number}", "actor": "dan", "verb": "paint", "t": 200 + 10 * number}
        driver.submit(Submit((wish,)), "made")
        driver.submit(Live(205 + 10 * number), "made")
        driver.flush()
    driver.submit(Request(commands=({"t": 315, "cancel": "late-11"},)), "made")
    driver.submit(Live(600), "made")
    driver.close()


class Answers:
    """Says seven to whoever asks how much, and nothing more."""

    def ask(self, name: str, question: Any) -> Any:
        return {"how_much": 7, "modifiers": {}, "follow_up": []}[name]


def _found_again(folder: Path, engine: type[Engine[Any, Any]]) -> Driver[Any, Any]:
    journal = FileJournal.open(RealDisk(folder), segment_bytes=SEGMENT_BYTES)
    return Driver.recover(journal, lambda _: engine, outside=Answers(), snapshot_every=5)


def _tally(folder: Path) -> None:
    """Every command of the tally, refused ones too; the journal is left and found again in the middle."""
    config = {"seed": 11}
    journal = FileJournal.create(
        RealDisk(folder), room="tally", decisions=Tally.decisions, time_unit="tick", config=config
    )
    driver: Driver[Any, Any] = Driver(Tally.create(config), journal, outside=Answers(), snapshot_every=5)
    for part in range(2):
        for number in range(10):
            at = 10 * part + number
            for command in (Add(3, at + 4), Draw(6), Ask("bread"), Take(9), Advance(at + 1)):
                driver.submit(command, "made")
            driver.flush()
        driver.close()
        if part == 0:
            driver = _found_again(folder, Tally)


# ---- jobs ------------------------------------------------------------------------------------------------------------


class Clock:
    """A second later at each reading."""

    def __init__(self) -> None:
        self.now: int = parse_utc("2026-02-20T12:00:00Z")

    def __call__(self) -> int:
        self.now += 1_000_000
        return self.now


def _jobs(path: Path) -> None:
    """Jobs in every state: waiting, running, succeeded, failed, set aside, requeued, cancelled, released."""
    clock = Clock()
    with Scheduler.open(path) as client:
        client.calls.clock = clock
        for number in range(8):
            client.defer("memory", f"mem_{number}", "verify", max_attempts=1 + number % 2, priority="high")
        client.enqueue_batch(
            [{"object_type": "cognition", "object_id": f"cg_{n}", "action": "revalidate"} for n in range(3)]
        )
        later = client.defer("experience", "ex_1", "decay", in_sec=86_400)
        client.cancel(client.defer("experience", "ex_2", "archive", in_sec=3600)["job_id"], reason="not wanted")
        taken = client.pull(worker_id="made", limit=7)["jobs"]
        proofs = [(job["job_id"], {"worker_id": "made", "lease_token": job["lease_token"]}) for job in taken]
        (ended, proof), (again, other), *failing = proofs
        client.ack(ended, result="succeeded", next_action_at=None, outcome="kept", **proof)
        client.ack(again, result="succeeded", next_action_at=format_utc(clock.now + 10**12), **other)
        for job_id, lease in failing[:3]:
            client.fail(job_id, error="The object was busy.", **lease)
        client.renew(failing[3][0], **failing[3][1])
        client.release(failing[4][0], **failing[4][1])
        dead = client.list(status="dead_letter")["jobs"]
        client.requeue(dead[0]["job_id"], reason="mended")
        assert {job["status"] for job in client.list()["jobs"]} >= {"queued", "running", "succeeded", "dead_letter"}
        assert later["status"] == "queued"


# ---- what is expected ------------------------------------------------------------------------------------------------


def expected(before: Path, only: Iterable[str] | None = None) -> dict[str, Any]:
    """What this version answers to every question about a generation, or to some of them alone."""

    def copied(question: Question, ask: Any) -> Answer:
        with TemporaryDirectory() as folder:
            shutil.copytree(before, folder, dirs_exist_ok=True)
            answer: Answer = ask(question, Path(folder))
            return answer

    wanted = {*STORED, *WHOLE, *SHOWN} if only is None else set(only)
    answers = {name: copied(question, asked) for name, question in {**STORED, **WHOLE}.items() if name in wanted}
    answers |= {name: copied(question, shown) for name, question in SHOWN.items() if name in wanted}
    if only is not None:
        return {"answers": msgspec.to_builtins(answers)}
    with TemporaryDirectory() as folder:
        data = Path(shutil.copytree(before / "served", Path(folder) / "served"))
        return {"answers": msgspec.to_builtins(answers), "served": told_of(data), "states": states(before)}


def make_worlds() -> None:
    """The journals of worlds as they are now, and the answers that have changed by requirement."""
    shutil.rmtree(WORLDS, ignore_errors=True)
    WORLDS.mkdir()
    shutil.copy(BEFORE / "town.yaml", WORLDS)
    assert asked(Question(f"{WRITING['a run of actions']} {JOURNALS['a run of actions']}"), WORLDS).code == 0
    _live_world(WORLDS / "live-journal")
    for path in WORLDS.rglob("*lock"):
        path.unlink()
    answers = expected(BEFORE, SINCE_WORLDS)["answers"]
    journals = {name: asked(Question(f"replay {folder} --json"), WORLDS) for name, folder in WORLD_JOURNALS.items()}
    noted = {"answers": answers, "journals": msgspec.to_builtins(journals), "states": states(WORLDS, WORLD_JOURNALS)}
    told = json.dumps(noted, indent=1, sort_keys=True, ensure_ascii=False)
    WORLDS_FILE.write_text(f"{told}\n", encoding="utf-8")


def main() -> None:
    os.environ.pop("PYTHONUNBUFFERED", None)
    if sys.argv[1] == "--worlds":
        make_worlds()
        return
    folder = Path(sys.argv[1])
    if not folder.exists():
        make(folder)
    told = json.dumps(expected(folder), indent=1, sort_keys=True, ensure_ascii=False)
    (folder.parent / "expected.json").write_text(f"{told}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
