"""The time of served runs: a beat each period, one tick a beat at most, never two at once, and nothing caught up.

The wall clock decides when a tick happens, never what it does. Beats go on while a run is paused, and while a tick
takes longer than a period: whoever watches the run hears of it all the same.
"""

import asyncio
from collections.abc import Awaitable, Callable


class Metronome:
    """Calls `beat` with how late it is, in seconds; begins `tick` after it, unless one is still under way."""

    def __init__(
        self,
        period_seconds: float,
        beat: Callable[[float], bool],
        tick: Callable[[], Awaitable[None]],
        missed: Callable[[], None],
    ) -> None:
        """`beat` says whether a tick is wanted; `missed` hears of a beat at which the last one was not over."""
        self._period = period_seconds
        self._beat = beat
        self._tick = tick
        self._missed = missed
        self._keeping: asyncio.Task[None] | None = None
        self._ticking: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._keeping is None:
            self._keeping = asyncio.get_running_loop().create_task(self._keep())

    @property
    def ticking(self) -> bool:
        """Whether a tick is under way."""
        return self._ticking is not None and not self._ticking.done()

    async def stop(self) -> None:
        """No more beats; the tick that is under way ends first."""
        keeping, self._keeping = self._keeping, None
        if keeping is not None:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        if self._ticking is not None:
            await asyncio.gather(self._ticking, return_exceptions=True)

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._period
        while True:
            await asyncio.sleep(max(0.0, due - loop.time()))
            late = max(0.0, loop.time() - due)
            if self._beat(late):
                self._begin_tick(loop)
            # Beats that were missed are not made up for: the next one is a whole period away.
            due = due + self._period if late < self._period else loop.time() + self._period

    def _begin_tick(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.ticking:
            self._missed()
        else:
            self._ticking = loop.create_task(_awaited(self._tick()))


async def _awaited(tick: Awaitable[None]) -> None:
    await tick
