"""The tables of time plans and of worker heartbeats. Small ones, read as a whole."""

import sqlite3
from typing import Any

from msgspec import json
from msgspec.structs import astuple

from pendula.jobs.model import Priority
from pendula.jobs.plans import Plan, Recurring
from pendula.jobs.store.protocol import WorkerRow

_ENTRY = Recurring.__struct_fields__
_STATE = Plan.__struct_fields__[1:]
_PLAN = ", ".join((*_ENTRY, *_STATE))
_PUT_PLAN = f"INSERT OR REPLACE INTO plans ({_PLAN}) VALUES ({', '.join('?' * (len(_ENTRY) + len(_STATE)))})"
_WORKER = ", ".join(WorkerRow.__struct_fields__)
_PUT_WORKER = f"INSERT OR REPLACE INTO workers ({_WORKER}) VALUES ({', '.join('?' * len(WorkerRow.__struct_fields__))})"


def plans(connection: sqlite3.Connection) -> list[Plan]:
    """All plans, by name."""
    return [_plan(row) for row in connection.execute(f"SELECT {_PLAN} FROM plans ORDER BY name")]


def plan(connection: sqlite3.Connection, name: str) -> Plan | None:
    try:
        row = connection.execute(f"SELECT {_PLAN} FROM plans WHERE name = ?", (name,)).fetchone()
    except UnicodeEncodeError:  # half a character: nothing of that name was ever stored
        return None
    return None if row is None else _plan(row)


def _plan(row: tuple[Any, ...]) -> Plan:
    entry = dict(zip(_ENTRY, row[: len(_ENTRY)], strict=True))
    if entry["priority"] is not None:
        entry["priority"] = Priority(entry["priority"])
    return Plan(Recurring(**entry), **dict(zip(_STATE, row[len(_ENTRY) :], strict=True)))


def put_plan(connection: sqlite3.Connection, plan: Plan) -> None:
    entry = [getattr(plan.entry, name) for name in _ENTRY]
    connection.execute(_PUT_PLAN, (*entry, *(getattr(plan, name) for name in _STATE)))


def drop_plan(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("DELETE FROM plans WHERE name = ?", (name,))


def workers(connection: sqlite3.Connection) -> list[WorkerRow]:
    """All workers, the latest heartbeat first."""
    query = f"SELECT {_WORKER} FROM workers ORDER BY seen_at DESC, worker_id DESC"
    return [_worker(row) for row in connection.execute(query)]


def _worker(row: tuple[Any, ...]) -> WorkerRow:
    members = dict(zip(WorkerRow.__struct_fields__, row, strict=True))
    members["works"] = json.decode(members["works"], type=tuple[tuple[str, str], ...])
    members["queues"] = json.decode(members["queues"], type=tuple[str, ...])
    return WorkerRow(**members)


def put_worker(connection: sqlite3.Connection, row: WorkerRow, *, forget_before: int, most: int) -> None:
    """Store a heartbeat; drop workers last seen before `forget_before`, and the oldest beyond `most`."""
    *numbers, works, queues = astuple(row)
    connection.execute(_PUT_WORKER, (*numbers, json.encode(works).decode(), json.encode(queues).decode()))
    connection.execute("DELETE FROM workers WHERE seen_at < ?", (forget_before,))
    too_many = "SELECT worker_id FROM workers ORDER BY seen_at DESC, worker_id DESC LIMIT -1 OFFSET ?"
    connection.execute(f"DELETE FROM workers WHERE worker_id IN ({too_many})", (most,))
