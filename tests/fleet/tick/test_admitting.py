"""Routes that wait for admission: when they are checked again, and the cost of the checks."""

import pytest

from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.contracts import Alert, Phase
from pendula.fleet.tick.draft import Draft
from pendula.fleet.tick.granting import grant
from pendula.fleet.tick.phases import _is_asleep
from pendula.fleet.traffic.lock_state import Refusal
from tests.fleet.sites import scene
from tests.fleet.tick.test_granting import about_to_grant
from tests.fleet.tick.yard import Yard

NOW_MS, RETRY_MS, SLEEP_MS = 10_000, 9_000, 12_000


def refused() -> Draft:
    """A tick in which the route of the first truck sleeps because of the second."""
    draft = about_to_grant()
    draft.now_ms = NOW_MS
    record = draft.records[0]
    refusal = Refusal.of(draft.locks, 0, (0, 1))
    record.refused_cycle, record.refused_versions = refusal.cycle, refusal.versions
    record.retry_ms, record.sleep_ms = RETRY_MS, SLEEP_MS
    return draft


@pytest.mark.req("FLT-LIVE-4", "FLT-OSC-3")
def test_a_refused_route_sleeps_while_its_blockers_do_not_change() -> None:
    draft = refused()

    assert _is_asleep(draft, draft.records[0])


@pytest.mark.req("FLT-LIVE-4", "FLT-OSC-3")
def test_a_refused_route_is_checked_again_after_a_blocker_has_moved() -> None:
    draft = refused()
    draft.locks.truck(1).version += 1

    assert not _is_asleep(draft, draft.records[0])


@pytest.mark.req("FLT-OSC-3")
def test_a_refused_route_is_not_checked_before_its_cooldown_is_over() -> None:
    draft = refused()
    draft.locks.truck(1).version += 1
    draft.now_ms = RETRY_MS - 1

    assert _is_asleep(draft, draft.records[0])


@pytest.mark.req("FLT-LIVE-4")
def test_a_refused_route_is_checked_again_after_its_pause_without_a_change() -> None:
    draft = refused()
    draft.now_ms = SLEEP_MS

    assert not _is_asleep(draft, draft.records[0])


@pytest.mark.req("FLT-LIVE-12")
def test_routes_over_their_search_budget_leave_units_their_whole_budget() -> None:
    draft = about_to_grant()
    draft.admissions.left, draft.order = -100, []
    before = draft.effort.left
    grant(draft)

    assert draft.effort.left == before > 0


@pytest.mark.req("FLT-LIVE-12")
def test_units_may_use_the_search_budget_that_routes_left() -> None:
    draft = about_to_grant()
    draft.order = []
    before, left = draft.effort.left, draft.admissions.left
    grant(draft)

    assert draft.effort.left == before + left > before


@pytest.mark.req("FLT-TEST-49", "FLT-OSC-6", "FLT-LIVE-10")
def test_a_truck_without_an_admitted_route_raises_a_notice_then_an_alert_like_any_waiting_truck() -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(2), [FL_STD])
    first = yard.drivers["R1"]
    alerts: list[Alert] = []
    yard.send("R1", "WEST", "EAST")
    while first.phase is not Phase.LOADING:
        yard.step()
    # It becomes silent in its pick, where the other truck has to go.
    first.mute = True
    yard.run(40)
    yard.send("R2", "WEST", "EAST")
    for _ in range(1_200):
        outputs = yard.step()
        alerts += [*outputs.notices, *outputs.alerts]
    raised = [alert for alert in alerts if alert.robotId == "R2" and alert.code != "ROUTE_REFUSED"]

    assert yard.traffic.why("R2").code == "WAIT_SAFE_STATE"
    assert [(alert.code, alert.details["by"], alert.details["waitMs"]) for alert in raised] == [
        ("WAIT_NOTICE", "R1", 15_000),
        ("WAIT_TOO_LONG", "R1", 90_000),
    ]
