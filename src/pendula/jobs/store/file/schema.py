"""Whether a store has the tables, columns and indexes of its migrations, without foreign triggers or references.

A store without one of its indexes works and is slow; one without a table fails at the first call that needs it. Other
tables in the same file are not checked.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache

from pendula.jobs.store.file.opening import migrations, statements

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
