"""The program in this process, for tests of its output, and as a process, for streams, exit codes and imports."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import TypeAlias

import pytest
from msgspec import Struct
from typer.testing import CliRunner

from pendula.cli.program import run


class Finished(Struct, frozen=True):
    """The exit code and the output of one run."""

    code: int
    out: str
    err: str


Pendula: TypeAlias = Callable[..., Finished]


@pytest.fixture
def pendula(monkeypatch: pytest.MonkeyPatch) -> Pendula:
    """`pendula("replay", path)` in this process, without the environment of the user."""
    for name in [name for name in os.environ if name.startswith("PENDULA_")]:
        monkeypatch.delenv(name)

    def call(*arguments: object) -> Finished:
        with CliRunner().isolation() as (out, err, _):
            code = run([str(argument) for argument in arguments])
            sys.stdout.flush()
            sys.stderr.flush()
            return Finished(code, out.getvalue().decode(), err.getvalue().decode())

    return call


@pytest.fixture
def python() -> Callable[..., Finished]:
    """A fresh interpreter that runs a few lines; arguments are `sys.argv[1:]`."""

    def call(code: str, *arguments: str, environ: Mapping[str, str] | None = None) -> Finished:
        ended = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            timeout=300,
            check=False,
            env={**quiet_environment(), **(environ or {})},
        )
        return Finished(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return call


def quiet_environment() -> dict[str, str]:
    """No settings of Pendula, and the default buffering of output."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PENDULA_") and name != "PYTHONUNBUFFERED"
    }
