"""`pendula fleet payload`: check a payload against its contract."""

from pathlib import Path
from typing import Annotated

import typer

from pendula.cli.failing import require
from pendula.cli.output import JsonFlag, Output, example
from pendula.kernel.errors import WrongUsage
from pendula.kernel.wording import suggestion


def register(group: typer.Typer) -> None:
    group.command(
        "payload",
        epilog=example(
            "pendula fleet payload robot-state.json5",
            "pendula fleet payload blocked.json --contract LockResult --json",
        ),
    )(payload)


def payload(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON or JSON5; - for stdin.", show_default=False)],
    contract: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="RobotState, LockResult, …", show_default="the one that fits best"),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Check a payload, such as a RobotState, against its contract.

    JSON5 with comments and unquoted names is accepted. Of a saved answer of `GET robots` or `GET lock-results` each
    payload is checked. With --json the payload is printed in canonical form. The contracts are in
    docs/reference/fleet-contracts.md.
    """
    require("fleet")
    import sys

    from pendula.documents.reading import refused_file
    from pendula.fleet.contracts import CONTRACTS, LISTS, RobotState, contract_of, list_of, parse, parse_list
    from pendula.fleet.gateway import report_of

    if contract is not None and contract not in CONTRACTS:
        near = suggestion(contract, tuple(CONTRACTS))
        raise WrongUsage(f"There is no contract {contract!r}{near}; there are {', '.join(CONTRACTS)}")
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise refused_file(file, error) from error
    wrapped = list_of(data)
    if wrapped is not None and contract in (None, LISTS[wrapped]):
        whole = parse_list(wrapped, data)
        ones = getattr(whole, wrapped)
        for one in ones:
            if isinstance(one, RobotState):
                report_of(one)
        Output(json).result(whole, lambda: f"{file} is a list of {len(ones)} {LISTS[wrapped]}.")
        return
    name = contract or contract_of(data)
    value = parse(name, data)
    if isinstance(value, RobotState):
        # Valid in form, but out of range.
        report_of(value)
    Output(json).result(value, lambda: f"{file} is a {name}.")
