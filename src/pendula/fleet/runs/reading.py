"""Read the journal of a fleet: the fleet after any tick, and its ticks replayed and compared.

with reading(Path("hall-journal")) as journal:
    fleet_at(journal, 600).why({"robot": "R2"})
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from pendula.fleet.commands import Commands, Tick
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import FleetEvent, Ticked
from pendula.fleet.runs.recording import find_map, require_fleet
from pendula.kernel.bodies import CommandReader, outcome_bytes, read_input, read_outcome
from pendula.kernel.canonical import Reader
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import ReplayDiffers
from pendula.kernel.errors import InputRefused
from pendula.kernel.journal import FileJournal, Journal, JournalMissing
from pendula.kernel.replay import check_decisions, engine_from_snapshot, first_engine
from pendula.kernel.segments import missing_of

_read_events: Reader[tuple[FleetEvent, ...]] = Reader(tuple[FleetEvent, ...])


class UnknownTick(InputRefused):
    """The journal has no such tick. Facts: `tick`, the `last` one, and the `first` where that is known."""

    code = "unknown_tick"


class Moment(Struct, frozen=True):
    """One tick of a journal: its input, its recorded events, and its replayed events."""

    n: int
    command: Tick
    recorded: tuple[FleetEvent, ...] | None
    computed: tuple[FleetEvent, ...]

    @property
    def ticked(self) -> Ticked:
        first = self.computed[0]
        assert isinstance(first, Ticked)
        return first


@contextmanager
def reading(directory: Path) -> Iterator[FileJournal]:
    """The journal of a fleet; raises `JournalMissing`, or `NoFleetJournal` for that of another scheduler."""
    if not directory.is_dir():
        what = "is a file, not the directory of a journal" if directory.exists() else "does not exist"
        raise JournalMissing(f"No journal found: {directory} {what}", path=str(directory))
    disk = RealDisk(directory, make=False)
    try:
        journal = FileJournal.open(disk, read_only=True)
        require_fleet(journal.header)
        check_decisions(journal.header, FleetEngine)
        find_map(disk)
        yield journal
    finally:
        disk.close()


def moments(journal: Journal, tick: int | None = None) -> Iterator[tuple[FleetEngine, Moment]]:
    """The ticks of a journal from `tick` on, or all, each with the fleet after it; raises `UnknownTick`."""
    begin = _Index.of(journal)
    if tick is not None:
        begin.require(tick, missing_of(journal.header))
    engine, start = begin.engine_before(journal, tick)
    for moment in _followed(engine, journal, start):
        if tick is None or moment.ticked.tick >= tick:
            yield engine, moment


def fleet_at(journal: Journal, tick: int) -> FleetEngine:
    """The fleet after this tick."""
    engine, _ = next(moments(journal, tick))
    return engine


def record_of_tick(journal: Journal, tick: int, last: int) -> int:
    """The number of the record of a tick; `last` is the newest tick. The search starts at the expected record, at two
    records per tick, and narrows from there. Raises `UnknownTick`."""
    low, high = journal.first_n, journal.next_n - 1
    at = high - 2 * (last - tick)
    while low <= high:
        at = min(max(at, low), high)
        n, nearest = _next_tick(journal, at)
        if nearest == tick:
            return n
        if nearest is None or nearest > tick:
            high, at = at - 1, at - (2 * (nearest - tick) if nearest is not None else 1)
        else:
            low, at = n + 1, n + 2 * (tick - nearest)
    raise UnknownTick(f"The journal has no tick {tick}; the newest is {last}", tick=tick, last=last)


def _next_tick(journal: Journal, start: int) -> tuple[int, int | None]:
    """The first record from `start` on with a tick, and the tick; None if there is none."""
    for record in journal.read(start):
        tick = _tick_in(bytes(record.body)) if record.kind == "outcome" else None
        if tick is not None:
            return record.n, tick
    return start, None


def last_tick(journal: Journal) -> int:
    return _Index.of(journal).last


def _followed(engine: FleetEngine, journal: Journal, start: int) -> Iterator[Moment]:
    read_command: CommandReader[Commands] = CommandReader(FleetEngine)
    waiting: Moment | None = None
    for record in journal.read(start):
        if record.kind == "input":
            if waiting is not None:
                yield waiting
            waiting = _again(engine, record.n, read_command(read_input(record.body).command))
        elif record.kind == "outcome" and waiting is not None:
            body = read_outcome(record.body)
            recorded = _read_events(body.events) if bytes(body.events) else None
            yield Moment(waiting.n, waiting.command, recorded, waiting.computed)
            waiting = None
    if waiting is not None:
        yield waiting


def _again(engine: FleetEngine, n: int, command: Commands) -> Moment | None:
    """Replay one tick; None for a rejected command, or one that is not a tick."""
    try:
        outcome = engine.apply(command)
    except Exception as defect:
        raise ReplayDiffers(f"Record {n} cannot be applied again: {defect!r}", n=n) from defect
    if outcome.refusal is not None or not isinstance(command, Tick):
        return None
    # Decoded like recorded events, so that both can be compared.
    computed = _read_events(b"[" + b",".join(outcome_bytes(outcome).events) + b"]")
    return Moment(n, command, None, computed)


class _Index(Struct, frozen=True):
    """The first and the last tick of a journal, and the last tick before each of its checkpoints."""

    first: int
    last: int
    checkpoints: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, journal: Journal) -> "_Index":
        checkpoints: list[tuple[int, int]] = []
        first, last = None, 0
        usable = journal.first_n == 0
        for record in journal.read():
            if record.kind == "outcome":
                tick = _tick_in(bytes(record.body))
                last = last if tick is None else tick
                first = last if first is None and usable and tick is not None else first
            elif record.kind == "snapshot":
                usable = True
                checkpoints.append((last, record.n))
        return cls(last + 1 if first is None else first, last, tuple(checkpoints))

    def require(self, tick: int, missing: str | None) -> None:
        if not self.first <= tick <= self.last:
            lost = "" if missing is None else f". It is missing {missing}"
            raise UnknownTick(
                f"The journal has no tick {tick}; it shows ticks {self.first} to {self.last}{lost}",
                tick=tick,
                first=self.first,
                last=self.last,
            )

    def engine_before(self, journal: Journal, tick: int | None) -> tuple[FleetEngine, int]:
        """The nearest stored fleet before a tick, and the record from which to replay."""
        earlier = [n for last, n in self.checkpoints if tick is not None and last < tick]
        engine, start = (
            engine_from_snapshot(journal, FleetEngine, earlier[-1]) if earlier else first_engine(journal, FleetEngine)
        )
        assert isinstance(engine, FleetEngine)
        return engine, start


_TICKED = b'"tick":'


def _tick_in(body: bytes) -> int | None:
    """The tick of an outcome, read from the bytes because a journal has many records."""
    at = body.find(b'"type":"ticked"')
    if at < 0:
        return None
    begin = body.rfind(_TICKED, 0, at) + len(_TICKED)
    return int(body[begin : body.index(b",", begin)])
