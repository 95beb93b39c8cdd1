"""Scenarios and runs of the simulator: owners, limits of active runs, the demo, and retention.

Only its owner and admins can see a run; for all others it does not exist. The engine of an ended run is closed, its
record stays.
"""

import asyncio
import secrets
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from pendula.credit.commands import Config
from pendula.credit.engine import Run
from pendula.credit.events import Event
from pendula.credit.outside.answers import Answers, SolverWhenAsked
from pendula.credit.outside.payment_service import PaymentService
from pendula.credit.runs.artifacts import moment
from pendula.credit.runs.recording import reading
from pendula.credit.settings import Settings as RunSettings
from pendula.credit.settings import change_settings
from pendula.demo import credit as demo
from pendula.documents import from_value
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import DiskLow
from pendula.kernel.engine import Outside
from pendula.kernel.errors import PendulaError, WorldBroken
from pendula.kernel.limits import JOURNAL_BYTES, MIN_FREE_BYTES
from pendula.kernel.stream import Log
from pendula.kernel.time import parse_utc
from pendula.kernel.wording import suggestion
from pendula.server.errors import EngineUnavailable
from pendula.server.runtime.engine_host import Beat, EngineHost
from pendula.server.runtime.past import Lane
from pendula.server.runtime.scheduler_spec import Host
from pendula.server.schedulers.credit import recovery, scenarios
from pendula.server.schedulers.credit.counters import RunCounters
from pendula.server.schedulers.credit.errors import PREFIX, RunNotFound, UnknownEngine
from pendula.server.schedulers.credit.output import RunContext
from pendula.server.schedulers.credit.owners import OwnerCookies, may_see, read_key
from pendula.server.schedulers.credit.records import (
    DEMO_OWNER,
    ENDED,
    Capacity,
    Owner,
    Record,
    RunConflict,
    admit,
    chosen_seed,
    run_name,
)
from pendula.server.schedulers.credit.recovery import EndedRun, EndedRuns
from pendula.server.schedulers.credit.run import ServedRun, StopRequest
from pendula.server.schedulers.credit.scenarios import Registry, StoredScenario
from pendula.server.schedulers.credit.settings import ServedSettings
from pendula.server.schedulers.credit.shapes import NewRun
from pendula.server.schedulers.credit.store import Store, StoreThread
from pendula.server.views import State

STORE, RUNS, KEY = "simulator.db", "runs", "owners.key"
SERVER = "server"
# Ticks between two snapshots: the most that a recovery repeats.
SNAPSHOT_EVERY = 500
HOUSEKEEPING_SECONDS = 60
DAY_US = 86_400_000_000

DEMO = Owner(DEMO_OWNER, DEMO_OWNER)
DEMO_RUN = NewRun(demo.SCENARIO, "real", demo.INTENSITY, settings=demo.SETTINGS)

QUEUE_FACTOR = 4  # most large reads are short and pages send many: their queue is so many times longer

T = TypeVar("T")

log = structlog.get_logger("pendula.server")


