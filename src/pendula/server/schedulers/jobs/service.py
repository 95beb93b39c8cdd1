"""The scheduler while it is served: its store, the threads that call it, and the pulls that wait for a job.

Calls are made beside the event loop, many at a time, so that they share flushes. A pull that waits holds no thread: it
is asked again when something was written here, and when something came from elsewhere or became due.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import structlog
from msgspec.structs import replace

from pendula.jobs.calls import POLL_SECONDS, Answer, Body, Caller, Calls, Reply
from pendula.jobs.model import Durability, Policy, StorageBusy
from pendula.jobs.request_reading import Faults
from pendula.jobs.requests import Pull, read_pull
from pendula.jobs.scheduler import hold_clock
from pendula.jobs.store.protocol import Store
from pendula.jobs.store.sqlite import SqliteStore
from pendula.kernel.errors import PendulaError, WorldBroken
from pendula.kernel.limits import REQUESTS
from pendula.server.hosting.past import Lane
from pendula.server.hosting.readiness import ReadinessProbe
from pendula.server.hosting.scheduler_spec import Host
from pendula.server.schedulers.jobs.errors import RateLimited, ShuttingDown, StoreBusy, store_broken
from pendula.server.schedulers.jobs.metrics import Collector, JobMetrics
from pendula.server.schedulers.jobs.presence import Presence, PresenceWriter
from pendula.server.views import State

FILE = "jobs.db"
# As many calls can share one flush; a thread costs little while it waits for one.
CLERKS = 32
READING_THREADS = 8
AS_MANY = 4  # reads may wait as looks at the past may
REOPEN_SECONDS = 5.0  # between two tries to open a store that could not be opened

T = TypeVar("T")

log = structlog.get_logger("pendula.server")


class DurableStore(Store, Protocol):
    """A store that can say whether it takes what it is given, and keeps what it acknowledges."""

    def check_durable(self) -> None: ...

    def ahead_of(self, clock: Callable[[], int]) -> int: ...

    def check_writable(self) -> None: ...

    def is_file_there(self) -> bool: ...


class Upkeep(Protocol):
    """What goes on beside the calls: alerts, recurring jobs, retention. Both block no longer than a moment."""

    def start(self) -> None: ...

    def close(self) -> None: ...


OpenStore = Callable[[Path, Policy], DurableStore]


def open_sqlite(path: Path, policy: Policy) -> DurableStore:
    return SqliteStore(path, durability=Durability(policy.durability))


class Waiting:
    """One pull that waits for what it `asked`."""

    def __init__(self, asked: Pull) -> None:
        self.asked = asked
        self.woken = asyncio.Event()


class JobService:
    """The service of the scheduler `jobs`. `database` is a file elsewhere than in the server's own folder.

    With `tell_of_workers` the workers that pull here are written into the store, as others write themselves.
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
        tell_of_workers: bool = False,
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
        self._tell_of_workers = tell_of_workers
        self._upkeep: Sequence[Upkeep] = ()
        self._store: DurableStore | None = None
        self._calls: Calls | None = None
        self._failure: PendulaError | None = None
        self._stopping = False
        self._clerks = ThreadPoolExecutor(CLERKS, "pendula-jobs")
        # Pages read lists all the time, and most reads take milliseconds.
        self.reading = Lane.of("jobs-reads", host.settings, READING_THREADS, AS_MANY)
        self._probe = ReadinessProbe(self._look_at_store, slow=StorageBusy.code)
        self._waiting: dict[Waiting, None] = {}
        # Waiting must not take all places from those who bring work.
        self._most_waiting = max(1, host.settings.allowed(REQUESTS) // 2)
        self._watching: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[None] | None = None
        host.metrics.registry.register(Collector(self.counters, lambda: self._calls))

    # Opening and closing

    async def open(self, folder: Path) -> None:
        """Open the store in a thread: a migration may take its time. What cannot be opened now is tried again."""
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
            self._store = await asyncio.to_thread(self._opened, folder)
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

    def _opened(self, folder: Path) -> DurableStore:
        if self._database is not None:
            return self._open_store(self._database, self.policy)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._open_store(folder / FILE, self.policy)

    def _watchers(self, calls: Calls) -> list[Upkeep]:
        return [PresenceWriter(self.presence, calls)] if self._tell_of_workers else []

    def _fail(self, error: PendulaError) -> None:
        told = self._failure is not None and self._failure.message == error.message
        self._failure = error
        if told:
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
        await asyncio.to_thread(self._clerks.shutdown)
        await self._probe.close()
        if self._store is not None:
            self._calls = None
            await asyncio.to_thread(self._store.close)

    # Calls

    async def call(self, call: Callable[[Calls], Answer]) -> Answer:
        """What a call that changes something gives; who waits for a job looks again after it."""
        answer = await self.look(call)
        if isinstance(answer, Reply):
            self._wake()
        return answer

    async def look(self, call: Callable[[Calls], Answer]) -> Answer:
        """What a call gives, made by a thread; counted."""
        return await self.ask(lambda calls: self.counted(call(calls)))

    async def read(self, call: Callable[[Calls], T]) -> T:
        """What a read finds that can be large: in a lane of its own, so that no number of them holds up the workers.

        Raises `PastBusy`, `ReadTooLong`, and `ClientDisconnect` where the caller has left.
        """
        calls = self.calls
        return await self.reading.look(lambda: call(calls))

    def counted(self, answer: Answer) -> Answer:
        self.counters.observe(answer)
        return answer

    async def ask(self, question: Callable[[Calls], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._clerks, question, self.calls)

    @property
    def calls(self) -> Calls:
        """What answers; raises `StoreBroken`, `ShuttingDown` or `StoreBusy` while nothing does."""
        if self._failure is not None:
            raise store_broken(self._failure)
        if self._stopping:
            raise ShuttingDown("The server is stopping; nothing was changed")
        if self._calls is None:
            raise StoreBusy("The store of jobs is being opened; try again in a moment")
        return self._calls

    # Pulls

    async def pull(self, body: Body, caller: Caller, left: Callable[[], Awaitable[object]]) -> Answer:
        """Due jobs; with `wait_ms`, as soon as there are some. Whoever `left` meanwhile is given none."""
        asked = read_pull(body, self.policy, self._clock())
        if isinstance(asked, Faults):
            return await self.call(lambda calls: calls.pull(body, caller))
        self._saw(asked, None)
        answer = await self._pull(asked, body, caller, left)
        self._saw(asked, answer)
        return answer

    def _saw(self, asked: Pull, answer: Answer | None) -> None:
        """A worker asked, or was answered: it lives."""
        given: Any = answer.body["count"] if isinstance(answer, Reply) else 0
        words = self.policy.vocabulary
        self.presence.seen(asked, self._clock(), given, (words.object_types, words.actions))

    async def _pull(self, asked: Pull, body: Body, caller: Caller, left: Callable[[], Awaitable[object]]) -> Answer:
        if not asked.wait_ms:
            return await self.call(lambda calls: calls.pull(body, caller))
        at_once = {**body, "wait_ms": 0}
        end = asyncio.get_running_loop().time() + asked.wait_ms / 1000
        with self._place(asked) as place:
            gone = asyncio.ensure_future(left())
            gone.add_done_callback(lambda _: place.woken.set())
            try:
                while True:
                    place.woken.clear()
                    answer = await self.look(lambda calls: calls.pull(at_once, caller))
                    if not _empty(answer) or await self._time_is_up(place, end) or gone.done():
                        return answer
            finally:
                gone.cancel()

    @property
    def waiting(self) -> int:
        """How many pulls wait."""
        return len(self._waiting)

    @contextmanager
    def _place(self, asked: Pull) -> Iterator[Waiting]:
        if len(self._waiting) >= self._most_waiting:
            raise RateLimited(
                f"{len(self._waiting)} pulls are waiting, which is the limit; pull without wait_ms, or try again later",
                allowed=self._most_waiting,
            )
        place = Waiting(asked)
        self._waiting[place] = None
        if self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield place
        finally:
            del self._waiting[place]

    async def _time_is_up(self, place: Waiting, end: float) -> bool:
        """Wait until woken; whether the time was up before."""
        try:
            async with asyncio.timeout_at(end):
                await place.woken.wait()
        except TimeoutError:
            return True
        return False

    def _wake(self) -> None:
        for place in self._waiting:
            place.woken.set()

    async def _watch(self) -> None:
        """While anybody waits: one look for all who want the same, at what time or another process brought."""
        while self._waiting:
            await asyncio.sleep(POLL_SECONDS)
            wanted: dict[Pull, list[Waiting]] = {}
            for place in self._waiting:
                wanted.setdefault(_wish(place.asked), []).append(place)
            try:
                found = await self.ask(partial(_those_met, tuple(wanted)))
            except Exception:
                # Whoever waits asks for themselves, and hears what is wrong.
                found = list(wanted)
            for wish in found:
                for place in wanted[wish]:
                    place.woken.set()


def _those_met(wishes: Sequence[Pull], calls: Calls) -> list[Pull]:
    return [wish for wish in wishes if calls.anything_to_pull(wish)]


def _wish(asked: Pull) -> Pull:
    """What is asked, whoever asks for it: those who want the same need one look."""
    return replace(asked, worker_id="", limit=1, wait_ms=0, lease_us=None)


def _empty(answer: Answer) -> bool:
    return isinstance(answer, Reply) and not answer.body["count"] and not answer.body["reclaimed"]
