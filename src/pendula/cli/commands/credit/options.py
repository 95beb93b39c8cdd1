"""Shared arguments and options, and the settings from the environment and from options.

Options override the environment. An invalid variable is refused input, an invalid option wrong usage.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pendula.credit.settings import (
    BY_NAME,
    ClearingPolicy,
    InvalidSetting,
    change_settings,
    near_settings,
    setting_called,
)
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.credit.settings import Settings
    from pendula.kernel.engine import Outside

# Names of the options of `run`.
SHORT = {"policy": "clearing_policy", "cap": "amount_cap"}

ScenarioArgument = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="The network: a JSON or YAML file.", show_default=False)
]
LenientFlag = Annotated[
    bool, typer.Option("--lenient", help="Turn unknown fields and other minor faults into warnings.")
]
JournalArgument = Annotated[
    Path, typer.Argument(metavar="JOURNAL", help="The directory of a run's journal.", show_default=False)
]
PolicyOption = Annotated[
    ClearingPolicy | None, typer.Option(help="When to clear.", show_default=False, case_sensitive=False)
]
CapOption = Annotated[
    str | None,
    typer.Option(metavar="X", help="Maximum amount of a planned payment, or none.", show_default=False),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting, or a file of settings; may be repeated."),
]

EngineOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Pay and clear through this HTTP service.", show_default="embedded"),
]
EngineTokenOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A file with the token of that service.", show_default=False)
]

FirstSeedOption = Annotated[int, typer.Option(metavar="S", min=0, help="First seed; the others follow it.")]
IntensityOption = Annotated[int, typer.Option(metavar="P", min=0, max=100, help="Share of the actions, in per cent.")]


def from_environment() -> "Settings":
    """The settings of this process; raises `InvalidSetting`."""
    from pendula.credit import settings

    return settings.from_environment(os.environ)


def read_options(
    policy: ClearingPolicy | None = None,
    cap: str | None = None,
    sets: Sequence[str] | None = None,
    yardstick: bool = False,
) -> dict[str, str]:
    """The settings of the options, by name; raises `WrongUsage` for an unknown or repeated setting."""
    given: list[tuple[str, str]] = []
    if policy is not None:
        given.append(("clearing_policy", policy.value))
    if cap is not None:
        given.append(("amount_cap", cap))
    if yardstick:
        given.append(("clearing_yardstick", "on"))
    for text in sets or ():
        given += read_file(Path(text)).items() if _is_file(text) else [_read_pair("--set", text, {})]
    values = dict(given)
    if len(values) < len(given):
        twice = next(name for name, _ in given if sum(name == other for other, _ in given) > 1)
        raise WrongUsage(f"The setting {twice} is given twice; give it once", setting=twice)
    return values


def override(settings: "Settings", values: Mapping[str, str]) -> "Settings":
    """The settings with these values; raises `WrongUsage`."""
    try:
        return change_settings(settings, values)
    except InvalidSetting as refused:
        raise WrongUsage(refused.message, **refused.details) from None


def solver_for(settings: "Settings") -> "Outside | None":
    """The solver, if the settings need one; raises `MissingExtra` without the extra."""
    if not settings.needs_solver:
        return None
    from pendula.credit.outside.answers import OptimalOutside

    return OptimalOutside()


def outside_for(settings: "Settings", engine: str | None, token_file: Path | None) -> "Outside | None":
    """The outside of a run: a payment service, a solver, or both; raises `WrongUsage` for an invalid URL."""
    solver = solver_for(settings)
    if engine is None:
        if token_file is not None:
            raise WrongUsage("--engine-token-file needs --engine")
        return solver
    from pendula.credit.outside.answers import Answers
    from pendula.credit.outside.payment_service import PaymentService

    return Answers(None, PaymentService.with_settings(engine, settings, token=_token(token_file)), solver)


def _token(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise WrongUsage(f"The token file {file} cannot be read: {error}") from None


def read_pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """Settings by name from NAME=VALUE, also with short names; raises `WrongUsage`."""
    values: dict[str, str] = {}
    for text in texts or ():
        name, value = _read_pair(option, text, SHORT)
        if name in values:
            raise WrongUsage(f"{option} gives the setting {name} twice", setting=name)
        values[name] = value.strip()
    return values


def split_changes(texts: Sequence[str] | None) -> tuple[list[str], list[tuple[str, str]]]:
    """Separate settings from changes of the scenario, which are (path, value); raises `WrongUsage`."""
    from pendula.credit.studies.variations import InvalidVariation, names_a_place, split, variation

    places = [text for text in texts or () if names_a_place(text) and not _is_file(text)]
    try:
        changes = [split(text) for text in places]
        for path, _ in changes:
            variation(path)
    except InvalidVariation as refused:
        raise WrongUsage(refused.message, **refused.details) from None
    return [text for text in texts or () if text not in places], changes


def _is_file(text: str) -> bool:
    return "=" not in text and Path(text).suffix.lower() in (".yaml", ".yml", ".json")


def read_file(file: Path) -> dict[str, str]:
    """The settings of a file; raises `DocumentRefused` with every fault."""
    from pendula import documents
    from pendula.credit.reading import read_settings

    return read_settings(documents.read_file(file))


def _read_pair(option: str, text: str, short: Mapping[str, str]) -> tuple[str, str]:

    key, equals, value = text.partition("=")
    key = short.get(key.strip(), key.strip())
    if not equals:
        raise WrongUsage(f"{option} {text!r} is not of the form NAME=VALUE", setting=text)
    setting = setting_called(key)
    if setting is None:
        raise WrongUsage(
            f"No setting is called {key!r}{near_settings(key, *short)}", setting=key, allowed=sorted(BY_NAME)
        )
    return setting.name, value
