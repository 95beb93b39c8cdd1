"""Limits of one command over HTTP; the player itself limits how far one `Advance` goes."""

from pendula.playback import Player
from pendula.playback.messages import At, Commands, Take
from pendula.server.errors import TooMuchAtOnce

MOST_TAKEN = 10_000


def check(player: Player, command: Commands) -> None:  # noqa: ARG001
    """Raises `TooMuchAtOnce`."""
    if isinstance(command, At):
        command = command.command
    if isinstance(command, Take) and command.n > MOST_TAKEN:
        raise TooMuchAtOnce(
            f"{command.n} items are too many for one command; the limit is {MOST_TAKEN}: take them in several steps",
            asked=command.n,
            allowed=MOST_TAKEN,
        )
