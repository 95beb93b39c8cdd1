"""`pendula credit fork` and `why`: what is done with the journal of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.commands.credit import options
from pendula.cli.commands.credit.options import CapOption, PolicyOption, SetOption
from pendula.cli.output import JsonFlag, Output, example
from pendula.kernel.errors import InputRefused, WrongUsage

if TYPE_CHECKING:
    from pendula.credit.engine import Run
    from pendula.kernel.canonical import Json
    from pendula.kernel.engine import Reason

JournalArgument = Annotated[
    Path, typer.Argument(metavar="JOURNAL", help="The directory of a run's journal.", show_default=False)
]
# Answers that say that the question itself makes no sense here.
SENSELESS = ("unknown_participant", "unknown_equivalent", "invalid_amount", "invalid_payment")


def register(credit: typer.Typer) -> None:
    credit.command(
        "fork",
        epilog=example(
            "pendula credit fork village-journal --tick 60 --policy adaptive",
            "pendula credit fork village-journal --tick 60 --set clearing_every_n_ticks=5 --ticks 100 --json",
        ),
    )(fork)
    credit.command(
        "why",
        epilog=example(
            "pendula credit why village-journal --from household-04 --to shop-3 --equivalent UNIT --amount 40",
            "pendula credit why village-journal --equivalent UNIT --json",
        ),
    )(why)


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
    output.result(comparison, lambda: _tables().forked(comparison))


def why(
    journal: JournalArgument,
    tick: Annotated[
        int | None, typer.Option(metavar="K", min=0, help="Before which tick.", show_default="the last")
    ] = None,
    sender: Annotated[str | None, typer.Option("--from", metavar="A", help="Who pays.", show_default=False)] = None,
    receiver: Annotated[str | None, typer.Option("--to", metavar="B", help="Who is paid.", show_default=False)] = None,
    equivalent: Annotated[
        str | None, typer.Option(metavar="E", help="In which unit; alone, it asks about clearing.", show_default=False)
    ] = None,
    amount: Annotated[str | None, typer.Option(metavar="X", help="How much.", show_default=False)] = None,
    json: JsonFlag = False,
) -> None:
    """Say whether a payment could be made before a tick of a run, over which routes, or what stands in its way.

    With --equivalent alone: how clearing stands there. Without any of these: how the run stands.
    """
    from pendula.credit.runs.recording import last_tick, reading, run_at

    question = _question(sender, receiver, equivalent, amount)
    with reading(journal) as kept:
        run = run_at(kept, last_tick(kept) if tick is None else tick)
    reason = run.why(question)
    if reason.code in SENSELESS:
        raise InputRefused(_sense(run, reason), question=question)
    told = {"reason": reason, "tick": run.tick}
    Output(json).result(told, lambda: _tables().reasoned(run.tick, reason))


def _question(sender: str | None, receiver: str | None, equivalent: str | None, amount: str | None) -> "Json":
    match sender, receiver, equivalent, amount:
        case None, None, None, None:
            return {"run": True}
        case None, None, str(), None:
            return {"clearing": equivalent}
        case str(), str(), str(), str():
            return {"from": sender, "to": receiver, "equivalent": equivalent, "amount": amount}
    given = {"--from": sender, "--to": receiver, "--equivalent": equivalent, "--amount": amount}
    missing = [name for name, value in given.items() if value is None]
    raise WrongUsage(f"A payment has --from, --to, --equivalent and --amount; missing: {', '.join(missing)}")


def _sense(run: "Run", reason: "Reason") -> str:
    from pendula.documents.faults import suggestion

    sentence = reason.sentence.removesuffix(".")
    match reason.facts:
        case {"participant": str(name)}:
            return sentence + suggestion(name, list(run.network.people.index))
        case {"equivalent": str(name)} if reason.code == "unknown_equivalent":
            return f"{sentence}; there are {', '.join(run.network.desks)}"
    return sentence


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


def _tables() -> Any:
    """Only where something is drawn: it loads rich."""
    from pendula.cli.commands.credit import tables

    return tables
