"""Create the journal of an engine and the driver of both.

The journal's header comes from the engine class, so that `pendula replay` can find that class again. The driver owns
the disk from then on: it is closed with the driver, or at once if the driver cannot be created.
"""

from os import PathLike
from typing import Any, TypeVar

from pendula.kernel.canonical import Json
from pendula.kernel.disk import Disk, RealDisk
from pendula.kernel.driver import Driver
from pendula.kernel.engine import Engine, Outcome, Outside
from pendula.kernel.errors import WorldBroken
from pendula.kernel.journal import FileJournal, JournalBroken
from pendula.kernel.limits import MIN_FREE_BYTES, SEGMENT_BYTES

C = TypeVar("C")
E = TypeVar("E")
OTHERS = "this program or another one has it open"


class JournalInUse(WorldBroken):
    """Another writer has this journal open; two writers would corrupt it. Facts: `path`."""

    code = "journal_in_use"


def claimed(directory: str | PathLike[str], others: str = OTHERS) -> RealDisk:
    """The directory of a journal, locked for one writer until it is closed.

    Raises `JournalInUse`, with `others` as the explanation, and `JournalBroken` for a path that cannot be a directory.
    """
    try:
        disk = RealDisk(directory)
    except OSError as trouble:
        path = str(directory)
        raise JournalBroken(f"The journal {path} cannot be used: {trouble.strerror}", path=path) from trouble
    if not disk.claim():
        disk.close()
        raise JournalInUse(f"{directory} is in use: {others}", path=str(directory))
    return disk


def new_journal(
    kind: type[Engine[Any, Any]],
    config: Json,
    disk: Disk,
    *,
    segment_bytes: int = SEGMENT_BYTES.default,
    min_free_bytes: int = MIN_FREE_BYTES.default,
) -> FileJournal:
    """An empty journal for an engine class and configuration; raises `JournalExists`, `JournalBroken`."""
    return FileJournal.create(
        disk,
        scheduler=kind.scheduler,
        decisions=kind.decisions,
        time_unit=kind.time_unit,
        config=config,
        segment_bytes=segment_bytes,
        min_free_bytes=min_free_bytes,
    )


def begin_recording(
    engine: Engine[C, E],
    config: Json,
    disk: Disk,
    *,
    outside: Outside | None = None,
    min_free_bytes: int = MIN_FREE_BYTES.default,
    **options: Any,
) -> Driver[C, E]:
    """The driver of a fresh engine created with `config`, with a new journal.

    Other options are those of `Driver`. Raises `JournalExists` and `JournalBroken`, with the disk closed.
    """
    try:
        journal = new_journal(type(engine), config, disk, min_free_bytes=min_free_bytes)
        return Driver(engine, journal, outside=outside, **options)
    except BaseException:
        disk.close()
        raise


def send(driver: Driver[C, E], command: C, by: str) -> Outcome[E]:
    """Apply one command, wait until it is durable, and return its outcome."""
    ticket = driver.submit(command, by=by)
    driver.flush()
    return ticket.outcome
