"""`pendula playback run`: run the calls of a file, or `next` N times."""

from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer

from pendula.cli.commands.playback.files import FileArgument, spec_of
from pendula.cli.commands.playback.new_artwork import MqttOption, PlayerOption, address_of
from pendula.cli.failing import keeping
from pendula.cli.output import JsonFlag, Output, example, tables_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pendula.playback.model import Record
    from pendula.playback.runs.loading import Call


def register(scheduler: typer.Typer) -> None:
    shown = example(
        "pendula playback run channels.yaml --count 24",
        "pendula playback run frame.yaml --journal frame-journal --json > frame.json",
    )
    scheduler.command("run", epilog=shown)(run)


def run(
    file: FileArgument,
    count: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of `next` calls, for a file without calls.", show_default=False),
    ] = None,
    journal: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a journal to this folder, for `pendula replay`.")
    ] = None,
    mqtt: MqttOption = None,
    player: PlayerOption = None,
    receive: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="With --mqtt: start after N messages.")
    ] = 1,
    receive_s: Annotated[
        int, typer.Option(metavar="N", min=1, max=86_400, help="With --mqtt: wait for them at most N seconds.")
    ] = 60,
    json: JsonFlag = False,
) -> None:
    """Run the calls of a file, or `next` N times, and show the items and the exposure of each channel.

    With --mqtt new artwork is received first and inserted before the first call, in order of arrival.

    A cache that cannot be trusted is set aside as `.bad`, its channel gives nothing, and the others play on: that is a
    result, and the exit code is 0. A file with faults is refused with every one of them, and so is one that names
    another channel's cache, or what is none.
    """
    from pendula.playback.runs.loading import NaeInsert
    from pendula.playback.runs.script import calls_of, document, run_spec, staged, summary_of, summed

    out = Output(json)
    spec = spec_of(file)
    if journal is not None:
        keeping(f"{journal} holds what was shown until then")
    calls = calls_of(spec, count)
    records = _received(mqtt, player, receive, receive_s)
    with out.progress("items", _wanted(calls)) as advance:
        if spec.calls is not None:
            result = run_spec(spec, (*map(NaeInsert, records), *calls), file.parent, journal=journal, advance=advance)
            out.result(result.as_json(), lambda: tables_of("playback").drawn(summed(result)))
            return
        # There may be millions of items, so the output is streamed.
        with staged(spec, file.parent, journal) as stage, TemporaryFile() as spool:
            for record in records:
                stage.insert(record)
            if json:
                out.stream(document(stage, count or 0, spool, advance))
                return
            summary = summary_of(stage, count or 0, advance)
    out.result(None, lambda: tables_of("playback").drawn(summary))


def _received(mqtt: str | None, player: str | None, count: int, seconds: int) -> "list[Record]":
    """New artwork from a broker; none without --mqtt."""
    source = address_of(mqtt, player)
    if source is None:
        return []
    from pendula.playback.sources.mqtt import receive

    return receive(*source, count, seconds)


def _wanted(calls: "Sequence[Call]") -> int:
    from pendula.playback.runs.loading import Next

    return sum(call.n for call in calls if isinstance(call, Next))
