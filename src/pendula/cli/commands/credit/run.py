"""`pendula credit run`: run a scenario, optionally with a journal, artifacts and charts."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from pendula.cli.output import JsonFlag, Output, example, require_suffix, tables_of
from pendula.cli.spread_options import require_folder
from pendula.cli.writing import write_whole
from pendula.kernel.errors import WorldBroken, WrongUsage

if TYPE_CHECKING:
    from pendula.credit.events import Event
    from pendula.credit.runs.headless import Headless, Result, RunPlan, Watch
    from pendula.credit.runs.recording import Recording
    from pendula.credit.studies.series import Series
    from pendula.kernel.engine import Outside


class RunFailed(WorldBroken):
    """A guardrail ended the run: too many timeouts or errors. Facts: `tick`, `last_error`."""

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
        int | None, typer.Option(metavar="T", min=0, help="Number of ticks; a bundle has its own.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", min=0, help="Random seed.", show_default="the scenario's, or 0")
    ] = None,
    intensity: Annotated[int, typer.Option(metavar="P", min=0, max=100, help="Intensity in per cent.")] = 100,
    policy: PolicyOption = None,
    cap: CapOption = None,
    set_: SetOption = None,
    yardstick: Annotated[
        bool, typer.Option("--yardstick", help="Show the optimum of each clearing; needs the extra optimal.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for status, events, summary and a bundle.")
    ] = None,
    journal: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep a journal, for `pendula replay`.")] = None,
    chart: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the run over ticks (SVG).")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all series, tick by tick.")] = None,
    engine: EngineOption = None,
    engine_token_file: EngineTokenOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the run of --journal, up to T ticks in total.")
    ] = False,
    lenient: LenientFlag = False,
    json: JsonFlag = False,
) -> None:
    """Run a scenario tick by tick: payments, rejections, clearing; or repeat a bundle.

    Settings come from the environment (SIMULATOR_…); options override them. The same scenario, seed and settings give
    the same digests on every machine. Payments without capacity are a result: the exit code is 0. A bundle written by
    --out is repeated with its own settings and must give the same digests.

    --set also changes the scenario, as in a sweep: 'trustlines[*].limit*0.1' or 'settings.warmup.ticks=0'.

    --engine makes payments and clears through an external HTTP service; the ledger of the run follows its answers.
    --journal records the answers, so that a replay needs no service.
    """
    from pendula.credit.runs.headless import plan_run
    from pendula.credit.studies.variations import changed_document
    from pendula.documents import read_file

    if scenario.suffix == ".zip":
        others = ticks, seed, policy, cap, set_, out, journal, engine
        is_plain = others == (None,) * len(others) and not (yardstick or resume or lenient) and intensity == 100
        _repeat(scenario, Output(json), chart, csv, is_plain=is_plain)
        return
    ticks = _require_ticks(ticks, resume, journal)
    require_folder(chart, csv)
    require_suffix(chart, ".svg")
    output = Output(json)
    sets, changes = options.split_changes(set_)
    settings = options.override(options.from_environment(), options.read_options(policy, cap, sets, yardstick))
    outside = options.outside_for(settings, engine, engine_token_file)
    stores_events = out is not None or journal is not None
    plan = plan_run(
        changed_document(read_file(scenario), changes, lenient=lenient),
        seed=seed,
        intensity=intensity,
        settings=settings,
        lenient=lenient,
        patches=stores_events,
        engine="embedded" if engine is None else "external",
    )
    if journal is not None:
        keeping(f"{journal} holds every tick until then; continue with --resume")
    if out is not None:
        keeping(f"{out} holds what was written until then")
    opened = _open_run(plan, outside, out, journal, resume, drawn=chart is not None or csv is not None)
    with output.progress("ticks", ticks) as advance, opened as (headless, step, series):
        if headless.run.tick > ticks:
            raise WrongUsage(f"The run already has {headless.run.tick} ticks; --ticks {ticks} is fewer", ticks=ticks)
        step(ticks - headless.run.tick, lambda _: advance(headless.run.tick))
        _add_unsettled_warnings(headless, outside)
        result = headless.result()
    output.result(document(result), lambda: tables_of("credit").render_run(result))
    _draw(result, series, chart, csv)
    if (error := headless.run.last_error) is not None:
        message = f"A guardrail ended the run at tick {result.ticks}: {error.message}"
        raise RunFailed(message, tick=result.ticks, last_error=error)


def _add_unsettled_warnings(headless: "Headless", outside: "Outside | None") -> None:
    """Ask the service for unknown outcomes; payments that it made after all are missing in the ledger of the run."""
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
            "payments or clearings recorded as failed have succeeded; the ledgers differ.",
        ),
        (
            "payments_unsettled",
            len(service.unsettled),
            "payments or clearings have an unknown outcome: the service does not answer.",
        ),
    ):
        if count:
            headless.diagnostics.append(Diagnostic(code, f"{count} {sentence}", {"count": count}))


def _require_ticks(ticks: int | None, resume: bool, journal: Path | None) -> int:
    if ticks is None:
        raise WrongUsage("Missing option '--ticks': the number of ticks")
    if resume and journal is None:
        raise WrongUsage("--resume needs the journal of the run; pass --journal")
    return ticks


def document(result: "Result") -> dict[str, Any]:
    """The JSON form of a result; `clearing` has an optimum only with a solver."""
    from msgspec.structs import asdict

    identity = ("run_id", "scenario_id", "seed", "ticks", "state")
    return {name: value for name, value in asdict(result).items() if name not in identity}


def _repeat(path: Path, output: Output, chart: Path | None, csv: Path | None, *, is_plain: bool) -> None:
    from pendula.credit.runs.artifacts import headless_of, read_bundle, repeat_bundle
    from pendula.credit.studies.series import Series

    if not is_plain:
        raise WrongUsage("A bundle is repeated with its own settings: only --chart, --csv and --json are allowed")
    require_folder(chart, csv)
    require_suffix(chart, ".svg")
    bundle = read_bundle(path)
    solver = options.solver_for(bundle.config.settings)
    series = Series(headless_of(bundle).run)
    with output.progress("ticks", bundle.ticks) as advance:
        ticks = iter(range(1, bundle.ticks + 1))

        def watch(events: "tuple[Event, ...]") -> None:
            series.watch(events)
            advance(next(ticks))

        result = repeat_bundle(bundle, solver, watch)
    output.result(document(result), lambda: tables_of("credit").render_run(result))
    _draw(result, series, chart, csv)


def _draw(result: "Result", series: "Series | None", chart: Path | None, csv: Path | None) -> None:
    if series is None:
        return
    if csv is not None:
        write_whole(csv, series.columns().csv().encode())
    if chart is not None:
        from pendula.credit.studies.chart import Named, Page, panels_svg

        counters = result.counters
        summary = f"seed {result.seed} · {counters.attempts_total} payments tried, {counters.committed_total} made"
        page = Page(result.scenario_id, summary, result.ticks)
        svg = panels_svg(page, [Named(*panel) for panel in series.panels()])
        write_whole(chart, svg.encode())


@contextmanager
def _open_run(
    plan: "RunPlan", outside: "Outside | None", out: Path | None, journal: Path | None, resume: bool, drawn: bool
) -> "Iterator[tuple[Headless, Callable[[int, Watch], None], Series | None]]":
    """Yield the run, the function that steps it, with or without a journal, and its series, if it is `drawn`.

    Artifacts are finished only on success. A directory that is in use is refused before anything is created.
    """
    from pendula.credit.runs.headless import Headless
    from pendula.credit.studies.series import Series

    own_run = plan.config.run_id if resume else None
    if out is not None:
        from pendula.credit.runs.artifacts import Artifacts, require_free
        from pendula.kernel.wallclock import SelfCheckingClock

        require_free(out, own_run)
    with ExitStack() as stack:
        recording = None if journal is None else stack.enter_context(_open_recording(plan, outside, journal, resume))
        headless = Headless(plan) if recording is None else recording.headless
        if recording is None and outside is not None:
            headless.ask(outside)
        listeners: list[Watch] = []
        artifacts = None if out is None else Artifacts(out, plan, SelfCheckingClock().now, own_run=own_run)
        if artifacts is not None:
            listeners.append(stack.enter_context(artifacts).write)
        series = Series(headless.run) if drawn else None
        if series is not None:
            listeners.append(series.watch)
        step = headless.step if recording is None else recording.step
        if recording is not None and resume:
            recording.replay_history(partial(_notify, listeners))
        yield headless, lambda ticks, watch: step(ticks, partial(_notify, [*listeners, watch])), series
        if artifacts is not None:
            artifacts.finish(headless.run, headless.result())


def _open_recording(plan: "RunPlan", outside: "Outside | None", directory: Path, resume: bool) -> "Recording":
    from pendula.credit.runs.recording import Recording
    from pendula.kernel.disk import RealDisk

    disk = RealDisk(directory, make=not resume)
    try:
        return (Recording.resume if resume else Recording.begin)(plan, disk, outside)
    except BaseException:
        disk.close()
        raise


def _notify(listeners: "list[Watch]", events: "tuple[Event, ...]") -> None:
    for listener in listeners:
        listener(events)
