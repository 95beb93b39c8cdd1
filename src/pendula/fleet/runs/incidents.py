"""Incident bundles: journals with the minute before and after an incident.

A bundle begins at a checkpoint, whose state is in its configuration, and holds the inputs and outcomes of the journal
it was cut from, so `pendula replay` and every other command for journals take it as it is.
"""

import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

from msgspec import Struct, structs

from pendula.fleet.events import FleetEvent, Incident
from pendula.kernel.bodies import read_outcome, read_snapshot
from pendula.kernel.canonical import Json, Reader, decode
from pendula.kernel.disk import Disk, RealDisk
from pendula.kernel.disk import replace as replace_file
from pendula.kernel.errors import PendulaError
from pendula.kernel.frames import Record
from pendula.kernel.journal import FileJournal, Journal

BEFORE_MS = AFTER_MS = 60_000
MOST_BUNDLES = 100
# Longest bundle; further incidents start another one.
LONGEST_MS = 600_000
FOLDER = "incidents"
MAP_FILE = "site.map"
DRAFT = "part-of-"
_BUNDLE = re.compile(r"inc-([0-9]{1,18})-([0-9]{1,18})")

_read_events: Reader[tuple[FleetEvent, ...]] = Reader(tuple[FleetEvent, ...])


class Found(Struct, frozen=True):
    """An incident and its time."""

    t: int
    incident: Incident


class Stretch(Struct, frozen=True):
    """The incidents of one bundle: it is named after the first, and ends a minute after the last."""

    name: str
    first_ms: int
    last_ms: int

    def takes_in(self, t: int) -> bool:
        """Whether another incident is near enough to belong to this bundle, which has a longest duration."""
        return t <= self.last_ms + AFTER_MS and t - self.first_ms <= LONGEST_MS

    def with_one(self, t: int) -> "Stretch":
        return structs.replace(self, last_ms=t)

    @property
    def due_ms(self) -> int:
        return self.last_ms + AFTER_MS


def incidents_of(journal: Journal) -> Iterator[Found]:
    """Every incident of a journal, in order."""
    for record in journal.read():
        # The bytes are searched first, because few ticks have one.
        if record.kind == "outcome" and b'"type":"incident"' in bytes(record.body):
            events = _read_events(read_outcome(record.body).events)
            yield from (Found(record.t, one) for one in events if isinstance(one, Incident))


def stretches_of(found: Iterable[Found]) -> list[Stretch]:
    """The incidents of a journal, grouped by bundle."""
    stretches: list[Stretch] = []
    for one in found:
        if stretches and stretches[-1].takes_in(one.t):
            stretches[-1] = stretches[-1].with_one(one.t)
        else:
            stretches.append(Stretch(one.incident.incident_id, one.t, one.t))
    return stretches


def bundle(journal: Journal, stretch: Stretch, disk: Disk, site: bytes | None = None) -> None:
    """Cut a stretch out of a journal, with the minute before and after it; `site` are the bytes of the compiled map."""
    begin = _beginning(journal, stretch.first_ms - BEFORE_MS)
    header = journal.header
    config: Any = header.config
    if begin is not None:
        config = {**config, "state": _state(begin)}
    cut = FileJournal.create(
        disk, scheduler=header.scheduler, decisions=header.decisions, time_unit=header.time_unit, config=config
    )
    if site is not None:
        replace_file(disk, MAP_FILE, site)
    for record in journal.read(journal.first_n if begin is None else begin.n + 1):
        if record.t > stretch.due_ms:
            break
        _copy(record, cut, 0 if begin is None else begin.n + 1)
    cut.close()


def bundles_in(journal: Journal, folder: Path, source: Path | None = None) -> list[Path]:
    """A bundle for every stretch of incidents that has none yet, each in a folder named after its first. `source` is
    the directory of the journal: the compiled map beside it goes along."""
    made = []
    for stretch in stretches_of(incidents_of(journal)):
        if _made(journal, stretch, folder, source):
            made.append(folder / stretch.name)
    return made


def _made(journal: Journal, stretch: Stretch, folder: Path, source: Path | None) -> bool:
    """Write a missing bundle, under a temporary name until it is complete; leftovers of killed processes are replaced.
    False if another process writes it."""
    if (folder / stretch.name).exists():
        return False
    draft = folder / f"{DRAFT}{stretch.name}"
    if not _removed(draft):
        return False
    guard = RealDisk(draft)
    try:
        # Until it has its name: an unclaimed draft is left over from a killed process.
        return guard.claim() and _written(journal, stretch, draft, source)
    finally:
        guard.close()


