"""The size limit of one command: a month of time, checked before anything is computed.

Other users of the server would wait for a longer command. The library has no such limit.
"""

from pendula.actions import World
from pendula.actions.messages import Advance, Command
from pendula.server.errors import TooMuchAtOnce

MOST_DAYS = 31
MOST_MINUTES = MOST_DAYS * 24 * 60


def check(world: World, command: Command) -> None:
    """Raises `TooMuchAtOnce`."""
    if not isinstance(command, Advance):
        return
    minutes = command.to - world.now()
    if minutes > MOST_MINUTES:
        raise TooMuchAtOnce(
            f"Minute {command.to} is {minutes} minutes away; one command advances at most {MOST_MINUTES} minutes "
            f"({MOST_DAYS} days): advance in steps, the first to minute {world.now() + MOST_MINUTES}",
            asked=minutes,
            allowed=MOST_MINUTES,
            next_to=world.now() + MOST_MINUTES,
        )
