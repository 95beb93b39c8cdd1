"""The time of a store: that of the clock, but never before the latest time that was stored.

Clocks of processes differ, and clocks are set back. A process whose clock is behind would give out leases that are over
for the others, and they would take them back. So all go by the later of their clock and the store.

While the clock is behind, time goes on at half its speed until the clock has caught up: held still, leases and due
times would hang for as long as the clock was set back.

A clock that is ahead would move the time of all for good. So the store keeps an anchor: a time, and what the clock of
the boot, which nobody can set, said then. A clock that is further ahead than it could have come since is refused.
"""

import threading
from collections.abc import Callable

from msgspec import Struct

from pendula.jobs.model import ClockAhead
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc, parse_utc
from pendula.kernel.wallclock import SLOWER

TIMESTAMP = '"timestamp":"'
ANCHORED_US = 3_600_000_000  # an anchor is moved on after so long: small steps of the clock add up


class MachineTime(Struct, frozen=True):
    """The clocks of this machine: the one that tells the time, and the one that nobody can set since the boot."""

    clock: Callable[[], int]
    steady: Callable[[], int]
    boot_id: str
    step_us: int  # so far the clock may be ahead of what the steady one says


class Anchor(Struct, frozen=True):
    """A time `at` that was right when the steady clock of this boot said `boot_us`; `resets` counts repairs."""

    boot_id: str | None
    boot_us: int
    at: int
    resets: int


class StoreTime:
    """What time it is for one open store; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = 0  # handed out or stored, whatever is later
        self._clock: int | None = None  # what the clock said when we went on from there
        self._anchor: Anchor | None = None
        self._resets = 0
        self.machine: MachineTime | None = None

    def now(self, clock: Callable[[], int]) -> int:
        """Microseconds since 1970; never less than before, unless a person set the time right. Raises `ClockAhead`."""
        with self._lock:
            said, latest = clock(), self._latest
            self._check(said)
            if said >= latest:
                latest = said
            elif self._clock is not None and said > self._clock:
                latest += (said - self._clock) // SLOWER
            # Together: an interrupt between the two would count the same time twice.
            self._latest, self._clock = latest, said
            return latest

    def observe(self, latest: int, anchor: Anchor | None = None) -> None:
        """This time is stored; what the clock has counted before does not come on top of it."""
        with self._lock:
            resets = 0 if anchor is None else anchor.resets
            self._anchor = anchor
            if latest > self._latest or resets != self._resets:
                self._latest, self._clock, self._resets = latest, None, resets

    @property
    def latest(self) -> int:
        """The latest time handed out or stored."""
        return self._latest

    def ahead_of(self, clock: Callable[[], int]) -> int:
        """By how many microseconds the store is ahead of the clock; 0 when it is not."""
        return max(0, self._latest - clock())

    def new_anchor(self) -> Anchor | None:
        """What the store should keep instead of its anchor; None where that will do, or nothing is known here."""
        machine, there = self.machine, self._anchor
        if machine is None:
            return None
        steady = machine.steady()
        if there is None or there.boot_id != machine.boot_id:
            return Anchor(machine.boot_id, steady, self.now(machine.clock), self._resets)
        elapsed = steady - there.boot_us
        if elapsed < ANCHORED_US:
            return None
        # Never less than the boot's clock has counted: a process whose clock is behind does not hold the others back.
        return Anchor(machine.boot_id, steady, max(self.now(machine.clock), there.at + elapsed), self._resets)

    def repaired_anchor(self, right: int) -> Anchor:
        """What the store keeps where a person says that this is the right time."""
        machine = self.machine
        steady, boot = (0, None) if machine is None else (machine.steady(), machine.boot_id)
        return Anchor(boot, steady, right, self._resets + 1)

    def _check(self, said: int) -> None:
        machine, anchor = self.machine, self._anchor
        if machine is None or anchor is None or anchor.boot_id != machine.boot_id:
            return
        expected = anchor.at + machine.steady() - anchor.boot_us
        if said > expected + machine.step_us:
            raise ClockAhead(
                f"The clock of this machine is {(said - expected) // 1_000_000} s ahead of what other processes wrote "
                "and of the time since the boot; nothing was changed. Set the clock right, or, where it is right, "
                "confirm it with: pendula jobs set-time",
                clock=format_utc(said),
                expected=format_utc(expected),
            )


def time_of_event(body: str) -> int:
    """When an event was written; 0 where its text does not tell. The timestamp is the last member of an event."""
    _, found, rest = body.rpartition(TIMESTAMP)
    try:
        return parse_utc(rest.removesuffix('"}')) if found else 0
    except InputRefused:
        return 0
