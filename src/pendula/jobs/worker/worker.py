"""The worker: pulls due jobs, runs their handlers and reports how they ended, until it is stopped.

    worker = Worker(Scheduler.open("jobs.db"), load(["my.handlers"]), concurrency=4)
    worker.run(signals=True)

It waits in the pull: the store answers as soon as a job is due or enqueued or a lease runs out. If the store or server
is unreachable, the worker retries with growing pauses. A job whose lease cannot be confirmed is not started.
"""

import logging
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Protocol, Unpack, assert_never

from msgspec.structs import asdict

from pendula.jobs import decide, messages
from pendula.jobs.background import Bell, Gate
from pendula.jobs.hooks import GovernedCalls
from pendula.jobs.messages import Pulled
from pendula.jobs.model import Code, Status
from pendula.jobs.reaper import Reaper
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.scheduler_calls import AckMembers, FailMembers, PullMembers, ReleaseMembers
from pendula.jobs.store.protocol import FilesClosed
from pendula.jobs.worker import effects
from pendula.jobs.worker.delivery import (
    Acked,
    Delivery,
    DeliveryReport,
    Dropped,
    Ending,
    Failed,
    Finished,
    HandlerRunner,
    Settled,
    Step,
    Unhandled,
    begin_step,
    delivery_steps,
    governed_objects,
    governed_types,
    run_steps,
)
from pendula.jobs.worker.handlers import Context, Effect, Handlers
from pendula.jobs.worker.heartbeats import Heartbeats, Tally, WorkerCounts, WorkerInfo, filter_works, generate_worker_id
from pendula.jobs.worker.leases import LEASE_CODES, Lease, Leases, Renewer, describe_leases, is_rate_limit
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused, WorldBroken, WrongUsage
from pendula.kernel.time import parse_utc
from pendula.kernel.wallclock import steady_us

log = logging.getLogger("pendula.jobs.worker")

INTERVAL_SEC = 5.0
INTERVAL_LEAST_SEC, INTERVAL_MOST_SEC = 0.05, 3600.0
GRACE_SEC = 30.0
LEASE_SEC = 60  # short, so that the jobs of a dead worker return soon; renewed while the handler runs
# The longest sleep of the main thread: a signal delivered to another thread is handled only when the main thread wakes.
SLICE_SEC = 0.5
FIRST_PAUSE_SEC, LONGEST_PAUSE_SEC = 1.0, 60.0
STOP_LOG_SEC = 5.0  # between two log lines about handlers that delay a stop


class EndCalls(Protocol):
    """The calls that end a job."""

    def ack(self, job_id: str, **members: Unpack[AckMembers]) -> messages.Acked: ...

    def fail(self, job_id: str, **members: Unpack[FailMembers]) -> messages.Failed: ...

    def release(self, job_id: str, **members: Unpack[ReleaseMembers]) -> messages.OneJob: ...


class Client(EndCalls, Renewer, Protocol):
    """The calls of a worker on a scheduler: `Scheduler` in this process, or the client of a server.

    A rejected call raises `InputRefused` (`JobRefused`); `WorldBroken` means that the store or server cannot be reached
    now.
    """

    def pull(self, **members: Unpack[PullMembers]) -> Pulled: ...


