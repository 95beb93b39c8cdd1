"""Errors that stay within their bounds: slow drifts for positions and tracking, jitter for what is measured.

Every truck has a stream of its own for every source of noise: switching one source off changes no other.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from pendula.kernel.rng import Pcg32, stream

Floats = NDArray[np.float64]
# A square of this share of the radius lies within the disc: 0.7071.
_WITHIN_DISC = (707, 1000)


class Source(IntEnum):
    """Where chance comes from; the numbers name the streams."""

    TRACKING = 1
    POSITION_X = 2
    POSITION_Y = 3
    HEADING = 4
    JITTER = 5
    TELEMETRY_LATENCY = 6
    TELEMETRY_LOSS = 7
    COMMAND_LATENCY = 8
    COMMAND_LOSS = 9
    OPERATION = 10
    TASKS = 11
    WILD = 12
    MISFORTUNE = 13


def generators(seed: int, source: Source, trucks: int) -> list[Pcg32]:
    return [stream(seed, truck, source) for truck in range(trucks)]


def within(chance: Pcg32, bound: int) -> int:
    """A whole number from -bound to bound."""
    return chance.bounded(2 * bound + 1) - bound if bound else 0


def within_disc(bound: int) -> int:
    """The half side of a square that lies in the disc of this radius."""
    return bound * _WITHIN_DISC[0] // _WITHIN_DISC[1]


class Drift:
    """A value for every truck that wanders within its bound: a straight way to a new value every second."""

    KNOT_MS = 1000

    def __init__(self, seed: int, source: Source, bounds: list[int]) -> None:
        self._chances = generators(seed, source, len(bounds))
        self._bounds = bounds
        self._still = not any(bounds)
        self._begin = np.zeros(len(bounds))
        self._end = np.zeros(len(bounds))
        self._way = np.zeros(len(bounds))
        self._knot = -1

    def at(self, times_ms: list[int]) -> Floats | float:
        """One row for every instant, in order; no instant may lie before the last knot that was asked for."""
        if self._still:
            return 0.0
        if self._knot == times_ms[0] // self.KNOT_MS == times_ms[-1] // self.KNOT_MS:
            # All of them on one way, as most are.
            return self._begin + self._way * [[time % self.KNOT_MS / self.KNOT_MS] for time in times_ms]
        rows = np.empty((len(times_ms), len(self._bounds)))
        for row, time in enumerate(times_ms):
            knot, since = divmod(time, self.KNOT_MS)
            while self._knot < knot:
                self._go_on()
            rows[row] = self._begin + self._way * (since / self.KNOT_MS)
        return rows

    def _go_on(self) -> None:
        """To the next knot."""
        self._knot += 1
        self._begin = self._end
        drawn = [within(chance, bound) for chance, bound in zip(self._chances, self._bounds, strict=True)]
        self._end = np.array(drawn, dtype=np.float64)
        self._way = self._end - self._begin
