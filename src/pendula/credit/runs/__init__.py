"""One run: without a server, with a journal, its files, and its forks."""

from importlib import import_module
from typing import TYPE_CHECKING

from pendula.credit.runs.forking import compare_runs, fork

if TYPE_CHECKING:
    from pendula.credit.runs.recording import Recording, last_tick, reading, run_at
else:

    def __getattr__(name: str) -> object:
        """Load modules that need a journal on demand: a run without one does not import the driver."""
        if name in ("Recording", "last_tick", "reading", "run_at"):
            return getattr(import_module("pendula.credit.runs.recording"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Recording",  # a run and its journal
    "compare_runs",  # step two runs and compare them
    "fork",  # a second run with other settings from this tick on
    "last_tick",  # the tick that the run of a journal reached
    "reading",  # open the journal of a run read-only
    "run_at",  # the run of a journal before a tick
]
