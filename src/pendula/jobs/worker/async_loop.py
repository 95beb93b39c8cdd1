"""The event loop of async handlers, loaded by the first of them: asyncio takes a fifth of the time to import jobs."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from pendula.jobs.store.writer_thread import one_process
from pendula.jobs.worker.handlers import Answer

log = logging.getLogger("pendula.jobs.worker")

HANDLER = "a handler"
CONTEXT_THREADS = 8


class LoopEnded(Exception):
    """The event loop that ran the handler ended before the handler did."""


class AsyncLoop:
    """All async handlers share one event loop: the given one, or one in a background thread.

    Their calls to the store (`AsyncContext`) run in a small thread pool.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._lock = threading.Lock()
        self._loop = loop
        self._thread: threading.Thread | None = None
        self._context_threads: ThreadPoolExecutor | None = None
        self._awaiting: dict[Future[Any], None] = {}
        self._closing = False

    @contextmanager
    def run(self, begin: Callable[[], Awaitable[Answer]]) -> Iterator[Future[Answer]]:
        """The future of what `begin` returns, while a caller waits for it."""
        with self._lock:
            future = asyncio.run_coroutine_threadsafe(_without_exits(begin), self._running_loop())
            self._awaiting[future] = None
        try:
            yield future
        finally:
            self._awaiting.pop(future, None)

    def executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._context_threads is None:
                self._context_threads = ThreadPoolExecutor(CONTEXT_THREADS, "pendula-jobs-beside")
            return self._context_threads

    def close(self, seconds: float) -> None:
        """Stop the loop. One that a handler blocks for longer than `seconds` is abandoned."""
        self._closing = True
        loop, thread = self._loop, self._thread
        if self._context_threads is not None:
            self._context_threads.shutdown(wait=False)
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(seconds)
        if not thread.is_alive():
            loop.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop, started on first use. The caller holds the lock."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run_loop, args=(self._loop,), daemon=True)
            self._thread.name = "pendula-jobs-async"
            self._thread.start()
        return self._loop

    def _run_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop until `close`, also when a handler stops it or a task raises `SystemExit`."""
        asyncio.set_event_loop(loop)
        ended: BaseException | None = None
        while not self._closing and ended is None:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as leaving:
                log.warning("a task of an async handler raised %r; the event loop continues", leaving)
            except BaseException as trouble:  # e.g. a handler closed the file descriptors of the loop
                log.exception("the event loop of async handlers ended")
                ended = trouble
        with suppress(OSError, RuntimeError):
            _cancel_all(loop)
        self._fail_unfinished(loop, ended)

    def _fail_unfinished(self, loop: asyncio.AbstractEventLoop, ended: BaseException | None) -> None:
        """Fail unfinished handlers, or their threads would wait forever. The next async handler starts a new loop."""
        with self._lock:
            if ended is not None and self._loop is loop:
                self._loop = self._thread = None
            left = list(self._awaiting)
        for future in left:
            with suppress(InvalidStateError):
                future.set_exception(LoopEnded(f"the event loop ended before the handler: {ended!r}"))


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=1.0))


async def _without_exits(begin: Callable[[], Awaitable[Answer]]) -> Answer:
    """Convert `SystemExit` and `KeyboardInterrupt`, which would stop the loop and with it all other handlers."""
    try:
        with one_process(HANDLER):
            return await begin()
    except (SystemExit, KeyboardInterrupt) as leaving:
        raise RuntimeError(f"the handler raised {type(leaving).__name__}: {leaving}") from leaving
