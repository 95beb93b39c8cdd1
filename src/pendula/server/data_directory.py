"""The data directory: private, locked by the server that uses it.

DATA/lock                       held while a server runs
DATA/tokens.json                access tokens, as digests
DATA/sessions.json              sessions of browsers, as digests
DATA/schedulers/SCHEDULER/ENGINE/         the journal of one engine
DATA/schedulers/SCHEDULER/ENGINE/closed   exists while an engine is closed; the server does not open it
DATA/stores/SCHEDULER/                    shared state of a scheduler
DATA/aside/SCHEDULER-ENGINE-N/            journals of demo engines with other decisions, no longer opened

After a crash an engine exists completely or not at all: a new engine is written to a draft directory, with its first
commands, and then renamed; a removed one is renamed first. Leftovers of a crash are removed at the next start.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.kernel.disk import Disk, RealDisk, replace
from pendula.kernel.driver import Driver, Ticket, begin_recording
from pendula.kernel.engine import Engine, Outside
from pendula.kernel.errors import WorldBroken
from pendula.server.errors import DataLocked, DataUnusable

# No leading hyphen: a command line would read it as an option.
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
NAMES_ALLOWED = "1 to 64 lower-case letters, digits and hyphens"
SHUT = "closed"
EVERYBODY_MAY_WRITE = 0o002


class DataDirectory:
    """A locked data directory; closing it, or the end of the process, unlocks it."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle: int | None = handle

    @classmethod
    def lock(cls, path: str | os.PathLike[str]) -> "DataDirectory":
        """Create the directory if missing and lock it; raises `DataLocked` or `DataUnusable`."""
        directory = Path(path).absolute()
        try:
            RealDisk(directory).close()
            _check_private(directory)
            handle = os.open(directory / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataUnusable(
                f"The data directory {directory} cannot be used: {error.strerror}", directory=str(directory)
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise DataLocked(
                f"Another server uses the data directory {directory}; stop it, or choose another with --data",
                directory=str(directory),
            ) from None
        return cls(directory, handle)

    def journal(self, scheduler: str, engine: str) -> Path:
        """The directory of an engine's journal."""
        assert NAME.fullmatch(scheduler), scheduler
        assert NAME.fullmatch(engine), engine
        return self.path / "schedulers" / scheduler / engine

    def store(self, scheduler: str) -> Path:
        """The directory of a scheduler's shared state."""
        assert NAME.fullmatch(scheduler), scheduler
        return self.path / "stores" / scheduler

    def aside(self, scheduler: str, engine: str, decisions: int) -> Path:
        """An unused directory for a journal that this version does not continue."""
        wanted = self.path / "aside" / f"{scheduler}-{engine}-{decisions}"
        more = (wanted.with_name(f"{wanted.name}-{number}") for number in count(2))
        return next(place for place in chain([wanted], more) if not place.exists())

    def engines(self, scheduler: str) -> list[str]:
        """The engines of a scheduler that have a journal here, sorted."""
        assert NAME.fullmatch(scheduler), scheduler
        folder = self.path / "schedulers" / scheduler
        if not folder.is_dir():
            return []
        return sorted(entry.name for entry in folder.iterdir() if _is_engine(entry))

    def is_shut(self, scheduler: str, engine: str) -> bool:
        """Whether an engine is closed."""
        return (self.journal(scheduler, engine) / SHUT).exists()

    def set_shut(self, scheduler: str, engine: str, shut: bool) -> None:
        """Store whether an engine is closed; raises `WorldBroken`."""
        place = self.journal(scheduler, engine)
        if shut == self.is_shut(scheduler, engine) or not place.is_dir():
            return
        try:
            disk = RealDisk(place, make=False)
            try:
                if shut:
                    replace(disk, SHUT, b"")
                else:
                    disk.remove(SHUT)
                    disk.sync_dir()
            finally:
                disk.close()
        except OSError as error:
            what = "closed" if shut else "open"
            raise WorldBroken(f"{engine} cannot be marked {what}: {error.strerror}") from error

    def strangers(self, scheduler: str) -> list[str]:
        """Entries in the engine folder that are not engines, sorted: links, and folders with other names."""
        folder = self.path / "schedulers" / scheduler
        if not folder.is_dir():
            return []
        return sorted(one.name for one in folder.iterdir() if one.is_dir() and not _is_engine(one) and _is_seen(one))

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_private(directory: Path) -> None:
    """Refuse a world-writable directory, in which others could replace tokens and journals."""
    if directory.stat().st_mode & EVERYBODY_MAY_WRITE:
        raise DataUnusable(
            f"All users of this machine can write to the data directory {directory}; fix this with: "
            f"chmod o-w {directory}",
            directory=str(directory),
        )


def _is_engine(entry: Path) -> bool:
    # A link could lead out of the data directory, or give one journal two names.
    return NAME.fullmatch(entry.name) is not None and entry.is_dir() and not entry.is_symlink()


def _is_seen(entry: Path) -> bool:
    return not entry.name.startswith(".")


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


def make_engine(
    kind: type[Engine[Any, Any]],
    place: Path,
    beginning: Beginning,
    *,
    disk: Callable[[Path], Callable[[], Disk]],
    outside: Outside | None,
    min_free_bytes: int,
) -> list[Ticket[Any]]:
    """Create the journal of a new engine at `place`; returns the tickets of its first commands.

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
        tickets = _begin(driver, beginning)
        _put(beginning.files, disk(draft)())
        _moved(draft, place)
    except OSError as trouble:
        raise WorldBroken(f"The engine cannot be stored: {trouble.strerror}") from trouble
    finally:
        _erase(draft)
    return tickets


def _put(files: Mapping[str, bytes], folder: Disk) -> None:
    try:
        for name, data in files.items():
            replace(folder, name, data)
    finally:
        folder.close()


def _begin(driver: Driver[Any, Any], beginning: Beginning) -> list[Ticket[Any]]:
    try:
        return [driver.submit(command, beginning.by, beginning.request_id) for command in beginning.commands]
    finally:
        driver.close()


def remove_engine(place: Path) -> None:
    """Remove a closed engine with all its files; raises `WorldBroken`."""
    gone = place.with_name(place.name + REMOVED)
    try:
        _erase(gone)
        if place.is_dir():
            _moved(place, gone)
            _erase(gone)
    except OSError as trouble:
        raise WorldBroken(f"The engine cannot be removed: {trouble.strerror}") from trouble


def set_engine_aside(place: Path, aside: Path) -> None:
    """Move a closed engine out of the engine folder; raises `WorldBroken`."""
    try:
        aside.parent.mkdir(mode=0o700, exist_ok=True)
        _sync(aside.parent.parent)
        _moved(place, aside)
    except OSError as trouble:
        raise WorldBroken(f"The engine cannot be set aside: {trouble.strerror}") from trouble


def sweep_engines(folder: Path) -> None:
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
