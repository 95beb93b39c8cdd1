"""User code beside a world: hooks, modifiers and processes, called once and never on replay."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from pendula.actions import (
    Diagnostic,
    End,
    EpochBegan,
    Instance,
    LiveWorld,
    Refused,
    Rejection,
    Start,
    UserCodeFailed,
    World,
    WorldUnusable,
)
from pendula.actions.messages import WORLD_EVENTS, Event
from pendula.actions.runs import user_code
from pendula.actions.runs.user_code import Process
from pendula.kernel.canonical import Json
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import replay
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


def replayed(disk: FaultyDisk) -> None:
    """The journal replays to the same outcomes without user code."""
    report = replay(FileJournal.open(disk), lambda _: World)

    assert report.first_difference is None
    assert report.commands > 0


@pytest.mark.req("ACT-EVT-5")
def test_a_hook_submits_what_follows_in_the_same_minute() -> None:
    asked: list[Mapping[str, Json]] = []

    def hook(question: Mapping[str, Json]) -> list[dict[str, Any]]:
        asked.append(question)
        return [{"id": "follow", "actor": "bob", "verb": "nap"}] if question["action_id"] == "A" else []

    disk = FaultyDisk()
    world = LiveWorld(CONFIG, journal=disk, hook=hook)
    world.submit(does("A", 0, "tell"), does("B", 5, "nap"), does("C", 0, "nap"))

    events = world.advance_to(20)

    assert event_lines(events) == [
        "0 start A", "0 start C", "5 end A", "5 start B", "5 start follow", "10 end C", "15 end B", "15 end follow",
    ]  # fmt: skip
    assert [question["action_id"] for question in asked] == ["A"]
    world.close()
    replayed(disk)


@pytest.mark.req("ACT-DUR-4")
def test_modifiers_from_user_code_are_called_once_and_replayed() -> None:
    asked: list[Mapping[str, Json]] = []

    def modifiers(question: Mapping[str, Json]) -> dict[str, Json]:
        asked.append(question)
        return {"tired": 2, "rain": 3} if question["actor"] == "ann" else {"odd": "text"}

    disk = FaultyDisk()
    world = LiveWorld(CONFIG, journal=disk, modifiers=modifiers)
    world.submit(does("A", 0, "nap"), does("B", 0, "nap", actor="bob"))
    events = world.advance_to(100)

    assert event_lines(events) == ["0 start A", "60 end A"]
    (rejection,) = [event for event in events if isinstance(event, Rejection)]
    assert (rejection.action_id, rejection.code) == ("B", "InvalidDuration")
    assert len(asked) == 2
    world.close()
    replayed(disk)


def test_a_process_receives_the_results_of_its_actions() -> None:
    heard: list[Mapping[str, Json]] = []

    def workday() -> Process:
        heard.append((yield {"actor": "ann", "verb": "nap"}))
        heard.append((yield {"actor": "ann", "verb": "saw"}))
        heard.append((yield {"actor": "ann", "verb": "fly"}))
        heard.append((yield Instance("last", "ann", "nap", t=200)))

    disk = FaultyDisk()
    world = LiveWorld(CONFIG, journal=disk)
    world.advance_to(3)
    name = world.run(workday(), "ann's day")
    events = [*world.advance_to(10), *world.advance_to(300)]

    assert name == "ann's day"
    assert [line(event) for event in events if isinstance(event, Start)] == [
        "3 start ann's day-0",
        "13 start ann's day-1",
        "200 start last",
    ]
    assert [set(one) - {"t", "by"} for one in heard] == [{"ended"}, {"ended"}, {"rejected"}, {"ended"}]
    assert heard[0]["ended"] == 13
    assert heard[2]["rejected"] == "UnknownVerb"
    world.close()
    replayed(disk)


def test_a_process_is_notified_of_every_failure() -> None:
    heard: list[Any] = []

    def unlucky() -> Process:
        heard.append((yield {"id": "taken", "actor": "ann", "verb": "nap"}))
        heard.append((yield {"verb": "nap"}))
        heard.append((yield {"actor": "ann", "verb": "nap", "submitted_at": "soon"}))
        heard.append((yield {"actor": "ann", "verb": "dash"}))
        heard.append((yield {"actor": "ann", "verb": "nap"}))

    world = LiveWorld(CONFIG)
    world.submit(does("taken", 0, "nap"), does("S", 0, "saw"))
    world.advance_to(4)
    world.run(unlucky())
    events = world.advance_to(30)

    assert [one.get("rejected", "ended") for one in heard] == [
        "DuplicateActionId",
        "InvalidAction",
        "InvalidTimestamp",
        "CannotAcquireLock",
        "ended",
    ]
    assert "4 start process-0-4" in event_lines(events)


def test_a_follow_up_of_a_rejection_in_the_last_pass_survives_a_restore() -> None:
    def stubborn() -> Process:
        yield {"actor": "ann", "verb": "dash"}
        yield {"actor": "ann", "verb": "nap"}

    world = LiveWorld(CONFIG)
    world.submit(does("S", 0, "saw"))
    world.advance_to(4)
    world.run(stubborn())
    events = world.advance_to(4)
    restored = World.from_state(world.config, world.state())

    assert event_lines(events) == ["4 start process-0-1"]
    assert restored.why({"action": "process-0-1"}).code == "running"


def test_an_action_is_not_interrupted_in_the_minute_of_its_start() -> None:
    """A follow-up of a rejection in the last pass is too late to interrupt actions started by that pass."""
    defs = {
        **DEFS,
        "soft": lasting(30, "hall", interruptible=True),
        "alarm": lasting(5, "hall", preempts=True, priority=9),
    }

    def stubborn() -> Process:
        yield {"actor": "ann", "verb": "dash", "t": 4}
        yield {"actor": "ann", "verb": "alarm"}

    world = LiveWorld({**CONFIG, "action_defs": defs})
    world.submit(does("S", 0, "saw"), does("soft", 4, "soft"))
    world.run(stubborn())

    holding: list[str] = []
    for event in world.advance_to(100):
        if isinstance(event, WORLD_EVENTS) and event.verb in ("soft", "alarm"):
            if isinstance(event, Start):
                assert not holding, f"{line(event)}, and {holding} has the hall"
                holding.append(event.action_id)
            else:
                holding.remove(event.action_id)


def test_a_process_continues_after_an_interrupt_and_a_drop() -> None:
    heard: list[Any] = []

    def worker() -> Process:
        heard.append((yield {"actor": "ann", "verb": "dig"}))
        heard.append((yield {"actor": "ann", "verb": "nap"}))

    world = LiveWorld({**CONFIG, "action_defs": {**DEFS, "dig": lasting(50, interruptible=True, resume="drop")}})
    world.run(worker())
    world.advance_to(5)
    world.interrupt("process-0-0", 9, source="bell")
    world.advance_to(30)

    assert [set(one) for one in heard] == [{"interrupted", "by", "t"}, {"ended", "t"}]


def test_many_processes_can_continue_in_one_minute() -> None:
    """More than a thousand actors whose work ends at the same time do not count as a runaway trigger."""

    def worker() -> Process:
        for _ in range(2):
            yield {"actor": "ann", "verb": "nap"}

    world = LiveWorld(CONFIG)
    for _ in range(1100):
        world.run(worker())
    events = world.advance_to(30)

    assert not [event for event in events if isinstance(event, Rejection)]
    assert sum(isinstance(event, End) for event in events) == 2200


def test_two_processes_cannot_have_one_name() -> None:
    world = LiveWorld(CONFIG)

    def worker() -> Iterator[Any]:
        yield {"actor": "ann", "verb": "nap"}

    world.run(worker(), "w")  # type: ignore[arg-type]
    with pytest.raises(Refused):
        world.run(worker(), "w")  # type: ignore[arg-type]


def test_a_live_world_with_a_journal_replays() -> None:
    disk = FaultyDisk()
    world = LiveWorld(CONFIG, journal=disk)
    world.submit(does("A", 0, "saw"), does("B", 0, "saw"), {"id": "bad"})
    world.advance_to(10)
    world.interrupt("A", 9, hold_min=5)
    with pytest.raises(Refused):
        world.advance_to(3)
    world.advance_to(2000)
    world.close()

    replayed(disk)


# Failing user code


def failing(_: Any) -> Any:
    raise ValueError("no idea")


def world_with(kind: str, journal: FaultyDisk | None = None) -> LiveWorld:
    given: dict[str, Any] = {kind: failing} if kind in ("hook", "modifiers") else {}
    world = LiveWorld(CONFIG, journal=journal, **given)
    if kind == "process":

        def worker() -> Process:
            yield {"actor": "bo", "verb": "nap"}
            raise ValueError("no idea")

        world.run(worker(), "bo")
    world.submit(does("A", 5, "tell"))
    return world


WHO = {
    "hook": "The hook failing raised ValueError('no idea')",
    "modifiers": "The function of modifiers failing raised ValueError('no idea')",
    "process": "The process 'bo' raised ValueError('no idea')",
}


@pytest.mark.req("ACT-EVT-5")
@pytest.mark.parametrize("kind", WHO)
def test_an_exception_in_user_code_disables_a_world_without_a_journal(kind: str) -> None:
    world = world_with(kind)

    with pytest.raises(UserCodeFailed) as raised:
        world.advance_to(60)
    assert raised.value.message == WHO[kind]

    for call in (
        lambda: world.advance_to(60),
        lambda: world.submit(does("B", 70, "nap")),
        lambda: world.cancel("A"),
        world.state,
        lambda: world.run(iter(()), "x"),  # type: ignore[arg-type]
    ):
        with pytest.raises(WorldUnusable, match=r"is unusable.*no idea"):
            call()


@pytest.mark.parametrize("kind", WHO)
def test_with_a_journal_a_failed_command_leaves_no_trace(kind: str) -> None:
    disk = FaultyDisk()
    world = world_with(kind, disk)
    before = world.state()

    with pytest.raises(UserCodeFailed) as raised:
        world.advance_to(60)
    assert raised.value.message == WHO[kind]

    if kind == "process":  # it advanced and cannot be rewound
        with pytest.raises(WorldUnusable, match="recover it from its journal"):
            world.advance_to(60)
    else:
        assert world.state() == before
        world.advance_to(1)
    world.close()
    replayed(disk)


@pytest.mark.req("ACT-EVT-5")
def test_a_hook_that_returns_none_has_no_follow_ups() -> None:
    world = LiveWorld(CONFIG, hook=lambda _: None, modifiers=lambda _: None)
    world.submit(does("A", 0, "tell"))

    assert event_lines(world.advance_to(60)) == ["0 start A", "5 end A"]


@pytest.mark.parametrize("answer", [5, [5], {"id"}, [{"id": "B", "actor": "bo", "verb": "nap", "note": {1}}]])
def test_an_invalid_answer_names_its_function(answer: Any) -> None:
    world = LiveWorld(CONFIG, hook=lambda _: answer)
    world.submit(does("A", 0, "tell"))

    with pytest.raises(UserCodeFailed, match="The hook"):
        world.advance_to(60)


def test_user_code_cannot_call_the_world() -> None:
    worlds: list[LiveWorld] = []

    def hook(_: Any) -> list[Any]:
        worlds[0].advance_to(100)
        return []

    for journal in (None, FaultyDisk()):
        worlds[:] = [LiveWorld(CONFIG, journal=journal, hook=hook)]
        worlds[0].submit(does("A", 0, "tell"))
        with pytest.raises(UserCodeFailed, match="cannot call the world"):
            worlds[0].advance_to(60)


@pytest.mark.parametrize(
    "call",
    [
        lambda world: world.what_if({"actor": "x", "verb": "nap"}),
        lambda world: world.state(),
        lambda world: world.submit({"id": "S", "actor": "x", "verb": "nap"}),
        lambda world: world.run(iter(()), "other"),
        lambda world: world.close(),
    ],
    ids=["what_if", "state", "submit", "run", "close"],
)
@pytest.mark.parametrize("who", ["hook", "modifiers", "first step", "later step"])
def test_a_world_in_the_middle_of_a_command_is_neither_saved_nor_changed(
    who: str, call: Callable[[LiveWorld], Any]
) -> None:
    worlds: list[LiveWorld] = []

    def answer(_: Any) -> Any:
        call(worlds[0])
        return {}

    def process() -> Process:
        if who == "first step":
            answer(None)
        yield {"actor": "p", "verb": "nap"}
        answer(None)

    given: dict[str, Any] = {who: answer} if who in ("hook", "modifiers") else {}
    worlds[:] = [LiveWorld(CONFIG, **given)]
    with pytest.raises(UserCodeFailed, match="cannot call the world"):
        if not given:
            worlds[0].run(process(), "p")
        worlds[0].submit(does("A", 0, "tell"))
        worlds[0].advance_to(60)


def test_a_world_can_be_read_while_it_asks() -> None:
    worlds: list[LiveWorld] = []
    seen: list[Any] = []

    def hook(_: Any) -> None:
        world = worlds[0]
        seen.append((world.minute, world.place_of("ann"), [one.action_id for one in world.doing("bob")]))

    worlds[:] = [LiveWorld(CONFIG, hook=hook)]
    worlds[0].submit(does("A", 0, "tell"), does("B", 0, "saw", actor="bob"))
    worlds[0].advance_to(60)

    assert seen == [(5, None, ["B"])]


class Unprintable(Exception):
    """An exception whose text raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("journal", [False, True])
