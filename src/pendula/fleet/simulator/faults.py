"""Faults of a simulated truck, and when they end.

POSE_JUMP moves the reported pose, not the truck. CARRIED moves the truck, which reports its new pose. PUSHED moves it
beside its line. With SILENCE it continues to follow its commands. STUCK is not reported. OPERATION_HANGS affects
nothing else. The checker always uses the true pose.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from pendula.fleet.units import MILLION

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
