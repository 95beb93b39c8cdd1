"""Admission: every instance is checked separately and rejected with the code of its first fault."""

from typing import Any

import pytest

from pendula.actions import Instance
from pendula.actions.rules.validation import Fault, read_verb
from tests.actions.worlds import (
    NEXT_EPOCH,
    codes,
    day,
    does,
    expected_lines,
    lasting,
    lines,
    of,
    outcome,
)

WALK = {"walk": lasting(10), "haul": lasting(10, "cart")}
GOOD = does("good", 7, "walk")
STILL_GOING = expected_lines("7 start good, 17 end good")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.req("ACT-DATA-2", "ACT-DATA-5")
@pytest.mark.parametrize(
    "bad",
    [
        {"id": "A", "verb": "walk", "submitted_at": "2025-07-01T00:00:00"},
        {"id": "A", "actor": "ann", "submitted_at": "2025-07-01T00:00:00"},
        {"id": "A", "actor": "ann", "verb": "walk"},
        {"actor": "ann", "verb": "walk", "submitted_at": "2025-07-01T00:00:00"},
        does("A", 0, "walk", priority="high"),
        does("A", 0, "walk", priority=1001),
        does("A", 0, "walk", priority=-1),
        does("A", 0, "walk", priority=True),
        does("A", 0, "walk", knowledge="msg"),
        does("A", 0, "walk", knowledge=[5]),
        does("A", 0, "walk", knowledge=[{"to_scope": "pc"}]),
        does("A", 0, "walk", knowledge=[{"id": "k", "to_scope": "everybody"}]),
        does("A", 0, "walk", visibility={"scope": "everybody"}),
        does("A", 0, "walk", visibility="public"),
        {**does("A", 0, "walk"), "actor": 5},
        {**does("A", 0, "walk"), "actor": ""},
        {**does("A", 0, "walk"), "t": "0"},
        {**does("A", 0, "walk"), "t": 1.5},
        {**does("A", 0, "walk"), "id": 5},
        {**does("A", 0, "walk"), "id": ""},
        None,
        "A",
        5,
        [],
        {},
    ],
)
def test_a_missing_or_mistyped_field_rejects_that_instance_alone(bad: Any) -> None:
    result = day(WALK, bad, GOOD)

    (rejection,) = result.rejections
    assert rejection.code == "InvalidAction"
    assert rejection.message
    assert lines(result) == STILL_GOING


@pytest.mark.req("ACT-DATA-5")
def test_params_are_any_json_value_and_arrive_unchanged() -> None:
    values: tuple[Any, ...] = (None, True, 5, "text", [1, [2]], {"a": {"b": []}})
    for params in values:
        assert not day(WALK, {**GOOD, "params": params}).rejections


@pytest.mark.req("ACT-DATA-5")
@pytest.mark.parametrize(
    "params",
    [float("nan"), {"deep": [float("inf")]}, b"bytes", {1, 2}, {1: "key"}, "\ud800", nested(5000)],
    ids=lambda value: str(type(value)),
)
def test_params_other_than_json_reject_that_instance_alone(params: Any) -> None:
    result = outcome({"walk": lasting(2000)}, {**does("A", 5, "walk"), "params": params}, does("B", 6, "walk"))

    assert codes(result.epochs[0]) == {"A": "InvalidAction"}
    assert lines(result.epochs[0]) == ["6 start B"]
    assert [one["action_id"] for one in result.as_json()["carry"]["running"]] == ["B"]


@pytest.mark.req("ACT-DATA-5")
def test_an_instance_built_in_code_is_checked_like_any_other() -> None:
    result = day(WALK, Instance("B", "ann", "walk"), Instance("good", "ann", "walk", t=7))

    assert codes(result) == {"B": "InvalidAction"}
    assert lines(result) == STILL_GOING