def test_an_exception_with_a_failing_repr_is_named_by_its_type(journal: bool) -> None:
    def hook(_: Any) -> None:
        raise Unprintable

    world = LiveWorld(CONFIG, journal=FaultyDisk() if journal else None, hook=hook)
    world.submit(does("A", 0, "tell"))

    with pytest.raises(UserCodeFailed, match=r"The hook .*hook raised Unprintable$"):
        world.advance_to(60)


def test_an_endless_hook_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "STEPS_MOST", 20)

    def hook(_: Any) -> Any:
        while True:
            yield {"actor": "x", "verb": "nap"}

    world = LiveWorld(CONFIG, hook=hook)
    world.submit(does("A", 0, "tell"))

    with pytest.raises(UserCodeFailed, match="gave more than 20 steps at once"):
        world.advance_to(60)


def test_an_observer_can_call_the_world_and_all_observers_see_events_in_order() -> None:
    heard: list[str] = []

    class Eager:
        def on_action_end(self, event: End) -> None:
            if event.action_id == "A":
                world.submit({"id": "B", "actor": "bo", "verb": "nap"})
                world.advance_to(world.minute)

    class Quiet:
        def on_action_start(self, event: Start) -> None:
            heard.append(f"start {event.action_id}")

        def on_action_end(self, event: End) -> None:
            heard.append(f"end {event.action_id}")

    world = LiveWorld(CONFIG)
    world.observe(Eager())
    world.observe(Quiet())
    world.submit(does("A", 0, "tell"), does("C", 0, "nap"))
    world.advance_to(5)

    assert heard == ["start A", "start C", "end A", "start B"]
    assert not world.trouble


