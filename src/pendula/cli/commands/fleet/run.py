"""`pendula fleet run` and `why`: a scenario in virtual time, and why a truck stands in it or in a journal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.failing import keeping, require
from pendula.cli.output import JsonFlag, Output, example, tables_of
from pendula.kernel.errors import InputRefused, WrongUsage
from pendula.kernel.wording import suggestion

if TYPE_CHECKING:
    from pendula.fleet.engine import FleetEngine
    from pendula.fleet.scenarios import Run, Scenario
    from pendula.fleet.scenarios.running import Applier

    MakeApplier = Callable[[FleetEngine, Any], Applier]


class Refuge(StrEnum):
    ON = "on"
    OFF = "off"


class ScenarioUnmet(InputRefused):
    """A run that missed expectations of its scenario. Facts: `unmet`, the sentences."""

    code = "expectation_failed"


class UnknownRobot(InputRefused):
    """Facts: `robotId`."""

    code = "unknown_robot"


class UnknownTask(InputRefused):
    """Facts: `taskId`."""

    code = "unknown_task"


ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario: a YAML or JSON file, or the name of a bundled one.",
        show_default=False,
    ),
]
SeedOption = Annotated[int | None, typer.Option(metavar="N", min=0, help="Random seed.", show_default="the scenario's")]
RefugeOption = Annotated[
    Refuge | None,
    typer.Option(
        help="Whether every truck must keep a way to rest; off shows what happens without.", show_default="on"
    ),
]


def register(group: typer.Typer) -> None:
    group.command(
        "run",
        epilog=example(
            "pendula fleet run head-on",
            "pendula fleet run hall --seed 7 --json > hall.json",
            "pendula fleet run triangle-8 --refuge off",
            "pendula fleet run hall --journal hall-journal",
        ),
    )(run)
    group.command(
        "why",
        epilog=example(
            "pendula fleet why head-on R2 --at 30000",
            "pendula fleet why hall-journal --tick 600 --robot R2",
            "pendula fleet why hall --task S-OUT-2 --at 60000",
            "pendula fleet why head-on R2 --at 30000 --json",
        ),
    )(why)


def run(
    scenario: ScenarioArgument,
    seed: SeedOption = None,
    refuge: RefugeOption = None,
    journal: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a journal here, for replay, why and export.", show_default=False),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Run a scenario in virtual time; an independent checker verifies every pose.

    Prints measurements, checked invariants and missed expectations. The same scenario and seed give the same digest.
    With --journal every tick is in a new journal, with the compiled map beside it and a bundle for every incident. The
    exit code is 1 if an expectation was missed, and 3 if the journal could not be written completely.
    """
    require("fleet")
    output = Output(json)
    with recorded(journal) as make_applier:
        made = run_of(scenario, seed, refuge, make_applier)
        with output.progress("run", made.scenario.duration_ms) as advance:
            result = made.run(watch=advance)
        form: dict[str, Any] = {**result.form, "unmet": list(result.unmet)}
        output.result(form, lambda: tables_of("fleet").ran(form))
    if not result.is_sound:
        message = f"{made.scenario.name}: {'; '.join(result.unmet[:3])}"
        raise ScenarioUnmet(message, unmet=list(result.unmet))


@contextmanager
def recorded(directory: Path | None) -> "Iterator[MakeApplier | None]":
    """Record a run to a journal in a directory; None without one.

    Raises `JournalBroken` at the end if the journal is incomplete: a failing disk does not stop the run.
    """
    if directory is None:
        yield None
        return
    from pendula.fleet.runs import Recording, recording_disk
    from pendula.kernel.journal import JournalBroken

    opened: list[Recording] = []
    keeping(f"{directory} holds every tick until then")

    def make_applier(engine: "FleetEngine", config: Any) -> "Recording":
        opened.append(Recording.begin(engine, config, recording_disk(directory), by="cli"))
        return opened[0]

    try:
        yield make_applier
    finally:
        for one in opened:
            one.close()
    for one in opened:
        if one.degraded is not None:
            raise JournalBroken(f"{directory} holds only a part of the run: {one.degraded}", path=str(directory))


def why(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO|JOURNAL",
            help="A scenario, by file or name, or the directory of a journal.",
            show_default=False,
        ),
    ],
    robot: Annotated[
        str | None, typer.Argument(metavar="ROBOT", help="The truck; or use --robot.", show_default=False)
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(metavar="MS", min=0, help="The time in a scenario, in milliseconds.", show_default=False),
    ] = None,
    tick: Annotated[
        int | None, typer.Option(metavar="T", min=1, help="The tick of a journal.", show_default=False)
    ] = None,
    named: Annotated[
        str | None, typer.Option("--robot", metavar="R", help="The truck, instead of ROBOT.", show_default=False)
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="T", help="Explain a task instead.", show_default=False),
    ] = None,
    seed: SeedOption = None,
    refuge: RefugeOption = None,
    json: JsonFlag = False,
) -> None:
    """Explain why a truck stands, or a task waits, at a time of a scenario or a tick of a journal: the reason, the
    blocking truck, and the reasons of all trucks in the chain to the root.

    For WAIT_SAFE_STATE also the cycle that the next grant, or the route, would close; for a truck that is cut off, the
    failed truck in its way.
    """
    require("fleet")
    output = Output(json)
    asked = _one_asked(robot, named, task)
    if Path(source).is_dir():
        form = _why_in_journal(Path(source), asked, _given("--tick", tick, at, seed, refuge))
    else:
        form = _why_in_scenario(source, asked, _given("--at", at, tick), seed, refuge, output)
    output.result(form, lambda: tables_of("fleet").reason(form))


