"""State and carry: actions across midnight, restored worlds, refusals."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.actions import Advance, InvalidCarryOver, Request, Submit, World
from pendula.actions.messages import Event
from pendula.actions.runs.batch import config_of
from pendula.kernel.canonical import decode, digest, encode
from tests.actions.scenarios import HORIZON, SEEDS, Hook, commands_of, engine_run, epoch_of, fresh, scenario, unshrunk
from tests.actions.worlds import EPOCH, NEXT_EPOCH, day, does, expected_lines, lasting, lines, of, outcome
from tests.campaigns import campaign_after

DEFS = {
    "watch": lasting(120, "gate", interruptible=True, resources=[{"name": "oil", "amount": "0.5"}]),
    "open": lasting(30, "gate"),
}


def evening(**more: Any) -> dict[str, Any]:
    result = outcome(DEFS, does("V", 1400, "watch"), does("X", 1410, "open"), resources={"oil": 2}, **more)
    carry: Any = decode(encode(result.as_json()["carry"]))
    assert isinstance(carry, dict)
    return carry


def sealed(carry: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A changed carry with a matching digest."""
    body = {**{name: value for name, value in carry.items() if name != "digest"}, **changes}
    return {**body, "digest": digest(body)}


@pytest.mark.req("ACT-CARRY-1")
def test_the_carry_records_actions_running_across_midnight() -> None:
    (record,) = evening()["running"]

    definition = record.pop("definition")
    assert record == {
        "action_id": "V",
        "segment": 0,
        "seq": 0,
        "remaining": 80,
        "locks": ["gate"],
        "reservations": [{"name": "oil", "amount": record["reservations"][0]["amount"]}],
        "d_eff": 120,
    }
    assert str(record["reservations"][0]["amount"]) == "0.5"
    assert definition["base_duration_min"] == 120


@pytest.mark.req("ACT-CARRY-1", "ACT-CARRY-2", "ACT-CARRY-4")
def test_a_carry_goes_through_json_without_loss() -> None:
    result = day(DEFS, does("N", 0, "open"), epoch=NEXT_EPOCH, carry=evening(), resources={"oil": 99})

    assert lines(result) == expected_lines("80 end V, 80 start X, 110 end X, 110 start N, 140 end N")
    assert result.as_json()["carried_in"] == [{"action_id": "V", "remaining": 80}]
    assert of(result, "start", "X").meta["waited"] == 110
    assert of(result, "end", "V").seq == 1
    assert str(result.resources["oil"]["available"]) == "1.5"


@pytest.mark.req("ACT-CARRY-1")
def test_a_running_action_keeps_the_definition_of_its_admission() -> None:
    changed = {**DEFS, "watch": lasting(1, "gate", interruptible=False)}

    result = day(
        changed,
        does("W", 200, "watch"),
        epoch=NEXT_EPOCH,
        carry=evening(),
        interrupts=[{"t": 5, "target": "V", "priority": 1}],
    )

    assert lines(result)[:3] == expected_lines("5 interrupt V, 5 start V, 80 end V")
    assert lines(result)[-2:] == expected_lines("200 start W, 201 end W")


@pytest.mark.req("ACT-CARRY-3")
def test_an_action_can_span_several_epochs() -> None:
    result = outcome({"sleep": lasting(4000)}, does("A", 100, "sleep"), epochs=4)

    assert [lines(epoch) for epoch in result.epochs] == [["100 start A"], [], ["1220 end A"], []]
    assert [epoch.as_json()["carried_in"] for epoch in result.epochs[1:3]] == [
        [{"action_id": "A", "remaining": 2660}],
        [{"action_id": "A", "remaining": 1220}],
    ]


@pytest.mark.req("ACT-CARRY-2")
def test_holds_interrupts_and_suspensions_are_carried() -> None:
    defs = {
        "soft": lasting(30, interruptible=True),
        "manual": lasting(30, interruptible=True, resume="manual"),
    }
    first = outcome(
        defs,
        does("H", 1420, "soft"),
        does("M", 1420, "manual"),
        does("P", 1430, "soft"),
        interrupts=[
            {"t": 1430, "target": "H", "priority": 1, "hold_min": 40},
            {"t": 1430, "target": "M", "priority": 1},
            {"t": 1450, "target": "P", "priority": 1},
        ],
        commands=[{"t": 1500, "resume": "M"}],
    )

    second = day(defs, epoch=NEXT_EPOCH, carry=decode(encode(first.as_json()["carry"])))

    assert lines(second) == expected_lines(
        "10 interrupt P, 10 start P, 20 end P, 30 start H, 50 end H, 60 start M, 80 end M"
    )


