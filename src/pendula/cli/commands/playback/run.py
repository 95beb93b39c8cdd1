"""`pendula playback run` and `why`: run the calls of a file, or `next` N times; explain an item of such a run."""

import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.failing import keeping
from pendula.cli.output import JsonFlag, Output, example, tables_of
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pendula.playback.model import Record
    from pendula.playback.runs.loading import Call, Spec
    from pendula.playback.sources.mqtt import Address


FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="Channels, settings and calls: a YAML or JSON file.", show_default=False)
]
PASSWORD = "PENDULA_MQTT_PASSWORD"

MqttOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help=f"Receive new artwork from a broker: mqtt://user@host:1883/prefix, the password in {PASSWORD}.",
        show_default=False,
    ),
]
PlayerOption = Annotated[
    str | None,
    typer.Option(metavar="KEY", help="The player in the topic PREFIX/player/KEY/new-artwork.", show_default=False),
]


def register(scheduler: typer.Typer) -> None:
    scheduler.command(
        "run",
        epilog=example(
            "pendula playback run channels.yaml --count 24",
            "pendula playback run frame.yaml --journal frame-journal --json > frame.json",
        ),
    )(run)
    scheduler.command(
        "why",
        epilog=example("pendula playback why frame.yaml 5", "pendula playback why channels.yaml 7 --count 24 --json"),
    )(why)


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
    from pendula.playback.runs.script import calls_of, reason_in, seed_of
    from pendula.playback.runs.stage import Stage

    spec = spec_of(file)
    if spec.calls is None and count is None:
        count = max(ordinal, 0)
    calls = calls_of(spec, count)
    stage = Stage(opening_of(spec, file.parent, set_aside=False), seed_of(spec))
    found = reason_in(stage, calls, epoch, ordinal)
    document: dict[str, Any] = {"item": item_json(found.item), "reason": found.reason}
    Output(json).result(document, lambda: tables_of("playback").reasoned(found.item, found.reason))


def spec_of(file: Path) -> "Spec":
    """Raises `DocumentRefused` with every fault of the file."""
    from pendula.documents import read_file
    from pendula.playback.runs.loading import read_spec

    return read_spec(read_file(file))


def address_of(url: str | None, player: str | None) -> "tuple[Address, str] | None":
    """Broker, prefix and player key; None without --mqtt."""
    if url is None and player is None:
        return None
    if url is None or player is None:
        raise WrongUsage("--mqtt (broker and prefix) and --player (the key of the player) must be given together")
    from pendula.playback.sources.mqtt import read_address, require_library, topic_of

    address = read_address(url, os.environ.get(PASSWORD))
    topic_of(address.prefix, player)
    require_library()
    return address, player
