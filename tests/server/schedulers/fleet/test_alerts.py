"""What a person reads beside the code of an alert."""

from typing import Any

import pytest

from pendula.fleet.contracts.traffic import Alert
from pendula.fleet.events import AlertRaised, FleetEvent, Incident, NoticeRaised
from pendula.fleet.scenarios import Run, shipped
from pendula.kernel import canonical
from pendula.kernel.canonical import Json
from pendula.server.schedulers.fleet.alerts import AlertNow, incident_of, sentence_of, standing, trouble_of


@pytest.mark.parametrize(
    ("code", "details", "said"),
    [
        ("WAIT_NOTICE", {"by": "R2", "waitMs": 10_400}, "R1 has waited for R2 for 10 s"),
        ("ROUTE_REFUSED", {"code": "X", "cycle": []}, "the route of R1 is refused: X"),
        (
            "ROUTE_REFUSED",
            {"code": "WAIT_SAFE_STATE", "cycle": ["R1", "R2"]},
            "the route of R1 waits: R1, R2 would wait for each other",
        ),
        (
            "ROBOT_OFFLINE",
            {"keptResources": 3, "cutOff": ["R2"]},
            "nothing is heard of R1; it keeps its place; cut off by it: R2",
        ),
        ("ROBOT_OFFLINE", {"keptResources": 3, "cutOff": []}, "nothing is heard of R1; it keeps its place"),
        (
            "ROBOT_OFFLINE",
            {"keptResources": 3, "neverHeard": True},
            "nothing was ever heard of R1; it keeps its place",
        ),
        (
            "POSE_JUMP",
            {"keptResources": 3, "cutOff": []},
            "the position of R1 jumped, and it may be in two places; both are kept for it",
        ),
        ("OFF_ROUTE", {"keptResources": 3, "cutOff": []}, "R1 is not on its route; it keeps its place"),
        ("HOLDPOINT_OVERRUN", {"keptResources": 3, "cutOff": []}, "R1 passed its stop line; it keeps its place"),
        ("ROBOT_FAULT", {"keptResources": 3, "cutOff": []}, "R1 reports a fault; it keeps its place"),
        ("ANOTHER", {"keptResources": 3, "cutOff": []}, "R1 cannot be counted on; it keeps its place"),
        ("FOREIGN_OCCUPANCY", {"by": "R2", "requirement": "FLT-FAIL-6"}, "R1 stops: R2 may be on its way"),
        (
            "OCCUPANCY_CONFLICT",
            {"by": "R2", "requirement": "FLT-FAIL-15"},
            "R1 stops: it and R2 are closer together than two trucks may be",
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
            "R1 was told to turn and does not; it keeps its place; cut off by it: R2",
        ),
        (
            "ROBOT_FAULT",
            {"command": "GO", "keptResources": 3, "cutOff": []},
            "R1 was told to go and does not move; it keeps its place",
        ),
        (
            "SAFETY_STOP",
            {"requirement": "FLT-TEST-47"},
            "R1 is too fast to stop before its stop line, which every truck must be able to; it stops at once",
        ),
        ("STOP_IGNORED", {"lastAckSeq": 4}, "R1 drives on though it was told to stop"),
    ],
)
def test_an_alert_is_a_sentence(code: str, details: dict[str, Json], said: str) -> None:
    assert sentence_of(Alert("al-1", code, "INFO", 0, details, "R1")) == said


def stored(event: FleetEvent) -> Any:
    return canonical.decode(canonical.encode(event))


@pytest.mark.parametrize(
    ("code", "names", "said"),
    [
        ("STOP_INVARIANT", ("R1",), "R1 was stopped: it was too fast to stop before its stop line"),
        ("STOP_FOREIGN_OCCUPANCY", ("R1",), "R1 was stopped: another truck may be on its way"),
        ("DEADLOCK_CONFIRMED", (), "trucks wait for each other for good"),
        ("TICK_FAILED", (), "as the engine says it"),
    ],
)
def test_an_incident_is_told_in_words_and_in_its_stored_form_alike(
    code: str, names: tuple[str, ...], said: str
) -> None:
    event = Incident("inc-1", code, names, {"error": "as the engine says it"})
    told = AlertNow.of(event, 1, 100)

    assert told is not None
    assert told.message == incident_of(stored(event)) == said


@pytest.mark.parametrize(("severity", "said"), [("INFO", None), ("WARN", "R1 has waited for R2 for 1 min 30 s")])
def test_of_stored_alerts_those_are_incidents_that_are_more_than_a_notice(severity: str, said: str | None) -> None:
    raised = AlertRaised(Alert("al-1", "WAIT_TOO_LONG", severity, 0, {"by": "R2", "waitMs": 90_000}, "R1"))

    assert trouble_of(stored(raised)) == said


@pytest.mark.req("FLT-OSC-6")
def test_a_notice_is_no_part_of_the_list_of_alerts() -> None:
    notice = Alert("al-1", "WAIT_NOTICE", "INFO", 0, {"by": "R2", "waitMs": 15_000}, "R1")

    assert AlertNow.of(NoticeRaised(notice), 1, 100) is None
    assert AlertNow.of(AlertRaised(notice), 1, 100) is not None


def test_alerts_whose_cause_stands_are_made_of_the_state_of_a_fleet_and_of_a_new_one_none() -> None:
    run = Run(shipped("hall"))
    new = list(standing(run.engine))
    for _ in range(200):
        run.step()
    well = list(standing(run.engine))
    run.traffic.records[0].paused = True
    run.traffic.records[1].waiting_since_ms = run.now_ms - 806_000
    told = {one.robot_ids[0]: (one.code, one.message) for one in standing(run.engine)}

    assert (new, well) == ([], [])
    assert told.keys() == {one.robot_id for one in run.traffic.records[:2]}
    assert told[run.traffic.records[1].robot_id][0] == "WAIT_TOO_LONG"
    assert all(message.endswith("; this was so before the fleet was opened") for _, message in told.values())
