"""Declarations of a file without user code: epoch, follow-ups, conditions, reveals, expiries."""

from typing import Any

import pytest

from pendula.actions import InvalidEpoch, InvalidSetting, LiveWorld, VisibilityChange, run
from tests.actions.worlds import EPOCH, codes, day, does, expected_lines, lasting, lines, of, outcome

RADIO = {"radio": lasting(5, "radio", may_trigger_event=True), "answer": lasting(10)}


def call(action_id: str = "A3", t: int = 0, **more: Any) -> dict[str, Any]:
    """A submission as in the specification: without `knowledge`."""
    return {"id": action_id, "actor": "jonas", "verb": "radio", "t": t, **more}


# The epoch of a file that names none


@pytest.mark.req("ACT-TIME-1", "ACT-FILE-1")
def test_the_day_of_the_earliest_submission_is_the_epoch() -> None:
    later = {"id": "B", "actor": "ann", "verb": "walk", "submitted_at": "2025-07-02T06:00:00+02:00"}
    first = {"id": "A", "actor": "ann", "verb": "walk", "submitted_at": "2025-07-02T00:30:00+02:00"}

    result = run(action_defs={"walk": lasting(10)}, actions_submitted=[later, first])

    assert result.as_json()["epoch"] == {
        "index": 0,
        "start_at": "2025-07-02T00:00:00+02:00",
        "end_at": "2025-07-03T00:00:00+02:00",
    }
    assert lines(result) == expected_lines("30 start A, 40 end A, 360 start B, 370 end B")


@pytest.mark.req("ACT-TIME-1")
def test_without_any_time_the_epoch_is_missing() -> None:
    with pytest.raises(InvalidEpoch, match="no submission has a `submitted_at` to derive it from"):
        run(action_defs=RADIO, actions_submitted=[call()])


# Triggers without knowledge


@pytest.mark.req("ACT-EVT-5")
def test_a_verb_that_can_trigger_an_event_is_visible_to_the_player() -> None:
    result = day(RADIO, call(), options={"pc": "mira"})

    change = of(result, "visibility_change", "A3")
    assert lines(result) == expected_lines("0 start A3, 5 end A3, 5 visibility_change A3")
    assert {name: change.meta[name] for name in ("knowledge", "from_scope", "to_scope", "reveals")} == {
        "knowledge": "action:A3",
        "from_scope": "private",
        "to_scope": "pc",
        "reveals": [],
    }
    assert change.pc


@pytest.mark.req("ACT-EVT-5")
def test_the_player_knows_the_item_from_then_on() -> None:
    world = LiveWorld({"epoch": EPOCH, "action_defs": RADIO, "options": {"pc": "mira"}})
    world.submit(call())
    world.advance_to(4)
    assert not world.knows("mira", "action:A3")

    world.advance_to(5)

    assert world.knows("mira", "action:A3")


@pytest.mark.req("ACT-EVT-5")
@pytest.mark.parametrize(
    "more", [{"knowledge": []}, {"visibility": {"scope": "redacted"}}], ids=["nothing to know", "redacted"]
)
def test_it_is_not_visible_if_disabled(more: dict[str, Any]) -> None:
    assert lines(day(RADIO, call(**more))) == expected_lines("0 start A3, 5 end A3")


@pytest.mark.req("ACT-EVT-5")
def test_a_public_item_stays_public() -> None:
    change = of(day(RADIO, call(visibility={"scope": "public"})), "visibility_change", "A3")

    assert (change.meta["from_scope"], change.meta["to_scope"]) == ("public", "public")


# Follow-ups


def followed(*followups: dict[str, Any], **more: Any) -> Any:
    return day({**RADIO, "radio": {**RADIO["radio"], "followups": list(followups)}}, call(params={"n": 1}), **more)


