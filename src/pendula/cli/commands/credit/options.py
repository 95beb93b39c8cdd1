"""Settings of a run out of the command line: the environment first, options over it.

What the environment says wrongly is refused input; a wrong option is wrong usage.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pendula.credit.settings import BY_NAME, BY_VARIABLE, ClearingMode, ClearingPolicy, InvalidSetting, changed
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.credit.settings import Settings
    from pendula.kernel.engine import Outside

PolicyOption = Annotated[
    ClearingPolicy | None, typer.Option(help="When clearing is tried.", show_default=False, case_sensitive=False)
]
CapOption = Annotated[
    str | None,
    typer.Option(metavar="X", help="Largest amount of a planned payment, or none.", show_default=False),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting, by name or variable; may be repeated."),
]


def from_environment() -> "Settings":
    """The settings of this process; raises `InvalidSetting`."""
    from pendula.credit import settings

    return settings.from_environment(os.environ)


def chosen(
    policy: ClearingPolicy | None = None,
    cap: str | None = None,
    sets: Sequence[str] | None = None,
    yardstick: bool = False,
) -> dict[str, str]:
    """The settings that options give, by name; raises `WrongUsage` for what names none or names one twice."""
    given: list[tuple[str, str]] = []
    if policy is not None:
        given.append(("clearing_policy", policy.value))
    if cap is not None:
        given.append(("amount_cap", cap))
    if yardstick:
        given.append(("clearing_yardstick", "on"))
    given += map(_pair, sets or ())
    found = dict(given)
    if len(found) < len(given):
        twice = next(name for name, _ in given if sum(name == other for other, _ in given) > 1)
        raise WrongUsage(f"The setting {twice} is given twice", setting=twice)
    return found


def over(settings: "Settings", values: Mapping[str, str]) -> "Settings":
    """The settings with those of the options; raises `WrongUsage` with the variable, the value and what is allowed."""
    try:
        return changed(settings, values)
    except InvalidSetting as refused:
        raise WrongUsage(refused.message, **refused.details) from None


def solver_for(settings: "Settings") -> "Outside | None":
    """Who finds the optimum, where the settings ask for it; raises `OptimalMissing` without the extra."""
    if settings.clearing_mode is not ClearingMode.OPTIMAL and not settings.clearing_yardstick:
        return None
    from pendula.credit.outside.solver import OptimalOutside

    return OptimalOutside()


def _pair(text: str) -> tuple[str, str]:
    from pendula.documents.faults import suggestion

    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals:
        raise WrongUsage(f"--set {text!r} is not of the form NAME=VALUE", setting=text)
    setting = BY_NAME.get(key) or BY_VARIABLE.get(key)
    if setting is None:
        near = suggestion(key, [*BY_NAME, *BY_VARIABLE])
        raise WrongUsage(f"No setting is called {key!r}{near}", setting=key, allowed=sorted(BY_NAME))
    return setting.name, value
