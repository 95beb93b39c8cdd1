"""Configuration of a world: valid and invalid epochs, slots, kinds of time."""

from typing import Any

import pytest

from pendula.actions import InvalidEpoch, InvalidSetting
from tests.actions.worlds import EPOCH, codes, day, does, expected_lines, lasting, lines, of, outcome

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
def test_an_invalid_epoch_is_refused(epoch: Any) -> None:
    with pytest.raises(InvalidEpoch) as refused:
        day(WALK, does("A", 0, "walk"), epoch=epoch)

    assert refused.value.exit_code == 1


@pytest.mark.req("ACT-TIME-1")
def test_times_with_and_without_offset_cannot_be_mixed() -> None:
    result = day(WALK, does("A", "2025-07-01T08:00:00+00:00", "walk"), does("B", "2025-07-01T08:00:00", "walk"))

    assert codes(result) == {"A": "InvalidTimestamp"}
    assert lines(result) == expected_lines("480 start B, 490 end B")


@pytest.mark.req("ACT-TIME-1")
def test_times_with_offsets_are_compared_as_instants() -> None:
    epoch = {"index": 0, "start_at": "2025-07-01T00:00:00+02:00", "end_at": "2025-07-02T00:00:00+02:00"}

    result = day(
        WALK, does("A", "2025-06-30T22:05:00+00:00", "walk"), does("B", "2025-07-01T00:00:00", "walk"), epoch=epoch
    )

    assert codes(result) == {"B": "InvalidTimestamp"}
    assert of(result, "start", "A").t == 5


@pytest.mark.req("ACT-TIME-1")
def test_a_day_of_25_hours_is_refused() -> None:
    """No daylight-saving arithmetic: between two offsets there are 25 hours, and that is not a day."""
    epoch = {"index": 0, "start_at": "2025-10-26T00:00:00+02:00", "end_at": "2025-10-27T00:00:00+01:00"}

    with pytest.raises(InvalidEpoch):
        day(WALK, epoch=epoch)


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
def test_invalid_slots_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((InvalidSetting, InvalidEpoch)):
        day(WALK, options=options)
