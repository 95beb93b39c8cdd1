"""What goes wrong by chance: every truck has so many faults of a kind an hour, at times drawn from a stream of its own.

The same seed gives the same misfortunes; a world without rates draws nothing.
"""

from collections.abc import Sequence

from pendula.fleet.simulator.faults import Fault
from pendula.fleet.simulator.noise import Source, generators
from pendula.fleet.simulator.settings import FaultRate

_HOUR_MS = 3_600_000


class Misfortune:
    """The next time of every kind of fault of every truck."""

    def __init__(self, rates: Sequence[FaultRate], seed: int, trucks: int, now_ms: int) -> None:
        self._rates = rates
        self._chances = generators(seed, Source.MISFORTUNE, trucks)
        self._next = [[now_ms + self._pause_ms(truck, one) for one in rates] for truck in range(trucks)]

    def due(self, now_ms: int) -> list[tuple[int, Fault]]:
        """What goes wrong by now, with which truck; each once."""
        found = []
        for truck, times in enumerate(self._next):
            for kind, rate in enumerate(self._rates):
                if times[kind] <= now_ms:
                    found.append((truck, rate.fault))
                    times[kind] = now_ms + rate.fault.for_ms + self._pause_ms(truck, rate)
        return found

    def _pause_ms(self, truck: int, rate: FaultRate) -> int:
        """Up to twice the mean, each as likely as the others."""
        return 1 + self._chances[truck].bounded(2 * _HOUR_MS // rate.per_hour)
