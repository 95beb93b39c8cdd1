"""The time of a store: that of the clock, but never before the latest time that was stored.

Clocks of processes differ, and clocks are set back. A process whose clock is behind would give out leases that are over
for the others, and they would take them back. So everybody goes by the later of its clock and the store.

While the clock is behind, time goes on at half its speed until the clock has caught up: held still, leases and due
times would hang for as long as the clock was set back.
"""

import threading
from collections.abc import Callable

from pendula.kernel.errors import InputRefused
from pendula.kernel.time import parse_utc
from pendula.kernel.wallclock import SLOWER

TIMESTAMP = '"timestamp":"'


class StoreTime:
    """What time it is for one open store; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = 0  # handed out or stored, whatever is later
        self._clock: int | None = None  # what the clock said when we went on from there

    def now(self, clock: Callable[[], int]) -> int:
        """Microseconds since 1970; never less than before."""
        with self._lock:
            said = clock()
            if said >= self._latest:
                self._latest = said
            elif self._clock is not None and said > self._clock:
                self._latest += (said - self._clock) // SLOWER
            self._clock = said
            return self._latest

    def observe(self, latest: int) -> None:
        """Somebody stored this time; what the clock has counted before does not come on top of it."""
        with self._lock:
            if latest > self._latest:
                self._latest, self._clock = latest, None

    def ahead_of(self, clock: Callable[[], int]) -> int:
        """By how many microseconds the store is ahead of the clock; 0 when it is not."""
        return max(0, self._latest - clock())


def time_of_event(body: str) -> int:
    """When an event was written; 0 where its text does not tell. The timestamp is the last member of an event."""
    _, found, rest = body.rpartition(TIMESTAMP)
    try:
        return parse_utc(rest.removesuffix('"}')) if found else 0
    except InputRefused:
        return 0
