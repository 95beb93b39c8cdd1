"""The commands of gates and rollbacks: gates list, gates set, rollbacks."""

from typing import Annotated, Any

import typer

from pendula.cli.commands.jobs.governed.objects import UserOption, WhyOption, governed_objects
from pendula.cli.commands.jobs.target import Target, command, members
from pendula.cli.output import example


def register(jobs: typer.Typer) -> None:
    at = "--db sqlite:///jobs.db"
    group = typer.Typer(
        no_args_is_help=True,
        epilog=example(
            f"pendula jobs gates list {at}", f"pendula jobs gates set risk_gate limit --reason 'careful' {at}"
        ),
    )
    command(group, "list", f"pendula jobs gates list --scope memory:mem_1 {at}")(list_)
    command(
        group,
        "set",
        f"pendula jobs gates set risk_gate pass --reason 'all is calm' {at}",
        f"pendula jobs gates set persona_conflict_gate block --scope memory:mem_1 --reason 'not her' --user mia {at}",
    )(set_)
    jobs.add_typer(group, name="gates", help="Gates that high-risk changes of governed objects must pass.")
    command(jobs, "rollbacks", f"pendula jobs rollbacks {at}")(rollbacks)


def list_(
    target: Target,
    scope: Annotated[
        str | None,
        typer.Option(metavar="SCOPE", help="Gates that apply to memory:mem_1.", show_default="all"),
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="1 to 1000.", show_default="100")] = None,
    after: Annotated[str | None, typer.Option(metavar="GATE", help="The last gate of the previous page.")] = None,
) -> None:
    """List gates with verdict, time and user; gates for all objects first."""
    with governed_objects(target) as objects:
        reply = objects.gates(**members(scope=scope, limit=limit, after=after))
    target.out.result(reply, lambda: _tables().gates(reply))


def set_(
    target: Target,
    gate: Annotated[
        str,
        typer.Argument(
            metavar="GATE",
            help="persona_conflict_gate, risk_gate, cognition_gate, social_gate.",
            show_default=False,
        ),
    ],
    verdict: Annotated[
        str,
        typer.Argument(metavar="VERDICT", help="pass, block, limit, degrade, defer, override.", show_default=False),
    ],
    reason: WhyOption,
    scope: Annotated[
        str | None, typer.Option(metavar="SCOPE", help="One object: memory:mem_1.", show_default="all objects")
    ] = None,
    user: UserOption = None,
) -> None:
    """Set the verdict of a gate, for all objects or for one. An override needs a named user."""
    given = members(gate=gate, verdict=verdict, reason=reason, scope=scope)
    with governed_objects(target, user) as objects:
        reply = objects.set_gate(given.pop("gate"), given.pop("verdict"), given.pop("reason"), **given)
    target.out.result(reply, lambda: _tables().gate(reply["gate"]))


def rollbacks(
    target: Target,
    limit: Annotated[int | None, typer.Option(metavar="N", help="1 to 1000.", show_default="100")] = None,
) -> None:
    """List unfinished rollbacks, the oldest first."""
    with governed_objects(target) as objects:
        reply = objects.rollbacks(**members(limit=limit))
    target.out.result(reply, lambda: _tables().rollbacks(reply))


def _tables() -> Any:
    """Imported lazily: it loads rich."""
    from pendula.cli.commands.jobs.governed import tables

    return tables
