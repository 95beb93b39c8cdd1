"""Statements of an effect: they may use tables of their own and read those of the store, nothing else.

A faulty statement is refused with `StatementRefused`; an error of the file is raised unchanged.
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
# The transaction belongs to the store: an effect may not end it or change the connection.
_FORBIDDEN = frozenset(
    {
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_SAVEPOINT,
        sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_DETACH,
        sqlite3.SQLITE_PRAGMA,
    }
)
# The first argument names the table that is written, created or dropped.
_BY_FIRST = frozenset(
    {
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_UPDATE,
        sqlite3.SQLITE_DELETE,
        sqlite3.SQLITE_DROP_TABLE,
        sqlite3.SQLITE_DROP_TEMP_TABLE,
        sqlite3.SQLITE_DROP_VTABLE,
        sqlite3.SQLITE_ANALYZE,
        # A temporary table or view of the same name would shadow the store's.
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_TEMP_TABLE,
        sqlite3.SQLITE_CREATE_VTABLE,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_CREATE_TEMP_VIEW,
    }
)
# The second argument names the table: of an index, of a trigger, or the one that is altered.
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
def _store_names() -> tuple[frozenset[str], frozenset[str]]:
    """The tables and indexes of the store, as the migrations create them."""
    script = "\n".join(migrations())
    tables = re.findall(r"^CREATE TABLE (?:IF NOT EXISTS )?(\w+)", script, re.MULTILINE)
    indexes = re.findall(r"^CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?(\w+)", script, re.MULTILINE)
    return frozenset(name.lower() for name in tables), frozenset(name.lower() for name in indexes)


class StatementAuthorizer:
    """The authorizer callback of SQLite for one statement of an effect."""

    def __init__(self) -> None:
        self._moves = False  # it drops or renames a table, so that SQLite itself updates `sqlite_sequence`

    def __call__(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        name, other = (first or "").lower(), (second or "").lower()
        if self._refuses(action, name, other):
            return sqlite3.SQLITE_DENY
        self._moves = self._moves or action in (sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_ALTER_TABLE)
        return sqlite3.SQLITE_OK

    def _refuses(self, action: int, name: str, other: str) -> bool:
        tables, indexes = _store_names()
        return (
            action in _FORBIDDEN
            or (action in _BY_FIRST and name in tables)
            or (action in _BY_SECOND and other in tables)
            # A renamed temporary table could shadow one of the store's, and the new name is not passed here.
            or (action == sqlite3.SQLITE_ALTER_TABLE and name == "temp")
            or (action in _CHANGING and name == _SEQUENCE and not self._moves)
            or (action == sqlite3.SQLITE_REINDEX and (name in indexes or _is_automatic(name, tables)))
        )


def _is_automatic(index: str, tables: frozenset[str]) -> bool:
    """Whether SQLite created this index for a key of one of these tables."""
    return index.removeprefix("sqlite_autoindex_").rpartition("_")[0] in tables


def execute_authorized(
    connection: sqlite3.Connection, statement: str, values: Sequence[Any] | Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """The rows of the statement. Raises `StatementRefused` where the statement is at fault, else `sqlite3.Error`."""
    try:
        connection.set_authorizer(StatementAuthorizer())
        try:
            return connection.execute(statement, values).fetchall()
        finally:
            connection.set_authorizer(None)
    except sqlite3.Error as trouble:
        # Where the transaction has ended, more than the statement is wrong.
        code = getattr(trouble, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code not in _OWN_FAULTS or not connection.in_transaction:
            raise
        if code == sqlite3.SQLITE_AUTH:
            message = "An effect may not end its transaction or change the tables of the store; use tables of your own"
            raise StatementRefused(message) from trouble
        raise StatementRefused(f"The statement was refused: {trouble}") from trouble
