"""The same history run another way gives the same: in epochs, from file to file, shuffled, saved and restored."""

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pendula.actions import Advance, EpochBegan, Start, Submit, World, run_document
from pendula.actions.events import WORLD_EVENTS, Event
from pendula.actions.runs import config_of
from pendula.kernel.canonical import decode, encode
from tests.actions.scenarios import HORIZON, START, Hook, Scenario, commands_of, engine_run, epoch_of, fresh, scenario
from tests.actions.worlds import day, does, lasting

SEEDS = st.integers(0, 10**9)
# A smaller seed is no simpler world: looking for one only takes time.
unshrunk = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])


def shifted(epochs: list[list[dict[str, Any]]], horizon: int) -> list[tuple[Any, ...]]:
    """Events of epochs in a row as those of one long epoch, in the global order."""
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


@pytest.mark.req("ACT-CARRY-2", "ACT-CARRY-3", "ACT-CARRY-4")
@pytest.mark.parametrize("epochs", [2, 3, 4, 5])
@unshrunk
@given(SEEDS)
def test_carried_from_file_to_file_equals_one_run(epochs: int, seed: int) -> None:
    case = scenario(seed, epochs, late=False)
    # Minutes and modifiers of a file count from its own first epoch; what depends on them stays in the first.
    case = case.with_(world_state={})
    whole = engine_run(case).as_json()

    carry: Any = None
    days = []
    for number in range(epochs):
        first = number == 0
        file = case.with_(
            epoch=epoch_of(number),
            epochs=1,
            carry=carry,
            actions_submitted=case.document["actions_submitted"] if first else [],
            interrupts=case.document["interrupts"] if first else [],
            commands=case.document["commands"] if first else [],
        )
        result = engine_run(file).as_json()
        days += result["epochs"]
        carry = decode(encode(result["carry"]))

    for part in ("epoch", "events", "rejections", "diagnostics", "locks", "resources", "carried_in"):
        assert encode([one[part] for one in days]) == encode([one[part] for one in whole["epochs"]]), part


