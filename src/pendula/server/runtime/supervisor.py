"""The parts of a running server: settings, tokens, sessions, engines, streams, metrics.

Engines start concurrently with each other and with the server: requests are answered while a long journal is read, and
an engine that cannot be opened shows in readiness and does not affect the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog

import pendula
from pendula.demo import Demo
from pendula.kernel.canonical import Json
from pendula.kernel.disk import Disk
from pendula.kernel.driver import Ticket
from pendula.kernel.engine import Outside, Reason
from pendula.kernel.errors import WorldBroken
from pendula.kernel.limits import BODIES_BYTES, ENGINES, JOURNAL_BYTES, MIN_FREE_BYTES
from pendula.kernel.replay import OtherDecisions
from pendula.kernel.wallclock import SLOWER, WallClock
from pendula.server.data_directory import (
    NAME,
    Beginning,
    DataDirectory,
    make_engine,
    remove_engine,
    set_engine_aside,
    sweep_engines,
)
from pendula.server.errors import HttpRefused, NotFound
from pendula.server.monitoring import Metrics
from pendula.server.runtime.engine_host import EngineHost, Pace, real_disk
from pendula.server.runtime.past import Past
from pendula.server.runtime.scheduler_spec import KeepsFile, KeepsTime, SchedulerSpec, Service, Store
from pendula.server.runtime.streams import StreamLedger
from pendula.server.security.gates import BodyBudget, WrongTokens
from pendula.server.security.identity import Sessions, TokenStore
from pendula.server.settings import Settings
from pendula.server.views import Check, ClockState, Readiness, SchedulerList, SchedulerView, State

DEMO_CALLER = "demo"
STANDS_SECONDS = 1
SECOND = 1_000_000
AHEAD_SEC = 60  # a larger lead over the system clock is reported
A = TypeVar("A")
B = TypeVar("B")
MakeDisk = Callable[[Path], Callable[[], Disk]]

log = structlog.get_logger("pendula.server")


class EngineExists(HttpRefused):
    code = "engine_exists"
    status = 409


class TooManyEngines(HttpRefused):
    code = "too_many_engines"
    status = 409


class Supervisor:
    """Supervises all engines and services of one server. `open` and `close` run on the serving event loop."""

    def __init__(
        self,
        settings: Settings,
        schedulers: Sequence[SchedulerSpec],
        data: DataDirectory | None = None,
        disk: MakeDisk = real_disk,
    ) -> None:
        self.settings = settings
        self.schedulers = tuple(schedulers)
        self.metrics = Metrics()
        self.clock = WallClock()
        self.tokens = TokenStore(data.path if data else settings.data)
        self.sessions = Sessions(self.tokens, directory=data.path if data else settings.data)
        self.wrong_tokens = WrongTokens()
        self._past = Past(settings)
        self.streams = StreamLedger(settings, self.metrics)
        self.bodies = BodyBudget(settings.allowed(BODIES_BYTES))
        self.metrics.body_bytes.set_function(lambda: self.bodies.held)
        self.closing: dict[str, None] = {}  # what shutdown waits for, by name
        self._data = data
        self._disk = disk
        self._stores: dict[str, Store] = {}
        self._services: dict[str, Service] = {
            scheduler.name: scheduler.service(self) for scheduler in self.schedulers if scheduler.service
        }
        self._hosts: dict[str, dict[str, EngineHost]] = {scheduler.name: {} for scheduler in self.schedulers}
        self._tasks: list[asyncio.Task[None]] = []
        self._changing = asyncio.Lock()
        assert all(NAME.fullmatch(scheduler.name) for scheduler in self.schedulers)

    async def open(self) -> None:
        """Lock the data directory, read the tokens, and start opening every engine and service."""
        if self._data is None:
            self._data = DataDirectory.lock(self.settings.data)
        self.tokens.list()
        self.sessions.load()
        self._tasks.append(asyncio.create_task(_watch(self.clock, self.clock_state)))
        for scheduler in self.schedulers:
            if scheduler.name in self._services:
                folder = self._data.store(scheduler.name)
                self._tasks.append(asyncio.create_task(self._services[scheduler.name].open(folder)))
            if scheduler.engine is None:
                continue
            if scheduler.store is not None:
                self._stores[scheduler.name] = scheduler.store(self, self._data.store(scheduler.name))
            sweep_engines(self._data.journal(scheduler.name, scheduler.name).parent)
            for name in self._data.strangers(scheduler.name):
                log.warning(
                    "no_engine", scheduler=scheduler.name, folder=name, problem="a link, or not the name of an engine"
                )
            for name, config in self._wanted(scheduler, self._data):
                host = self._add(scheduler, name)
                self._tasks.append(asyncio.create_task(self._start(scheduler, host, config)))

    def _add(self, scheduler: SchedulerSpec, name: str) -> EngineHost:
        host = EngineHost(
            scheduler.name,
            name,
            scheduler.kind,
            settings=self.settings,
            metrics=self.metrics,
            clock=self.clock,
            journal_bytes=self.settings.allowed(JOURNAL_BYTES),
            timed=scheduler.timed,
            bound=scheduler.bound,
            outside=self._outside(scheduler),
            journal=scheduler.journal,
            snapshot_every=scheduler.snapshot_every,
            incidents=scheduler.incidents,
        )
        self._hosts[scheduler.name][name] = host
        self._share_out(scheduler)
        return host

    def _share_out(self, scheduler: SchedulerSpec) -> None:
        share = scheduler.journal_bytes(len(self.known(scheduler.name)), self.settings)
        for host in self._hosts[scheduler.name].values():
            host.allow(share)

    async def _start(self, scheduler: SchedulerSpec, host: EngineHost, config: Json) -> None:
        assert self._data is not None
        # Demo engines have a built-in configuration, others have one in their journal.
        outdated = partial(_set_aside, self._data, host) if self.settings.demo and config is not None else None
        await host.open(self._disk(self._data.journal(scheduler.name, host.name)), config, outdated)
        if host.state is not State.READY:
            return
        if scheduler.name in self._stores:
            await self._stores[scheduler.name].engine_opened(host)
        if host.pace is not None:
            self._tasks.append(asyncio.create_task(_keep_time(host, host.pace)))
        if self.settings.demo and scheduler.demo and scheduler.demo.engine == host.name:
            self._tasks.append(asyncio.create_task(_feed(host, scheduler.demo)))

    def _outside(self, scheduler: SchedulerSpec) -> Outside | None:
        store = self._stores.get(scheduler.name)
        return scheduler.outside if store is None else store.outside

    def store(self, scheduler: str) -> Store:
        """The shared state of a scheduler."""
        return self._stores[scheduler]

    def service(self, scheduler: str) -> Service:
        """The service of a scheduler without engines."""
        return self._services[scheduler]

    async def replayed(self, look: Callable[[], A]) -> A:
        """Run a read that replays an engine; raises `PastBusy`, `ReadTooLong`."""
        return await self._past.replays.look(look)

    async def supposed(self, fetch: Callable[[], Awaitable[B]], suppose: Callable[[B], A]) -> A:
        """Run a what-if on the result of `fetch`, in a separate lane; raises as `replayed` does."""
        return await self._past.what_ifs.look_at(fetch, suppose)

    async def recorded(self, look: Callable[[], A]) -> A:
        """Run a read of records; raises `PastBusy`."""
        return await self._past.records.look(look)

    async def opened(self) -> None:
        """Wait until every engine and service has started."""
        while any(part.state is State.STARTING for part in self._parts()):
            await asyncio.sleep(0.005)

    def stop_streams(self) -> None:
        """End every stream after the events published so far; readers must reconnect."""
        self.streams.stopping = True
        for host in self.hosts():
            host.wake()
        for service in self._services.values():
            service.stop()

    async def close(self) -> None:
        """Flush and close every journal, then unlock the data directory."""
        self.stop_streams()
        await self._changing.acquire()
        await self.opened()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._past.close)
        await asyncio.gather(*(self._closed(f"{host.scheduler} {host.name}", host) for host in self.hosts()))
        await asyncio.gather(*(self._closed(f"store of {name}", store) for name, store in self._stores.items()))
        await asyncio.gather(*(self._closed(name, service) for name, service in self._services.items()))
        await asyncio.to_thread(self.streams.close)
        if self._data is not None:
            self._data.close()
        log.info("stopped")

    async def _closed(self, name: str, part: EngineHost | Store | Service) -> None:
        self.closing[name] = None
        await part.close()
        del self.closing[name]

    def hosts(self) -> Iterator[EngineHost]:
        for engines in self._hosts.values():
            yield from engines.values()

    def _parts(self, scheduler: str | None = None) -> list[EngineHost | Service]:
        """The engines and services of a scheduler, or of all."""
        found: list[EngineHost | Service] = [host for host in self.hosts() if scheduler in (None, host.scheduler)]
        return found + [service for name, service in self._services.items() if scheduler in (None, name)]

    def host(self, scheduler: str, engine: str) -> EngineHost:
        """The engine of that name; raises `NotFound`."""
        found = self._hosts[scheduler].get(engine)
        if found is None:
            closed = self._data is not None and NAME.fullmatch(engine) and self._data.is_shut(scheduler, engine)
            what = f"{engine!r} of the scheduler {scheduler} is closed; open it first" if closed else None
            raise NotFound(
                what or f"The scheduler {scheduler} has no engine {engine!r}",
                scheduler=scheduler,
                engine=engine,
                known=sorted(self._hosts[scheduler]),
            )
        return found

    async def make(self, scheduler: SchedulerSpec, name: str, beginning: Beginning) -> list[Ticket[Any]]:
        """Create an engine and serve it; returns the tickets of its first commands.

        Raises `EngineExists`, `TooManyEngines`, or the engine's refusal of its configuration.
        """
        async with self._changing:
            self.require_place(scheduler.name, name)
            place = self._place(scheduler.name, name)
            tickets = await asyncio.to_thread(
                make_engine,
                scheduler.kind,
                place,
                beginning,
                disk=self._disk,
                outside=self._outside(scheduler),
                min_free_bytes=self.settings.allowed(MIN_FREE_BYTES),
            )
            await self._start(scheduler, self._add(scheduler, name), None)
            return tickets

    def require_place(self, scheduler: str, name: str) -> None:
        """Raise `EngineExists` or `TooManyEngines`, before expensive preparations."""
        known, most = self.known(scheduler), self.settings.allowed(ENGINES)
        if name in known:
            raise EngineExists(
                f"The scheduler {scheduler} already has an engine {name!r}", scheduler=scheduler, engine=name
            )
        if len(known) >= most:
            raise TooManyEngines(
                f"The scheduler {scheduler} has {len(known)} engines, which is the limit",
                limit=ENGINES.name,
                allowed=most,
            )

    async def shut(self, scheduler: SchedulerSpec, name: str) -> None:
        """Close an engine and keep its journal; `reopen` opens it again, also after a restart. Does nothing if it is
        closed. Raises `NotFound`."""
        async with self._changing:
            if name not in self._hosts[scheduler.name] and name in self.known(scheduler.name):
                return
            host = self.host(scheduler.name, name)
            await self._remember(scheduler, name, shut=True)
            await self._shut(host)

    async def reopen(self, scheduler: SchedulerSpec, name: str) -> None:
        """Open a closed engine; does nothing if it is open. Raises `NotFound`."""
        async with self._changing:
            if name in self._hosts[scheduler.name]:
                return
            if name not in self.known(scheduler.name):
                self.host(scheduler.name, name)
            await self._remember(scheduler, name, shut=False)
            await self._start(scheduler, self._add(scheduler, name), None)

    async def _remember(self, scheduler: SchedulerSpec, name: str, *, shut: bool) -> None:
        assert self._data is not None
        await asyncio.to_thread(self._data.set_shut, scheduler.name, name, shut)

    async def remove(self, scheduler: SchedulerSpec, name: str) -> None:
        """Close an engine if open, and remove all its files. Raises `NotFound`."""
        async with self._changing:
            if name not in self.known(scheduler.name) or name in self._hosts[scheduler.name]:
                await self._shut(self.host(scheduler.name, name))
            await asyncio.to_thread(remove_engine, self._place(scheduler.name, name))
            self._share_out(scheduler)

    def known(self, scheduler: str) -> list[str]:
        """The engines of a scheduler, open or closed, sorted."""
        assert self._data is not None
        return sorted({*self._hosts[scheduler], *self._data.engines(scheduler)})

    async def _shut(self, host: EngineHost) -> None:
        while host.state is State.STARTING:
            await asyncio.sleep(0.005)
        del self._hosts[host.scheduler][host.name]
        await host.retire()
        if host.scheduler in self._stores:
            await self._stores[host.scheduler].engine_closed(host)

    def _place(self, scheduler: str, name: str) -> Path:
        assert self._data is not None
        return self._data.journal(scheduler, name)

    async def readiness(self) -> Readiness:
        found = {"tokens": self._tokens_failure()}
        found.update({f"{host.scheduler}/{host.name}": host.not_ready for host in self.hosts()})
        found.update({name: await service.not_ready() for name, service in self._services.items()})
        notes = {f"{host.scheduler}/{host.name}": host.tail_note for host in self.hosts()}
        checks = [Check(name, reason is None, reason, notes.get(name)) for name, reason in found.items()]
        well = all(check.ok for check in checks)
        return Readiness("ready" if well else "not_ready", checks, self.clock_state())

    def stores_without_file(self) -> list[str]:
        """The schedulers whose store file was removed or replaced while open."""
        services = self._services.items()
        return [name for name, service in services if isinstance(service, KeepsFile) and not service.is_file_there()]

    def clock_state(self) -> ClockState:
        """How far the time of the server, or of a store, is ahead of the system clock."""
        own = max(0, self.clock.now() - self.clock.machine())
        ahead = max([own, *(service.ahead() for service in self._services.values() if isinstance(service, KeepsTime))])
        return ClockState(ahead // SECOND, SLOWER * ahead // SECOND)

    def scheduler_list(self) -> SchedulerList:
        return SchedulerList(
            pendula.__version__, self.settings.demo, [self._scheduler_view(scheduler) for scheduler in self.schedulers]
        )

    def _scheduler_view(self, scheduler: SchedulerSpec) -> SchedulerView:
        hosts = list(self._hosts[scheduler.name].values())
        parts = self._parts(scheduler.name)
        failure = next((part.failure for part in parts if part.failure is not None), None)
        if failure is not None:
            state, reason = State.BROKEN, Reason(failure.code, failure.message)
        else:
            starting = any(part.state is State.STARTING for part in parts)
            state, reason = State.STARTING if starting else State.READY, None
        return SchedulerView(
            scheduler.name, scheduler.title, scheduler.sentence, state, reason, [host.view() for host in hosts]
        )

    def _wanted(self, scheduler: SchedulerSpec, data: DataDirectory) -> list[tuple[str, Json]]:
        configs = dict(scheduler.engines)
        if self.settings.demo and scheduler.demo is not None:
            configs.setdefault(scheduler.demo.engine, scheduler.demo.config)
        names = sorted({*configs, *data.engines(scheduler.name)})
        # An engine with a journal has its configuration there; a closed one stays closed.
        return [(name, configs.get(name)) for name in names if not data.is_shut(scheduler.name, name)]

    def _tokens_failure(self) -> str | None:
        try:
            self.tokens.list()
        except WorldBroken as error:
            return error.code
        return None


async def _watch(clock: WallClock, state: Callable[[], ClockState]) -> None:
    """Log when the system clock is set, and when the server's time is ahead of it."""
    was_ahead = False
    while True:
        jump = clock.check()
        if jump is not None:
            log.warning("clock_jumped", by_us=jump.by_us)
        found = state()
        is_ahead = found.ahead_sec > AHEAD_SEC
        if is_ahead and (jump is not None or not was_ahead):
            log.warning("time_is_ahead", ahead_sec=found.ahead_sec, half_speed_for_sec=found.agrees_in_sec)
        elif was_ahead and not is_ahead:
            log.info("time_agrees")
        was_ahead = is_ahead
        await asyncio.sleep(1)


