"""Queues of other projects on SQLite behind one interface: Huey, litequeue, persist-queue.

An operation that a peer lacks is done one by one, as its users have to do it, and `lacks` names it.
"""

import sqlite3
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.json import encode

Body = dict[str, Any]


class Peer(Protocol):
    """One queue on its own file."""

    @property
    def connection(self) -> sqlite3.Connection:
        """The committing connection."""
        ...

    def put(self, bodies: Sequence[Body]) -> None: ...

    def put_at_once(self, bodies: Sequence[Body]) -> None: ...

    def take_and_finish(self, count: int) -> None: ...

    def close(self) -> None: ...


class Known(Struct, frozen=True):
    """A peer that may be installed."""

    name: str
    module: str
    package: str
    opened: Callable[[Path], Peer]
    batches: bool
    lacks: str

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None

    @property
    def version(self) -> str:
        return version(self.package)


class Huey:
    """Tasks as users enqueue them; the consumer dequeues them without running anything."""

    def __init__(self, folder: Path) -> None:
        self._huey = import_module("huey").SqliteHuey(filename=str(folder / "huey.db"))
        self._task = self._huey.task()(verify)

    @property
    def connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection = self._huey.storage.conn
        return found

    def put(self, bodies: Sequence[Body]) -> None:
        for body in bodies:
            self._huey.enqueue(self._task.s(body))

    put_at_once = put

    def take_and_finish(self, count: int) -> None:
        for _ in range(count):
            assert self._huey.dequeue() is not None

    def close(self) -> None:
        self._huey.storage.close()


def verify(body: Body) -> Body:
    return body


class LiteQueue:
    def __init__(self, folder: Path) -> None:
        self._queue = import_module("litequeue").LiteQueue(str(folder / "lite.db"))

    @property
    def connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection = self._queue.conn
        return found

    def put(self, bodies: Sequence[Body]) -> None:
        for body in bodies:
            self._queue.put(encode(body).decode())

    def put_at_once(self, bodies: Sequence[Body]) -> None:
        with self._queue.transaction():
            self.put(bodies)

    def take_and_finish(self, count: int) -> None:
        for _ in range(count):
            self._queue.done(self._queue.pop().message_id)

    def close(self) -> None:
        self._queue.close()


class PersistQueue:
    def __init__(self, folder: Path) -> None:
        self._queue = import_module("persistqueue").SQLiteAckQueue(str(folder / "persist"))

    @property
    def connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection = self._queue._putter
        return found

    def put(self, bodies: Sequence[Body]) -> None:
        for body in bodies:
            self._queue.put(body)

    put_at_once = put

    def take_and_finish(self, count: int) -> None:
        for _ in range(count):
            item = self._queue.get(block=False, raw=True)
            self._queue.ack(id=item["pqid"])

    def close(self) -> None:
        self._queue.close()


PEERS = (
    Known(
        "Huey",
        "huey",
        "huey",
        Huey,
        False,
        "it has no batches and no ack: what is dequeued is deleted, and lost with its worker; results are not stored",
    ),
    Known("litequeue", "litequeue", "litequeue", LiteQueue, True, "it takes and finishes one by one, without leases"),
    Known("persist-queue", "persistqueue", "persist-queue", PersistQueue, False, "it has no batches and no leases"),
)