@pytest.mark.req("ACT-DATA-5")
def test_an_id_counts_as_used_from_its_first_occurrence_also_if_that_was_rejected() -> None:
    result = day(
        WALK,
        does("A", 0, "fly"),
        does("A", 1, "walk"),
        {"id": "B"},
        does("B", 1, "walk"),
        does("C", "nonsense", "walk"),
        does("C", 1, "walk"),
        GOOD,
        GOOD,
    )

    assert [(rejection.action_id, str(rejection.code)) for rejection in result.rejections] == [
        ("A", "DuplicateActionId"),
        ("B", "InvalidAction"),
        ("B", "DuplicateActionId"),
        ("C", "InvalidTimestamp"),
        ("C", "DuplicateActionId"),
        ("good", "DuplicateActionId"),
        ("A", "UnknownVerb"),
    ]
    assert lines(result) == STILL_GOING


@pytest.mark.req("ACT-DATA-5", "ACT-CARRY-2")
def test_ids_stay_used_in_later_epochs() -> None:
    first = outcome(WALK, does("ended", 0, "walk"), does("deferred", 1500, "walk"), does("bad", 0, "fly"))

    second = day(
        WALK,
        *(does(name, 5, "walk") for name in ("ended", "deferred", "bad", "new")),
        epoch=NEXT_EPOCH,
        carry=first.carry,
    )

    assert codes(second) == dict.fromkeys(("ended", "deferred", "bad"), "DuplicateActionId")
    assert lines(second) == expected_lines("5 start new, 15 end new, 60 start deferred, 70 end deferred")


@pytest.mark.req("ACT-DATA-5")
@pytest.mark.parametrize(
    "when", ["", "soon", "2025-13-01T00:00:00", "2025-07-01", "2025-07-01T08:00:00Z", "٢٠٢٥-٠٧-٠١T٠٠:٠٠:٠٠"]
)
def test_an_unreadable_time_rejects_the_instance(when: str) -> None:
    result = day(WALK, does("A", when, "walk"), GOOD)

    assert codes(result) == {"A": "InvalidTimestamp"}
    assert lines(result) == STILL_GOING


@pytest.mark.req("ACT-DATA-5")
def test_an_undefined_verb_rejects_the_instance() -> None:
    assert codes(day(WALK, does("A", 0, "fly"), GOOD)) == {"A": "UnknownVerb"}


@pytest.mark.req("ACT-DATA-1", "ACT-DATA-5")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"base_duration_min": 0}, "InvalidDuration"),
        ({"base_duration_min": -5}, "InvalidDuration"),
        ({"base_duration_min": "10"}, "InvalidDuration"),
        ({"base_duration_min": 1.5}, "InvalidDuration"),
        ({"base_duration_min": True}, "InvalidDuration"),
        ({"base_duration_min": None}, "InvalidDuration"),
        ({"base_duration_min": 525_601}, "InvalidDuration"),
        ({"base_duration_min": 10**30}, "InvalidDuration"),
        ({"effort": "extreme"}, "InvalidEffort"),
        ({"effort": 3}, "InvalidEffort"),
        ({"effort": ["low"]}, "InvalidEffort"),
        ({"interruptible": "yes"}, "InvalidAction"),
        ({"locks": "cart"}, "InvalidAction"),
        ({"locks": [5]}, "InvalidAction"),
        ({"priority": 1001}, "InvalidAction"),
        ({"priority": -1}, "InvalidAction"),
        ({"wait": "never"}, "InvalidAction"),
        ({"resume": "later"}, "InvalidAction"),
        ({"interrupts": "all", "preempts": True}, "InvalidAction"),
        ({"resources": [{"name": "parts"}]}, "InvalidAction"),
        ({"resources": [{"name": "parts", "amount": -1}]}, "InvalidAction"),
        ({"resources": [{"name": "parts", "amount": "NaN"}]}, "InvalidAction"),
    ],
)
def test_a_bad_definition_rejects_its_own_instances_alone(change: dict[str, Any], code: str) -> None:
    result = day({**WALK, "bad": lasting(10, **change)}, does("A", 0, "bad"), GOOD)

    assert codes(result) == {"A": code}
    assert lines(result) == STILL_GOING


