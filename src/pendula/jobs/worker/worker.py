"""The worker: takes due jobs, runs their handlers, tells how they ended, and does so until it is told to stop.

    worker = Worker(Scheduler.open("jobs.db"), load(["my.handlers"]), concurrency=4)
    worker.run(signals=True)

It waits in the pull: the store answers as soon as a job is due, somebody enqueues one, or a lease runs out. A store or
a server that is lost is waited for with growing pauses; a job whose lease cannot be confirmed is not begun.
"""

import logging
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Any, Protocol

from msgspec.structs import asdict

from pendula.jobs.background import Bell, Gate
from pendula.jobs.reaper import Reaper
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.protocol import FilesClosed
from pendula.jobs.worker import effects
from pendula.jobs.worker.delivery import (
    Calling,
    Delivery,
    Dropped,
    Ending,
    Step,
    carried_out,
    in_order,
)
from pendula.jobs.worker.governing import entering, objects_of, types_governed
from pendula.jobs.worker.handlers import Context, Effect, Handlers
from pendula.jobs.worker.leases import Held, Leases, is_rate_limit, named
from pendula.jobs.worker.reporting import EndReporter, counted_as
from pendula.jobs.worker.signs import About, Counted, Signs, Tally, own_name, works_among
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused, WorldBroken, WrongUsage
from pendula.kernel.time import parse_utc
from pendula.kernel.wallclock import steady_us

log = logging.getLogger("pendula.jobs.worker")

INTERVAL_SEC = 5.0
INTERVAL_LEAST_SEC, INTERVAL_MOST_SEC = 0.05, 3600.0
GRACE_SEC = 30.0
LEASE_SEC = 60  # renewed as long as the handler runs, so that the jobs of a worker that died come back soon
# How long the main thread sleeps at most in one go. A signal that the system hands to another thread is heard only when
# the main thread wakes up.
SLICE_SEC = 0.5
FIRST_PAUSE_SEC, LONGEST_PAUSE_SEC = 1.0, 60.0
TELL_SEC = 5.0  # between two words about what a stop waits for


class Client(Protocol):
    """A scheduler as a worker sees it: `Scheduler` in this process, or one that talks to a server.

    The members and replies are those of HTTP. What is refused raises `InputRefused` (`JobRefused`); `WorldBroken` means
    that store or server cannot be reached now.
    """

    def pull(self, **members: Any) -> dict[str, Any]: ...

    def ack(self, job_id: str, **members: Any) -> dict[str, Any]: ...

    def fail(self, job_id: str, **members: Any) -> dict[str, Any]: ...

    def renew(self, job_id: str, **members: Any) -> dict[str, Any]: ...

    def release(self, job_id: str, **members: Any) -> dict[str, Any]: ...


