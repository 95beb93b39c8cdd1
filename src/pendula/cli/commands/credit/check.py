"""`pendula credit check`: faults of a scenario, and warnings."""

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
    """List every fault of a scenario with line and column; the exit code is 1 if there is one.

    Warnings leave the exit code at 0: participants without incoming capacity, limits of zero, unconnected groups,
    profiles whose amounts are all above the cap.
    """
    from pendula.credit.authoring.linting import lint
    from pendula.credit.reading.scenario import read_with_warnings
    from pendula.documents import read_file

    settings = options.override(options.from_environment(), options.read_options(cap=cap))
    network, cautions = read_with_warnings(read_file(scenario), lenient=lenient)
    warnings = (*cautions, *lint(network, settings))
    report: dict[str, Any] = {
        "file": str(scenario),
        "sound": True,
        "participants": len(network.participants),
        "trustlines": len(network.lines),
        "equivalents": list(network.equivalents),
        "events": len(network.events),
        "warnings": warnings,
    }
    Output(json).result(report, lambda: tables_of("credit").render_check(report))
