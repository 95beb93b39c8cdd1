"""The only place that reads a clock: wall time that never goes back, and an event when somebody sets the clock.

Time is the wall time at the start plus what a steady clock has counted since. The steady clock also counts while the
machine sleeps, where the system has such a clock. Whoever drives the clock calls `check` each second.
"""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from msgspec import Struct

Nanoseconds = Callable[[], int]

JUMP_NS = 1_000_000_000
SLOWER = 2  # while it is ahead, time goes at this part of its speed; so it is ahead for this many times as long
CHECK_NS = 1_000_000_000
_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def steady_ns() -> int:
    """Nanoseconds that nobody can set: since boot, sleep included, or else of the monotonic clock."""
    if _BOOT_CLOCK is None:
        return time.monotonic_ns()
    return time.clock_gettime_ns(_BOOT_CLOCK)


def steady_us() -> int:
    """`steady_ns` in microseconds, the unit of leases and pauses."""
    return steady_ns() // 1000


def boot_id() -> str | None:
    """What tells this start of the machine from others, and with it its steady clock; None where nothing does."""
    if _BOOT_CLOCK is None:
        return None
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip() or None
    except OSError:
        return None


class ClockJump(Struct, frozen=True):
    """The system clock was set: by our count it was `from_us`, and it says `to_us`. Microseconds since 1970, UTC."""

    from_us: int
    to_us: int

    @property
    def by_us(self) -> int:
        """How far it jumped; negative is backwards."""
        return self.to_us - self.from_us


class WallClock:
    """Microseconds since 1970, UTC. What `now` gives never goes back, also across threads.

    After a jump forwards time goes on from the new time. After a jump backwards it runs at half its speed until the
    system clock has caught up: held still, leases and deadlines would hang for as long as the jump was wide.
    """

    def __init__(self, wall_ns: Nanoseconds = time.time_ns, steady_ns: Nanoseconds = steady_ns) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._lock = Lock()
        self._steady_base = steady_ns()
        self._wall_base = wall_ns()
        # No time handed out since the last jump lies before this.
        self._floor = self._wall_base
        self._latest = self._wall_base

    def now(self) -> int:
        with self._lock:
            return self._handed_out(self._steady_ns()) // 1000

    def machine(self) -> int:
        """What the clock of the machine says, as it was counted since the last check; that may have gone back."""
        with self._lock:
            return (self._wall_base + self._steady_ns() - self._steady_base) // 1000

    def check(self) -> ClockJump | None:
        """Compare with the system clock; a difference of more than a second is reported once and then followed."""
        with self._lock:
            steady = self._steady_ns()
            system = self._wall_ns()
            counted = self._wall_base + steady - self._steady_base
            if abs(system - counted) <= JUMP_NS:
                return None
            self._floor = self._handed_out(steady)
            self._wall_base = system
            self._steady_base = steady
            return ClockJump(counted // 1000, system // 1000)

    def _handed_out(self, steady: int) -> int:
        elapsed = steady - self._steady_base
        self._latest = max(self._latest, self._wall_base + elapsed, self._floor + elapsed // SLOWER)
        return self._latest


class SelfCheckingClock:
    """A wall clock for programs that have nobody to drive it: it looks at the system clock when it is asked the time.

    At most once a second; a jump is followed and not reported.
    """

    def __init__(self, wall_ns: Nanoseconds = time.time_ns, steady_ns: Nanoseconds = steady_ns) -> None:
        self._clock = WallClock(wall_ns, steady_ns)
        self._steady_ns = steady_ns
        self._checked = steady_ns()

    def now(self) -> int:
        steady = self._steady_ns()
        if steady - self._checked >= CHECK_NS:
            self._checked = steady
            self._clock.check()
        return self._clock.now()
