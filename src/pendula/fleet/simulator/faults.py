"""What goes wrong with one simulated truck, and until when: every fault by itself, told by its kind.

A jump moves what is reported, not the truck; one that is carried is elsewhere, and says so; one that is
pushed is beside its line; a silent truck drives on as
it was told; one that is stuck does not say so; one whose operation hangs is well but for that. Whatever happens, the
truck is where it is: the judge looks at the truth.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from pendula.fleet.units import MILLION

# No fault is farther off than a kilometre, none lasts longer than a day of the trucks.
FARTHEST_M = 1000
LONGEST_MS = 86_400_000
_FAR_UM = FARTHEST_M * MILLION


class FaultKind(StrEnum):
    """What may happen to a truck."""

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
    """One fault for a while. `x_um`, `y_um`: by how much reported poses are off, or where a truck is carried to or
    pushed from where it is; `by_um`: how far beyond its stop line the truck goes, or how much noise there is; `by_ms`:
    how late acknowledgements come."""

    kind: FaultKind
    for_ms: Annotated[int, Meta(ge=0, le=LONGEST_MS)]
    x_um: Annotated[int, Meta(ge=-_FAR_UM, le=_FAR_UM)] = 0
    y_um: Annotated[int, Meta(ge=-_FAR_UM, le=_FAR_UM)] = 0
    by_um: Annotated[int, Meta(ge=0, le=_FAR_UM)] = 0
    by_ms: Annotated[int, Meta(ge=0, le=LONGEST_MS)] = 0


@dataclass(slots=True)
class Trouble:
    """What is wrong with a truck now: for every kind until when, and what it was told last."""

    until_ms: dict[FaultKind, int] = field(default_factory=dict)
    told: dict[FaultKind, Fault] = field(default_factory=dict)
    acks: deque[tuple[int, int]] = field(default_factory=deque)
    acknowledged: int = 0

    def begin(self, fault: Fault, now_ms: int) -> None:
        self.until_ms[fault.kind] = now_ms + fault.for_ms
        self.told[fault.kind] = fault

    def has(self, kind: FaultKind, now_ms: int) -> bool:
        return now_ms <= self.until_ms.get(kind, -1)

    def is_still(self, now_ms: int) -> bool:
        """Whether the truck does not move, whatever it is told."""
        if not self.until_ms:
            return False
        return any(self.has(kind, now_ms) for kind in (FaultKind.STAND, FaultKind.FAULT, FaultKind.STUCK))

    def hears(self, now_ms: int) -> bool:
        if not self.until_ms:
            return True
        return not self.has(FaultKind.DEAFNESS, now_ms) and not self.has(FaultKind.OFFLINE, now_ms)

    def speaks(self, now_ms: int) -> bool:
        if not self.until_ms:
            return True
        return not self.has(FaultKind.SILENCE, now_ms) and not self.has(FaultKind.OFFLINE, now_ms)

    def offset_um(self, now_ms: int) -> tuple[int, int]:
        """By how much a reported pose is off."""
        if not self.has(FaultKind.POSE_JUMP, now_ms):
            return 0, 0
        jump = self.told[FaultKind.POSE_JUMP]
        return jump.x_um, jump.y_um

    def noise_um(self, now_ms: int) -> int:
        return self.told[FaultKind.NOISE].by_um if self.has(FaultKind.NOISE, now_ms) else 0

    def acknowledgement(self, seq: int, now_ms: int) -> int:
        """The number that is acknowledged: late, as long as that lasts."""
        if not self.until_ms:
            self.acknowledged = seq
            return seq
        late = self.told[FaultKind.LATE_ACKS].by_ms if self.has(FaultKind.LATE_ACKS, now_ms) else 0
        if late or self.acks:
            self.acks.append((now_ms + late, seq))
            while self.acks and self.acks[0][0] <= now_ms:
                self.acknowledged = max(self.acknowledged, self.acks.popleft()[1])
        else:
            self.acknowledged = seq
        return self.acknowledged


# How fast a truck rolls over its stop line.
OVERRUN_UM_S = 2 * MILLION // 10
