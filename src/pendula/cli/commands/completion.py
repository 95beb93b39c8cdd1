"""`pendula completion`: the script that lets a shell complete commands, options and choices; and the completing itself.

With every press of Tab the shell calls `pendula` with a variable set; what may stand there is printed, and that is all.
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]

from pendula.cli.output import JsonFlag, Output, example

VARIABLE = "_PENDULA_COMPLETE"
# The line to complete: in the variable of bash, or in that of zsh and fish.
LINES = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def register(program: typer.Typer) -> None:
    program.command(
        "completion",
        epilog=example(
            "pendula completion bash > ~/.local/share/bash-completion/completions/pendula",
            "pendula completion zsh > ~/.zfunc/_pendula",
            "pendula completion fish > ~/.config/fish/completions/pendula.fish",
        ),
    )(completion)


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell that is to complete.", show_default=False)],
    json: JsonFlag = False,
) -> None:
    """Print the script that makes a shell complete commands, options and choices.

    Save it where the shell looks for such scripts; it takes effect in the next shell.
    """
    script = get_completion_script(prog_name="pendula", complete_var=VARIABLE, shell=shell)
    Output(json).result({"script": script, "shell": shell.value}, lambda: script)


def word_being_completed(environ: Mapping[str, str] = os.environ) -> str | None:
    """The first word behind `pendula` on the line to complete, empty where there is none; None unless a shell asks."""
    if VARIABLE not in environ:
        return None
    completion_init()
    line = next((environ[name] for name in LINES if name in environ), "")
    return next(iter(line.split()[1:]), "")
