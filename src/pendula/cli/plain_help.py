"""Help in words: no types of Python, and defaults that are sentences as they are.

The library shows `<list[Path]>` and `[default: (never)]`; a reader of help wants `DIR…` and `[default: never]`.
"""

import re
from typing import Any

# A line that ends where the source has no space, not where a paragraph ends.
_WRAPPED = re.compile(r"(?<!\n)\n(?!\n)")


def in_plain_words(command: Any) -> Any:
    """The same command, and all below it, with plainer help."""
    _unwrap(command)
    for parameter in getattr(command, "params", ()):
        _name_no_type(parameter)
        _say_default(parameter)
    _name_no_type_of_help(command)
    for child in getattr(command, "commands", {}).values():
        in_plain_words(child)
    return command


def _unwrap(command: Any) -> None:
    """Lines end where the terminal does: those of the source would leave half of every other line empty."""
    if command.help:
        command.help = _WRAPPED.sub(" ", command.help)


def _name_no_type(parameter: Any) -> None:
    """What stands beside an option is its metavar or its choices; an argument and a flag need nothing."""
    if parameter.param_type_name == "argument" or getattr(parameter, "is_flag", False):
        shown = None
    elif parameter.metavar is not None:
        shown = parameter.metavar
    elif parameter.type_descriptor.is_choice:
        return
    else:
        shown = parameter.name.upper()
    # Beside the usage the type is asked for as well: there the metavar does.
    parameter.display_type_rich = lambda ctx: shown  # noqa: ARG005


def _name_no_type_of_help(command: Any) -> None:
    """The option --help is made anew whenever it is asked for."""
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
