"""One run: without a server, with a journal, its files, and its forks.

headless     a run made from a document, stepped as far as one likes, told in one result
recording    every command through a journal; any tick of it again
forking      the same run with other settings from some tick on, and what that changes
artifacts    what a run leaves in a directory: status, last tick, every event, a summary, a bundle
bundles      a bundle read again and repeated, to the same digests
"""

from importlib import import_module
from typing import TYPE_CHECKING

from pendula.credit.runs.forking import compared, fork

if TYPE_CHECKING:
    from pendula.credit.runs.recording import Recording, last_tick, reading, run_at
else:

    def __getattr__(name: str) -> object:
        """What needs a journal loads when it is asked for: a run without one does not pay for the driver."""
        if name in ("Recording", "last_tick", "reading", "run_at"):
            return getattr(import_module("pendula.credit.runs.recording"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Recording",  # a run and its journal
    "compared",  # step two runs, say what differs
    "fork",  # a second run with other settings from here on
    "last_tick",  # where the run of a journal stands
    "reading",  # the journal of a run, to look at
    "run_at",  # the run of a journal as it stood before a tick
]
