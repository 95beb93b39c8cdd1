"""Bounded errors: slow drifts for true positions and tracking, independent errors for reports.

Every truck has its own random stream for every source: switching one source off changes no other.
"""

from collections.abc import Callable
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from pendula.kernel.rng import Pcg32, stream

Floats = NDArray[np.float64]


class Source(IntEnum):
    """Sources of randomness; the numbers identify the random streams."""

    TRACKING = 1
    POSITION = 2
    HEADING = 4
    JITTER = 5
    TELEMETRY_LATENCY = 6
    TELEMETRY_LOSS = 7
    COMMAND_LATENCY = 8
    COMMAND_LOSS = 9
    OPERATION = 10
    TASKS = 11
    FAULT_NOISE = 12
    RANDOM_FAULTS = 13
    STAMP = 14


def generators(seed: int, source: Source, trucks: int) -> list[Pcg32]:
    return [stream(seed, truck, source) for truck in range(trucks)]


def within(chance: Pcg32, bound: int) -> int:
    """A uniform integer from -bound to bound."""
    return chance.bounded(2 * bound + 1) - bound if bound else 0


def within_disc(chance: Pcg32, bound: int, around: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """A uniform point in the disc of radius `bound` that is also within `bound` of `around`, itself a point in the
    disc."""
    while True:
        x, y = within(chance, bound), within(chance, bound)
        dx, dy = x - around[0], y - around[1]
        if max(x * x + y * y, dx * dx + dy * dy) <= bound * bound:
            return x, y


class Drift:
    """Bounded drifting values for every truck, one or several as given by `draw`: linear interpolation between random
    knots every second."""

    KNOT_MS = 1000

    def __init__(
        self, seed: int, source: Source, bounds: list[int], draw: Callable[[Pcg32, int], int | tuple[int, ...]] = within
    ) -> None:
        self._chances = generators(seed, source, len(bounds))
        self._bounds = bounds
        self._draw = draw
        self._still = not any(bounds)
        self._begin = self._end = self._slope = np.zeros_like(self._draw_knot())
        self._knot = -1

    def at(self, times_ms: list[int]) -> Floats:
        """One row per instant, in order; no instant may be before the last knot in use."""
        if self._still:
            return np.broadcast_to(self._begin, (len(times_ms), *self._begin.shape))
        if self._knot == times_ms[0] // self.KNOT_MS == times_ms[-1] // self.KNOT_MS:
            # The usual case: all instants are between the same knots.
            parts = [self._begin + self._slope * (time % self.KNOT_MS / self.KNOT_MS) for time in times_ms]
            return np.array(parts)
        rows: Floats = np.empty((len(times_ms), *self._begin.shape))
        for row, time in enumerate(times_ms):
            knot, since = divmod(time, self.KNOT_MS)
            while self._knot < knot:
                self._advance()
            rows[row] = self._begin + self._slope * (since / self.KNOT_MS)
        return rows

    def _advance(self) -> None:
        """Advance to the next knot."""
        self._knot += 1
        self._begin = self._end
        self._end = self._draw_knot()
        self._slope = self._end - self._begin

    def _draw_knot(self) -> Floats:
        drawn = [self._draw(chance, bound) for chance, bound in zip(self._chances, self._bounds, strict=True)]
        return np.array(drawn, dtype=np.float64)