class SimulatorService:
    """The service of the scheduler `credit`. `defaults` are the settings of new runs."""

    def __init__(self, host: Host, settings: ServedSettings, defaults: RunSettings) -> None:
        self.settings = settings
        self.defaults = defaults
        self.scenarios = Registry(settings.scenario_allowlist)
        self.counters = RunCounters(host.metrics.registry if settings.metrics_enabled else CollectorRegistry())
        self.streams = 0
        # One thread: queries to the loaded run share its caches.
        self.ended_questions = Lane.of("questions-to-ended-runs", host.settings, threads=1)
        self._ended = EndedRuns(self.ended_questions)
        self.large_reads = Lane.of("simulator-reads", host.settings, times=QUEUE_FACTOR)
        self._host = host
        self._store = StoreThread(lambda count: self.counters.dropped.labels("measurements").inc(count))
        self._records: dict[str, Record] = {}
        self._open: dict[str, ServedRun] = {}
        self._changing = asyncio.Lock()
        self._context: RunContext | None = None
        self._cookies: OwnerCookies | None = None
        self.failure: PendulaError | None = None
        self._stopping = False
        self._housekeeping: Beat | None = None
        self.counters.clients.set_function(lambda: self.streams)
        self.counters.buffered.set_function(lambda: sum(len(run.stream) for run in self._open.values()))

    # Opening and closing

    async def open(self, folder: Path) -> None:
        """Open the store and end the runs of a killed process; a failure is stored in `failure`, not raised."""
        try:
            await self._start(folder)
        except PendulaError as error:
            self._fail(error)
        except Exception as error:
            log.exception("sim.failed")
            self._fail(WorldBroken(f"The simulator could not be opened: {type(error).__name__}: {error}"))

    async def _start(self, folder: Path) -> None:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        key = await asyncio.to_thread(read_key, folder / KEY)
        clock, settings = self._host.clock.now, self.settings
        self._cookies = OwnerCookies(key, clock, settings.session_ttl_sec, settings.session_clock_skew_sec)
        context = RunContext(
            settings,
            clock,
            self._store,
            self.counters,
            folder / RUNS,
            make_host=self._new_host,
            artifact_url=_url,
            disk_low=partial(self._disk_low, folder),
        )
        if settings.db_enabled:
            await self._store.open(lambda: Store(folder / STORE))
            for row in await self._store.ask(Store.scenarios):
                self.scenarios.add(scenarios.read(from_value(row.document, "store"), row.created_at))
            for record in await self._store.ask(Store.records):
                self._records[record.run_id] = record
        await self._end_abandoned_runs(context)
        # Requests are answered from here on: only now no run of a killed process is active any more.
        self._context = context
        self._evict_old_records()
        await self._ensure_demo()
        self._housekeeping = Beat(HOUSEKEEPING_SECONDS, lambda _: self._keep_house)
        self._housekeeping.start()

    async def _end_abandoned_runs(self, context: RunContext) -> None:
        for record in list(self._records.values()):
            if record.state not in ENDED:
                unwritten = await asyncio.to_thread(recovery.finish_abandoned, record, context)
                log.warning("sim.run.abandoned", run_id=record.run_id, tick=record.tick_index)
                await self._store.ask(partial(Store.write, runs={record.run_id: unwritten}))

    def _outside(self, record: Record, config: Json) -> Outside:
        """The outside of a run; raises `UnknownEngine` if its payment service is no longer allowed."""
        if record.engine is None:
            return SolverWhenAsked()
        url = self._engine_url(record.engine)
        if config is None:
            with reading(self.context.journal(record.run_id)) as journal:
                config = journal.header.config
        members: Any = config
        settings = msgspec.convert(members["settings"], RunSettings)
        token = self._engine_token(record.engine)
        service = PaymentService.with_settings(url, settings, token=token, called=record.engine)
        return Answers(None, service, SolverWhenAsked())

    def _engine_token(self, name: str) -> str | None:
        file = self._host.settings.credit.engine_tokens.get(name)
        try:
            return None if file is None else Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            log.error("sim.engine.token", engine=name, problem=str(error))
            raise WorldBroken(f"The token of the payment service {name!r} cannot be read; see the server log") from None

    def _engine_url(self, name: str) -> str:
        engines = self._host.settings.credit.engines
        if name not in engines:
            known = sorted(engines)
            allowed = f"allowed are {', '.join(known)}" if known else "this server allows none (setting credit.engines)"
            hint = suggestion(name, known)
            raise UnknownEngine(
                f"Unknown payment service {name[:100]!r}{hint}; {allowed}", engine=name[:100], allowed=known
            )
        return engines[name]

    def _new_host(self, record: Record, config: Json, log: Log[Event]) -> EngineHost:
        used = {int(run.host.label) for run in self._open.values() if run.host is not None}
        slot = next(number for number in range(1, len(used) + 2) if number not in used)
        return EngineHost(
            "credit",
            record.run_id,
            Run,
            settings=self._host.settings,
            metrics=self._host.metrics,
            clock=self._host.clock,
            journal_bytes=self._host.settings.allowed(JOURNAL_BYTES),
            outside=self._outside(record, config),
            label=str(slot),
            keep_events=False,
            log=log,
            snapshot_every=SNAPSHOT_EVERY,
        )

    def _fail(self, error: PendulaError) -> None:
        self.failure = error
        log.error("sim.failed", code=error.code, problem=error.message)

    @property
    def state(self) -> State:
        if self.failure is not None:
            return State.BROKEN
        return State.STARTING if self._housekeeping is None else State.READY

    async def not_ready(self) -> str | None:
        if self.failure is not None:
            return self.failure.code
        return None if self.state is State.READY else State.STARTING.value

    def stop(self) -> None:
        self._stopping = True
        for run in self._open.values():
            run.wake()

    async def close(self) -> None:
        """Stop every run, then write everything pending."""
        self.stop()
        if self._housekeeping is not None:
            await self._housekeeping.stop()
        request = StopRequest(SERVER, "the server is stopping", None)
        await asyncio.gather(*(run.stop(request, SERVER, None) for run in self._open.values()))
        await asyncio.gather(*(run.wait_ended() for run in self._open.values()))
        for lane in (self.ended_questions, self.large_reads):
            await asyncio.to_thread(lane.close)
        await self._store.close()

    @property
    def context(self) -> RunContext:
        """Raises the stored failure, or `EngineUnavailable` before the simulator has started."""
        if self.failure is not None:
            raise self.failure
        if self._context is None:
            raise EngineUnavailable("The simulator is starting; try again in a moment")
        return self._context

    @property
    def cookies(self) -> OwnerCookies:
        assert self._cookies is not None, self.context
        return self._cookies

    # Scenarios

    async def add_scenario(self, stored: StoredScenario) -> None:
        """Store an uploaded scenario; raises `ScenarioExists`."""
        async with self._changing:
            self.scenarios.check_new(stored)
            document, uploaded_at = stored.document, stored.uploaded_at
            assert isinstance(document, dict)
            assert uploaded_at is not None
            if self._store.has_store:
                codes = stored.scenario.equivalents
                await self._store.ask(lambda store: store.add_scenario(document, codes, uploaded_at))
            self.scenarios.add(stored)

    # Runs

    async def create(self, owner: Owner, request: NewRun) -> Record:
        """Create and start a run. Raises `ScenarioNotFound`, `RunConflict`, `InvalidSetting`."""
        stored = self.scenarios.get(request.scenario_id)
        settings = change_settings(self.defaults, request.settings)
        if request.engine is not None:
            self._engine_url(request.engine)
            if request.deterministic:
                message = f"Payments through {request.engine!r} cannot be deterministic; omit deterministic"
                raise RunConflict(message, conflict_kind="engine_not_deterministic")
        now = self.context.clock()
        name = run_name(now, secrets.token_bytes(4))
        seed, source = chosen_seed(request.seed, stored.scenario.seed, settings.fixed_seed, name)
        record = Record(
            run_id=name,
            scenario_id=stored.scenario.id,
            owner=owner,
            mode=request.mode,
            seed=seed,
            seed_from=source,
            deterministic=request.engine is None,
            engine=request.engine,
            intensity_percent=request.intensity_percent,
            created_at=moment(now),
            equivalents=stored.scenario.equivalents,
        )
        config = Config(
            stored.document,
            seed,
            name,
            request.intensity_percent,
            settings=settings,
            mode=request.mode,
            engine="embedded" if request.engine is None else "external",
        )
        return await self._begin(record, decode(encode(config)))

    async def continue_run(self, owner: Owner, record: Record) -> Record:
        """Start a new run from the last state of an ended one; raises `RunConflict`."""
        if record.state not in ENDED:
            raise RunConflict(f"The run {record.run_id} has not ended", conflict_kind="run_active")
        intensity, config, checkpoint = await self._ask_ended(record, _beginning_of_continuation)
        now = self.context.clock()
        same = ("scenario_id", "mode", "seed", "seed_from", "deterministic", "engine", "equivalents")
        continuation = Record(
            run_id=run_name(now, secrets.token_bytes(4)),
            owner=owner,
            intensity_percent=intensity,
            created_at=moment(now),
            continued_from=record.run_id,
            **{name: getattr(record, name) for name in same},
        )
        return await self._begin(continuation, {**config, "run_id": continuation.run_id, "checkpoint": checkpoint})

    def _disk_low(self, folder: Path) -> bool:
        """Whether there is too little space for new runs; an unreadable disk counts as full."""
        try:
            disk = RealDisk(folder, make=False)
        except OSError:
            return True
        try:
            return disk.free_bytes() < self._host.settings.allowed(MIN_FREE_BYTES)
        except OSError:
            return True
        finally:
            disk.close()

    async def _require_space(self) -> None:
        """Raises `DiskLow`: a run could not tick."""
        if await asyncio.to_thread(self.context.disk_low):
            raise DiskLow("The disk of the server is nearly full; free some space to start a run")

    async def _begin(self, record: Record, config: Json) -> Record:
        async with self._changing:
            await self._require_space()
            await self._admit(record.owner)
            # The record comes first: without one, no recovery would find the journal.
            if self._store.has_store:
                await self._store.ask(lambda store: store.save(record))
            run = ServedRun(record, self.context)
            try:
                await run.open(config)
            except BaseException:
                if self._store.has_store:
                    await self._store.delete(record.run_id)
                raise
            self._records[record.run_id] = record
            self._open[record.run_id] = run
            await run.begin()
            self._evict_old_records()
        return record

    async def restart(self, run: ServedRun, by: str, request_id: str | None) -> None:
        """Raises `RunConflict` if too many runs are active."""
        async with self._changing:
            await self._require_space()
            run = self.register(run)
            if run.record.state in ENDED:
                await run.wait_ended()
                await self._admit(run.record.owner)
            await run.restart(by, request_id)

    async def _admit(self, owner: Owner) -> None:
        """Check the limits of active runs, then stop the demo; raises `RunConflict`."""
        active = [(record.run_id, record.owner.id) for record in self._records.values() if record.active]
        users = [(run_id, owner_id) for run_id, owner_id in active if owner_id != DEMO_OWNER]
        if owner.id != DEMO_OWNER:
            admit(owner.id, users, Capacity(self.settings.max_active_runs, self.settings.max_active_runs_per_owner))
        for run_id, owner_id in active:
            if owner_id == DEMO_OWNER:
                await self._open[run_id].stop(StopRequest(SERVER, "another run starts", None), SERVER, None)

    async def find(self, owner: Owner, run_id: str) -> ServedRun:
        """The run, open or not; raises `RunNotFound` also for a run of another owner."""
        record = self._records.get(run_id)
        if record is None and self._store.has_store:
            record = await self._store.ask(lambda store: store.record(run_id), of=run_id)
        if record is None or not may_see(owner, record):
            name = run_id[:100]
            raise RunNotFound(f"There is no run {name!r}", run_id=name)
        return self._open.get(run_id) or ServedRun(record, self.context)

    def register(self, run: ServedRun) -> ServedRun:
        """The one object of this run; `remove_expired` drops it when it has no readers and no readable events."""
        self._records.setdefault(run.record.run_id, run.record)
        return self._open.setdefault(run.record.run_id, run)

    def active(self, owner: Owner) -> Record | None:
        """The newest active run of the caller, else the demo."""
        active = [record for record in self._records.values() if record.active]
        own = [record for record in active if record.owner.id == owner.id]
        shown = [record for record in active if record.owner.id == DEMO_OWNER]
        return next(reversed(own), None) or next(reversed(shown), None)

    def all(self, owner: Owner) -> Iterator[Record]:
        """All runs that the owner may see, newest first."""
        return (record for record in reversed(self._records.values()) if may_see(owner, record))

    async def ask(self, run: ServedRun, question: Callable[[Run], T]) -> T:
        """The result of `question` for the engine of a run; of an ended run, for its last state."""
        if run.is_open:
            return await run.ask(question)
        return await self._ask_ended(run.record, question)

    async def _ask_ended(self, record: Record, question: Callable[[Run], T]) -> T:
        ended = await self.ended(record)
        return await self.ended_questions.look(lambda: ended.ask(question))

    async def ended(self, record: Record) -> EndedRun:
        """The history of an ended run; raises if its journal is damaged."""
        return await self._ended.look(self.context.journal(record.run_id), record.stopped_at)

    async def query_store(self, run_id: str, question: Callable[[Store], T]) -> T:
        """Query the store after everything pending of the run is written; raises `StoreDisabled` or
        `SimulatorStoreUnusable`."""
        return await self._store.ask(question, of=run_id)

    # Upkeep

    async def _keep_house(self) -> None:
        try:
            await self.remove_expired()
            await self._ensure_demo()
        except PendulaError as error:
            log.error("sim.upkeep.failed", code=error.code, problem=error.message)

    async def remove_expired(self) -> None:
        """Drop rings of ended runs, and remove files and runs that are older than the settings allow."""
        now = self._host.clock.now()
        for run_id, run in list(self._open.items()):
            if run.record.state in ENDED and not run.followers and not len(run.stream):
                run.record.last_seq = run.record.seq_reserved = run.stream.last_seq
                del self._open[run_id]
        hours, days = self.settings.artifacts_ttl_hours, self.settings.run_retention_days
        for record in list(self._records.values()):
            if record.stopped_at is None or record.run_id in self._open:
                continue
            age = now - parse_utc(record.stopped_at)
            if hours and age > hours * DAY_US // 24:
                await asyncio.to_thread(shutil.rmtree, self.context.artifacts(record.run_id), ignore_errors=True)
            if age > days * DAY_US:
                await self._remove(record.run_id)

    async def _remove(self, run_id: str) -> None:
        del self._records[run_id]
        if self._store.has_store:
            await self._store.delete(run_id)
        await asyncio.to_thread(shutil.rmtree, self.context.runs_folder / run_id, ignore_errors=True)
        log.info("sim.run.removed", run_id=run_id)

    async def _ensure_demo(self) -> None:
        """Start the demo unless a run is active; a stopped demo is removed when the next one starts."""
        if not self._host.settings.demo or self._stopping:
            return
        active = [record for record in self._records.values() if record.active]
        if not active and not await asyncio.to_thread(self.context.disk_low):
            for record in [record for record in self._records.values() if record.owner == DEMO]:
                self._open.pop(record.run_id, None)
                await self._remove(record.run_id)
            await self.create(DEMO, DEMO_RUN)
        for record in active:
            if record.owner == DEMO and record.tick_index >= demo.TICKS:
                await self._open[record.run_id].restart(SERVER, None)

    def _evict_old_records(self) -> None:
        """Keep `max_run_records` ended runs in memory; older ones are in the store."""
        ended = [
            record for record in self._records.values() if record.state in ENDED and record.run_id not in self._open
        ]
        for record in ended[: max(0, len(ended) - self.settings.max_run_records)]:
            del self._records[record.run_id]


def _beginning_of_continuation(run: Run) -> tuple[int, dict[str, Any], Json]:
    config = decode(encode(run.config))
    assert isinstance(config, dict)
    return run.intensity, config, recovery.checkpoint(run)


def _url(run_id: str, name: str) -> str:
    return f"{PREFIX}/runs/{run_id}/artifacts/{name}"
