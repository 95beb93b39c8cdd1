"""Copies a data directory while it is served: a complete prefix of every journal, a consistent copy of every database,
all checked before the copy gets its name.

The copy contains everything acknowledged before it began. Use it with `pendula serve --data COPY`.
"""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from pendula.jobs.store.file.copies import copy_database, mark_copy
from pendula.kernel.disk import RealDisk
from pendula.kernel.errors import InputRefused, WorldBroken
from pendula.kernel.journal import SUFFIX, FileJournal
from pendula.server.errors import DataUnusable

SQLITE_HEAD = b"SQLite format 3\x00"
# Files that only the running server, or an open database, needs.
LEFT_OUT = ("-wal", "-shm", ".turn", ".lock", ".draft", ".removed", ".tmp")
# A journal that rotates faster than this cannot be copied.
TRIES = 20


class BackupRefused(InputRefused):
    """The target exists, is inside the source, or another backup is writing it. Facts: `path`."""

    code = "backup_refused"


class BackupBroken(WorldBroken):
    """The copy failed or is damaged; the target does not exist. Facts: `path`."""

    code = "backup_broken"


class Backup(Struct, frozen=True):
    """The result of a backup."""

    path: str
    journals: int
    records: int
    databases: int
    files: int
    size: int


def back_up(source: Path, target: Path, tell: Callable[[str], None] = lambda _: None) -> Backup:
    """Copy a data directory; raises `DataUnusable`, `BackupRefused`, `BackupBroken`. `tell` receives progress."""
    source, target = source.absolute(), target.absolute()
    _check(source, target)
    draft = target.with_name(target.name + ".partial")
    try:
        with _claimed(draft, target):
            return _made(source, draft, target, tell)
    except (OSError, sqlite3.Error) as error:
        raise BackupBroken(f"The backup {target} could not be made: {error}", path=str(target)) from error


@contextmanager
def _claimed(draft: Path, target: Path) -> Iterator[None]:
    """An empty draft folder, locked: two backups of one target would delete each other's draft."""
    draft.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if not _claim(handle, draft) or target.exists():
            raise BackupRefused(f"Another backup is being made at {target}; name another folder", path=str(target))
        for left in draft.iterdir():  # leftovers of a killed backup
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        yield
    finally:
        os.close(handle)


def _claim(handle: int, draft: Path) -> bool:
    """Lock the folder; False if another backup has it, or has finished and renamed it meanwhile."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(handle), draft.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _made(source: Path, draft: Path, target: Path, tell: Callable[[str], None]) -> Backup:
    try:
        databases = _copy_all(source, draft, tell)
        tell("checking")
        done = _checked(draft, target, databases)
        _sync(draft)
        draft.rename(target)
        _sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return done


def _check(source: Path, target: Path) -> None:
    if not (source / "lock").is_file():
        raise DataUnusable(f"{source} is not a data directory of a server", directory=str(source))
    if target.exists():
        raise BackupRefused(f"{target} already exists; name a new folder", path=str(target))
    if source == target or source in target.parents:
        raise BackupRefused(f"{target} is inside the data directory; name a folder elsewhere", path=str(target))


def _copy_all(source: Path, draft: Path, tell: Callable[[str], None]) -> int:
    """Copy databases before journals, so that journals contain everything that the databases refer to."""
    folders = list(_folders(source))
    databases = 0
    for folder in folders:
        (draft / folder.relative_to(source)).mkdir(mode=0o700, exist_ok=True)
        for file in _plain_files(folder) if folder.exists() else ():
            if _is_database(file):
                tell(str(file.relative_to(source)))
                _copy_database(file, draft / file.relative_to(source))
                databases += 1
    for folder in folders:
        tell(str(folder.relative_to(source)))
        copy = draft / folder.relative_to(source)
        try:
            _copy_folder(folder, copy)
        except FileNotFoundError:
            if folder.exists():
                raise
            # The engine was removed meanwhile.
            shutil.rmtree(copy)
    return databases


def _copy_folder(folder: Path, copy: Path) -> None:
    _copy_journal(folder, copy)
    for file in _plain_files(folder):
        if not file.name.endswith(SUFFIX) and not (copy / file.name).exists():
            _copy_file(file, copy / file.name)


def _folders(source: Path) -> Iterator[Path]:
    for place, names, _ in os.walk(source):
        names[:] = sorted(name for name in names if not name.endswith(LEFT_OUT) and not Path(place, name).is_symlink())
        yield Path(place)


def _plain_files(folder: Path) -> list[Path]:
    found = (one for one in folder.iterdir() if one.is_file() and not one.is_symlink())
    return sorted(one for one in found if not one.name.endswith(LEFT_OUT))


def _is_database(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(SQLITE_HEAD)) == SQLITE_HEAD
    except FileNotFoundError:
        return False


def _copy_database(file: Path, copy: Path) -> None:
    address = f"file:{quote(os.fsencode(file))}?mode=ro"
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(address, uri=True, timeout=30)) as original, closing(sqlite3.connect(copy)) as made:
        copy_database(original, made)
        mark_copy(made)


def _copy_journal(folder: Path, copy: Path) -> None:
    """Copy segment by segment; repeat the last one while new segments are being started."""
    before: list[str] | None = None
    for _ in range(TRIES):
        names = _segments(folder)
        if names == before:
            return
        for gone in set(_segments(copy)) - set(names):
            (copy / gone).unlink()
        last_time = before or []
        for name in names:
            if name not in last_time[:-1]:
                _copy_file(folder / name, copy / name)
        before = names
    raise BackupBroken(f"The journal {folder} grows faster than it can be copied", path=str(folder))


def _segments(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.name.endswith(SUFFIX))


def _copy_file(file: Path, copy: Path) -> None:
    try:
        shutil.copyfile(file, copy)
        copy.chmod(0o600)
    except FileNotFoundError:
        # Removed since it was listed.
        copy.unlink(missing_ok=True)


def _checked(draft: Path, target: Path, databases: int) -> Backup:
    journals = records = files = size = 0
    for folder in _folders(draft):
        if _segments(folder):
            records += _check_journal(folder)
            journals += 1
        for file in _plain_files(folder):
            files += 1
            size += file.stat().st_size
            if _is_database(file):
                _check_database(file)
    return Backup(str(target), journals, records, databases, files, size)


def _check_journal(folder: Path) -> int:
    disk = RealDisk(folder, make=False)
    try:
        journal = FileJournal.open(disk, read_only=True)
    except BaseException:
        disk.close()
        raise
    with closing(journal):
        return journal.next_n - journal.first_n


def _check_database(file: Path) -> None:
    with closing(sqlite3.connect(f"file:{quote(os.fsencode(file))}?mode=ro", uri=True)) as copy:
        [(result,)] = copy.execute("PRAGMA integrity_check(1)").fetchall()
    if result != "ok":
        raise BackupBroken(f"The copy of {file.name} is damaged: {result}", path=str(file))


def _sync(draft: Path) -> None:
    for folder in _folders(draft):
        for file in _plain_files(folder):
            handle = os.open(file, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
