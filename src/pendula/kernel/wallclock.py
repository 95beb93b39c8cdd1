"""The only module that reads a clock: wall time that never goes back, and an event when the system clock is set.

Time is the wall time at the start plus the time of a steady clock since then. The steady clock includes the time that
the machine sleeps, if the system has such a clock. The owner calls `check` every second.
"""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from msgspec import Struct

Nanoseconds = Callable[[], int]

JUMP_NS = 1_000_000_000
SLOWER = 2  # while time is ahead of the system clock it runs at 1/SLOWER of its speed
CHECK_NS = 1_000_000_000
_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def steady_ns() -> int:
    """Nanoseconds of a clock that cannot be set: since boot including sleep, or else monotonic."""
    if _BOOT_CLOCK is None:
        return time.monotonic_ns()
    return time.clock_gettime_ns(_BOOT_CLOCK)


def steady_us() -> int:
    """`steady_ns` in microseconds."""
    return steady_ns() // 1000


def boot_id() -> str | None:
    """An id of this boot of the machine, and so of its steady clock; None if unavailable."""
    if _BOOT_CLOCK is None:
        return None
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip() or None
    except OSError:
        return None


class ClockJump(Struct, frozen=True):
    """The system clock was set from `from_us` to `to_us`. Microseconds since 1970, UTC."""

    from_us: int
    to_us: int

    @property
    def by_us(self) -> int:
        """The size of the jump; negative is backwards."""
        return self.to_us - self.from_us


class WallClock:
    """Microseconds since 1970, UTC. `now` never goes back, also across threads.

    After a jump forwards, time continues from the new time. After a jump backwards it runs at half speed until the
    system clock has caught up: if it stood still, leases and deadlines would not expire for the length of the jump.
    """

    def __init__(self, wall_ns: Nanoseconds = time.time_ns, steady_ns: Nanoseconds = steady_ns) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._lock = Lock()
        self._steady_base = steady_ns()
        self._wall_base = wall_ns()
        # No time returned since the last jump is before this.
        self._floor = self._wall_base
        self._latest = self._wall_base

    def now(self) -> int:
        with self._lock:
            return self._advance(self._steady_ns()) // 1000

    def machine(self) -> int:
        """The system time as of the last check plus steady time; this can go back."""
        with self._lock:
            return (self._wall_base + self._steady_ns() - self._steady_base) // 1000

    def check(self) -> ClockJump | None:
        """Compare with the system clock; report and adopt a difference of more than a second."""
        with self._lock:
            steady = self._steady_ns()
            system = self._wall_ns()
            counted = self._wall_base + steady - self._steady_base
            if abs(system - counted) <= JUMP_NS:
                return None
            self._floor = self._advance(steady)
            self._wall_base = system
            self._steady_base = steady
            return ClockJump(counted // 1000, system // 1000)

    def _advance(self, steady: int) -> int:
        elapsed = steady - self._steady_base
        self._latest = max(self._latest, self._wall_base + elapsed, self._floor + elapsed // SLOWER)
        return self._latest


class SelfCheckingClock:
    """A wall clock that checks the system clock by itself, at most once a second, when asked for the time.

    Jumps are adopted and not reported.
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
