"""Why a truck must stand regardless of traffic: the codes, their precedence, and their alerts.

The order of `Stop` is the precedence of FLT-FAIL-3: faults of the truck, silence, missing acknowledgements, everything
that makes going on unsafe, then operator pauses.
"""

from enum import StrEnum

from pendula.fleet.contracts.traffic import HoldReason


class Stop(StrEnum):
    ROBOT_FAULT = "STOP_ROBOT_FAULT"
    STUCK = "STOP_STUCK"
    OFFLINE = "STOP_OFFLINE"
    NO_COMMS = "STOP_NO_COMMS"
    OVERRUN = "STOP_OVERRUN"
    # Before stops of only one of the two trucks: they stand for each other.
    OCCUPANCY_CONFLICT = "STOP_OCCUPANCY_CONFLICT"
    POSE_JUMP = "STOP_POSE_JUMP"
    OFF_ROUTE = "STOP_OFF_ROUTE"
    FOREIGN_OCCUPANCY = "STOP_FOREIGN_OCCUPANCY"
    STALE_TELEMETRY = "STOP_STALE_TELEMETRY"
    INVARIANT = "STOP_INVARIANT"
    OPERATOR = "STOP_OPERATOR"
    # Nothing is wrong any more, but other trucks have to move before this one may go on.
    SAFE_STATE = "WAIT_SAFE_STATE"


_HOLD = {
    Stop.ROBOT_FAULT: HoldReason.ROBOT_FAULT,
    Stop.STUCK: HoldReason.ROBOT_FAULT,
    Stop.OFFLINE: HoldReason.OFFLINE,
    Stop.NO_COMMS: HoldReason.NO_COMMS,
    Stop.SAFE_STATE: HoldReason.TRAFFIC_HOLD,
}
# Stops after which a truck has failed: it keeps what it has, needs nothing, and others take detours round it.
FAILURES = frozenset({Stop.ROBOT_FAULT, Stop.STUCK, Stop.OFFLINE, Stop.OVERRUN, Stop.POSE_JUMP, Stop.OFF_ROUTE})


def hold_of(stop: str) -> HoldReason:
    """The reason of FLT-FAIL-2 for a code."""
    return _HOLD.get(Stop(stop), HoldReason.SAFETY_STOP)
