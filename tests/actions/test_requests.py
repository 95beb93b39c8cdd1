"""Requested interrupts, cancellations and resumptions: valid, malformed, for unknown actions."""

from typing import Any

import pytest

from pendula.actions import Advance, Rejection, Request, Submit, World
from tests.actions.worlds import EPOCH, day, diagnostic_rows, does, expected_lines, lasting, lines, outcome

WALK = {"walk": lasting(10), "haul": lasting(10, "cart")}
GOOD = does("good", 7, "walk")
STILL_GOING = expected_lines("7 start good, 17 end good")


@pytest.mark.req("ACT-FILE-2")
@pytest.mark.parametrize(
    "bad",
    [
        None,
        5,
        [],
        {},
        {"t": 5, "priority": 9},
        {"t": 5, "target": "good"},
        {"target": "good", "priority": 9},
        {"t": 5, "at": "2025-07-01T00:05:00", "target": "good", "priority": 9},
        {"t": -1, "target": "good", "priority": 9},
        {"at": "2025-06-30T23:00:00", "target": "good", "priority": 9},
        {"t": 1.5, "target": "good", "priority": 9},
        {"t": True, "target": "good", "priority": 9},
        {"at": "soon", "target": "good", "priority": 9},
        {"at": "2025-07-01T00:10:00+00:00", "target": "good", "priority": 9},
        {"t": 9, "target": "good", "priority": "high"},
        {"t": 9, "target": "good", "priority": 9, "hold_min": -1},
        {"t": 9, "target": "good", "priority": 9, "hold_min": 10**30},
        {"t": 9, "target": "good", "priority": 9, "hold": 5},
        {"t": 9, "target": 5, "priority": 9},
    ],
)
def test_a_malformed_interrupt_is_a_diagnostic_and_has_no_effect(bad: Any) -> None:
    result = day({"walk": lasting(10, interruptible=True)}, GOOD, interrupts=[bad])

    assert [diagnostic.code for diagnostic in result.diagnostics] == ["InvalidInterrupt"]
    assert lines(result) == STILL_GOING


@pytest.mark.req("ACT-FILE-2")
@pytest.mark.parametrize(
    "bad",
    [
        None,
        "cancel",
        {},
        {"t": 5},
        {"cancel": "good"},
        {"t": 5, "cancel": "good", "resume": "good"},
        {"t": 5, "destroy": "good"},
        {"t": -5, "cancel": "good"},
        {"at": "2025-06-30T23:00:00", "cancel": "good"},
        {"t": 5, "cancel": 5},
        {"at": "later", "cancel": "good"},
    ],
)
def test_a_malformed_command_is_a_diagnostic_and_has_no_effect(bad: Any) -> None:
    result = day(WALK, GOOD, commands=[bad])

    assert [diagnostic.code for diagnostic in result.diagnostics] == ["InvalidCommand"]
    assert lines(result) == STILL_GOING


@pytest.mark.req("ACT-FILE-1")
def test_minutes_of_requests_count_from_the_first_epoch_of_the_file() -> None:
    defs = {"walk": lasting(2000, interruptible=True)}

    by_t, by_at = (
        outcome(defs, does("A", 0, "walk"), interrupts=[{**when, "target": "A", "priority": 1}], epochs=2)
        for when in ({"t": 1500}, {"at": "2025-07-02T01:00:00"})
    )

    assert lines(by_t.epochs[1])[0] == "60 interrupt A"
    assert lines(by_at.epochs[1]) == lines(by_t.epochs[1])


HUGE = [
    {"t": 10**30, "target": "A", "priority": 9},
    {"t": 5, "target": "A", "priority": 10**30},
    {"t": 5, "target": "A" * 100_000, "priority": 9},
    {"t": 5, "target": "A", "priority": 9, "source": "x" * 100_000},
]


@pytest.mark.parametrize("interrupt", HUGE, ids=["t", "priority", "target", "source"])
def test_huge_values_in_requests_have_no_effect_on_others(interrupt: dict[str, Any]) -> None:
    config = {"epoch": EPOCH, "action_defs": WALK}
    world = World.create(config)
    world.apply(Submit((GOOD,)))
    world.apply(Request((interrupt,)))

    restored = World.from_state(config, world.state())

    assert restored.state() == world.state()
    assert [event for event in world.apply(Advance(100)).events if isinstance(event, Rejection)] == []


def test_requests_for_unknown_actions_are_diagnostics() -> None:
    result = day(
        WALK,
        GOOD,
        interrupts=[{"t": 3, "target": "nobody", "priority": 9}],
        commands=[{"t": 3, "cancel": "nobody"}, {"t": 3, "resume": "nobody"}],
    )

    assert diagnostic_rows(result) == [
        (3, "interrupt_ignored", "nobody"),
        (3, "NotCancellable", "nobody"),
        (3, "NotResumable", "nobody"),
    ]
    assert lines(result) == STILL_GOING
