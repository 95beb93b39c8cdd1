"""Limits, and the growth of cost."""

import sys
from typing import Any

import pytest

from pendula.actions import (
    Advance,
    Diagnostic,
    Instance,
    InvalidSetting,
    LiveWorld,
    Rejection,
    Submit,
    World,
    any_of,
    minute,
)
from pendula.actions.messages import WORLD_EVENTS
from pendula.actions.minute import turns
from pendula.actions.rules import locks, validation
from pendula.kernel.limits import Limit
from tests.actions.worlds import EPOCH, codes, day, does, lasting, line, lines, outcome


def lines_of(events: Any) -> list[str]:
    return [line(event) for event in events if isinstance(event, WORLD_EVENTS)]


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set a limit of the scheduler to a small number in every module that uses it."""

    def small(name: str, most: int) -> None:
        old: Limit = getattr(validation, name)
        new = Limit(old.name, most, old.unit, old.code, old.sentence)
        for path, module in list(sys.modules.items()):
            if path.startswith("pendula.actions") and hasattr(module, name):
                monkeypatch.setattr(module, name, new)

    return small


@pytest.mark.req("ACT-PERF-3")
def test_the_limits_of_the_scheduler() -> None:
    assert [
        limit.default
        for limit in (
            validation.INSTANCES,
            validation.LOCKS,
            validation.LOCKS_EACH,
            validation.RESOURCES_EACH,
            validation.FOLLOW_UPS,
        )
    ] == [1_000_000, 65_536, 64, 32, 1000]


@pytest.mark.req("ACT-PERF-3")
def test_the_limit_of_instances_holds_for_each_epoch(limited: Any) -> None:
    limited("INSTANCES", 3)
    defs = {"x": lasting(5, resources=[{"name": "parts", "amount": 1}])}

    first, second = outcome(
        defs,
        *(does(f"A{n}", n, "x") for n in range(5)),
        does("bad", 0, "fly"),
        *(does(f"B{n}", 1500 + n, "x") for n in range(3)),
        epochs=2,
        resources={"parts": 9},
    ).epochs

    assert codes(first) == {"bad": "UnknownVerb", "A3": "LimitExceeded", "A4": "LimitExceeded"}
    assert first.resources["parts"]["reserved"] == 0
    assert codes(second) == {}


@pytest.mark.req("ACT-PERF-3")
def test_a_lock_above_the_limit_is_refused_and_the_others_continue(limited: Any) -> None:
    limited("LOCKS", 2)
    defs = {**{f"v{n}": lasting(5, f"l{n}") for n in range(4)}, "free": lasting(5)}

    result = day(defs, *(does(f"A{n}", 0, f"v{n}") for n in range(4)), does("B", 50, "v0"), does("C", 60, "free"))

    assert codes(result) == {"A2": "LimitExceeded", "A3": "LimitExceeded"}
    assert sorted(result.locks) == ["l0", "l1"]


@pytest.mark.req("ACT-PERF-3")
def test_an_instance_has_at_most_64_locks_and_32_resources() -> None:
    defs = {
        "most": lasting(
            5, *(f"l{n}" for n in range(64)), resources=[{"name": f"r{n}", "amount": 0} for n in range(32)]
        ),
        "locks": lasting(5, *(f"l{n}" for n in range(65))),
        "resources": lasting(5, resources=[{"name": f"r{n}", "amount": 0} for n in range(33)]),
    }

    result = day(defs, does("A", 0, "most"), does("B", 10, "locks"), does("C", 10, "resources"))

    assert codes(result) == {"B": "LimitExceeded", "C": "LimitExceeded"}
    assert lines(result) == ["0 start A", "5 end A"]


@pytest.mark.req("ACT-PERF-3")
def test_a_hook_that_returns_ever_more_is_stopped(limited: Any) -> None:
    limited("INSTANCES", 100)

    def hook(question: Any) -> list[dict[str, Any]]:
        name = question["action_id"]
        return [{"id": f"{name}{n}", "actor": "ann", "verb": "tell"} for n in range(2)]

    world = LiveWorld(
        {"epoch": EPOCH, "action_defs": {"tell": lasting(1, may_trigger_event=True), "nap": lasting(30)}}, hook=hook
    )
    world.submit(does("A", 0, "tell"), does("B", 0, "nap"))
    events = world.advance_to(30)

    rejected = [event for event in events if isinstance(event, Rejection)]
    assert {str(event.code) for event in rejected} == {"LimitExceeded"}
    assert len(rejected) <= 100
    assert lines_of(events)[-1] == "30 end B"


@pytest.mark.req("ACT-PERF-3")
@pytest.mark.parametrize("most", [1, 3])
def test_chained_follow_ups_within_a_minute_are_bounded(limited: Any, most: int) -> None:
    limited("FOLLOW_UPS", most)

    def stubborn() -> Any:
        yield {"id": "N", "actor": "ann", "verb": "nap"}
        for number in range(most + 1):
            yield {"id": f"S{number}", "actor": "ann", "verb": "dash"}

    # After the nap each is rejected when its turn comes, and the process answers with the next one in that minute.
    defs = {"dash": lasting(5, "hall", wait="fail"), "meet": lasting(60, "hall"), "nap": lasting(10)}
    world = LiveWorld({"epoch": EPOCH, "action_defs": defs})
    world.submit(does("M", 0, "meet"))
    world.run(stubborn())
    events = world.advance_to(30)

    found = {event.action_id: str(event.code) for event in events if isinstance(event, Rejection)}
    taken = {f"S{number}": "CannotAcquireLock" for number in range(most)}
    assert found == {**taken, f"S{most}": "LimitExceeded"}


@pytest.mark.req("ACT-PERF-3")
@pytest.mark.parametrize("most", [1, 3])
def test_a_process_that_waits_for_true_conditions_is_notified_up_to_the_limit(limited: Any, most: int) -> None:
    limited("FOLLOW_UPS", most)
    heard: list[int] = []

    def impatient() -> Any:
        while True:
            outcome = yield any_of(minute(0))
            heard.append(outcome["t"])

    world = LiveWorld({"epoch": EPOCH, "action_defs": {}})
    world.run(impatient())
    events = world.advance_to(30)

    assert heard == [0] * most
    assert [str(event.code) for event in events if isinstance(event, Diagnostic)] == ["LimitExceeded"]


@pytest.mark.req("ACT-PERF-3")
@pytest.mark.parametrize("most", [1, 3])
def test_invalid_answers_are_reported_to_the_process_up_to_the_limit(limited: Any, most: int) -> None:
    limited("FOLLOW_UPS", most)

    def repeating() -> Any:
        while True:
            yield {"id": "N", "actor": "ann", "verb": "nap"}

    world = LiveWorld({"epoch": EPOCH, "action_defs": {"nap": lasting(10)}})
    world.run(repeating())
    events = world.advance_to(30)

    found = [str(event.code) for event in events if isinstance(event, Rejection)]
    assert found == ["DuplicateActionId"] * most + ["LimitExceeded"]


@pytest.mark.req("ACT-PERF-3")
def test_a_process_that_repeats_an_invalid_answer_is_stopped_in_its_minute() -> None:
    def stubborn() -> Any:
        while True:
            yield {"actor": "ann", "verb": "fly"}

    world = LiveWorld({"epoch": EPOCH, "action_defs": {"nap": lasting(30)}})
    world.submit(does("B", 0, "nap"))
    world.run(stubborn())
    events = world.advance_to(30)

    rejected = [event for event in events if isinstance(event, Rejection)]
    assert len(rejected) <= 1002
    assert str(rejected[-1].code) == "LimitExceeded"
    assert [event for event in events if getattr(event, "action_id", None) == "B"]


@pytest.mark.req("ACT-PERF-1")
def test_start_checks_are_proportional_to_events(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    real = locks.can_start

    def counted(action: Any) -> bool:
        nonlocal looked
        looked += 1
        return real(action)

    monkeypatch.setattr(turns, "can_start", counted)
    costs = []
    for size in (200, 400, 800):
        looked = 0
        # All wait for the same two locks, the worst case for a scan of all waiters.
        day(
            {"x": lasting(1, "a", "b"), "y": lasting(1, "a")}, *(does(f"A{n}", n % 7, "xy"[n % 2]) for n in range(size))
        )
        costs.append(looked / size)

    assert 0 < max(costs) <= 4
    assert costs[-1] <= costs[0] * 1.1


@pytest.mark.req("ACT-PERF-1")
@pytest.mark.parametrize("queue", ["heap", "buckets"])
def test_finished_actions_leave_nothing_in_memory(queue: str) -> None:
    world = World.create(
        {"epoch": EPOCH, "action_defs": {"x": lasting(2, "a", interruptible=True)}, "options": {"queue": queue}}
    )
    world.apply(Submit(tuple(does(f"A{n}", n, "x") for n in range(500))))
    world.apply(Advance(1440))

    assert len(world.current.queue) == 0
    assert not world.current.actions
    assert not any(lock.waiting() for lock in world.current.locks.by_name.values())
    assert not any(len((*lock.line, *lock.ahead)) > 1 for lock in world.current.locks.by_name.values())


@pytest.mark.req("ACT-PERF-1")
def test_rejected_instances_leave_nothing_but_their_ids() -> None:
    config = {"epoch": EPOCH, "action_defs": {}}
    world, other = World.create(config), World.create(config)
    world.apply(Submit(tuple(does(f"A{n}", 0, "fly", note="x" * 100) for n in range(10))))
    other.apply(Submit(tuple(does(f"A{n}", 0, "fly") for n in range(10))))
    for one in (world, other):
        one.apply(Advance(10))

    assert len(world.state()) <= len(other.state()) + 20


@pytest.mark.req("ACT-PERF-3")
def test_limits_are_options_of_a_run() -> None:
    actions = [does(f"A{n}", n, "x") for n in range(5)]

    few = day({"x": lasting(1)}, *actions, options={"limits": {"instances": 3}})
    narrow = day({"x": lasting(1, "a", "b")}, *actions, options={"limits": {"locks_each": 1}})

    assert [(rejection.action_id, str(rejection.code)) for rejection in few.rejections] == [
        ("A3", "LimitExceeded"),
        ("A4", "LimitExceeded"),
    ]
    assert {str(rejection.code) for rejection in narrow.rejections} == {"LimitExceeded"}
    with pytest.raises(InvalidSetting):
        day({"x": lasting(1)}, *actions, options={"limits": {"instances": 0}})
    with pytest.raises(InvalidSetting):
        day({"x": lasting(1)}, *actions, options={"limits": {"instancess": 3}})


@pytest.mark.req("ACT-PERF-3")
def test_instances_built_in_code_are_counted_and_checked_in_an_answer_too() -> None:
    class Generous:
        def ask(self, name: str, question: Any) -> Any:
            no_json: Any = float("nan")
            return [Instance(f"F{n}", "ann", "nap", params=no_json if n == 0 else None) for n in range(1500)]

    world = World.create({"epoch": EPOCH, "action_defs": {"nap": lasting(30)}})
    world.outside = Generous()
    world.apply(Submit((Instance("A", "ann", "nap", t=0, process="p"),)))
    rejected = [event for event in world.apply(Advance(31)).events if isinstance(event, Rejection)]

    assert len(rejected) == 501
    assert {str(one.code) for one in rejected} == {"InvalidAction", "LimitExceeded"}
    assert len(world.current.actions) == 999


DIG = {"dig": lasting(10, "pit")}


@pytest.mark.req("ACT-LOCK-7", "ACT-PERF-3")
def test_the_lock_of_an_actor_counts_as_a_lock() -> None:
    submissions = [does(f"A{n}", n, "dig", actor=f"a{n}") for n in range(3)]

    few = day(DIG, *submissions, options={"actor_exclusive": True, "limits": {"locks": 3}})
    narrow = day(DIG, *submissions, options={"actor_exclusive": True, "limits": {"locks_each": 1}})
    free = day({"dig": lasting(5)}, *submissions, options={"actor_exclusive": True, "limits": {"locks_each": 1}})

    assert codes(few) == {"A2": "LimitExceeded"}
    assert sorted(few.locks) == ["actor:a0", "actor:a1", "pit"]
    assert codes(narrow) == dict.fromkeys(("A0", "A1", "A2"), "LimitExceeded")
    assert codes(free) == {}


@pytest.mark.req("ACT-LOCK-7", "ACT-RES-2")
def test_an_instance_rejected_for_the_lock_of_its_actor_reserves_nothing() -> None:
    defs = {"dig": lasting(5, resources=[{"name": "parts", "amount": 1}])}

    none = day(
        {**defs, "nap": lasting(5)}, does("N", 0, "nap", actor="bo"), does("A", 0, "dig"),
        options={"actor_exclusive": True, "limits": {"locks": 1}}, resources={"parts": 1},
    )  # fmt: skip

    assert codes(none) == {"A": "LimitExceeded"}
    assert none.resources == {"parts": {"available": 1, "reserved": 0}}
