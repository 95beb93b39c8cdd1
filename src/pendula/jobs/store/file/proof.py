"""Whether a store can be written at this moment, shown by a write: what free space promises, a quota may refuse.

A write that succeeded is believed for a while, so that whoever asks every second costs a page every few seconds only.
"""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from pendula.jobs.model import Durability, StorageBusy
from pendula.jobs.store.file.opening import connect, is_busy, is_read_only_trouble
from pendula.jobs.store.protocol import StoreReadOnly, StoreUnusable

BELIEVED_SECONDS = 5.0
# More than this is a store that does not answer; whoever asks about readiness waits no longer.
BUSY_SECONDS = 0.8


class WriteProof:
    """The last write that went well, and the way to another."""

    def __init__(self, durability: Durability) -> None:
        self._durability = durability
        self._believed_until = 0.0

    def check(self, place: Path) -> None:
        """Write one page that says what it said before, and flush it; raises what a call that writes would meet.

        The caller has made sure that the file is the one it opened.
        """
        if time.monotonic() < self._believed_until:
            return
        self._believed_until = 0.0
        try:
            self._write(place)
        except sqlite3.Error as trouble:
            if is_busy(trouble):
                raise StorageBusy(f"Another writer holds {place.name} for long") from trouble
            if is_read_only_trouble(trouble):
                raise StoreReadOnly(f"{place} cannot be written", path=str(place)) from trouble
            raise StoreUnusable(f"{place} cannot be written: {trouble}", path=str(place)) from trouble
        self._believed_until = time.monotonic() + BELIEVED_SECONDS

    def _write(self, place: Path) -> None:
        with closing(connect(place, self._durability, BUSY_SECONDS)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
