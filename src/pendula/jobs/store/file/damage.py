"""Damage of a file: the integrity check of SQLite, and for each table the rows that cannot be read.

Nothing here stops at the first fault or raises: the result lists all of them.
"""

import sqlite3
from collections.abc import Iterator

MOST = 100  # messages of the integrity check


def damages(connection: sqlite3.Connection) -> Iterator[str]:
    """Faults as sentences; none when the file is sound."""
    before = connection.text_factory
    connection.text_factory = any_text
    try:
        yield from _of_the_file(connection)
        for table in _tables(connection):
            yield from _of_a_table(connection, table)
    except sqlite3.DatabaseError as trouble:
        yield f"the list of tables cannot be read: {trouble}"
    finally:
        connection.text_factory = before


def _of_the_file(connection: sqlite3.Connection) -> Iterator[str]:
    try:
        for (line,) in connection.execute(f"PRAGMA integrity_check({MOST})"):
            if line != "ok":
                yield line
    except sqlite3.DatabaseError as trouble:
        yield f"SQLite cannot check the file: {trouble}"


def _tables(connection: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    return [name for (name,) in connection.execute(query)]


def _of_a_table(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """The unreadable rows: those between the last readable one from the front and the last from the back."""
    key = _key(connection, table)
    first, trouble = _read(connection, table, key, "ASC")
    if trouble is None:
        return
    last, _ = _read(connection, table, key, "DESC")
    after = "from the beginning" if first is None else f"after {first}"
    before = "to the end" if last is None else f"before {last}"
    yield f"table {table}: rows {after} {before} cannot be read ({', '.join(key)}): {trouble}"


def _key(connection: sqlite3.Connection, table: str) -> list[str]:
    keys = [(row[5], row[1]) for row in connection.execute(f'PRAGMA table_info("{table}")') if row[5]]
    return [f'"{name}"' for _, name in sorted(keys)] or ["rowid"]


def _read(connection: sqlite3.Connection, table: str, key: list[str], direction: str) -> tuple[str | None, str | None]:
    """The key of the last readable row in this direction, and the error after it."""
    order = ", ".join(f"{name} {direction}" for name in key)
    last: str | None = None
    try:
        for row in connection.execute(f'SELECT {", ".join(key)}, * FROM "{table}" NOT INDEXED ORDER BY {order}'):
            last = " ".join(ascii(value).strip("'") for value in row[: len(key)])
    except sqlite3.DatabaseError as trouble:
        return last, str(trouble)
    return last, None


def any_text(data: bytes) -> str:
    """Text that may have damaged bytes; `encode("utf-8", "surrogateescape")` restores them."""
    return data.decode("utf-8", "surrogateescape")
