"""Whether the ticks of a fleet come as often as they should, told once when they do not and once when they do again.

A fleet that cannot keep up ticks as often as it can: simulated trucks are slower than life then, and real ones are told
by the engine when a tick is so late that no command goes out. Nothing is made up for, so nothing piles up.
"""

from msgspec import Struct

# So many ticks are looked at together: a collection of garbage or a checkpoint is no trouble.
WINDOW = 50
# Thousandths of the time wanted that may be lost before it is told, and at which all is well again.
BEHIND, WELL = 250, 50


class Told(Struct, frozen=True):
    """What is to be said: how many ticks come in a second, how many should, and whether that is trouble."""

    behind: bool
    tenths: int
    wanted_tenths: int

    @property
    def message(self) -> str:
        rate, wanted = (f"{one // 10}.{one % 10}" for one in (self.tenths, self.wanted_tenths))
        if self.behind:
            return f"the fleet ticks {rate} times a second instead of {wanted}: this machine does not keep up with it"
        return f"the fleet ticks {wanted} times a second again"


class Punctuality:
    """Ticks of one fleet that should be `period_us` apart."""

    def __init__(self, period_us: int) -> None:
        self._period_us = period_us
        self._ticks = 0
        self._lost_us = 0
        self.behind = False

    def ticked(self, lost_us: int) -> Told | None:
        """One more tick, over so much later than the next one was due; what is to be said about it, if anything."""
        self._ticks += 1
        self._lost_us += max(0, lost_us)
        if self._ticks < WINDOW:
            return None
        wanted, lost = self._ticks * self._period_us, self._lost_us
        self._ticks, self._lost_us = 0, 0
        behind = lost * 1000 > wanted * (WELL if self.behind else BEHIND)
        if behind == self.behind:
            return None
        self.behind = behind
        return Told(behind, WINDOW * 10_000_000 // (wanted + lost), WINDOW * 10_000_000 // wanted)
