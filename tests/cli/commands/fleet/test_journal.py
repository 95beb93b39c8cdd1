"""`pendula fleet run --journal` and the commands on journals: replay, why, export, incidents."""

import json
import os
import re
import shutil
from itertools import count
from pathlib import Path

import pytest

from pendula.cli.commands.fleet import journal
from pendula.kernel.disk import RealDisk
from tests.cli.conftest import Pendula
from tests.fleet.runs.journals import recorded
from tests.fleet.runs.test_incidents import jumped
from tests.fleet.runs.test_reading import forged


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of the first half minute of head-on."""
    return recorded("head-on", tmp_path_factory.mktemp("kept"), 300, snapshot_every=100)


def test_a_run_writes_a_journal_that_every_command_reads(pendula: Pendula, tmp_path: Path) -> None:
    ran = pendula("fleet", "run", "near-lanes-apart", "--journal", tmp_path / "j", "--json")
    again = pendula("fleet", "run", "near-lanes-apart", "--journal", tmp_path / "j")

    assert ran.code == 0, ran.err
    assert again.code == 1
    assert "A journal already exists" in again.err
    assert json.loads(pendula("replay", tmp_path / "j", "--json").out)["verified"]
    document = json.loads(pendula("fleet", "replay", tmp_path / "j", "--json").out)
    assert document["firstDifference"] is None
    assert document["ticks"] == json.loads(ran.out)["simulatedMs"] // 100


def test_an_incomplete_journal_of_a_run_is_reported(
    pendula: Pendula, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, writes = RealDisk.append, count()

    def append(disk: RealDisk, name: str, data: bytes) -> None:
        if next(writes) > 20:
            raise OSError(5, "Input/output error")
        write(disk, name, data)

    monkeypatch.setattr(RealDisk, "append", append)

    ran = pendula("fleet", "run", "near-lanes-apart", "--journal", tmp_path / "j")

    said = f"pendula: {tmp_path / 'j'} holds only a part of the run: [Errno 5] Input/output error (journal_broken)\n"
    assert (ran.code, ran.err) == (3, said)
    assert "All expectations were met." in ran.out


def test_the_journal_of_a_run_on_a_nearly_full_disk_is_complete(
    pendula: Pendula, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RealDisk, "free_bytes", lambda _: 1)

    ran = json.loads(pendula("fleet", "run", "near-lanes-apart", "--journal", tmp_path / "j", "--json").out)

    document = json.loads(pendula("fleet", "replay", tmp_path / "j", "--json").out)
    assert document["ticks"] == ran["simulatedMs"] // 100


@pytest.mark.req("FLT-OBS-5")
def test_a_replay_prints_the_changes_of_each_tick(pendula: Pendula, kept: Path) -> None:
    ended = pendula("fleet", "replay", kept, "--tick", 100, "--upto", 300, "--speed", 10_000)

    assert ended.code == 0, ended.err
    assert "WAIT_SAFE_STATE, R1 is in the way" in ended.out
    assert "Every tick matches its record." in ended.out
    assert "100 to 300" in ended.out


def test_a_replay_prints_no_terminal_control_sequence(
    pendula: Pendula, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_event_sentence", lambda _: "task T\x1b]0;mine\x07\x1b[2J\u202e\r is DONE")

    ended = pendula("fleet", "replay", kept, "--tick", 100, "--upto", 101, "--speed", 10_000)

    assert r"task T\x1b]0;mine\x07\x1b[2J\u202e\r is DONE" in ended.out
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(ended.out)


@pytest.mark.req("FLT-OBS-4")
def test_a_replay_reports_an_incomplete_tail_and_keeps_it(pendula: Pendula, kept: Path, tmp_path: Path) -> None:
    torn = Path(shutil.copytree(kept, tmp_path / "torn"))
    segment = max(torn.glob("*.journal"), key=lambda one: one.name)
    segment.write_bytes(segment.read_bytes() + b"torn")

    ended = pendula("fleet", "replay", torn)

    assert ended.code == 0, ended.err
    said = " ".join(ended.out.split())
    assert "ends in the middle of record" in said
    assert "Its 4 bytes from offset" in said
    assert json.loads(pendula("fleet", "replay", torn, "--json").out)["cutTailBytes"] == 4
    assert segment.read_bytes().endswith(b"torn")
    assert "in the middle" not in pendula("fleet", "replay", kept).out


@pytest.mark.req("FLT-OBS-4")
def test_a_forged_journal_is_reported_with_tick_truck_and_field(pendula: Pendula, kept: Path, tmp_path: Path) -> None:
    tick = forged(kept, tmp_path / "f", b'"reasonCode":"WAIT_SAFE_STATE"', b'"reasonCode":"WAIT_SPACING"')

    ended = pendula("fleet", "replay", tmp_path / "f", "--json")

    assert ended.code == 1
    error = json.loads(ended.err)["error"]
    assert (error["code"], error["details"]["tick"], error["details"]["field"]) == (
        "replay_differs",
        tick,
        "reasonCode",
    )


@pytest.mark.req("FLT-OBS-7")
def test_why_answers_for_a_tick_of_a_journal(pendula: Pendula, kept: Path) -> None:
    document = json.loads(pendula("fleet", "why", kept, "--tick", 250, "--robot", "R2", "--json").out)

    assert (document["reasonCode"], document["blockerRobotId"], document["tick"]) == ("WAIT_SAFE_STATE", "R1", 250)
    assert document["cycle"] == ["R1", "R2"]
    assert document["sentence"].startswith("R2 waits")
    assert [(one["robotId"], one["reasonCode"]) for one in document["because"]] == [("R1", "GOING_TO_PARK")]


@pytest.mark.req("FLT-OBS-7")
def test_why_prints_the_reasons_of_the_whole_chain(pendula: Pendula, kept: Path) -> None:
    ended = pendula("fleet", "why", kept, "--tick", 250, "--robot", "R2")

    assert re.search(
        r"^in words +R2 waits: .*\n(.*\n)*because +R1 drives to its parking place\.", ended.out, re.MULTILINE
    )


@pytest.mark.req("FLT-OBS-7")
def test_why_answers_for_a_task(pendula: Pendula) -> None:
    asked = ("fleet", "why", "hall", "--task", "S-OUT-1", "--at", 5_000)
    document = json.loads(pendula(*asked, "--json").out)

    assert (document["taskId"], document["state"], document["robotId"]) == ("S-OUT-1", "IN_PROGRESS", "R1")
    assert document["sentence"] == "Task 'S-OUT-1' is under way: R1 is on its way to the pick 'WEST'."
    assert [one["robotId"] for one in document["because"]] == ["R1"]
    assert pendula(*asked).out.startswith("task      S-OUT-1 at 5.0 s, IN_PROGRESS")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--tick", 5000, "--robot", "R2"), 1, "it shows ticks 1 to 300"),
        (("--tick", 5, "--robot", "R22"), 1, "There is no truck 'R22'"),
        (("--tick", 5, "--robot", "R22"), 1, "(did you mean R2?)"),
        (("--at", 5, "--robot", "R2"), 2, "A journal takes --tick"),
        (("--tick", 5, "--task", "T9"), 1, "At that moment there is no open task 'T9'"),
        (("--tick", 5), 2, "Name one truck"),
        (("--tick", 5, "--robot", "R2", "--task", "T9"), 2, "Name one truck"),
        (("R1", "--tick", 5, "--robot", "R2"), 2, "Name one truck"),
    ],
)
def test_why_names_the_fault_of_a_question(
    pendula: Pendula, kept: Path, arguments: tuple[object, ...], code: int, said: str
) -> None:
    ended = pendula("fleet", "why", kept, *arguments)

    assert ended.code == code
    assert said in ended.err


@pytest.mark.req("FLT-OBS-6")
@pytest.mark.req("FLT-EVO-23")
def test_other_parameters_are_shown_beside_the_recorded_ones(pendula: Pendula, kept: Path, tmp_path: Path) -> None:
    other = tmp_path / "params.yaml"
    other.write_text("refuge: false\n")

    document = json.loads(pendula("fleet", "replay", kept, "--against", other, "--json").out)
    wrong = pendula("fleet", "replay", kept, "--against", other, "--tick", 5)

    assert document["changed"] == {"refuge": [True, False]}
    assert document["ticksThatDiffer"] > 0
    assert wrong.code == 2
    shown = pendula("fleet", "replay", kept, "--against", other)
    assert shown.code == 0
    assert "{" not in shown.out
    assert "b got the same reports" in " ".join(shown.out.split())


PAUSED = """
contractVersion: 1.0.0
name: paused
sample: {name: plus-crossing}
durationMs: 20000
robots: [{robotId: R1, parkNodeId: E}, {robotId: R2, parkNodeId: W}]
tasks: [{taskId: T1, pickNodeId: N, dropNodeId: S}, {taskId: T2, pickNodeId: S, dropNodeId: N}]
events:
  - {atMs: 3000, type: PAUSE_ROBOT, robotId: R1, reason: somebody walks by}
  - {atMs: 6000, type: OFFLINE, robotId: R2, forMs: 4000}
  - {atMs: 9000, type: RESUME_ROBOT, robotId: R1, reason: nobody is there any more}
