"""`pendula playback cache`: make a cache file, say what is in it and what is wrong, put a sound one in its place."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.output import JsonFlag, Output, example, facts, table
from pendula.kernel.errors import InputRefused, WrongUsage
from pendula.kernel.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from pendula.playback.cache.layout import Fault
    from pendula.playback.cache.repair import Inspection, Repaired

cache = typer.Typer(epilog=example("pendula playback cache verify sea.pch", "pendula playback cache repair sea.pch"))

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A cache file.", show_default=False)]
ChannelOption = Annotated[
    str | None,
    typer.Option(metavar="ID", help="The channel it belongs to; then this is checked, too.", show_default=False),
]


class CacheFaulty(InputRefused):
    """The file is not what a cache file should be. Facts: `file`, `faults` (how many)."""

    code = "cache_faulty"


@cache.command("inspect", epilog=example("pendula playback cache inspect sea.pch --channel sea"))
def inspect(file: FileArgument, channel: ChannelOption = None, json: JsonFlag = False) -> None:
    """Say what the header of a cache file says, be it right or wrong, and what its blocks hold."""
    from pendula.playback.cache import repair

    found = repair.inspect(file, channel)
    Output(json).result({"file": str(file), **_inspected(found)}, lambda: _drawn(file, found))


@cache.command("verify", epilog=example("pendula playback cache verify sea.pch --json"))
def verify(file: FileArgument, channel: ChannelOption = None, json: JsonFlag = False) -> None:
    """Say everything that is wrong with a cache file, byte by byte; the exit code is 1 if anything is."""
    from pendula.playback.cache import repair

    faults = repair.verify(file, channel)
    document = {"file": str(file), "sound": not faults, "faults": [_fault(fault) for fault in faults]}
    Output(json).result(document, lambda: _faults(faults) if faults else f"{file} is sound.")
    if faults:
        raise CacheFaulty(f"{file} is damaged: {counted(len(faults), 'fault')}", file=str(file), faults=len(faults))


@cache.command("repair", epilog=example("pendula playback cache repair sea.pch --channel sea"))
def mend(file: FileArgument, channel: ChannelOption = None, json: JsonFlag = False) -> None:
    """Put a file with all sound records in the place of a faulty one, which is kept beside it as `.bad`.

    A file whose header is damaged does not say whose it is: then --channel has to.
    """
    from pendula.playback.cache import repair

    _check_channel(channel)
    repaired = repair.repair(file, channel)
    old = None if repaired.old is None else str(file.parent / repaired.old)
    document: dict[str, Any] = {
        "file": str(file),
        "written": repaired.written,
        "kept": repaired.kept,
        "generation": repaired.generation,
        "faults": [_fault(fault) for fault in repaired.faults],
        "dropped": [_fault(fault) for fault in repaired.dropped],
        "old": old,
    }
    Output(json).result(document, lambda: _repaired(file, repaired, old))


@cache.command("write", epilog=example("pendula playback cache write sea.pch --channel sea --records sea.json"))
def write(
    file: FileArgument,
    channel: Annotated[str, typer.Option(metavar="ID", help="The channel it is for.", show_default=False)],
    records: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="A list of records, as in a file of channels: YAML or JSON.", show_default=False
        ),
    ],
    k: Annotated[int, typer.Option("--keep", metavar="K", help="How many records it may hold, from 8 to 8192.")] = 1024,
    block_bytes: Annotated[int, typer.Option(metavar="N", help="Bytes in a block: 4096 or 8192.")] = 4096,
    json: JsonFlag = False,
) -> None:
    """Make a cache file of records, in one step: after a crash the old or the new file is there.

    The newest records are kept. A file that is there is replaced, and its generation counts on.
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
    # Before the folder is made.
    checked_name(file.name)
    disk = RealDisk(file.parent)
    try:
        return write_cache(disk, file.name, channel, raws, k=k, block_bytes=block_bytes)
    finally:
        disk.close()


def _check_channel(channel: str | None) -> None:
    if channel == "":
        raise WrongUsage("--channel is empty; a cache belongs to a channel with a name")


def _inspected(found: "Inspection") -> dict[str, Any]:
    header = found.header
    said = None
    if header is not None:
        said = {
            "block_bytes": header.block_bytes,
            "k": header.k,
            "count": header.count,
            "generation": header.generation,
            "channel_hash": header.channel_hash.hex(),
        }
    return {
        "bytes": found.size,
        "header": said,
        "faults": [_fault(fault) for fault in found.faults],
        "blocks": [
            {"block": block.block, "records": block.records, "damaged": block.damaged} for block in found.blocks
        ],
        "records": found.records,
    }


def _fault(fault: "Fault") -> dict[str, Any]:
    return {
        "place": fault.place.value,
        "offset": fault.offset,
        "record": fault.record,
        "sentence": fault.sentence,
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
    said = f"{file} holds {repaired.kept} records now, generation {repaired.generation}. The old file is {old}."
    if not repaired.dropped:
        return f"{said} No record was dropped."
    return Group(Text(said), Text("Dropped:"), _faults(repaired.dropped))
