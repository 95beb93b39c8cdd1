"""Statements for many rows: every row arrives, whatever the number."""

import sqlite3
from contextlib import closing

import pytest

from pendula.jobs.store.tables.rows import AT_ONCE, Bulk

INSERT = Bulk("INSERT INTO things (n, word) VALUES", 2, "ON CONFLICT DO NOTHING")
UPDATE = Bulk("UPDATE things SET word = new.column2 FROM (VALUES", 2, ") AS new WHERE n = new.column1")


@pytest.mark.parametrize("count", [0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE + 7])
def test_every_row_is_inserted_and_updated_once(count: int) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE things (n INTEGER PRIMARY KEY, word TEXT)")
        INSERT.run(connection, ((n, "old") for n in range(count)))
        UPDATE.run(connection, ((n, f"new {n}") for n in range(count)))

        found = connection.execute("SELECT n, word FROM things ORDER BY n").fetchall()

    assert found == [(n, f"new {n}") for n in range(count)]
