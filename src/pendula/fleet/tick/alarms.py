"""Alerts of a tick: deadlocks, refused routes, failed trucks and those that they cut off.

Without a failed truck there must be no deadlock alert (FLT-LIVE-6); the refuge rule ensures this.
"""

from collections.abc import Mapping

from msgspec import UNSET

from pendula.fleet.contracts import Alert
from pendula.fleet.tick.reasons import WAIT_SAFE_STATE
from pendula.fleet.tick.records import Record, Stop
from pendula.fleet.traffic.refuge import cycle_of
from pendula.kernel.canonical import Json

DEADLOCK_SUSPECTED = "DEADLOCK_SUSPECTED"
DEADLOCK_CONFIRMED = "DEADLOCK_CONFIRMED"
ROUTE_REFUSED = "ROUTE_REFUSED"
ROBOT_OFFLINE = "ROBOT_OFFLINE"
ROBOT_FAULT = "ROBOT_FAULT"
SAFETY_STOP = "SAFETY_STOP"
POSE_JUMP = "POSE_JUMP"
OFF_ROUTE = "OFF_ROUTE"
HOLDPOINT_OVERRUN = "HOLDPOINT_OVERRUN"
FOREIGN_OCCUPANCY = "FOREIGN_OCCUPANCY"
OCCUPANCY_CONFLICT = "OCCUPANCY_CONFLICT"
ROBOT_SET_ASIDE = "ROBOT_SET_ASIDE"
NO_COMMS = "NO_COMMS"
# A truck drives on despite a stop command.
STOP_IGNORED = "STOP_IGNORED"
# A truck waits for the same truck: first a notice, later an alert. Notices are not in the list of alerts.
WAIT_NOTICE = "WAIT_NOTICE"
WAIT_TOO_LONG = "WAIT_TOO_LONG"
# Alert codes of failed trucks, by the code with which they stand.
FAILURE: Mapping[str, str] = {
    Stop.ROBOT_FAULT: ROBOT_FAULT,
    Stop.STUCK: ROBOT_FAULT,
    Stop.OFFLINE: ROBOT_OFFLINE,
    Stop.OVERRUN: HOLDPOINT_OVERRUN,
    Stop.POSE_JUMP: POSE_JUMP,
    Stop.OFF_ROUTE: OFF_ROUTE,
    # An operator has freed what it held: it is no longer where it was.
    Stop.OPERATOR: ROBOT_SET_ASIDE,
}
ALERTS = (
    *(DEADLOCK_SUSPECTED, DEADLOCK_CONFIRMED, ROUTE_REFUSED, ROBOT_OFFLINE, ROBOT_FAULT, SAFETY_STOP),
    *(POSE_JUMP, OFF_ROUTE, HOLDPOINT_OVERRUN, FOREIGN_OCCUPANCY, OCCUPANCY_CONFLICT, ROBOT_SET_ASIDE, NO_COMMS),
    *(STOP_IGNORED, WAIT_NOTICE, WAIT_TOO_LONG),
)
# A truck this close to the end of its grant is blocked; farther off it still drives or turns, and frees what is behind
# it. Contains the hysteresis of hold points and the buffer before them.
_AT_THE_END_UM = 500_000


def waiting_cycle(records: list[Record], waits: Mapping[int, set[int]]) -> tuple[int, ...]:
    """A cycle of standing trucks, each waiting for what the next one holds; empty if there is none."""
    graph = {
        number: sum(1 << other for other in sorted(others))
        for number, others in sorted(waits.items())
        if (waiting := records[number].waiting) is not None
        and waiting.code != WAIT_SAFE_STATE
        and records[number].grant_um - records[number].at_um <= _AT_THE_END_UM
    }
    return cycle_of(graph)


def watched(since: dict[tuple[int, ...], int], cycle: tuple[int, ...], now_ms: int) -> dict[tuple[int, ...], int]:
    """Since when the cycle of this tick exists, by its members."""
    if not cycle:
        return {}
    members = tuple(sorted(cycle))
    return {members: since.get(members, now_ms)}


def alert(
    number: int, code: str, severity: str, since_ms: int, robot_id: str | None = None, /, **details: Json
) -> Alert:
    assert code in ALERTS, f"{code} is not in ALERTS"
    return Alert(
        alertId=f"al-{number}",
        code=code,
        severity=severity,
        sinceMs=since_ms,
        details=details,
        robotId=UNSET if robot_id is None else robot_id,
    )
