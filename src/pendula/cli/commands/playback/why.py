"""`pendula playback why`: explain why an item of a run was selected."""

from typing import Annotated, Any

import typer

from pendula.cli.commands.playback.files import FileArgument, spec_of
from pendula.cli.output import JsonFlag, Output, example, tables_of


def register(scheduler: typer.Typer) -> None:
    shown = example("pendula playback why frame.yaml 5", "pendula playback why channels.yaml 7 --count 24 --json")
    scheduler.command("why", epilog=shown)(why)


def why(
    file: FileArgument,
    ordinal: Annotated[
        int, typer.Argument(metavar="ORDINAL", help="The ordinal of an item in its epoch, from 1.", show_default=False)
    ],
    count: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of `next` calls, for a file without calls.", show_default="ORDINAL"),
    ] = None,
    epoch: Annotated[int, typer.Option(metavar="E", help="The epoch of the item; the first is 0.")] = 0,
    json: JsonFlag = False,
) -> None:
    """Explain why an item of a run was selected: weights, credits, the pool of new artwork and draws at that moment.

    Changes no files, not even corrupt caches.
    """
    from pendula.playback.model import item_json
    from pendula.playback.runs.opening import opening_of
    from pendula.playback.runs.script import calls_of, programme_over, reason_in, seed_of

    spec = spec_of(file)
    if spec.calls is None and count is None:
        count = max(ordinal, 0)
    calls = calls_of(spec, count)
    programme = programme_over(opening_of(spec, file.parent, set_aside=False), seed_of(spec))
    found = reason_in(programme, calls, epoch, ordinal)
    document: dict[str, Any] = {"item": item_json(found.item), "reason": found.reason}
    Output(json).result(document, lambda: tables_of("playback").reasoned(found.item, found.reason))
