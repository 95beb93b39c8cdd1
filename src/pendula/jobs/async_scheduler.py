"""The scheduler for an event loop: the calls of `Scheduler` as coroutines, none of which blocks the loop.

Calls run in a few threads; a waiting pull on a store holds no thread, on a server one of a second set. Cancelling a
caller does not undo a running call, but the jobs of a cancelled pull are released.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial, update_wrapper
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from pendula.jobs.calls import POLL_SECONDS
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.messages import RELEASE, WAIT_MOST_MS, Pulled
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.scheduler_calls import PullMembers, SchedulerCalls
from pendula.kernel.errors import InputRefused, WorldBroken, WrongUsage

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8
WAITING_THREADS = 32
SLICE_MS = 1000  # of a waiting pull at a server: the delay until it notices that it was cancelled


def _awaited(
    call: Callable[Concatenate[SchedulerCalls, P], T],
) -> Callable[Concatenate["AsyncScheduler", P], Coroutine[Any, Any, T]]:
    """The same call, made in a thread."""

    async def awaited(self: "AsyncScheduler", /, *given: P.args, **members: P.kwargs) -> T:
        return await self.made(call, self.blocking, *given, **members)

    update_wrapper(awaited, call)
    return awaited


class AsyncScheduler:
    """Jobs of a store or a server, awaited. `blocking` is the wrapped scheduler, which `close` closes."""

    def __init__(self, blocking: Scheduler | RemoteScheduler, *, threads: int = THREADS) -> None:
        self.blocking = blocking
        self._pool = ThreadPoolExecutor(threads, "pendula-jobs-calls")
        self._waits = ThreadPoolExecutor(WAITING_THREADS, "pendula-jobs-waits")
        self._is_closed = False

    @classmethod
    async def open(
        cls,
        path: str | Path,
        policy: Policy | None = None,
        *,
        object_types: Iterable[str] = (),
        actions: Iterable[str] = (),
    ) -> Self:
        """The scheduler on an SQLite file, as of `Scheduler.open`."""
        opening = partial(Scheduler.open, path, policy, object_types=object_types, actions=actions)
        return cls(await asyncio.to_thread(opening))

    @classmethod
    def connect(cls, url: str, token: str | None = None, *, ca: str | Path | None = None) -> Self:
        """The scheduler of a server; nothing is sent before the first call. `ca` is as in `RemoteScheduler`."""
        return cls(RemoteScheduler(url, token, ca=ca))

    async def close(self) -> None:
        """Finish running calls, then close the wrapped scheduler."""
        self._is_closed = True
        await asyncio.to_thread(self._shut)

    def _shut(self) -> None:
        self._pool.shutdown()
        self._waits.shutdown()
        self.blocking.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # The calls, each with the signature that it has in `SchedulerCalls`.

    defer = _awaited(SchedulerCalls.defer)
    enqueue = _awaited(SchedulerCalls.enqueue)
    enqueue_batch = _awaited(SchedulerCalls.enqueue_batch)
    ack = _awaited(SchedulerCalls.ack)
    ack_batch = _awaited(SchedulerCalls.ack_batch)
    fail = _awaited(SchedulerCalls.fail)
    renew = _awaited(SchedulerCalls.renew)
    release = _awaited(SchedulerCalls.release)
    cancel = _awaited(SchedulerCalls.cancel)
    requeue = _awaited(SchedulerCalls.requeue)
    cancel_batch = _awaited(SchedulerCalls.cancel_batch)
    requeue_batch = _awaited(SchedulerCalls.requeue_batch)
    set_time = _awaited(SchedulerCalls.set_time)
    free_key = _awaited(SchedulerCalls.free_key)
    show = _awaited(SchedulerCalls.show)
    why = _awaited(SchedulerCalls.why)
    history = _awaited(SchedulerCalls.history)
    list = _awaited(SchedulerCalls.list)
    count = _awaited(SchedulerCalls.count)
    audit = _awaited(SchedulerCalls.audit)
    metrics = _awaited(SchedulerCalls.metrics)
    alerts = _awaited(SchedulerCalls.alerts)
    past = _awaited(SchedulerCalls.past)
    workers = _awaited(SchedulerCalls.workers)
    object = _awaited(SchedulerCalls.object)
    plans = _awaited(SchedulerCalls.plans)
    put_plan = _awaited(SchedulerCalls.put_plan)
    pause_plan = _awaited(SchedulerCalls.pause_plan)
    resume_plan = _awaited(SchedulerCalls.resume_plan)
    run_now = _awaited(SchedulerCalls.run_now)
    remove_plan = _awaited(SchedulerCalls.remove_plan)

    # Pull

    async def pull(self, **members: Unpack[PullMembers]) -> Pulled:
        """Deliver due jobs; with `wait_ms`, wait for one without blocking the loop."""
        wait_ms = members.pop("wait_ms", None) or 0
        if type(wait_ms) is not int or not 0 < wait_ms <= WAIT_MOST_MS:
            given = PullMembers(**members, wait_ms=wait_ms) if wait_ms else members
            return await self._pulled(self._pool, given)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1000
        while True:
            left_ms = round((until - loop.time()) * 1000)
            reply = await self._waited(members, max(0, left_ms))
            if reply.count or reply.reclaimed or loop.time() >= until:
                return reply

    async def _waited(self, members: PullMembers, left_ms: int) -> Pulled:
        """One pull on a store and a pause after it, or one short wait at a server."""
        if isinstance(self.blocking, RemoteScheduler):
            return await self._pulled(self._waits, {**members, "wait_ms": min(left_ms, SLICE_MS)})
        reply = await self._pulled(self._pool, members)
        if not reply.count and not reply.reclaimed and left_ms:
            await asyncio.sleep(min(POLL_SECONDS, left_ms / 1000))
        return reply

    async def _pulled(self, pool: ThreadPoolExecutor, members: PullMembers) -> Pulled:
        """The reply of a pull; if the caller was cancelled, its jobs are released."""
        begun = self._begun(pool, partial(self.blocking.pull, **members))
        try:
            return await asyncio.wrap_future(begun)
        except asyncio.CancelledError:
            if not begun.cancel():
                begun.add_done_callback(self._release_jobs)
            raise

    def _release_jobs(self, pulled: Future[Pulled]) -> None:
        if pulled.cancelled() or pulled.exception() is not None:
            return
        for job in pulled.result().jobs:
            # A job that cannot be released returns when its lease expires.
            with suppress(InputRefused, WorldBroken):
                self.blocking.send(RELEASE, {"worker_id": job.worker_id, "lease_token": job.lease_token}, job.job_id)

    async def made(self, call: Callable[..., T], *given: Any, **members: Any) -> T:
        """Run a call in a thread."""
        return await asyncio.wrap_future(self._begun(self._pool, partial(call, *given, **members)))

    def _begun(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> Future[T]:
        """The work in a thread, with the caller's context variables."""
        if self._is_closed:
            raise WrongUsage("The scheduler was closed")
        return pool.submit(copy_context().run, work)
