"""The command tree and its execution: arguments in, exit code out.

A scheduler's commands are imported only if its name is the first argument, so that libraries of others are not loaded.
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.main import get_command

from pendula import __version__
from pendula.cli.commands import backup, bench, completion, replay, serve, token
from pendula.cli.failing import ending
from pendula.cli.output import example
from pendula.cli.plain_help import in_plain_words
from pendula.cli.schedulers import GROUPS, commands_of


def build(first_argument: str | None) -> typer.Typer:
    """The command tree; only the scheduler named by the first argument has its subcommands."""
    program = typer.Typer(
        name="pendula",
        help="Schedules that come out the same every time.",
        epilog=example("pendula serve --demo", "pendula replay pendula-data/schedulers/actions/town"),
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    program.callback(invoke_without_command=True)(_start)
    serve.register(program)
    replay.register(program)
    backup.register(program)
    bench.register(program)
    token.register(program)
    completion.register(program)
    for name, group in GROUPS.items():
        commands = commands_of(group) if name == first_argument else typer.Typer()
        program.add_typer(commands, name=name, help=group.sentence)
    return program


def run(arguments: Sequence[str]) -> int:
    """Run the program; errors are reported on stderr and determine the exit code."""
    return ending(arguments, lambda: _invoke(arguments))


def _invoke(arguments: Sequence[str]) -> int:
    completed = completion.word_being_completed()
    if completed is not None:
        # Prints the completions and exits; the arguments are in the shell's variable.
        get_command(build(completed)).main([], prog_name="pendula", complete_var=completion.VARIABLE)
    command = in_plain_words(get_command(build(arguments[0] if arguments else None)))
    try:
        with command.make_context("pendula", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as leaving:
        return leaving.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    return 0


def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        sys.stdout.write(f"pendula {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help())
        raise typer.Exit
