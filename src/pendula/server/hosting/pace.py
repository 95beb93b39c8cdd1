"""Time for an engine that keeps it: a steady clock, told to the engine when something is due and before each command.

The engine's own time goes on where it stood when the engine was opened, and the clock counts from there. Nobody can
set it, and while the machine sleeps it sleeps too, as it does while the program is stopped for more than a minute.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from pendula.kernel.engine import Engine

NANOSECONDS = {"us": 1_000, "ms": 1_000_000, "min": 60_000_000_000}
SECOND_NS = 1_000_000_000
# However short the engine's own times are: more often it is not called, and then it catches up.
LEAST_SECONDS = 0.02
# Later than this nobody was slow: the program was stopped, or its machine. What nobody saw is not made up for.
STOPPED_NS = 60 * SECOND_NS


class Pace:
    """The clock of one engine. `due` and `end` belong to the event loop, `step` and `follow` to the engine's thread."""

    def __init__(
        self, advance: Callable[[int], object], time_unit: str, steady_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._advance = advance
        self._unit_ns = NANOSECONDS[time_unit]
        self._steady_ns = steady_ns
        self._start = (0, steady_ns())
        self._next: int | None = None
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = False

    def begin(self, engine: Engine[Any, Any]) -> None:
        """Count on from where the engine's time stands."""
        self._loop = asyncio.get_running_loop()
        self._start = (engine.now(), self._steady_ns())
        self._next = engine.next_due()

    def reading(self) -> int:
        """What time it is for the engine, whether it was told or not."""
        at, since = self._start
        return at + (self._steady_ns() - since) // self._unit_ns

    def step(self, engine: Engine[Any, Any], *, only_if_due: bool) -> object | None:
        """The command that tells the engine the time; None where it knows, or nothing is due and only that counts."""
        now, due = self.reading(), engine.next_due()
        if due is not None and (now - due) * self._unit_ns > STOPPED_NS:
            now, self._start = due, (due, self._steady_ns())
        is_due = due is not None and due <= now
        is_later = now > engine.now() and not only_if_due
        return self._advance(now) if is_due or is_later else None

    def follow(self, engine: Engine[Any, Any]) -> None:
        """Take note of what a command changed: what is due next, or the time itself, where somebody moved it on."""
        if engine.now() > self.reading():
            self._start = (engine.now(), self._steady_ns())
        due = engine.next_due()
        if due != self._next and self._loop is not None and not self._loop.is_closed():
            self._next = due
            self._loop.call_soon_threadsafe(self._changed.set)

    async def due(self) -> bool:
        """Wait until something is due; False when the engine is closed."""
        await asyncio.sleep(LEAST_SECONDS)
        while not self._ended:
            self._changed.clear()
            seconds = self._seconds()
            if seconds is not None and seconds <= 0:
                return True
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
            except TimeoutError:
                continue
        return False

    def end(self) -> None:
        """Nothing is due any more."""
        self._ended = True
        self._changed.set()

    def _seconds(self) -> float | None:
        if self._next is None:
            return None
        at, since = self._start
        return (since + (self._next - at) * self._unit_ns - self._steady_ns()) / SECOND_NS
