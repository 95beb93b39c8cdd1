"""An effect's own statements, inside our transaction: neither it nor the store's tables, indexes and names are its own.

What is wrong with such a statement is refused to its author; a trouble of the file is raised as it is.
"""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pendula.jobs.store.file.opening import migrations
from pendula.jobs.store.protocol import StatementRefused

_OWN_FAULTS = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_AUTH,
)
# The transaction holds our part as well: nobody may end it, or change what it is about.
_NOT_YOURS = frozenset(
    {
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_SAVEPOINT,
        sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_DETACH,
        sqlite3.SQLITE_PRAGMA,
    }
)
# What the first word after the action names: the table that is written, made or dropped.
_BY_FIRST = frozenset(
    {
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_UPDATE,
        sqlite3.SQLITE_DELETE,
        sqlite3.SQLITE_DROP_TABLE,
        sqlite3.SQLITE_DROP_TEMP_TABLE,
        sqlite3.SQLITE_DROP_VTABLE,
        sqlite3.SQLITE_ANALYZE,
        # A table or view of the same name among the temporary ones would stand before ours.
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_TEMP_TABLE,
        sqlite3.SQLITE_CREATE_VTABLE,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_CREATE_TEMP_VIEW,
    }
)
# Here it is the second word: an index or a trigger and the table it is on, a file and the table that is altered.
_BY_SECOND = frozenset(
    {
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_CREATE_TEMP_INDEX,
        sqlite3.SQLITE_DROP_INDEX,
        sqlite3.SQLITE_DROP_TEMP_INDEX,
        sqlite3.SQLITE_CREATE_TRIGGER,
        sqlite3.SQLITE_CREATE_TEMP_TRIGGER,
        sqlite3.SQLITE_DROP_TRIGGER,
        sqlite3.SQLITE_DROP_TEMP_TRIGGER,
        sqlite3.SQLITE_ALTER_TABLE,
    }
)
_SEQUENCE = "sqlite_sequence"
_CHANGING = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)


@cache
def _ours() -> tuple[frozenset[str], frozenset[str]]:
    """The store's tables and indexes, as the migrations make them."""
    script = "\n".join(migrations())
    tables = re.findall(r"^CREATE TABLE (?:IF NOT EXISTS )?(\w+)", script, re.MULTILINE)
    indexes = re.findall(r"^CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?(\w+)", script, re.MULTILINE)
    return frozenset(name.lower() for name in tables), frozenset(name.lower() for name in indexes)


class Guard:
    """What one statement of an effect may do: everything with tables of its own, and read the store's."""

    def __init__(self) -> None:
        self._moves = False  # it drops or renames a table, and SQLite itself puts the numbers of that table right

    def __call__(self, what: int, first: str | None, second: str | None, *_: str | None) -> int:
        one, other = (first or "").lower(), (second or "").lower()
        if self._refuses(what, one, other):
            return sqlite3.SQLITE_DENY
        self._moves = self._moves or what in (sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_ALTER_TABLE)
        return sqlite3.SQLITE_OK

    def _refuses(self, what: int, one: str, other: str) -> bool:
        tables, indexes = _ours()
        return (
            what in _NOT_YOURS
            or (what in _BY_FIRST and one in tables)
            or (what in _BY_SECOND and other in tables)
            # Renamed, a temporary table could take the name of one of ours, and the new name is not told here.
            or (what == sqlite3.SQLITE_ALTER_TABLE and one == "temp")
            or (what in _CHANGING and one == _SEQUENCE and not self._moves)
            or (what == sqlite3.SQLITE_REINDEX and (one in indexes or _is_automatic(one, tables)))
        )


def _is_automatic(index: str, tables: frozenset[str]) -> bool:
    """Whether SQLite made this index for a key of one of these tables."""
    return index.removeprefix("sqlite_autoindex_").rpartition("_")[0] in tables


def execute_guarded(
    connection: sqlite3.Connection, statement: str, values: Sequence[Any] | Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """The rows of the statement. Raises `StatementRefused` where the fault is its own, `sqlite3.Error` otherwise."""
    try:
        connection.set_authorizer(Guard())
        try:
            return connection.execute(statement, values).fetchall()
        finally:
            connection.set_authorizer(None)
    except sqlite3.Error as trouble:
        # Where the transaction is gone, the trouble is not the statement's alone.
        code = getattr(trouble, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code not in _OWN_FAULTS or not connection.in_transaction:
            raise
        if code == sqlite3.SQLITE_AUTH:
            message = "This is not allowed within an effect: neither its transaction nor the store is its own"
            raise StatementRefused(message) from trouble
        raise StatementRefused(f"The statement was refused: {trouble}") from trouble
