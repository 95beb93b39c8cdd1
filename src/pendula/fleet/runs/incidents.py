"""Incident bundles: a journal of its own with the minute before an incident and the minute after it.

A bundle begins at a checkpoint, whose state is in its configuration, and holds the inputs and outcomes of the journal
it was cut from, so `pendula replay` and every other command for journals take it as it is.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from pendula.fleet.events import FleetEvent, Incident
from pendula.fleet.runs.recording import MAP_FILE
from pendula.kernel.bodies import read_outcome, read_snapshot
from pendula.kernel.canonical import Json, Reader, decode
from pendula.kernel.disk import Disk, RealDisk
from pendula.kernel.disk import replace as replace_file
from pendula.kernel.frames import Record
from pendula.kernel.journal import FileJournal, Journal

BEFORE_MS = AFTER_MS = 60_000
FOLDER = "incidents"

_read_events: Reader[tuple[FleetEvent, ...]] = Reader(tuple[FleetEvent, ...])


class Found(Struct, frozen=True):
    """An incident and when it was."""

    t: int
    incident: Incident


def incidents_of(journal: Journal) -> Iterator[Found]:
    """Every incident of a journal, in order."""
    for record in journal.read():
        # Looked for in the bytes first: hardly any tick has one.
        if record.kind == "outcome" and b'"type":"incident"' in bytes(record.body):
            events = _read_events(read_outcome(record.body).events)
            yield from (Found(record.t, one) for one in events if isinstance(one, Incident))


def bundle(journal: Journal, at_ms: int, disk: Disk, site: bytes | None = None) -> None:
    """Cut the minute before and after a time out of a journal; `site` are the bytes of the compiled map."""
    begin = _beginning(journal, at_ms - BEFORE_MS)
    header = journal.header
    config: Any = header.config
    if begin is not None:
        config = {**config, "state": _state(begin)}
    cut = FileJournal.create(
        disk, room=header.room, decisions=header.decisions, time_unit=header.time_unit, config=config
    )
    if site is not None:
        replace_file(disk, MAP_FILE, site)
    for record in journal.read(journal.first_n if begin is None else begin.n + 1):
        if record.t > at_ms + AFTER_MS:
            break
        _copy(record, cut, 0 if begin is None else begin.n + 1)
    cut.close()


def bundles_in(journal: Journal, folder: Path, source: Path | None = None) -> list[Path]:
    """A bundle for every incident that has none yet, each in a folder named after it. `source` is the directory of the
    journal: the compiled map beside it goes along."""
    beside = None if source is None else source / MAP_FILE
    site = beside.read_bytes() if beside is not None and beside.is_file() else None
    made = []
    for found in incidents_of(journal):
        target = folder / found.incident.incident_id
        if not target.exists():
            bundle(journal, found.t, RealDisk(target), site)
            made.append(target)
    return made


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
    """Under a number of its own; an outcome names the number of its input."""
    body = bytes(record.body)
    if record.kind == "outcome":
        of = read_outcome(record.body).of
        if of < offset:
            # The outcome of an input that is part of the state already.
            return
        before, name, after = body.rpartition(b'"of":%d,' % of)
        body = b'%b"of":%d,%b' % (before, of - offset, after) if name else body
    cut.append(record.kind, record.t, body)
