"""Random faults: every truck has faults of a kind at a rate per hour, at times drawn from its own random stream.

The same seed gives the same faults; a world without rates draws nothing.
"""

from collections.abc import Sequence

from pendula.fleet.simulator.faults import Fault
from pendula.fleet.simulator.noise import Source, generators
from pendula.fleet.simulator.settings import FaultRate

_HOUR_MS = 3_600_000


class RandomFaults:
    """The next time of every kind of fault of every truck."""

    def __init__(self, rates: Sequence[FaultRate], seed: int, trucks: int, now_ms: int) -> None:
        self._rates = rates
        self._chances = generators(seed, Source.RANDOM_FAULTS, trucks)
        self._next = [[now_ms + self._pause_ms(truck, rate) for rate in rates] for truck in range(trucks)]

    def due(self, now_ms: int) -> list[tuple[int, Fault]]:
        """Faults that have become due, as (truck, fault), each once."""
        due = []
        for truck, times in enumerate(self._next):
            for kind, rate in enumerate(self._rates):
                if times[kind] <= now_ms:
                    due.append((truck, rate.fault))
                    times[kind] = now_ms + rate.fault.for_ms + self._pause_ms(truck, rate)
        return due

    def _pause_ms(self, truck: int, rate: FaultRate) -> int:
        """A uniform pause of up to twice the mean."""
        return 1 + self._chances[truck].bounded(2 * _HOUR_MS // rate.per_hour)