def test_knowledge_ages_across_a_carry() -> None:
    """An item of 23:20 with 100 minutes to live expires at 01:01 the next day, however the days are run."""
    world_state = {"knowledge": [{"id": "k", "scope": "private", "freshness": 1400, "ttl_min": 100, "source": "zoe"}]}
    defs = {"tell": lasting(1, may_trigger_event=True)}
    tell = [
        does("A", 1499, "tell", actor="bob", knowledge=["k"]),
        does("B", 1500, "tell", actor="bob", knowledge=["k"]),
    ]
    options = {"pc": "pia"}

    whole = outcome(defs, *tell, epochs=2, world_state=world_state, options=options)
    first = outcome(defs, *tell, world_state=world_state, options=options)
    second = outcome(defs, epoch=NEXT_EPOCH, carry=first.carry, options=options)

    assert [event.pc for event in whole.epochs[1].events if "knowledge" in event.meta] == [True, False, True]
    assert [event.meta.get("reason") for event in whole.epochs[1].events][-1] == "expired"
    assert second.epochs[0].events == whole.epochs[1].events


@pytest.mark.req("ACT-CARRY-4")
@pytest.mark.parametrize(
    "carry",
    [
        [],
        "carry",
        5,
        False,
        {},
        {"format": 1},
        {"format": 2},
        {"format": 1, "digest": "0" * 64, "epoch": 1, "start_at": "2025-07-02T00:00:00", "state": {}, "running": []},
        {"format": 1, "digest": 0.5},
        {"format": 1, "digest": None, "state": {1: 2}},
    ],
    ids=range(10),
)
def test_an_invalid_carry_is_refused_before_any_event(carry: Any) -> None:
    with pytest.raises(InvalidCarryOver) as refused:
        day(DEFS, does("N", 0, "open"), epoch=NEXT_EPOCH, carry=carry)

    assert refused.value.exit_code == 1


@pytest.mark.req("ACT-CARRY-4")
@pytest.mark.parametrize("part", ["epoch", "start_at", "running", "state", "digest", "format"])
def test_an_edited_carry_is_refused(part: str) -> None:
    carry = evening()
    for edited in ({**carry, part: None}, {name: value for name, value in carry.items() if name != part}):
        with pytest.raises(InvalidCarryOver):
            day(DEFS, epoch=NEXT_EPOCH, carry=edited)


@pytest.mark.req("ACT-CARRY-4")
def test_a_single_changed_number_is_detected() -> None:
    carry = evening()
    state = json.loads(carry["state"])
    state["actions"][0][4] += 1
    carry["state"] = json.dumps(state)

    with pytest.raises(InvalidCarryOver):
        day(DEFS, epoch=NEXT_EPOCH, carry=carry)


@pytest.mark.req("ACT-CARRY-4")
@pytest.mark.parametrize(
    "epoch",
    [
        EPOCH,
        {**NEXT_EPOCH, "index": 2},
        {"index": 1, "start_at": "2025-07-02T00:00:00+00:00", "end_at": "2025-07-03T00:00:00+00:00"},
        {"index": 1, "start_at": "2025-07-03T00:00:00", "end_at": "2025-07-04T00:00:00"},
    ],
    ids=["same", "later index", "other kind of time", "other day"],
)
def test_the_carry_of_another_day_is_refused(epoch: dict[str, Any]) -> None:
    with pytest.raises(InvalidCarryOver):
        day(DEFS, epoch=epoch, carry=evening())


