"""Readiness of a store, checked by one thread for all probes.

An error is reported at once. A slow check is not an error yet: on a busy machine it can take longer than a probe waits,
so the last good result is used for a bounded time before the store counts as busy.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pendula.kernel.errors import PendulaError

# How long a probe waits for the check; most probes time out after one or a few seconds.
READY_SECONDS = 1.0
# How long a good result stays valid; longer than a flush takes on a loaded machine.
GOOD_SECONDS = 30.0


class ReadinessProbe:
    """The last good result of `look`, which raises an error, and the running check.

    `slow` is the code for a store that does not answer in time.
    """

    def __init__(self, look: Callable[[], None], *, slow: str) -> None:
        self._look = look
        self._slow = slow
        # A separate thread: a full shared pool says nothing about the store.
        self._thread = ThreadPoolExecutor(1, "pendula-ready")
        self._under_way: asyncio.Future[str | None] | None = None
        self._good_until = 0.0

    async def trouble(self) -> str | None:
        """The error code; None if the store is ready, or was ready recently and is slow."""
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.get_running_loop().run_in_executor(self._thread, self._found)
        try:
            async with asyncio.timeout(READY_SECONDS):
                found = await asyncio.shield(self._under_way)
        except TimeoutError:
            found = self._slow
        if found == self._slow and time.monotonic() < self._good_until:
            return None
        return found

    def _found(self) -> str | None:
        try:
            self._look()
        except PendulaError as error:
            return error.code
        self._good_until = time.monotonic() + GOOD_SECONDS
        return None

    async def close(self) -> None:
        await asyncio.to_thread(self._thread.shutdown)
