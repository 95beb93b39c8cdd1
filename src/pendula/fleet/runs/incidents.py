"""Incident bundles: journals with the minute before and after an incident.

A bundle begins at a checkpoint, whose state is in its configuration, and holds inputs and outcomes of the original
journal, so `pendula replay` and every other command for journals accept it.
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
from pendula.kernel.canonical import Json, Reader, decode
from pendula.kernel.disk import Disk, RealDisk
from pendula.kernel.disk import replace as replace_file
from pendula.kernel.errors import PendulaError
from pendula.kernel.frames import Record, read_outcome, read_snapshot
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


class TimedIncident(Struct, frozen=True):
    """An incident and its time."""

    t: int
    incident: Incident


class IncidentGroup(Struct, frozen=True):
    """Incidents of one bundle. It is named after the first, and ends a minute after the last."""

    name: str
    first_ms: int
    last_ms: int

    def includes(self, t: int) -> bool:
        """Whether another incident is near enough to belong to this bundle, whose duration is limited."""
        return t <= self.last_ms + AFTER_MS and t - self.first_ms <= LONGEST_MS

    def extended_to(self, t: int) -> "IncidentGroup":
        return structs.replace(self, last_ms=t)

    @property
    def due_ms(self) -> int:
        return self.last_ms + AFTER_MS


def incidents_of(journal: Journal) -> Iterator[TimedIncident]:
    """Every incident of a journal, in order."""
    for record in journal.read():
        # The bytes are searched first, because few ticks have an incident.
        if record.kind == "outcome" and b'"type":"incident"' in bytes(record.body):
            events = _read_events(read_outcome(record.body).events)
            yield from (TimedIncident(record.t, event) for event in events if isinstance(event, Incident))


def group_incidents(incidents: Iterable[TimedIncident]) -> list[IncidentGroup]:
    """The incidents of a journal, grouped by bundle."""
    groups: list[IncidentGroup] = []
    for timed in incidents:
        if groups and groups[-1].includes(timed.t):
            groups[-1] = groups[-1].extended_to(timed.t)
        else:
            groups.append(IncidentGroup(timed.incident.incident_id, timed.t, timed.t))
    return groups


def bundle(journal: Journal, group: IncidentGroup, disk: Disk, site: bytes | None = None) -> None:
    """Copy a group of incidents from a journal, with the minute before and after; `site`: bytes of the compiled map."""
    begin = _beginning(journal, group.first_ms - BEFORE_MS)
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
        if record.t > group.due_ms:
            break
        _copy(record, cut, 0 if begin is None else begin.n + 1)
    cut.close()


def write_bundles(journal: Journal, folder: Path, source: Path | None = None) -> list[Path]:
    """Write the missing bundles, each in a folder named after its first incident, and return the new folders. `source`
    is the directory of the journal; the compiled map beside it is copied into each bundle."""
    made = []
    for group in group_incidents(incidents_of(journal)):
        if _write_bundle(journal, group, folder, source):
            made.append(folder / group.name)
    return made


def _write_bundle(journal: Journal, group: IncidentGroup, folder: Path, source: Path | None) -> bool:
    """Write a missing bundle, under a temporary name until it is complete; leftovers of killed processes are replaced.
    False if another process writes it."""
    if (folder / group.name).exists():
        return False
    draft = folder / f"{DRAFT}{group.name}"
    if not _remove_draft(draft):
        return False
    guard = RealDisk(draft)
    try:
        # Locked until it is renamed: an unlocked draft is left over from a killed process.
        return guard.claim() and _write_draft(journal, group, draft, source)
    finally:
        guard.close()


def _write_draft(journal: Journal, group: IncidentGroup, draft: Path, source: Path | None) -> bool:
    """Write a bundle in a locked draft; false if another process has completed the bundle."""
    whole = draft.with_name(group.name)
    try:
        if not whole.exists():
            bundle(journal, group, RealDisk(draft), _map_beside(source))
            draft.rename(whole)
            return True
    except BaseException:
        # On a full disk an incomplete bundle would take the last space.
        rmtree(draft, ignore_errors=True)
        raise
    rmtree(draft, ignore_errors=True)
    return False


def _remove_draft(draft: Path) -> bool:
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
        for path in sorted(folder.iterdir()):
            if path.name.startswith(DRAFT) and _BUNDLE.fullmatch(path.name.removeprefix(DRAFT)):
                _remove_draft(path)


def _map_beside(source: Path | None) -> bytes | None:
    file = None if source is None else source / MAP_FILE
    return file.read_bytes() if file is not None and file.is_file() else None


class Bundler:
    """Writes bundles of a running fleet, each a minute after its last incident, in threads beside the ticks. `trouble`
    is the last error."""

    def __init__(self, journal: Journal, source: Path) -> None:
        self.trouble: str | None = None
        self._journal = journal
        self._source = source
        self._open: IncidentGroup | None = None
        self._threads: list[threading.Thread] = []
        remove_leftovers(source / FOLDER)

    def note(self, events: Iterable[FleetEvent], now_ms: int) -> None:
        """Note the incidents of a tick."""
        for event in events:
            if isinstance(event, Incident):
                fits = self._open is not None and self._open.includes(now_ms)
                if not fits:
                    self._make()
                before = self._open if fits else None
                self._open = (before or IncidentGroup(event.incident_id, now_ms, now_ms)).extended_to(now_ms)
        if self._open is not None and now_ms > self._open.due_ms:
            self._make()

    def close(self) -> None:
        """Write the open bundles with the ticks so far, and wait for all."""
        self._make()
        for thread in self._threads:
            thread.join()

    def _make(self) -> None:
        group, self._open = self._open, None
        if group is not None:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._threads.append(threading.Thread(target=self._cut, args=(group,), name="fleet bundle"))
            self._threads[-1].start()

    def _cut(self, group: IncidentGroup) -> None:
        folder = self._source / FOLDER
        try:
            if _write_bundle(self._journal, group, folder, self._source):
                _keep_the_newest(folder)
        except (OSError, PendulaError) as trouble:
            # The incident is still in the journal: `pendula fleet incidents` can write the bundle later.
            self.trouble = str(trouble)


def _keep_the_newest(folder: Path) -> None:
    """Remove old bundles, so that they do not fill the disk."""
    # Other files in the folder are left alone.
    named = [(path, _BUNDLE.fullmatch(path.name)) for path in folder.iterdir()]
    bundles = [
        path for *_, path in sorted((int(name[1]), int(name[2]), path) for path, name in named if name is not None)
    ]
    for old in bundles[:-MOST_BUNDLES]:
        rmtree(old, ignore_errors=True)


def _beginning(journal: Journal, at_ms: int) -> Record | None:
    """The last checkpoint at or before a time; None if there is none and the journal is complete."""
    earlier = [n for n, t in journal.snapshots() if t <= at_ms]
    if earlier:
        return next(journal.read(earlier[-1]))
    if journal.first_n > 0 and journal.snapshots():
        # Pruned: the bundle begins with the first checkpoint that is left.
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
            # The outcome of an input that the state already includes.
            return
        before, name, after = body.rpartition(b'"of":%d,' % of)
        body = b'%b"of":%d,%b' % (before, of - offset, after) if name else body
    cut.append(record.kind, record.t, body)