def test_results_of_the_first_step_of_a_process_are_in_the_next_events() -> None:
    world = LiveWorld(CONFIG)
    world.submit(does("bo-0", 0, "nap"))

    def clumsy() -> Process:
        yield {"id": "bo-0", "actor": "bo", "verb": "nap"}

    world.run(clumsy(), "bo")

    (rejection,) = [event for event in world.advance_to(5) if isinstance(event, Rejection)]
    assert (rejection.action_id, rejection.code) == ("bo-0", "DuplicateActionId")


def test_a_first_step_that_raises_starts_nothing() -> None:
    def broken() -> Process:
        raise ValueError("no idea")
        yield {}

    world = LiveWorld(CONFIG)
    with pytest.raises(UserCodeFailed, match="'bo' raised"):
        world.run(broken(), "bo")

    world.run(iter(()), "bo")  # type: ignore[arg-type]
    assert event_lines(world.advance_to(5)) == []


@pytest.mark.req("ACT-USE-5")
def test_observers_receive_rejections_diagnostics_and_epochs() -> None:
    heard: list[str] = []

    class Observer:
        def on_rejection(self, event: Rejection) -> None:
            heard.append(f"{event.code} {event.action_id}")

        def on_diagnostic(self, event: Diagnostic) -> None:
            heard.append(f"{event.code} {event.action_id}")

        def on_epoch(self, event: EpochBegan) -> None:
            heard.append(f"epoch {event.epoch}")

    world = LiveWorld(CONFIG)
    world.observe(Observer())
    world.submit({"id": "bad"})
    world.cancel("nobody", t=7)
    world.advance_to(1441)

    assert heard == ["InvalidAction bad", "NotCancellable nobody", "epoch 1"]
