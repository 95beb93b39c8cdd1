"""The playback file of `playback run` and `playback why`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pendula.playback.runs.loading import Spec

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="Channels, settings and calls: a YAML or JSON file.", show_default=False)
]


def spec_of(file: Path) -> "Spec":
    """Raises `DocumentRefused` with every fault of the file."""
    from pendula.documents import read_file
    from pendula.playback.runs.loading import read_spec

    return read_spec(read_file(file))
