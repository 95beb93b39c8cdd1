"""A fleet and its journal: a tick is written to the operating system before its commands are sent.

with Recording.begin(engine, config, recording_disk(Path("hall-journal"))) as recording:
    recording.apply(Tick(now_ms, reports))
    send(recording.engine.commands_out)

The compiled map is stored beside the journal, so that resuming or reading it needs no compilation; so are incident
bundles, each written a minute after its incident.
"""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import Raw, structs

from pendula.fleet.commands import Commands, MissingRecords, Tick
from pendula.fleet.compiled_sites import put
from pendula.fleet.engine import FleetEngine, took_place
from pendula.fleet.events import FleetEvent
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.site_file import from_bytes, to_bytes
from pendula.fleet.model import MapDamaged
from pendula.fleet.runs.incidents import MAP_FILE, Bundler
from pendula.fleet.sentences import DISK_NEARLY_FULL
from pendula.fleet.tasks.operators import exceeded_limit
from pendula.fleet.tick.observing import TruckReport
from pendula.kernel.canonical import Json, encode
from pendula.kernel.disk import Disk, RealDisk, replace
from pendula.kernel.driver import Driver, new_journal
from pendula.kernel.engine import Outcome
from pendula.kernel.errors import InputRefused, NotCanonical, WorldBroken, WrongUsage
from pendula.kernel.frames import Header, Kind, Record
from pendula.kernel.journal import FileJournal, JournalBroken, claimed
from pendula.kernel.limits import RECORD_BYTES

# A journal that never stops traffic: records go to the operating system at once, to the disk in the background.
# `flush` writes and returns; a thread syncs to disk. If the disk fails or is nearly full, logging is degraded:
# records not yet on disk stay in memory, the last `ring_ms` of them, and traffic continues. A disk that works again
# gets these records. If some of them were dropped from memory, the journal continues after a gap, with the oldest
# checkpoint in memory; the part before becomes a separate journal.

RING_MS = 600_000
# How much a power cut may lose of the records written to the operating system.
SYNC_EVERY_S = 0.25
# Ticks until a failed disk is tried again; that rewrites the last segment.
TRY_AGAIN_AFTER = 50