@pytest.mark.req("ACT-EVT-5")
def test_a_follow_up_is_submitted_after_its_delay() -> None:
    result = followed({"verb": "answer", "after_min": 7})

    assert lines(result) == expected_lines("0 start A3, 5 end A3, 12 start answer/0, 22 end answer/0")
    start = of(result, "start", "answer/0")
    assert (start.actor, start.meta["params"], start.meta["extra"]) == ("jonas", {"n": 1}, {"follows": "A3"})


@pytest.mark.req("ACT-EVT-5")
def test_several_follow_ups_have_their_own_ids_and_actors() -> None:
    result = followed({"verb": "answer"}, {"verb": "answer", "actor": "bo", "params": {"n": 2}})

    assert [(event.action_id, event.actor) for event in result.events if event.t == 5] == [
        ("A3", "jonas"),
        ("answer/0", "jonas"),
        ("answer/0.1", "bo"),
    ]


@pytest.mark.req("ACT-EVT-5")
@pytest.mark.parametrize(
    ("when", "follows"),
    [
        ({"weather": "rain"}, True),
        ({"weather": "sun"}, False),
        ({"weather": ["sun", "rain"], "params.n": 1}, True),
        ({"params.n": 2}, False),
        ({"params.n": True}, False),
    ],
)
def test_a_follow_up_has_conditions(when: dict[str, Any], follows: bool) -> None:
    result = followed({"verb": "answer", "when": when}, world_state={"weather": "rain"})

    assert ("5 start answer/0" in lines(result)) is follows


@pytest.mark.req("ACT-EVT-5", "ACT-CARRY-3")
def test_a_verb_can_follow_itself_without_end() -> None:
    beat = {"beat": lasting(100, followups=[{"verb": "beat", "after_min": 500}])}

    first, second = outcome(beat, does("A", 0, "beat"), epochs=2).epochs

    assert lines(first) == expected_lines(
        "0 start A, 100 end A, 600 start beat/0, 700 end beat/0, 1200 start beat/1, 1300 end beat/1"
    )
    assert lines(second) == expected_lines("360 start beat/2, 460 end beat/2, 960 start beat/3, 1060 end beat/3")


def test_an_invalid_follow_up_is_rejected() -> None:
    assert codes(followed({"verb": "sing"})) == {"sing/0": "UnknownVerb"}


@pytest.mark.req("ACT-DATA-7")
@pytest.mark.parametrize(
    ("defs", "state", "path", "message"),
    [
        (
            {"radio": lasting(5, followups=[{"verb": "answer", "when": {"wether": "rain"}}])},
            {"weather": "rain"},
            "$.action_defs.radio.followups[0].when.wether",
            "did you mean weather",
        ),
        (
            {"radio": lasting(5, followups=[{"verb": "answer", "after": 5}])},
            {},
            "$.action_defs.radio.followups[0].after",
            "did you mean",
        ),
        (
            {},
            {"modifiers": [{"name": "wet", "factor": 2, "when": {"wether": "rain"}}], "weather": "rain"},
            "$.world_state.modifiers[0].when.wether",
            "did you mean weather",
        ),
        ({}, {"modifers": []}, "$.world_state.modifers", "did you mean"),
    ],
)
def test_an_empty_condition_is_refused(defs: dict[str, Any], state: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message) as refused:
        day(defs, world_state=state)

    assert refused.value.details["path"] == path


# Modifiers by the time of day and the state of the world


def durations(modifier: dict[str, Any], *minutes: int, **state: Any) -> list[int]:
    actions = [does(f"A{minute}", minute, "walk") for minute in minutes]
    world_state = {"modifiers": [{"name": "m", "factor": 2, **modifier}], **state}
    result = outcome({"walk": lasting(10)}, *actions, epochs=3, world_state=world_state)
    found = {event.action_id: event.meta["d"] for epoch in result.epochs for event in epoch.events if "d" in event.meta}
    return [found[f"A{minute}"] for minute in minutes]


