"""Epochs, slots, minutes, and submissions that come early or late."""

from typing import Any

import pytest

from pendula.actions import Advance, InvalidEpoch, InvalidSetting, Submit, World
from tests.actions.worlds import EPOCH, codes, day, does, lasting, lines, of, outcome, said

WALK = {"walk": lasting(10)}


@pytest.mark.req("ACT-TIME-1")
@pytest.mark.parametrize(
    "epoch",
    [
        {**EPOCH, "end_at": "2025-07-01T23:59:00"},
        {**EPOCH, "end_at": "2025-07-02T00:00:01"},
        {**EPOCH, "end_at": "2025-07-02T00:00:00+00:00"},
        {**EPOCH, "end_at": "2025-06-30T00:00:00"},
        {**EPOCH, "start_at": "yesterday"},
        {**EPOCH, "start_at": 20250701},
        {**EPOCH, "index": -1},
        {**EPOCH, "index": True},
        {**EPOCH, "index": "0"},
        {"index": 0, "start_at": "2025-07-01T00:00:00"},
        [],
        None,
        "tomorrow",
    ],
)
def test_an_epoch_that_cannot_be_is_refused(epoch: Any) -> None:
    with pytest.raises(InvalidEpoch) as refused:
        day(WALK, does("A", 0, "walk"), epoch=epoch)

    assert refused.value.exit_code == 1


@pytest.mark.req("ACT-TIME-1")
def test_times_with_and_without_offset_do_not_mix() -> None:
    result = day(WALK, does("A", "2025-07-01T08:00:00+00:00", "walk"), does("B", "2025-07-01T08:00:00", "walk"))

    assert codes(result) == {"A": "InvalidTimestamp"}
    assert lines(result) == said("480 start B, 490 end B")


@pytest.mark.req("ACT-TIME-1")
def test_times_with_offsets_are_compared_as_instants() -> None:
    epoch = {"index": 0, "start_at": "2025-07-01T00:00:00+02:00", "end_at": "2025-07-02T00:00:00+02:00"}

    result = day(
        WALK, does("A", "2025-06-30T22:05:00+00:00", "walk"), does("B", "2025-07-01T00:00:00", "walk"), epoch=epoch
    )

    assert codes(result) == {"B": "InvalidTimestamp"}
    assert of(result, "start", "A").t == 5


@pytest.mark.req("ACT-TIME-1")
def test_the_day_of_a_clock_change_has_its_minutes() -> None:
    """No daylight-saving arithmetic: between two offsets there are 25 hours, and that is not a day."""
    epoch = {"index": 0, "start_at": "2025-10-26T00:00:00+02:00", "end_at": "2025-10-27T00:00:00+01:00"}

    with pytest.raises(InvalidEpoch):
        day(WALK, epoch=epoch)


@pytest.mark.req("ACT-TIME-2")
def test_an_event_at_the_very_end_belongs_to_the_last_slot() -> None:
    result = day(WALK, does("A", 59, "walk"), does("B", 1430, "walk"))

    slots = [(event.t, event.slot) for event in result.events]
    assert slots == [(59, 0), (69, 1), (1430, 23), (1440, 23)]
    assert result.events[-1].at == "2025-07-02T00:00:00"


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
def test_late_submissions_come_first_by_their_true_time() -> None:
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
def test_half_a_minute_before_the_beginning_is_late_too() -> None:
    defs = {"walk": lasting(10, "path")}

    result = day(defs, does("now", "2025-07-01T00:00:00", "walk"), does("late", "2025-06-30T23:59:30", "walk"))

    assert lines(result)[0] == "0 start late"
    assert of(result, "start", "late").meta["late"] is True


@pytest.mark.req("ACT-TIME-4", "ACT-CARRY-2")
def test_a_submission_for_the_next_epoch_is_deferred_untouched() -> None:
    tomorrow = does("A", "2025-07-02T00:00:00", "walk", note="kept")
    tonight = does("B", "2025-07-01T23:59:01", "walk")

    result = outcome(WALK, tomorrow, tonight, epochs=2)

    first, second = result.epochs
    assert lines(first) == []
    assert [one["id"] for one in first.as_json()["deferred"]] == ["B", "A"] or [
        one["id"] for one in first.as_json()["deferred"]
    ] == ["A", "B"]
    kept = next(one for one in first.as_json()["deferred"] if one["id"] == "A")
    assert kept == tomorrow
    assert sorted(lines(second)) == sorted(said("0 start A, 0 start B, 10 end A, 10 end B"))
    assert second.as_json()["deferred"] == []


@pytest.mark.req("ACT-TIME-5")
def test_slots_and_their_length_can_be_chosen() -> None:
    epoch = {"index": 3, "start_at": "2025-07-01T00:00:00", "end_at": "2025-07-01T01:00:00"}

    result = outcome(
        WALK,
        does("A", 35, "walk"),
        does("B", 55, "walk"),
        epoch=epoch,
        epochs=2,
        options={"slots": 4, "slot_minutes": 15},
    )

    first, second = result.epochs
    assert [(event.t, event.slot, event.epoch) for event in first.events] == [(35, 2, 3), (45, 3, 3), (55, 3, 3)]
    assert [(event.t, event.slot, event.epoch) for event in second.events] == [(5, 0, 4)]


@pytest.mark.req("ACT-TIME-5")
@pytest.mark.parametrize(
    "options", [{"slots": 0}, {"slot_minutes": 0}, {"slots": "24"}, {"slots": -1}, {"slots": True}]
)
def test_slots_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((InvalidSetting, InvalidEpoch)):
        day(WALK, options=options)


def test_time_does_not_go_back() -> None:
    world = World.create({"epoch": EPOCH, "action_defs": WALK})
    world.apply(Submit((does("A", 5, "walk"),)))
    world.apply(Advance(100))
    before = world.state()

    refusal = world.apply(Advance(99)).refusal

    assert refusal is not None
    assert refusal.code == "time_goes_forward"
    assert world.state() == before
