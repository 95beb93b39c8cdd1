"""Effects, alerts and write-backs."""

import sqlite3

from pendula.jobs.store.protocol import Effect
from pendula.kernel.canonical import Json, encode


def put_effect(connection: sqlite3.Connection, effect: Effect) -> None:
    connection.execute(
        "INSERT INTO effects (idempotency_key, job_seq, fence, result, at) VALUES (?, ?, ?, ?, ?)",
        (effect.idempotency_key, effect.job_seq, effect.fence, encode(effect.result).decode(), effect.at),
    )


def put_alert(connection: sqlite3.Connection, alert_id: str, body: Json) -> None:
    connection.execute(
        "INSERT INTO alerts (alert_id, body) VALUES (?, ?) ON CONFLICT (alert_id) DO NOTHING",
        (alert_id, encode(body).decode()),
    )


def alerts_delivered(connection: sqlite3.Connection, upto: int, at: int) -> None:
    query = "UPDATE alerts SET delivered_at = ? WHERE delivered_at IS NULL AND n <= ?"
    connection.execute(query, (at, upto))


def put_write_back(connection: sqlite3.Connection, body: Json) -> None:
    connection.execute("INSERT INTO write_backs (body) VALUES (?)", (encode(body).decode(),))


def write_backs_taken(connection: sqlite3.Connection, upto: int) -> None:
    connection.execute("DELETE FROM write_backs WHERE n <= ?", (upto,))
