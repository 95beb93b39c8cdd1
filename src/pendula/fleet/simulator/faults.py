"""What disturbs a simulated hall: settings of its quality, faults of trucks, bounded errors."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from pendula.fleet.units import MILLION
from pendula.kernel.rng import Pcg32, stream

# Faults of a simulated truck, and when they end.
# POSE_JUMP moves the reported pose, not the truck. CARRIED moves the truck, which reports its new pose. PUSHED moves
# it beside its line. With SILENCE it continues to follow its commands. STUCK is not reported. OPERATION_HANGS affects
# nothing else. The checker always uses the true pose.

# Limits of offsets and durations.
FARTHEST_M = 1000
LONGEST_MS = 86_400_000
_FAR_UM = FARTHEST_M * MILLION


class FaultKind(StrEnum):
    STAND = "STAND"
    POSE_JUMP = "POSE_JUMP"
    NOISE = "NOISE"
    SILENCE = "SILENCE"
    DEAFNESS = "DEAFNESS"
    OFFLINE = "OFFLINE"
    LATE_ACKS = "LATE_ACKS"
    BAD_TELEMETRY = "BAD_TELEMETRY"
    FAULT = "FAULT"
    STUCK = "STUCK"
    OVERRUN = "OVERRUN"
    CARRIED = "CARRIED"
    PUSHED = "PUSHED"
    OPERATION_HANGS = "OPERATION_HANGS"


class Fault(Struct, frozen=True):
    """A fault for some time. `x_um`, `y_um`: offset of reported poses, or of the truck if it is carried or pushed;
    `by_um`: distance beyond the stop line, or amplitude of noise; `by_ms`: delay of acknowledgements."""

    kind: FaultKind
    for_ms: Annotated[int, Meta(ge=0, le=LONGEST_MS)]
    x_um: Annotated[int, Meta(ge=-_FAR_UM, le=_FAR_UM)] = 0
    y_um: Annotated[int, Meta(ge=-_FAR_UM, le=_FAR_UM)] = 0
    by_um: Annotated[int, Meta(ge=0, le=_FAR_UM)] = 0
    by_ms: Annotated[int, Meta(ge=0, le=LONGEST_MS)] = 0


@dataclass(slots=True)
class ActiveFaults:
    """The active faults of a truck: for every kind its end and the last fault."""

    until_ms: dict[FaultKind, int] = field(default_factory=dict)
    latest: dict[FaultKind, Fault] = field(default_factory=dict)
    acks: deque[tuple[int, int]] = field(default_factory=deque)
    acknowledged: int = 0

    def begin(self, fault: Fault, now_ms: int) -> None:
        self.until_ms[fault.kind] = now_ms + fault.for_ms
        self.latest[fault.kind] = fault

    def has(self, kind: FaultKind, now_ms: int) -> bool:
        return now_ms <= self.until_ms.get(kind, -1)

    def is_immobile(self, now_ms: int) -> bool:
        """Whether a fault keeps the truck from moving."""
        if not self.until_ms:
            return False
        return any(self.has(kind, now_ms) for kind in (FaultKind.STAND, FaultKind.FAULT, FaultKind.STUCK))

    def can_receive(self, now_ms: int) -> bool:
        if not self.until_ms:
            return True
        return not self.has(FaultKind.DEAFNESS, now_ms) and not self.has(FaultKind.OFFLINE, now_ms)

    def can_send(self, now_ms: int) -> bool:
        if not self.until_ms:
            return True
        return not self.has(FaultKind.SILENCE, now_ms) and not self.has(FaultKind.OFFLINE, now_ms)

    def offset_um(self, now_ms: int) -> tuple[int, int]:
        """The offset of reported poses."""
        if not self.has(FaultKind.POSE_JUMP, now_ms):
            return 0, 0
        jump = self.latest[FaultKind.POSE_JUMP]
        return jump.x_um, jump.y_um

    def noise_um(self, now_ms: int) -> int:
        return self.latest[FaultKind.NOISE].by_um if self.has(FaultKind.NOISE, now_ms) else 0

    def acknowledgement(self, seq: int, now_ms: int) -> int:
        """The acknowledged sequence number, delayed by LATE_ACKS."""
        if not self.until_ms:
            self.acknowledged = seq
            return seq
        late = self.latest[FaultKind.LATE_ACKS].by_ms if self.has(FaultKind.LATE_ACKS, now_ms) else 0
        if late or self.acks:
            self.acks.append((now_ms + late, seq))
            while self.acks and self.acks[0][0] <= now_ms:
                self.acknowledged = max(self.acknowledged, self.acks.popleft()[1])
        else:
            self.acknowledged = seq
        return self.acknowledged


# Speed at which a truck overruns its stop line.
OVERRUN_UM_S = 2 * MILLION // 10


# Settings of a simulated hall: quality of positioning, tracking and radio, and rates of faults.
# Errors are in thousandths of the bounds in the profile of a truck: 1000 uses the whole bound.


class FaultRate(Struct, frozen=True):
    """The rate of a random fault, for every truck."""

    fault: Fault
    per_hour: int


class WorldSettings(Struct, frozen=True):
    """Times in milliseconds; a latency is the range to draw from for every message, a loss is in millionths."""

    step_ms: int = 50
    telemetry_period_ms: int = 100
    telemetry_latency_ms: tuple[int, int] = (10, 40)
    telemetry_loss_ppm: int = 0
    command_latency_ms: tuple[int, int] = (10, 60)
    command_loss_ppm: int = 0
    localization_permille: int = 1000
    tracking_permille: int = 1000
    # Error of the yaw; its bound moves no corner by more than `extraMarginM`, plus `headingErrorRad`.
    heading_permille: int = 1000
    stamp_permille: int = 1000
    # Deviation of the duration of loading and unloading.
    operation_permille: int = 0
    faults: tuple[FaultRate, ...] = ()


STILL = WorldSettings(
    telemetry_latency_ms=(0, 0),
    command_latency_ms=(0, 0),
    localization_permille=0,
    tracking_permille=0,
    heading_permille=0,
    stamp_permille=0,
)


# Bounded errors: slow drifts for true positions and tracking, independent errors for reports.
# Every truck has its own random stream for every source: switching one source off changes no other.

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


# Random faults: every truck has faults of a kind at a rate per hour, at times drawn from its own random stream.
# The same seed gives the same faults; a world without rates draws nothing.

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
