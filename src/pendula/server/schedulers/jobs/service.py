"""The served scheduler: its store, the threads that call it, and the pulls that wait for a job.

Calls run in threads, many at a time, so that they share flushes. A waiting pull holds no thread: it is repeated after a
write here, and when a job came from another process or became due.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import structlog
from msgspec.structs import replace

from pendula.jobs.calls import POLL_SECONDS, Answer, Body, Caller, Calls
from pendula.jobs.messages import Pull, Pulled
from pendula.jobs.model import Durability, Policy, Refused, StorageBusy
from pendula.jobs.presence import Presence, PresenceWriter
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.scheduler import hold_clock
from pendula.jobs.store.protocol import Store
from pendula.jobs.store.sqlite import SqliteStore
from pendula.kernel.errors import PendulaError, WorldBroken
from pendula.kernel.limits import REQUESTS
from pendula.server.runtime.past import Lane
from pendula.server.runtime.scheduler_spec import Host, ReadinessProbe
from pendula.server.schedulers.jobs.errors import RateLimited, ShuttingDown, StoreBusy, store_broken
from pendula.server.schedulers.jobs.metrics import Collector, JobMetrics
from pendula.server.views import State

FILE = "jobs.db"
# This many calls can share one flush; a waiting thread costs little.
STORE_THREADS = 32
READING_THREADS = 8
READS_AT_ONCE = 4
REOPEN_SECONDS = 5.0  # between two tries to open a store that could not be opened

T = TypeVar("T")
A = TypeVar("A", bound=Answer)

log = structlog.get_logger("pendula.server")


class DurableStore(Store, Protocol):
    """A store with checks of its durability, clock and file."""

    def check_durable(self) -> None: ...

    def ahead_of(self, clock: Callable[[], int]) -> int: ...

    def check_writable(self) -> None: ...

    def is_file_there(self) -> bool: ...


class Upkeep(Protocol):
    """A background service: alerts, recurring jobs, retention. Neither method may block for long."""

    def start(self) -> None: ...

    def close(self) -> None: ...


OpenStore = Callable[[Path, Policy], DurableStore]


def open_sqlite(path: Path, policy: Policy) -> DurableStore:
    return SqliteStore(path, durability=Durability(policy.durability))


class WaitingPull:
    """One pull that waits for a job."""

    def __init__(self, request: Pull) -> None:
        self.request = request
        self.woken = asyncio.Event()


class JobService:
    """The service of the scheduler `jobs`. `database` is a file outside the server's data directory.

    With `record_workers` the heartbeats of workers that pull here are written to the store.
    """

    def __init__(
        self,
        host: Host,
        policy: Policy,
        *,
        database: Path | None = None,
        clock: Callable[[], int] | None = None,
        open_store: OpenStore = open_sqlite,
        upkeep: Callable[[Calls], Sequence[Upkeep]] = lambda _: (),
        record_workers: bool = False,
    ) -> None:
        self.policy = policy
        self.counters = JobMetrics()
        self.presence = Presence()
        self._database = database
        self._clock = clock or host.clock.now
        self._holds_clock = clock is None
        self._machine = clock or host.clock.machine
        self._open_store = open_store
        self._make_upkeep = upkeep
        self._tell_of_workers = record_workers
        self._upkeep: Sequence[Upkeep] = ()
        self._store: DurableStore | None = None
        self._calls: Calls | None = None
        self._failure: PendulaError | None = None
        self._stopping = False
        self._store_threads = ThreadPoolExecutor(STORE_THREADS, "pendula-jobs")
        # Pages poll lists, and most reads take milliseconds.
        self.reading = Lane.of("jobs-reads", host.settings, READING_THREADS, READS_AT_ONCE)
        self._probe = ReadinessProbe(self._look_at_store, slow=StorageBusy.code)
        self._waiting: dict[WaitingPull, None] = {}
        # Waiting pulls must not use up the request limit, or no job could be enqueued.
        self._most_waiting = max(1, host.settings.allowed(REQUESTS) // 2)
        self._watching: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[None] | None = None
        host.metrics.registry.register(Collector(self.counters, lambda: self._calls))

    # Opening and closing

    async def open(self, folder: Path) -> None:
        """Open the store in a thread, because a migration can be slow; retry later if it fails."""
        if not await self._try_to_open(folder):
            self._opening = asyncio.get_running_loop().create_task(self._open_later(folder))

    async def _open_later(self, folder: Path) -> None:
        while not self._stopping:
            await asyncio.sleep(REOPEN_SECONDS)
            if await self._try_to_open(folder):
                log.info("store_opened", scheduler="jobs")
                return

    async def _try_to_open(self, folder: Path) -> bool:
        try:
            self._store = await asyncio.to_thread(self._open_file, folder)
            if isinstance(self._store, SqliteStore) and self._holds_clock:
                hold_clock(self._store, self.policy, self._clock)
            calls = Calls(self._store, self.policy, self._clock)
            self._upkeep = [*self._make_upkeep(calls), *self._watchers(calls)]
        except PendulaError as error:
            self._fail(error)
        except Exception as error:
            self._fail(WorldBroken(f"The store of jobs could not be opened: {type(error).__name__}: {error}"))
        else:
            for part in self._upkeep:
                part.start()
            self._calls = calls
            self._failure = None
        return self._calls is not None

    def _open_file(self, folder: Path) -> DurableStore:
        if self._database is not None:
            return self._open_store(self._database, self.policy)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._open_store(folder / FILE, self.policy)

    def _watchers(self, calls: Calls) -> list[Upkeep]:
        return [PresenceWriter(self.presence, calls)] if self._tell_of_workers else []

    def _fail(self, error: PendulaError) -> None:
        is_logged = self._failure is not None and self._failure.message == error.message
        self._failure = error
        if is_logged:
            return
        log.error("store_failed", scheduler="jobs", code=error.code, problem=error.message)

    @property
    def failure(self) -> PendulaError | None:
        return self._failure

    @property
    def state(self) -> State:
        if self._failure is not None:
            return State.BROKEN
        return State.STARTING if self._calls is None else State.READY

    async def not_ready(self) -> str | None:
        if self._failure is not None:
            return self._failure.code
        if self._store is None:
            return State.STARTING.value
        return await self._probe.trouble() or (ShuttingDown.code if self._stopping else None)

    def ahead(self) -> int:
        return 0 if self._store is None else self._store.ahead_of(self._machine)

    def is_file_there(self) -> bool:
        return self._store is None or self._store.is_file_there()

    def _look_at_store(self) -> None:
        assert self._store is not None
        self._store.check_writable()
        self._store.check_durable()

    def stop(self) -> None:
        self._stopping = True
        self._wake()

    async def close(self) -> None:
        """Finish the calls under way, then close the store."""
        self.stop()
        for task in (self._watching, self._opening):
            if task is not None:
                task.cancel()
        for part in self._upkeep:
            await asyncio.to_thread(part.close)
        await asyncio.to_thread(self.reading.close)
        await asyncio.to_thread(self._store_threads.shutdown)
        await self._probe.close()
        if self._store is not None:
            self._calls = None
            await asyncio.to_thread(self._store.close)

    # Calls

    async def call(self, call: Callable[[Calls], A]) -> A:
        """Make a call that changes something, then wake the waiting pulls."""
        answer = await self.look(call)
        if not isinstance(answer, Refused):
            self._wake()
        return answer

    async def look(self, call: Callable[[Calls], A]) -> A:
        """Make a call in a thread and count its answer."""
        return await self.ask(lambda calls: self.counted(call(calls)))

    async def read(self, call: Callable[[Calls], T]) -> T:
        """Make a read that can be large, in separate threads, so that reads never block workers.

        Raises `PastBusy`, `ReadTooLong`, and `ClientDisconnect` if the client has disconnected.
        """
        calls = self.calls
        return await self.reading.look(lambda: call(calls))

    def counted(self, answer: A) -> A:
        self.counters.observe(answer)
        return answer

    async def ask(self, question: Callable[[Calls], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._store_threads, question, self.calls)

    @property
    def calls(self) -> Calls:
        """The calls of the open store. Raises `StoreBroken`, `ShuttingDown` or `StoreBusy`."""
        if self._failure is not None:
            raise store_broken(self._failure)
        if self._stopping:
            raise ShuttingDown("The server is stopping; nothing was changed")
        if self._calls is None:
            raise StoreBusy("The store of jobs is being opened; retry in a moment")
        return self._calls

    # Pulls

    async def pull(self, body: Body, caller: Caller, left: Callable[[], Awaitable[object]]) -> Pulled | Refused:
        """Pull due jobs; with `wait_ms`, wait for one. `left` resolves when the client has disconnected."""
        request = read(Pull, body, self.policy, self.calls.clock())
        if isinstance(request, Faults):
            return self.counted(request.refusal())
        self._record_pull(request, 0)
        answer = await self._pull(request, caller, left)
        self._record_pull(request, answer.count)
        return answer

    def _record_pull(self, request: Pull, given: int) -> None:
        words = self.policy.vocabulary
        self.presence.seen(request, self._clock(), given, (words.object_types, words.actions))

    async def _pull(self, request: Pull, caller: Caller, left: Callable[[], Awaitable[object]]) -> Pulled:
        if not request.wait_ms:
            return await self.call(lambda calls: calls.deliver(request, caller))
        end = asyncio.get_running_loop().time() + request.wait_ms / 1000
        with self._waiting_place(request) as waiting_pull:
            gone = asyncio.ensure_future(left())
            gone.add_done_callback(lambda _: waiting_pull.woken.set())
            try:
                while True:
                    waiting_pull.woken.clear()
                    answer = await self.look(lambda calls: calls.deliver(request, caller, waits=False))
                    if answer.count or answer.reclaimed or await self._time_is_up(waiting_pull, end) or gone.done():
                        return answer
            finally:
                gone.cancel()

    @property
    def waiting(self) -> int:
        """The number of waiting pulls."""
        return len(self._waiting)

    @contextmanager
    def _waiting_place(self, request: Pull) -> Iterator[WaitingPull]:
        if len(self._waiting) >= self._most_waiting:
            raise RateLimited(
                f"{len(self._waiting)} pulls are waiting, which is the limit; pull without wait_ms, or retry later",
                allowed=self._most_waiting,
            )
        waiting_pull = WaitingPull(request)
        self._waiting[waiting_pull] = None
        if self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield waiting_pull
        finally:
            del self._waiting[waiting_pull]

    async def _time_is_up(self, waiting_pull: WaitingPull, end: float) -> bool:
        """Wait until woken; return whether the time ran out first."""
        try:
            async with asyncio.timeout_at(end):
                await waiting_pull.woken.wait()
        except TimeoutError:
            return True
        return False

    def _wake(self) -> None:
        for waiting_pull in self._waiting:
            waiting_pull.woken.set()

    async def _watch(self) -> None:
        """While pulls wait, look for jobs that became due or came from another process; equal filters share a look."""
        while self._waiting:
            await asyncio.sleep(POLL_SECONDS)
            by_filter: dict[Pull, list[WaitingPull]] = {}
            for waiting in self._waiting:
                by_filter.setdefault(_filter_key(waiting.request), []).append(waiting)
            try:
                satisfiable = await self.ask(partial(_satisfiable, tuple(by_filter)))
            except Exception:
                # Wake all: each pull then gets the error itself.
                satisfiable = list(by_filter)
            for key in satisfiable:
                for waiting in by_filter[key]:
                    waiting.woken.set()


def _satisfiable(requests: Sequence[Pull], calls: Calls) -> list[Pull]:
    return [request for request in requests if calls.anything_to_pull(request)]


def _filter_key(request: Pull) -> Pull:
    """The filter of a pull without its worker: pulls with equal filters share one check."""
    return replace(request, worker_id="", limit=1, wait_ms=0, lease_sec=None)
