"""`pendula credit sweep`: a grid of settings with many seeds, one row a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.commands.credit import options
from pendula.cli.commands.credit.options import (
    CapOption,
    FirstSeedOption,
    IntensityOption,
    LenientFlag,
    PolicyOption,
    ScenarioArgument,
    SetOption,
)
from pendula.cli.output import JsonFlag, Output, example, require_form, tables_of
from pendula.cli.spread_options import DaskOption, WorkersOption, cores, require_folder
from pendula.cli.writing import write_whole
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.credit.settings import Settings
    from pendula.credit.studies.columns import Columns


def register(group: typer.Typer) -> None:
    group.command(
        "sweep",
        epilog=example(
            "pendula credit sweep village.json --vary clearing_every_n_ticks=5,10,25,50 --ticks 200 --csv cadence.csv",
            "pendula credit sweep village.json --vary policy=static,adaptive --vary cap=50,500 --seeds 20 --ticks 120",
            "pendula credit sweep village.json --vary routing_max_hops=2,4,6 --ticks 200 --dask tcp://10.0.0.7:8786",
        ),
    )(sweep)


def sweep(
    scenario: ScenarioArgument,
    ticks: Annotated[int, typer.Option(metavar="T", min=1, help="How many ticks each.", show_default=False)],
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=V1,V2,…", help="A setting and its values; may be repeated, all are combined."),
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="How many seeds for each combination.")] = 5,
    first_seed: FirstSeedOption = 1,
    skip: Annotated[int, typer.Option(metavar="K", min=0, help="How many ticks at the beginning do not count.")] = 0,
    intensity: IntensityOption = 100,
    policy: PolicyOption = None,
    cap: CapOption = None,
    set_: SetOption = None,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every run to this file.")] = None,
    chart: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the result into this file (SVG).")] = None,
    lenient: LenientFlag = False,
    json: JsonFlag = False,
) -> None:
    """Run every combination of some settings with every seed: one row a run, on processes or on a Dask cluster.

    Settings come from the environment, options go over them, and --vary over those; short names are policy and cap.
    Rows are the same bytes for any number of workers and on a cluster; each has the digests of its plan and ledger.
    --vary and --set change the scenario as well: 'trustlines[*].limit*=0.8,1,1.2' or 'participants.*.limit*1.2'.
    The table shows medians over seeds; --csv and --json have every run. Connect only to a cluster that you trust.
    """
    from pendula.credit.studies.sweeps import sweep as swept
    from pendula.documents import read_file

    require_folder(csv, chart)
    require_form(chart, ".svg")
    output = Output(json)
    sets, changes = options.of_the_scenario(set_)
    settings = options.over(options.from_environment(), options.chosen(policy, cap, sets))
    of_settings, of_scenario = options.of_the_scenario(vary)
    grid = {name: texts.split(",") for name, texts in options.pairs("--vary", of_settings).items()}
    grid |= {path: texts.split(",") for path, texts in of_scenario}
    total = _runs(grid, settings, seeds)
    with output.progress("runs", total) as advance:
        columns = swept(
            read_file(scenario),
            grid,
            range(first_seed, first_seed + seeds),
            ticks,
            workers or cores(),
            dask=dask,
            settings=settings,
            skip=skip,
            intensity=intensity,
            lenient=lenient,
            changes=changes,
            watch=advance,
        )
    output.result(document(columns), lambda: tables_of("credit").swept(columns, list(grid)))
    if csv is not None:
        write_whole(csv, columns.csv().encode())
    if chart is not None:
        _draw(columns, list(grid), scenario.name, chart)


def _draw(columns: "Columns", axes: list[str], title: str, chart: Path) -> None:
    from pendula.credit.studies.chart import sweep_svg

    write_whole(chart, sweep_svg(columns, axes, title).encode())


def document(columns: "Columns") -> dict[str, Any]:
    """The columns, and the order in which a file has them."""
    told = {"order": list(columns.values), "kinds": columns.kinds, "values": columns.values}
    return {"runs": len(columns), "columns": told, "digest": columns.digest}


def _runs(grid: dict[str, list[str]], settings: "Settings", seeds: int) -> int:
    """How many runs there will be; a grid that makes no sense is wrong usage."""
    from pendula.credit.settings import InvalidSetting
    from pendula.credit.studies.sweeps import InvalidGrid, combinations
    from pendula.credit.studies.variations import InvalidVariation

    try:
        return seeds * len(combinations(grid, settings, seeds))
    except (InvalidGrid, InvalidSetting, InvalidVariation) as refused:
        raise WrongUsage(refused.message, **refused.details) from None
