"""The live form: a game loop, its pace, its observers, wishes that make no sense."""

from typing import Any

import pytest

from pendula.actions import Instance, LiveWorld, Refused, Rejection, Start
from pendula.actions.events import WORLD_EVENTS, Event
from tests.actions.worlds import EPOCH, does, lasting, line

DEFS = {
    "saw": lasting(50, "workshop", interruptible=True),
    "nap": lasting(10),
    "tell": lasting(5, may_trigger_event=True),
    "dash": lasting(5, "workshop", wait="fail"),
}
CONFIG: dict[str, Any] = {"epoch": EPOCH, "action_defs": DEFS}


def told(events: tuple[Event, ...]) -> list[str]:
    return [line(event) for event in events if isinstance(event, WORLD_EVENTS)]


def test_a_game_loop_hears_what_happened_since() -> None:
    world = LiveWorld(CONFIG)
    world.submit(does("A", 5, "nap"), does("B", 12, "nap"))

    assert told(world.advance_to(10)) == ["5 start A"]
    assert told(world.advance_to(15)) == ["12 start B", "15 end A"]
    assert told(world.advance_to(15)) == []
    assert world.minute == 15


def test_what_is_submitted_without_a_time_is_for_now() -> None:
    world = LiveWorld(CONFIG)
    world.advance_to(100)
    world.submit({"id": "A", "actor": "ann", "verb": "nap"}, Instance("B", "bob", "nap"))

    assert told(world.advance_to(100)) == ["100 start A", "100 start B"]


def test_rejections_come_back_at_once() -> None:
    world = LiveWorld(CONFIG)

    (rejection,) = world.submit({"id": "A"})

    assert isinstance(rejection, Rejection)
    assert rejection.code == "InvalidAction"


def test_interrupt_cancel_and_resume_are_for_the_present_minute() -> None:
    world = LiveWorld({**CONFIG, "action_defs": {**DEFS, "saw": {**DEFS["saw"], "resume": "manual"}}})
    world.submit(does("A", 0, "saw"), does("B", 0, "saw"))
    world.advance_to(10)
    world.interrupt("A", 9, source="bell")
    assert told(world.advance_to(10)) == ["10 interrupt A", "10 start B"]
    world.advance_to(20)
    world.cancel("B")
    world.resume("A")

    assert told(world.advance_to(20)) == ["20 interrupt B", "20 start A"]
    assert told(world.advance_to(60)) == ["60 end A"]


def test_a_wish_that_makes_no_sense_is_refused_and_changes_nothing() -> None:
    world = LiveWorld(CONFIG)
    world.advance_to(10)
    before = world.state()

    with pytest.raises(Refused):
        world.advance_to(5)
    with pytest.raises(Refused):
        world.interrupt("A", 9, hold_min=-1)
    with pytest.raises(Refused):
        world.cancel("")

    assert world.state() == before


def test_advance_until_stops_after_the_minute_of_the_event() -> None:
    world = LiveWorld(CONFIG)
    world.submit(does("A", 5, "nap"), does("B", 15, "nap"), does("C", 15, "nap"), does("D", 16, "nap"))

    events = world.advance_until(lambda event: isinstance(event, Start) and event.action_id == "B", 100)

    assert told(events) == ["5 start A", "15 end A", "15 start B", "15 start C"]
    assert world.minute == 15


def test_advance_until_something_that_never_happens_ends_at_the_latest() -> None:
    world = LiveWorld(CONFIG)
    world.submit(does("A", 1440, "nap"), does("B", 1435, "nap"), does("C", 5000, "nap"))

    events = world.advance_until(lambda _: False, 3000)

    assert world.minute == 3000
    assert told(events) == ["1435 start B", "0 start A", "5 end B", "10 end A"]


def test_advance_until_finds_the_first_event_after_midnight() -> None:
    world = LiveWorld(CONFIG)
    world.submit(does("A", 1440, "nap"), does("B", 1441, "nap"))

    events = world.advance_until(lambda event: isinstance(event, Start), 3000)

    assert told(events)[0] == "0 start A"


def test_play_keeps_its_pace() -> None:
    world = LiveWorld(CONFIG)
    world.submit(does("A", 5, "nap"), does("B", 1440, "nap"))
    slept: list[float] = []
    seen: list[Event] = []

    world.play(1500, seconds_per_minute=0.5, each=seen.append, sleep=slept.append)

    assert sum(slept) == 750
    assert slept[0] == 2.5
    assert told(tuple(seen)) == ["5 start A", "15 end A", "0 start B", "10 end B"]


@pytest.mark.req("ACT-EVT-6")
def test_observers_are_called_in_the_order_of_events_and_cannot_disturb() -> None:
    seen: list[str] = []

    class Observer:
        def on_action_start(self, event: Event) -> None:
            seen.append(f"start {event.action_id}")  # type: ignore[union-attr]
            raise RuntimeError("an observer's own trouble")

        def on_action_end(self, event: Event) -> None:
            seen.append(f"end {event.action_id}")  # type: ignore[union-attr]

        def on_interrupt(self, event: Event) -> None:
            seen.append(f"interrupt {event.action_id}")  # type: ignore[union-attr]

        def on_visibility_change(self, event: Event) -> None:
            seen.append(f"visibility_change {event.action_id}")  # type: ignore[union-attr]

    world = LiveWorld(CONFIG)
    world.observe(Observer())
    world.submit(does("A", 0, "tell", knowledge=["k"]), does("B", 0, "saw"))
    world.advance_to(5)
    world.interrupt("B", 9)
    world.advance_to(10)

    assert seen == ["start A", "start B", "end A", "visibility_change A", "interrupt B", "start B"]
