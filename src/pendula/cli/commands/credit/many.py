"""What commands that make many runs share: seeds, workers, a cluster, and settings given side by side."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from pendula.credit.settings import BY_NAME, BY_VARIABLE
from pendula.kernel.errors import WrongUsage

# As the options of `run` are called.
SHORT = {"policy": "clearing_policy", "cap": "amount_cap"}

FirstSeedOption = Annotated[int, typer.Option(metavar="S", min=0, help="The first seed; the others follow it.")]
IntensityOption = Annotated[int, typer.Option(metavar="P", min=0, max=100, help="Per cent of the actions.")]
WorkersOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, max=1024, help="Processes at the same time.", show_default="one a core"),
]
DaskOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on the Dask scheduler there instead; extra dask.", show_default=False),
]


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """Settings by name out of NAME=VALUE; raises `WrongUsage` for what names none or names one twice."""
    from pendula.documents.faults import suggestion

    found: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        key = SHORT.get(key.strip(), key.strip())
        if not equals:
            raise WrongUsage(f"{option} {text!r} is not of the form NAME=VALUE", setting=text)
        setting = BY_NAME.get(key) or BY_VARIABLE.get(key)
        if setting is None:
            near = suggestion(key, [*SHORT, *BY_NAME, *BY_VARIABLE])
            raise WrongUsage(f"No setting is called {key!r}{near}", setting=key, allowed=sorted(BY_NAME))
        if setting.name in found:
            raise WrongUsage(f"{option} gives the setting {setting.name} twice", setting=setting.name)
        found[setting.name] = value.strip()
    return found


def require_folder(*files: Path | None) -> None:
    """Refuse a file that could not be written before the work is done."""
    for file in files:
        if file is not None and not file.parent.is_dir():
            raise WrongUsage(f"There is no folder {file.parent} to write {file.name} into", path=str(file))


def short(text: int | str | None) -> str:
    """A number of a column for somebody who reads it: four digits behind the point at most, zeros left out."""
    from decimal import Decimal

    if not isinstance(text, str):
        return "–" if text is None else str(text)
    if not text.removeprefix("-").replace(".", "", 1).isdigit():
        return text
    plain = format(Decimal(text).quantize(Decimal("0.0001")), "f").rstrip("0").rstrip(".")
    return "0" if plain == "-0" else plain


def grouped(*parts: Any) -> Any:
    """Things below each other; loads rich."""
    from rich.console import Group

    return Group(*parts)
