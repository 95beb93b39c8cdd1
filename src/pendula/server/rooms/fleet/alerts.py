"""Alerts as sentences: what a person reads beside the code. What is written in the details goes over them."""

from collections.abc import Mapping

from msgspec import UNSET

from pendula.fleet.contracts.traffic import Alert
from pendula.kernel.canonical import Json

_WAITS = ("WAIT_NOTICE", "WAIT_TOO_LONG")
_NOT_DONE = {"GO": "go and does not move", "TURN": "turn and does not"}


def sentence_of(alert: Alert) -> str:
    """Empty where the code says all there is to say."""
    told = alert.details.get("message")
    if isinstance(told, str):
        return told
    who = "a truck" if alert.robotId is UNSET else str(alert.robotId)
    if alert.code in _WAITS:
        return f"{who} has waited for {alert.details['by']} for {_seconds(alert.details['waitMs'])} s"
    if alert.code == "ROUTE_REFUSED":
        return _refused(who, alert.details)
    if alert.code == "STOP_IGNORED":
        return f"{who} drives on though it was told to stop"
    if alert.details.get("told") in _NOT_DONE:
        return f"{who} was told to {_NOT_DONE[str(alert.details['told'])]}; it keeps its place{_cut_off(alert.details)}"
    if "keptResources" in alert.details:
        return f"{who} cannot be counted on and keeps its place{_cut_off(alert.details)}"
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
