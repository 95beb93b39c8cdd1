"""Which Python `scripts/setup` takes: told by commands on the path that answer as Pythons would."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.setup.conftest import ROOT

# Stands in for a Python: judges its own version, and says who it is when it is given the steps to take.
STAND_IN = """#!/bin/sh
[ "$1" = -c ] && exit {verdict}
echo "{name} takes $2"
"""
NEW_ENOUGH, TOO_OLD, BROKEN = 0, 1, 127


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A path with what a POSIX shell script may call and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "dirname").symlink_to("/usr/bin/dirname")
    return folder


def put(path: Path, name: str, verdict: int) -> None:
    (path / name).write_text(STAND_IN.format(name=name, verdict=verdict))
    (path / name).chmod(0o755)


def set_up(path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts/setup"), "run"]
    return subprocess.run(command, env={"PATH": str(path), **environ}, capture_output=True, text=True, check=False)


def test_the_newest_named_python_is_taken(path: Path) -> None:
    for name in ("python3.11", "python3.13", "python3", "python3.12"):
        put(path, name, NEW_ENOUGH)

    assert set_up(path).stdout == "python3.13 takes run\n"


def test_a_command_that_only_prints_an_error_is_skipped(path: Path) -> None:
    put(path, "python3.13", BROKEN)
    put(path, "python3.12", BROKEN)
    put(path, "python3.11", NEW_ENOUGH)

    assert set_up(path).stdout == "python3.11 takes run\n"


def test_a_plain_python3_is_taken_when_it_is_new_enough(path: Path) -> None:
    put(path, "python3", NEW_ENOUGH)

    assert set_up(path).stdout == "python3 takes run\n"


def test_the_variable_wins_over_every_name(path: Path) -> None:
    put(path, "python3.13", NEW_ENOUGH)
    put(path, "my python", NEW_ENOUGH)

    assert set_up(path, PYTHON=str(path / "my python")).stdout == "my python takes run\n"


def test_a_variable_that_names_an_old_python_is_an_error_and_not_replaced(path: Path) -> None:
    put(path, "python3.13", NEW_ENOUGH)
    put(path, "old", TOO_OLD)

    ended = set_up(path, PYTHON=os.fspath(path / "old"))

    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith(f'Set-up stopped at step "python": PYTHON={path / "old"} does not run or is older')
    assert ended.stderr.count("\n") == 1


def test_no_python_at_all_is_one_paragraph_with_what_to_install(path: Path) -> None:
    put(path, "python3", TOO_OLD)

    ended = set_up(path)

    assert ended.returncode == 3
    assert ended.stderr.startswith('Set-up stopped at step "python": no Python 3.11 or newer was found')
    assert "apt-get install python3 python3-venv" in ended.stderr
    assert ended.stderr.count("\n") == 1
