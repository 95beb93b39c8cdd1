"""The live form: a game loop, its pace, its observers, invalid calls."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pendula.actions import Instance, InvalidSetting, LiveWorld, Refused, Rejection, Start
from pendula.actions.messages import WORLD_EVENTS, Event
from pendula.kernel.cancellation import Cancellation, Cancelled, cancellable
from pendula.testing import FaultyDisk
from tests.actions.worlds import EPOCH, does, lasting, line

DEFS = {
    "saw": lasting(50, "workshop", interruptible=True),
    "nap": lasting(10),
    "tell": lasting(5, may_trigger_event=True),
    "dash": lasting(5, "workshop", wait="fail"),
}
CONFIG: dict[str, Any] = {"epoch": EPOCH, "action_defs": DEFS}


def event_lines(events: tuple[Event, ...]) -> list[str]:
    return [line(event) for event in events if isinstance(event, WORLD_EVENTS)]


def test_a_game_loop_receives_the_events_since_the_last_call() -> None:
    world = LiveWorld(CONFIG)
    world.submit(does("A", 5, "nap"), does("B", 12, "nap"))

    assert event_lines(world.advance_to(10)) == ["5 start A"]
    assert event_lines(world.advance_to(15)) == ["12 start B", "15 end A"]
    assert event_lines(world.advance_to(15)) == []
    assert world.minute == 15


def test_a_submission_without_a_time_is_for_the_present_minute() -> None:
    world = LiveWorld(CONFIG)
    world.advance_to(100)
    world.submit({"id": "A", "actor": "ann", "verb": "nap"}, Instance("B", "bob", "nap"))

    assert event_lines(world.advance_to(100)) == ["100 start A", "100 start B"]


def test_rejections_are_returned_at_once() -> None:
    world = LiveWorld(CONFIG)

    (rejection,) = world.submit({"id": "A"})

    assert isinstance(rejection, Rejection)
    assert rejection.code == "InvalidAction"


def test_interrupt_cancel_and_resume_are_for_the_present_minute() -> None:
    world = LiveWorld({**CONFIG, "action_defs": {**DEFS, "saw": {**DEFS["saw"], "resume": "manual"}}})
    world.submit(does("A", 0, "saw"), does("B", 0, "saw"))
    world.advance_to(10)
    world.interrupt("A", 9, source="bell")
    assert event_lines(world.advance_to(10)) == ["10 interrupt A", "10 start B"]
    world.advance_to(20)
    world.cancel("B")
    world.resume("A")

    assert event_lines(world.advance_to(20)) == ["20 interrupt B", "20 start A"]
    assert event_lines(world.advance_to(60)) == ["60 end A"]


def test_an_invalid_call_is_refused_and_changes_nothing() -> None:
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

    assert event_lines(events) == ["5 start A", "15 end A", "15 start B", "15 start C"]
    assert world.minute == 15


def test_advance_until_an_event_that_never_happens_ends_at_the_limit() -> None:
    world = LiveWorld(CONFIG)
    world.submit(does("A", 1440, "nap"), does("B", 1435, "nap"), does("C", 5000, "nap"))

    events = world.advance_until(lambda _: False, 3000)

    assert world.minute == 3000
    assert event_lines(events) == ["1435 start B", "0 start A", "5 end B", "10 end A"]


def test_advance_until_finds_the_first_event_after_midnight() -> None:
    world = LiveWorld(CONFIG)
    world.submit(does("A", 1440, "nap"), does("B", 1441, "nap"))

    events = world.advance_until(lambda event: isinstance(event, Start), 3000)

    assert event_lines(events)[0] == "0 start A"


def test_play_keeps_its_pace() -> None:
    world = LiveWorld(CONFIG)
    world.submit(does("A", 5, "nap"), does("B", 1440, "nap"))
    slept: list[float] = []
    seen: list[Event] = []

    world.play(1500, seconds_per_minute=0.5, each=seen.append, sleep=slept.append)

    assert sum(slept) == 750
    assert slept[0] == 2.5
    assert event_lines(tuple(seen)) == ["5 start A", "15 end A", "0 start B", "10 end B"]


@pytest.mark.req("ACT-EVT-6")
def test_observers_are_called_in_the_order_of_events_and_cannot_interfere() -> None:
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


# Numbers, states, places, estimates


@pytest.mark.req("ACT-TIME-3")
@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("minute", [1.5, 1.0, True, "1", None, Decimal(1), 2**70])
def test_every_time_value_is_an_integer_or_refused(journal: bool, minute: Any) -> None:
    world = LiveWorld(CONFIG, journal=FaultyDisk() if journal else None)
    world.submit(does("A", 0, "saw"))
    before = world.state()
    calls: list[Callable[[], object]] = [
        lambda: world.advance_to(minute),
        lambda: world.play(minute, seconds_per_minute=0, each=print),
        lambda: world.advance_until(lambda _: False, minute),
    ]
    if minute is not None:
        calls += [
            lambda: world.cancel("A", t=minute),
            lambda: world.interrupt("A", 5, t=minute),
            lambda: world.interrupt("A", 5, hold_min=minute),
            lambda: world.resume("A", t=minute),
        ]
    for call in calls:
        with pytest.raises(Refused):
            call()
    if minute is not None and minute != 2**70:
        with pytest.raises(Refused, match=r"t is .*; it must be a whole number"):
            world.submit({**does("B", 0, "nap"), "t": minute})
        with pytest.raises(Refused, match=r"t is .*; it must be a whole number"):
            world.submit(Instance("B", "bo", "nap", t=minute))

    assert world.state() == before


@pytest.mark.req("ACT-DATA-2")
def test_a_journal_accepts_floats_in_params_too() -> None:
    a_float: Any = 0.25
    world = LiveWorld(CONFIG, journal=FaultyDisk())
    world.submit(does("A", 0, "nap", params={"speed": 0.5}), Instance("B", "bo", "nap", params=a_float))

    started = [event.meta["params"] for event in world.advance_to(5) if isinstance(event, Start)]
    assert started == [{"speed": Decimal("0.5")}, Decimal("0.25")]


@pytest.mark.parametrize("config", [None, [], "town", {**CONFIG, "options": []}, {**CONFIG, "option": {}}])
def test_an_invalid_configuration_is_refused_with_a_message(config: Any) -> None:
    with pytest.raises(InvalidSetting) as refused:
        LiveWorld(config)

    assert "object" in refused.value.message or "did you mean options?" in refused.value.message


@pytest.mark.parametrize("bad", [{"actor": 5}, {"verb": None}, {"id": ""}, {"knowledge": 7}])
def test_an_instance_built_in_code_is_checked(bad: dict[str, Any]) -> None:
    world = LiveWorld(CONFIG)

    (rejection,) = world.submit(Instance(**{"id": "A", "actor": "bo", "verb": "nap", "t": 0, **bad}))

    assert rejection.code == "InvalidAction"  # type: ignore[union-attr]


@pytest.mark.req("ACT-USE-5")
def test_next_due_says_when_something_happens() -> None:
    world = LiveWorld(CONFIG)
    assert world.next_due() is None
    world.submit(does("A", 7, "nap"))

    assert world.next_due() == 7
    world.advance_to(7)
    assert world.next_due() == 17


@pytest.mark.req("ACT-USE-5", "ACT-VIS-2")
def test_a_world_answers_which_actor_knows_an_item() -> None:
    item = {"id": "rumour", "source": "cy", "scope": "private", "ttl_min": 30}
    world = LiveWorld({**CONFIG, "options": {"pc": "ann"}, "world_state": {"knowledge": [item]}})
    world.submit(does("A", 0, "tell", knowledge=[{"id": "rumour", "visibility_to": ["bo"]}]))
    before = [world.knows(actor, "rumour") for actor in ("cy", "ann", "bo", "dan")]
    world.advance_to(10)
    after = [world.knows(actor, "rumour") for actor in ("cy", "ann", "bo", "dan")]
    world.advance_to(31)

    assert before == [True, False, False, False]
    assert after == [True, True, True, False]
    assert not world.knows("cy", "rumour")
    assert not world.knows("cy", "nothing")


@pytest.mark.req("ACT-USE-5")
def test_the_place_of_an_actor_is_that_of_its_last_action() -> None:
    defs = {**DEFS, "saw": {**DEFS["saw"], "place": "workshop"}}
    world = LiveWorld({**CONFIG, "action_defs": defs, "world_state": {"places": {"ann": "home", "bo": "inn"}}})
    world.submit(
        does("A", 5, "saw"),
        does("B", 60, "nap", params={"place": "attic"}),
        does("C", 80, "nap", params={"place": 7}),
        does("D", 90, "saw", params={"place": "yard"}),
    )
    seen = []
    for minute in (0, 5, 70, 85, 100):
        world.advance_to(minute)
        seen.append((world.place_of("ann"), world.place_of("bo"), world.place_of("cy")))
    again = LiveWorld.from_state(world.config, world.state())

    assert [one[0] for one in seen] == ["home", "workshop", "attic", "attic", "yard"]
    assert {one[1:] for one in seen} == {("inn", None)}
    assert again.place_of("ann") == "yard"


def test_a_world_lists_its_actions_with_stage_and_times() -> None:
    defs = {**DEFS, "muse": lasting(20, interruptible=True, resume="manual")}
    world = LiveWorld({**CONFIG, "action_defs": defs})
    world.submit(does("A", 0, "saw", params={"to": "size"}), does("B", 5, "saw", actor="bob"), does("M", 0, "muse"))
    world.submit(does("N", 0, "nap", actor="cy"))
    world.interrupt("A", 1, hold_min=30, t=10)
    world.interrupt("M", 1, t=10)
    world.advance_to(12)

    stood = [(one.action_id, one.stage, one.since, one.until, one.remaining) for one in world.doing()]

    # Finished actions are excluded: N napped until 10.
    assert stood == [
        ("A", "held", None, 40, 40),
        ("M", "suspended", None, None, 10),
        ("B", "running", 10, 60, 48),
    ]
    assert [(one.verb, one.locks, one.params) for one in world.doing("ann")] == [
        ("saw", ("workshop",), {"to": "size"}),
        ("muse", (), {}),
    ]
    world.submit(does("C", 12, "saw", actor="dan"))
    world.advance_to(13)
    (waits,) = world.doing("dan")
    assert (waits.stage, waits.since, waits.until, waits.remaining) == ("waiting", 12, None, 50)
    assert world.doing("nobody") == ()


def test_a_world_lists_locks_and_resources() -> None:
    parts = [{"name": "parts", "amount": 2}]
    world = LiveWorld(
        {**CONFIG, "action_defs": {"saw": lasting(50, "pit", resources=parts)}, "resources": {"parts": 5}}
    )
    world.submit(does("A", 0, "saw"), does("B", 0, "saw"))

    world.advance_to(5)

    assert world.locks() == {"pit": {"held_by": "A", "queue": ["B"]}}
    assert world.resources() == {"parts": {"available": 1, "reserved": 4}}


def test_a_cancelled_what_if_ends_between_two_minutes_and_changes_nothing() -> None:
    world = LiveWorld(CONFIG)
    world.submit(does("A", 0, "saw"), does("B", 5, "saw"))
    world.advance_to(10)
    before, cancellation = world.state(), Cancellation()
    cancellation.cancel()

    with pytest.raises(Cancelled), cancellable(cancellation):
        world.what_if({"actor": "dan", "verb": "saw"})

    assert world.state() == before
    assert world.what_if({"actor": "dan", "verb": "saw"}).start == 100


@pytest.mark.req("ACT-USE-5")
def test_what_if_estimates_a_start_without_submitting() -> None:
    world = LiveWorld(CONFIG, modifiers=lambda question: {"slow": 2} if question["verb"] == "nap" else {})
    world.submit(does("A", 0, "saw"), does("B", 5, "saw"), does("C", 1500, "saw"))
    world.advance_to(10)
    before = world.state()

    waits = world.what_if({"actor": "dan", "verb": "saw"})
    later = world.what_if({"actor": "dan", "verb": "saw", "t": 1495})
    free = world.what_if({"id": "N", "actor": "dan", "verb": "nap"})
    never = world.what_if(does("F", 10, "fly"))
    taken = world.what_if(Instance("A", "dan", "nap"))
    far = world.what_if({"actor": "dan", "verb": "saw"}, until=50)

    assert (waits.start, waits.end) == (100, 150)
    assert (later.start, later.end) == (1495, 1545)
    assert (free.action_id, free.start, free.end) == ("N", 10, 30)
    assert never.rejected is not None
    assert (never.start, never.rejected.code) == (None, "UnknownVerb")
    assert taken.rejected is not None
    assert taken.rejected.code == "DuplicateActionId"
    assert far.why is not None
    assert far.why.code == "waits_for_locks"
    assert world.state() == before
    assert world.minute == 10


@pytest.mark.req("ACT-USE-5")
def test_a_timeline_is_a_picture_of_recent_events() -> None:
    world = LiveWorld(CONFIG)
    assert world.timeline()._repr_svg_().startswith("<svg")
    world.submit(does("A", 0, "saw"), does("B", 5, "saw"), does("C", 6, "fly"), does("D", 1500, "nap"))
    world.advance_to(20)
    world.interrupt("A", 9, source="bell")
    world.advance_to(30)
    morning = world.timeline("Morning").svg
    world.advance_to(1505)
    both = world.timeline()._repr_svg_()

    assert all(text in morning for text in ("Morning", "saw", "bell", "UnknownVerb", "Epoch 0"))
    assert "Epoch 1" not in morning
    assert "Epoch 1" in both
    assert ET.fromstring(both).tag == "{http://www.w3.org/2000/svg}svg"
