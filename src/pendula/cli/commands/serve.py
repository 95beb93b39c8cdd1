"""`pendula serve` and `pendula backup`: the server with the control room; a checked copy of its data while it runs."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from pendula.cli.failing import keeping, require
from pendula.cli.output import JsonFlag, Output, example
from pendula.kernel.wording import counted


def register(program: typer.Typer) -> None:
    program.command(
        "serve",
        epilog=example(
            "pendula serve --demo",
            "pendula serve --host 0.0.0.0 --data /srv/pendula --tls-cert cert.pem --tls-key key.pem",
        ),
    )(serve)
    program.command(
        "backup", epilog=example("pendula backup pendula-data", "pendula backup /srv/pendula --to /mnt/backup/monday")
    )(backup)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 for any free one.", show_default="8765")] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Data directory.", show_default="pendula-data")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Run a demo of every scheduler.")] = False,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in TOML; flags and PENDULA_… variables win.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="Another host name of this server; may be repeated."),
    ] = None,
    allowed_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Origin of another page that may call this server; may be repeated."),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate chain in PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Private key in PEM.")] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A proxy handles TLS; trust its headers about the caller."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Serve all schedulers and the control room, by default only to this machine.

    Other interfaces need an access token (see pendula token) and TLS, or a proxy. Ctrl+C stops it cleanly.
    With --json the document has the address of the server once it listens, and log lines are JSON, too.
    """
    require("server")
    from pendula.server.serving import serve as run
    from pendula.server.settings import load

    # Omitted flags must not override the environment or the file.
    flags: dict[str, object] = {
        "host": host,
        "port": port,
        "data": data,
        "demo": demo or None,
        "config": config,
        "allowed_hosts": allowed_host or None,
        "allowed_origins": allowed_origin or None,
        "tls_cert": None if tls_cert is None else str(tls_cert),
        "tls_key": None if tls_key is None else str(tls_key),
        "behind_proxy": behind_proxy or None,
        "log_format": "json" if json else None,
    }
    settings = load(flags, os.environ)
    out = Output(json)

    def ready(address: str) -> None:
        document = {"address": address, "data": settings.data, "demo": settings.demo}
        out.result(document, lambda: f"Pendula is at {address} (Ctrl+C stops it)")

    keeping(f"{settings.data} has everything that was acknowledged")
    run(settings, on_ready=ready)


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
