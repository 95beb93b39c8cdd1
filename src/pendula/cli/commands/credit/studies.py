"""`pendula credit compare` and `sweep`: many runs of one scenario."""

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
from pendula.credit.settings import change_settings
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.credit.settings import Settings
    from pendula.credit.studies.comparison import Comparison


SideAFile = Annotated[
    Path | None, typer.Argument(metavar="A", help="Settings of one side: a JSON or YAML file.", show_default=False)
]
SideBFile = Annotated[Path | None, typer.Argument(metavar="B", help="Settings of the other side.", show_default=False)]
SideAOption = Annotated[
    list[str] | None,
    typer.Option("--a", "--set-a", metavar="NAME=VALUE", help="A setting of side A; may be repeated."),
]
SideBOption = Annotated[
    list[str] | None,
    typer.Option("--b", "--set-b", metavar="NAME=VALUE", help="A setting of side B; may be repeated."),
]
DEFAULT_SIDES = {"clearing_policy": "static"}, {"clearing_policy": "adaptive"}


def register(credit: typer.Typer) -> None:
    credit.command(
        "compare",
        epilog=example(
            "pendula credit compare village.json --cap 500 --svg policies.svg",
            "pendula credit compare village.json --a policy=static --b policy=adaptive --b adaptive_window_ticks=10",
            "pendula credit compare village.json as-today.yaml as-planned.yaml --seeds 40 --json",
        ),
    )(compare)
    credit.command(
        "sweep",
        epilog=example(
            "pendula credit sweep village.json --vary clearing_every_n_ticks=5,10,25,50 --ticks 200 --csv cadence.csv",
            "pendula credit sweep village.json --vary policy=static,adaptive --vary cap=50,500 --seeds 20 --ticks 120",
            "pendula credit sweep village.json --vary routing_max_hops=2,4,6 --ticks 200 --dask tcp://10.0.0.7:8786",
        ),
    )(sweep)


def compare(
    scenario: ScenarioArgument,
    a_file: SideAFile = None,
    b_file: SideBFile = None,
    a: SideAOption = None,
    b: SideBOption = None,
    set_: SetOption = None,
    cap: CapOption = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Number of seeds; each is run on both sides.")] = 20,
    first_seed: FirstSeedOption = 1,
    ticks: Annotated[int, typer.Option(metavar="T", min=1, help="Number of ticks.")] = 120,
    skip: Annotated[int, typer.Option(metavar="K", min=0, help="Ignore the first K ticks.")] = 30,
    intensity: IntensityOption = 100,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw both sides over ticks (SVG).")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every run of both sides (CSV).")] = None,
    lenient: LenientFlag = False,
    json: JsonFlag = False,
) -> None:
    """Compare two settings over many seeds, paired by seed: medians, differences with intervals, and a verdict.

    Settings of both sides come from the environment, --set and --cap; the files A and B or --a and --b give the
    differences. Short names are policy and cap. By default, static clearing is compared with adaptive clearing.
    --set changes the scenario of both sides, too, as in a sweep: 'trustlines[*].limit*0.1'.

    A difference is the median of B less A over seeds, with the interval of the sign test: exact, without assumptions,
    with 95 % confidence from six seeds on. B passes if there are no technical errors, budgets are kept, and no median
    is worse than that of A by more than 0.02, with at least 5 seeds and 30 ignored ticks. The exit code is always 0.
    """
    from pendula.credit.studies.comparison import compare as compared
    from pendula.credit.studies.variations import changed_document
    from pendula.documents import read_file

    require_folder(svg, csv)
    require_suffix(svg, ".svg")
    output = Output(json)
    sets, changes = options.split_changes(set_)
    both = options.override(options.from_environment(), options.read_options(None, cap, sets))
    (left, right), names = _sides(both, (a_file, b_file), (options.read_pairs("--a", a), options.read_pairs("--b", b)))
    with output.progress("runs", 2 * seeds) as advance:
        comparison = compared(
            changed_document(read_file(scenario), changes, lenient=lenient),
            left,
            right,
            range(first_seed, first_seed + seeds),
            ticks,
            workers or cores(),
            skip=skip,
            names=names,
            dask=dask,
            intensity=intensity,
            lenient=lenient,
            watch=advance,
        )
    output.result(_compared(comparison), lambda: tables_of("credit").render_comparison(comparison))
    if svg is not None:
        from pendula.credit.studies.chart import comparison_svg

        write_whole(svg, comparison_svg(comparison).encode())
    if csv is not None:
        write_whole(csv, comparison.columns.csv().encode())


def _compared(comparison: "Comparison") -> dict[str, Any]:
    """The JSON form of a comparison, without the curves of its chart."""
    from msgspec.structs import asdict

    members = {name: value for name, value in asdict(comparison).items() if name != "panels"}
    return {**members, "columns": comparison.columns.document, "digest": comparison.columns.digest}


def _sides(
    both: "Settings", files: tuple[Path | None, Path | None], given: tuple[dict[str, str], dict[str, str]]
) -> tuple[tuple["Settings", "Settings"], tuple[str, str]]:
    """The settings and the names of both sides."""
    if (files[0] is None) != (files[1] is None):
        raise WrongUsage("Side B has no file; give a file for both sides, or use --a and --b")
    if files == (None, None) and given == ({}, {}):
        given = DEFAULT_SIDES
    sides, names = [], []
    for file, values in zip(files, given, strict=True):
        settings = both if file is None else change_settings(both, options.read_file(file))
        sides.append(options.override(settings, values))
        labels = [] if file is None else [file.stem]
        labels += [f"{_short_name(name)}={value}" for name, value in values.items()]
        names.append(", ".join(labels) or "unchanged")
    if names[0] == names[1]:
        names = ["A", "B"]
    return (sides[0], sides[1]), (names[0], names[1])


def _short_name(name: str) -> str:
    return next((short for short, long in options.SHORT.items() if long == name), name)


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
    document = {"runs": len(columns), "columns": columns.document, "digest": columns.digest}
    output.result(document, lambda: tables_of("credit").render_sweep(columns, list(grid)))
    if csv is not None:
        write_whole(csv, columns.csv().encode())
    if chart is not None:
        from pendula.credit.studies.chart import sweep_svg

        write_whole(chart, sweep_svg(columns, list(grid), scenario.name).encode())


def _runs(grid: dict[str, list[str]], settings: "Settings", seeds: int) -> int:
    """The number of runs; raises `WrongUsage` for an invalid grid."""
    from pendula.credit.settings import InvalidSetting
    from pendula.credit.studies.sweeps import InvalidGrid, combinations
    from pendula.credit.studies.variations import InvalidVariation

    try:
        return seeds * len(combinations(grid, settings, seeds))
    except (InvalidGrid, InvalidSetting, InvalidVariation) as refused:
        raise WrongUsage(refused.message, **refused.details) from None
