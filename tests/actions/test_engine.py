"""The engine satisfies the contract of all engines, and gives the same bytes every time."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from pendula.actions import Advance, Instance, Request, Submit, World
from pendula.actions.runs.batch import config_of
from pendula.kernel.canonical import Json, encode
from pendula.testing import engine_contract
from tests.actions.scenarios import HORIZON, SEEDS, Hook, commands_of, engine_run, scenario, unshrunk
from tests.actions.worlds import EPOCH, does, lasting

CONFIG: Any = {
    "epoch": EPOCH,
    "action_defs": {
        "saw": lasting(30, "shop", interruptible=True, resources=[{"name": "wood", "amount": "0.5"}]),
        "tell": lasting(5, "radio", may_trigger_event=True),
        "alarm": lasting(4, "shop", "radio", preempts=True, priority=5, interrupts="*"),
        "dash": lasting(5, "shop", wait="fail"),
        "rest": lasting(300, interruptible=True, resume="manual"),
    },
    "resources": {"wood": "2.50"},
    "skills": {"ann": {"saw": 2}},
    "world_state": {"modifiers": [{"name": "rain", "factor": "1.5", "verbs": ["rest"]}]},
    "options": {"pc": "pia", "follow_ups": True},
}
COMMANDS: tuple[Any, ...] = (
    Submit((does("A", 0, "saw"), does("B", 1, "saw"), does("C", 1, "tell", knowledge=["k"], mood="glad"), {"id": "X"})),
    Submit((does("D", 2, "dash"), does("E", 10, "alarm"), does("R", 3, "rest"), does("F", 1500, "saw"))),
    Request(
        ({"t": 20, "target": "R", "priority": 9}, {"t": "x"}), ({"t": 700, "resume": "R"}, {"t": 25, "cancel": "B"})
    ),
    Advance(2),
    Advance(10),
    Advance(5),
    Submit((does("late", 4, "tell"), does("W", 40, "saw"), does("V", 41, "saw"), does("U", 42, "saw"))),
    Request(({"t": 12, "target": "A", "priority": 9, "hold_min": 50},)),
    Advance(60),
    Advance(1440),
    Submit((does("G", 1440, "tell", knowledge=[{"id": "k", "reveals": [0]}]),)),
    Advance(1441),
    Advance(5000),
)
QUESTIONS: tuple[Json, ...] = ({"action": "A"}, {"action": "B"}, {"action": "F"}, {"lock": "shop"}, {"action": "?"}, 5)


@pytest.mark.req("ACT-EVT-3")
def test_the_world_is_an_engine() -> None:
    follow = {
        "C": [{"id": "C2", "actor": "bob", "verb": "tell"}],
        "late": [{"id": "L2", "actor": "bob", "verb": "fly"}],
    }

    engine_contract(World, CONFIG, COMMANDS, QUESTIONS, outside=Hook(follow))


def test_random_worlds_satisfy_the_contract_too() -> None:
    case = scenario(77, 2)
    commands = [*commands_of(case, HORIZON // 2), Advance(1)]

    engine_contract(World, config_of(case.document), commands, [{"action": "A0"}], outside=Hook(case.follow))


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


@pytest.mark.req("ACT-EVT-3")
@unshrunk
@given(SEEDS)
def test_two_runs_give_the_same_bytes(seed: int) -> None:
    case = scenario(seed)

    assert encode(engine_run(case).as_json()) == encode(engine_run(case).as_json())


@pytest.mark.req("ACT-TIME-3")
@pytest.mark.parametrize("minute", [1.5, 1.0, True, "1", Decimal(1)])
def test_a_minute_is_a_whole_number(minute: Any) -> None:
    world = World.create(CONFIG)

    refused = world.apply(Advance(minute))
    (rejection,) = world.apply(Submit((Instance("A", "ann", "nap", t=minute),))).events
    (diagnostic,) = world.apply(Request(commands=({"t": minute, "cancel": "A"},))).events

    assert refused.refusal is not None
    assert refused.refusal.code == "not_a_minute"
    assert world.now() == 0
    assert [rejection.code, diagnostic.code] == ["InvalidAction", "InvalidCommand"]  # type: ignore[union-attr]
