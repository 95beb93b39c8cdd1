"""What an effect can do with the file of the store: everything with its own tables, nothing with those of the store."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pendula.jobs.store.protocol import StatementRefused
from pendula.jobs.store.tables.statement_authorizer import execute_authorized
from tests.jobs.stores import opened

OWN = """
    CREATE TABLE mine (n INTEGER PRIMARY KEY AUTOINCREMENT, x TEXT UNIQUE);
    CREATE TABLE jobs_of_mine (n INTEGER);
    CREATE TEMP TABLE scratch (n INTEGER);
"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """In a transaction, on a store with one job and some tables of an application."""
    scheduler, _ = opened(tmp_path)
    with scheduler, closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as connection:
        scheduler.defer("memory", "m", "verify")
        connection.executescript(OWN)
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("ROLLBACK")


@pytest.mark.req("JOB-POL-4")
@pytest.mark.parametrize(
    "statement",
    [
        "DROP INDEX jobs_due",
        "DROP INDEX main.jobs_leases",
        "DROP TABLE audit",
        "DROP TABLE IF EXISTS main.AUDIT",
        "ALTER TABLE audit RENAME TO elsewhere",
        "ALTER TABLE main.jobs RENAME COLUMN status TO state",
        "ALTER TABLE jobs ADD COLUMN mine TEXT",
        "ALTER TABLE jobs DROP COLUMN outcome",
        "ALTER TABLE scratch RENAME TO jobs",
        "CREATE TRIGGER t AFTER INSERT ON jobs BEGIN SELECT 1; END",
        "CREATE TEMP TRIGGER t AFTER UPDATE ON main.jobs BEGIN SELECT 1; END",
        "CREATE TRIGGER t BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE INDEX mine_on_jobs ON jobs (outcome)",
        "CREATE UNIQUE INDEX one_status ON main.jobs (status)",
        "CREATE TEMP TABLE jobs (seq INTEGER)",
        "CREATE TEMPORARY TABLE Jobs AS SELECT 1",
        "CREATE TABLE temp.audit (n INTEGER)",
        "CREATE TEMP VIEW effects AS SELECT 1",
        "CREATE VIEW temp.jobs AS SELECT 1",
        "CREATE VIRTUAL TABLE temp.jobs USING fts5 (x)",
        "REINDEX",
        "REINDEX jobs",
        "REINDEX main.jobs_due",
        "REINDEX sqlite_autoindex_jobs_1",
        "ANALYZE jobs",
        "UPDATE sqlite_sequence SET seq = 0 WHERE name = 'jobs'",
        "DELETE FROM sqlite_sequence",
        "UPDATE sqlite_schema SET sql = '' WHERE name = 'jobs'",
        "INSERT INTO jobs (seq) VALUES (9)",
        "UPDATE main.jobs SET status = 'failed'",
        "DELETE FROM audit",
        "REPLACE INTO counts VALUES ('queued', 'a', 'b', 1, 'c', 9)",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT mine",
        "ATTACH ':memory:' AS other",
        "PRAGMA writable_schema = ON",
        "VACUUM",
    ],
)
def test_statements_on_tables_of_the_store_are_rejected_and_change_nothing(
    connection: sqlite3.Connection, statement: str
) -> None:
    before = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()

    with pytest.raises(StatementRefused):
        execute_authorized(connection, statement, ())

    assert connection.in_transaction
    assert connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall() == before
    assert connection.execute("SELECT count(*) FROM jobs WHERE status = 'queued'").fetchone() == (1,)
    assert connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'jobs'").fetchone() == (1,)


def test_a_custom_trigger_cannot_write_tables_of_the_store(connection: sqlite3.Connection) -> None:
    trigger = "CREATE TRIGGER sly AFTER INSERT ON mine BEGIN UPDATE jobs SET status = 'failed'; END"
    execute_authorized(connection, trigger, ())

    with pytest.raises(StatementRefused):
        execute_authorized(connection, "INSERT INTO mine (x) VALUES ('a')", ())

    assert connection.execute("SELECT count(*) FROM jobs WHERE status = 'queued'").fetchone() == (1,)


@pytest.mark.parametrize(
    "statements",
    [
        ["INSERT INTO mine (x) VALUES ('a')", "UPDATE mine SET x = 'b'", "DELETE FROM mine"],
        ["INSERT INTO mine (x) VALUES ('a')", "DROP TABLE mine"],
        ["INSERT INTO mine (x) VALUES ('a')", "ALTER TABLE mine RENAME TO yours", "INSERT INTO yours (x) VALUES ('b')"],
        ["ALTER TABLE mine ADD COLUMN y TEXT", "ALTER TABLE mine DROP COLUMN y"],
        ["CREATE TABLE other (n INTEGER PRIMARY KEY AUTOINCREMENT)", "INSERT INTO other VALUES (NULL)"],
        ["CREATE INDEX by_x ON mine (x)", "REINDEX by_x", "REINDEX mine", "DROP INDEX by_x"],
        ["CREATE TRIGGER t AFTER INSERT ON mine BEGIN DELETE FROM jobs_of_mine; END", "DROP TRIGGER t"],
        ["CREATE VIEW looks AS SELECT * FROM jobs", "SELECT * FROM looks", "DROP VIEW looks"],
        ["CREATE TEMP TABLE bench (n INTEGER)", "INSERT INTO bench VALUES (1)", "DROP TABLE bench"],
        ["SELECT count(*) FROM jobs JOIN audit"],
    ],
    ids=lambda statements: statements[-1],
)
def test_statements_on_own_tables_are_allowed(connection: sqlite3.Connection, statements: list[str]) -> None:
    for statement in statements:
        execute_authorized(connection, statement, ())

    assert connection.in_transaction
