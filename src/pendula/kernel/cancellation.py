"""Long work that can be given up between two steps: replays, what-ifs, reading of long journals.

Whoever starts it in a thread hands a `Cancellation` to it; what works in steps calls `check` before each. Engines never
do: a command is applied whole or not at all. Where no one may give the work up, `check` does nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pendula.kernel.errors import WorldBroken


class GivenUp(WorldBroken):
    """The work was cancelled before it was done."""

    code = "given_up"


class Cancellation:
    """May be cancelled by any thread, once and for good."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[None]:
    """What is done within gives up at its next step once `cancellation` is cancelled."""
    token = _current.set(cancellation)
    try:
        yield
    finally:
        _current.reset(token)


def is_cancelled() -> bool:
    """Whether the work of this thread was cancelled."""
    current = _current.get()
    return current is not None and current.cancelled


def check() -> None:
    """Raise `GivenUp` if the work of this thread was cancelled."""
    if is_cancelled():
        raise GivenUp("The work was cancelled")
