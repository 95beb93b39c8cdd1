"""`pendula backup`: a checked copy of a data directory, while the server runs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from pendula.cli.failing import require
from pendula.cli.output import JsonFlag, Output, example
from pendula.kernel.wording import counted


def register(program: typer.Typer) -> None:
    shown = example("pendula backup pendula-data", "pendula backup /srv/pendula --to /mnt/backup/monday")
    program.command("backup", epilog=shown)(backup)


def backup(
    data: Annotated[Path, typer.Argument(metavar="DIR", help="The data directory of a server.")],
    to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to create.", show_default="beside it, named after the time"),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Copy a data directory, served or not, and check the copy.

    The copy contains everything acknowledged before it began. To restore it: pendula serve --data FOLDER.
    """
    require("server")
    from msgspec import to_builtins

    from pendula.server.backup import back_up

    target = to or data.absolute().with_name(f"{data.absolute().name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    out = Output(json)
    with out.status("backup") as tell:
        made = back_up(data, target, tell)
    parts = f"{counted(made.journals, 'journal')} with {counted(made.records, 'record')}"
    summary = f"Created {made.path}: {parts}, {counted(made.databases, 'database')}; all checked."
    out.result(to_builtins(made), lambda: summary)
