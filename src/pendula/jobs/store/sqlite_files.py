"""Which file an address names, whether a store is there or can be made there, and the way to open it.

Whatever is wrong with the file is told in one sentence, before anything is touched.
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
SCHEMES_TO_COME = ("postgresql", "postgres")
TABLES = frozenset({"jobs", "audit", "used_keys"})


class NoStore(WorldBroken):
    """There is not a store of jobs in the named file. Facts: `path`."""

    code = "no_store"


class StoreToCome(InputRefused):
    """A kind of store that this version does not have. Facts: `scheme`."""

    code = "store_to_come"


@contextmanager
def opened(
    path: Path, durability: Durability, *, make: bool = False, patience_seconds: float = PATIENCE_SECONDS
) -> Iterator[SqliteStore]:
    """The store in this file, closed at the end; made only where `make` says so.

    Raises `NoStore` where there is none, `StoreUnusable` where the file makes trouble.
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
    if colon and scheme.lower().partition("+")[0] in SCHEMES_TO_COME:
        raise StoreToCome(
            "PostgreSQL comes with a later version; this one keeps jobs in a file: --db sqlite:///jobs.db",
            scheme=scheme,
        )
    rest = address.removeprefix(SQLITE)
    if (colon and rest == address) or not rest.strip("/") or rest == ":memory:" or "\0" in rest:
        said = f"{scheme}:…" if colon and scheme.isalnum() else repr(address)
        raise WrongUsage(f"{said} is not the address of a store; write sqlite:///jobs.db, or sqlite:////srv/jobs.db")
    return Path(rest)


def check_new(path: Path) -> None:
    """A store can be made here, or is here already."""
    if not path.parent.is_dir():
        raise NoStore(f"There is no directory {path.parent}; make it first", path=str(path))
    if path.exists() and (path.is_dir() or path.stat().st_size) and not _is_blank(path):
        check_store(path)
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        raise NoStore(f"{path} cannot be written: Permission denied", path=str(path))


def check_store(path: Path) -> None:
    """There is a store of jobs in this file, and it can be read; whoever writes hears whether it can be written."""
    if not path.exists():
        raise NoStore(f"There is no store {path}; make it with: pendula jobs init --db {SQLITE}{path}", path=str(path))
    if not path.is_file():
        what = "a directory" if path.is_dir() else "a special file"
        raise NoStore(f"{path} is {what}, not a store of jobs", path=str(path))
    if not os.access(path, os.R_OK):
        raise NoStore(f"{path} cannot be read: Permission denied", path=str(path))
    if not _tables(path).issuperset(TABLES):
        raise NoStore(f"{path} is not a store of jobs", path=str(path))


def schema_damage(path: Path) -> str | None:
    """What keeps everybody from opening a store: the list of its tables is damaged. None where it can be read."""
    try:
        _tables(path)
    except StoreUnusable as damaged:
        return damaged.message
    return None


def _is_blank(path: Path) -> bool:
    """A database without anything in it: what is left where the disk was full, or a kill came, while it was made."""
    return path.is_file() and os.access(path, os.R_OK) and _found(path, "SELECT name FROM sqlite_schema") == set()


def _tables(path: Path) -> set[str]:
    return _found(path, "SELECT name FROM sqlite_schema WHERE type = 'table'") or set()


def _found(path: Path, names: str) -> set[str] | None:
    """The names that a query finds; None where the file is not a database."""
    try:
        with closing(connect_to_look(path, BUSY_SECONDS)) as connection:
            return {row[0] for row in connection.execute(names)}
    except (sqlite3.DatabaseError, UnicodeDecodeError) as trouble:
        if getattr(trouble, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) == sqlite3.SQLITE_NOTADB:
            return None
        raise StoreUnusable(f"{path} cannot be used as a store of jobs: {trouble}", path=str(path)) from None
