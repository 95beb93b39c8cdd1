"""`pendula credit fork` and `why`: continue a run with other settings, explain whether a payment is possible."""

from typing import TYPE_CHECKING, Annotated

import typer

from pendula.cli.commands.credit import options
from pendula.cli.commands.credit.options import CapOption, JournalArgument, PolicyOption, SetOption
from pendula.cli.output import JsonFlag, Output, example, tables_of
from pendula.kernel.errors import InputRefused, WrongUsage

if TYPE_CHECKING:
    from pendula.credit.engine import Run
    from pendula.kernel.canonical import Json
    from pendula.kernel.engine import Reason

# Codes of invalid questions of `why`.
INVALID = ("unknown_participant", "unknown_equivalent", "invalid_amount", "invalid_payment")


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


def why(
    journal: JournalArgument,
    tick: Annotated[
        int | None,
        typer.Option(metavar="K", min=0, help="Explain before this tick.", show_default="the last"),
    ] = None,
    sender: Annotated[str | None, typer.Option("--from", metavar="A", help="Payer.", show_default=False)] = None,
    receiver: Annotated[str | None, typer.Option("--to", metavar="B", help="Payee.", show_default=False)] = None,
    equivalent: Annotated[
        str | None, typer.Option(metavar="E", help="Equivalent; alone, explains clearing.", show_default=False)
    ] = None,
    amount: Annotated[str | None, typer.Option(metavar="X", help="Amount.", show_default=False)] = None,
    json: JsonFlag = False,
) -> None:
    """Explain whether a payment is possible before a tick of a run: its routes, or what blocks it.

    With --equivalent alone: the state of clearing. Without options: the state of the run.
    """
    from pendula.credit.runs.recording import last_tick, reading, run_at

    question = _question(sender, receiver, equivalent, amount)
    with reading(journal) as records:
        run = run_at(records, last_tick(records) if tick is None else tick)
    reason = run.why(question)
    if reason.code in INVALID:
        raise InputRefused(_describe_invalid(run, reason), question=question)
    answer = {"reason": reason, "tick": run.tick}
    Output(json).result(answer, lambda: tables_of("credit").render_reason(run.tick, reason))


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
    raise WrongUsage(f"A payment needs --from, --to, --equivalent and --amount; missing: {', '.join(missing)}")


def _describe_invalid(run: "Run", reason: "Reason") -> str:
    from pendula.kernel.wording import suggestion

    sentence = reason.sentence.removesuffix(".")
    match reason.facts:
        case {"participant": str(name)}:
            return sentence + suggestion(name, list(run.network.people.index))
        case {"equivalent": str(name)} if reason.code == "unknown_equivalent":
            return f"{sentence}; there are {', '.join(run.network.ledgers)}"
    return sentence
