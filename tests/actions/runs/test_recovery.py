"""A killed world that continues, with its logs."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pendula.actions import LiveWorld, Logs, Refused, World
from pendula.actions.messages import WORLD_EVENTS, Event
from pendula.actions.runs.user_code import Process, UserCodeFailed
from pendula.kernel.canonical import Json
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import begin_recording
from pendula.kernel.errors import InputRefused
from pendula.kernel.journal import JournalBroken, JournalInUse, JournalMissing
from pendula.kernel.replay import WrongJournal
from pendula.testing.tally import Tally
from tests.actions.worlds import EPOCH, does, lasting, line

DEFS = {
    "saw": lasting(50, "workshop", interruptible=True),
    "nap": lasting(10),
    "tell": lasting(5, may_trigger_event=True),
}
CONFIG: dict[str, Any] = {"epoch": EPOCH, "action_defs": DEFS, "options": {"pc": "ann"}}


def event_lines(events: Any) -> list[str]:
    return [line(event) for event in events if isinstance(event, WORLD_EVENTS)]


def hook(question: Mapping[str, Json]) -> list[dict[str, Any]]:
    return [{"id": f"after {question['action_id']}", "actor": "bo", "verb": "nap"}]


def modifiers(question: Mapping[str, Json]) -> dict[str, Json]:
    return {"slow": 2} if question["verb"] == "nap" else {}


def begun(folder: Path) -> LiveWorld:
    world = LiveWorld(CONFIG, journal=folder, hook=hook, modifiers=modifiers)
    world.submit(does("A", 0, "saw"), does("B", 3, "tell"), does("C", 5, "saw"))
    world.advance_to(20)
    return world


def copy_as_after_a_crash(folder: Path) -> Path:
    """The files on disk at this moment, without the records that a close would add."""
    copy = folder.with_name("killed")
    shutil.copytree(folder, copy)
    return copy


@pytest.mark.req("ACT-USE-5")
def test_a_world_continues_from_its_journal_without_a_difference(tmp_path: Path) -> None:
    other = begun(tmp_path / "other")
    killed = copy_as_after_a_crash(tmp_path / "other")

    world = LiveWorld.recover(killed, hook=hook, modifiers=modifiers)

    assert world.state() == other.state()
    world.submit(does("D", 30, "tell"))
    other.submit(does("D", 30, "tell"))
    assert event_lines(world.advance_to(200)) == event_lines(other.advance_to(200))
    world.close()
    again = LiveWorld.recover(killed, hook=hook, modifiers=modifiers)
    assert again.state() == other.state()


@pytest.mark.req("ACT-USE-5")
@pytest.mark.parametrize("given", [{"hook": hook}, {"modifiers": modifiers}, {}])
def test_a_world_without_its_user_code_is_read_only(tmp_path: Path, given: dict[str, Any]) -> None:
    world = begun(tmp_path / "game")
    history, state, question = list(world.history()), world.state(), world.why("B")
    world.close()

    read = LiveWorld.recover(tmp_path / "game", **given)

    assert list(read.history()) == history
    assert (read.minute, read.state(), read.why("B")) == (20, state, question)
    assert read.doing()
    missing = "hook" if "hook" not in given else "modifiers"
    for go_on in (
        lambda: read.submit(does("D", 30, "nap")),
        lambda: read.advance_to(25),
        lambda: read.cancel("C"),
        lambda: read.run(workday([])),
        lambda: read.what_if(does("D", 30, "nap")),
    ):
        with pytest.raises(Refused, match=f"read-only without its {missing}; recover it with {missing}=") as refused:
            go_on()
        assert refused.value.details == {"reason": f"no {missing}"}
    assert list(read.history()) == history
    read.close()

    again = LiveWorld.recover(tmp_path / "game", hook=hook, modifiers=modifiers)
    assert again.advance_to(200)
    again.close()


@pytest.mark.req("ACT-USE-5")
@pytest.mark.parametrize("given", [{"hook": hook, "modifiers": modifiers}, {}])
def test_the_picture_of_a_recovered_world_has_earlier_events(tmp_path: Path, given: dict[str, Any]) -> None:
    world = begun(tmp_path / "game")
    picture = world.timeline("Game").svg
    killed = copy_as_after_a_crash(tmp_path / "game")

    read = LiveWorld.recover(killed, **given)

    assert read.timeline("Game").svg == picture
    if given:
        world.advance_to(200)
        read.advance_to(200)
        assert read.timeline("Game").svg == world.timeline("Game").svg
    read.close()
    world.close()


def test_a_journal_of_another_scheduler_is_not_a_world(tmp_path: Path) -> None:
    begin_recording(Tally.create({"seed": 1}), {"seed": 1}, RealDisk(tmp_path / "tally")).close()

    for _ in range(2):  # the folder is released
        with pytest.raises(WrongJournal, match="a journal of scheduler 'tally', not of 'actions'"):
            LiveWorld.recover(tmp_path / "tally")


def workday(heard: list[Any]) -> Process:
    for verb in ("nap", "saw", "nap", "nap"):
        heard.append((yield {"actor": "bo", "verb": verb}))


@pytest.mark.req("ACT-USE-5")
def test_a_process_repeats_its_steps_and_continues(tmp_path: Path) -> None:
    heard: list[Any] = []
    world = LiveWorld(CONFIG, journal=tmp_path / "game")
    world.run(workday(heard), "bo")
    world.advance_to(30)
    before = list(heard)
    killed = copy_as_after_a_crash(tmp_path / "game")

    again: list[Any] = []
    world = LiveWorld.recover(killed, processes={"bo": workday(again)})

    assert again == before
    assert event_lines(world.advance_to(100)) == [
        "60 end bo-1",
        "60 start bo-2",
        "70 end bo-2",
        "70 start bo-3",
        "80 end bo-3",
    ]
    assert [one["ended"] for one in again] == [10, 60, 70, 80]


def test_a_process_that_had_not_started_starts(tmp_path: Path) -> None:
    LiveWorld(CONFIG, journal=tmp_path / "game").close()

    world = LiveWorld.recover(tmp_path / "game", processes={"bo": workday([])})

    assert event_lines(world.advance_to(15)) == ["0 start bo-0", "10 end bo-0", "10 start bo-1"]


def test_a_process_that_differs_from_its_journal_is_refused(tmp_path: Path) -> None:
    world = LiveWorld(CONFIG, journal=tmp_path / "game")
    world.run(workday([]), "bo")
    world.advance_to(30)

    def other() -> Process:
        while True:
            yield {"actor": "bo", "verb": "nap"}

    with pytest.raises(UserCodeFailed, match="'bo' does not repeat"):
        LiveWorld.recover(copy_as_after_a_crash(tmp_path / "game"), processes={"bo": other()})


def test_a_process_can_be_started_again_under_its_old_name(tmp_path: Path) -> None:
    world = LiveWorld(CONFIG, journal=tmp_path / "game")
    world.run(workday([]), "bo")
    world.advance_to(200)
    world.close()

    world = LiveWorld.recover(tmp_path / "game")
    world.run(workday([]), "bo")

    assert event_lines(world.advance_to(205)) == ["200 start bo-4"]


@pytest.mark.req("ACT-USE-5")
def test_a_state_becomes_a_live_world_again() -> None:
    world = LiveWorld(CONFIG, hook=hook)
    world.submit(does("A", 0, "saw"), does("B", 3, "tell"))
    world.advance_to(4)

    again = LiveWorld.from_state(CONFIG, world.state(), hook=hook)

    assert again.minute == 4
    assert event_lines(again.advance_to(100)) == event_lines(world.advance_to(100)) == [
        "8 end B", "8 start after B", "18 end after B", "50 end A",
    ]  # fmt: skip


# Logs


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def lived(folder: Path) -> list[Event]:
    world = LiveWorld(CONFIG, journal=folder)
    for n in range(40):
        world.submit(
            does(f"A{n}", n * 100, "tell", actor="ann" if n % 3 else "bo", knowledge=[{"id": "k", "reveals": [0]}])
        )
    world.advance_to(4000)
    history = list(world.history())
    world.close()
    return history


@pytest.mark.req("ACT-LOG-1", "ACT-LOG-2")
def test_logs_continue_wherever_they_were_cut(tmp_path: Path) -> None:
    history = lived(tmp_path / "game")
    whole = Logs.continued(RealDisk(tmp_path / "whole"))
    whole.feed(history)
    expected = files(tmp_path / "whole")
    assert sorted(expected) == [
        "pc_log_epoch00.jsonl",
        "pc_log_epoch01.jsonl",
        "pc_log_epoch02.jsonl",
        "world_log.jsonl",
    ]

    for cut in (0, 1, 2, 30, 75, len(history)):
        folder = tmp_path / f"cut-{cut}"
        Logs.continued(RealDisk(folder)).feed(history[:cut])
        for name in ("world_log.jsonl", "pc_log_epoch00.jsonl"):
            path = folder / name
            if path.exists() and cut in (30, 75):
                path.write_bytes(path.read_bytes()[:-7])  # torn in the middle of a line
        Logs.continued(RealDisk(folder)).feed(history)
        if cut != 75:  # a torn closed chunk, which no crash can cause
            assert files(folder) == expected


@pytest.mark.req("ACT-LOG-1")
def test_logs_on_disk_keep_nothing_in_memory(tmp_path: Path) -> None:
    logs = Logs.continued(RealDisk(tmp_path / "logs"))
    logs.feed(lived(tmp_path / "game"))

    assert not logs._world
    assert not logs._chunks
    assert not logs._new_world
    assert not logs._new_chunk


def test_new_logs_do_not_overwrite_old_ones(tmp_path: Path) -> None:
    world = World.create(CONFIG)
    Logs(world.header(), RealDisk(tmp_path))

    with pytest.raises(InputRefused, match="Logs already exist"):
        Logs(world.header(), RealDisk(tmp_path))


def test_logs_without_a_header_are_refused(tmp_path: Path) -> None:
    history = lived(tmp_path / "game")

    with pytest.raises(InputRefused, match="begin with the header of an epoch"):
        Logs.continued(RealDisk(tmp_path / "logs")).feed(history[1:])


def test_a_world_without_a_journal_has_no_history() -> None:
    with pytest.raises(Refused, match="has no history"):
        LiveWorld(CONFIG).history()


def test_a_journal_has_one_writer_at_a_time(tmp_path: Path) -> None:
    world = LiveWorld(CONFIG, journal=tmp_path / "game")
    world.submit(does("A", 0, "nap"))

    with pytest.raises(JournalInUse, match="game is in use: this program or another one has it open"):
        LiveWorld.recover(tmp_path / "game")
    assert event_lines(world.advance_to(20)) == ["0 start A", "10 end A"]
    world.close()

    again = LiveWorld.recover(tmp_path / "game")
    assert again.minute == 20
    again.close()


def test_a_journal_in_use_is_refused_to_another_program(tmp_path: Path) -> None:
    world = LiveWorld(CONFIG, journal=tmp_path / "game")
    program = "import sys; from pendula.actions import LiveWorld; LiveWorld.recover(sys.argv[1])"

    other = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "game")], capture_output=True, text=True, check=False
    )

    assert "JournalInUse" in other.stderr
    world.close()


def test_an_aborted_world_is_reopened_at_once_and_the_old_one_writes_no_more(tmp_path: Path) -> None:
    def rude(_: Any) -> Any:
        raise KeyboardInterrupt

    world = LiveWorld(CONFIG, journal=tmp_path / "game", hook=rude)
    world.submit(does("A", 0, "tell"), does("B", 0, "nap"))
    with pytest.raises(KeyboardInterrupt):
        world.advance_to(60)

    again = LiveWorld.recover(tmp_path / "game", hook=lambda _: None)
    events = event_lines(again.advance_to(60))
    before = {file.name: file.read_bytes() for file in (tmp_path / "game").iterdir()}
    world.close()

    assert events == ["0 start A", "0 start B", "5 end A", "10 end B"]
    assert {file.name: file.read_bytes() for file in (tmp_path / "game").iterdir()} == before
    again.close()


def test_a_missing_folder_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(JournalBroken, match=r"The journal .*file cannot be used: Not a directory"):
        LiveWorld(CONFIG, journal=tmp_path / "file")
    with pytest.raises(JournalMissing, match=r"No journal found: /.*empty$"):
        LiveWorld.recover(tmp_path / "empty")
    LiveWorld(CONFIG, journal=tmp_path / "empty").close()
