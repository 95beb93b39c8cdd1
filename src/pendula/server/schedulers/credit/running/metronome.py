"""Heartbeats and ticks of a served run, each with its own period.

Ticks never overlap, and missed ones are skipped. The wall clock decides when a tick happens, never what it does.
Heartbeats continue while a run is paused and during a long tick.
"""

import asyncio
from collections.abc import Awaitable, Callable


class Metronome:
    """Calls `beat` each heartbeat and starts `tick` each pace, unless one is still running."""

    def __init__(
        self,
        heartbeat_seconds: float,
        pace_seconds: float,
        beat: Callable[[], None],
        should_tick: Callable[[float], bool],
        tick: Callable[[], Awaitable[None]],
        on_missed: Callable[[], None],
    ) -> None:
        """`should_tick` gets the delay of a tick in seconds; `on_missed` is called if a tick is still running."""
        self._heartbeat, self._pace = heartbeat_seconds, pace_seconds
        self._beat = beat
        self._should_tick = should_tick
        self._tick = tick
        self._on_missed = on_missed
        self._loops: list[asyncio.Task[None]] = []
        self._ticking: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._loops:
            return
        loop = asyncio.get_running_loop()
        # If both are due, the heartbeat comes first: the status is sent before the tick.
        self._loops = [
            loop.create_task(_repeat(self._heartbeat, lambda _: self._beat())),
            loop.create_task(_repeat(self._pace, self._start_tick)),
        ]

    @property
    def ticking(self) -> bool:
        return self._ticking is not None and not self._ticking.done()

    async def stop(self) -> None:
        """Stop heartbeats and ticks; waits for a running tick."""
        loops, self._loops = self._loops, []
        for task in loops:
            task.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        if self._ticking is not None:
            await asyncio.gather(self._ticking, return_exceptions=True)

    def _start_tick(self, late: float) -> None:
        if not self._should_tick(late):
            return
        if self.ticking:
            self._on_missed()
        else:
            self._ticking = asyncio.get_running_loop().create_task(_await_tick(self._tick()))


async def _repeat(period: float, act: Callable[[float], None]) -> None:
    """Call `act` each period with its delay in seconds; after a delay of a period or more, the next call is one period
    later."""
    loop = asyncio.get_running_loop()
    due = loop.time() + period
    while True:
        await asyncio.sleep(max(0.0, due - loop.time()))
        late = max(0.0, loop.time() - due)
        act(late)
        due = due + period if late < period else loop.time() + period


async def _await_tick(tick: Awaitable[None]) -> None:
    await tick
