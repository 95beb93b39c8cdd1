"""`pendula credit new` and `check`: create a village, report the faults and warnings of a scenario."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pendula.cli.commands.credit import options
from pendula.cli.commands.credit.options import CapOption, LenientFlag, ScenarioArgument
from pendula.cli.output import JsonFlag, Output, example, require_suffix, tables_of
from pendula.credit.authoring.villages import DEGREE_MOST, LEAST, LIMIT_MOST, MOST, SEED_MOST, Profile
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import counted


class FileExists(InputRefused):
    """The output file already exists. Facts: `path`."""

    code = "file_exists"


def register(credit: typer.Typer) -> None:
    credit.command("check", epilog=example("pendula credit check village.json --cap 500"))(check)
    credit.command(
        "new",
        epilog=example(
            "pendula credit new --participants 100 --profile village --seed 7 -o village.json",
            "pendula credit new --participants 12 --profile ring > ring.json",
            "pendula credit new --participants 100 --hubs 10 --degree 6 --limit 200 -o hubs.json",
        ),
    )(new)


def new(
    participants: Annotated[
        int, typer.Option(metavar="N", min=LEAST, max=MOST, help="Number of participants.", show_default=False)
    ],
    profile: Annotated[Profile, typer.Option(help="The shape of the network.")] = Profile.VILLAGE,
    seed: Annotated[int, typer.Option(metavar="S", min=0, max=SEED_MOST, help="Random seed.")] = 0,
    hubs: Annotated[
        int | None, typer.Option(metavar="H", min=0, help="Number of institutions.", show_default="a share")
    ] = None,
    degree: Annotated[
        int | None,
        typer.Option(metavar="D", min=1, max=DEGREE_MOST, help="Lines per participant.", show_default="by shape"),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="X", min=1, max=LIMIT_MOST, help="Limit of every line.", show_default="by kind"),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write.", show_default="stdout")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Generate a scenario of people and firms that trade in circles. The same arguments give the same file."""
    import msgspec

    from pendula.credit.authoring.villages import village
    from pendula.kernel.canonical import encode

    # JSON is also YAML.
    require_suffix(file, ".json", ".yaml", ".yml")
    scenario = village(participants, seed, profile=profile, hubs=hubs, degree=degree, limit=limit)
    text = msgspec.json.format(encode(scenario), indent=2)
    if file is None:
        Output(json).result(scenario, text.decode)
        return
    try:
        with file.open("xb") as target:
            target.write(text + b"\n")
    except FileExistsError:
        raise FileExists(f"{file} already exists; choose another name or remove it", path=str(file)) from None
    except OSError as error:
        file.unlink(missing_ok=True)  # an incomplete file would block the next attempt
        raise OSError(error.errno, error.strerror, str(file)) from error
    lines: Any = scenario["trustlines"]
    report = {
        "file": str(file),
        "scenario_id": scenario["scenario_id"],
        "participants": participants,
        "trustlines": len(lines),
    }
    Output(json).result(
        report, lambda: f"Created {file}: {counted(participants, 'participant')}, {counted(len(lines), 'line')}."
    )


def check(
    scenario: ScenarioArgument, lenient: LenientFlag = False, cap: CapOption = None, json: JsonFlag = False
) -> None:
    """List every fault of a scenario with line and column; the exit code is 1 if there is one.

    Warnings leave the exit code at 0: participants without incoming capacity, limits of zero, unconnected groups,
    profiles whose amounts are all above the cap.
    """
    from pendula.credit.authoring.linting import lint
    from pendula.credit.reading import read_with_warnings
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