class RingJournal:
    """A `pendula.kernel.journal.Journal` over a file journal. Safe for threads."""

    goes_on_when_full = True

    def __init__(self, inner: FileJournal, *, ring_ms: int = RING_MS, background: bool = True) -> None:
        self.header: Header = inner.header
        self.degraded: str | None = None
        self._inner = inner
        self._ring_ms = ring_ms
        self._ring: deque[Record] = deque()
        self._next_n = inner.next_n
        self._handed_n = inner.durable_n
        # The time of the last durable record, and the missing records until a tick has reported them.
        self._durable_t = 0
        self._missing: MissingRecords | None = None
        self._ticks_degraded = 0
        self._rotates = False
        self._lock = threading.Lock()
        # Queues, not events: an interrupt in `Event.set` would leave its lock held.
        self._work: SimpleQueue[None] = SimpleQueue()
        self._end: SimpleQueue[None] = SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(target=self._sync, name="fleet journal", daemon=True) if background else None
        if self._thread is not None:
            self._thread.start()

    @property
    def directory(self) -> Path | None:
        """The directory of the journal; None if it has none."""
        directory = getattr(self._inner.disk, "directory", None)
        return directory if isinstance(directory, Path) else None

    def news(self) -> tuple[str | None, MissingRecords | None]:
        """Why the journal is not written at present, and the missing records, until a tick has reported them."""
        # In this order: missing records are noted before `degraded` is cleared.
        degraded = self.degraded
        return degraded, None if degraded is not None else self._missing

    def mark_reported(self, missing: object) -> None:
        """Note that a tick has reported the missing records."""
        if missing == self._missing:
            self._missing = None

    def append(self, kind: Kind, t: int, body: bytes) -> int:
        with self._lock:
            n = self._next_n
            self._next_n = n + 1
            self._ring.append(Record(n, t, kind, Raw(body)))
            if self.degraded is None:
                try:
                    self._inner.append(kind, t, body)
                except JournalBroken as trouble:
                    self.degraded = _reason(trouble)
            self._forget(t)
            return n

    def flush(self) -> int:
        """Records up to the returned number survive the end of this process, or are in memory while degraded."""
        rotates, self._rotates = self._rotates, False
        if rotates and self.degraded is None:
            # Synced first: a new segment begins only when the old one is on disk.
            self._make_durable()
        with self._lock:
            try:
                self._look_at_the_disk()
                if self.degraded is None:
                    self._inner.write()
            except JournalBroken as trouble:
                self.degraded = _reason(trouble)
            self._handed_n = self._next_n - 1
            self._ticks_degraded = 0 if self.degraded is None else self._ticks_degraded + 1
        if self._thread is None:
            self._make_durable()
        elif self._work.empty():
            self._work.put(None)
        return self._handed_n

    def wait(self) -> None:
        """Sync now; a failing disk degrades logging."""
        self._make_durable()

    def read(self, start: int = 0) -> Iterator[Record]:
        """From the disk, then from memory; records that became durable in between are read from the disk."""
        at = start
        while True:
            for record in self._inner.read(at):
                at = record.n + 1
                yield record
            with self._lock:
                rest = [record for record in self._ring if at <= record.n <= self._handed_n]
            if rest and rest[0].n > at and self._inner.durable_n >= at:
                continue
            yield from rest
            return

    def snapshots(self) -> Sequence[tuple[int, int]]:
        """Snapshots on the disk, then those in memory."""
        durable = self._inner.snapshots()
        last = durable[-1][0] if durable else -1
        with self._lock:
            held = [record for record in self._ring if record.kind == "snapshot" and last < record.n <= self._handed_n]
        return (*durable, *((record.n, record.t) for record in held))

    def rotate(self) -> None:
        """Let the next flush begin a new segment; that flush waits for the disk."""
        self._rotates = True
        self._inner.rotate()

    def prune(self, keep_bytes: int) -> int:
        try:
            return 0 if self.degraded is not None else self._inner.prune(keep_bytes)
        except JournalBroken as trouble:
            self.degraded = _reason(trouble)
            return 0

    def close(self) -> None:
        """Write the last records as far as the disk accepts them; `degraded` says why it does not."""
        self._ended = True
        self._end.put(None)
        self._work.put(None)
        if self._thread is not None:
            self._thread.join()
        if self.degraded not in (None, DISK_NEARLY_FULL) or not self._caught_up_from(self._inner.next_n):
            self._mend()
        try:
            # The space kept free on a disk is reserved for closing.
            if self.degraded == DISK_NEARLY_FULL:
                self._catch_up()
            self._inner.close()
        except JournalBroken as trouble:
            self.degraded = _reason(trouble)

    @property
    def first_n(self) -> int:
        return self._inner.first_n

    @property
    def next_n(self) -> int:
        return self._next_n

    @property
    def durable_n(self) -> int:
        """The last record written to the operating system, which is the promise for a fleet (FLT-OBS-3)."""
        return self._handed_n

    @property
    def written_n(self) -> int:
        """Number of the last synced record."""
        return self._inner.durable_n

    @property
    def total_bytes(self) -> int:
        return self._inner.total_bytes

    @property
    def disk_low(self) -> bool:
        """Never: a full disk degrades logging and does not stop traffic."""
        return False

    def _look_at_the_disk(self) -> None:
        """Write nothing to a full disk until it has space again."""
        low = self._inner.disk_low
        if low and self.degraded is None:
            self.degraded = DISK_NEARLY_FULL
        elif self.degraded == DISK_NEARLY_FULL and not low:
            self._catch_up()

    def _catch_up(self) -> None:
        """Write the records in memory to disk, if none was dropped."""
        if not self._caught_up_from(self._inner.next_n):
            return
        self.degraded = None
        missing = [record for record in self._ring if record.n >= self._inner.next_n]
        for record in missing:
            self._inner.append(record.kind, record.t, bytes(record.body))

    def _caught_up_from(self, n: int) -> bool:
        """Whether memory has all records from a number on."""
        return n >= self._next_n or (bool(self._ring) and self._ring[0].n <= n)

    def _checkpoint(self) -> Record | None:
        """The oldest checkpoint in memory that is not about to be dropped."""
        since = self._ring[-1].t - self._ring_ms * 9 // 10 if self._ring else 0
        return next((record for record in self._ring if record.kind == "snapshot" and record.t >= since), None)

    def _forget(self, now: int) -> None:
        """Drop records from memory that are durable, or older than the ring."""
        durable = self._inner.durable_n
        while self._ring and (self._ring[0].n <= durable or self._ring[0].t < now - self._ring_ms):
            gone = self._ring.popleft()
            self._durable_t = gone.t if gone.n <= durable else self._durable_t

    def _sync(self) -> None:
        while not self._ended:
            self._work.get()
            self._make_durable()
            # Ticks share a sync: one for each tick would take more CPU than all other bookkeeping.
            with suppress(Empty):
                self._end.get(timeout=SYNC_EVERY_S)

    def _make_durable(self) -> None:
        if self.degraded is not None:
            if self._ticks_degraded >= TRY_AGAIN_AFTER and not (
                self.degraded == DISK_NEARLY_FULL and self._inner.disk_low
            ):
                self._ticks_degraded = 0
                self._mend()
            return
        try:
            self._inner.flush()
        except JournalBroken as trouble:
            self.degraded = _reason(trouble)

    def _mend(self) -> None:
        """Resume writing to a failed disk if it works again, without blocking traffic."""
        with self._lock:
            if not self._caught_up_from(self._inner.durable_n + 1) and self._checkpoint() is None:
                return
        try:
            self._inner.repair()
            with self._lock:
                begin = None if self._caught_up_from(self._inner.next_n) else self._checkpoint()
            if begin is not None:
                self._missing = MissingRecords(self._inner.next_n, begin.n - 1, self._durable_t, begin.t)
                self._inner.begin_after(begin, self._durable_t)
            with self._lock:
                if self._inner.disk_low:
                    self.degraded = DISK_NEARLY_FULL
                else:
                    self._catch_up()
        except WorldBroken as trouble:
            self.degraded = _reason(trouble)


