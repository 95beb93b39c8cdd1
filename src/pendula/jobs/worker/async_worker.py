"""The worker for asyncio programs: async handlers run on the caller's loop, everything else in threads.

    async with await AsyncScheduler.open("jobs.db") as scheduler:
        await AsyncWorker(scheduler, load(["my.handlers"]), concurrency=20).run()

It runs `Worker` in a thread: pulls, renewals, acks and effects never block the loop.
"""

import asyncio
import threading
from typing import Any

from pendula.jobs.async_scheduler import AsyncScheduler
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.worker.async_loop import AsyncLoop
from pendula.jobs.worker.delivery import HandlerRunner
from pendula.jobs.worker.handlers import Handlers
from pendula.jobs.worker.heartbeats import Tally
from pendula.jobs.worker.worker import Worker


class AsyncWorker:
    """Takes the options of `Worker`."""

    def __init__(
        self, scheduler: AsyncScheduler | Scheduler | RemoteScheduler, handlers: Handlers, **options: Any
    ) -> None:
        self._client = scheduler.blocking if isinstance(scheduler, AsyncScheduler) else scheduler
        self._handlers = handlers
        self._options = options
        self._worker: Worker | None = None
        self._stopped = False

    def stop(self) -> None:
        """Take no new jobs; `run` returns when the handlers are done, or after `grace_sec`."""
        self._stopped = True
        if self._worker is not None:
            self._worker.stop()

    async def run(self) -> Tally:
        """Work until done or stopped; return the counts. When cancelled, stop gracefully first, then raise."""
        loop = asyncio.get_running_loop()
        worker = self._worker = Worker(
            self._client, self._handlers, runner=HandlerRunner(AsyncLoop(loop)), **self._options
        )
        if self._stopped:
            worker.stop()
        ended: asyncio.Future[Tally] = loop.create_future()

        def resolve(tally: Tally | None, error: BaseException | None) -> None:
            if not ended.done():
                ended.set_exception(error) if error is not None else ended.set_result(tally or worker.tally)

        def work() -> None:
            try:
                result: tuple[Tally | None, BaseException | None] = (worker.run(), None)
            except BaseException as error:
                result = (None, error)
            loop.call_soon_threadsafe(resolve, *result)

        threading.Thread(target=work, name="pendula-jobs-worker", daemon=True).start()
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            worker.stop()
            await asyncio.wait([ended])
            raise