class Worker:
    """Runs at most `concurrency` jobs at a time and holds at most `batch` more that wait for a free handler.

    It pulls only jobs that it has handlers for.

    With `govern` it also settles decay and archive jobs of governed objects: of all types that have a state machine, or
    of the types named.

    A lease lasts `lease_sec` seconds (default 60) and is renewed while its handler runs.

    `wake_up=False` polls every `interval_sec` instead of waiting in the pull. `once` makes one round, `max_jobs` stops
    after that many jobs. `gates` and `budget` are further steps before a handler. `pauses` are the first and the
    longest retry delay, in seconds, while the store is unreachable.
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
        runner: HandlerRunner | None = None,
        pauses: tuple[float, float] = (FIRST_PAUSE_SEC, LONGEST_PAUSE_SEC),
    ) -> None:
        _check(concurrency, batch, interval_sec, max_jobs)
        handlers = _checked_handlers(client, handlers.with_settled(governed_types(client, handlers, govern)))
        self.client = client
        self.handlers = handlers
        self.worker_id = worker_id or generate_worker_id()
        self.concurrency = concurrency
        self.tally = Tally()
        self._batch = batch
        self._interval = interval_sec
        self._wake_up = wake_up
        self._grace = grace_sec
        self._once = once
        self._max_jobs = max_jobs
        self._pull_members = PullMembers(
            worker_id=self.worker_id,
            pairs=[list(work) for work in handlers.works],  # leaves other jobs to other workers
            queues=list(queues) or None,
            object_types=list(object_types) or None,
            actions=list(actions) or None,
            lease_sec=lease_sec or _usual_lease(client),
        )
        objects = governed_objects(client, handlers)
        begin = () if objects is None else (begin_step(objects, self._wait_to_retry),)
        self._steps = delivery_steps(gates, (*budget, *begin))
        self._ticks = ticks
        self._pauses = pauses
        self._leases = Leases(ticks)
        self._runner = runner or HandlerRunner()
        self._reporter = EndReporter(client, self._wait_to_retry, objects)
        self._bell = Bell()
        self._lock = threading.Lock()
        self._waiting: deque[Lease] = deque()
        self._running: dict[str, Lease] = {}
        self._threads = 0
        self._rounds = 0
        self._stopping = False
        self._immediate = False
        self._given_up = Gate()
        works = filter_works(handlers.works, object_types, actions)
        about = WorkerInfo(self.worker_id, concurrency, works, tuple(queues))
        self._heartbeats = Heartbeats(client.calls, about, self._count) if isinstance(client, Scheduler) else None

    def stop(self) -> None:
        """Take no new jobs; `run` returns when the handlers are done, or after `grace_sec`. Signal-safe."""
        self._stopping = True
        self._bell.ring()

    def run(self, *, signals: bool = False) -> Tally:
        """Work until done or stopped. With `signals`, SIGTERM and SIGINT stop it, and a second one exits at once.

        Raises only errors of the worker itself, never those of a job.
        """
        with self._signals_handled(signals):
            self._leases.start()
            reaper = self._reaper()
            if self._heartbeats is not None:
                self._heartbeats.start()
            try:
                lost = 0
                while not self._is_done():
                    lost = self._round(lost)
                self._wait_for_handlers(None)
            finally:
                if reaper is not None:
                    reaper.close(SLICE_SEC)
                self._wind_up()
        return self.tally

    def _reaper(self) -> Reaper | None:
        """Returns expired jobs of other workers while all handlers are busy and this worker does not pull. A server has
        its own."""
        if self._once or not isinstance(self.client, Scheduler):
            return None
        reaper = Reaper(self.client.calls)
        reaper.start()
        return reaper

    # The loop

    def _is_done(self) -> bool:
        if self._stopping or (self._once and self._rounds):
            return True
        return self._max_jobs is not None and self.tally.taken >= self._max_jobs

    def _round(self, lost: int) -> int:
        """Pull once and start the jobs; return how many times in a row the store could not be reached."""
        capacity = self._capacity()
        if capacity == 0:
            self._bell.wait(SLICE_SEC)
            return lost
        try:
            taken = self._pull(capacity)
        except (WorldBroken, InputRefused) as trouble:
            if (
                self._once
                or isinstance(trouble, FilesClosed)
                or (isinstance(trouble, InputRefused) and not is_rate_limit(trouble))
            ):
                raise
            pause = self._pause(lost + 1)
            log.warning("no jobs can be pulled now; retry in %s s: %s", pause, trouble)
            self._sleep(pause)
            return lost + 1
        self._rounds += 1
        if taken < capacity and not self._wake_up and not self._is_done():
            self._sleep(self._interval)
        return 0

    def _capacity(self) -> int:
        """How many more jobs may be held."""
        with self._lock:
            capacity = self.concurrency + self._batch - len(self._waiting) - len(self._running)
        return capacity if self._max_jobs is None else min(capacity, self._max_jobs - self.tally.taken)

    def _pull(self, limit: int) -> int:
        members = self._pull_members.copy()
        members["limit"] = limit
        if self._wake_up and not self._once:
            members["wait_ms"] = round(min(self._interval, SLICE_SEC) * 1000)
        requested_at = self._ticks()
        reply = self.client.pull(**members)
        granted = parse_utc(reply.now)
        for job in reply.jobs:
            self._take(Lease(self.client, self.worker_id, job, granted, requested_at, self._ticks))
        return len(reply.jobs)

    def _pause(self, times: int) -> float:
        first, longest = self._pauses
        return float(min(first * 2 ** min(times - 1, 16), longest))

    def _sleep(self, seconds: float) -> None:
        """Sleep until the time has passed or the worker is stopped."""
        deadline = monotonic() + seconds
        while not self._stopping and (left := deadline - monotonic()) > 0:
            self._bell.wait(min(left, SLICE_SEC))

    def _wait_to_retry(self, times: int) -> bool:
        return not self._given_up.wait(self._pause(times))

    # The handlers

    def _take(self, lease: Lease) -> None:
        self._leases.hold(lease)
        self.tally.taken += 1
        with self._lock:
            self._waiting.append(lease)
            if self._threads >= self.concurrency:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="pendula-jobs-handler", daemon=True).start()

    def _work(self) -> None:
        """Run waiting jobs one after another until none is left."""
        while (lease := self._next()) is not None:
            try:
                self._finish(lease, self._reporter.report(lease, self._execute(lease)))
            except BaseException:
                log.exception("the worker could not finish %s; its lease runs out", lease.job_id)
                self._finish(lease, Dropped("worker_trouble"))

    def _next(self) -> Lease | None:
        with self._lock:
            if self._stopping or not self._waiting:
                self._threads -= 1
                lease = None
            else:
                lease = self._waiting.popleft()
                self._running[lease.proof["lease_token"]] = lease
        self._bell.ring()
        return lease

    def _execute(self, lease: Lease) -> Ending:
        context = Context(lease, self._effects(lease))
        return run_steps(Delivery(lease, self.handlers, context, self._runner), self._steps)

    def _effects(self, lease: Lease) -> Callable[[Effect], Json] | None:
        client = self.client
        return (lambda effect: effects.once(client.calls, lease.job, effect)) if isinstance(client, Scheduler) else None

    def _finish(self, lease: Lease, ending: Ending) -> None:
        self._leases.let_go(lease)
        with self._lock:
            self._running.pop(lease.proof["lease_token"], None)
            field = tally_field(ending)
            setattr(self.tally, field, getattr(self.tally, field) + 1)
        self._bell.ring()

    def _count(self) -> WorkerCounts:
        with self._lock:
            return WorkerCounts(running=len(self._running), **asdict(self.tally))

    # The end

    def _wind_up(self) -> None:
        if self._immediate:
            return
        self._stopping = True
        self._release_waiting()
        self._wait_for_handlers(self._grace, log_running=True)
        self._given_up.open()
        with self._lock:
            left = list(self._running.values())
        for lease in left:
            log.warning("%s is not finished; its lease runs out", lease.job_id)
            lease.lose("worker_stopped")
        self._leases.close()
        self._runner.close()
        if self._heartbeats is not None:
            self._heartbeats.close()

    def _release_waiting(self) -> None:
        """Release the jobs that were not started; where that fails their leases run out."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
        for lease in waiting:
            self._leases.let_go(lease)
            try:
                self.client.release(lease.job_id, **lease.proof)
                self.tally.released += 1
            except (WorldBroken, InputRefused) as trouble:
                log.warning("%s cannot be released: %s", lease.job_id, trouble)

    def _wait_for_handlers(self, seconds: float | None, *, log_running: bool = False) -> None:
        """Wait until no job is left, at most `seconds`; without a limit until the worker is stopped.

        With `log_running` the log names the running handlers every few seconds.
        """
        deadline = None if seconds is None else monotonic() + seconds
        logged_at: float | None = None
        while True:
            with self._lock:
                running = list(self._running.values())
                if not running and not self._waiting and not self._threads:
                    return
            if deadline is None and self._stopping:
                return
            left = SLICE_SEC if deadline is None else deadline - monotonic()
            if left <= 0:
                return
            if log_running and running and (logged_at is None or monotonic() - logged_at >= STOP_LOG_SEC):
                logged_at = monotonic()
                log.warning("stopping: waiting at most %.0f s for %s", left, describe_leases(running))
            self._bell.wait(min(left, SLICE_SEC))

    @contextmanager
    def _signals_handled(self, enabled: bool) -> Iterator[None]:
        if not enabled:
            yield
            return

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            if self._stopping:
                self._immediate = True
                raise KeyboardInterrupt
            self.stop()

        before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _usual_lease(client: Client) -> int:
    """The default length of a lease, in seconds; never more than the default of the store."""
    return min(LEASE_SEC, client.calls.policy.lease_sec) if isinstance(client, Scheduler) else LEASE_SEC


