"""Sentences of alerts, and the alert that a fleet falls behind.

Alerts are not stored: when a fleet is opened, those whose cause still exists are derived from its state.

A fleet that falls behind raises one alert, and another when it keeps up again. It ticks as often as it can: simulated
trucks become slower than real time, and real ones get no command from a late tick. Lost ticks are not made up for, so
no backlog grows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import msgspec
from msgspec import UNSET, Struct

from pendula.fleet import explain, sentences
from pendula.fleet.contracts import Alert
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import AlertRaised, FleetEvent, Incident
from pendula.fleet.tick.observing import LastDropped
from pendula.fleet.tick.orders import awaits_person
from pendula.fleet.tick.reasons import WAIT_NOTICE, WAIT_TOO_LONG
from pendula.fleet.tick.records import Stop
from pendula.kernel.canonical import Json
from pendula.server.runtime.past import Facts

# Ticks are judged in groups of this size, so that a garbage collection or a checkpoint raises no alert.
WINDOW = 50
# Thousandths of the time: above the first a fleet falls behind, below the second it keeps up again.
BEHIND, WELL = 250, 50

_WAITS = (WAIT_NOTICE, WAIT_TOO_LONG)
# Why a truck is unavailable.
_FAILED = {
    "ROBOT_OFFLINE": "no reports from {who}",
    "ROBOT_FAULT": "{who} reports a fault",
    "POSE_JUMP": "the position of {who} jumped, and it may be in two places",
    "OFF_ROUTE": "{who} is not on its route",
    "HOLDPOINT_OVERRUN": "{who} passed its stop line",
}
# Incidents of several trucks.
_OF_SEVERAL = {
    "DEADLOCK_SUSPECTED": "trucks seem to be deadlocked",
    "DEADLOCK_CONFIRMED": "trucks are deadlocked",
}
_NOTHING_DROPPED: Mapping[str, LastDropped] = {}
_NOT_DONE = {"GO": "go but does not move", "TURN": "turn but does not"}


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
        """An alert or incident, or None for other events. `dropped`: the last dropped report of each truck."""
        match event:
            case AlertRaised(alert):
                names = [alert.robotId] if isinstance(alert.robotId, str) else []
                return cls(tick, now, "alert", alert, code=alert.code, robot_ids=names, message=_served(alert, dropped))
            case Incident():
                text = incident_sentence(event.code, event.robot_ids, event.message)
                return cls(tick, now, "incident", None, code=event.code, robot_ids=[*event.robot_ids], message=text)
        return None


class AlertList(Struct, frozen=True):
    alerts: list[AlertNow]


def standing_alerts(engine: FleetEngine) -> Iterator[AlertNow]:
    """Alerts of an opened fleet whose cause still exists: trucks that need a person, and long waits."""
    traffic, params = engine.traffic, engine.config.traffic
    if traffic.tick_number == 0:
        return
    for record, reason in zip(traffic.records, traffic.whys(), strict=True):
        waits = record.stop_code in (None, Stop.SAFE_STATE, Stop.FOREIGN_OCCUPANCY)
        too_long = waits and reason.wait_ms >= params.wait_alert_ms
        if not too_long and not awaits_person(record, traffic.now_ms, params):
            continue
        code = WAIT_TOO_LONG if too_long else reason.code or WAIT_TOO_LONG
        sentence = explain.sentence(reason, engine.dispatch.not_done(record.robot_id)).removesuffix(".")
        message = f"{sentence}; since before the fleet was opened"
        yield AlertNow(
            traffic.tick_number, traffic.now_ms, "alert", None, code=code, robot_ids=[record.robot_id], message=message
        )


def incident_sentence(code: str, robot_ids: Sequence[str], message: str) -> str:
    if len(robot_ids) == 1 and (sentence := explain.was_stopped(code, robot_ids[0])) is not None:
        return sentence
    return _OF_SEVERAL.get(code, message)


def trouble_of(event: Facts) -> str | None:
    """The sentence of a stored alert; None for a notice."""
    alert = msgspec.convert(event["alert"], Alert)
    if alert.severity == "INFO":
        return None
    return sentence_of(alert) or f"{alert.code} of {'the fleet' if alert.robotId is UNSET else alert.robotId}"


def incident_of(event: Facts) -> str:
    """The sentence of a stored incident."""
    names = tuple(event["robotIds"])
    return incident_sentence(event["code"], names, sentences.incident_sentence(event["code"], names, event["facts"]))


def _served(alert: Alert, dropped: Mapping[str, LastDropped]) -> str:
    """The sentence of an alert; for a truck that never reported, also its last dropped report."""
    sentence, last = sentence_of(alert), dropped.get(str(alert.robotId))
    if last is None or not alert.details.get("neverHeard"):
        return sentence
    return f"{sentence}; {explain.of_dropped(last)}"


def sentence_of(alert: Alert) -> str:
    """Empty if the code says everything."""
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
        return f"{who} ignores the command to stop"
    if alert.code == "SAFETY_STOP":
        return f"{who} is too fast to stop before its stop line; it stops at once"
    if alert.details.get("command") in _NOT_DONE:
        return (
            f"{who} has the command to {_NOT_DONE[str(alert.details['command'])]}; its place stays reserved"
            f"{_cut_off(alert.details)}"
        )
    if "keptResources" in alert.details:
        never = "{who} has never reported" if alert.details.get("neverHeard") else None
        why = (never or _FAILED.get(alert.code, "{who} is unavailable")).format(who=who)
        kept = "both stay reserved" if alert.code == "POSE_JUMP" else "its place stays reserved"
        return f"{why}; {kept}{_cut_off(alert.details)}"
    if alert.code == "FOREIGN_OCCUPANCY":
        return f"{who} stops: {alert.details.get('by') or 'another truck'} may be in its way"
    if alert.code == "OCCUPANCY_CONFLICT":
        by = alert.details.get("by") or "another truck"
        return f"{who} stops: it is closer to {by} than two trucks may be"
    if alert.code == "NO_COMMS":
        return f"{who} does not acknowledge its commands"
    if "robotIds" in alert.details:
        return f"{_names(alert.details['robotIds'])} wait for each other"
    return ""


def _refused(who: str, details: Mapping[str, Json]) -> str:
    cycle = details.get("cycle")
    if cycle:
        return f"the route of {who} waits: {_names(cycle)} would deadlock"
    return f"the route of {who} is refused: {details.get('code')}"


def _cut_off(details: Mapping[str, Json]) -> str:
    cut_off = details.get("cutOff")
    return f"; cut off by it: {_names(cut_off)}" if cut_off else ""


def _names(listed: Json) -> str:
    return ", ".join(map(str, listed)) if isinstance(listed, list) else str(listed)


def _lasting(ms: Json) -> str:
    return explain.lasting(ms if isinstance(ms, int) else 0)


class PunctualityChange(Struct, frozen=True):
    """A fleet falls behind or keeps up again; rates are tenths of ticks per second."""

    behind: bool
    tenths: int
    wanted_tenths: int

    @property
    def message(self) -> str:
        rate, wanted = (f"{tenths // 10}.{tenths % 10}" for tenths in (self.tenths, self.wanted_tenths))
        if self.behind:
            return f"the fleet ticks {rate} times a second instead of {wanted}: the machine is too slow or too busy"
        return f"the fleet ticks {wanted} times a second again"


class Punctuality:
    """Whether the ticks of one fleet come `period_us` apart."""

    def __init__(self, period_us: int) -> None:
        self._period_us = period_us
        self._ticks = 0
        self._lost_us = 0
        self.behind = False

    def ticked(self, lost_us: int) -> PunctualityChange | None:
        """Count a tick that ended `lost_us` after the next one was due."""
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
        return PunctualityChange(behind, WINDOW * 10_000_000 // (wanted + lost), WINDOW * 10_000_000 // wanted)
