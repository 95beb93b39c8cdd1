"""`pendula credit run`: a scenario, tick after tick, with a journal and artifacts if they are asked for."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import typer

from pendula.cli.commands.credit import options
from pendula.cli.commands.credit.options import (
    CapOption,
    EngineOption,
    EngineTokenOption,
    LenientFlag,
    PolicyOption,
    ScenarioArgument,
    SetOption,
)
from pendula.cli.failing import keeping
from pendula.cli.output import JsonFlag, Output, example, require_form, tables_of
from pendula.cli.spread_options import require_folder
from pendula.cli.writing import write_whole
from pendula.kernel.errors import WorldBroken, WrongUsage

if TYPE_CHECKING:
    from pendula.credit.events import Event
    from pendula.credit.runs.artifacts import Artifacts
    from pendula.credit.runs.headless import Headless, Made, Result, Watch
    from pendula.credit.runs.recording import Recording
    from pendula.credit.studies.series import Series
    from pendula.kernel.engine import Outside

    Step: TypeAlias = Callable[[int, Watch], None]


class RunFailed(WorldBroken):
    """A guardrail ended the run: too many timeouts or errors. Facts: `tick` and the `last_error` of the run."""

    code = "run_failed"


def register(credit: typer.Typer) -> None:
    credit.command(
        "run",
        epilog=example(
            "pendula credit run village.json --seed 42 --ticks 200 --cap 500 --chart village.svg --csv village.csv",
            "pendula credit run village.json --ticks 200 --policy adaptive --journal village-journal --json > run.json",
            "pendula credit run village.json --ticks 200 --cap 500 --set 'trustlines[*].limit*0.1'",
        ),
    )(run)


def run(
    scenario: ScenarioArgument,
    ticks: Annotated[
        int | None, typer.Option(metavar="T", min=0, help="How many ticks; a bundle knows its own.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", min=0, help="Random seed.", show_default="the scenario's, or 0")
    ] = None,
    intensity: Annotated[int, typer.Option(metavar="P", min=0, max=100, help="Per cent of the actions tried.")] = 100,
    policy: PolicyOption = None,
    cap: CapOption = None,
    set_: SetOption = None,
    yardstick: Annotated[
        bool, typer.Option("--yardstick", help="Say beside each clearing what the optimum was; extra optimal.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for status, events, summary and a bundle.")
    ] = None,
    journal: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep a journal, for `pendula replay`.")] = None,
    chart: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the run over its ticks (SVG).")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every series, tick by tick.")] = None,
    engine: EngineOption = None,
    engine_token_file: EngineTokenOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run of --journal, up to T ticks in all.")
    ] = False,
    lenient: LenientFlag = False,
    json: JsonFlag = False,
) -> None:
    """Run a scenario, tick after tick: who pays whom, what is refused, what clearing frees; or repeat a bundle.

    Settings come from the environment (SIMULATOR_…), and options go over them. The same scenario, seed and settings
    give the same digests on every machine. Payments that find no capacity are a result, and the exit code is 0. A
    bundle that --out wrote is repeated as it was, and must come to the same digests.

    --set changes the scenario as well, as in a sweep: 'trustlines[*].limit*0.1' or 'settings.warmup.ticks=0'.

    --engine lets another system make the payments and clear, over HTTP; the run's own ledger follows its answers. With
    --journal the answers are recorded, so that a replay needs no service.
    """
    if scenario.suffix == ".zip":
        others = ticks, seed, policy, cap, set_, out, journal, engine
        alone = others == (None,) * len(others) and not (yardstick or resume or lenient) and intensity == 100
        _repeat(scenario, Output(json), chart, csv, alone=alone)
        return
    ticks = _ticks(ticks, resume, journal)
    require_folder(chart, csv)
    require_form(chart, ".svg")
    output = Output(json)
    sets, changes = options.of_the_scenario(set_)
    settings = options.over(options.from_environment(), options.chosen(policy, cap, sets, yardstick))
    outside = options.outside_for(settings, engine, engine_token_file)
    kept_events = out is not None or journal is not None
    plan = _made(scenario, changes, seed, intensity, settings, lenient, patches=kept_events, engine=engine)
    _say_what_stays(out, journal)
    kept = Keeping(out, journal, resume, drawn=chart is not None or csv is not None)
    with output.progress("ticks", ticks) as advance, _running(plan, outside, kept) as (headless, step, series):
        if headless.run.tick > ticks:
            raise WrongUsage(f"The run has {headless.run.tick} ticks already; --ticks {ticks} is fewer", ticks=ticks)
        step(ticks - headless.run.tick, lambda _: advance(headless.run.tick))
        _warn_of_unsettled(headless, outside)
        result = headless.result()
    output.result(document(result), lambda: tables_of("credit").ran(result))
    _draw(result, series, chart, csv)
    if (error := headless.run.last_error) is not None:
        message = f"A guardrail ended the run at tick {result.ticks}: {error.message}"
        raise RunFailed(message, tick=result.ticks, last_error=error)


def _warn_of_unsettled(headless: "Headless", outside: "Outside | None") -> None:
    """Payments whose outcome the service has not told: those that were made are missing in the ledger of the run."""
    from pendula.credit.outside.answers import Answers
    from pendula.credit.runs.headless import Diagnostic

    service = outside.payments if isinstance(outside, Answers) else None
    if service is None or not service.unsettled:
        return
    made = {key: answer for key, answer in service.settle().items() if answer is not None}
    for code, count, sentence in (
        (
            "payments_made_late",
            len(made),
            "payments or clearings that failed were carried out after all; the ledgers differ.",
        ),
        (
            "payments_unsettled",
            len(service.unsettled),
            "payments or clearings have no outcome: the service does not answer.",
        ),
    ):
        if count:
            headless.diagnostics.append(Diagnostic(code, f"{count} {sentence}", {"count": count}))


def _say_what_stays(out: Path | None, journal: Path | None) -> None:
    if journal is not None:
        keeping(f"{journal} holds every tick until then, and --resume goes on from there")
    if out is not None:
        keeping(f"{out} holds what was written until then")


def _ticks(ticks: int | None, resume: bool, journal: Path | None) -> int:
    if ticks is None:
        raise WrongUsage("Missing option '--ticks': how many ticks the run has")
    if resume and journal is None:
        raise WrongUsage("--resume goes on from a journal; say with --journal where it is")
    return ticks


def document(result: "Result") -> dict[str, Any]:
    """The fixed form of what a run came to; an optimum stands only where it was asked for."""
    return {
        "counters": result.counters,
        "queue_depth": result.queue_depth,
        "digests": result.digests,
        "metrics": result.metrics,
        "clearing": result.clearing,
        "diagnostics": result.diagnostics,
        "totals": result.totals,
        "refusals": result.refusals,
    }


class Keeping(NamedTuple):
    """What is kept of a run beside its result."""

    out: Path | None
    journal: Path | None
    resume: bool
    drawn: bool


def _repeat(path: Path, output: Output, chart: Path | None, csv: Path | None, *, alone: bool) -> None:
    from pendula.credit.runs.bundles import headless_of, read_bundle, repeated
    from pendula.credit.studies.series import Series

    if not alone:
        raise WrongUsage("A bundle is repeated as it was: only --chart, --csv and --json go with it")
    require_folder(chart, csv)
    require_form(chart, ".svg")
    bundle = read_bundle(path)
    solver = options.solver_for(bundle.config.settings)
    series = Series(headless_of(bundle).run)
    with output.progress("ticks", bundle.ticks) as advance:
        done = iter(range(1, bundle.ticks + 1))

        def watch(events: "tuple[Event, ...]") -> None:
            series.watch(events)
            advance(next(done))

        result = repeated(bundle, solver, watch)
    output.result(document(result), lambda: tables_of("credit").ran(result))
    _draw(result, series, chart, csv)


def _draw(result: "Result", series: "Series | None", chart: Path | None, csv: Path | None) -> None:
    if series is None:
        return
    if csv is not None:
        write_whole(csv, series.columns().csv().encode())
    if chart is not None:
        from pendula.credit.studies.chart import Named, Page, panels_svg

        told = result.counters
        summary = f"seed {result.seed} · {told.attempts_total} payments tried, {told.committed_total} made"
        page = Page(result.scenario_id, summary, result.ticks)
        drawn = panels_svg(page, [Named(*panel) for panel in series.panels()])
        write_whole(chart, drawn.encode())


def _made(
    scenario: Path,
    changes: list[tuple[str, str]],
    seed: int | None,
    intensity: int,
    settings: Any,
    lenient: bool,
    patches: bool,
    engine: str | None = None,
) -> "Made":
    from pendula.credit.runs.headless import made
    from pendula.credit.studies.variations import changed_document
    from pendula.documents import read_file

    document = changed_document(read_file(scenario), changes, lenient=lenient)
    how = "embedded" if engine is None else "external"
    return made(
        document, seed=seed, intensity=intensity, settings=settings, lenient=lenient, patches=patches, engine=how
    )


@contextmanager
def _running(
    plan: "Made", outside: "Outside | None", keeping: Keeping
) -> "Iterator[tuple[Headless, Step, Series | None]]":
    """The run and how it is stepped: straight or by way of a journal; a directory keeps what happens, if one is given.

    Artifacts are finished when all went well. What lies in a directory already is refused before anything is made.
    """
    from pendula.credit.runs.headless import Headless
    from pendula.credit.studies.series import Series

    out, journal, resume, drawn = keeping
    own_run = plan.config.run_id if resume else None
    if out is not None:
        _require_free(out, own_run)
    with ExitStack() as stack:
        recording = None if journal is None else stack.enter_context(_recording(plan, outside, journal, resume))
        headless = Headless(plan) if recording is None else recording.headless
        if recording is None and outside is not None:
            headless.ask(outside)
        kept = None if out is None else stack.enter_context(_artifacts(plan, out, own_run))
        series = Series(headless.run) if drawn else None
        listeners: list[Watch] = [*([] if kept is None else [kept.write]), *([] if series is None else [series.watch])]
        tell = partial(_heard, listeners)
        if recording is not None and resume:
            recording.replay_history(tell)
        yield headless, partial(_stepped, headless.step if recording is None else recording.step, tell), series
        if kept is not None:
            kept.finish(headless.run, headless.result())


def _require_free(directory: Path, own_run: str | None) -> None:
    from pendula.credit.runs.artifacts import require_free

    require_free(directory, own_run)


def _artifacts(plan: "Made", directory: Path, own_run: str | None) -> "Artifacts":
    from pendula.credit.runs.artifacts import Artifacts
    from pendula.kernel.wallclock import SelfCheckingClock

    return Artifacts(directory, plan, SelfCheckingClock().now, own_run=own_run)


def _recording(plan: "Made", outside: "Outside | None", directory: Path, resume: bool) -> "Recording":
    from pendula.credit.runs.recording import Recording
    from pendula.kernel.disk import RealDisk

    disk = RealDisk(directory, make=not resume)
    try:
        return (Recording.resume if resume else Recording.begin)(plan, disk, outside)
    except BaseException:
        disk.close()
        raise


def _stepped(step: "Step", tell: "Watch", ticks: int, watch: "Watch") -> None:
    def heard(events: "tuple[Event, ...]") -> None:
        tell(events)
        watch(events)

    step(ticks, heard)


def _heard(listeners: "list[Watch]", events: "tuple[Event, ...]") -> None:
    """Tell everybody who keeps something of the run."""
    for listener in listeners:
        listener(events)
