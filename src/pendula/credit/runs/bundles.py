"""Reads bundles: everything needed to repeat a run anywhere to the same digests.

bundle = read_bundle(Path("out/bundle.zip"))
repeated(bundle).digests == bundle.digests
"""

from contextlib import suppress
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import msgspec
from msgspec import Struct

from pendula.credit.commands import Commands, Config, Tick
from pendula.credit.engine import Run
from pendula.credit.runs.artifacts import REPEAT, SCENARIO
from pendula.credit.runs.headless import Headless, Result, RunPlan, RunRefused, Watch
from pendula.kernel.canonical import decode, encode
from pendula.kernel.engine import Outside
from pendula.kernel.errors import InputRefused, NotCanonical

# Bounds the size of unpacked archives.
BYTES_MOST = 256 * 1024 * 1024


class InvalidBundle(InputRefused):
    """The file is not the bundle of a repeatable run. Facts: `path`."""

    code = "invalid_bundle"


class BundleDiffers(InputRefused):
    """The repeated run has other digests. Facts: `recorded`, `repeated`."""

    code = "bundle_differs"


class Bundle(Struct, frozen=True):
    """The configuration of a run, its `decisions`, its number of ticks and its digests.

    `commands` are those of a served run, which clients may have controlled; None means ticks only.
    """

    config: Config
    decisions: int
    ticks: int
    digests: dict[str, str]
    commands: tuple[Commands, ...] | None = None


class _Repeat(Struct, frozen=True):
    config: dict[str, object]
    decisions: int
    ticks: int
    digests: dict[str, str]
    commands: tuple[Commands, ...] | None = None


def read_bundle(path: Path) -> Bundle:
    """Raises `InvalidBundle`, and `OSError` where the file cannot be read."""
    try:
        with ZipFile(path) as archive:
            scenario, stored = decode(_file(archive, SCENARIO)), decode(_file(archive, REPEAT))
        repeat = msgspec.convert(stored, _Repeat)
        config = msgspec.convert({**repeat.config, "scenario": scenario}, Config)
    except (BadZipFile, KeyError, NotCanonical, msgspec.ValidationError) as trouble:
        message = f"{path} is not the bundle of a repeatable run: {trouble.args[0]}"
        raise InvalidBundle(message, path=str(path)) from None
    return Bundle(config, repeat.decisions, repeat.ticks, repeat.digests, repeat.commands)


def _file(archive: ZipFile, name: str) -> bytes:
    entry = archive.getinfo(name)
    if entry.file_size > BYTES_MOST:
        raise BadZipFile(f"{name} has {entry.file_size} bytes")
    with archive.open(entry) as file:
        data = file.read(BYTES_MOST + 1)
    if len(data) > BYTES_MOST:
        raise BadZipFile(f"{name} has more than {BYTES_MOST} bytes")
    return data


def headless_of(bundle: Bundle, outside: Outside | None = None) -> Headless:
    """The run of a bundle before its first tick; raises `InvalidBundle` for other `decisions`."""
    if bundle.decisions != Run.decisions:
        raise InvalidBundle(
            f"The bundle was written with decisions {bundle.decisions}, this version has decisions {Run.decisions};"
            " repeat the run with the version that wrote the bundle"
        )
    run = Run.create(decode(encode(bundle.config)))
    headless = Headless(RunPlan(run.config, run.scenario, (), "bundle"), run)
    if outside is not None:
        headless.ask(outside)
    return headless


def repeat_bundle(bundle: Bundle, outside: Outside | None = None, watch: Watch | None = None) -> Result:
    """Repeat the whole run; raises `BundleDiffers` if its digests differ."""
    headless = headless_of(bundle, outside)
    if bundle.commands is None:
        headless.step(bundle.ticks, watch)
    for command in bundle.commands or ():
        # Commands refused in the original run are refused again.
        with suppress(RunRefused):
            outcome = headless.do(command)
            if watch is not None and isinstance(command, Tick):
                watch(outcome.events)
    result = headless.result()
    if result.digests != bundle.digests:
        message = "The repeated run has other digests: it had manual commands or other external answers"
        raise BundleDiffers(message, recorded=bundle.digests, repeated=result.digests)
    return result
