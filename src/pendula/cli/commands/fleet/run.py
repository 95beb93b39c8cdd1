"""`pendula fleet run` and `pendula fleet why`: a scenario in virtual time, and why a truck stands at a moment of it."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.failing import require
from pendula.cli.output import JsonFlag, Output, example, tables_of
from pendula.kernel.errors import InputRefused, WrongUsage

if TYPE_CHECKING:
    from pendula.fleet.scenarios import Run, Scenario
    from pendula.fleet.tick import Reason


class Refuge(StrEnum):
    ON = "on"
    OFF = "off"


class ScenarioUnmet(InputRefused):
    """A run in which something came out otherwise than its scenario expects. Facts: `unmet`, the sentences."""

    code = "scenario_unmet"


ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario: a YAML or JSON file, or the name of one that comes with Pendula.",
        show_default=False,
    ),
]
SeedOption = Annotated[int | None, typer.Option(metavar="N", min=0, help="Random seed.", show_default="the scenario's")]
RefugeOption = Annotated[
    Refuge | None,
    typer.Option(
        help="Whether everybody must always have a way to rest; off shows what happens without.", show_default="on"
    ),
]


def register(group: typer.Typer) -> None:
    group.command(
        "run",
        epilog=example(
            "pendula fleet run head-on",
            "pendula fleet run hall --seed 7 --json > hall.json",
            "pendula fleet run triangle-8 --refuge off",
        ),
    )(run)
    group.command(
        "why",
        epilog=example("pendula fleet why head-on R2 --at 30000", "pendula fleet why head-on R2 --at 30000 --json"),
    )(why)


def run(
    scenario: ScenarioArgument, seed: SeedOption = None, refuge: RefugeOption = None, json: JsonFlag = False
) -> None:
    """Run a scenario in virtual time, with a judge that watches every pose.

    Says what was measured, which invariants were checked, and what came out otherwise than expected. The same scenario
    and seed give the same digest. The exit code is 1 where an expectation did not come true.
    """
    require("fleet")
    output = Output(json)
    made = run_of(scenario, seed, refuge)
    with output.progress("run", made.scenario.duration_ms) as advance:
        result = made.run(watch=advance)
    form: dict[str, Any] = {**result.form, "unmet": list(result.unmet)}
    output.result(form, lambda: tables_of("fleet").ran(form))
    if not result.sound:
        message = f"{made.scenario.name}: {'; '.join(result.unmet[:3])}"
        raise ScenarioUnmet(message, unmet=list(result.unmet))


def why(
    scenario: ScenarioArgument,
    robot: Annotated[str, typer.Argument(metavar="ROBOT", help="The truck.", show_default=False)],
    at: Annotated[int, typer.Option(metavar="MS", min=0, help="The time, in milliseconds.", show_default=False)],
    seed: SeedOption = None,
    refuge: RefugeOption = None,
    json: JsonFlag = False,
) -> None:
    """Say why a truck stands at a moment of a scenario: the reason, who is in the way, and the chain to the root.

    For WAIT_SAFE_STATE also the cycle that the next grant, or the route, would have closed.
    """
    require("fleet")
    output = Output(json)
    made = run_of(scenario, seed, refuge)
    with output.progress("run", at) as advance:
        made.run(at, watch=advance)
    reason = made.why(robot)
    form = reason_form(reason, at)
    output.result(form, lambda: tables_of("fleet").reason(form))


def reason_form(reason: "Reason", at_ms: int) -> dict[str, Any]:
    return {
        "robotId": reason.robot_id,
        "atMs": at_ms,
        "holdReason": reason.hold_reason.value,
        "reasonCode": reason.code,
        "blockerRobotId": reason.blocker,
        "blockerResourceId": reason.resource,
        "queuePosition": reason.queue_position,
        "waitMs": reason.wait_ms,
        "chain": list(reason.chain),
        "cycle": list(reason.cycle),
    }


def run_of(name: str, seed: int | None, refuge: Refuge | None) -> "Run":
    """A scenario ready to run, with what the command line says over what its file says."""
    from msgspec.structs import replace

    from pendula.fleet.scenarios import Run

    told = scenario_of(name)
    if seed is not None:
        told = replace(told, seed=seed)
    if refuge is not None:
        told = replace(told, traffic=replace(told.traffic, refuge=refuge is Refuge.ON))
    return Run(told)


def scenario_of(name: str) -> "Scenario":
    """The scenario of a file, or one of those that come with Pendula."""
    from pendula.documents import read_file
    from pendula.fleet.scenarios import read_scenario, shipped, shipped_names

    file = Path(name)
    if file.suffix:
        return read_scenario(read_file(file), file.parent)
    if name not in shipped_names():
        names = ", ".join(shipped_names())
        raise WrongUsage(f"There is no scenario {name!r}; there are {names}, and files ending in .yaml", scenario=name)
    return shipped(name)
