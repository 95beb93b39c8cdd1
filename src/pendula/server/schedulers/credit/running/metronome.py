"""The time of served runs: a heartbeat each period, and ticks at a pace of their own.

One tick at most each pace, never two at once, and nothing caught up. The wall clock decides when a tick happens, never
what it does. Heartbeats go on while a run is paused, and while a tick takes long.
"""

import asyncio
from collections.abc import Awaitable, Callable


class Metronome:
    """Calls `beat` each heartbeat, and begins `tick` each pace, unless one is still under way."""

    def __init__(
        self,
        heartbeat_seconds: float,
        pace_seconds: float,
        beat: Callable[[], None],
        wanted: Callable[[float], bool],
        tick: Callable[[], Awaitable[None]],
        missed: Callable[[], None],
    ) -> None:
        """`wanted` hears how late a tick is, in seconds, and says whether there is to be one; `missed` is called where
        the last one is not over."""
        self._heartbeat, self._pace = heartbeat_seconds, pace_seconds
        self._beat = beat
        self._wanted = wanted
        self._tick = tick
        self._missed = missed
        self._loops: list[asyncio.Task[None]] = []
        self._ticking: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._loops:
            return
        loop = asyncio.get_running_loop()
        # At the same moment the heartbeat comes first: the status is told before the tick.
        self._loops = [
            loop.create_task(_each(self._heartbeat, lambda _: self._beat())),
            loop.create_task(_each(self._pace, self._begin_tick)),
        ]

    @property
    def ticking(self) -> bool:
        """Whether a tick is under way."""
        return self._ticking is not None and not self._ticking.done()

    async def stop(self) -> None:
        """No more heartbeats and ticks; the tick that is under way ends first."""
        loops, self._loops = self._loops, []
        for one in loops:
            one.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        if self._ticking is not None:
            await asyncio.gather(self._ticking, return_exceptions=True)

    def _begin_tick(self, late: float) -> None:
        if not self._wanted(late):
            return
        if self.ticking:
            self._missed()
        else:
            self._ticking = asyncio.get_running_loop().create_task(_awaited(self._tick()))


async def _each(period: float, act: Callable[[float], None]) -> None:
    """Act each period, told how late it is; what was missed is not made up for: the next one is a period away."""
    loop = asyncio.get_running_loop()
    due = loop.time() + period
    while True:
        await asyncio.sleep(max(0.0, due - loop.time()))
        late = max(0.0, loop.time() - due)
        act(late)
        due = due + period if late < period else loop.time() + period


async def _awaited(tick: Awaitable[None]) -> None:
    await tick
