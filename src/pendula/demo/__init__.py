"""The demos of `pendula serve --demo`, one module for each scheduler that has one.

They are written against the public names of the schedulers, so each is also an example of its scheduler.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Engine


class Demo(Struct, frozen=True):
    """A demo engine with an endless supply of commands, chosen by its state and the number of previous commands."""

    engine: str
    config: Json
    next_command: Callable[[Engine[Any, Any], int], object]
    pause_seconds: int = 1
