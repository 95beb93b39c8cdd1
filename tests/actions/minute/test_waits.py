"""Processes that wait for the first of several things."""

from typing import Any

import pytest

from pendula.actions import Diagnostic, LiveWorld, Rejection, World, any_of, ended, known, minute
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import replay
from pendula.testing import FaultyDisk
from tests.actions.worlds import EPOCH, does, lasting

DEFS = {"nap": lasting(10), "tell": lasting(5, may_trigger_event=True), "dash": lasting(5, "hall", wait="fail")}
CONFIG: dict[str, Any] = {"epoch": EPOCH, "action_defs": {**DEFS, "meet": lasting(60, "hall", interruptible=True)}}


def received_by(*waits: Any, until: int = 200, submitted: tuple[Any, ...] = (), **more: Any) -> list[Any]:
    """The values sent to a process that waits for these, one after the other."""
    heard: list[Any] = []

    def process() -> Any:
        for wait in waits:
            heard.append((yield wait))

    world = LiveWorld({**CONFIG, **more})
    world.submit(*submitted)
    world.run(process(), "p")
    world.advance_to(until)
    return heard


@pytest.mark.req("ACT-USE-3")
def test_a_process_waits_for_the_first_of_several_things() -> None:
    submitted = (does("A", 0, "nap"), does("B", 0, "tell", actor="bo", knowledge=["k"]))

    assert received_by(any_of(ended("A"), minute(7), known("k", by="ann")), submitted=submitted) == [
        {"became": [{"minute": 7}], "t": 7}
    ]
    assert received_by(any_of(ended("A"), known("k", by="bo")), submitted=submitted) == [
        {"became": [{"known": "k", "by": "bo"}], "t": 5}
    ]
    assert received_by(any_of(ended("A"), minute(50)), submitted=submitted) == [{"became": [{"ended": "A"}], "t": 10}]


@pytest.mark.req("ACT-USE-3")
def test_conditions_of_one_minute_arrive_in_the_order_of_the_wait() -> None:
    submitted = (
        does("A", 0, "nap"),
        does("B", 5, "tell", actor="bo", knowledge=["k"]),
        does("S", 10, "dash"),
        does("M", 9, "meet"),
    )
    wait = any_of(minute(10), ended("S"), known("k", by="bo"), ended("nobody"), ended("A"), ended("B"))

    assert received_by(wait, submitted=submitted) == [
        {
            "became": [{"minute": 10}, {"ended": "S"}, {"known": "k", "by": "bo"}, {"ended": "A"}, {"ended": "B"}],
            "t": 10,
        }
    ]


@pytest.mark.req("ACT-USE-3")
@pytest.mark.parametrize("way", ["cancelled", "dropped", "rejected", "withdrawn", "over before", "not yet submitted"])
def test_an_action_finished_in_any_way_has_ended(way: str) -> None:
    world = LiveWorld(
        {**CONFIG, "action_defs": {**CONFIG["action_defs"], "soft": lasting(60, interruptible=True, resume="drop")}}
    )
    heard: list[Any] = []

    def process() -> Any:
        heard.append((yield any_of(ended("A"))))

    verb = {"dropped": "soft", "rejected": "fly"}.get(way, "nap")
    if way != "not yet submitted":
        world.submit(does("A", 50 if way == "withdrawn" else 1, verb))
    if way == "over before":
        world.advance_to(30)
    world.run(process(), "p")
    world.advance_to(max(5, world.minute))
    if way in ("cancelled", "withdrawn"):
        world.cancel("A", force=True)
    elif way == "dropped":
        world.interrupt("A", 9)
    elif way == "not yet submitted":
        world.submit(does("A", 5, "nap"))
    world.advance_to(100)

    minutes = {"rejected": 1, "over before": 30, "not yet submitted": 15}
    assert heard == [{"became": [{"ended": "A"}], "t": minutes.get(way, 5)}]


@pytest.mark.req("ACT-USE-3")
def test_waits_and_steps_alternate_within_a_minute() -> None:
    heard: list[Any] = []

    def process() -> Any:
        heard.append((yield any_of(minute(10))))
        heard.append((yield {"actor": "bo", "verb": "nap"}))
        heard.append((yield any_of(ended("p-0"), minute(99))))

    world = LiveWorld(CONFIG)
    world.run(process(), "p")
    world.advance_to(50)

    assert [one["t"] for one in heard] == [10, 20, 20]
    assert not world.engine.current.waits
    assert not world.engine.current.awaited
    assert world.next_due() is None


