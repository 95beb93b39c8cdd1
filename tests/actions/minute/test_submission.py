"""When an instance is admitted: its minute, late ones, those of later epochs, the order of the input."""

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.actions import Advance, Start, Submit
from pendula.actions.messages import WORLD_EVENTS, Event
from pendula.kernel.canonical import encode
from tests.actions.scenarios import HORIZON, SEEDS, START, commands_of, engine_run, fresh, scenario, unshrunk
from tests.actions.worlds import day, does, expected_lines, lasting, lines, of, outcome

WALK = {"walk": lasting(10)}


@pytest.mark.req("ACT-TIME-3")
@pytest.mark.parametrize(
    ("submitted", "minute"),
    [
        ("2025-07-01T08:05:00", 485),
        ("2025-07-01T08:05:01", 486),
        ("2025-07-01T08:05:00.000001", 486),
        ("2025-07-01T08:04:59.999999", 485),
        ("2025-07-01T00:00:00", 0),
    ],
)
def test_an_action_never_starts_before_it_was_submitted(submitted: str, minute: int) -> None:
    result = day(WALK, does("A", submitted, "walk"))

    assert of(result, "start", "A").t == minute


@pytest.mark.req("ACT-TIME-4", "ACT-DATA-6")
def test_late_submissions_are_admitted_first_by_their_true_time() -> None:
    defs = {"walk": lasting(10, "path")}

    result = day(
        defs,
        does("now", "2025-07-01T00:00:00", "walk"),
        does("later", "2025-06-30T23:59:00", "walk"),
        does("early", "2025-06-30T12:00:00", "walk"),
    )

    assert [event.action_id for event in result.events if "d" in event.meta] == ["early", "later", "now"]
    assert of(result, "start", "early").meta["late"] is True
    assert of(result, "start", "later").meta["late"] is True
    assert "late" not in of(result, "start", "now").meta


@pytest.mark.req("ACT-TIME-4")
def test_half_a_minute_before_the_start_is_late_too() -> None:
    defs = {"walk": lasting(10, "path")}

    result = day(defs, does("now", "2025-07-01T00:00:00", "walk"), does("late", "2025-06-30T23:59:30", "walk"))

    assert lines(result)[0] == "0 start late"
    assert of(result, "start", "late").meta["late"] is True


@pytest.mark.req("ACT-TIME-4", "ACT-CARRY-2")
def test_a_submission_for_the_next_epoch_is_deferred_untouched() -> None:
    tomorrow = does("A", "2025-07-02T00:00:00", "walk", note="kept")
    del tomorrow["knowledge"]
    tonight = does("B", "2025-07-01T23:59:01", "walk")

    result = outcome(WALK, tomorrow, tonight, epochs=2)

    first, second = result.epochs
    assert lines(first) == []
    assert [one["id"] for one in first.as_json()["deferred"]] == ["B", "A"] or [
        one["id"] for one in first.as_json()["deferred"]
    ] == ["A", "B"]
    kept = next(one for one in first.as_json()["deferred"] if one["id"] == "A")
    assert kept == tomorrow
    assert sorted(lines(second)) == sorted(expected_lines("0 start A, 0 start B, 10 end A, 10 end B"))
    assert second.as_json()["deferred"] == []


@pytest.mark.req("ACT-CARRY-2")
@unshrunk
@given(SEEDS)
def test_submitting_each_day_equals_submitting_all_at_once(seed: int) -> None:
    """Numbers of admission follow the minute, so the day of the submission does not matter."""
    case = scenario(seed, 3, late=False)
    # A cancel before admission needs an earlier submission.
    case = case.with_(commands=[command for command in case.document["commands"] if "cancel" not in command])
    distinct = {one["id"]: one for one in case.document["actions_submitted"]}
    by_day: list[list[dict[str, Any]]] = [[], [], []]
    for one in distinct.values():
        by_day[min(2, begun_minute(one) // HORIZON)].append(one)
    all_at_once = engine_run(case.with_(actions_submitted=[one for day in by_day for one in day]))

    world = fresh(case)
    seen: list[Event] = []
    for number, submitted in enumerate(by_day):
        world.apply(Submit(tuple(submitted)))
        if number == 0:
            world.apply(commands_of(case)[1])
        seen += world.apply(Advance((number + 1) * HORIZON)).events

    assert [event for event in seen if isinstance(event, WORLD_EVENTS)] == [
        event for epoch in all_at_once.epochs for event in epoch.events
    ]


def minute_of(instance: dict[str, Any]) -> int:
    """The earliest minute of its start."""
    if "t" in instance:
        return int(instance["t"])
    return -((START - datetime.fromisoformat(instance["submitted_at"])) // timedelta(minutes=1))


def begun_minute(instance: dict[str, Any]) -> int:
    """The minute in which it was submitted; on the day before, half a minute before midnight is not late."""
    if "t" in instance:
        return int(instance["t"])
    return (datetime.fromisoformat(instance["submitted_at"]) - START) // timedelta(minutes=1)


@pytest.mark.req("ACT-EVT-3", "ACT-DATA-6")
@unshrunk
@given(SEEDS, st.randoms(use_true_random=False))
def test_only_the_order_of_equal_times_matters(seed: int, luck: Random) -> None:
    case = scenario(seed, late=False)
    distinct = list({one["id"]: one for one in case.document["actions_submitted"]}.values())
    case = case.with_(actions_submitted=distinct)
    # Shuffled, keeping the order within a minute: a stable sort by a random key for each minute.
    minutes = sorted({minute_of(one) for one in distinct})
    luck.shuffle(minutes)
    mixed = [one for minute in minutes for one in distinct if minute_of(one) == minute]

    first, second = (encode(engine_run(case.with_(actions_submitted=order)).as_json()) for order in (distinct, mixed))

    assert first == second


@pytest.mark.req("ACT-DATA-6")
def test_equal_times_keep_the_order_of_the_input() -> None:
    defs = {"x": lasting(5, "l")}
    names = ["C", "A", "B"]

    result = day(defs, *(does(name, 10, "x") for name in names))

    assert [event.action_id for event in result.events if isinstance(event, Start)] == names


@pytest.mark.req("ACT-DATA-7")
@pytest.mark.parametrize(
    ("more", "meant"),
    [({"knowledge": [{"id": "k", "reveal": [0]}]}, "reveals"), ({"visibility": {"scop": "public"}}, "scope")],
)
def test_an_unknown_field_inside_an_instance_rejects_it(more: dict[str, Any], meant: str) -> None:
    (rejection,) = day(WALK, does("A", 0, "walk", **more)).rejections

    assert rejection.code == "InvalidAction"
    assert f"did you mean {meant}?" in rejection.message
