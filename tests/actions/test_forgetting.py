"""Deferred submissions are reported once; ids of finished actions are forgotten after `remember_epochs` epochs."""

from typing import Any

import pytest

from pendula.actions import Advance, Rejection, Submit, World
from pendula.kernel.canonical import decode
from tests.actions.worlds import EPOCH, NEXT_EPOCH, does, lasting, outcome

DEFS = {"nap": lasting(10)}
CONFIG: dict[str, Any] = {"epoch": EPOCH, "action_defs": DEFS}


@pytest.mark.req("ACT-TIME-4")
def test_a_submission_for_later_is_deferred_in_the_epoch_of_its_arrival() -> None:
    result = outcome(DEFS, *(does(f"A{n}", n * 1440, "nap") for n in range(4)), epochs=3)

    assert [[one["id"] for one in epoch.deferred] for epoch in result.epochs] == [["A1", "A2", "A3"], [], []]


@pytest.mark.req("ACT-USE-6")
def test_the_id_of_an_action_that_ended_some_epochs_ago_can_be_reused() -> None:
    options = {"remember_epochs": 1}
    world = World.create({**CONFIG, "options": options})
    used: list[tuple[int, bool]] = []
    for epoch in range(4):
        events = world.apply(Submit((does("A", world.now(), "nap"),))).events
        used.append((epoch, any(isinstance(event, Rejection) for event in events)))
        world.apply(Advance((epoch + 1) * 1440 + 1))

    # Over on day 0, remembered for the whole of day 1; so it is on day 3, after its second life on day 2.
    assert used == [(0, False), (1, True), (2, False), (3, True)]
    assert len(decode(world.state())["used_ids"]) == 0  # type: ignore[call-overload,index,arg-type]


@pytest.mark.req("ACT-USE-6")
def test_why_says_that_an_id_can_be_forgotten() -> None:
    world = World.create({**CONFIG, "options": {"remember_epochs": 0}})
    world.apply(Submit((does("A", 0, "nap"), does("B", 0, "fly"))))
    world.apply(Advance(1000))
    assert {world.why({"action": name}).code for name in "AB"} == {"over"}
    world.apply(Advance(1441))

    assert {world.why({"action": name}).code for name in "AB"} == {"unknown"}
    assert "forgotten 0 epochs after its end" in world.why({"action": "A"}).sentence
    assert World.create(CONFIG).why({"action": "A"}).sentence == "No action A was submitted."


@pytest.mark.req("ACT-USE-6", "ACT-CARRY-3")
def test_ids_to_forget_are_saved_and_carried() -> None:
    config = {**CONFIG, "options": {"remember_epochs": 1}}
    world = World.create(config)
    world.apply(Submit((does("A", 0, "nap"),)))
    world.apply(Advance(1440))
    again = World.from_state(config, world.state())
    carried = World.create({**config, "epoch": NEXT_EPOCH, "carry": world.carry()})
    for one, day_two in ((world, 2880), (again, 2880), (carried, 1440)):
        assert one.why({"action": "A"}).code == "over"
        one.apply(Advance(day_two))
        assert one.why({"action": "A"}).code == "over"
        one.apply(Advance(day_two + 1))
        assert one.why({"action": "A"}).code == "unknown"

    assert world.state() == again.state()
