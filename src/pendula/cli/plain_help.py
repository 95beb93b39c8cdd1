"""Help without Python types, and with defaults as plain text.

Typer shows `<list[Path]>` and `[default: (never)]`; this module changes that to `DIR…` and `[default: never]`.
"""

import re
from typing import Any

# A line break in the source that does not end a paragraph.
_WRAPPED = re.compile(r"(?<!\n)\n(?!\n)")


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
