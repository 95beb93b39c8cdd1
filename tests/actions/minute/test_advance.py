"""Advancing time: consecutive epochs, midnight, minutes without events."""

from typing import Any

import pytest
from hypothesis import given

from pendula.actions import Advance, EpochBegan, Submit, World
from pendula.kernel.canonical import encode
from tests.actions.scenarios import (
    HORIZON,
    SEEDS,
    Scenario,
    commands_of,
    engine_run,
    epoch_of,
    fresh,
    scenario,
    unshrunk,
)
from tests.actions.worlds import EPOCH, day, does, lasting


def shifted(epochs: list[list[dict[str, Any]]], horizon: int) -> list[tuple[Any, ...]]:
    """Events of consecutive epochs as those of one long epoch, in the global order."""
    ranks = {"end": 0, "interrupt": 1, "visibility_change": 2, "start": 3}
    found = []
    for number, events in enumerate(epochs):
        for event in events:
            meta = dict(event["meta"])
            if "t_end" in meta:
                meta["t_end"] += number * horizon
            minute = event["t"] + number * horizon
            place = (minute, ranks[event["type"]], meta["admission"], event["seq"])
            found.append((place, event["type"], event["action_id"], encode(meta)))
    return [(place[0], *rest) for place, *rest in sorted(found)]


def one_long_epoch(case: Scenario) -> list[tuple[Any, ...]]:
    epochs = case.document["epochs"]
    options = {**case.document["options"], "slots": case.document["options"]["slots"] * epochs}
    long = case.with_(epoch=epoch_of(0, HORIZON * epochs), options=options, epochs=1)
    result = engine_run(long).as_json()
    return shifted([epoch["events"] for epoch in result["epochs"]], 0)


@pytest.mark.req("ACT-CARRY-3", "ACT-TIME-5")
@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 5])
@unshrunk
@given(SEEDS)
def test_k_epochs_in_a_row_equal_one_long_epoch(epochs: int, seed: int) -> None:
    case = scenario(seed, epochs, late=False)

    short = [epoch["events"] for epoch in engine_run(case).as_json()["epochs"]]

    assert shifted(short, HORIZON) == one_long_epoch(case)


@unshrunk
@given(SEEDS)
def test_advancing_from_event_to_event_ends(seed: int) -> None:
    """`next_due` names a minute with an event, so following it always makes progress."""
    case = scenario(seed)
    until = case.document["epochs"] * HORIZON
    world = fresh(case)
    for command in commands_of(case)[:2]:
        world.apply(command)
    steps = 0
    while (due := world.next_due()) is not None and due <= until and world.now() < until:
        world.apply(Advance(due))
        steps += 1
        assert steps <= 2 * until, f"next_due stays at {due}"


@pytest.mark.req("ACT-PERF-4")
def test_an_empty_epoch_does_not_touch_the_queue() -> None:
    world = World.create({"epoch": epoch_of(0, 1440), "action_defs": {}})

    outcome = world.apply(Advance(1440 * 10_000))

    assert len(outcome.events) == 9_999
    assert all(isinstance(event, EpochBegan) for event in outcome.events)
    assert len(world.current.queue) == 0


WALK = {"walk": lasting(10)}


@pytest.mark.req("ACT-TIME-2")
def test_an_event_at_the_very_end_belongs_to_the_last_slot() -> None:
    result = day(WALK, does("A", 59, "walk"), does("B", 1430, "walk"))

    slots = [(event.t, event.slot) for event in result.events]
    assert slots == [(59, 0), (69, 1), (1430, 23), (1440, 23)]
    assert result.events[-1].at == "2025-07-02T00:00:00"


def test_time_never_goes_back() -> None:
    world = World.create({"epoch": EPOCH, "action_defs": WALK})
    world.apply(Submit((does("A", 5, "walk"),)))
    world.apply(Advance(100))
    before = world.state()

    refusal = world.apply(Advance(99)).refusal

    assert refusal is not None
    assert refusal.code == "time_goes_forward"
    assert world.state() == before
