"""Whether a store can be written at this moment, shown by a write: what free space promises, a quota may refuse.

A write that succeeded is believed for a while, so that whoever asks every second costs a page every few seconds only.
"""

import time
from contextlib import closing
from pathlib import Path

from pendula.jobs.model import Durability
from pendula.jobs.store.file.opening import connect

BELIEVED_SECONDS = 5.0
# More than this is a store that does not answer; whoever asks about readiness waits no longer.
BUSY_SECONDS = 0.8


class WriteProof:
    """The last write that went well, and the way to another."""

    def __init__(self, place: Path, durability: Durability) -> None:
        self._place = place
        self._durability = durability
        self._believed_until = 0.0

    def check(self) -> None:
        """Write one page that says what it said before, and flush it; raises `sqlite3.Error` where that fails."""
        if time.monotonic() < self._believed_until:
            return
        self._believed_until = 0.0
        with closing(connect(self._place, self._durability, BUSY_SECONDS)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        self._believed_until = time.monotonic() + BELIEVED_SECONDS