@pytest.mark.req("ACT-CARRY-2")
@unshrunk
@given(SEEDS)
def test_submitting_each_day_equals_submitting_all_at_once(seed: int) -> None:
    """Numbers of admission follow the minute, so it does not matter on which day a wish was heard of."""
    case = scenario(seed, 3, late=False)
    distinct = {one["id"]: one for one in case.document["actions_submitted"]}
    by_day: list[list[dict[str, Any]]] = [[], [], []]
    for one in distinct.values():
        by_day[min(2, begun_minute(one) // HORIZON)].append(one)
    all_at_once = engine_run(case.with_(actions_submitted=[one for day in by_day for one in day]))

    world = fresh(case)
    seen: list[Event] = []
    for number, wishes in enumerate(by_day):
        world.apply(Submit(tuple(wishes)))
        if number == 0:
            world.apply(commands_of(case)[1])
        seen += world.apply(Advance((number + 1) * HORIZON)).events

    assert [event for event in seen if isinstance(event, WORLD_EVENTS)] == [
        event for epoch in all_at_once.epochs for event in epoch.events
    ]


def minute_of(instance: dict[str, Any]) -> int:
    """The minute from which it may start."""
    if "t" in instance:
        return int(instance["t"])
    return -((START - datetime.fromisoformat(instance["submitted_at"])) // timedelta(minutes=1))


def begun_minute(instance: dict[str, Any]) -> int:
    """The minute in which it was submitted; on the day before, half a minute before midnight is not late."""
    if "t" in instance:
        return int(instance["t"])
    return (datetime.fromisoformat(instance["submitted_at"]) - START) // timedelta(minutes=1)


@pytest.mark.req("ACT-EVT-2")
@unshrunk
@given(SEEDS)
def test_heap_and_buckets_give_the_same_bytes(seed: int) -> None:
    case = scenario(seed)
    results = [
        encode(engine_run(case.with_(options={**case.document["options"], "queue": queue})).as_json())
        for queue in ("heap", "buckets")
    ]

    assert results[0] == results[1]


@pytest.mark.req("ACT-EVT-3", "ACT-DATA-6")
@unshrunk
@given(SEEDS, st.randoms(use_true_random=False))
def test_only_the_order_of_equal_times_matters(seed: int, luck: Random) -> None:
    case = scenario(seed, late=False)
    distinct = list({one["id"]: one for one in case.document["actions_submitted"]}.values())
    case = case.with_(actions_submitted=distinct)
    # Shuffled, but with those of one minute in their order: a stable sort by anything that respects minutes.
    minutes = sorted({minute_of(one) for one in distinct})
    luck.shuffle(minutes)
    mixed = [one for minute in minutes for one in distinct if minute_of(one) == minute]

    first, second = (encode(engine_run(case.with_(actions_submitted=order)).as_json()) for order in (distinct, mixed))

    assert first == second


@pytest.mark.req("ACT-DATA-6")
def test_equal_times_keep_the_order_of_the_input() -> None:
    defs = {"x": lasting(5, "l")}
    names = ["C", "A", "B"]

    result = day(defs, *(does(name, 10, "x") for name in names))

    assert [event.action_id for event in result.events if isinstance(event, Start)] == names


@pytest.mark.req("ACT-EVT-3")
@unshrunk
@given(SEEDS)
def test_two_runs_give_the_same_bytes(seed: int) -> None:
    case = scenario(seed)

    assert encode(engine_run(case).as_json()) == encode(engine_run(case).as_json())


@unshrunk
@given(SEEDS, st.integers(5, 25))
def test_a_world_restored_after_every_command_goes_on_as_if_nothing_was(seed: int, step: int) -> None:
    case = scenario(seed)
    config = config_of(case.document)
    straight, broken = fresh(case), fresh(case)
    for command in commands_of(case, step):
        state = broken.state()
        broken = World.from_state(config, state)
        broken.outside = Hook(case.follow)
        assert broken.state() == state
        assert broken.apply(command) == straight.apply(command)
        assert broken.state() == straight.state()


@unshrunk
@given(SEEDS)
def test_a_world_restored_at_every_event_goes_on_as_if_nothing_was(seed: int) -> None:
    case = scenario(seed)
    config = config_of(case.document)
    until = case.document["epochs"] * HORIZON
    whole = fresh(case)
    expected_events = [event for command in commands_of(case) for event in whole.apply(command).events]

    world = fresh(case)
    events: list[Event] = []
    for command in commands_of(case)[:2]:
        events += world.apply(command).events
    while (due := world.next_due()) is not None and due <= until:
        events += world.apply(Advance(due)).events
        world = World.from_state(config, world.state())
        world.outside = Hook(case.follow)
        assert world.next_due() != due, "a restored world says that its present minute is not over"
    events += world.apply(Advance(until)).events

    assert events == expected_events
    assert world.state() == whole.state()


@unshrunk
@given(SEEDS)
def test_going_from_event_to_event_comes_to_an_end(seed: int) -> None:
    """`next_due` names a minute at which something happens, so whoever follows it gets on."""
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
def test_an_empty_epoch_asks_nothing_of_the_queue() -> None:
    world = World.create({"epoch": epoch_of(0, 1440), "action_defs": {}})

    outcome = world.apply(Advance(1440 * 10_000))

    assert len(outcome.events) == 9_999
    assert all(isinstance(event, EpochBegan) for event in outcome.events)
    assert len(world.current.queue) == 0


def test_the_whole_document_through_bytes_gives_the_same() -> None:
    case = scenario(11)
    case = Scenario({**case.document, "options": {**case.document["options"], "follow_ups": False}}, {})
    through_bytes: Any = decode(encode(case.document))

    assert encode(run_document(case.document).as_json()) == encode(run_document(through_bytes).as_json())
