"""Operator actions: each applied once, dangerous ones confirmed, all answered."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from pendula.fleet.contracts import AnchorPlace, OperatorAction
from pendula.fleet.tasks.operators import MOST_DRAFTS, MOST_KEPT_BYTES, ActionInbox, ActionResult, exceeded_limit
from pendula.kernel.canonical import encode
from tests.fleet.tick.troubled import Hall


class Office(Hall):
    """A hall with an inbox; actions take effect in the next tick."""

    def __init__(self) -> None:
        super().__init__()
        self.inbox = ActionInbox(self.site, self.params)

    def say(self, *actions: OperatorAction) -> list[ActionResult]:
        step = self.inbox.take(actions, self.now + 100, self.traffic.records)
        self.orders = step.orders
        result = self.step()
        return [*step.answers, *self.inbox.settle(result.applied_orders, result.tick)]

    def group(self) -> str:
        edge = self.site.network.edges[min(self.record().edges)]
        return f"EDGE_GROUP:{edge.group_key}"


def action(kind: str, action_id: str = "op-1", **members: Any) -> OperatorAction:
    named = {"robotId": "R1", "reason": "floor cleaning", "ts": 1_000, **members}
    return OperatorAction("1.0.0", action_id, operatorId="operator-1", type=kind, **named)


# Of no edge of any map.
NOWHERE: list[Any] = [*map(Decimal, ("NaN", "sNaN", "Infinity", "-1", "100000.1", "1e30", "1e9999")), "1", 1.5, True]


def offline() -> Office:
    office = Office()
    office.first.mute = True
    office.run(30)
    return office


def secured(office: Office, action_id: str, **members: Any) -> OperatorAction:
    return action("FORCE_RELEASE", action_id, resources=(office.group(),), physicallySecured=True, **members)


@pytest.mark.req("FLT-FAIL-11")
def test_an_action_is_answered_with_the_tick_in_which_it_took_effect() -> None:
    office = Office()
    answers = office.say(action("PAUSE_ROBOT"))

    assert [(one.accepted, one.code, one.message) for one in answers] == [(True, None, "R1 is paused")]
    assert answers[0].appliedTick == office.traffic.tick_number
    assert office.traffic.why("R1").code == "STOP_OPERATOR"


@pytest.mark.req("FLT-FAIL-11")
def test_an_action_on_the_fleet_applies_to_every_truck() -> None:
    office = Office()
    paused = office.say(action("PAUSE_FLEET", robotId=UNSET))
    codes = {office.traffic.why(one).code for one in ("R1", "R2", "R3")}
    resumed = office.say(action("RESUME_FLEET", "op-2", robotId=UNSET))

    assert [one.message for one in (*paused, *resumed)] == ["Every truck is paused", "Every truck is resumed"]
    assert codes == {"STOP_OPERATOR"}
    assert "STOP_OPERATOR" not in {office.traffic.why(one).code for one in ("R1", "R2", "R3")}


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-1")
def test_the_place_of_a_paused_truck_at_its_last_report_is_not_released() -> None:
    office = Office()
    office.say(action("PAUSE_ROBOT"))
    office.run(40)
    free = office.say(secured(office, "op-4-draft"))
    office.first.mute = True
    # Silent, and not yet for so long that it is offline.
    office.run(8)
    answers = office.say(secured(office, "op-4", confirmationOf="op-4-draft"))

    assert [one.code for one in (*free, *answers)] == ["CONFIRMATION_NEEDED", "ROBOT_NOT_STOPPED"]


@pytest.mark.req("FLT-FAIL-11")
def test_a_repeated_action_gets_the_same_result_and_has_no_effect() -> None:
    office = Office()
    first = office.say(action("PAUSE_ROBOT"))
    office.say(action("RESUME_ROBOT", "op-2"))

    assert office.say(action("PAUSE_ROBOT", ts=9_999)) == first
    assert office.traffic.why("R1").code != "STOP_OPERATOR"


@pytest.mark.req("FLT-FAIL-11")
def test_another_action_under_a_known_id_is_refused() -> None:
    office = Office()
    office.say(action("PAUSE_ROBOT"))

    assert [one.code for one in office.say(action("PAUSE_ROBOT", robotId="R2"))] == ["ACTION_ID_TAKEN"]


@pytest.mark.req("FLT-FAIL-11")
def test_a_release_needs_a_confirmation() -> None:
    office = offline()
    held = set(office.record().keeps)
    draft = office.say(secured(office, "op-4-draft"))
    assert [one.code for one in draft] == ["CONFIRMATION_NEEDED"]
    assert set(office.record().keeps) == held
    answers = office.say(secured(office, "op-4", confirmationOf="op-4-draft"))

    assert [(one.accepted, one.freedResources != ()) for one in answers] == [(True, True)]
    assert set(office.record().keeps) < held


@pytest.mark.req("FLT-FAIL-11")
@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"confirmationOf": "op-9"}, "CONFIRMATION_UNKNOWN"),
        ({"confirmationOf": "op-4-draft", "resources": ("NODE:A1",)}, "CONFIRMATION_DIFFERS"),
        ({"confirmationOf": "op-4-draft", "physicallySecured": False}, "NOT_SECURED"),
    ],
)
def test_a_confirmation_that_does_not_match_releases_nothing(members: dict[str, Any], code: str) -> None:
    office = offline()
    held = set(office.record().keeps)
    office.say(secured(office, "op-4-draft"))
    answers = office.say(replace(secured(office, "op-4"), **members))

    assert [one.code for one in answers] == [code]
    assert set(office.record().keeps) == held


@pytest.mark.req("FLT-FAIL-11")
@pytest.mark.parametrize(("ticks", "code"), [(599, None), (601, "CONFIRMATION_LATE")])
def test_a_confirmation_counts_within_a_minute(ticks: int, code: str | None) -> None:
    office = offline()
    office.say(secured(office, "op-4-draft"))
    office.run(ticks - 1)
    answers = office.say(secured(office, "op-4", confirmationOf="op-4-draft"))

    assert [one.code for one in answers] == [code]


@pytest.mark.req("FLT-FAIL-11")
def test_nothing_of_a_moving_truck_is_released_and_the_result_says_why() -> None:
    office = Office()
    answers = office.say(secured(office, "op-4"))

    assert [(one.code, one.message) for one in answers] == [
        ("ROBOT_NOT_STOPPED", "R1 is neither offline nor faulty nor paused")
    ]


@pytest.mark.req("FLT-FAIL-11", "FLT-API-1")
@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (action("EXPLODE"), "UNKNOWN_ACTION"),
        (action("PAUSE_ROBOT", robotId="ghost"), "UNKNOWN_ROBOT"),
        (action("PAUSE_ROBOT", role="viewer"), "ROLE_TOO_LOW"),
        (action("PAUSE_ROBOT", reason="  "), "OPERATOR_AND_REASON_NEEDED"),
        (replace(action("PAUSE_ROBOT"), operatorId=" "), "OPERATOR_AND_REASON_NEEDED"),
        (action("PAUSE_FLEET"), "ACTION_CONTRADICTS"),
        (action("RESUME_FLEET"), "ACTION_CONTRADICTS"),
        (action("PAUSE_ROBOT", resources=("EDGE_GROUP:A1--A2",)), "ACTION_CONTRADICTS"),
        (action("REMOVE_ROBOT", resources=("EDGE_GROUP:A1--A2",)), "ACTION_CONTRADICTS"),
        (action("RELOCATE"), "ACTION_INCOMPLETE"),
        *((action("RELOCATE", anchor=AnchorPlace("A1->A2", one)), "UNKNOWN_PLACE") for one in NOWHERE),
        *((action("PAUSE_ROBOT", anchor=AnchorPlace("A1->A2", one)), "UNKNOWN_PLACE") for one in NOWHERE),
        (action("CANCEL_TASK"), "ACTION_INCOMPLETE"),
        (action("CLEAR_FAULT"), "NOTHING_TO_CLEAR"),
    ],
)
def test_a_refused_action_says_why(wrong: OperatorAction, code: str) -> None:
    answers = Office().say(wrong)

    assert [(one.accepted, one.code, one.appliedTick) for one in answers] == [(False, code, None)]


@pytest.mark.req("FLT-FAIL-11")
def test_a_restored_inbox_continues() -> None:
    office = offline()
    office.say(secured(office, "op-4-draft"))
    again = ActionInbox(office.site, office.params)
    again.restore(office.inbox.saved())
    office.inbox = again

    assert [one.code for one in office.say(secured(office, "op-4", confirmationOf="op-4-draft"))] == [None]


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-16")
def test_a_failed_tick_does_not_consume_a_draft() -> None:
    office = offline()
    office.say(secured(office, "op-4-draft"))
    second = secured(office, "op-4", confirmationOf="op-4-draft")
    office.inbox.take([second], office.now + 100, office.traffic.records)
    failed = office.inbox.settle([], office.traffic.tick_number)

    assert [one.code for one in failed] == ["TICK_FAILED"]
    assert [one.accepted for one in office.say(second)] == [True]


@pytest.mark.req("FLT-FAIL-11")
@pytest.mark.parametrize("ticks", [601, 1_201])
def test_an_expired_draft_that_is_sent_again_needs_a_new_confirmation(ticks: int) -> None:
    office = offline()
    office.say(secured(office, "op-4-draft"))
    office.run(ticks)
    again = office.say(secured(office, "op-4-draft"))

    assert [one.code for one in again] == ["CONFIRMATION_NEEDED"]
    assert [one.code for one in office.say(secured(office, "op-4", confirmationOf="op-4-draft"))] == [None]


@pytest.mark.req("FLT-FAIL-11")
def test_a_confirmation_counts_once() -> None:
    office = offline()
    office.say(secured(office, "op-4-draft"))
    words = [secured(office, name, confirmationOf="op-4-draft") for name in ("op-4", "op-5")]

    assert [one.code for one in office.say(*words)] == ["CONFIRMATION_UNKNOWN", None]


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-1")
def test_a_draft_to_release_an_occupied_place_is_refused_with_a_remedy() -> None:
    office = Office()
    office.say(action("PAUSE_ROBOT"))
    office.run(10)
    record = office.record()
    assert record.track is not None
    segment = record.track.segments[record.track.segment_at(record.at_um)]
    lane = f"EDGE_GROUP:{office.site.network.edges[segment.edge].group_key}"
    answers = office.say(replace(secured(office, "op-4"), resources=(lane,)))

    helps = (
        "Name other resources, or take the truck away and use REMOVE_ROBOT, or RELOCATE once it reports from elsewhere"
    )
    assert [(one.code, one.message) for one in answers] == [
        ("ROBOT_STILL_THERE", f"R1 occupies {lane} as far as is known: no other truck may be sent there. {helps}")
    ]


@pytest.mark.req("FLT-FAIL-11")
def test_an_inbox_keeps_the_last_results_within_its_size_limit() -> None:
    office = Office()
    reason = "y" * (MOST_KEPT_BYTES // 10)
    for n in range(30):
        office.say(action("PAUSE_ROBOT", f"op-{n}", reason=reason))
    kept = [one.actionId for one, _ in office.inbox.saved().answers]
    restored = ActionInbox(office.site, office.params)
    restored.restore(office.inbox.saved())
    office.inbox = restored
    office.say(action("PAUSE_ROBOT", "op-30", reason=reason))
    after = [one.actionId for one, _ in office.inbox.saved().answers]

    # The oldest are dropped first, also after a restore.
    assert kept == [f"op-{n}" for n in range(21, 30)]
    assert after == [f"op-{n}" for n in range(22, 31)]
    assert len(encode(office.inbox.saved())) < 2 * MOST_KEPT_BYTES


@pytest.mark.req("FLT-FAIL-11")
def test_the_oldest_drafts_are_dropped_above_the_limit() -> None:
    office = offline()
    for n in range(MOST_DRAFTS + 5):
        office.say(secured(office, f"op-{n}"))

    assert [one.action_id for one in office.inbox.saved().drafts] == [f"op-{n}" for n in range(5, MOST_DRAFTS + 5)]


EXCESSES = [
    (action("PAUSE_ROBOT", "i" * 513), "actionId has 513 bytes"),
    (action("PAUSE_ROBOT", robotId="\N{GRINNING FACE}" * 129), "robotId has 516 bytes"),
    (action("CANCEL_TASK", taskId="t" * 513), "taskId has 513 bytes"),
    (action("FORCE_RELEASE", confirmationOf="c" * 513), "confirmationOf has 513 bytes"),
    (action("PAUSE_ROBOT", reason="r" * 2001), "reason has 2001 bytes"),
    (action("FORCE_RELEASE", resources=("r",) * 257), "resources has 257 entries"),
    (action("FORCE_RELEASE", resources=("r" * 1000,) * 17), "resources has 17000 bytes together"),
    (action("RELOCATE", anchor=AnchorPlace("e" * 1027, Decimal(1))), "edgeKey has 1027 bytes"),
    (action("RELOCATE", anchor=AnchorPlace("e", Decimal(-1))), "sM is -1"),
]


@pytest.mark.req("FLT-API-1")
@pytest.mark.parametrize(("large", "excess"), EXCESSES)
def test_an_action_over_a_limit_is_refused_with_the_limit(large: OperatorAction, excess: str) -> None:
    result = exceeded_limit(large)

    assert result is not None
    assert result.startswith(excess)


def test_an_action_can_have_the_longest_names_of_a_map() -> None:
    node = "\N{GRINNING FACE}" * 128
    anchor = AnchorPlace(f"{node}->{node}", Decimal(100_000))

    assert (
        exceeded_limit(action("RELOCATE", node, robotId=node, reason="\N{GRINNING FACE}" * 500, anchor=anchor)) is None
    )
