"""Many rows with one statement: SQLite prepares and finishes it once, instead of once a row."""

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

AT_ONCE = 50  # more rows are hardly faster


class Bulk:
    """A statement for any number of rows: `head`, a list of `width` values for each row, `tail`."""

    def __init__(self, head: str, width: int, tail: str = "") -> None:
        row = f"({', '.join('?' * width)})"
        self._one = f"{head} {row} {tail}"
        self._many = f"{head} {', '.join([row] * AT_ONCE)} {tail}"

    def run(self, connection: sqlite3.Connection, rows: Iterable[Sequence[Any]]) -> None:
        values = list(rows)
        if len(values) == 1:
            connection.execute(self._one, values[0])
            return
        whole = len(values) - len(values) % AT_ONCE
        for first in range(0, whole, AT_ONCE):
            connection.execute(self._many, tuple(chain.from_iterable(values[first : first + AT_ONCE])))
        if whole < len(values):
            connection.executemany(self._one, values[whole:])
