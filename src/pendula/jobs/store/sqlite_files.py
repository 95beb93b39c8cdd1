"""The file of an address: whether it holds a store, whether one can be created there, and opening it.

Every fault is reported in one sentence, before the file is changed.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pendula.jobs.model import Durability
from pendula.jobs.store.file.opening import BUSY_SECONDS, PATIENCE_SECONDS, connect_to_look
from pendula.jobs.store.protocol import StoreUnusable
from pendula.jobs.store.sqlite import SqliteStore
from pendula.kernel.errors import InputRefused, WorldBroken, WrongUsage

SQLITE = "sqlite:///"
FUTURE_SCHEMES = ("postgresql", "postgres")
TABLES = frozenset({"jobs", "audit", "used_keys"})


class NoStore(WorldBroken):
    """The named file is not a store of jobs. Facts: `path`."""

    code = "no_store"


class StoreToCome(InputRefused):
    """A kind of store that this version does not support. Facts: `scheme`."""

    code = "store_not_supported"


@contextmanager
def opened(
    path: Path, durability: Durability, *, make: bool = False, patience_seconds: float = PATIENCE_SECONDS
) -> Iterator[SqliteStore]:
    """The store in this file, closed at the end; created only with `make`.

    Raises `NoStore` where there is none, `StoreUnusable` where the file cannot be used.
    """
    if make:
        check_new(path)
    else:
        check_store(path)
    try:
        store = SqliteStore(path, durability=durability, patience_seconds=patience_seconds)
        try:
            yield store
        finally:
            store.close()
    except sqlite3.Error as trouble:
        raise StoreUnusable(f"{path} cannot be used as a store of jobs: {trouble}", path=str(path)) from trouble


def sqlite_path(address: str) -> Path:
    """The file of `sqlite:///file` (from here), `sqlite:////file` (from the root), or a plain path without a colon."""
    scheme, colon, _ = address.partition(":")
    if colon and scheme.lower().partition("+")[0] in FUTURE_SCHEMES:
        raise StoreToCome(
            "PostgreSQL is not supported yet; store jobs in a file: --db sqlite:///jobs.db",
            scheme=scheme,
        )
    rest = address.removeprefix(SQLITE)
    if (colon and rest == address) or not rest.strip("/") or rest == ":memory:" or "\0" in rest:
        shown = f"{scheme}:…" if colon and scheme.isalnum() else repr(address)
        raise WrongUsage(f"{shown} is not the address of a store; write sqlite:///jobs.db, or sqlite:////srv/jobs.db")
    return Path(rest)


def check_new(path: Path) -> None:
    """Raise `NoStore` unless there is a store here or one can be created."""
    if not path.parent.is_dir():
        raise NoStore(f"There is no directory {path.parent}; create it first", path=str(path))
    if path.exists() and (path.is_dir() or path.stat().st_size) and not _is_blank(path):
        check_store(path)
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        raise NoStore(f"{path} cannot be written: Permission denied", path=str(path))


def check_store(path: Path) -> None:
    """Raise `NoStore` unless this file is a readable store of jobs; whether it can be written is checked on write."""
    if not path.exists():
        remedy = f"pendula jobs init --db {SQLITE}{path}"
        raise NoStore(f"There is no store {path}; create it with: {remedy}", path=str(path))
    if not path.is_file():
        what = "a directory" if path.is_dir() else "a special file"
        raise NoStore(f"{path} is {what}, not a store of jobs", path=str(path))
    if not os.access(path, os.R_OK):
        raise NoStore(f"{path} cannot be read: Permission denied", path=str(path))
    if not _tables(path).issuperset(TABLES):
        raise NoStore(f"{path} is not a store of jobs", path=str(path))


def schema_damage(path: Path) -> str | None:
    """Damage of the list of tables, with which no store can be opened; None where it can be read."""
    try:
        _tables(path)
    except StoreUnusable as damaged:
        return damaged.message
    return None


def _is_blank(path: Path) -> bool:
    """Whether it is an empty database, which a full disk or a kill leaves when a store is created."""
    return path.is_file() and os.access(path, os.R_OK) and _names(path, "SELECT name FROM sqlite_schema") == set()


def _tables(path: Path) -> set[str]:
    return _names(path, "SELECT name FROM sqlite_schema WHERE type = 'table'") or set()


def _names(path: Path, query: str) -> set[str] | None:
    """The names that a query returns; None where the file is not a database."""
    try:
        with closing(connect_to_look(path, BUSY_SECONDS)) as connection:
            return {row[0] for row in connection.execute(query)}
    except (sqlite3.DatabaseError, UnicodeDecodeError) as trouble:
        if getattr(trouble, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) == sqlite3.SQLITE_NOTADB:
            return None
        raise StoreUnusable(f"{path} cannot be used as a store of jobs: {trouble}", path=str(path)) from None
