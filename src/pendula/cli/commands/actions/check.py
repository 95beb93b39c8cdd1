"""`pendula actions check`: every fault of a file, with line and column."""

from typing import Any

import typer

from pendula.cli.commands.actions.run import FileArgument
from pendula.cli.output import JsonFlag, Output, example


def register(scheduler: typer.Typer) -> None:
    scheduler.command("check", epilog=example("pendula actions check town.yaml"))(check)


def check(file: FileArgument, json: JsonFlag = False) -> None:
    """List every fault of a file, with line and column; the exit code is 1 if there is any.

    That includes faults that do not stop a run: instances that it would reject, requests that it would ignore, unknown
    names. It does not include what depends on the run: locks that are taken, resources that run out.
    """
    from pendula.actions import checks
    from pendula.documents import read_file

    document = read_file(file)
    checks.check(document)
    counts = _counts(document.value)
    summary = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    Output(json).result({"file": str(file), "sound": True, **counts}, lambda: f"{file} is sound: {summary}.")


def _counts(document: Any) -> dict[str, int]:
    names = ("action_defs", "actions_submitted", "interrupts", "commands")
    return {name: len(document.get(name) or ()) for name in names}
