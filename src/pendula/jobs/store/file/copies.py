"""Copies of a database during writes, and the mark of a copy.

A copy that replaces its store lacks the job numbers and fences that the store assigned since. So the first write into a
marked copy raises both above everything that the store can have reached.
"""

import sqlite3
from collections.abc import Callable

STEP_PAGES = 1024
RESTARTS_MOST = 3
COPY_MARK = 0x50444350  # the application id of a copy before its first write


class _Restarted(Exception):
    """Other connections write faster than the copy proceeds."""


def copy_database(
    source: sqlite3.Connection, copy: sqlite3.Connection, progress: Callable[[int, int], None] | None = None
) -> None:
    """Copy all pages in steps without a lock in between, so that the log of the source can be checkpointed.

    A write of another connection restarts the copy. After a few restarts it reads everything from one snapshot.
    """
    left_before: int | None = None
    restarts = 0

    def watch(_: int, left: int, pages: int) -> None:
        nonlocal left_before, restarts
        if left_before is not None and left >= left_before:
            restarts += 1
            if restarts > RESTARTS_MOST:
                raise _Restarted
        left_before = left
        _report(progress, left, pages)

    try:
        source.backup(copy, pages=STEP_PAGES, progress=watch)
    except _Restarted:
        source.execute("BEGIN")
        try:
            source.execute("SELECT 1 FROM sqlite_schema").fetchone()
            source.backup(copy, pages=STEP_PAGES, progress=lambda _, left, pages: _report(progress, left, pages))
        finally:
            source.execute("COMMIT")


def _report(progress: Callable[[int, int], None] | None, left: int, pages: int) -> None:
    if progress is not None:
        progress(pages - left, pages)


def mark_copy(copy: sqlite3.Connection) -> None:
    """Mark the copy of a store of jobs; other databases stay unmarked."""
    query = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'restores'"
    if copy.execute(query).fetchone() is not None:
        copy.execute(f"PRAGMA application_id = {COPY_MARK}")


def is_copy(connection: sqlite3.Connection) -> bool:
    """Whether the database is a copy before its first write."""
    mark: int = connection.execute("PRAGMA application_id").fetchone()[0]
    return mark == COPY_MARK
