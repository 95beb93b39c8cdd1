"""Whether a store takes work, asked by one thread for everybody who wants to know.

What is wrong is told at once. What is only slow is not wrong yet: on a busy machine an answer may take longer than
whoever asks will wait, so the last good one stands for a bounded time, and only then is the store called busy.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pendula.kernel.errors import PendulaError

# Whoever asks waits no longer for an answer; most probes give up after a second or a few.
READY_SECONDS = 1.0
# Longer than a loaded machine keeps a flush waiting; a store that gave no answer for so long does not work.
GOOD_SECONDS = 30.0


class ReadinessProbe:
    """The last good answer of `look`, which raises what is wrong, and the look under way.

    `slow` is the code of what only takes long, which no answer in time is as well.
    """

    def __init__(self, look: Callable[[], None], *, slow: str) -> None:
        self._look = look
        self._slow = slow
        # A thread of its own: the one pool that everything shares may be full, which says nothing about the store.
        self._thread = ThreadPoolExecutor(1, "pendula-ready")
        self._under_way: asyncio.Future[str | None] | None = None
        self._good_until = 0.0

    async def trouble(self) -> str | None:
        """The code of what is wrong; None while the store is well, or was a short time ago and is only slow."""
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
