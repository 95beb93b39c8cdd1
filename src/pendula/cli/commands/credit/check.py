"""`pendula credit check`: everything that is wrong with a scenario, and what is worth a look."""

from typing import Any

import typer

from pendula.cli.commands.credit import options
from pendula.cli.commands.credit.options import CapOption, LenientFlag, ScenarioArgument
from pendula.cli.output import JsonFlag, Output, example, tables_of


def register(credit: typer.Typer) -> None:
    credit.command("check", epilog=example("pendula credit check village.json --cap 500"))(check)


def check(
    scenario: ScenarioArgument, lenient: LenientFlag = False, cap: CapOption = None, json: JsonFlag = False
) -> None:
    """Say everything that is wrong with a scenario, with line and column; the exit code is 1 if anything is.

    What is only worth a look is a warning, and the exit code stays 0: participants that nobody can pay, limits of
    zero, groups on islands, profiles that the cap silences.
    """
    from pendula.credit.authoring.linting import lint
    from pendula.credit.reading.scenario import read_with_warnings
    from pendula.documents import read_file

    settings = options.over(options.from_environment(), options.chosen(cap=cap))
    found, cautions = read_with_warnings(read_file(scenario), lenient=lenient)
    warnings = (*cautions, *lint(found, settings))
    told: dict[str, Any] = {
        "file": str(scenario),
        "sound": True,
        "participants": len(found.participants),
        "trustlines": len(found.lines),
        "equivalents": list(found.equivalents),
        "events": len(found.events),
        "warnings": warnings,
    }
    Output(json).result(told, lambda: tables_of("credit").checked(told))
