"""Results as columns: flat names, one kind a column, a list of values each, ready for CSV, Parquet or a data frame.

kind      in Python and JSON                                   in Parquet
integer   a whole number, or null                              INT64
decimal   a text with a point and eight digits, or null        DECIMAL(38, 8)
text      a text                                               STRING
"""

import csv
from io import StringIO

from msgspec import Struct

from pendula.credit.studies.figures import Kind
from pendula.kernel.canonical import digest


class Columns(Struct, frozen=True):
    """A table by columns: kinds and values by name, both in the order of the columns."""

    kinds: dict[str, Kind]
    values: dict[str, list[int | str | None]]

    def __len__(self) -> int:
        return max(map(len, self.values.values()), default=0)

    def rows(self) -> list[tuple[int | str | None, ...]]:
        return list(zip(*self.values.values(), strict=True))

    @property
    def digest(self) -> str:
        """SHA-256 of the values; the same on every machine and with any number of workers."""
        return digest({"order": list(self.values), "kinds": self.kinds, "values": self.values})

    def csv(self) -> str:
        """RFC 4180 with line feeds: a line of names, a line per row, null as an empty field."""
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.values)
        writer.writerows(self.rows())
        return text.getvalue()


def columns_of(kinds: dict[str, Kind], rows: list[list[int | str | None]]) -> Columns:
    """Columns from rows with values in the order of `kinds`."""
    return Columns(kinds, {name: [row[at] for row in rows] for at, name in enumerate(kinds)})