async def _keep_time(host: EngineHost, pace: Pace) -> None:
    """Advance the engine whenever something is due, until it breaks or is closed; nothing is written in between."""
    while host.failure is None and await pace.due():
        try:
            await host.advance()
        except WorldBroken as error:
            # A command that cannot be recorded has not happened: time waits until it can be.
            log.warning(
                "time_stands", scheduler=host.scheduler, engine=host.name, code=error.code, problem=error.message
            )
            await asyncio.sleep(STANDS_SECONDS)
            pace.begin(host.driver.engine)


def _set_aside(data: DataDirectory, host: EngineHost, why: OtherDecisions) -> None:
    """Move the journal of a demo engine with other decisions away, so that the demo starts again. Other engines keep
    theirs and report it."""
    aside = data.aside(host.scheduler, host.name, why.recorded)
    set_engine_aside(data.journal(host.scheduler, host.name), aside)
    log.warning("demo_begun_anew", scheduler=host.scheduler, engine=host.name, problem=why.message, kept=str(aside))


async def _feed(host: EngineHost, demo: Demo) -> None:
    """Feed the demo engine until it breaks or the server stops."""
    while host.failure is None and not host.closed:
        try:
            command = await host.ask(lambda driver: demo.next_command(driver.engine, driver.commands))
            await host.submit(command, DEMO_CALLER, None)
        except WorldBroken as error:
            # Busy, or a full disk: temporary, and shown by readiness.
            log.warning(
                "demo_waits", scheduler=host.scheduler, engine=host.name, code=error.code, problem=error.message
            )
        except Exception:
            # A bug in the demo: log it, pause and continue.
            log.exception("demo_failed", scheduler=host.scheduler, engine=host.name)
        await asyncio.sleep(demo.pause_seconds)
