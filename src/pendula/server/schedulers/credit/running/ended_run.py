"""The history of an ended run: its journal, read only, with its moments and the run at each of them.

It closes when it is garbage collected: another request may still read it when it leaves the cache.
"""

import weakref
from pathlib import Path

from pendula.credit.engine import Run
from pendula.kernel.driver import engine_at
from pendula.kernel.journal import FileJournal
from pendula.server.runtime.past import Lane, Moments, PastEngines
from pendula.server.schedulers.credit.running.recovery import open_disk


class EndedRun:
    """An ended run for the time slider; raises if its journal is damaged."""

    def __init__(self, directory: Path) -> None:
        disk = open_disk(directory)
        weakref.finalize(self, disk.close)
        self.journal = FileJournal.open(disk, read_only=True)
        self.past = PastEngines(self.journal, lambda n: engine_at(self.journal, Run, n))
        self.moments = Moments(self.journal, {})


class EndedRuns:
    """Ended runs; caches the last one. Used on the event loop only."""

    def __init__(self) -> None:
        self._last: tuple[Path, str | None, EndedRun] | None = None

    async def look(self, directory: Path, stopped_at: str | None, lane: Lane) -> EndedRun:
        """The run in this directory; `stopped_at` is in the key because a restarted run has a longer journal."""
        if self._last is None or self._last[:2] != (directory, stopped_at):
            self._last = directory, stopped_at, await lane.look(lambda: EndedRun(directory))
        return self._last[2]
