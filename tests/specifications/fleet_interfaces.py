"""Access to a fleet for the section tests: the command line in this process, a server without a network."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import httpx
from typer.testing import CliRunner

from pendula.cli.program import run
from pendula.server.schedulers.fleet.routes import scheduler_for
from pendula.server.settings import Settings
from tests.server.living import client_of, running

BASE = "/api/v1/fleet"


def pendula(*arguments: object, code: int | None = 0) -> str:
    """The output of the program, with errors if the expected code is not 0; None accepts any code."""
    with CliRunner().isolation() as (out, err, _):
        ended = run([str(argument) for argument in arguments])
        output, trouble = out.getvalue().decode(), err.getvalue().decode()
        assert code in (ended, None), output + trouble
    return output if code == 0 else output + trouble


def printed_json(*arguments: object, code: int | None = 0) -> Any:
    return json.loads(pendula(*arguments, "--json", code=code))


@cache
def ran(scenario: str) -> tuple[dict[str, Any], Path]:
    """The result of a scenario, as text or as the name of a shipped one, and the journal of its run."""
    folder = Path(mkdtemp(prefix="pendula-sections-"))
    file = folder / "scenario.yaml"
    if "\n" in scenario:
        file.write_text(scenario, encoding="utf-8")
    name = file if "\n" in scenario else scenario
    return printed_json("fleet", "run", name, "--journal", folder / "journal"), folder / "journal"


@cache
def states(scenario: str) -> list[dict[str, Any]]:
    """The snapshot after every tick of a run, as the export has them."""
    lines = pendula("fleet", "export", ran(scenario)[1], "--snapshots").splitlines()
    return [json.loads(line) for line in lines]


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server with the scheduler fleet."""
    settings = Settings(data=str(folder / "data"))
    async with running(settings, (scheduler_for(settings),)) as app, client_of(app) as client:
        yield client