@pytest.mark.req("ACT-DATA-1")
@pytest.mark.parametrize(
    ("missing", "code"),
    [("base_duration_min", "InvalidDuration"), ("effort", "InvalidEffort"), ("interruptible", "InvalidAction")],
)
def test_required_members_of_a_definition_have_no_default(missing: str, code: str) -> None:
    plain = {"base_duration_min": 10, "effort": "medium", "interruptible": True}
    bad = {name: value for name, value in plain.items() if name != missing}

    result = day({**WALK, "bad": bad}, does("A", 0, "bad"), GOOD)

    assert codes(result) == {"A": code}
    assert lines(result) == STILL_GOING


@pytest.mark.req("ACT-DATA-1")
@pytest.mark.parametrize(
    "change",
    [
        {"priority": 0},
        {"priority": 1000},
        {"base_duration_min": 1},
        {"interrupts": "*", "preempts": True},
        {"interrupts": []},
    ],
)
def test_the_extreme_values_of_a_definition_are_allowed(change: dict[str, Any]) -> None:
    result = day({"edge": lasting(10, **change)}, does("A", 0, "edge"))

    assert codes(result) == {}
    assert "0 start A" in lines(result)


@pytest.mark.req("ACT-DATA-1")
def test_omitted_members_of_a_definition_have_their_defaults() -> None:
    plain = {"base_duration_min": 10, "effort": "medium", "interruptible": True}

    result = day(
        {"plain": plain, "loud": lasting(1, preempts=True, priority=1, interrupts=["plain"])},
        does("A", 0, "plain", knowledge=["k"]),
        does("B", 0, "plain"),
        does("C", 5, "loud"),
    )

    assert lines(result) == expected_lines(
        "0 start A, 0 start B, 5 interrupt A, 5 interrupt B, 5 start C, 6 end C, 6 start A, 6 start B,"
        "11 end A, 11 end B"
    )


@pytest.mark.req("ACT-DATA-1")
@pytest.mark.parametrize(
    ("field", "default", "other"),
    [
        ("locks", [], ["cart"]),
        ("may_trigger_event", False, True),
        ("resources", [], [{"name": "parts", "amount": 1}]),
        ("skill", "plain", "other"),
        ("priority", 0, 1),
        ("preempts", False, True),
        ("interrupts", [], ["plain"]),
        ("wait", "queue", "fail"),
        ("resume", "auto", "manual"),
    ],
)
def test_each_default_of_a_definition_is_the_documented_one(field: str, default: Any, other: Any) -> None:
    plain = {"base_duration_min": 10, "effort": "medium", "interruptible": True}
    left_out, given, changed = (
        read_verb("plain", {**plain, **more}) for more in ({}, {field: default}, {field: other})
    )
    assert not isinstance(left_out, Fault)
    assert not isinstance(given, Fault)
    assert not isinstance(changed, Fault)

    assert (left_out.skill, left_out.locks) == (given.skill, given.locks)
    assert field == "skill" or left_out == given
    assert changed != left_out


@pytest.mark.req("ACT-DATA-1")
def test_a_definition_other_than_an_object_rejects_its_instances() -> None:
    result = day({**WALK, "bad": 5}, does("A", 0, "bad"), GOOD)

    assert codes(result) == {"A": "InvalidAction"}


@pytest.mark.req("ACT-DATA-5")
@pytest.mark.parametrize("level", [4, -1, "2", 1.0, True, None])
def test_a_level_outside_0_to_3_rejects_the_instance(level: Any) -> None:
    result = day(WALK, does("A", 0, "haul"), GOOD, skills={"ann": {"haul": level}})

    assert codes(result) == {"A": "InvalidSkillLevel"}
    assert lines(result) == STILL_GOING


@pytest.mark.req("ACT-DATA-5")
def test_the_longest_action_takes_a_year() -> None:
    defs = {"year": lasting(525_600), "more": lasting(477_819, effort="high")}

    result = day(defs, does("A", 0, "year"), does("B", 0, "more"))

    assert codes(result) == {"B": "InvalidDuration"}


@pytest.mark.req("ACT-DATA-5", "ACT-LOCK-1")
def test_a_closed_list_of_locks_refuses_others() -> None:
    defs = {**WALK, "fly": lasting(10, "cart", "balloon")}

    result = day(defs, does("A", 0, "fly"), does("B", 0, "haul"), GOOD, options={"strict_locks": ["cart"]})

    assert codes(result) == {"A": "UnknownLock"}
    assert "balloon" in result.rejections[0].message


