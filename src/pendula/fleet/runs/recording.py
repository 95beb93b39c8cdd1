"""A fleet and its journal: a tick is written to the operating system before its commands are sent.

with Recording.begin(engine, config, recording_disk(Path("hall-journal"))) as recording:
    recording.apply(Tick(now_ms, reports))
    send(recording.engine.commands_out)

The compiled map is stored beside the journal, so that resuming or reading it needs no compilation; so are incident
bundles, each written a minute after its incident.
"""

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import structs

from pendula.fleet.commands import Commands, Tick
from pendula.fleet.compiled_sites import put
from pendula.fleet.engine import FleetEngine, took_place
from pendula.fleet.events import FleetEvent
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.site_file import from_bytes, to_bytes
from pendula.fleet.model import MapDamaged
from pendula.fleet.runs.incidents import MAP_FILE, Bundler
from pendula.fleet.runs.ring_journal import RING_MS, RingJournal
from pendula.fleet.tasks.operators import exceeded_limit
from pendula.fleet.tick.observing import TruckReport
from pendula.kernel.canonical import Json, encode
from pendula.kernel.disk import Disk, RealDisk, replace
from pendula.kernel.driver import Driver, new_journal
from pendula.kernel.engine import Outcome
from pendula.kernel.errors import InputRefused, NotCanonical, WrongUsage
from pendula.kernel.frames import Header
from pendula.kernel.journal import FileJournal, claimed
from pendula.kernel.limits import RECORD_BYTES

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
