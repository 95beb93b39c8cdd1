"""`pendula credit sweep`: a grid of settings over many seeds, one row per run."""

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
from pendula.cli.output import JsonFlag, Output, example, require_suffix, tables_of
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
    ticks: Annotated[int, typer.Option(metavar="T", min=1, help="Number of ticks of each run.", show_default=False)],
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=V1,V2,…", help="A setting and its values; may be repeated for all combinations."),
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Number of seeds per combination.")] = 5,
    first_seed: FirstSeedOption = 1,
    skip: Annotated[int, typer.Option(metavar="K", min=0, help="Ignore the first K ticks.")] = 0,
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
    """Run every combination of settings with every seed, one row per run, in processes or on a Dask cluster.

    Options override the environment, and --vary overrides options; short names are policy and cap. The rows are
    identical for any number of workers and on a cluster; each has the digests of its plan and ledger. --vary and --set
    also change the scenario: 'trustlines[*].limit*=0.8,1,1.2' or 'participants.*.limit*1.2'. The table shows medians
    over seeds; --csv and --json have every run. Connect only to a cluster that you trust.
    """
    from pendula.credit.studies.sweeps import sweep as swept
    from pendula.documents import read_file

    require_folder(csv, chart)
    require_suffix(chart, ".svg")
    output = Output(json)
    sets, changes = options.split_changes(set_)
    settings = options.override(options.from_environment(), options.read_options(policy, cap, sets))
    of_settings, of_scenario = options.split_changes(vary)
    grid = {name: texts.split(",") for name, texts in options.read_pairs("--vary", of_settings).items()}
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
    output.result(document(columns), lambda: tables_of("credit").render_sweep(columns, list(grid)))
    if csv is not None:
        write_whole(csv, columns.csv().encode())
    if chart is not None:
        _draw(columns, list(grid), scenario.name, chart)


def _draw(columns: "Columns", axes: list[str], title: str, chart: Path) -> None:
    from pendula.credit.studies.chart import sweep_svg

    write_whole(chart, sweep_svg(columns, axes, title).encode())


def document(columns: "Columns") -> dict[str, Any]:
    """The JSON form of a sweep, with the order of its columns."""
    members = {"order": list(columns.values), "kinds": columns.kinds, "values": columns.values}
    return {"runs": len(columns), "columns": members, "digest": columns.digest}


def _runs(grid: dict[str, list[str]], settings: "Settings", seeds: int) -> int:
    """The number of runs; raises `WrongUsage` for an invalid grid."""
    from pendula.credit.settings import InvalidSetting
    from pendula.credit.studies.sweeps import InvalidGrid, combinations
    from pendula.credit.studies.variations import InvalidVariation

    try:
        return seeds * len(combinations(grid, settings, seeds))
    except (InvalidGrid, InvalidSetting, InvalidVariation) as refused:
        raise WrongUsage(refused.message, **refused.details) from None
