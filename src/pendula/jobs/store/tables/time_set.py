"""Sets times that a wrong clock wrote back to the right time."""

import sqlite3

from pendula.jobs.model import SECOND

_BACK = {
    "jobs": ("created_at", "updated_at"),
    "counts": ("at",),
    "plans": ("changed_at", "declared_at", "paused_at"),
    "workers": ("started_at", "seen_at", "ended_at"),
    "effects": ("at",),
    "rollbacks": ("asked_at", "finished_at"),
}
_ENDED = ("succeeded", "failed", "dead_letter", "attempts", "requeues")


def set_back(connection: sqlite3.Connection, right: int) -> None:
    """Set every past time that is later than `right` back to it."""
    for table, columns in _BACK.items():
        changes = ", ".join(f"{name} = min({name}, ?1)" for name in columns)
        connection.execute(
            f"UPDATE {table} SET {changes} WHERE {' OR '.join(f'{name} > ?1' for name in columns)}", (right,)
        )
    second = right // SECOND
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in _ENDED)
    after = connection.execute(f"SELECT {sums} FROM ended WHERE second > ?", (second,)).fetchone()
    connection.execute("DELETE FROM ended WHERE second > ?", (second,))
    if any(after):
        add = ", ".join(f"{name} = {name} + excluded.{name}" for name in _ENDED)
        connection.execute(
            f"INSERT INTO ended (second, {', '.join(_ENDED)}) VALUES (?, ?, ?, ?, ?, ?) "
            f"ON CONFLICT (second) DO UPDATE SET {add}",
            (second, *after),
        )
