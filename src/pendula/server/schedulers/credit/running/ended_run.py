"""A run that has ended, to be looked back at: its journal, read only, with its moments and the run at each of them.

It is closed when nobody holds it any more: somebody may still be reading when another one is asked for.
"""

import weakref
from pathlib import Path

from pendula.credit.engine import Run
from pendula.kernel.driver import engine_at
from pendula.kernel.journal import FileJournal
from pendula.server.hosting.history import PastEngines
from pendula.server.hosting.moments import Moments
from pendula.server.hosting.past import Lane
from pendula.server.schedulers.credit.running.recovery import disk_of


class EndedRun:
    """What a time slider asks of a run that is not open. Raises what is wrong with its journal."""

    def __init__(self, directory: Path) -> None:
        disk = disk_of(directory)
        weakref.finalize(self, disk.close)
        self.journal = FileJournal.open(disk, read_only=True)
        self.past = PastEngines(self.journal, lambda n: engine_at(self.journal, Run, n))
        self.moments = Moments(self.journal, {})


class EndedRuns:
    """Runs that have ended; the one that was looked at last is kept at hand. Belongs to the event loop."""

    def __init__(self) -> None:
        self._last: tuple[Path, str | None, EndedRun] | None = None

    async def look(self, directory: Path, stopped_at: str | None, lane: Lane) -> EndedRun:
        """A run that ended then: one that was started again and ended again has more to tell."""
        if self._last is None or self._last[:2] != (directory, stopped_at):
            self._last = directory, stopped_at, await lane.look(lambda: EndedRun(directory))
        return self._last[2]
