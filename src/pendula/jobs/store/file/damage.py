"""Faults of a file: what SQLite finds, the rows of each table that cannot be read, and what is missing of the schema.

Nothing here stops at the first fault or raises: the results list all of them. A store without one of its indexes works
and is slow; one without a table fails at the first call that needs it. Other tables in the same file are not checked.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache

from pendula.jobs.store.file.opening import migrations, statements

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


_PARTS = "SELECT type, name, tbl_name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"


def schema_faults(connection: sqlite3.Connection) -> Iterator[str]:
    """Faults as sentences. An unreadable schema is reported by `damage`."""
    try:
        present = _parts(connection)
        parts, tables = _expected()
        columns = {table: _columns(connection, table) for table in tables}
    except sqlite3.DatabaseError:
        return
    for kind, name, table in parts:
        if (kind, name, table) in present:
            continue
        yield f"the {kind} {name} is missing" + (f" (on {table})" if kind == "index" else "")
    for table, names in tables.items():
        if ("table", table, table) in present:
            yield from (f"the table {table} has no column {name}" for name in names if name not in columns[table])
    for kind, name, table in present:
        if kind == "trigger" and table in tables:
            yield f"the trigger {name} is on the table {table} of the store"
        elif kind == "table" and table not in tables:
            for ours in sorted(_named_by(connection, table) & tables.keys()):
                yield f"the table {name} has a foreign key to {ours} of the store, whose rows cannot be removed then"


def _parts(connection: sqlite3.Connection) -> dict[tuple[str, str, str], None]:
    return dict.fromkeys(connection.execute(_PARTS))


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f'PRAGMA table_xinfo("{table}")')]


def _named_by(connection: sqlite3.Connection, table: str) -> set[str]:
    quoted = table.replace('"', '""')
    return {str(row[2]).lower() for row in connection.execute(f'PRAGMA foreign_key_list("{quoted}")')}


@cache
def _expected() -> tuple[dict[tuple[str, str, str], None], dict[str, list[str]]]:
    """All parts, and the columns of each table, of a new store."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for script in migrations():
            for statement in statements(script):
                made.execute(statement)
        parts = _parts(made)
        return parts, {name: _columns(made, name) for kind, name, _ in parts if kind == "table"}
