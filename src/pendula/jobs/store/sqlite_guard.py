"""An effect's own statements, inside a transaction that many callers share: neither it nor our tables belong to them.

What is wrong with such a statement is refused to its author; only a trouble of the file is the trouble of all.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any

from pendula.jobs.store.protocol import StatementRefused

_OWN_FAULTS = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_AUTH,
)
# One transaction holds the work of many callers: nobody may end it, or change what it is about, for all of them.
_NOT_YOURS = frozenset(
    {
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_SAVEPOINT,
        sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_DETACH,
        sqlite3.SQLITE_PRAGMA,
    }
)
_WRITING = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_DROP_TABLE})
_OURS = frozenset(
    {
        "jobs",
        "audit",
        "objects",
        "effects",
        "alerts",
        "used_keys",
        "counts",
        "ended",
        "write_backs",
        "plans",
        "workers",
    }
)


def _allowed(what: int, about: str | None, *_: str | None) -> int:
    """What an effect may do with the store's file: everything with tables of its own, and read the store's."""
    if what in _NOT_YOURS or (what in _WRITING and (about or "").lower() in _OURS):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def execute_guarded(connection: sqlite3.Connection, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows of the statement. Raises `StatementRefused` where the fault is its own, `sqlite3.Error` otherwise."""
    try:
        connection.set_authorizer(_allowed)
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