def _one_asked(argument: str | None, option: str | None, task: str | None) -> dict[str, str]:
    """The truck or the task in question."""
    given = [one for one in (argument, option, task) if one is not None]
    if len(given) != 1:
        raise WrongUsage("Name one truck, as ROBOT or with --robot, or one --task", command="pendula fleet why")
    return {"robot" if task is None else "task": given[0]}


def _given(name: str, value: int | None, *others: object) -> int:
    """The time or tick; raises `WrongUsage` if it is missing, or for options of the other kind of source."""
    if value is None or any(one is not None for one in others):
        kind = (
            "A journal takes --tick, and no --at, --seed or --refuge"
            if name == "--tick"
            else "A scenario takes --at, and no --tick; a journal is a directory"
        )
        raise WrongUsage(kind, command="pendula fleet why")
    return value


def _why_in_journal(directory: Path, asked: dict[str, str], tick: int) -> dict[str, Any]:
    from pendula.fleet.runs import fleet_at, reading

    with reading(directory) as journal:
        engine = fleet_at(journal, tick)
        _require_robot(asked, engine, str(directory))
        return {**_answer(engine, asked), "atMs": engine.now(), "tick": tick}


def _why_in_scenario(
    scenario: str, asked: dict[str, str], at: int, seed: int | None, refuge: Refuge | None, output: Output
) -> dict[str, Any]:
    made = run_of(scenario, seed, refuge)
    require_moment(made, at)
    _require_robot(asked, made.engine, scenario)
    with output.progress("run", at) as advance:
        made.run(at, watch=advance)
    return {**_answer(made.engine, asked), "atMs": at}


def require_moment(made: "Run", at: int) -> None:
    """Raises `WrongUsage` for a time after the end of the scenario."""
    end = made.scenario.duration_ms
    if at > end:
        message = f"--at {at} is {at / 1000:g} s, and the scenario ends at {end / 1000:g} s"
        raise WrongUsage(message, at=at, durationMs=end)


def _require_robot(asked: dict[str, str], engine: "FleetEngine", where: str) -> None:
    robot, known = asked.get("robot"), tuple(engine.traffic.robot_ids)
    if robot is not None and robot not in known:
        raise UnknownRobot(f"There is no truck {robot!r} in {where}{suggestion(robot, known)}", robotId=robot)


def _answer(engine: "FleetEngine", asked: dict[str, str]) -> dict[str, Any]:
    """The facts and the sentence, and those of the others in the chain."""
    reason = engine.why(asked)
    if reason.code == "unknown_task":
        raise UnknownTask(f"At that moment there is no open task {asked['task']!r}", taskId=asked["task"])
    form = {**reason.facts, "sentence": reason.sentence}
    below = []
    while reason.because:
        (reason,) = reason.because
        below.append({"robotId": reason.facts["robotId"], "reasonCode": reason.code, "sentence": reason.sentence})
    return form | ({"because": below} if below else {})


def run_of(name: str, seed: int | None, refuge: Refuge | None, make_applier: "MakeApplier | None" = None) -> "Run":
    """A scenario ready to run; options override its file."""
    from msgspec.structs import replace

    from pendula.fleet.scenarios import Run

    scenario = scenario_of(name)
    if seed is not None:
        scenario = replace(scenario, seed=seed)
    if refuge is not None:
        scenario = replace(scenario, traffic=replace(scenario.traffic, refuge=refuge is Refuge.ON))
    return Run(scenario, make_applier=make_applier)


def scenario_of(name: str) -> "Scenario":
    """The scenario of a file, or a bundled one."""
    from pendula.documents import read_file
    from pendula.fleet.scenarios import read_scenario, shipped, shipped_names

    file = Path(name)
    no_journal(file)
    if file.suffix:
        document = read_file(file)
        if isinstance(document.value, dict) and document.value.keys() >= {"mapId", "nodes"}:
            message = f"{name} is a map; a scenario names one as mapFile, and trucks and tasks"
            raise WrongUsage(f"{message} (pendula fleet new --scenario FILE writes one)", file=name)
        return read_scenario(document, file.parent)
    if name not in shipped_names():
        names = ", ".join(shipped_names())
        near = suggestion(name, shipped_names())
        files = "files ending in .yaml or .json"
        raise WrongUsage(f"There is no scenario {name!r}{near}; there are {names}, and {files}", scenario=name)
    return shipped(name)


def no_journal(file: Path) -> None:
    """Raises `WrongUsage` for a directory instead of a scenario or a map."""
    if file.is_dir():
        others = "pendula fleet why, replay, export and incidents take one"
        instead = "to draw a tick of it, draw its scenario with --at, or open it on the page"
        raise WrongUsage(f"{file} is a directory; if it is a journal, {others}; {instead}", path=str(file))
