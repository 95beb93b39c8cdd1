"""The command tree and its execution: arguments in, exit code out.

A scheduler's commands are imported only if its name is the first argument, so that libraries of others are not loaded.

Help has no Python types, and defaults as plain text: Typer shows `<list[Path]>` and `[default: (never)]`; here it is
`DIR…` and `[default: never]`. On Tab a shell calls `pendula` with a variable set, and `pendula` prints the completions.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]
from typer.main import get_command

from pendula import __version__
from pendula.cli.commands import bench, replay, serve, token
from pendula.cli.failing import ending
from pendula.cli.output import JsonFlag, Output, example
from pendula.cli.schedulers import GROUPS, commands_of

VARIABLE = "_PENDULA_COMPLETE"
# The line to complete, in the variable of bash or of zsh and fish.
LINES = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
# A line break in the source that does not end a paragraph.
_WRAPPED = re.compile(r"(?<!\n)\n(?!\n)")


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


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
    bench.register(program)
    token.register(program)
    program.command(
        "completion",
        epilog=example(
            "pendula completion bash > ~/.local/share/bash-completion/completions/pendula",
            "pendula completion zsh > ~/.zfunc/_pendula",
            "pendula completion fish > ~/.config/fish/completions/pendula.fish",
        ),
    )(completion)
    for name, group in GROUPS.items():
        commands = commands_of(group) if name == first_argument else typer.Typer()
        program.add_typer(commands, name=name, help=group.sentence)
    return program


def run(arguments: Sequence[str]) -> int:
    """Run the program; errors are reported on stderr and determine the exit code."""
    return ending(arguments, lambda: _invoke(arguments))


def _invoke(arguments: Sequence[str]) -> int:
    completed = word_being_completed()
    if completed is not None:
        # Prints the completions and exits; the arguments are in the shell's variable.
        get_command(build(completed)).main([], prog_name="pendula", complete_var=VARIABLE)
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


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell.", show_default=False)],
    json: JsonFlag = False,
) -> None:
    """Print the completion script for a shell.

    Save it where the shell looks for completions; it takes effect in the next shell.
    """
    script = get_completion_script(prog_name="pendula", complete_var=VARIABLE, shell=shell)
    Output(json).result({"script": script, "shell": shell.value}, lambda: script)


def word_being_completed(environ: Mapping[str, str] = os.environ) -> str | None:
    """The first word after `pendula` on the line to complete, or empty; None unless a shell requests completion."""
    if VARIABLE not in environ:
        return None
    completion_init()
    line = next((environ[name] for name in LINES if name in environ), "")
    return next(iter(line.split()[1:]), "")


def in_plain_words(command: Any) -> Any:
    """The command and its subcommands with plain help."""
    _unwrap(command)
    for parameter in getattr(command, "params", ()):
        _name_no_type(parameter)
        _say_default(parameter)
    _name_no_type_of_help(command)
    for child in getattr(command, "commands", {}).values():
        in_plain_words(child)
    return command


def _unwrap(command: Any) -> None:
    """Remove line breaks of the source, so that text wraps at the terminal width."""
    if command.help:
        command.help = _WRAPPED.sub(" ", command.help)


def _name_no_type(parameter: Any) -> None:
    """Show the metavar or choices of an option instead of its type; nothing for arguments and flags."""
    if parameter.param_type_name == "argument" or getattr(parameter, "is_flag", False):
        shown = None
    elif parameter.metavar is not None:
        shown = parameter.metavar
    elif parameter.type_descriptor.is_choice:
        return
    else:
        shown = parameter.name.upper()
    # The usage line asks for the type, too; give it the metavar.
    parameter.display_type_rich = lambda ctx: shown  # noqa: ARG005


def _name_no_type_of_help(command: Any) -> None:
    """The same for the option --help, which is created on each use."""
    made = command.get_help_option

    def plain(ctx: Any) -> Any:
        option = made(ctx)
        if option is not None:
            _name_no_type(option)
        return option

    command.get_help_option = plain


def _say_default(parameter: Any) -> None:
    if isinstance(parameter.show_default, str):
        # Escaped: help is read as markup.
        parameter.help = rf"{parameter.help or ''} \[default: {parameter.show_default}]".strip()
        parameter.show_default = False
