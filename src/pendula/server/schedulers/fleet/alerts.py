"""Alerts as sentences: what a person reads beside the code. What is written in the details goes over them.

Alerts are not kept: those whose cause still stands when a fleet is opened are made anew of its state.

One is not of the engine: that ticks do not come as often as they should is told once, and once that they do again. A
fleet that cannot keep up ticks as often as it can: simulated trucks are slower than life then, and real ones get no
command out of a tick that is too late. Nothing is made up for, so nothing piles up.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import msgspec
from msgspec import UNSET, Struct

from pendula.fleet import explain, sentences
from pendula.fleet.contracts.traffic import Alert
from pendula.fleet.driving.stops import Stop
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import AlertRaised, FleetEvent, Incident
from pendula.fleet.health.recovery import awaits_person
from pendula.fleet.tick.alarms import WAIT_NOTICE, WAIT_TOO_LONG
from pendula.fleet.views.dropped import LastDropped
from pendula.kernel.canonical import Json
from pendula.server.hosting.moments import Facts

# So many ticks are looked at together: a collection of garbage or a checkpoint is no trouble.
WINDOW = 50
# Thousandths of the time wanted that may be lost before it is told, and at which all is well again.
BEHIND, WELL = 250, 50

_WAITS = (WAIT_NOTICE, WAIT_TOO_LONG)
# Why nobody can count on a truck.
_FAILED = {
    "ROBOT_OFFLINE": "nothing is heard of {who}",
    "ROBOT_FAULT": "{who} reports a fault",
    "POSE_JUMP": "the position of {who} jumped, and it may be in two places",
    "OFF_ROUTE": "{who} is not on its route",
    "HOLDPOINT_OVERRUN": "{who} passed its stop line",
}
# Incidents that are not those of one truck.
_OF_SEVERAL = {
    "DEADLOCK_SUSPECTED": "trucks seem to wait for each other for good",
    "DEADLOCK_CONFIRMED": "trucks wait for each other for good",
}
_NOTHING_DROPPED: Mapping[str, LastDropped] = {}
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

    @classmethod
    def of(
        cls, event: FleetEvent, tick: int, now: int, dropped: Mapping[str, LastDropped] = _NOTHING_DROPPED
    ) -> Self | None:
        """What an event tells; None where that is neither an alert nor an incident. `dropped`: the reports that were
        dropped last, by the truck they name."""
        match event:
            case AlertRaised(alert):
                names = [alert.robotId] if isinstance(alert.robotId, str) else []
                return cls(tick, now, "alert", alert, code=alert.code, robot_ids=names, message=_served(alert, dropped))
            case Incident():
                said = incident_sentence(event.code, event.robot_ids, event.message)
                return cls(tick, now, "incident", None, code=event.code, robot_ids=[*event.robot_ids], message=said)
        return None


class AlertList(Struct, frozen=True):
    alerts: list[AlertNow]


def standing(engine: FleetEngine) -> Iterator[AlertNow]:
    """What was told before a fleet is opened, and is still so: trucks that need a person, and long waits."""
    traffic, params = engine.traffic, engine.config.traffic
    if traffic.tick_number == 0:
        return
    for record, told in zip(traffic.records, traffic.whys(), strict=True):
        waits = record.stop_code in (None, Stop.SAFE_STATE, Stop.FOREIGN_OCCUPANCY)
        too_long = waits and told.wait_ms >= params.wait_alert_ms
        if not too_long and not awaits_person(record, traffic.now_ms, params):
            continue
        code = WAIT_TOO_LONG if too_long else told.code or WAIT_TOO_LONG
        said = explain.sentence(told, engine.dispatch.not_done(record.robot_id)).removesuffix(".")
        message = f"{said}; this was so before the fleet was opened"
        yield AlertNow(
            traffic.tick_number, traffic.now_ms, "alert", None, code=code, robot_ids=[record.robot_id], message=message
        )


def incident_sentence(code: str, robot_ids: Sequence[str], message: str) -> str:
    """An incident in words: the engine tells it by its code."""
    if len(robot_ids) == 1 and (told := explain.was_stopped(code, robot_ids[0])) is not None:
        return told
    return _OF_SEVERAL.get(code, message)


def trouble_of(event: Facts) -> str | None:
    """The sentence of a stored alert that is more than a notice; None for a notice."""
    alert = msgspec.convert(event["alert"], Alert)
    if alert.severity == "INFO":
        return None
    return sentence_of(alert) or f"{alert.code} of {'the fleet' if alert.robotId is UNSET else alert.robotId}"


def incident_of(event: Facts) -> str:
    """The sentence of a stored incident."""
    names = tuple(event["robotIds"])
    return incident_sentence(event["code"], names, sentences.incident_sentence(event["code"], names, event["facts"]))


def _served(alert: Alert, dropped: Mapping[str, LastDropped]) -> str:
    """The sentence of an alert; of a truck that was never heard, also what was dropped."""
    said, last = sentence_of(alert), dropped.get(str(alert.robotId))
    return said if last is None or not alert.details.get("neverHeard") else f"{said}; {explain.of_dropped(last)}"


def sentence_of(alert: Alert) -> str:
    """Empty where the code says all there is to say."""
    robot = None if alert.robotId is UNSET else alert.robotId
    sentence = sentences.alert_sentence(alert.code, robot, alert.details)
    if sentence is not None:
        return f"{sentence}{_cut_off(alert.details)}"
    who = "a truck" if alert.robotId is UNSET else str(alert.robotId)
    if alert.code in _WAITS:
        return f"{who} has waited for {alert.details['by']} for {_lasting(alert.details['waitMs'])}"
    if alert.code == "ROUTE_REFUSED":
        return _refused(who, alert.details)
    if alert.code == "STOP_IGNORED":
        return f"{who} drives on though it was told to stop"
    if alert.code == "SAFETY_STOP":
        return f"{who} is too fast to stop before its stop line, which every truck must be able to; it stops at once"
    if alert.details.get("command") in _NOT_DONE:
        return (
            f"{who} was told to {_NOT_DONE[str(alert.details['command'])]}; it keeps its place{_cut_off(alert.details)}"
        )
    if "keptResources" in alert.details:
        never = "nothing was ever heard of {who}" if alert.details.get("neverHeard") else None
        why = (never or _FAILED.get(alert.code, "{who} cannot be counted on")).format(who=who)
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


def _lasting(ms: Json) -> str:
    return explain.lasting(ms if isinstance(ms, int) else 0)


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
