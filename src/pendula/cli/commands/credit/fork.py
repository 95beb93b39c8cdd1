"""`pendula credit fork`: a run once as it was and once with other settings."""

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
    tick: Annotated[int, typer.Option(metavar="K", min=0, help="Where the ways part.", show_default=False)],
    policy: PolicyOption = None,
    cap: CapOption = None,
    set_: SetOption = None,
    ticks: Annotated[
        int | None,
        typer.Option(metavar="T", min=1, help="How many ticks from there.", show_default="to the journal's end"),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Let a run go on from tick K once as it was and once with other settings, and say what differs.

    The journal is only read. Up to tick K both are the same run; whatever differs later comes from the settings.
    """
    from pendula.credit.runs.forking import compared
    from pendula.credit.runs.forking import fork as forked
    from pendula.credit.runs.recording import last_tick, reading, run_at

    values = options.chosen(policy, cap, set_)
    if not values:
        raise WrongUsage("Nothing would differ; say with --policy, --cap or --set what should")
    output = Output(json)
    with reading(journal) as kept:
        run, last = run_at(kept, tick), last_tick(kept)
    if ticks is None:
        ticks = last - tick
    if ticks < 1:
        raise WrongUsage(f"The journal ends before tick {last}; say with --ticks how far to go on", last=last)
    _require_alone(run)
    other = forked(run, options.over(run.settings, values))
    for one in (run, other):
        one.outside = options.solver_for(one.settings) or one.outside
    with output.progress("ticks", ticks) as advance:
        comparison = compared(run, other, ticks, advance)
    output.result(comparison, lambda: tables_of("credit").forked(comparison))


def _require_alone(run: "Run") -> None:
    """Refuse what only others could decide: their answers are in the journal, not those they would give now."""
    from pendula.credit.runs.forking import ForkRefused

    config = run.config
    if config.engine == "external" or config.behaviour is not None:
        who = "another system" if config.engine == "external" else f"the behaviour {config.behaviour!r}"
        raise ForkRefused(
            f"This run asked {who} what to do; a fork of it needs a program that can ask again",
            tick=run.tick,
            state=run.state_word,
        )
