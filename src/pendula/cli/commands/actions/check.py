"""`pendula actions check`: everything that is wrong with a file, with line and column."""

from typing import Any

import typer

from pendula.cli.commands.actions.run import FileArgument
from pendula.cli.output import JsonFlag, Output, example


def register(scheduler: typer.Typer) -> None:
    scheduler.command("check", epilog=example("pendula actions check town.yaml"))(check)


def check(file: FileArgument, json: JsonFlag = False) -> None:
    """Say everything that is wrong with a file, with line and column; the exit code is 1 if anything is.

    That includes what a run gets along with: instances it would reject, requests it would pass over, names that nobody
    knows. Only what depends on how the days go is not foreseen: locks that are taken, resources that run out.
    """
    from pendula.actions import reading
    from pendula.documents import read_file

    document = read_file(file)
    reading.check(document)
    counts = _counts(document.value)
    told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    Output(json).result({"file": str(file), "sound": True, **counts}, lambda: f"{file} is sound: {told}.")


def _counts(document: Any) -> dict[str, int]:
    names = ("action_defs", "actions_submitted", "interrupts", "commands")
    return {name: len(document.get(name) or ()) for name in names}
