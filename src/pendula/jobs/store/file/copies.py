"""Copies of a database that others go on writing to, and the mark by which a store knows that it was one.

A copy that takes the place of its store has forgotten what the store did since: which job numbers it gave, and which
fences. So the first write into a marked copy raises both beyond all that the store can have reached.
"""

import sqlite3
from collections.abc import Callable

STEP_PAGES = 1024
RESTARTS_MOST = 3
COPY_MARK = 0x50444350  # the application id of a copy that was not written to yet


class _BegunAgain(Exception):
    """Others write faster than the steps go on."""


def copy_database(
    source: sqlite3.Connection, copy: sqlite3.Connection, progress: Callable[[int, int], None] | None = None
) -> None:
    """Copy all pages in steps, with nothing held between two of them, so that the log of the source can be emptied.

    A write of another connection makes the copy begin again. After a few times all is read as of one moment.
    """
    left_before: int | None = None
    restarts = 0

    def watch(_: int, left: int, pages: int) -> None:
        nonlocal left_before, restarts
        if left_before is not None and left >= left_before:
            restarts += 1
            if restarts > RESTARTS_MOST:
                raise _BegunAgain
        left_before = left
        _tell(progress, left, pages)

    try:
        source.backup(copy, pages=STEP_PAGES, progress=watch)
    except _BegunAgain:
        source.execute("BEGIN")
        try:
            source.execute("SELECT 1 FROM sqlite_schema").fetchone()
            source.backup(copy, pages=STEP_PAGES, progress=lambda _, left, pages: _tell(progress, left, pages))
        finally:
            source.execute("COMMIT")


def _tell(progress: Callable[[int, int], None] | None, left: int, pages: int) -> None:
    if progress is not None:
        progress(pages - left, pages)


def mark_copy(copy: sqlite3.Connection) -> None:
    """Mark the copy of a store of jobs; other databases stay as they are."""
    query = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'restores'"
    if copy.execute(query).fetchone() is not None:
        copy.execute(f"PRAGMA application_id = {COPY_MARK}")


def is_copy(connection: sqlite3.Connection) -> bool:
    """Whether the database is a copy that nothing was written to yet."""
    found: int = connection.execute("PRAGMA application_id").fetchone()[0]
    return found == COPY_MARK
