"""`pendula token`: creates, lists and revokes access tokens of a data directory.

A running server on the same directory sees changes without a restart.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pendula.cli.failing import require
from pendula.cli.output import JsonFlag, Output, example, table

if TYPE_CHECKING:
    from pendula.server.security.identity import TokenRecord, TokenStore

SECONDS_A_DAY = 86_400
FOREVER_DAYS = 36_500

RoleName = Literal["viewer", "operator", "admin"]
DataOption = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="The server's data directory.", show_default="as for serve")
]
ConfigOption = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="The server's settings file.")]


def register(program: typer.Typer) -> None:
    group = typer.Typer(help="Create, list and revoke access tokens.", epilog=example("pendula token list"))
    group.command("new", epilog=example("pendula token new --name night-shift --role operator --expires-days 90"))(new)
    group.command("list", epilog=example("pendula token list --data /srv/pendula"))(list_)
    group.command("revoke", epilog=example("pendula token revoke night-shift"))(revoke)
    program.add_typer(group, name="token")


def new(
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the holder, shown in journals. a-z, 0-9 and '-'.")],
    role: Annotated[RoleName, typer.Option(help="viewer reads, operator commands, admin governs.")],
    expires_days: Annotated[
        int | None,
        typer.Option(metavar="DAYS", min=1, max=FOREVER_DAYS, help="Days until it expires.", show_default="never"),
    ] = None,
    data: DataOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Create an access token and print its secret, which is shown only once."""
    store = _store(data, config)
    from pendula.server.security.identity import wall_seconds

    expires = None if expires_days is None else wall_seconds() + expires_days * SECONDS_A_DAY
    record, secret = store.new(name, role, expires)
    out = Output(json)
    out.note(f"Token {record.name}, {record.role}, expires {_day(record.expires_at)}. The secret is not shown again:")
    out.result({**_document(record), "secret": secret}, lambda: secret)


def list_(data: DataOption = None, config: ConfigOption = None, json: JsonFlag = False) -> None:
    """List all tokens, including revoked ones, without their secrets."""
    records = _store(data, config).list()
    rows = [
        (token["name"], token["role"], token["state"], _day(token["created_at"]), _day(token["expires_at"]))
        for token in map(_document, records)
    ]
    Output(json).result(
        {"tokens": [_document(record) for record in records]},
        lambda: table(("name", "role", "state", "created", "expires"), rows) if rows else "No tokens.",
    )


def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    data: DataOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Revoke a token. Its name cannot be used again."""
    record = _store(data, config).revoke(name)
    Output(json).result(_document(record), lambda: f"Token {record.name} is revoked.")


def _store(data: Path | None, config: Path | None) -> "TokenStore":
    require("server")
    from pendula.server.security.identity import TokenStore
    from pendula.server.settings import load

    return TokenStore(load({"data": data, "config": config}, os.environ).data)


def _document(record: "TokenRecord") -> dict[str, Any]:
    from pendula.server.security.identity import wall_seconds

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
