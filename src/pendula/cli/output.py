"""Output of commands: one JSON document on stdout with `--json`, tables otherwise; progress on stderr.

A command creates one `Output` and passes it one result. Nothing else writes to stdout. Rich is loaded only for drawing.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from pendula.cli.text import printable, printable_lines
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text

    from pendula.kernel.engine import Reason

PIPED_WIDTH = 240

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one canonical JSON document and nothing else; progress goes to stderr.")
]


class Output:
    """The output of one command."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def result(self, document: Any, draw: Callable[[], "RenderableType"]) -> None:
        """Print the document (values with canonical bytes) with `--json`, else the result of `draw`."""
        if self.as_json:
            from pendula.kernel.canonical import encode

            sys.stdout.buffer.write(encode(document) + b"\n")
            sys.stdout.buffer.flush()
            return
        drawn = draw()
        if isinstance(drawn, str):
            sys.stdout.write(printable_lines(drawn) + "\n")
            sys.stdout.flush()
        else:
            _console(stderr=False).print(drawn)

    def stream(self, parts: Iterable[bytes]) -> None:
        """Print a document too large for memory, in parts of its canonical bytes."""
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.write(b"\n")
        sys.stdout.buffer.flush()

    def note(self, sentence: str) -> None:
        """Print one line on stderr."""
        sys.stderr.write(sentence + "\n")
        sys.stderr.flush()

    @contextmanager
    def progress(self, title: str, total: int) -> Iterator[Callable[[int], None]]:
        """A progress bar on stderr, moved by calling the function with the amount done; none without a terminal."""
        if not sys.stderr.isatty():
            yield _ignore_progress
            return
        from rich.progress import Progress

        with Progress(console=_console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=total)
            yield lambda done: bar.update(task, completed=done)

    @contextmanager
    def status(self, title: str) -> Iterator[Callable[[str], None]]:
        """The current activity on stderr: one changing line on a terminal, separate lines in a log."""
        if not sys.stderr.isatty():
            yield lambda doing: self.note(f"{title}: {doing}")
            return
        with _console(stderr=True).status(title) as line:
            yield lambda doing: line.update(f"{title}: {doing}")


def _ignore_progress(_done: int) -> None:
    pass


def table(columns: Sequence[str], rows: "Sequence[Sequence[str | Text]]", title: str | None = None) -> "RenderableType":
    """A plain table that fits the terminal; heads and cells are text, not markup."""
    from pendula.cli.fitting import FittingTable

    return FittingTable(columns, rows, title)


def plain_line(text: str) -> "Text":
    """One line of text without markup."""
    from rich.text import Text

    return Text(printable(text))


def titled_list(title: str, lines: Sequence[str], limit: int) -> Iterator["RenderableType"]:
    """A title and at most `limit` lines below it; nothing if there are no lines."""
    from rich.text import Text

    if not lines:
        return
    yield Text(title, style="bold")
    for text in lines[:limit]:
        yield plain_line(f"  {text}")
    if len(lines) > limit:
        yield Text(f"  … and {len(lines) - limit} more")
    yield Text("")


def reason_tree(
    head: str, reason: "Reason", details: "Callable[[Reason], Iterable[str]] | None" = None
) -> "RenderableType":
    """A tree with the sentence in `head` and its reasons below; `details` are lines about each reason."""
    from rich.tree import Tree

    def grow(branch: Tree, reason: "Reason") -> None:
        for detail in details(reason) if details is not None else ():
            branch.add(plain_line(detail))
        for cause in reason.because:
            grow(branch.add(plain_line(cause.sentence)), cause)

    tree = Tree(plain_line(head))
    grow(tree, reason)
    return tree


def tables_of(scheduler: str) -> Any:
    """The tables of a scheduler, imported only for drawing, since they load rich."""
    return import_module(f"pendula.cli.commands.{scheduler}.tables")


def facts(pairs: Sequence[tuple[str, str]]) -> "RenderableType":
    """Names and values, one per line; values wrap and are not cut."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table.grid(padding=(0, 2))
    for name, value in pairs:
        drawn.add_row(Text(name, style="bold"), Text(printable_lines(value), overflow="fold"))
    return drawn


def require_suffix(file: "Path | None", *suffixes: str) -> None:
    """Reject an output file whose suffix does not match the format."""
    if file is None or file.suffix.lower() in suffixes or (file.exists() and not file.is_file()):
        return  # a pipe or /dev/stdout has no format
    allowed = " or ".join(suffixes)
    raise WrongUsage(f"{file} cannot be written: use a name ending in {allowed}", path=str(file))


def example(*lines: str) -> str:
    """The example section at the end of a command's help."""
    commands = (line.replace("[", r"\[") for line in lines)
    return "\n".join(["[bold]Example[/bold]", "", *(f"  [cyan]{command}[/cyan]" for command in commands)])


def _console(stderr: bool) -> "Console":
    from rich.console import Console
    from rich.segment import Segment

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            # Rich would exit with 1, which here means refused input.
            raise BrokenPipeError

        def render(self, renderable: "RenderableType", options: "ConsoleOptions | None" = None) -> "Iterable[Segment]":
            # Texts from files, stores and servers may contain terminal control characters.
            for part in super().render(renderable, options):
                yield part if part.control else Segment(printable_lines(part.text), part.style)

    return Terminal(stderr=stderr, highlight=False, soft_wrap=False, width=_width(sys.stderr if stderr else sys.stdout))


def _width(stream: TextIO, environ: Mapping[str, str] = os.environ) -> int | None:
    """The terminal width; None for a file or pipe, so that rows are not wrapped there."""
    return None if stream.isatty() or environ.get("COLUMNS") else PIPED_WIDTH
