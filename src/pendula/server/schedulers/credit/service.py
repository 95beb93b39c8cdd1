"""The simulator while it is served: scenarios, runs and their owners, how many may be active, and what is left of them.

A run is found by whoever owns it, and by admins; for all others it is not there. The engines of runs that have ended
are closed, their records stay.
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
from pendula.credit.outside.answers import Answers
from pendula.credit.outside.payment_service import PaymentService
from pendula.credit.outside.solver import SolverWhenAsked
from pendula.credit.runs.artifacts import moment
from pendula.credit.runs.recording import reading
from pendula.credit.served import scenarios
from pendula.credit.served.lifecycle import ENDED, Capacity, RunConflict, admit
from pendula.credit.served.records import DEMO_OWNER, Owner, Record, chosen_seed, run_name
from pendula.credit.served.scenarios import Registry, StoredScenario
from pendula.credit.served.settings import ServedSettings
from pendula.credit.served.store import Store
from pendula.credit.settings import Settings as RunSettings
from pendula.credit.settings import changed
from pendula.documents import from_value
from pendula.documents.faults import suggestion
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import DiskLow
from pendula.kernel.engine import Outside
from pendula.kernel.errors import PendulaError, WorldBroken
from pendula.kernel.limits import JOURNAL_BYTES, MIN_FREE_BYTES
from pendula.kernel.time import parse_utc
from pendula.server.errors import EngineUnavailable
from pendula.server.hosting.engine_host import EngineHost
from pendula.server.hosting.past import Lane
from pendula.server.hosting.scheduler_spec import Host
from pendula.server.schedulers.credit.errors import PREFIX, RunNotFound, UnknownEngine
from pendula.server.schedulers.credit.owners import OwnerCookies, may_see, read_key
from pendula.server.schedulers.credit.running import recovery
from pendula.server.schedulers.credit.running.counters import RunCounters
from pendula.server.schedulers.credit.running.ended_run import EndedRuns
from pendula.server.schedulers.credit.running.record_keeper import RecordKeeper
from pendula.server.schedulers.credit.running.run_writer import RunContext
from pendula.server.schedulers.credit.running.served_run import ServedRun, StopRequest
from pendula.server.schedulers.credit.shapes import NewRun
from pendula.server.views import State

STORE, RUNS, KEY = "simulator.db", "runs", "owners.key"
SERVER = "server"
# Ticks between two checkpoints: after a crash no more than these are computed again.
SNAPSHOT_EVERY = 500
HOUSEKEEPING_SECONDS = 60
DAY_US = 86_400_000_000

DEMO = Owner(DEMO_OWNER, DEMO_OWNER)
DEMO_RUN = NewRun("village-100", "real", 70, settings={"amount_cap": "500", "clearing_yardstick": "on"})
DEMO_TICKS = 3600  # then the village begins anew: an example need not be long

AS_MANY = 4  # reads may wait as looks at the past may: most are short, and pages read all the time

T = TypeVar("T")

log = structlog.get_logger("pendula.server")


class SimulatorService:
    """The service of the scheduler `credit`. `defaults` are the settings that runs begin with."""

    def __init__(self, host: Host, settings: ServedSettings, defaults: RunSettings) -> None:
        self.settings = settings
        self.defaults = defaults
        self.scenarios = Registry(settings.scenario_allowlist)
        self.counters = RunCounters(host.metrics.registry if settings.metrics_enabled else CollectorRegistry())
        self.streams = 0
        self.ended = EndedRuns()
        self.comparing = Lane.of("comparisons", host.settings, threads=1)
        self.reading = Lane.of("ended-runs", host.settings, threads=1)
        # One thread: questions about the run that is kept at hand share its caches.
        self.asking_ended = Lane.of("questions-to-ended-runs", host.settings, threads=1)
        self.looking = Lane.of("simulator-reads", host.settings, times=AS_MANY)
        self._host = host
        self._keeper = RecordKeeper(lambda count: self.counters.dropped.labels("measurements").inc(count))
        self._records: dict[str, Record] = {}
        self._open: dict[str, ServedRun] = {}
        self._changing = asyncio.Lock()
        self._context: RunContext | None = None
        self._cookies: OwnerCookies | None = None
        self._failure: PendulaError | None = None
        self._stopping = False
        self._housekeeping: asyncio.Task[None] | None = None
        self._last_read: tuple[str, Run] | None = None
        self.counters.clients.set_function(lambda: self.streams)
        self.counters.buffered.set_function(lambda: sum(len(run.ring) for run in self._open.values()))

    # Opening and closing

    async def open(self, folder: Path) -> None:
        """Open the store and end what an earlier process left; a failure is kept, not raised."""
        try:
            await self._opened(folder)
        except PendulaError as error:
            self._fail(error)
        except Exception as error:
            log.exception("sim.failed")
            self._fail(WorldBroken(f"The simulator could not be opened: {type(error).__name__}: {error}"))

    async def _opened(self, folder: Path) -> None:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        key = await asyncio.to_thread(read_key, folder / KEY)
        clock, settings = self._host.clock.now, self.settings
        self._cookies = OwnerCookies(key, clock, settings.session_ttl_sec, settings.session_clock_skew_sec)
        context = RunContext(
            settings,
            clock,
            self._keeper,
            self.counters,
            folder / RUNS,
            make_host=self._new_host,
            artifact_url=_url,
            disk_low=partial(self._disk_low, folder),
        )
        if settings.db_enabled:
            await self._keeper.open(lambda: Store(folder / STORE))
            for stored in await self._keeper.ask(Store.scenarios):
                self.scenarios.add(scenarios.read(from_value(stored.document, "store"), stored.created_at))
            for record in await self._keeper.ask(Store.records):
                self._records[record.run_id] = record
        await self._end_what_was_left(context)
        # From here on callers are answered: nobody sees a run as active that nobody lets tick.
        self._context = context
        self._forget_oldest()
        await self._show_demo()
        self._housekeeping = asyncio.get_running_loop().create_task(self._keep_house())

    async def _end_what_was_left(self, context: RunContext) -> None:
        for record in list(self._records.values()):
            if record.state not in ENDED:
                found = await asyncio.to_thread(recovery.finish, record, context)
                log.warning("sim.run.abandoned", run_id=record.run_id, tick=record.tick_index)
                await self._keeper.ask(partial(Store.write, runs={record.run_id: found}))

    def _outside(self, record: Record, config: Json) -> Outside:
        """Who answers what a run asks; raises `UnknownEngine` where its payment service is no longer allowed."""
        if record.engine is None:
            return SolverWhenAsked()
        url = self._engine_url(record.engine)
        if config is None:
            with reading(self.context.journal(record.run_id)) as journal:
                config = journal.header.config
        given: Any = config
        settings = msgspec.convert(given["settings"], RunSettings)
        token = self._engine_token(record.engine)
        service = PaymentService.with_settings(url, settings, token=token, called=record.engine)
        return Answers(None, service, SolverWhenAsked())

    def _engine_token(self, name: str) -> str | None:
        file = self._host.settings.credit_engine_tokens.get(name)
        try:
            return None if file is None else Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as trouble:
            log.error("sim.engine.token", engine=name, problem=str(trouble))
            raise WorldBroken(f"The token of the payment service {name!r} cannot be read; see the server log") from None

    def _engine_url(self, name: str) -> str:
        engines = self._host.settings.credit_engines
        if name not in engines:
            known = sorted(engines)
            there = f"allowed are {', '.join(known)}" if known else "this server allows none (setting credit.engines)"
            hint = suggestion(name, known)
            raise UnknownEngine(
                f"There is no payment service {name[:100]!r}{hint}; {there}", engine=name[:100], allowed=known
            )
        return engines[name]

    def _new_host(self, record: Record, config: Json) -> EngineHost:
        taken = {int(run.label) for run in self._open.values() if run.is_open}
        slot = next(number for number in range(1, len(taken) + 2) if number not in taken)
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
            snapshot_every=SNAPSHOT_EVERY,
        )

    def _fail(self, error: PendulaError) -> None:
        self._failure = error
        log.error("sim.failed", code=error.code, problem=error.message)

    @property
    def failure(self) -> PendulaError | None:
        return self._failure

    @property
    def state(self) -> State:
        if self._failure is not None:
            return State.BROKEN
        return State.STARTING if self._housekeeping is None else State.READY

    async def not_ready(self) -> str | None:
        if self._failure is not None:
            return self._failure.code
        return None if self.state is State.READY else State.STARTING.value

    def stop(self) -> None:
        self._stopping = True
        for run in self._open.values():
            run.wake()

    async def close(self) -> None:
        """Stop every run, then write what waits."""
        self.stop()
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        why = StopRequest(SERVER, "the server is stopping", None)
        await asyncio.gather(*(run.stop(why, SERVER, None) for run in self._open.values()))
        await asyncio.gather(*(run.ended() for run in self._open.values()))
        for lane in (self.comparing, self.reading, self.asking_ended, self.looking):
            await asyncio.to_thread(lane.close)
        await self._keeper.close()

    @property
    def context(self) -> RunContext:
        """Raises what keeps the simulator from working."""
        if self._failure is not None:
            raise self._failure
        if self._context is None:
            raise EngineUnavailable("The simulator is starting; try again in a moment")
        return self._context

    @property
    def cookies(self) -> OwnerCookies:
        assert self._cookies is not None, self.context
        return self._cookies

    # Scenarios

    async def add_scenario(self, kept: StoredScenario) -> None:
        """Keep what was uploaded; raises `ScenarioExists`."""
        async with self._changing:
            self.scenarios.check_new(kept)
            document, uploaded_at = kept.document, kept.uploaded_at
            assert isinstance(document, dict)
            assert uploaded_at is not None
            if self._keeper.there:
                codes = kept.scenario.equivalents
                await self._keeper.ask(lambda store: store.add_scenario(document, codes, uploaded_at))
            self.scenarios.add(kept)

    # Runs

    async def create(self, owner: Owner, wish: NewRun) -> Record:
        """A new run, which is running when this returns. Raises `ScenarioNotFound`, `RunConflict`, `InvalidSetting`."""
        kept = self.scenarios.get(wish.scenario_id)
        settings = changed(self.defaults, wish.settings)
        if wish.engine is not None:
            self._engine_url(wish.engine)
            if wish.deterministic:
                message = f"Payments through {wish.engine!r} cannot be deterministic; leave deterministic out"
                raise RunConflict(message, conflict_kind="engine_not_deterministic")
        now = self.context.clock()
        name = run_name(now, secrets.token_bytes(4))
        seed, source = chosen_seed(wish.seed, kept.scenario.seed, settings.fixed_seed, name)
        record = Record(
            run_id=name,
            scenario_id=kept.scenario.id,
            owner=owner,
            mode=wish.mode,
            seed=seed,
            seed_from=source,
            deterministic=wish.engine is None,
            engine=wish.engine,
            intensity_percent=wish.intensity_percent,
            created_at=moment(now),
            equivalents=kept.scenario.equivalents,
        )
        config = Config(
            kept.document,
            seed,
            name,
            wish.intensity_percent,
            settings=settings,
            mode=wish.mode,
            engine="embedded" if wish.engine is None else "external",
        )
        return await self._begin(record, decode(encode(config)))

    async def go_on(self, owner: Owner, record: Record) -> Record:
        """A new run from where one that has ended stood; raises `RunConflict`."""
        if record.state not in ENDED:
            raise RunConflict(f"The run {record.run_id} has not ended", conflict_kind="run_active")
        run = await self.stored(record)
        now = self.context.clock()
        config = decode(encode(run.config))
        assert isinstance(config, dict)
        fresh = Record(
            run_id=run_name(now, secrets.token_bytes(4)),
            scenario_id=record.scenario_id,
            owner=owner,
            mode=record.mode,
            seed=record.seed,
            seed_from=record.seed_from,
            deterministic=record.deterministic,
            engine=record.engine,
            intensity_percent=run.intensity,
            created_at=moment(now),
            equivalents=record.equivalents,
            continued_from=record.run_id,
        )
        return await self._begin(fresh, {**config, "run_id": fresh.run_id, "checkpoint": recovery.checkpoint(run)})

    def _disk_low(self, folder: Path) -> bool:
        """Whether there is too little space for new runs; a disk that does not even say so counts as full."""
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
        """Raises `DiskLow`: a run that could have no tick does not begin."""
        if await asyncio.to_thread(self.context.disk_low):
            raise DiskLow("The disk of the server is nearly full; no run begins until there is space again")

    async def _begin(self, record: Record, config: Json) -> Record:
        async with self._changing:
            await self._require_space()
            await self._free_journal_space(record.owner)
            # Written first: a journal that nobody knows of would never be ended.
            if self._keeper.there:
                await self._keeper.ask(lambda store: store.save(record))
            run = ServedRun(record, self.context)
            try:
                await run.open(config)
            except BaseException:
                if self._keeper.there:
                    await self._keeper.delete(record.run_id)
                raise
            self._records[record.run_id] = record
            self._open[record.run_id] = run
            await run.begin()
            self._forget_oldest()
        return record

    async def restart(self, run: ServedRun, by: str, request_id: str | None) -> None:
        """Raises `RunConflict` where one more active run is too many."""
        async with self._changing:
            await self._require_space()
            run = self.keep(run)
            if run.record.state in ENDED:
                await run.ended()
                await self._free_journal_space(run.record.owner)
            await run.restart(by, request_id)

    async def _free_journal_space(self, owner: Owner) -> None:
        """The living example yields to whoever wants to run something."""
        active = [(one.run_id, one.owner.id) for one in self._records.values() if one.active]
        users = [(run, theirs) for run, theirs in active if theirs != DEMO_OWNER]
        if owner.id != DEMO_OWNER:
            admit(owner.id, users, Capacity(self.settings.max_active_runs, self.settings.max_active_runs_per_owner))
        for run_id, theirs in active:
            if theirs == DEMO_OWNER:
                await self._open[run_id].stop(
                    StopRequest(SERVER, "the demonstration makes way for another run", None), SERVER, None
                )

    async def find(self, owner: Owner, run_id: str) -> ServedRun:
        """The run, open or not; raises `RunNotFound`, also for somebody else's."""
        record = self._records.get(run_id)
        if record is None and self._keeper.there:
            record = await self._keeper.ask(lambda store: store.record(run_id), of=run_id)
        if record is None or not may_see(owner, record):
            shown = run_id[:100]
            raise RunNotFound(f"There is no run {shown!r}", run_id=shown)
        return self._open.get(run_id) or ServedRun(record, self.context)

    def keep(self, run: ServedRun) -> ServedRun:
        """The one object that stands for the run from now on, until nobody follows it and its events are too old."""
        self._records.setdefault(run.record.run_id, run.record)
        return self._open.setdefault(run.record.run_id, run)

    def active(self, owner: Owner) -> Record | None:
        """The newest active run of the caller, else the living example."""
        own = [one for one in self._records.values() if one.active and one.owner.id == owner.id]
        demo = [one for one in self._records.values() if one.active and one.owner.id == DEMO_OWNER]
        return next(reversed(own), None) or next(reversed(demo), None)

    def all(self, owner: Owner) -> Iterator[Record]:
        """The newest first."""
        return (one for one in reversed(self._records.values()) if may_see(owner, one))

    async def ask(self, run: ServedRun, question: Callable[[Run], T]) -> T:
        """What the engine of a run answers; for one that has ended, as it stood then."""
        if run.is_open:
            return await run.ask(question)
        stored = await self.stored(run.record)
        return await self.asking_ended.look(lambda: question(stored))

    async def stored(self, record: Record) -> Run:
        """A run that has ended, as it stood then. The last one that was asked for is kept at hand."""
        key = f"{record.run_id}|{record.stopped_at}"
        if self._last_read is None or self._last_read[0] != key:
            journal = self.context.journal(record.run_id)
            self._last_read = key, await self.reading.look(lambda: recovery.last_state(journal))
        return self._last_read[1]

    async def from_store(self, run_id: str, question: Callable[[Store], T]) -> T:
        """What the store answers about a run, all that was written of it included; raises `StoreDisabled`,
        `SimulatorStoreUnusable`."""
        return await self._keeper.ask(question, of=run_id)

    # Upkeep

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_SECONDS)
            try:
                await self.tidy()
                await self._show_demo()
            except PendulaError as trouble:
                log.error("sim.upkeep.failed", code=trouble.code, problem=trouble.message)

    async def tidy(self) -> None:
        """Let go of what is past its time: rings of ended runs, files, runs."""
        now = self._host.clock.now()
        for run_id, run in list(self._open.items()):
            if run.record.state in ENDED and not run.followers and not len(run.ring):
                run.record.last_seq = run.record.seq_reserved = run.ring.last_seq
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
        if self._keeper.there:
            await self._keeper.delete(run_id)
        await asyncio.to_thread(shutil.rmtree, self.context.runs_folder / run_id, ignore_errors=True)
        log.info("sim.run.removed", run_id=run_id)

    async def _show_demo(self) -> None:
        """Keep the demonstration running while there is no other run. One that made way stays until the next begins."""
        if not self._host.settings.demo or self._stopping:
            return
        active = [one for one in self._records.values() if one.active]
        if not active and not await asyncio.to_thread(self.context.disk_low):
            for record in [one for one in self._records.values() if one.owner == DEMO]:
                self._open.pop(record.run_id, None)
                await self._remove(record.run_id)
            await self.create(DEMO, DEMO_RUN)
        for record in active:
            if record.owner == DEMO and record.tick_index >= DEMO_TICKS:
                await self._open[record.run_id].restart(SERVER, None)

    def _forget_oldest(self) -> None:
        """Records of ended runs beyond their number are left to the store."""
        ended = [one for one in self._records.values() if one.state in ENDED and one.run_id not in self._open]
        for record in ended[: max(0, len(ended) - self.settings.max_run_records)]:
            del self._records[record.run_id]


def _url(run_id: str, name: str) -> str:
    return f"{PREFIX}/runs/{run_id}/artifacts/{name}"
