"""Creates and removes engines while the server runs: after a crash an engine exists completely or not at all.

A new engine is written to a draft directory, with its first commands, and then renamed; a removed one is renamed first.
Leftovers of a crash are removed at the next start.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.kernel.disk import Disk, replace
from pendula.kernel.driver import Driver
from pendula.kernel.engine import Engine, Outcome, Outside
from pendula.kernel.errors import WorldBroken
from pendula.kernel.recording import begin_recording

# Engine names contain no dot, so these suffixes never belong to one.
DRAFT, REMOVED = ".draft", ".removed"


class Beginning(Struct, frozen=True):
    """The start of an engine: its configuration and first commands, the caller, the wall-clock time, and files stored
    beside its journal."""

    config: Json
    commands: Sequence[object]
    by: str
    request_id: str | None
    at: str
    files: Mapping[str, bytes] = {}


def make(
    kind: type[Engine[Any, Any]],
    place: Path,
    beginning: Beginning,
    *,
    disk: Callable[[Path], Callable[[], Disk]],
    outside: Outside | None,
    min_free_bytes: int,
) -> list[Outcome[Any]]:
    """Create the journal of a new engine at `place`; returns the outcomes of its first commands.

    Raises the engine's refusal of the configuration, before anything is written, and `WorldBroken`.
    """
    engine = kind.create(beginning.config)
    draft = place.with_name(place.name + DRAFT)
    try:
        _erase(draft)
        driver = begin_recording(
            engine,
            beginning.config,
            disk(draft)(),
            outside=outside,
            min_free_bytes=min_free_bytes,
            clock=lambda: beginning.at,
        )
        outcomes = _begin(driver, beginning)
        _put(beginning.files, disk(draft)())
        _moved(draft, place)
    except OSError as trouble:
        raise WorldBroken(f"The engine cannot be stored: {trouble.strerror}") from trouble
    finally:
        _erase(draft)
    return outcomes


def _put(files: Mapping[str, bytes], folder: Disk) -> None:
    try:
        for name, data in files.items():
            replace(folder, name, data)
    finally:
        folder.close()


def _begin(driver: Driver[Any, Any], beginning: Beginning) -> list[Outcome[Any]]:
    try:
        tickets = [driver.submit(command, beginning.by, beginning.request_id) for command in beginning.commands]
    finally:
        driver.close()
    return [ticket.outcome for ticket in tickets]


def remove(place: Path) -> None:
    """Remove a closed engine with all its files; raises `WorldBroken`."""
    gone = place.with_name(place.name + REMOVED)
    try:
        _erase(gone)
        if place.is_dir():
            _moved(place, gone)
            _erase(gone)
    except OSError as trouble:
        raise WorldBroken(f"The engine cannot be removed: {trouble.strerror}") from trouble


def set_aside(place: Path, aside: Path) -> None:
    """Move a closed engine out of the engine folder; raises `WorldBroken`."""
    try:
        aside.parent.mkdir(mode=0o700, exist_ok=True)
        _sync(aside.parent.parent)
        _moved(place, aside)
    except OSError as trouble:
        raise WorldBroken(f"The engine cannot be set aside: {trouble.strerror}") from trouble


def sweep(folder: Path) -> None:
    """Remove leftovers of interrupted creations and removals from the folder of a scheduler."""
    if folder.is_dir():
        for entry in sorted(folder.iterdir()):
            if entry.name.endswith((DRAFT, REMOVED)):
                _erase(entry)


def _erase(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)


def _moved(source: Path, target: Path) -> None:
    """Rename durably; undo the rename if the sync fails, so that a reported failure leaves the old state."""
    source.rename(target)
    try:
        _sync(target.parent)
        if source.parent != target.parent:
            _sync(source.parent)
    except OSError:
        target.rename(source)
        raise


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
