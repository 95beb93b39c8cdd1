"""Connections that report each statement before it runs, so that a test can read plans, count, or inject a fault."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import pytest

Watcher = Callable[[sqlite3.Connection, str, Any], None]


class Watched(sqlite3.Connection):
    """Passes every statement to `watcher`, if one is set."""

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
    """Stores opened from now on can be watched."""
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Watched))


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    Watched.watcher = watcher
    try:
        yield
    finally:
        Watched.watcher = None


def trouble() -> sqlite3.OperationalError:
    """The error of SQLite for a failing disk."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


def failing_at(count: int) -> Watcher:
    """Makes the statement with this number fail, once."""
    left = count

    def watcher(connection: sqlite3.Connection, sql: str, parameters: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise trouble()

    return watcher


def everything(path: str) -> dict[str, list[Any]]:
    """Every row of every table."""
    connection = sqlite3.connect(path)
    try:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in names}
    finally:
        connection.close()
