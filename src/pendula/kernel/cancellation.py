"""Cancellation of long work between two steps: replays, what-ifs, reads of long journals.

The caller that starts the work in a thread passes it a `Cancellation`; the work calls `check` before each step. Engines
never do: a command is applied whole or not at all. Without a `Cancellation`, `check` does nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pendula.kernel.errors import WorldBroken


class Cancelled(WorldBroken):
    """The work was cancelled before it finished."""

    code = "cancelled"


class Cancellation:
    """A flag that any thread can set; it is never cleared."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[None]:
    """Make work in this context stop at its next step once `cancellation` is cancelled."""
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
    """Raise `Cancelled` if the work of this thread was cancelled."""
    if is_cancelled():
        raise Cancelled("The work was cancelled")
