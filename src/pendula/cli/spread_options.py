"""Options of commands with many runs: processes, cluster, output files."""

import os
from pathlib import Path
from typing import Annotated

import typer

from pendula.kernel.errors import WrongUsage

WorkersOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, max=1024, help="Processes at the same time.", show_default="one a core"),
]
DaskOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Run on the Dask scheduler at this address instead; extra dask.", show_default=False
    ),
]


def cores() -> int:
    """The number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def require_folder(*files: Path | None) -> None:
    """Refuse output files in missing folders, before the work is done."""
    for file in files:
        if file is not None and not file.parent.is_dir():
            raise WrongUsage(f"The folder {file.parent} for {file.name} does not exist", path=str(file))
