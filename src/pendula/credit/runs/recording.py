"""A run with a journal, for `pendula replay`; a killed run resumes where it stopped.

with Recording.begin(plan, RealDisk("village-journal")) as recording:
    recording.headless.step(100)
with reading(Path("village-journal")) as journal:
    run_at(journal, 60).network.ledgers["UNIT"].book
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from pendula.credit.commands import Commands, Tick
from pendula.credit.engine import Run
from pendula.credit.events import Event
from pendula.credit.runs.headless import Headless, RunPlan, Watch
from pendula.kernel.canonical import Json, Reader, decode, first_difference
from pendula.kernel.disk import Disk
from pendula.kernel.driver import Driver, ReplayDiffers, Ticket, begin_recording, send
from pendula.kernel.engine import CommandReader, Outcome, Outside, Recorded
from pendula.kernel.errors import InputRefused
from pendula.kernel.frames import Header, Record, read_input, read_outcome
from pendula.kernel.journal import FileJournal, Journal, opened
from pendula.kernel.replay import NotReplayable, check_decisions, engine_from_snapshot, follow
from pendula.kernel.wallclock import steady_ns

# Ticks within this time share a flush: on many disks a flush takes longer than the ticks.
FLUSH_EVERY_NS = 50_000_000

HISTORY_FIRST = "call `replay_history` before further commands"

_read_events: Reader[tuple[Event, ...]] = Reader(tuple[Event, ...])


class OtherRun(InputRefused):
    """The journal holds another run than the one to resume. Facts: `path`, the first difference."""

    code = "other_run"


class NoCreditJournal(InputRefused):
    """The journal belongs to another scheduler. Facts: `scheduler`."""

    code = "no_credit_journal"


class UnknownTick(InputRefused):
    """The journal did not reach this tick. Facts: `tick` and the `last` one."""

    code = "unknown_tick"


class Recording:
    """A run and its journal; `headless` sends its commands through both. Only durable outcomes are reported."""

    def __init__(self, plan: RunPlan, driver: Driver[Commands, Event], by: str) -> None:
        self._driver, self._by = driver, by
        self._past: Outcome[Event] | None = None
        self._history_replayed = driver.journal.next_n == 0
        assert isinstance(driver.engine, Run)
        self.headless = Headless(plan, driver.engine, self._send)

    @classmethod
    def begin(
        cls, plan: RunPlan, disk: Disk, outside: Outside | None = None, *, by: str = "cli", **options: Any
    ) -> Self:
        """A new journal; raises `JournalExists` where there is one. Further options are those of `Driver`."""
        config = plan.json
        return cls(plan, begin_recording(Run.create(config), config, disk, outside=outside, **options), by)

    @classmethod
    def resume(
        cls, plan: RunPlan, disk: Disk, outside: Outside | None = None, *, by: str = "cli", **options: Any
    ) -> Self:
        """Resume the run of a journal; call `replay_history` before the next command.

        Raises `OtherRun` unless the journal was begun with the same plan.
        """
        try:
            journal = FileJournal.open(disk)
            _require_credit(journal.header)
            if (path := first_difference(journal.header.config, plan.json)) is not None:
                raise OtherRun(f"The journal holds another run; the first difference is at {path}", path=path)
            driver: Driver[Commands, Event] = Driver.recover(journal, lambda _: Run, outside=outside, **options)
        except BaseException:
            disk.close()
            raise
        return cls(plan, driver, by)

    def replay_history(self, watch: Watch | None = None) -> None:
        """Pass the stored outcomes to `headless` and `watch`; applies nothing again."""
        for command, outcome in _history(self._driver.journal):
            self._report(command, outcome, watch)
        self._history_replayed = True

    def step(self, ticks: int, watch: Watch | None = None) -> None:
        """Like `Headless.step`, but many ticks share a flush and are reported after it."""
        assert self._history_replayed, HISTORY_FIRST
        run, left = self.headless.run, ticks
        while left > 0 and run.state_word == "running":
            tickets = self._some_ticks(left)
            self._driver.flush()
            left -= len(tickets)
            for ticket in tickets:
                self._report(Tick(), ticket.outcome, watch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._driver.close()

    def _send(self, command: Commands) -> Outcome[Event]:
        if self._past is not None:
            return self._past
        assert self._history_replayed, HISTORY_FIRST
        return send(self._driver, command, self._by)

    def _some_ticks(self, most: int) -> list[Ticket[Event]]:
        began, run = steady_ns(), self.headless.run
        tickets = [self._driver.submit(Tick(), by=self._by)]
        while len(tickets) < most and run.state_word == "running" and steady_ns() - began < FLUSH_EVERY_NS:
            tickets.append(self._driver.submit(Tick(), by=self._by))
        return tickets

    def _report(self, command: Commands, outcome: Outcome[Event], watch: Watch | None) -> None:
        """Pass a durable outcome to `headless` and `watch`."""
        self._past = outcome
        self.headless.do(command)
        self._past = None
        if watch is not None:
            watch(outcome.events)


@contextmanager
def reading(directory: Path) -> Iterator[FileJournal]:
    """Open the journal of a run read-only; raises `JournalMissing` or `NoCreditJournal`."""
    with closing(opened(directory)) as journal:
        _require_credit(journal.header)
        check_decisions(journal.header, Run)
        yield journal


def last_tick(journal: Journal) -> int:
    """The next tick of the run at the end of its journal."""
    last = 0
    for record in journal.read():
        last = record.t
    return last


def run_at(journal: Journal, tick: int) -> Run:
    """The run before this tick, the last time it was there; raises `UnknownTick`."""
    moment = _moment(journal, tick)
    earlier = [n for n, _ in journal.snapshots() if n <= moment.upto]
    engine, start = engine_from_snapshot(journal, Run, earlier[-1] if earlier else None)
    for _, step in islice(follow(engine, journal, start), max(0, moment.upto + 1 - start)):
        if step is not None and step.outcome is None:
            raise ReplayDiffers(f"Record {step.n} cannot be applied again: {step.defect}", n=step.n)
    assert isinstance(engine, Run)
    if moment.through is not None:
        engine.outside = Recorded(read_input(moment.through.body).stored_answers())
        engine.apply(Tick(tick - engine.tick))
    return engine


class _Moment(NamedTuple):
    """All records up to `upto`, and a part of the ticks of the command `through`."""

    upto: int
    through: Record | None = None


def _moment(journal: Journal, tick: int) -> _Moment:
    moment = _Moment(-1) if tick == 0 and journal.first_n == 0 else None
    before, last = (0 if journal.first_n == 0 else tick), 0
    for record in journal.read():
        if record.t == tick:
            moment = _Moment(record.n)
        elif before < tick < record.t:
            moment = _Moment(record.n - 1, record)
        before, last = record.t, max(last, record.t)
    if moment is None:
        raise UnknownTick(
            f"The journal does not reach tick {tick}; its run is before tick {last}", tick=tick, last=last
        )
    return moment


def _history(journal: Journal) -> Iterator[tuple[Commands, Outcome[Event]]]:
    """Every accepted command and its stored events."""
    if journal.first_n > 0:
        raise NotReplayable(f"Records before {journal.first_n} were pruned; the history before them is lost")
    commands: dict[int, Commands] = {}
    read_command: CommandReader[Commands] = CommandReader(Run)
    for record in journal.read():
        if record.kind == "input":
            commands[record.n] = read_command(read_input(record.body).command)
        elif record.kind == "outcome":
            outcome = read_outcome(record.body)
            command = commands.pop(outcome.of)
            if not bytes(outcome.events):
                raise NotReplayable("The journal is of a served run: it stores digests of events, not the events")
            if bytes(outcome.refusal) == b"null":
                yield command, Outcome(_read_events(outcome.events))


def last_life(journal: Journal) -> tuple[dict[str, Json], list[Json]]:
    """The configuration and the commands of a run, to repeat it; for a restarted run, those since the restart.

    Raises `NotReplayable` if the beginning of the journal was pruned.
    """
    if journal.first_n > 0:
        raise NotReplayable(f"Records before {journal.first_n} were pruned; their commands are lost")
    config: Any = dict(journal.header.config) if isinstance(journal.header.config, dict) else {}
    done: list[Any] = []
    for record in journal.read():
        if record.kind != "input":
            continue
        command: Any = decode(bytes(read_input(record.body).command))
        if command["type"] == "restart":
            # A restart keeps settings and intensity only.
            done = [one for one in done if one["type"] in ("set_intensity", "configure")]
            config.pop("checkpoint", None)
        else:
            done.append(command)
    return config, done


def _require_credit(header: Header) -> None:
    if header.scheduler != Run.scheduler:
        raise NoCreditJournal(
            f"This is a journal of the scheduler {header.scheduler!r}, not of a credit run", scheduler=header.scheduler
        )
