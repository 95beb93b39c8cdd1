"""Whether a store can be written now, proved by a write: free space does not show a quota.

A successful write counts for a while, so that a check every second writes a page only every few seconds.
"""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from pendula.jobs.model import Durability, StorageBusy
from pendula.jobs.store.file.opening import connect, is_busy, is_read_only_trouble
from pendula.jobs.store.protocol import StoreReadOnly, StoreUnusable

BELIEVED_SECONDS = 5.0
# How long a readiness check waits for another writer.
BUSY_SECONDS = 0.8


class WriteProof:
    """The last successful write, repeated once it is too old."""

    def __init__(self, durability: Durability) -> None:
        self._durability = durability
        self._believed_until = 0.0

    def check(self, place: Path) -> None:
        """Rewrite one page unchanged and flush it; raises what a writing call would raise.

        The caller has checked that the file is the one it opened.
        """
        if time.monotonic() < self._believed_until:
            return
        self._believed_until = 0.0
        try:
            self._write(place)
        except sqlite3.Error as trouble:
            if is_busy(trouble):
                raise StorageBusy(f"{place.name} is locked by another writer") from trouble
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
