"""Connections that tell each statement before they run it, so that a test can read plans, count, or let one fail."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import pytest

Watcher = Callable[[sqlite3.Connection, str, Any], None]


class Watched(sqlite3.Connection):
    """Tells `watcher`, where there is one, of every statement."""

    watcher: ClassVar[Watcher | None] = None

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if Watched.watcher is not None:
            Watched.watcher(self, sql, parameters)
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        rows = list(parameters)
        if Watched.watcher is not None:
            Watched.watcher(self, sql, rows)
        return super().executemany(sql, rows)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores opened from here on can be watched."""
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Watched))


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    Watched.watcher = watcher
    try:
        yield
    finally:
        Watched.watcher = None


def trouble() -> sqlite3.OperationalError:
    """What SQLite says when the disk does not do its part."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


def failing_at(count: int) -> Watcher:
    """Lets the statement with this number fail, once."""
    left = count

    def watcher(connection: sqlite3.Connection, sql: str, parameters: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise trouble()

    return watcher


def everything(path: str) -> dict[str, list[Any]]:
    """Every row of every table, for comparing."""
    connection = sqlite3.connect(path)
    try:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in names}
    finally:
        connection.close()
