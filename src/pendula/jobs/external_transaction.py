"""Enqueue within the caller's own transaction: an object and its job are committed together, or neither is.

For programs that keep their objects in the same file as the jobs. The job is durable when the caller commits, and gone
when the caller rolls back. Until then the caller holds the write lock of the file and other writers wait: keep such a
transaction short.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

from pendula.jobs import messages
from pendula.jobs.calls import LOCAL, Body, Caller, Calls
from pendula.jobs.messages import Enqueue, Enqueued, JobRefused, job_of
from pendula.jobs.model import Durability, Refused, StorageBusy
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.scheduler_calls import EnqueueOptions
from pendula.jobs.store.sqlite import NotDurable, SqliteStore
from pendula.kernel.errors import WrongUsage

FULL = 2


class CannotJoin(WrongUsage):
    """The connection is not in a transaction on the file of the store. Facts: `path`."""

    code = "cannot_join"


def defer_within(
    connection: sqlite3.Connection,
    scheduler: Scheduler,
    object_type: str,
    object_id: str,
    action: str,
    **options: Unpack[EnqueueOptions],
) -> messages.Job:
    """`defer` inside the open transaction of your connection to the file of the store. Returns the job.

    A refusal raises `JobRefused` and leaves the transaction unchanged. Raises what `enqueue_within` raises, too.
    """
    given = {"object_type": object_type, "object_id": object_id, "action": action, **options}
    answer = enqueue_within(connection, scheduler.calls, given, scheduler.caller)
    if isinstance(answer, Refused):
        raise JobRefused(answer)
    return answer.job


def enqueue_within(
    connection: sqlite3.Connection, calls: Calls, body: Body, caller: Caller = LOCAL
) -> Enqueued | Refused:
    """Enqueue inside the open transaction of `connection`; its commit or rollback decides about the job.

    A refusal leaves the transaction unchanged. Raises `CannotJoin` without a transaction to join, `NotDurable` where
    the connection does not flush as the store requires, and `StorageBusy` where another writer came first: a
    transaction that began by reading must then be rolled back and begun again.
    """
    with _plain_rows(connection):
        store = _joined(connection, calls)
        request = read(Enqueue, body, calls.policy, calls.clock())
        if isinstance(request, Faults):
            return request.refusal()
        with _savepoint(connection):
            writer = store.joined(connection)
            writer.mark(caller.metadata)
            stored = calls.store_in(writer, request, caller.actor)
            writer.finish()
    if isinstance(stored, Refused):
        return stored
    job, deduplicated = stored
    return Enqueued(deduplicated, job_of(job))


def _joined(connection: sqlite3.Connection, calls: Calls) -> SqliteStore:
    """The store, where the connection is in a transaction on its file."""
    store = calls.store
    if not isinstance(store, SqliteStore):
        raise CannotJoin("Only a store on an SQLite file can be joined")
    path = str(store.path)
    if not connection.in_transaction:
        raise CannotJoin("No transaction is open on this connection; begin one with BEGIN IMMEDIATE", path=path)
    if not _is_same_file(connection, store.path):
        raise CannotJoin(f"The connection is not one to {path}", path=path)
    synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
    if store.durability is Durability.FULL and synchronous < FULL:
        raise NotDurable("The connection does not flush what it commits; set PRAGMA synchronous = FULL", path=path)
    return store


def _is_same_file(connection: sqlite3.Connection, path: Path) -> bool:
    opened = {name: file for _, name, file in connection.execute("PRAGMA database_list")}
    return bool(opened["main"]) and Path(opened["main"]).samefile(path)


@contextmanager
def _plain_rows(connection: sqlite3.Connection) -> Iterator[None]:
    """Use default row and text factories, and restore those of the caller."""
    rows, texts = connection.row_factory, connection.text_factory
    connection.row_factory, connection.text_factory = None, str
    try:
        yield
    finally:
        connection.row_factory, connection.text_factory = rows, texts


@contextmanager
def _savepoint(connection: sqlite3.Connection) -> Iterator[None]:
    """Apply all or nothing, without touching the caller's own work."""
    connection.execute("SAVEPOINT pendula_jobs")
    try:
        yield
    except BaseException as error:
        # A full disk ends the whole transaction; then there is nothing to roll back to.
        if connection.in_transaction:
            connection.execute("ROLLBACK TO pendula_jobs")
            connection.execute("RELEASE pendula_jobs")
        if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise StorageBusy("Another writer came first; roll the transaction back and begin again") from error
        raise
    connection.execute("RELEASE pendula_jobs")