def _written(journal: Journal, stretch: Stretch, draft: Path, source: Path | None) -> bool:
    """Write a bundle in a locked draft; false if another process has completed it meanwhile."""
    whole = draft.with_name(stretch.name)
    try:
        if not whole.exists():
            bundle(journal, stretch, RealDisk(draft), _map_beside(source))
            draft.rename(whole)
            return True
    except BaseException:
        # On a disk without room it would take what little there is.
        rmtree(draft, ignore_errors=True)
        raise
    rmtree(draft, ignore_errors=True)
    return False


def _removed(draft: Path) -> bool:
    """Remove an incomplete bundle; false if another process is writing it."""
    if not draft.is_dir():
        return True
    guard = RealDisk(draft, make=False)
    try:
        free = guard.claim()
        if free:
            rmtree(draft, ignore_errors=True)
        return free
    finally:
        guard.close()


def remove_leftovers(folder: Path) -> None:
    """Remove incomplete bundles of killed processes."""
    with suppress(OSError):
        for one in sorted(folder.iterdir()):
            if one.name.startswith(DRAFT) and _BUNDLE.fullmatch(one.name.removeprefix(DRAFT)):
                _removed(one)


def _map_beside(source: Path | None) -> bytes | None:
    file = None if source is None else source / MAP_FILE
    return file.read_bytes() if file is not None and file.is_file() else None


class Bundler:
    """Watches a fleet that runs, and makes a bundle of every stretch of incidents once the minute after it is over. The
    work is done beside the ticks; what goes wrong with it is in `trouble`."""

    def __init__(self, journal: Journal, source: Path) -> None:
        self.trouble: str | None = None
        self._journal = journal
        self._source = source
        self._open: Stretch | None = None
        self._threads: list[threading.Thread] = []
        remove_leftovers(source / FOLDER)

    def hear(self, events: Iterable[FleetEvent], now_ms: int) -> None:
        """Note the incidents of a tick."""
        for one in events:
            if isinstance(one, Incident):
                fits = self._open is not None and self._open.takes_in(now_ms)
                if not fits:
                    self._make()
                before = self._open if fits else None
                self._open = (before or Stretch(one.incident_id, now_ms, now_ms)).with_one(now_ms)
        if self._open is not None and now_ms > self._open.due_ms:
            self._make()

    def close(self) -> None:
        """Write the open bundles with the ticks so far, and wait for all."""
        self._make()
        for thread in self._threads:
            thread.join()

    def _make(self) -> None:
        stretch, self._open = self._open, None
        if stretch is not None:
            self._threads = [one for one in self._threads if one.is_alive()]
            self._threads.append(threading.Thread(target=self._cut, args=(stretch,), name="fleet bundle"))
            self._threads[-1].start()

    def _cut(self, stretch: Stretch) -> None:
        folder = self._source / FOLDER
        try:
            if _made(self._journal, stretch, folder, self._source):
                _keep_the_newest(folder)
        except (OSError, PendulaError) as trouble:
            # The journal still has it: `pendula fleet incidents` makes the bundle later.
            self.trouble = str(trouble)


def _keep_the_newest(folder: Path) -> None:
    """Remove old bundles, so that they do not fill the disk."""
    # Other files in the folder are left alone.
    named = [(one, _BUNDLE.fullmatch(one.name)) for one in folder.iterdir()]
    made = [one for _, _, one in sorted((int(name[1]), int(name[2]), one) for one, name in named if name is not None)]
    for old in made[:-MOST_BUNDLES]:
        rmtree(old, ignore_errors=True)


def _beginning(journal: Journal, at_ms: int) -> Record | None:
    """The last checkpoint that is not after a time; None where the journal itself begins later."""
    earlier = [n for n, t in journal.snapshots() if t <= at_ms]
    if earlier:
        return next(journal.read(earlier[-1]))
    if journal.first_n > 0 and journal.snapshots():
        # Pruned: what is left of the minute has to do.
        return next(journal.read(journal.snapshots()[0][0]))
    return None


def _state(record: Record) -> Json:
    return decode(bytes(read_snapshot(record.body).state))


def _copy(record: Record, cut: FileJournal, offset: int) -> None:
    """Copy a record with a new number; an outcome names the number of its input."""
    body = bytes(record.body)
    if record.kind == "outcome":
        of = read_outcome(record.body).of
        if of < offset:
            # The outcome of an input that is part of the state already.
            return
        before, name, after = body.rpartition(b'"of":%d,' % of)
        body = b'%b"of":%d,%b' % (before, of - offset, after) if name else body
    cut.append(record.kind, record.t, body)
