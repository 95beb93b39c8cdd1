"""Sentences of alerts."""

from typing import Any

import pytest

from pendula.fleet.contracts import Alert
from pendula.fleet.events import AlertRaised, FleetEvent, Incident, NoticeRaised
from pendula.fleet.scenarios import Run, shipped
from pendula.kernel import canonical
from pendula.kernel.canonical import Json
from pendula.server.schedulers.fleet.alerts import AlertNow, incident_of, sentence_of, standing_alerts, trouble_of


@pytest.mark.parametrize(
    ("code", "details", "said"),
    [
        ("WAIT_NOTICE", {"by": "R2", "waitMs": 10_400}, "R1 has waited for R2 for 10 s"),
        ("ROUTE_REFUSED", {"code": "X", "cycle": []}, "the route of R1 is refused: X"),
        (
            "ROUTE_REFUSED",
            {"code": "WAIT_SAFE_STATE", "cycle": ["R1", "R2"]},
            "the route of R1 waits: R1, R2 would deadlock",
        ),
        (
            "ROBOT_OFFLINE",
            {"keptResources": 3, "cutOff": ["R2"]},
            "no reports from R1; its place stays reserved; cut off by it: R2",
        ),
        ("ROBOT_OFFLINE", {"keptResources": 3, "cutOff": []}, "no reports from R1; its place stays reserved"),
        (
            "ROBOT_OFFLINE",
            {"keptResources": 3, "neverHeard": True},
            "R1 has never reported; its place stays reserved",
        ),
        (
            "POSE_JUMP",
            {"keptResources": 3, "cutOff": []},
            "the position of R1 jumped, and it may be in two places; both stay reserved",
        ),
        ("OFF_ROUTE", {"keptResources": 3, "cutOff": []}, "R1 is not on its route; its place stays reserved"),
        ("HOLDPOINT_OVERRUN", {"keptResources": 3, "cutOff": []}, "R1 passed its stop line; its place stays reserved"),
        ("ROBOT_FAULT", {"keptResources": 3, "cutOff": []}, "R1 reports a fault; its place stays reserved"),
        ("ANOTHER", {"keptResources": 3, "cutOff": []}, "R1 is unavailable; its place stays reserved"),
        ("FOREIGN_OCCUPANCY", {"by": "R2", "requirement": "FLT-FAIL-6"}, "R1 stops: R2 may be in its way"),
        (
            "OCCUPANCY_CONFLICT",
            {"by": "R2", "requirement": "FLT-FAIL-15"},
            "R1 stops: it is closer to R2 than two trucks may be",
        ),
        ("DEADLOCK_SUSPECTED", {"robotIds": ["R1", "R2"], "resources": []}, "R1, R2 wait for each other"),
        ("ROBOT_FAULT", {"operation": "LOAD", "timeoutMs": 9}, "R1 did not load within 9 ms"),
        (
            "ROBOT_FAULT",
            {"operation": "LOAD", "timeoutMs": None, "keptResources": 3, "cutOff": ["R2"]},
            "R1 could not load; cut off by it: R2",
        ),
        ("NO_COMMS", {"lastAckSeq": 4}, "R1 does not acknowledge its commands"),
        ("TICK_FAILED", {}, ""),
        (
            "ROBOT_FAULT",
            {"command": "TURN", "keptResources": 3, "cutOff": ["R2"]},
            "R1 has the command to turn but does not; its place stays reserved; cut off by it: R2",
        ),
        (
            "ROBOT_FAULT",
            {"command": "GO", "keptResources": 3, "cutOff": []},
            "R1 has the command to go but does not move; its place stays reserved",
        ),
        (
            "SAFETY_STOP",
            {"requirement": "FLT-TEST-47"},
            "R1 is too fast to stop before its stop line; it stops at once",
        ),
        ("STOP_IGNORED", {"lastAckSeq": 4}, "R1 ignores the command to stop"),
    ],
)
def test_an_alert_has_a_sentence(code: str, details: dict[str, Json], said: str) -> None:
    assert sentence_of(Alert("al-1", code, "INFO", 0, details, "R1")) == said


def stored(event: FleetEvent) -> Any:
    return canonical.decode(canonical.encode(event))


@pytest.mark.parametrize(
    ("code", "names", "said"),
    [
        ("STOP_INVARIANT", ("R1",), "R1 was stopped: it was too fast to stop before its stop line"),
        ("STOP_FOREIGN_OCCUPANCY", ("R1",), "R1 was stopped: another truck may be on its way"),
        ("DEADLOCK_CONFIRMED", (), "trucks are deadlocked"),
        ("TICK_FAILED", (), "as the engine says it"),
    ],
)
def test_a_live_and_a_stored_incident_have_the_same_sentence(code: str, names: tuple[str, ...], said: str) -> None:
    event = Incident("inc-1", code, names, {"error": "as the engine says it"})
    alert = AlertNow.of(event, 1, 100)

    assert alert is not None
    assert alert.message == incident_of(stored(event)) == said


@pytest.mark.parametrize(("severity", "said"), [("INFO", None), ("WARN", "R1 has waited for R2 for 1 min 30 s")])
def test_a_stored_alert_is_an_incident_unless_it_is_a_notice(severity: str, said: str | None) -> None:
    raised = AlertRaised(Alert("al-1", "WAIT_TOO_LONG", severity, 0, {"by": "R2", "waitMs": 90_000}, "R1"))

    assert trouble_of(stored(raised)) == said


@pytest.mark.req("FLT-OSC-6")
def test_the_list_of_alerts_has_no_notices() -> None:
    notice = Alert("al-1", "WAIT_NOTICE", "INFO", 0, {"by": "R2", "waitMs": 15_000}, "R1")

    assert AlertNow.of(NoticeRaised(notice), 1, 100) is None
    assert AlertNow.of(AlertRaised(notice), 1, 100) is not None


def test_standing_alerts_are_derived_from_the_state_and_a_new_fleet_has_none() -> None:
    run = Run(shipped("hall"))
    new = list(standing_alerts(run.engine))
    for _ in range(200):
        run.step()
    well = list(standing_alerts(run.engine))
    run.traffic.records[0].paused = True
    run.traffic.records[1].waiting_since_ms = run.now_ms - 806_000
    alerts = {alert.robot_ids[0]: (alert.code, alert.message) for alert in standing_alerts(run.engine)}

    assert (new, well) == ([], [])
    assert alerts.keys() == {record.robot_id for record in run.traffic.records[:2]}
    assert alerts[run.traffic.records[1].robot_id][0] == "WAIT_TOO_LONG"
    assert all(message.endswith("; since before the fleet was opened") for _, message in alerts.values())
