"""Missing parts of a schema, and foreign additions to it, are reported."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check, damaged


def changed(folder: Path, statement: str) -> SqliteStore:
    """A new store with a manual change."""
    path = folder / "jobs.db"
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    return SqliteStore(path)


@pytest.mark.req("JOB-STO-12")
@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("DROP INDEX jobs_due", "the index jobs_due is missing (on jobs)"),
        ("DROP TABLE workers", "the table workers is missing"),
        ("ALTER TABLE alerts RENAME COLUMN delivered_at TO sent_at", "the table alerts has no column delivered_at"),
        (
            "CREATE TRIGGER mine AFTER INSERT ON jobs BEGIN DELETE FROM audit; END",
            "the trigger mine is on the table jobs of the store",
        ),
        (
            "CREATE TABLE mine (seq INTEGER REFERENCES jobs (seq))",
            "the table mine has a foreign key to jobs of the store, whose rows cannot be removed then",
        ),
    ],
)
def test_every_difference_from_the_migrated_schema_is_reported(tmp_path: Path, statement: str, sentence: str) -> None:
    store = changed(tmp_path, statement)

    assert damaged(sentence) in check(store)
    store.close()


def test_tables_of_other_programs_are_accepted(tmp_path: Path) -> None:
    store = changed(tmp_path, "CREATE TABLE mine (n INTEGER PRIMARY KEY, t TEXT UNIQUE)")

    assert check(store) == []
    store.close()