def broken_states() -> list[Any]:
    carry = evening()
    state: Any = decode(carry["state"].encode())
    running, waiting = state["actions"]

    def changed(action: list[Any], place: int, value: Any) -> list[Any]:
        return [*action[:place], value, *action[place + 1 :]]

    return [
        {},
        None,
        {**state, "minute": "now"},
        {**state, "actions": [running, changed(waiting, 6, 1)]},  # two hold the gate
        {**state, "actions": [changed(running, 1, 7), waiting]},  # no such definition
        {**state, "actions": [changed(running, 6, 9), waiting]},  # no such stage
        {**state, "actions": [running, changed(waiting, 2, 0)]},  # two have one number
        {**state, "actions": [running, running]},  # the same twice
        {**state, "actions": [changed(running, 8, -5), waiting]},  # should have ended before
        {**state, "actions": [changed(running, 8, 10**30), waiting]},  # never ends
        {**state, "minute": 17},  # a carry begins with its epoch
        {**state, "minute": -17},
        {**state, "next_admission": 0},  # numbers would be used twice
        {**state, "resources": {"oil": {**state["resources"]["oil"], "available": 77}}},
        {**state, "submitted": [[0, 3, {"id": "Q", "actor": "ann", "verb": "open"}]]},  # no such rank
    ]


@pytest.mark.req("ACT-CARRY-4")
@pytest.mark.parametrize("place", range(15))
def test_a_contradictory_carry_is_refused_although_its_digest_matches(place: int) -> None:
    with pytest.raises(InvalidCarryOver):
        day(DEFS, epoch=NEXT_EPOCH, carry=sealed(evening(), state=encode(broken_states()[place]).decode()))


def test_a_restored_state_is_complete() -> None:
    config = {
        "epoch": EPOCH,
        "action_defs": {**DEFS, "walk": lasting(10, "gate")},
        "resources": {"oil": "0.50"},
        "world_state": {"modifiers": [{"name": "rain", "factor": "1.5"}]},
    }
    world = World.create(config)
    deep = {"share": decode(b"0.25"), "text": "é\u0000", "huge": 10**40}
    world.apply(Submit((does("V", 0, "watch", params=deep), does("W", 1, "walk", hat=decode(b"0.5")))))
    world.apply(Submit((does("F", 3000, "walk", params=deep), does("Z", 5, "watch"))))
    world.apply(Request(({"t": 9, "target": "V", "priority": 3, "hold_min": 700},), ({"t": 99, "cancel": "W"},)))
    for minute in (1, 5, 9, 50, 1440):
        world.apply(Advance(minute))
        again = World.from_state(config, world.state())

        assert again.state() == world.state()
    assert World.from_state(config, world.state()).carry() == world.carry()


def test_a_rejection_has_the_same_text_after_a_restore() -> None:
    config = {"epoch": EPOCH, "action_defs": DEFS, "resources": {"oil": "0.50"}}
    world = World.create(config)
    world.apply(Submit((does("V", 0, "watch"), does("W", 10, "watch"))))
    world.apply(Advance(5))

    restored = World.from_state(config, world.state())

    assert encode(restored.apply(Advance(20))) == encode(world.apply(Advance(20)))


def test_a_restored_world_saves_the_same_bytes_later_on() -> None:
    config = {"epoch": EPOCH, "action_defs": DEFS, "resources": {"oil": 5}}
    world = World.create(config)
    world.apply(Submit((does("V", 0, "watch"), does("W", 10, "watch"))))
    world.apply(Advance(5))

    restored = World.from_state(config, world.state())
    for one in (world, restored):
        one.apply(Advance(20))

    assert restored.state() == world.state()


@pytest.mark.req("ACT-CARRY-2", "ACT-CARRY-3", "ACT-CARRY-4")
@pytest.mark.parametrize("epochs", campaign_after(2, [2, 3, 4, 5]))
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
        carry = json.loads(json.dumps(result["carry"]))  # as an ordinary JSON library stores it

    for part in ("epoch", "events", "rejections", "diagnostics", "locks", "resources", "carried_in", "places"):
        assert encode([one[part] for one in days]) == encode([epoch[part] for epoch in whole["epochs"]]), part


@unshrunk
@given(SEEDS, st.integers(5, 25))
def test_a_world_restored_after_every_command_continues_unchanged(seed: int, step: int) -> None:
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
def test_a_world_restored_at_every_event_continues_unchanged(seed: int) -> None:
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
