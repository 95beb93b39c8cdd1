"""`pendula playback cache`: write, inspect, verify and repair cache files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import asdict

from pendula.cli.output import JsonFlag, Output, example, facts, table
from pendula.kernel.errors import InputRefused, WrongUsage
from pendula.kernel.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from pendula.playback.cache.repair import Inspection, Repaired
    from pendula.playback.cache.shelf import Fault

cache = typer.Typer(epilog=example("pendula playback cache verify sea.pch", "pendula playback cache repair sea.pch"))

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A cache file.", show_default=False)]
ChannelOption = Annotated[
    str | None,
    typer.Option(metavar="ID", help="The channel of the file; if given, it is checked, too.", show_default=False),
]


class CacheFaulty(InputRefused):
    """The cache file has faults. Facts: `file`, `faults` (their number)."""

    code = "cache_faulty"


@cache.command("inspect", epilog=example("pendula playback cache inspect sea.pch --channel sea"))
def inspect(file: FileArgument, channel: ChannelOption = None, json: JsonFlag = False) -> None:
    """Show the header of a cache file, valid or not, and its blocks."""
    from pendula.playback.cache import repair

    found = repair.inspect(file, channel)
    Output(json).result({"file": str(file), **_inspected(found)}, lambda: _drawn(file, found))


@cache.command("verify", epilog=example("pendula playback cache verify sea.pch --json"))
def verify(file: FileArgument, channel: ChannelOption = None, json: JsonFlag = False) -> None:
    """List all faults of a cache file with their offsets; exits with 1 if there are any."""
    from pendula.playback.cache import repair

    faults = repair.verify(file, channel)
    document = {"file": str(file), "sound": not faults, "faults": faults}
    Output(json).result(document, lambda: _faults(faults) if faults else f"{file} is sound.")
    if faults:
        raise CacheFaulty(f"{file} is damaged: {counted(len(faults), 'fault')}", file=str(file), faults=len(faults))


@cache.command("repair", epilog=example("pendula playback cache repair sea.pch --channel sea"))
def repair_file(file: FileArgument, channel: ChannelOption = None, json: JsonFlag = False) -> None:
    """Replace a damaged cache file by one with all its valid records; the old file is kept as `.bad`.

    If the header is damaged, --channel is required.
    """
    from pendula.playback.cache import repair

    _check_channel(channel)
    repaired = repair.repair(file, channel)
    old = None if repaired.old is None else str(file.parent / repaired.old)
    document = {**asdict(repaired), "file": str(file), "written": repaired.written, "old": old}
    Output(json).result(document, lambda: _repaired(file, repaired, old))


@cache.command("write", epilog=example("pendula playback cache write sea.pch --channel sea --records sea.json"))
def write(
    file: FileArgument,
    channel: Annotated[str, typer.Option(metavar="ID", help="The channel of the file.", show_default=False)],
    records: Annotated[
        Path,
        typer.Option(metavar="FILE", help="A list of records as in a playback file: YAML or JSON.", show_default=False),
    ],
    k: Annotated[int, typer.Option("--keep", metavar="K", help="Maximum number of records, from 8 to 8192.")] = 1024,
    block_bytes: Annotated[int, typer.Option(metavar="N", help="Block size in bytes: 4096 or 8192.")] = 4096,
    json: JsonFlag = False,
) -> None:
    """Write records to a cache file, atomically.

    The newest records are kept. An existing file is replaced, with the next generation.
    """
    from pendula.documents import read_file
    from pendula.playback.choosing.records import pack
    from pendula.playback.runs.loading import read_records

    raws = [pack(record) for record in read_records(read_file(records))]
    generation = _written(file, channel, raws, k, block_bytes)
    kept = min(len(raws), k)
    document = {"file": str(file), "channel": channel, "count": kept, "generation": generation}
    Output(json).result(
        document, lambda: f"{file} holds {counted(kept, 'record')} of {channel!r}, generation {generation}."
    )


def _written(file: Path, channel: str, raws: "Sequence[bytes]", k: int, block_bytes: int) -> int:
    from pendula.kernel.disk import RealDisk
    from pendula.playback.cache.shelf import checked_name, write_cache

    _check_channel(channel)
    # Before the folder is created.
    checked_name(file.name)
    disk = RealDisk(file.parent)
    try:
        return write_cache(disk, file.name, channel, raws, k=k, block_bytes=block_bytes)
    finally:
        disk.close()


def _check_channel(channel: str | None) -> None:
    if channel == "":
        raise WrongUsage("--channel is empty; pass the id of the channel")


def _inspected(found: "Inspection") -> dict[str, Any]:
    header = None
    if found.header is not None:
        header = {**asdict(found.header), "channel_hash": found.header.channel_hash.hex()}
    return {
        "bytes": found.size,
        "header": header,
        "faults": found.faults,
        "blocks": found.blocks,
        "records": found.records,
    }


def _drawn(file: Path, found: "Inspection") -> "RenderableType":
    from rich.console import Group

    pairs = [("file", str(file)), ("bytes", str(found.size)), ("sound records", str(found.records))]
    if found.header is not None:
        header = found.header
        pairs += [
            ("generation", str(header.generation)),
            ("count", f"{header.count} of at most {header.k}"),
            ("block", f"{header.block_bytes} bytes, {header.per_block} records"),
            ("channel", header.channel_hash.hex()),
        ]
    rows = [(str(block.block), str(block.records), str(block.damaged)) for block in found.blocks]
    parts: list[RenderableType] = [facts(pairs), "", table(("block", "records", "damaged"), rows)]
    if found.faults:
        parts.append(_faults(found.faults))
    return Group(*parts)


def _faults(faults: "Sequence[Fault]") -> "RenderableType":
    rows = [
        (str(one.offset), one.place.value, "" if one.record is None else str(one.record), one.sentence)
        for one in faults
    ]
    return table(("byte", "place", "record", "what is wrong"), rows)


def _repaired(file: Path, repaired: "Repaired", old: str | None) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    if old is None:
        return f"{file} is sound; nothing was changed."
    summary = f"{file} now has {repaired.kept} records, generation {repaired.generation}. The old file is {old}."
    if not repaired.dropped:
        return f"{summary} No record was dropped."
    return Group(Text(summary), Text("Dropped:"), _faults(repaired.dropped))