def _reason(trouble: WorldBroken) -> str:
    """The problem of the disk, without a remedy: it is retried automatically."""
    return str(trouble.details.get("reason", trouble.message))


CHECKPOINT_TICKS = 600
# Largest input of a tick: a fraction of a record, because its outcome must fit into one as well.
MOST_TICK_BYTES = RECORD_BYTES.default // 4
_REPORTS = frozenset({TruckReport})
_encode = msgspec.json.Encoder(order="sorted").encode
_read = msgspec.json.Decoder(Tick).decode


class NoFleetJournal(InputRefused):
    """The journal belongs to another scheduler. Facts: `scheduler`."""

    code = "no_fleet_journal"


def recording_disk(directory: Path) -> RealDisk:
    """The directory of a journal, locked for this process; raises `JournalInUse`."""
    return claimed(directory, "another manager writes this journal, and two would grant the same space twice")


class Recording:
    """An engine and its journal. `apply` returns when the tick is written to the operating system; it is synced to disk
    in the background. If the disk fails, `degraded` says why, and traffic continues."""

    def __init__(
        self, driver: Driver[Commands, FleetEvent], journal: RingJournal, by: str, *, resumed: bool = False
    ) -> None:
        self.driver = driver
        self._journal = journal
        self._by = by
        self._resumed = resumed
        directory = journal.directory
        self._bundler = None if directory is None else Bundler(journal, directory)

    @classmethod
    def begin(
        cls,
        engine: FleetEngine,
        config: Json,
        disk: Disk,
        *,
        by: str = "fleet",
        ring_ms: int = RING_MS,
        background: bool = True,
        **options: Any,
    ) -> Self:
        """Start a journal; raises `JournalExists`. Further options are those of `Driver`."""
        try:
            inner = new_journal(FleetEngine, config, disk)
            keep_map(disk, engine.site)
        except BaseException:
            disk.close()
            raise
        journal = RingJournal(inner, ring_ms=ring_ms, background=background)
        return cls(Driver(engine, journal, **_defaults(options)), journal, by)

    @classmethod
    def resume(
        cls, disk: Disk, *, by: str = "fleet", ring_ms: int = RING_MS, background: bool = True, **options: Any
    ) -> Self:
        """Resume a journal after its last record. No truck gets a grant before every truck has reported or is marked
        absent."""
        try:
            inner = FileJournal.open(disk)
            require_fleet(inner.header)
            find_map(disk)
        except BaseException:
            disk.close()
            raise
        journal = RingJournal(inner, ring_ms=ring_ms, background=background)
        return cls(Driver.recover(journal, lambda _: FleetEngine, **_defaults(options)), journal, by, resumed=True)

    @property
    def engine(self) -> FleetEngine:
        assert isinstance(self.driver.engine, FleetEngine)
        return self.driver.engine

    @property
    def degraded(self) -> str | None:
        """Why the journal is not written (LOGGING_DEGRADED); None while it is."""
        return self._journal.degraded

    def write_tick(self, tick: Tick) -> Outcome[FleetEvent]:
        """Apply a tick, as the log of a manager."""
        return self.apply(tick)

    def apply(self, command: Commands) -> Outcome[FleetEvent]:
        """Apply a command after writing it to the operating system. Raises `WrongUsage` for one that cannot be encoded:
        the engine gets exactly what the journal restores."""
        written, encoded = _as_written(command)
        tick = self._with_news(written)
        ticket = self.driver.submit(tick, by=self._by, encoded=encoded if tick is written else None)
        self.driver.flush()
        if ticket.outcome.refusal is None:
            self._journal.mark_reported(tick.missing)
        if self._bundler is not None:
            self._bundler.note(ticket.outcome.events, self.engine.now())
        self._resumed = self._resumed and not took_place(ticket.outcome)
        return ticket.outcome

    def close(self) -> None:
        if self._bundler is not None:
            self._bundler.close()
        self.driver.close()

    def _with_news(self, tick: Tick) -> Tick:
        """Add the state of the journal to a tick: resumed, so that positions are unknown in the first tick; degraded,
        or written again."""
        if self._resumed:
            # Repeated until a tick takes place: a rejected or failed tick reports nothing.
            tick = structs.replace(tick, restarted=True)
        return self.engine.with_news(tick, *self._journal.news())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _as_written(command: Commands) -> tuple[Tick, bytes]:
    """A tick as a journal restores it, and its canonical bytes."""
    try:
        if _is_of_reports(command):
            # The common case: encoded once, for the engine and the journal.
            with suppress(msgspec.ValidationError, TypeError, ValueError, OverflowError):
                encoded = _encode(command)
                if len(encoded) <= MOST_TICK_BYTES:
                    return _read(encoded), encoded
        tick = msgspec.convert(msgspec.to_builtins(command), Tick)
        trouble = next((limit for limit in map(exceeded_limit, tick.operator_actions) if limit is not None), None)
        encoded = b"" if trouble is not None else encode(tick)
        if len(encoded) > MOST_TICK_BYTES:
            trouble = f"it has {len(encoded)} bytes; at most {MOST_TICK_BYTES}"
        if trouble is None:
            return tick, encoded
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError, NotCanonical) as error:
        trouble = error.message if isinstance(error, NotCanonical) else str(error)
    raise WrongUsage(f"The tick cannot be encoded: {trouble}")


