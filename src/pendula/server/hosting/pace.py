"""A steady clock for an engine in real time, which advances it when something is due and before each command.

The clock continues from the engine's time when it is opened. It cannot be set, and it pauses while the machine sleeps
or the program is stopped for more than a minute.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from pendula.kernel.engine import Engine

NANOSECONDS = {"us": 1_000, "ms": 1_000_000, "min": 60_000_000_000}
SECOND_NS = 1_000_000_000
# The shortest interval between two calls; a call catches up on everything due.
LEAST_SECONDS = 0.02
# A longer delay means that the program or machine was stopped; that time is skipped.
STOPPED_NS = 60 * SECOND_NS


class Pace:
    """The clock of one engine. `due` and `end` run on the event loop, `step` and `follow` on the engine's thread."""

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
        """Start at the engine's time."""
        self._loop = asyncio.get_running_loop()
        self._start = (engine.now(), self._steady_ns())
        self._next = engine.next_due()

    def reading(self) -> int:
        """The current engine time, which the engine itself may not have reached."""
        at, since = self._start
        return at + (self._steady_ns() - since) // self._unit_ns

    def step(self, engine: Engine[Any, Any], *, only_if_due: bool) -> object | None:
        """The command that advances the engine to the current time; None if it is there, or if `only_if_due` and
        nothing is due."""
        now, due = self.reading(), engine.next_due()
        if due is not None and (now - due) * self._unit_ns > STOPPED_NS:
            now, self._start = due, (due, self._steady_ns())
        is_due = due is not None and due <= now
        is_later = now > engine.now() and not only_if_due
        return self._advance(now) if is_due or is_later else None

    def follow(self, engine: Engine[Any, Any]) -> None:
        """Update after a command, which may have changed what is due next or advanced the time."""
        if engine.now() > self.reading():
            self._start = (engine.now(), self._steady_ns())
        due = engine.next_due()
        if due != self._next and self._loop is not None and not self._loop.is_closed():
            self._next = due
            self._loop.call_soon_threadsafe(self._changed.set)

    async def due(self) -> bool:
        """Wait until something is due; False once the engine is closed."""
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
        """Stop the clock."""
        self._ended = True
        self._changed.set()

    def _seconds(self) -> float | None:
        if self._next is None:
            return None
        at, since = self._start
        return (since + (self._next - at) * self._unit_ns - self._steady_ns()) / SECOND_NS
