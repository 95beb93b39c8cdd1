"""How far a conflict of two lanes reaches, as an option; the room itself is loaded only when it is used."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pendula.fleet.model import Granularity


class Choice(StrEnum):
    WINDOW = "window"
    EDGE = "edge"


GranularityOption = Annotated[
    Choice | None,
    typer.Option(
        help="Lanes that come too close exclude each other where they do (window) or as wholes (edge).",
        show_default="window",
    ),
]


def chosen(choice: Choice | None) -> "Granularity | None":
    from pendula.fleet.model import Granularity

    return None if choice is None else Granularity(choice.value)
