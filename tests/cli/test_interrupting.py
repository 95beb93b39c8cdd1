"""Ctrl+C ends every command with 130 and one line that names what was saved."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pendula.cli.failing import ending, keeping
from pendula.cli.output import Output
from tests.cli.conftest import Pendula, quiet_environment

PATIENCE_SECONDS = 300
DAY = """
epoch: {index: 0, start_at: 2025-07-01T00:00:00, end_at: 2025-07-02T00:00:00}
action_defs: {clean: {base_duration_min: 60, effort: medium, interruptible: true}}
actions_submitted: [{id: floor, actor: ann, verb: clean, submitted_at: 2025-07-01T08:05:00}]
"""
FRAME = "channels: [{id: sea, records: [{id: 1, ts: 1}, {id: 2, ts: 2}]}]\n"


def interrupted() -> int:
    raise KeyboardInterrupt


def test_an_interrupted_command_without_output_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert ending([], interrupted) == 130
    assert capsys.readouterr().err == "pendula: Interrupted: nothing was written (interrupted)\n"


def test_a_saved_file_is_reported_for_its_own_command_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        keeping("a.journal holds it")
        return interrupted()

    ending(["--json"], work)
    error = json.loads(capsys.readouterr().err)["error"]
    ending([], interrupted)

    assert (error["code"], error["message"]) == ("interrupted", "Interrupted: a.journal holds it")
    assert "nothing was written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("actions run day.yaml --journal kept", "kept has everything up to the interrupt"),
        ("actions run day.yaml", "nothing was written"),
        ("playback run frame.yaml --count 9 --journal kept", "kept holds what was shown until then"),
        ("playback run frame.yaml --count 9", "nothing was written"),
        (
            "credit run village.json --ticks 9 --journal kept",
            "kept holds every tick until then; continue with --resume",
        ),
        ("credit run village.json --ticks 9 --out out", "out holds what was written until then"),
        ("credit run village.json --ticks 9", "nothing was written"),
        ("credit sweep village.json --ticks 9 --seeds 2", "nothing was written"),
        ("fleet run head-on --journal kept", "kept holds every tick until then"),
        ("fleet run head-on", "nothing was written"),
    ],
)
def test_an_interrupted_long_command_reports_what_it_saved(
    words: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("day.yaml").write_text(DAY)
    Path("frame.yaml").write_text(FRAME)
    pendula("credit", "new", "--participants", 9, "--seed", 1, "-o", "village.json")
    # Ctrl+C after the work has started.
    monkeypatch.setattr(Output, "progress", lambda *_: interrupted())

    ended = pendula(*words.split())

    assert (ended.code, ended.out) == (130, "")
    assert ended.err.startswith(f"pendula: Interrupted: {kept}")
    assert ended.err.endswith(" (interrupted)\n")


@pytest.mark.usefixtures("interruptible")
def test_a_real_ctrl_c_leaves_a_journal_that_replays(tmp_path: Path, pendula: Pendula) -> None:
    journal = tmp_path / "kept"
    pendula("credit", "new", "--participants", 30, "--seed", 1, "-o", tmp_path / "village.json")
    command = [sys.executable, "-m", "pendula", "credit", "run", "village.json", "--ticks", "1000000"]
    with subprocess.Popen(
        [*command, "--journal", "kept"],
        cwd=tmp_path,
        env=quiet_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        until = time.monotonic() + PATIENCE_SECONDS
        while sum(file.stat().st_size for file in journal.glob("*.journal")) < 1 << 16 and time.monotonic() < until:
            assert running.poll() is None
            time.sleep(0.02)
        os.kill(running.pid, signal.SIGINT)
        _, error = running.communicate(timeout=PATIENCE_SECONDS)

    assert running.returncode == 130
    assert error == ("pendula: Interrupted: kept holds every tick until then; continue with --resume (interrupted)\n")
    assert pendula("replay", journal).code == 0