@pytest.mark.req("ACT-DATA-5")
def test_with_a_closed_list_actors_can_still_be_exclusive() -> None:
    result = day(WALK, GOOD, options={"strict_locks": [], "actor_exclusive": True})

    assert lines(result) == STILL_GOING


EVERYTHING_WRONG: dict[str, dict[str, Any]] = {
    "InvalidDuration": {"world_state": {"modifiers": [{"name": "m", "factor": 11}]}},
    "InvalidSkillLevel": {"skills": {"ann": {"bad": 9}}},
    "UnknownLock": {"options": {"strict_locks": []}},
    "InsufficientResources": {"resources": {}},
}


@pytest.mark.req("ACT-DATA-5")
@pytest.mark.parametrize("right", range(len(EVERYTHING_WRONG) + 1))
def test_of_several_faults_the_first_in_the_order_of_checking_wins(right: int) -> None:
    wrong = list(EVERYTHING_WRONG.items())[right:]
    settings: dict[str, Any] = {"resources": {"parts": 9}}
    for _, setting in wrong:
        settings |= setting
    many = [f"lock {n}" for n in range(65)]

    result = day(
        {"bad": lasting(10, *many, resources=[{"name": "parts", "amount": 1}])}, does("A", 0, "bad"), **settings
    )

    assert codes(result) == {"A": wrong[0][0] if wrong else "LimitExceeded"}


@pytest.mark.req("ACT-LOCK-6", "ACT-DATA-5")
def test_an_action_that_does_not_wait_is_rejected_and_returns_its_reservations() -> None:
    defs = {
        "haul": lasting(10, "cart"),
        "dash": lasting(5, "cart", wait="fail", resources=[{"name": "parts", "amount": 1}]),
    }

    result = day(defs, does("H", 0, "haul"), does("A", 5, "dash"), does("B", 10, "dash"), resources={"parts": 1})

    assert codes(result) == {"A": "CannotAcquireLock"}
    assert lines(result) == expected_lines("0 start H, 10 end H, 10 start B, 15 end B")
    assert of(result, "start", "B").meta["admission"] == 2


@pytest.mark.req("ACT-LOCK-6", "ACT-EVT-1")
def test_a_failed_action_lets_later_ones_of_the_same_minute_start() -> None:
    defs = {"x": lasting(20, "x"), "dash": lasting(5, "x", "y", wait="fail"), "y": lasting(5, "y")}

    result = day(defs, does("X", 0, "x"), does("D", 3, "dash"), does("Y", 3, "y"))

    assert codes(result) == {"D": "CannotAcquireLock"}
    assert of(result, "start", "Y").t == 3


@pytest.mark.req("ACT-DATA-6")
def test_admission_numbers_count_through_the_whole_run() -> None:
    result = outcome(
        WALK, does("C", 1500, "walk"), does("A", 3, "walk"), does("bad", 1, "fly"), does("B", 3, "walk"), epochs=2
    )

    numbers = {event.action_id: event.meta["admission"] for epoch in result.epochs for event in epoch.events}
    assert numbers == {"A": 0, "B": 1, "C": 2}


@pytest.mark.req("ACT-DATA-7")
def test_unknown_fields_are_kept_and_reported_once() -> None:
    result = day(WALK, does("A", 0, "walk", mood="glad"), does("B", 0, "walk", mood="sad", hat=True), GOOD)

    assert of(result, "start", "A").meta["extra"] == {"mood": "glad"}
    assert of(result, "start", "B").meta["extra"] == {"mood": "sad", "hat": True}
    assert "extra" not in of(result, "start", "good").meta
    assert [(diagnostic.code, diagnostic.action_id) for diagnostic in result.diagnostics] == [
        ("unknown_fields", "A"),
        ("unknown_fields", "B"),
    ]


@pytest.mark.req("ACT-DATA-7")
def test_unknown_fields_other_than_json_reject_that_instance_alone() -> None:
    result = day(WALK, does("A", 0, "walk", mood=float("inf")), GOOD)

    assert codes(result) == {"A": "InvalidAction"}
    assert lines(result) == STILL_GOING
