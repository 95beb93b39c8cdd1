"""Alerts as sentences: what a person reads beside the code. What is written in the details goes over them.

One is not of the engine: that ticks do not come as often as they should is told once, and once that they do again. A
fleet that cannot keep up ticks as often as it can: simulated trucks are slower than life then, and real ones get no
command out of a tick that is too late. Nothing is made up for, so nothing piles up.
"""

from collections.abc import Mapping

from msgspec import UNSET, Struct

from pendula.fleet.contracts.traffic import Alert
from pendula.kernel.canonical import Json

# So many ticks are looked at together: a collection of garbage or a checkpoint is no trouble.
WINDOW = 50
# Thousandths of the time wanted that may be lost before it is told, and at which all is well again.
BEHIND, WELL = 250, 50

_WAITS = ("WAIT_NOTICE", "WAIT_TOO_LONG")
# Why nobody can count on a truck.
_FAILED = {
    "ROBOT_OFFLINE": "nothing is heard of {who}",
    "ROBOT_FAULT": "{who} reports a fault",
    "POSE_JUMP": "the position of {who} jumped, and it may be in two places",
    "OFF_ROUTE": "{who} is not on its route",
    "HOLDPOINT_OVERRUN": "{who} passed its stop line",
}
_NOT_DONE = {"GO": "go and does not move", "TURN": "turn and does not"}


class AlertNow(Struct, frozen=True):
    """An alert or incident since the server began to serve the fleet."""

    tick: int
    now: int
    kind: str
    alert: Alert | None
    code: str
    robot_ids: list[str]
    message: str


class AlertList(Struct, frozen=True):
    alerts: list[AlertNow]


def sentence_of(alert: Alert) -> str:
    """Empty where the code says all there is to say."""
    told = alert.details.get("message")
    if isinstance(told, str):
        return f"{told}{_cut_off(alert.details)}"
    who = "a truck" if alert.robotId is UNSET else str(alert.robotId)
    if alert.code in _WAITS:
        return f"{who} has waited for {alert.details['by']} for {_seconds(alert.details['waitMs'])} s"
    if alert.code == "ROUTE_REFUSED":
        return _refused(who, alert.details)
    if alert.code == "STOP_IGNORED":
        return f"{who} drives on though it was told to stop"
    if alert.code == "SAFETY_STOP":
        return f"{who} is too fast to stop before its stop line, which every truck must be able to; it stops at once"
    if alert.details.get("told") in _NOT_DONE:
        return f"{who} was told to {_NOT_DONE[str(alert.details['told'])]}; it keeps its place{_cut_off(alert.details)}"
    if "keptResources" in alert.details:
        why = _FAILED.get(alert.code, "{who} cannot be counted on").format(who=who)
        kept = "both are kept for it" if alert.code == "POSE_JUMP" else "it keeps its place"
        return f"{why}; {kept}{_cut_off(alert.details)}"
    if alert.code == "FOREIGN_OCCUPANCY":
        return f"{who} stops: {alert.details.get('by') or 'another truck'} may be on its way"
    if alert.code == "OCCUPANCY_CONFLICT":
        by = alert.details.get("by") or "another truck"
        return f"{who} stops: it and {by} are closer together than two trucks may be"
    if alert.code == "NO_COMMS":
        return f"{who} does not acknowledge its commands"
    if "robotIds" in alert.details:
        return f"{_names(alert.details['robotIds'])} wait for each other"
    return ""


def _refused(who: str, details: Mapping[str, Json]) -> str:
    cycle = details.get("cycle")
    if cycle:
        return f"the route of {who} waits: {_names(cycle)} would wait for each other"
    return f"the route of {who} is refused: {details.get('code')}"


def _cut_off(details: Mapping[str, Json]) -> str:
    cut_off = details.get("cutOff")
    return f"; cut off by it: {_names(cut_off)}" if cut_off else ""


def _names(listed: Json) -> str:
    return ", ".join(map(str, listed)) if isinstance(listed, list) else str(listed)


def _seconds(ms: Json) -> int:
    return ms // 1000 if isinstance(ms, int) else 0


class Told(Struct, frozen=True):
    """What is to be said: how many ticks come in a second, how many should, and whether that is trouble."""

    behind: bool
    tenths: int
    wanted_tenths: int

    @property
    def message(self) -> str:
        rate, wanted = (f"{one // 10}.{one % 10}" for one in (self.tenths, self.wanted_tenths))
        if self.behind:
            return f"the fleet ticks {rate} times a second instead of {wanted}: this machine does not keep up with it"
        return f"the fleet ticks {wanted} times a second again"


class Punctuality:
    """Ticks of one fleet that should be `period_us` apart."""

    def __init__(self, period_us: int) -> None:
        self._period_us = period_us
        self._ticks = 0
        self._lost_us = 0
        self.behind = False

    def ticked(self, lost_us: int) -> Told | None:
        """One more tick, over so much later than the next one was due; what is to be said about it, if anything."""
        self._ticks += 1
        self._lost_us += max(0, lost_us)
        if self._ticks < WINDOW:
            return None
        wanted, lost = self._ticks * self._period_us, self._lost_us
        self._ticks, self._lost_us = 0, 0
        behind = lost * 1000 > wanted * (WELL if self.behind else BEHIND)
        if behind == self.behind:
            return None
        self.behind = behind
        return Told(behind, WINDOW * 10_000_000 // (wanted + lost), WINDOW * 10_000_000 // wanted)
