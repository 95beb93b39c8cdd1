"""`pendula completion`: the completion script of a shell, and completion itself.

On Tab the shell calls `pendula` with a variable set, and `pendula` prints the completions.
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]

from pendula.cli.output import JsonFlag, Output, example

VARIABLE = "_PENDULA_COMPLETE"
# The line to complete, in the variable of bash or of zsh and fish.
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