def _checked_handlers(client: Client, handlers: Handlers) -> Handlers:
    if not handlers.works:
        raise WrongUsage("A worker needs at least one handler: mark functions with @handler or @verifier")
    if isinstance(client, Scheduler):
        handlers.check_vocabulary(client.calls.policy.vocabulary)
    return handlers


def _check(concurrency: int, batch: int, interval_sec: float, max_jobs: int | None) -> None:
    if concurrency < 1 or batch < 0 or (max_jobs is not None and max_jobs < 1):
        raise WrongUsage("concurrency and max_jobs must be at least 1, batch at least 0")
    if not INTERVAL_LEAST_SEC <= interval_sec <= INTERVAL_MOST_SEC:
        raise WrongUsage(f"interval_sec must be {INTERVAL_LEAST_SEC} to {INTERVAL_MOST_SEC:g}, not {interval_sec}")


class EndReporter:
    def __init__(self, client: EndCalls, wait: Callable[[int], bool], objects: GovernedCalls | None = None) -> None:
        """`wait(n)` waits before retry n and returns False to give up."""
        self._client = client
        self._wait = wait
        self._objects = objects

    def report(self, lease: Lease, ending: Ending) -> Ending:
        """Report the ending and return the actual one: `Dropped` if the store did not accept it."""
        tries = 0
        lease.reporting = True
        while True:
            if isinstance(ending, DeliveryReport):
                return ending
            if isinstance(ending, Dropped):
                log.warning("the result of %s is discarded: %s", lease.job_id, ending.reason)
                return ending
            try:
                if isinstance(ending, Finished | Settled):
                    return self._govern(lease, ending)
                return self._send(lease, ending)
            except FilesClosed as trouble:
                log.error("the end of %s cannot be reported: %s", lease.job_id, trouble)
                ending = Dropped("store_lost")
                continue
            except WorldBroken as trouble:
                log.warning("the end of %s cannot be reported now: %s", lease.job_id, trouble)
            except InputRefused as refused:
                if not is_rate_limit(refused):
                    ending = _ending_after_rejection(ending, refused)
                    continue
            tries += 1
            if lease.lost is not None or not self._wait(tries):
                ending = Dropped(lease.lost or "store_lost")

    def _send(self, lease: Lease, ending: Acked | Failed | Unhandled) -> Ending:
        match ending:
            case Acked():
                acked: AckMembers = {**ending.members, **lease.proof}
                reply = self._client.ack(lease.job_id, **acked)
                if (job := reply.job).status != Status.SUCCEEDED:
                    # A gate of the governed object changed meanwhile.
                    log.warning("%s was executed and is %s: %s", lease.job_id, job.status, job.last_error)
                    return DeliveryReport(job.status, job.outcome)
                if ending.follows and not reply.already_acked and reply.followup_job_id is None:
                    log.error("%s does not run again: auto_followup is off", lease.job_id)
            case Failed():
                failed: FailMembers = {**ending.members, **lease.proof}
                self._client.fail(lease.job_id, **failed)
            case Unhandled():
                log.warning("%s is released: this worker has no handler for it", lease.job_id)
                self._client.release(lease.job_id, **lease.proof)
            case _:
                assert_never(ending)
        return ending

    def _govern(self, lease: Lease, ending: Finished | Settled) -> DeliveryReport:
        """End the job and change its object in one call."""
        assert self._objects is not None
        if isinstance(ending, Finished):
            reply = self._objects.finish(lease.job_id, **lease.proof, **ending.members)
        else:
            reply = self._objects.settle(lease.job_id, **lease.proof)
        return DeliveryReport(reply["job"]["status"], reply.get("outcome"))


def tally_field(ending: Ending) -> str:
    """The field of `Tally` that counts this ending."""
    match ending:
        case Acked() | DeliveryReport(status=Status.SUCCEEDED):
            return "succeeded"
        case Unhandled() | DeliveryReport(outcome=decide.OUTCOME_DEFERRED):
            return "released"
        case Dropped():
            return "dropped"
        case _:
            return "failed"


def _ending_after_rejection(ending: Acked | Failed | Unhandled | Finished | Settled, refused: InputRefused) -> Ending:
    """The ending to report after the store has rejected one: a failure, or nothing if the lease is lost."""
    if refused.code in LEASE_CODES:
        return Dropped(refused.code)
    if refused.code == Code.OBJECT_NOT_FOUND and isinstance(ending, Finished | Settled):
        return Failed({"error": f"{refused.code}: {refused.message}", "retryable": False})
    if isinstance(ending, Acked | Finished | Settled):
        return Failed({"error": f"the answer of the handler was rejected: {refused.code}: {refused.message}"})
    if isinstance(ending, Failed) and "retry_delay_sec" in ending.members:
        members = ending.members.copy()
        del members["retry_delay_sec"]
        return Failed(members)
    return Dropped(refused.code)
