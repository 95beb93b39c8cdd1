"""The scheduler for an event loop: the calls of `Scheduler` as coroutines, none of which blocks the loop.

Calls run in a few threads; a waiting pull on a store holds no thread, on a server one of a second set. Cancelling a
caller does not undo a running call, but the jobs of a cancelled pull are released.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pendula.jobs.calls import POLL_SECONDS
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused, WorldBroken

T = TypeVar("T")
Reply = dict[str, Any]

THREADS = 8
WAITING_THREADS = 32
SLICE_MS = 1000  # of a waiting pull at a server: the delay until it notices that it was cancelled


class AsyncScheduler:
    """Jobs of a store or a server, awaited. `blocking` is the wrapped scheduler, which `close` closes."""

    def __init__(self, blocking: Scheduler | RemoteScheduler, *, threads: int = THREADS) -> None:
        self.blocking = blocking
        self._pool = ThreadPoolExecutor(threads, "pendula-jobs-calls")
        self._waits = ThreadPoolExecutor(WAITING_THREADS, "pendula-jobs-waits")

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

    # Enqueue

    async def defer(self, object_type: str, object_id: str, action: str, **members: Any) -> Reply:
        """Enqueue in one line: now, or `in_sec` seconds from now. Returns the job."""
        return await self.made(self.blocking.defer, object_type, object_id, action, **members)

    async def enqueue(self, **members: Any) -> Reply:
        return await self.made(self.blocking.enqueue, **members)

    async def enqueue_batch(self, jobs: Sequence[Mapping[str, Json]], *, atomic: bool = False) -> Reply:
        return await self.made(self.blocking.enqueue_batch, jobs, atomic=atomic)

    # Pull

    async def pull(self, **members: Any) -> Reply:
        """Deliver due jobs; with `wait_ms`, wait for one without blocking the loop."""
        wait_ms = members.pop("wait_ms", 0)
        if not isinstance(wait_ms, int) or wait_ms <= 0:
            return await self._pulled(self._pool, {**members, "wait_ms": wait_ms} if wait_ms else members)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1000
        while True:
            left_ms = round((until - loop.time()) * 1000)
            reply = await self._waited(members, max(0, left_ms))
            if reply["count"] or reply["reclaimed"] or loop.time() >= until:
                return reply

    async def _waited(self, members: dict[str, Any], left_ms: int) -> Reply:
        """One pull on a store and a pause after it, or one short wait at a server."""
        if isinstance(self.blocking, RemoteScheduler):
            return await self._pulled(self._waits, {**members, "wait_ms": min(left_ms, SLICE_MS)})
        reply = await self._pulled(self._pool, members)
        if not reply["count"] and not reply["reclaimed"] and left_ms:
            await asyncio.sleep(min(POLL_SECONDS, left_ms / 1000))
        return reply

    async def _pulled(self, pool: ThreadPoolExecutor, members: dict[str, Any]) -> Reply:
        """The reply of a pull; if the caller was cancelled, its jobs are released."""
        begun = pool.submit(copy_context().run, partial(self.blocking.pull, **members))
        try:
            return await asyncio.wrap_future(begun)
        except asyncio.CancelledError:
            if not begun.cancel():
                begun.add_done_callback(self._release_jobs)
            raise

    def _release_jobs(self, pulled: Future[Reply]) -> None:
        if pulled.cancelled() or pulled.exception() is not None:
            return
        for job in pulled.result()["jobs"]:
            # A job that cannot be released returns when its lease expires.
            with suppress(InputRefused, WorldBroken):
                self.blocking.release(job["job_id"], worker_id=job["worker_id"], lease_token=job["lease_token"])

    # End of a delivery

    async def ack(self, job_id: str, **members: Any) -> Reply:
        return await self.made(self.blocking.ack, job_id, **members)

    async def ack_batch(self, acks: Sequence[Mapping[str, Json]]) -> Reply:
        return await self.made(self.blocking.ack_batch, acks)

    async def fail(self, job_id: str, **members: Any) -> Reply:
        return await self.made(self.blocking.fail, job_id, **members)

    async def renew(self, job_id: str, **members: Any) -> Reply:
        return await self.made(self.blocking.renew, job_id, **members)

    async def release(self, job_id: str, **members: Any) -> Reply:
        return await self.made(self.blocking.release, job_id, **members)

    # The other calls

    async def cancel(self, job_id: str, **members: Any) -> Reply:
        return await self.made(self.blocking.cancel, job_id, **members)

    async def requeue(self, job_id: str, **members: Any) -> Reply:
        return await self.made(self.blocking.requeue, job_id, **members)

    async def set_time(self, **members: Any) -> Reply:
        return await self.made(self.blocking.set_time, **members)

    async def cancel_batch(self, **members: Any) -> Reply:
        return await self.made(self.blocking.cancel_batch, **members)

    async def requeue_batch(self, **members: Any) -> Reply:
        return await self.made(self.blocking.requeue_batch, **members)

    async def show(self, job_id: str) -> Reply:
        return await self.made(self.blocking.show, job_id)

    async def why(self, job_id: str) -> Reply:
        return await self.made(self.blocking.why, job_id)

    async def list(self, **query: Any) -> Reply:
        return await self.made(self.blocking.list, **query)

    async def count(self, **query: Any) -> Reply:
        return await self.made(self.blocking.count, **query)

    async def history(self, job_id: str) -> Reply:
        return await self.made(self.blocking.history, job_id)

    async def audit(self, **query: Any) -> Reply:
        return await self.made(self.blocking.audit, **query)

    async def past(self, **query: Any) -> Reply:
        return await self.made(self.blocking.past, **query)

    async def object(self, object_type: str, object_id: str) -> Reply:
        return await self.made(self.blocking.object, object_type, object_id)

    async def metrics(self, **query: Any) -> Reply:
        return await self.made(self.blocking.metrics, **query)

    async def workers(self) -> Reply:
        return await self.made(self.blocking.workers)

    async def alerts(self, **query: Any) -> Reply:
        return await self.made(self.blocking.alerts, **query)

    async def plans(self) -> Reply:
        return await self.made(self.blocking.plans)

    async def put_plan(self, name: str, **members: Any) -> Reply:
        return await self.made(self.blocking.put_plan, name, **members)

    async def pause_plan(self, name: str, **members: Any) -> Reply:
        return await self.made(self.blocking.pause_plan, name, **members)

    async def resume_plan(self, name: str, **members: Any) -> Reply:
        return await self.made(self.blocking.resume_plan, name, **members)

    async def run_now(self, name: str, **members: Any) -> Reply:
        return await self.made(self.blocking.run_now, name, **members)

    async def remove_plan(self, name: str, **members: Any) -> Reply:
        return await self.made(self.blocking.remove_plan, name, **members)

    async def made(self, call: Callable[..., T], *given: Any, **members: Any) -> T:
        """Run a call in a thread, with the caller's context variables."""
        work = partial(copy_context().run, partial(call, *given, **members))
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)
