"""`pendula fleet tune`: the number of trucks, one-way preference and parameters with the most tasks per hour."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.commands.fleet.run import ScenarioArgument, scenario_of
from pendula.cli.failing import require
from pendula.cli.output import JsonFlag, Output, example, require_suffix, tables_of
from pendula.cli.spread_options import DaskOption, WorkersOption, cores, require_folder
from pendula.cli.writing import write_whole
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.fleet.runs.tuning import Outcome, Trial
    from pendula.fleet.scenarios import Scenario

MINUTE_MS = 60_000


def register(group: typer.Typer) -> None:
    group.command(
        "tune",
        epilog=example(
            "pendula fleet tune hall --minutes 30",
            "pendula fleet tune day.yaml --trucks 2-6 --one-way 0,1300,2000,3000 --seeds 3 --svg throughput.svg",
            "pendula fleet tune hall --vary rtpLookaheadM=3,4 --vary starveMs=40000,60000 --json",
            "pendula fleet tune day.yaml --minutes 60 --dask tcp://10.0.0.7:8786",
        ),
    )(tune)


def tune(
    scenario: ScenarioArgument,
    trucks: Annotated[
        str | None,
        typer.Option(metavar="N-M", help="Numbers of trucks: 3, 2-6 or 2,4,6.", show_default="1 to all"),
    ] = None,
    one_way: Annotated[
        str,
        typer.Option(
            metavar="V1,V2,…", help="By how many thousandths a lane is dearer that all streams drive the other way."
        ),
    ] = "0,2000",
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=V1,V2,…",
            help="A parameter of traffic (see docs/reference/fleet-parameters.md) and its values; may be repeated; all "
            "combinations run.",
            show_default=False,
        ),
    ] = None,
    minutes: Annotated[int, typer.Option(metavar="T", min=1, max=10_000, help="Simulated minutes of each run.")] = 20,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Seeds for each combination.")] = 1,
    longest_wait: Annotated[
        int, typer.Option(metavar="S", min=1, help="Longest acceptable wait of a truck, in seconds.")
    ] = 320,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw throughput over trucks to this file.", show_default=False),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Find the number of trucks, one-way preference and parameters with the most tasks per hour.

    Every combination runs in virtual time, in processes or on a Dask cluster, with endless streams. The best one has
    the most tasks among those where no truck waits longer than --longest-wait. The output also names weak points of the
    map: stations that are always busy, places that trucks wait for, fleets without enough rest nodes.
    """
    require("fleet")
    require_folder(svg)
    require_suffix(svg, ".svg")
    from pendula.fleet.runs.tuning import outcome_of, run_trials, throughput_svg
    from pendula.spreading import Where

    output = Output(json)
    loaded = scenario_of(scenario)
    trials = _trials(loaded, trucks, one_way, vary, seeds)
    with output.progress("runs", len(trials)) as advance:
        where = Where(workers or cores(), dask)
        figures = run_trials(loaded, trials, minutes * MINUTE_MS, where, advance)
    outcome = outcome_of(trials, figures, longest_wait * 1000)
    form = {"scenario": loaded.name, "minutes": minutes, "seeds": seeds, **outcome.form()}
    form |= _one_way(loaded, trials, outcome)
    output.result(form, lambda: tables_of("fleet").tuned(form))
    if svg is not None:
        write_whole(svg, throughput_svg(outcome, loaded.name).encode())


def _one_way(scenario: "Scenario", trials: "list[Trial]", outcome: "Outcome") -> dict[str, Any]:
    """The directions that the best combination prefers, and whether the map has a choice."""
    from pendula.fleet.runs.tuning import preferred_edges

    best, strongest = outcome.best, max(one.one_way_milli for one in trials)
    edges = () if best is None else preferred_edges(scenario, best.trucks, best.one_way_milli or strongest)
    preferred = list(edges) if best is not None and best.one_way_milli else []
    return {"directions": preferred, "oneWayMatters": bool(edges)}


def _trials(
    scenario: "Scenario", trucks: str | None, one_way: str, vary: list[str] | None, seeds: int
) -> "list[Trial]":
    """The combinations; raises `WrongUsage` for an invalid one."""
    from pendula.fleet.runs.tuning import InvalidTrial, trials_of

    counts = range(1, len(scenario.robots) + 1) if trucks is None else _numbers("--trucks", trucks)
    grid: dict[str, list[str]] = {}
    for text in vary or ():
        name, equals, values = text.partition("=")
        if not equals or not values:
            raise WrongUsage(f"--vary {text!r} is not of the form NAME=V1,V2", option=text)
        grid[name.strip()] = values.split(",")
    try:
        return trials_of(scenario, list(counts), _numbers("--one-way", one_way), grid, range(seeds))
    except InvalidTrial as refused:
        raise WrongUsage(refused.message, **refused.details) from None


def _numbers(option: str, text: str) -> list[int]:
    """`3`, `2-6` or `2,4,6`."""
    try:
        found: list[int] = []
        for part in text.split(","):
            first, dash, last = part.partition("-")
            found += range(int(first), int(last) + 1) if dash else [int(first)]
    except ValueError:
        raise WrongUsage(f"{option} {text!r} is not a list of whole numbers, as 2-6 or 2,4,6", option=text) from None
    return found
