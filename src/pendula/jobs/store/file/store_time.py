"""The time of a store: that of the clock, but never before the latest time that was stored.

Clocks of processes differ, and clocks are set back. A process whose clock is behind would grant leases that have
expired for other processes, which would take them back. So every process uses the later of its clock and the stored
time.

While the clock is behind, time advances at half its speed until the clock has caught up: if it stood still, leases and
due times would hang for as long as the clock was set back.

A clock that is ahead would advance the time of all processes for good. So the store keeps an anchor: a time, and the
reading of the boot clock, which cannot be set, at that time. A clock that is further ahead than possible is refused.
"""

import threading
from collections.abc import Callable

from msgspec import Struct

from pendula.jobs.model import ClockAhead
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc, parse_utc
from pendula.kernel.wallclock import SLOWER

TIMESTAMP = '"timestamp":"'
ANCHORED_US = 3_600_000_000  # the age at which an anchor is renewed: small steps of the clock add up


class MachineTime(Struct, frozen=True):
    """The clocks of this machine: the wall clock, and the boot clock, which cannot be set."""

    clock: Callable[[], int]
    steady: Callable[[], int]
    boot_id: str
    step_us: int  # how far the wall clock may be ahead of the boot clock


class Anchor(Struct, frozen=True):
    """A time `at` that was right when the boot clock was at `boot_us`; `resets` counts corrections."""

    boot_id: str | None
    boot_us: int
    at: int
    resets: int


class StoreTime:
    """The time of one open store; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = 0  # returned or stored, whichever is later
        self._clock: int | None = None  # the clock at that time
        self._anchor: Anchor | None = None
        self._resets = 0
        self.machine: MachineTime | None = None

    def now(self, clock: Callable[[], int]) -> int:
        """Microseconds since 1970; never goes back, unless a person corrected the time. Raises `ClockAhead`."""
        with self._lock:
            reading, latest = clock(), self._latest
            self._check(reading)
            if reading >= latest:
                latest = reading
            elif self._clock is not None and reading > self._clock:
                latest += (reading - self._clock) // SLOWER
            # Together: an interrupt between the two would count the same time twice.
            self._latest, self._clock = latest, reading
            return latest

    def observe(self, latest: int, anchor: Anchor | None = None) -> None:
        """Take over a stored time and anchor."""
        with self._lock:
            resets = 0 if anchor is None else anchor.resets
            self._anchor = anchor
            if latest > self._latest or resets != self._resets:
                self._latest, self._clock, self._resets = latest, None, resets

    @property
    def latest(self) -> int:
        """The latest time returned or stored."""
        return self._latest

    def ahead_of(self, clock: Callable[[], int]) -> int:
        """By how many microseconds the store is ahead of the clock; 0 when it is not."""
        return max(0, self._latest - clock())

    def new_anchor(self) -> Anchor | None:
        """The anchor to store instead of the present one; None to keep that, or without a boot clock."""
        machine, anchor = self.machine, self._anchor
        if machine is None:
            return None
        steady = machine.steady()
        if anchor is None or anchor.boot_id != machine.boot_id:
            return Anchor(machine.boot_id, steady, self.now(machine.clock), self._resets)
        elapsed = steady - anchor.boot_us
        if elapsed < ANCHORED_US:
            return None
        # At least what the boot clock counted: a process whose clock is behind must not hold others back.
        return Anchor(machine.boot_id, steady, max(self.now(machine.clock), anchor.at + elapsed), self._resets)

    def repaired_anchor(self, right: int) -> Anchor:
        """The anchor after a person declared this time right."""
        machine = self.machine
        steady, boot = (0, None) if machine is None else (machine.steady(), machine.boot_id)
        return Anchor(boot, steady, right, self._resets + 1)

    def _check(self, reading: int) -> None:
        machine, anchor = self.machine, self._anchor
        if machine is None or anchor is None or anchor.boot_id != machine.boot_id:
            return
        expected = anchor.at + machine.steady() - anchor.boot_us
        if reading > expected + machine.step_us:
            raise ClockAhead(
                f"The clock of this machine is {(reading - expected) // 1_000_000} s ahead of what other processes "
                "wrote and of the time since the boot; nothing was changed. Correct the clock, or confirm it with: "
                "pendula jobs set-time",
                clock=format_utc(reading),
                expected=format_utc(expected),
            )


def time_of_event(body: str) -> int:
    """The timestamp of an event, which is its last member; 0 where it cannot be read."""
    _, found, rest = body.rpartition(TIMESTAMP)
    try:
        return parse_utc(rest.removesuffix('"}')) if found else 0
    except InputRefused:
        return 0