expect: []
"""


@pytest.mark.req("FLT-OBS-6")
def test_a_run_a_comparison_and_an_export_agree_on_waits(pendula: Pendula, tmp_path: Path) -> None:
    (tmp_path / "paused.yaml").write_text(PAUSED)
    (tmp_path / "params.yaml").write_text("refuge: true\n")
    journal = tmp_path / "j"
    ran = json.loads(pendula("fleet", "run", tmp_path / "paused.yaml", "--journal", journal, "--json").out)
    against = json.loads(pendula("fleet", "replay", journal, "--against", tmp_path / "params.yaml", "--json").out)
    ticks = json.loads(pendula("fleet", "export", journal, "--json").out)
    codes = [one["reasonCode"] for tick in ticks for one in tick["decisions"]["lockResults"]]
    stood = {code: 100 * codes.count(code) for code in sorted({*codes} - {None})}

    assert {"STOP_OPERATOR", "STOP_OFFLINE"} < stood.keys()
    assert ran["metrics"]["waitMsByReason"] == stood
    assert against["a"]["waitMsByReason"] == stood


@pytest.mark.parametrize("command", ["replay", "export"])
def test_unknown_ticks_are_wrong_usage(pendula: Pendula, kept: Path, command: str) -> None:
    ended = pendula("fleet", command, kept, "--tick", 50, "--upto", 40)
    one = pendula("fleet", command, kept, "--tick", 50, "--upto", 50)

    assert (ended.code, one.code) == (2, 0)
    assert "--upto 40 is before --tick 50: there is no tick between them" in ended.err


def test_unknown_parameters_are_refused_by_name(pendula: Pendula, kept: Path, tmp_path: Path) -> None:
    other = tmp_path / "params.yaml"
    other.write_text("refuse: false\n")

    ended = pendula("fleet", "replay", kept, "--against", other)

    assert ended.code == 1
    assert "refuse" in ended.err


@pytest.mark.req("FLT-OBS-2")
def test_an_export_follows_a_link_or_a_pipe_and_replaces_neither(pendula: Pendula, kept: Path, tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "ticks.jsonl")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    for name in ("link.jsonl", "pipe"):
        assert pendula("fleet", "export", kept, "--tick", 10, "--upto", 10, "-o", tmp_path / name).code == 0
    through = os.read(reader, 65_536)
    os.close(reader)

    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "pipe").is_fifo()
    assert through == (tmp_path / "ticks.jsonl").read_bytes() != b""


def test_an_export_to_a_file_equals_one_to_stdout(pendula: Pendula, kept: Path, tmp_path: Path) -> None:
    file = tmp_path / "ticks.jsonl"

    to_file = pendula("fleet", "export", kept, "--tick", 10, "--upto", 12, "-o", file)
    to_stdout = pendula("fleet", "export", kept, "--tick", 10, "--upto", 12)

    assert to_file.code == to_stdout.code == 0
    assert file.read_text() == to_stdout.out
    assert [json.loads(line)["tick"] for line in file.read_text().splitlines()] == [10, 11, 12]
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.req("FLT-OBS-11")
def test_incidents_are_listed_and_bundled(pendula: Pendula, tmp_path: Path) -> None:
    jumped(tmp_path / "j", 30, 10)

    listed = pendula("fleet", "incidents", tmp_path / "j")
    made = json.loads(pendula("fleet", "incidents", tmp_path / "j", "-o", tmp_path / "b", "--json").out)

    assert "R1" in listed.out
    assert len(made["bundles"]) == 1
    assert json.loads(pendula("replay", made["bundles"][0], "--json").out)["verified"]


def test_a_directory_without_a_journal_is_refused(pendula: Pendula, tmp_path: Path) -> None:
    ended = pendula("fleet", "replay", tmp_path)

    assert ended.code == 3
    assert "journal" in ended.err
