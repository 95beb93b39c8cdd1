"""Why an action has not started: the holders of its locks, the actions before it, the start of its hold."""

from typing import Any

import pytest

from pendula.actions import LiveWorld
from tests.actions.worlds import EPOCH, does, lasting

DEFS = {
    "saw": lasting(50, "workshop", interruptible=True),
    "nap": lasting(10),
}
CONFIG: dict[str, Any] = {"epoch": EPOCH, "action_defs": DEFS}


def busy() -> LiveWorld:
    world = LiveWorld(CONFIG)
    world.submit(does("A2", 490, "saw"), does("A4", 495, "saw"), does("A5", 500, "saw"), does("A9", 600, "nap"))
    world.advance_to(510)
    return world


def test_why_names_the_holder_and_the_actions_before() -> None:
    reason = busy().why("A5")

    assert reason.sentence == "A5 waits for workshop, held by A2 until 2025-07-01 09:00; A4 is next in line."
    assert reason.code == "waits_for_locks"
    (because,) = reason.because
    assert because.facts == {"lock": "workshop", "held_by": "A2", "until": "2025-07-01T09:00:00", "ahead": ["A4"]}


@pytest.mark.parametrize(
    ("action", "code", "sentence"),
    [
        ("A2", "running", "A2 runs until 2025-07-01 09:00."),
        ("A4", "waits_for_locks", "A4 waits for workshop, held by A2 until 2025-07-01 09:00."),
        ("A9", "not_yet", "A9 is submitted for 2025-07-01 10:00."),
        ("A0", "unknown", "No action A0 was submitted."),
    ],
)
def test_why_answers_for_every_stage(action: str, code: str, sentence: str) -> None:
    reason = busy().why(action)

    assert (reason.code, reason.sentence) == (code, sentence)


def test_why_explains_holds_suspensions_and_ends() -> None:
    world = LiveWorld({**CONFIG, "action_defs": {**DEFS, "dig": lasting(9, interruptible=True, resume="manual")}})
    world.submit(does("A", 0, "saw"), does("B", 0, "dig"), does("C", 0, "nap"))
    world.advance_to(5)
    world.interrupt("A", 9, hold_min=60)
    world.interrupt("B", 9)
    world.advance_to(20)

    assert [world.why(name).code for name in "ABC"] == ["held", "suspended", "over"]
    assert world.why("A").sentence == "A was interrupted and is held until 2025-07-01 01:05."


def test_why_explains_an_idle_lock() -> None:
    defs = {"both": lasting(9, "workshop", "radio"), "radio": lasting(60, "radio"), "shop": lasting(9, "workshop")}
    world = LiveWorld({"epoch": EPOCH, "action_defs": defs})
    world.submit(does("R", 0, "radio"), does("B", 1, "both"), does("S", 2, "shop"))
    world.advance_to(10)

    assert world.why("S").sentence == "S waits for workshop: it is free, B is next in line."
    assert world.why("B").sentence == "B waits for radio, held by R until 2025-07-01 01:00."
