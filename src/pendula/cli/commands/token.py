"""`pendula token`: access tokens of a data directory, made, listed and revoked.

A running server on the same directory hears of changes by itself.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pendula.cli.failing import require
from pendula.cli.output import JsonFlag, Output, example, table

if TYPE_CHECKING:
    from pendula.server.security.tokens import TokenRecord, TokenStore

SECONDS_A_DAY = 86_400
FOREVER_DAYS = 36_500

RoleName = Literal["viewer", "operator", "admin"]
DataOption = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="The server's data directory.", show_default="as for serve")
]
ConfigOption = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="The server's settings file.")]


def register(program: typer.Typer) -> None:
    group = typer.Typer(help="Make, list and revoke access tokens.", epilog=example("pendula token list"))
    group.command("new", epilog=example("pendula token new --name night-shift --role operator --expires-days 90"))(new)
    group.command("list", epilog=example("pendula token list --data /srv/pendula"))(list_)
    group.command("revoke", epilog=example("pendula token revoke night-shift"))(revoke)
    program.add_typer(group, name="token")


def new(
    name: Annotated[str, typer.Option(metavar="NAME", help="Who it is for; journals show it. a-z, 0-9 and '-'.")],
    role: Annotated[RoleName, typer.Option(help="viewer looks, operator commands, admin governs.")],
    expires_days: Annotated[
        int | None,
        typer.Option(metavar="DAYS", min=1, max=FOREVER_DAYS, help="Days until it ends.", show_default="never"),
    ] = None,
    data: DataOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Make an access token and print its secret, this once and nowhere else."""
    store = _store(data, config)
    from pendula.server.security.tokens import wall_seconds

    expires = None if expires_days is None else wall_seconds() + expires_days * SECONDS_A_DAY
    record, secret = store.new(name, role, expires)
    out = Output(json)
    out.note(f"Token {record.name}, {record.role}, expires {_day(record.expires_at)}. The secret is not shown again:")
    out.result({**_told(record), "secret": secret}, lambda: secret)


def list_(data: DataOption = None, config: ConfigOption = None, json: JsonFlag = False) -> None:
    """List all tokens ever made, without their secrets."""
    records = _store(data, config).list()
    rows = [
        (it["name"], it["role"], it["state"], _day(it["created_at"]), _day(it["expires_at"]))
        for it in map(_told, records)
    ]
    Output(json).result(
        {"tokens": [_told(record) for record in records]},
        lambda: table(("name", "role", "state", "created", "expires"), rows) if rows else "There are no tokens.",
    )


def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    data: DataOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Revoke a token: from now on it is not valid. Its name stays taken."""
    record = _store(data, config).revoke(name)
    Output(json).result(_told(record), lambda: f"Token {record.name} is revoked.")


def _store(data: Path | None, config: Path | None) -> "TokenStore":
    require("server")
    from pendula.server.security.tokens import TokenStore
    from pendula.server.settings import load

    return TokenStore(load({"data": data, "config": config}, os.environ).data)


def _told(record: "TokenRecord") -> dict[str, Any]:
    from pendula.server.security.tokens import wall_seconds

    state = "revoked" if record.revoked else "good" if record.good_at(wall_seconds()) else "expired"
    return {
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "name": record.name,
        "role": str(record.role),
        "state": state,
    }


def _day(seconds: int | None) -> str:
    return "never" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
