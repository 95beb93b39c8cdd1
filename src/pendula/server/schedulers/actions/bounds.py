"""How much one command may ask of a world: a month at a time, said before anything is computed.

A year of an empty world is a year of epochs, each told and written down, and of a full one all that happens in it. The
library has no such bound: whoever calls it pays for it alone.
"""

from pendula.actions import World
from pendula.actions.events import Advance, Command
from pendula.server.errors import TooMuchAtOnce

MOST_DAYS = 31
MOST_MINUTES = MOST_DAYS * 24 * 60


def check(world: World, command: Command) -> None:
    """Raises `TooMuchAtOnce`."""
    if not isinstance(command, Advance):
        return
    asked = command.to - world.now()
    if asked > MOST_MINUTES:
        raise TooMuchAtOnce(
            f"Minute {command.to} is {asked} minutes away; one command goes {MOST_MINUTES} minutes ({MOST_DAYS} days) "
            f"at most: go there in several steps, the first to minute {world.now() + MOST_MINUTES}",
            asked=asked,
            allowed=MOST_MINUTES,
            next_to=world.now() + MOST_MINUTES,
        )