@pytest.mark.req("ACT-DUR-4")
def test_a_daily_modifier_applies_from_its_first_minute_until_its_last() -> None:
    noon = {"daily": True, "from": "12:00", "to": "13:00"}

    assert durations(noon, 719, 720, 779, 780, 1440 + 720, 2880 + 779, 2880 + 780) == [10, 20, 20, 10, 20, 20, 10]


@pytest.mark.req("ACT-DUR-4")
def test_a_daily_modifier_can_span_midnight() -> None:
    night = {"daily": True, "from": "22:00", "to": "06:00"}

    assert durations(night, 0, 359, 360, 1319, 1320, 1440, 1800) == [20, 20, 10, 10, 20, 20, 10]


@pytest.mark.req("ACT-DUR-4")
def test_the_open_ends_of_a_daily_modifier_are_midnight() -> None:
    assert durations({"daily": True, "from": "22:00"}, 0, 1319, 1320, 1439, 1440) == [10, 10, 20, 20, 10]
    assert durations({"daily": True, "to": "06:00"}, 0, 359, 360, 1440) == [20, 20, 10, 20]
    assert durations({"daily": True}, 0, 700) == [20, 20]


@pytest.mark.req("ACT-DUR-4")
@pytest.mark.parametrize(("weather", "minutes"), [("rain", 20), ("snow", 20), ("sun", 10), (None, 10)])
def test_the_weather_is_a_condition(weather: str | None, minutes: int) -> None:
    assert durations({"when": {"weather": ["rain", "snow"]}}, 0, weather=weather) == [minutes]


@pytest.mark.req("ACT-DUR-4")
@pytest.mark.parametrize(
    ("modifier", "message"),
    [
        ({"from": "22:00"}, "a time of day needs `daily: true`"),
        ({"daily": True, "from": 1320}, "from is 1320; with `daily` it must be a time such as 22:00"),
        ({"daily": True, "from": "22:00", "to": "22:00"}, "the same time of day"),
    ],
)
def test_an_invalid_time_of_day_is_refused(modifier: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        durations(modifier, 0)


# Expiries


def expiries(item: dict[str, Any], **options: Any) -> list[tuple[int, str, str, bool]]:
    knowledge = [{"id": "k", "freshness": 180, "ttl_min": 120, "scope": "pc", **item}]
    world_state = {"knowledge": knowledge}
    result = outcome({}, epochs=2, world_state=world_state, options={"pc": "mira", **options})
    return [
        (event.t + event.epoch * 1440, event.action_id, event.meta["reason"], event.pc)
        for epoch in result.epochs
        for event in epoch.events
        if isinstance(event, VisibilityChange)
    ]


@pytest.mark.req("ACT-VIS-2")
def test_an_item_expires_in_the_first_minute_in_which_it_cannot_be_known() -> None:
    assert expiries({}) == [(301, "", "expired", True)]
    assert expiries({"freshness": 1320, "ttl_min": 119}) == [(1440, "", "expired", True)]
    assert expiries({"scope": "private", "source": "bo"}) == [(301, "", "expired", False)]


@pytest.mark.req("ACT-VIS-2")
@pytest.mark.parametrize(
    "item",
    [{"ttl_min": 0}, {"scope": "redacted"}, {"scope": "private"}, {"confidence": "0.2"}, {"freshness": -200}],
)
def test_an_item_that_was_never_knowable_does_not_expire(item: dict[str, Any]) -> None:
    assert expiries(item, confidence_threshold="0.5") == []


@pytest.mark.req("ACT-VIS-2")
def test_an_expiry_follows_the_reveals_of_its_minute() -> None:
    knowledge = [{"id": "k", "freshness": 0, "ttl_min": 9, "source": "bo"}]
    result = day(RADIO, call(t=5, knowledge=["k"]), world_state={"knowledge": knowledge}, options={"pc": "mira"})

    changes = [event for event in result.events if isinstance(event, VisibilityChange)]
    assert [(event.t, event.meta["from_scope"], event.meta["to_scope"]) for event in changes] == [
        (10, "private", "pc"),
        (10, "pc", "redacted"),
    ]
    assert not changes[0].pc