class Worker:
    """Holds at most `concurrency` jobs with a handler at work and `batch` more that wait for one.

    Only jobs that it has handlers for are taken; others stay where they are, for a worker that has.

    `govern` also takes the decay and the archive of governed objects, which these decide by themselves: of all types
    that have a state machine, or of those that are named.

    A lease is of `lease_sec` seconds, 60 where none are named, and is renewed while its handler runs.

    `wake_up=False` looks for due jobs every `interval_sec` only. `once` does one round, `max_jobs` ends after so many
    jobs. `gates` and `budget` are further steps before a handler. `pauses` are the first and the longest one, in
    seconds, while the store is lost.
    """

    def __init__(
        self,
        client: Client,
        handlers: Handlers,
        *,
        worker_id: str | None = None,
        concurrency: int = 1,
        batch: int = 0,
        interval_sec: float = INTERVAL_SEC,
        wake_up: bool = True,
        lease_sec: int | None = None,
        grace_sec: float = GRACE_SEC,
        once: bool = False,
        max_jobs: int | None = None,
        queues: Sequence[str] = (),
        object_types: Sequence[str] = (),
        actions: Sequence[str] = (),
        govern: bool | Sequence[str] = False,
        gates: Sequence[Step] = (),
        budget: Sequence[Step] = (),
        ticks: Callable[[], int] = steady_us,
        calling: Calling | None = None,
        pauses: tuple[float, float] = (FIRST_PAUSE_SEC, LONGEST_PAUSE_SEC),
    ) -> None:
        _check(concurrency, batch, interval_sec, max_jobs)
        handlers = _usable(client, handlers.governing(types_governed(client, handlers, govern)))
        self.client = client
        self.handlers = handlers
        self.worker_id = worker_id or own_name()
        self.concurrency = concurrency
        self.tally = Tally()
        self._batch = batch
        self._interval = interval_sec
        self._wake_up = wake_up
        self._grace = grace_sec
        self._once = once
        self._max_jobs = max_jobs
        wanted = {"queues": list(queues), "object_types": list(object_types), "actions": list(actions)}
        self._asked = _asked(self.worker_id, wanted, handlers.works, lease_sec or _usual_lease(client))
        objects = objects_of(client, handlers)
        begin = () if objects is None else (entering(objects, self._rest_in_thread),)
        self._steps = in_order(gates, (*budget, *begin))
        self._ticks = ticks
        self._pauses = pauses
        self._leases = Leases(ticks)
        self._calling = calling or Calling()
        self._reporter = EndReporter(client, self._rest_in_thread, objects)
        self._bell = Bell()
        self._lock = threading.Lock()
        self._waiting: deque[Held] = deque()
        self._running: dict[str, Held] = {}
        self._threads = 0
        self._rounds = 0
        self._stopping = False
        self._at_once = False
        self._given_up = Gate()
        works = works_among(handlers.works, object_types, actions)
        about = About(self.worker_id, concurrency, works, tuple(queues))
        self._signs = Signs(client.calls, about, self._counted) if isinstance(client, Scheduler) else None

    def stop(self) -> None:
        """No new jobs; `run` returns when the handlers are done, or after the grace. A signal handler may call it."""
        self._stopping = True
        self._bell.ring()

    def run(self, *, signals: bool = False) -> Tally:
        """Work until told to stop. With `signals` SIGTERM and SIGINT do that, and a second one ends it at once.

        Raises what keeps the worker itself from working; what becomes of a job never does.
        """
        with self._listening(signals):
            self._leases.start()
            reaper = self._reaper()
            if self._signs is not None:
                self._signs.start()
            try:
                lost = 0
                while not self._enough():
                    lost = self._round(lost)
                self._wait_for_handlers(None)
            finally:
                if reaper is not None:
                    reaper.close(SLICE_SEC)
                self._wind_up()
        return self.tally

    def _reaper(self) -> Reaper | None:
        """While all handlers are at work nobody pulls: what other workers lost still comes back. A server does that."""
        if self._once or not isinstance(self.client, Scheduler):
            return None
        reaper = Reaper(self.client.calls)
        reaper.start()
        return reaper

    # The loop

    def _enough(self) -> bool:
        if self._stopping or (self._once and self._rounds):
            return True
        return self._max_jobs is not None and self.tally.taken >= self._max_jobs

    def _round(self, lost: int) -> int:
        """One pull, and what came of it is begun; how many times in a row the store could not be reached."""
        scheduler = self._scheduler()
        if scheduler == 0:
            self._bell.wait(SLICE_SEC)
            return lost
        try:
            taken = self._pull(scheduler)
        except (WorldBroken, InputRefused) as trouble:
            if (
                self._once
                or isinstance(trouble, FilesClosed)
                or (isinstance(trouble, InputRefused) and not is_rate_limit(trouble))
            ):
                raise
            pause = self._pause(lost + 1)
            log.warning("no jobs can be taken now; again in %s s: %s", pause, trouble)
            self._rest(pause)
            return lost + 1
        self._rounds += 1
        if taken < scheduler and not self._wake_up and not self._enough():
            self._rest(self._interval)
        return 0

    def _scheduler(self) -> int:
        """How many more jobs may be held."""
        with self._lock:
            scheduler = self.concurrency + self._batch - len(self._waiting) - len(self._running)
        return scheduler if self._max_jobs is None else min(scheduler, self._max_jobs - self.tally.taken)

    def _pull(self, limit: int) -> int:
        members = {**self._asked, "limit": limit}
        if self._wake_up and not self._once:
            members["wait_ms"] = round(min(self._interval, SLICE_SEC) * 1000)
        asked_at = self._ticks()
        reply = self.client.pull(**members)
        granted = parse_utc(reply["now"])
        for job in reply["jobs"]:
            self._take(Held(self.client, self.worker_id, job, granted, asked_at, self._ticks))
        return len(reply["jobs"])

    def _pause(self, times: int) -> float:
        first, longest = self._pauses
        return float(min(first * 2 ** min(times - 1, 16), longest))

    def _rest(self, seconds: float) -> None:
        """Sleep, unless told to stop."""
        until = monotonic() + seconds
        while not self._stopping and (left := until - monotonic()) > 0:
            self._bell.wait(min(left, SLICE_SEC))

    def _rest_in_thread(self, times: int) -> bool:
        return not self._given_up.wait(self._pause(times))

    # The handlers

    def _take(self, held: Held) -> None:
        self._leases.hold(held)
        self.tally.taken += 1
        with self._lock:
            self._waiting.append(held)
            if self._threads >= self.concurrency:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="pendula-jobs-handler", daemon=True).start()

    def _work(self) -> None:
        """One job after the other, as long as some wait."""
        while (held := self._next()) is not None:
            try:
                self._finish(held, self._reporter.report(held, self._executed(held)))
            except BaseException:
                log.exception("the worker could not finish %s; its lease runs out", held.job_id)
                self._finish(held, Dropped("worker_trouble"))

    def _next(self) -> Held | None:
        with self._lock:
            if self._stopping or not self._waiting:
                self._threads -= 1
                held = None
            else:
                held = self._waiting.popleft()
                self._running[held.proof["lease_token"]] = held
        self._bell.ring()
        return held

    def _executed(self, held: Held) -> Ending:
        context = Context(held, self._effects(held))
        return carried_out(Delivery(held, self.handlers, context, self._calling), self._steps)

    def _effects(self, held: Held) -> Callable[[Effect], Json] | None:
        client = self.client
        return (lambda effect: effects.once(client.calls, held.job, effect)) if isinstance(client, Scheduler) else None

    def _finish(self, held: Held, ending: Ending) -> None:
        self._leases.let_go(held)
        with self._lock:
            self._running.pop(held.proof["lease_token"], None)
            word = counted_as(ending)
            setattr(self.tally, word, getattr(self.tally, word) + 1)
        self._bell.ring()

    def _counted(self) -> Counted:
        with self._lock:
            return Counted(running=len(self._running), **asdict(self.tally))

    # The end

    def _wind_up(self) -> None:
        if self._at_once:
            return
        self._stopping = True
        self._release_waiting()
        self._wait_for_handlers(self._grace, tell=True)
        self._given_up.open()
        with self._lock:
            left = list(self._running.values())
        for held in left:
            log.warning("%s is not finished; its lease runs out", held.job_id)
            held.lose("worker_stopped")
        self._leases.close()
        self._calling.close()
        if self._signs is not None:
            self._signs.close()

    def _release_waiting(self) -> None:
        """Hand back what was not begun; where that is impossible the leases run out."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
        for held in waiting:
            self._leases.let_go(held)
            try:
                self.client.release(held.job_id, **held.proof)
                self.tally.released += 1
            except (WorldBroken, InputRefused) as trouble:
                log.warning("%s cannot be handed back: %s", held.job_id, trouble)

    def _wait_for_handlers(self, seconds: float | None, *, tell: bool = False) -> None:
        """Until all is done; with a number of seconds no longer than these, without one until told to stop.

        With `tell` the log says every few seconds what is waited for.
        """
        until = None if seconds is None else monotonic() + seconds
        told_at: float | None = None
        while True:
            with self._lock:
                running = list(self._running.values())
                if not running and not self._waiting and not self._threads:
                    return
            if until is None and self._stopping:
                return
            left = SLICE_SEC if until is None else until - monotonic()
            if left <= 0:
                return
            if tell and running and (told_at is None or monotonic() - told_at >= TELL_SEC):
                told_at = monotonic()
                log.warning("stopping: waits at most %.0f s for %s", left, named(running))
            self._bell.wait(min(left, SLICE_SEC))

    @contextmanager
    def _listening(self, wanted: bool) -> Iterator[None]:
        if not wanted:
            yield
            return

        def heard(_number: int, _frame: FrameType | None) -> None:
            if self._stopping:
                self._at_once = True
                raise KeyboardInterrupt
            self.stop()

        before = {number: signal.signal(number, heard) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _asked(
    worker_id: str, wanted: Mapping[str, list[str]], works: Iterable[tuple[str, str]], lease_sec: int
) -> dict[str, Any]:
    """What every pull of a worker asks for."""
    # What others handle is left to them: a job without a handler here waits for a worker that has one.
    asked: dict[str, Any] = {"worker_id": worker_id, "pairs": [list(work) for work in works]}
    asked.update({name: words for name, words in wanted.items() if words})
    asked["lease_sec"] = lease_sec
    return asked


def _usual_lease(client: Client) -> int:
    """Seconds of a lease where none are named; never more than a pull that names none gets."""
    return min(LEASE_SEC, client.calls.policy.lease_sec) if isinstance(client, Scheduler) else LEASE_SEC


def _usable(client: Client, handlers: Handlers) -> Handlers:
    if not handlers.works:
        raise WrongUsage("A worker needs at least one handler: mark functions with @handler or @verifier")
    if isinstance(client, Scheduler):
        handlers.check_words(client.calls.policy.vocabulary)
    return handlers


def _check(concurrency: int, batch: int, interval_sec: float, max_jobs: int | None) -> None:
    if concurrency < 1 or batch < 0 or (max_jobs is not None and max_jobs < 1):
        raise WrongUsage("concurrency and max_jobs are at least 1, batch at least 0")
    if not INTERVAL_LEAST_SEC <= interval_sec <= INTERVAL_MOST_SEC:
        raise WrongUsage(f"The interval is {INTERVAL_LEAST_SEC} to {INTERVAL_MOST_SEC:g} seconds, not {interval_sec}")
