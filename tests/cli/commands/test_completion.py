"""Shells complete commands, options and choices, also those of a scheduler that is imported on demand."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Pendula, quiet_environment


def completions(variables: dict[str, str]) -> list[str]:
    """The completions that `pendula` prints for a shell."""
    done = subprocess.run(
        [sys.executable, "-m", "pendula"],
        env={**quiet_environment(), **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_a_command_of_a_scheduler(tmp_path: Path, pendula: Pendula) -> None:
    program = tmp_path / "pendula"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pendula "$@"\n')
    program.chmod(0o755)
    script = pendula("completion", "bash").out
    pressed = 'COMP_WORDS=(pendula jobs enq); COMP_CWORD=2; _pendula_completion pendula; echo "${COMPREPLY[@]}"'

    done = subprocess.run(
        ["bash", "-c", f"{script}\n{pressed}"],
        env={**quiet_environment(), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )

    assert (done.stdout, done.stderr) == ("enqueue\n", "")


@pytest.mark.parametrize(
    ("shell", "output"),
    [
        ("zsh", """_arguments '*: :(("enqueue":"Enqueue a job, or a batch of jobs."))'"""),
        ("fish", "enqueue\tEnqueue a job, or a batch of jobs."),
    ],
)
def test_completions_have_the_form_of_each_shell(shell: str, output: str) -> None:
    line = {"_TYPER_COMPLETE_ARGS": "pendula jobs enq", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}

    assert completions({"_PENDULA_COMPLETE": f"complete_{shell}", **line}) == [output]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_is_for_its_shell_and_uses_our_variable(shell: str, pendula: Pendula) -> None:
    plain, document = pendula("completion", shell), json.loads(pendula("completion", shell, "--json").out)

    assert plain.out == document["script"] + "\n"
    assert document["shell"] == shell
    assert f"_PENDULA_COMPLETE=complete_{shell}" in plain.out