@pytest.mark.req("ACT-USE-3")
@pytest.mark.parametrize(
    "wait",
    [{"wait": []}, {"wait": "A"}, {"wait": [{"minute": "x"}]}, {"wait": [{"minutes": 1}]}, {"wait": [{"known": "k"}]},
     {"wait": [{"ended": "A", "minute": 1}]}, {"wait": [{"minute": 10**12}]}],
)  # fmt: skip
def test_an_invalid_wait_is_rejected_and_the_process_is_notified(wait: Any) -> None:
    (heard,) = received_by(wait)

    assert heard["rejected"] in ("InvalidAction", "InvalidTimestamp")


@pytest.mark.req("ACT-USE-3", "ACT-PERF-3")
def test_repeated_waits_for_a_true_condition_are_stopped() -> None:
    def process() -> Any:
        while True:
            yield any_of(minute(0))

    world = LiveWorld(CONFIG)
    world.run(process(), "p")
    events = world.advance_to(5)

    (diagnostic,) = [event for event in events if isinstance(event, Diagnostic)]
    assert (str(diagnostic.code), diagnostic.by) == ("LimitExceeded", "p")
    assert not [event for event in events if isinstance(event, Rejection)]


@pytest.mark.req("ACT-USE-3", "ACT-CARRY-3")
def test_conditions_of_midnight_arrive_together_and_survive_a_restore() -> None:
    disk = FaultyDisk()
    heard: list[Any] = []

    def process() -> Any:
        heard.append((yield any_of(minute(1440), ended("A"))))
        heard.append((yield any_of(minute(1500))))

    world = LiveWorld(CONFIG, journal=disk)
    world.submit(does("A", 1430, "nap"))
    world.run(process(), "p")
    for stop in (100, 1440, 1450):
        world.advance_to(stop)
        assert World.from_state(world.config, world.state()).state() == world.state()
    world.advance_to(1600)
    world.close()

    assert heard == [
        {"became": [{"minute": 1440}, {"ended": "A"}], "t": 1440},
        {"became": [{"minute": 1500}], "t": 1500},
    ]
    assert replay(FileJournal.open(disk), lambda _: World).first_difference is None


@pytest.mark.req("ACT-USE-3", "ACT-USE-5")
def test_a_waiting_process_is_recovered() -> None:
    disk = FaultyDisk()
    heard: list[Any] = []

    def process() -> Any:
        heard.append((yield any_of(minute(20))))
        heard.append((yield any_of(minute(40), ended("A"))))

    world = LiveWorld(CONFIG, journal=disk)
    world.submit(does("A", 50, "nap"))
    world.run(process(), "p")
    world.advance_to(30)
    heard.clear()
    world.close()

    world = LiveWorld.recover(disk, processes={"p": process()})
    world.advance_to(60)

    assert [one["t"] for one in heard] == [20, 40]


@pytest.mark.req("ACT-USE-3")
@pytest.mark.req("ACT-USE-5")
def test_a_wait_after_a_recovery_does_not_replace_an_earlier_one() -> None:
    disk = FaultyDisk()
    heard: list[str] = []

    def patient(name: str, *minutes: int) -> Any:
        for due in minutes:
            yield any_of(minute(due))
            heard.append(f"{name} {due}")

    world = LiveWorld(CONFIG, journal=disk)
    world.run(patient("p", 50), "p")
    world.run(patient("q", 10, 60), "q")
    world.advance_to(5)
    world.close()  # a snapshot: continue from the saved state

    world = LiveWorld.recover(disk, processes={"p": patient("p", 50), "q": patient("q", 10, 60)})
    world.advance_to(100)

    assert heard == ["q 10", "p 50", "q 60"]


@pytest.mark.req("ACT-USE-3")
def test_conditions_of_follow_ups_in_the_same_minute_arrive_with_the_rest() -> None:
    heard: list[Any] = []

    def patient() -> Any:
        heard.append((yield any_of(minute(10), ended("Z"))))

    def clumsy() -> Any:
        yield {"actor": "bo", "verb": "dash", "t": 10}
        yield {"id": "Z", "actor": "bo", "verb": "fly"}

    world = LiveWorld(CONFIG)
    world.submit(does("M", 0, "meet"))
    world.run(patient(), "p")
    world.run(clumsy(), "q")
    world.advance_to(20)

    assert heard == [{"became": [{"minute": 10}, {"ended": "Z"}], "t": 10}]
