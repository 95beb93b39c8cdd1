"""Tables that fit the available width: cells wrap between words, and words are not split.

If the longest words do not fit side by side, each row becomes a list of names and values. This module loads rich and is
imported only for drawing.
"""

from collections.abc import Sequence
from itertools import zip_longest

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

from pendula.cli.text import printable_lines

BETWEEN = 3  # spaces between columns
EDGES = 2


class FittingTable:
    """A table with column heads."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[str | Text]], title: str | None = None) -> None:
        self._heads = [Text(column) for column in columns]
        self._rows = [[as_text(cell) for cell in row] for row in rows]
        self._title = title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width)
        if widths is None:
            yield from self._lists()
            return
        heads = (Column(head, width=width) for head, width in zip(self._heads, widths, strict=True))
        drawn = Table(*heads, title=self._title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for row in self._rows:
            drawn.add_row(*row)
        yield drawn

    def _widths(self, available: int) -> list[int] | None:
        """The width of each column; None if the longest words do not fit side by side."""
        columns = list(zip_longest(self._heads, *self._rows, fillvalue=Text()))
        wanted = [max(cell_len(line) for cell in column for line in lines_of(cell)) for column in columns]
        least = [max(cell_len(word) for cell in column for word in words_of(cell)) for column in columns]
        return shared_out(available - EDGES - BETWEEN * (len(columns) - 1), least, wanted)

    def _lists(self) -> RenderResult:
        if self._title is not None:
            yield Text(self._title, style="italic")
        for row in self._rows:
            drawn = Table.grid(padding=(0, 2))
            for head, cell in zip(self._heads, row, strict=False):
                name, value = head.copy(), cell.copy()
                name.stylize("bold")
                value.overflow = "fold"
                drawn.add_row(name, value)
            yield drawn
            yield Text()


def shared_out(available: int, least: Sequence[int], wanted: Sequence[int]) -> list[int] | None:
    """Widths between the least and the wanted ones; the widest columns shrink first, to the same width."""
    if sum(least) > available:
        return None
    cap = max(wanted, default=0)
    while sum(given := [max(low, min(high, cap)) for low, high in zip(least, wanted, strict=True)]) > available:
        cap -= 1
    left = available - sum(given)
    for number, high in enumerate(wanted):
        # The remainder is less than the number of shrunk columns.
        if left and given[number] < high:
            given[number] += 1
            left -= 1
    return given


def as_text(cell: str | Text) -> Text:
    """A cell with terminal control characters escaped, which must happen before widths are measured."""
    if isinstance(cell, str):
        return Text(printable_lines(cell))
    shown = printable_lines(cell.plain)
    return cell if shown == cell.plain else Text(shown, style=cell.style)


def lines_of(cell: Text) -> list[str]:
    return cell.plain.split("\n")


def words_of(cell: Text) -> list[str]:
    return cell.plain.split() or [""]
