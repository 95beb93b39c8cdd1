"""`pendula playback`: run a file of channels, ask why an item came up, play folders, look after cache files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.commands.playback.cache import cache
from pendula.cli.commands.playback.play import register
from pendula.cli.output import JsonFlag, Output, example

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pendula.playback.choosing.programme import Programme
    from pendula.playback.runs.loading import Call, Spec
    from pendula.playback.runs.script import RunResult

playback = typer.Typer(
    epilog=example("pendula playback run frame.yaml", "pendula playback play pictures/sea pictures/hills")
)
playback.add_typer(cache, name="cache", help="Cache files of channels: make, inspect, verify, repair.")
register(playback)

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="Channels, settings and calls: a YAML or JSON file.", show_default=False)
]


@playback.command(
    "run",
    epilog=example(
        "pendula playback run channels.yaml --count 24",
        "pendula playback run frame.yaml --journal frame-journal --json > frame.json",
    ),
)
def run(
    file: FileArgument,
    count: Annotated[
        int | None,
        typer.Option(metavar="N", help="So many times `next`, for a file without calls.", show_default=False),
    ] = None,
    journal: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep a journal there, for `pendula replay`.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Run the calls of a file, or so many times `next`: which items come, from which channel, and why not others.

    A cache that cannot be trusted is set aside as `.bad`, its channel gives nothing, and the others play on: that is a
    result, and the exit code is 0. A file with faults is refused with every one of them, and so is one that names
    another channel's cache, or what is none.
    """
    from pendula.playback.runs.script import calls_of

    out = Output(json)
    spec = _spec(file)
    calls = calls_of(spec, count)
    with out.progress("items", _wanted(calls)) as advance:
        if journal is None:
            result = _run(spec, calls, file, advance)
        else:
            result = _recorded(spec, calls, file, advance, journal)
    out.result(result.as_json(), lambda: _tables().drawn(result))


@playback.command(
    "why", epilog=example("pendula playback why frame.yaml 5", "pendula playback why channels.yaml 7 --count 24 --json")
)
def why(
    file: FileArgument,
    ordinal: Annotated[
        int, typer.Argument(metavar="ORDINAL", help="The number of an item in its epoch, from 1.", show_default=False)
    ],
    count: Annotated[
        int | None,
        typer.Option(metavar="N", help="So many times `next`, for a file without calls.", show_default="ORDINAL"),
    ] = None,
    epoch: Annotated[int, typer.Option(metavar="E", help="The epoch of the item; the first is 0.")] = 0,
    json: JsonFlag = False,
) -> None:
    """Say why an item of a run came up: weights, credits, the pool of new artwork and the draws of that moment.

    Nothing is touched, not even a cache that cannot be trusted.
    """
    from pendula.playback.model import item_json
    from pendula.playback.runs.script import calls_of
    from pendula.playback.runs.why import reason_in

    spec = _spec(file)
    if spec.calls is None and count is None:
        count = max(ordinal, 0)
    calls = calls_of(spec, count)
    found = reason_in(_looked_at(spec, file.parent), calls, epoch, ordinal)
    document: dict[str, Any] = {"item": item_json(found.item), "reason": found.reason}
    Output(json).result(document, lambda: _tables().reasoned(found.item, found.reason))


def _spec(file: Path) -> "Spec":
    from pendula.documents import read_file
    from pendula.playback.runs.loading import read_spec

    return read_spec(read_file(file))


def _run(spec: "Spec", calls: "Sequence[Call]", file: Path, advance: "Callable[[int], None]") -> "RunResult":
    from pendula.playback.runs.script import programme_of, run_calls

    return run_calls(calls, programme_of(spec, file.parent), advance)


def _recorded(
    spec: "Spec", calls: "Sequence[Call]", file: Path, advance: "Callable[[int], None]", journal: Path
) -> "RunResult":
    """The same, and every call through a player with a journal as well."""
    from pendula.kernel.disk import RealDisk
    from pendula.playback.runs.recording import Recording, Tape
    from pendula.playback.runs.script import programme_of, run_calls

    programme = programme_of(spec, file.parent, Tape)
    disk = RealDisk(journal)
    try:
        recording = Recording(programme, disk)
    except BaseException:
        disk.close()
        raise
    with recording:
        return run_calls(calls, programme, advance, recording.heard)


def _looked_at(spec: "Spec", base: Path) -> "Programme":
    """A programme of the file's channels as they lie there."""
    from secrets import randbits

    from pendula.playback.choosing.programme import Programme
    from pendula.playback.runs.opening import counted, opened

    channels, diagnostics = opened(spec.channels, base, set_aside=False)
    seed = randbits(64) if spec.seed is None else spec.seed
    programme = Programme(channels, counted(spec.settings, channels), seed=seed)
    programme.tell(diagnostics)
    return programme


def _wanted(calls: "Sequence[Call]") -> int:
    from pendula.playback.runs.loading import Next

    return sum(call.n for call in calls if isinstance(call, Next))


def _tables() -> Any:
    """Only where something is drawn: it loads rich."""
    from pendula.cli.commands.playback import tables

    return tables
