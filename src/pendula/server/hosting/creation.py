"""Engines made and removed while the server runs: each is there whole, or not at all, whatever the crash.

A new engine is written beside its place, with the commands it begins with, and then put there in one step; one that is
removed leaves its place in one step. What a crash leaves over is swept away at the next start.
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

# Names of engines have no dot: nothing with these endings is ever taken for one.
DRAFT, REMOVED = ".draft", ".removed"


class Beginning(Struct, frozen=True):
    """What an engine begins with: its configuration and first commands; who wanted that, and when by the wall clock;
    and files that lie beside its journal."""

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
    """Make the journal of a new engine at `place`; returns what its first commands did.

    Raises what the engine refuses of the configuration, before anything is written, and `WorldBroken`.
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
        raise WorldBroken(f"The engine cannot be written down: {trouble.strerror}") from trouble
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
    """Take an engine that is closed away, with all it ever wrote; raises `WorldBroken`."""
    gone = place.with_name(place.name + REMOVED)
    try:
        _erase(gone)
        if place.is_dir():
            _moved(place, gone)
            _erase(gone)
    except OSError as trouble:
        raise WorldBroken(f"The engine cannot be removed: {trouble.strerror}") from trouble


def set_aside(place: Path, aside: Path) -> None:
    """Move an engine that is closed to where no engine is looked for; raises `WorldBroken`."""
    try:
        aside.parent.mkdir(mode=0o700, exist_ok=True)
        _sync(aside.parent.parent)
        _moved(place, aside)
    except OSError as trouble:
        raise WorldBroken(f"The engine cannot be set aside: {trouble.strerror}") from trouble


def sweep(folder: Path) -> None:
    """Remove what interrupted makings and removals left in the folder of a scheduler."""
    if folder.is_dir():
        for entry in sorted(folder.iterdir()):
            if entry.name.endswith((DRAFT, REMOVED)):
                _erase(entry)


def _erase(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)


def _moved(source: Path, target: Path) -> None:
    """Rename so that it lasts; where that is not known, it is taken back: who is told of a failure has to find it."""
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
