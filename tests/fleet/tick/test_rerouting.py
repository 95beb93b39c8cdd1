"""When a waiting truck is rerouted, and when its wait is reported."""

from types import SimpleNamespace
from typing import Any

import pytest

from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.tick import TickInputs, granting
from pendula.fleet.tick.draft import Draft
from pendula.fleet.tick.records import Record, Waiting
from tests.fleet.tick.troubled import Hall


def waiting_for(number: int, since_ms: int) -> Draft:
    """A tick in which only R1 waits for another truck, since a time."""
    hall = Hall()
    draft = hall.traffic._draft(TickInputs(hall.now + 100))
    for record in draft.records:
        record.waiting = None
    first = draft.records[0]
    first.waiting = Waiting("WAIT_NODE", None, number, None)
    first.blocked_by, first.blocked_ms, first.escalated = number, draft.now_ms - since_ms, 0
    return draft


@pytest.mark.req("FLT-OSC-6")
@pytest.mark.parametrize(("waited_ms", "codes"), [(14_999, []), (15_000, ["WAIT_NOTICE"])])
def test_a_truck_raises_a_notice_after_waiting_fifteen_seconds_for_the_same_blocker(
    waited_ms: int, codes: list[str]
) -> None:
    draft = waiting_for(1, waited_ms)
    granting.escalate(draft)
    granting.escalate(draft)

    assert ([notice.code for notice in draft.notices], draft.alerts) == (codes, [])


@pytest.mark.req("FLT-OSC-6")
def test_a_change_of_blocker_restarts_the_waiting_time() -> None:
    draft = waiting_for(1, 14_950)
    granting.escalate(draft)
    draft.records[0].waiting = Waiting("WAIT_NODE", None, 2, None)
    draft.now_ms += 100
    granting.escalate(draft)

    assert draft.alerts == []
    assert (draft.records[0].blocked_by, draft.records[0].blocked_ms) == (2, draft.now_ms)


@pytest.mark.req("FLT-OSC-6", "FLT-OSC-4", "FLT-PLAN-9")
@pytest.mark.parametrize(
    ("waited_ms", "since_last_ms", "tried"),
    [(29_999, None, 0), (30_000, None, 1), (30_000, 9_999, 0), (60_000, 10_000, 1)],
)
def test_one_detour_is_tried_after_half_a_minute_unless_one_was_just_taken(
    monkeypatch: pytest.MonkeyPatch, waited_ms: int, since_last_ms: int | None, tried: int
) -> None:
    draft = waiting_for(1, waited_ms)
    first = draft.records[0]
    first.escalated = 1
    first.rerouted_ms = None if since_last_ms is None else draft.now_ms - since_last_ms
    sent: list[object] = []
    plan: Any = SimpleNamespace(cost_us=1_000_000)
    draft.ways = SimpleNamespace(compared=lambda *_: (plan, 9_000_000))  # type: ignore[assignment]
    monkeypatch.setattr(granting, "take_detour", lambda _, __, route: sent.append(route))
    for _ in range(3):
        granting.escalate(draft)

    assert sent == [plan] * tried


@pytest.mark.req("FLT-PLAN-9")
@pytest.mark.parametrize(
    ("code", "gain_us", "worth"),
    [
        (None, 4_999_999, False),
        (None, 5_000_000, True),
        ("WAIT_SAFE_STATE", 0, False),
        ("STOP_OFFLINE", 0, True),
        ("STOP_ROBOT_FAULT", 0, True),
        ("STOP_FOREIGN_OCCUPANCY", 0, True),
    ],
)
def test_a_detour_is_worth_taking_if_it_saves_enough_or_the_blocker_does_not_move(
    code: str | None, gain_us: int, worth: bool
) -> None:
    draft = waiting_for(1, 30_000)
    blocker = draft.records[1]
    blocker.stop_code = code
    plan: Any = SimpleNamespace(cost_us=60_000_000 - gain_us)

    assert granting._is_worth_it(draft, blocker, plan, 60_000_000) is worth


@pytest.mark.req("FLT-LIVE-9", "FLT-PLAN-9")
def test_a_cut_off_truck_looks_for_a_detour_at_once_and_then_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hall = Hall()
    tried: list[tuple[int, str]] = []

    def in_vain(draft: Draft, record: Record, _: RoutePlan | None) -> bool:
        tried.append((draft.now_ms, record.robot_id))
        return False

    monkeypatch.setattr(granting, "take_detour", in_vain)
    hall.first.mute = True
    hall.run(250)
    offline = next(alert for alert in hall.alerts if alert.code == "ROBOT_OFFLINE")

    assert offline.details["cutOff"] == ["R2", "R3"]
    for name in ("R2", "R3"):
        assert [at - offline.sinceMs for at, robot in tried if robot == name] == [0, 10_000, 20_000]
