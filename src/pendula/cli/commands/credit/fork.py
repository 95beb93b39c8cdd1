"""`pendula credit fork`: continue a run with its own and with other settings."""

from typing import TYPE_CHECKING, Annotated

import typer

from pendula.cli.commands.credit import options
from pendula.cli.commands.credit.options import CapOption, JournalArgument, PolicyOption, SetOption
from pendula.cli.output import JsonFlag, Output, example, tables_of
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.credit.engine import Run


def register(credit: typer.Typer) -> None:
    credit.command(
        "fork",
        epilog=example(
            "pendula credit fork village-journal --tick 60 --policy adaptive",
            "pendula credit fork village-journal --tick 60 --set clearing_every_n_ticks=5 --ticks 100 --json",
        ),
    )(fork)


def fork(
    journal: JournalArgument,
    tick: Annotated[int, typer.Option(metavar="K", min=0, help="Tick of the fork.", show_default=False)],
    policy: PolicyOption = None,
    cap: CapOption = None,
    set_: SetOption = None,
    ticks: Annotated[
        int | None,
        typer.Option(metavar="T", min=1, help="Number of ticks after the fork.", show_default="to the journal's end"),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Continue a run from tick K with its own and with other settings, and compare both.

    The journal is only read. Up to tick K both runs are identical; later differences come from the settings.
    """
    from pendula.credit.runs.forking import compare_runs
    from pendula.credit.runs.forking import fork as forked
    from pendula.credit.runs.recording import last_tick, reading, run_at

    values = options.read_options(policy, cap, set_)
    if not values:
        raise WrongUsage("Both runs would be identical; change a setting with --policy, --cap or --set")
    output = Output(json)
    with reading(journal) as records:
        run, last = run_at(records, tick), last_tick(records)
    if ticks is None:
        ticks = last - tick
    if ticks < 1:
        raise WrongUsage(f"The journal ends before tick {last}; pass --ticks", last=last)
    _require_no_outside(run)
    other = forked(run, options.override(run.settings, values))
    for branch in (run, other):
        branch.outside = options.solver_for(branch.settings) or branch.outside
    with output.progress("ticks", ticks) as advance:
        comparison = compare_runs(run, other, ticks, advance)
    output.result(comparison, lambda: tables_of("credit").render_fork(comparison))


def _require_no_outside(run: "Run") -> None:
    """Raises `ForkRefused` if payments come from outside: the journal has only the answers to the original run."""
    from pendula.credit.runs.forking import ForkRefused

    config = run.config
    if config.engine == "external" or config.behaviour is not None:
        outside = "an external service" if config.engine == "external" else f"the behaviour {config.behaviour!r}"
        raise ForkRefused(
            f"Payments of this run come from {outside}; fork it in a program that provides it",
            tick=run.tick,
            state=run.state_word,
        )