def _is_of_reports(command: Commands) -> bool:
    """Whether a tick has only reports: then decoding guarantees whole numbers and the members of its type."""
    if type(command) is not Tick or command.task_events or command.operator_actions or command.routes:
        return False
    return type(command.reports) is tuple and _REPORTS.issuperset(map(type, command.reports))


def _defaults(options: dict[str, Any]) -> dict[str, Any]:
    return {"snapshot_every": CHECKPOINT_TICKS, **options}


def keep_map(disk: Disk, site: CompiledMap) -> None:
    """Store the compiled map beside a journal."""
    replace(disk, MAP_FILE, to_bytes(site))


def find_map(disk: Disk) -> None:
    """Register the map beside a journal, if there is one; raises `MapDamaged`."""
    if MAP_FILE in disk.list():
        try:
            put(from_bytes(disk.read(MAP_FILE)))
        except OSError as trouble:
            name = f"{getattr(disk, 'directory', '.')}/{MAP_FILE}"
            raise MapDamaged(f"{name}: it cannot be read: {trouble.strerror}", path=name) from trouble
        except MapDamaged as damaged:
            name = f"{getattr(disk, 'directory', '.')}/{MAP_FILE}"
            raise MapDamaged(f"{name}: {damaged.message}; remove it to compile the map again", path=name) from damaged


def find_map_in(directory: Path) -> None:
    """As `find_map`, by directory."""
    disk = RealDisk(directory, make=False)
    try:
        find_map(disk)
    finally:
        disk.close()


def require_fleet(header: Header) -> None:
    if header.scheduler != FleetEngine.scheduler:
        raise NoFleetJournal(
            f"This is a journal of the scheduler {header.scheduler!r}, not of a fleet", scheduler=header.scheduler
        )
