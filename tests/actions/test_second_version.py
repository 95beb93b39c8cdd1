"""What the second version decides otherwise than the first, each with what the first did."""

from decimal import Decimal
from typing import Any

import pytest

from pendula.actions import Advance, Instance, LiveWorld, Rejection, Request, Submit, World
from pendula.actions.events import WORLD_EVENTS
from pendula.kernel.canonical import decode, encode
from tests.actions.worlds import EPOCH, NEXT_EPOCH, codes, complaints, day, does, lasting, lines, of, outcome

FIRST = World.deciding_by(1)
DEFS = {"nap": lasting(10), "dig": lasting(10, "pit"), "tell": lasting(5, may_trigger_event=True)}
CONFIG: dict[str, Any] = {"epoch": EPOCH, "action_defs": DEFS}


def test_an_unknown_version_is_this_one() -> None:
    assert World.deciding_by(3) is World.deciding_by(99) is World
    assert World.deciding_by(2).decisions == 2
    assert FIRST.decisions == 1


# Params


@pytest.mark.req("ACT-DATA-2")
def test_params_stand_in_starts_and_ends() -> None:
    params = {"tool": "saw", "speed": Decimal("0.5")}
    result = day(
        {"saw": lasting(10, interruptible=True)},
        does("A", 0, "saw", params=params),
        does("B", 0, "saw", params=None),
        interrupts=[{"t": 5, "target": "A", "priority": 9}],
    )

    told = [of(result, kind, "A", segment).meta["params"] for kind, segment in (("start", 0), ("start", 1), ("end", 1))]
    assert told == [params] * 3
    assert "params" not in of(result, "start", "B").meta
    assert "params" not in of(result, "interrupt", "A").meta


@pytest.mark.req("ACT-DATA-2")
def test_params_are_in_every_question_to_user_code() -> None:
    asked: list[Any] = []

    def hook(question: Any) -> list[Any]:
        asked.append(("hook", question["params"]))
        return []

    def modifiers(question: Any) -> dict[str, Any]:
        asked.append(("modifiers", question["params"]))
        return {}

    def process() -> Any:
        yield {"actor": "bo", "verb": "nap", "params": {"bed": 2}}

    world = LiveWorld(CONFIG, hook=hook, modifiers=modifiers)
    world.submit(does("A", 0, "tell", params={"to": "all"}))
    world.run(process())
    world.advance_to(100)

    assert asked == [("modifiers", {"to": "all"}), ("modifiers", {"bed": 2}), ("hook", {"to": "all"})]


@pytest.mark.req("ACT-DATA-2")
@pytest.mark.parametrize("as_instance", [True, False])
def test_finite_floats_in_params_are_kept_as_exact_decimals(as_instance: bool) -> None:
    params: Any = {"speed": 0.1, "deep": [1.0, {"x": 2.5e-3}]}
    wish = Instance("A", "ann", "nap", params=params, t=0) if as_instance else does("A", 0, "nap", params=params)

    told = of(day(DEFS, wish, does("B", 0, "nap", mood=0.25)), "start", "A").meta["params"]

    assert encode(told) == b'{"deep":[1,{"x":0.0025}],"speed":0.1}'
    assert told["speed"] == Decimal("0.1")


@pytest.mark.req("ACT-DATA-2")
def test_a_float_that_would_decide_is_refused_and_told_how_to_write_it() -> None:
    (rejection,) = day(DEFS, does("A", 0, "nap", priority=0.5)).rejections

    assert rejection.message == "0.5 is a binary float, which is not exact: write Decimal('0.5'), at $.priority"


@pytest.mark.req("ACT-DATA-7")
@pytest.mark.parametrize(
    ("more", "meant"),
    [({"knowledge": [{"id": "k", "reveal": [0]}]}, "reveals"), ({"visibility": {"scop": "public"}}, "scope")],
)
def test_a_name_that_nobody_knows_inside_of_an_instance_rejects_it(more: dict[str, Any], meant: str) -> None:
    (rejection,) = day(DEFS, does("A", 0, "nap", **more)).rejections

    assert rejection.code == "InvalidAction"
    assert f"did you mean {meant}?" in rejection.message
    assert not FIRST.create(CONFIG).apply(Submit((does("A", 0, "nap", **more),))).events


# Numbers of time


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


# Cancelling what is to come


@pytest.mark.req("ACT-USE-4", "ACT-LOCK-8")
@pytest.mark.parametrize("at", [5, 50])
def test_a_submission_for_later_is_cancelled_before_it_is_admitted(at: int) -> None:
    result = day(DEFS, does("A", 50, "nap"), does("B", 50, "nap"), commands=[{"t": at, "cancel": "A"}])

    assert codes(result) == {"A": "Cancelled"}
    assert lines(result) == ["50 start B", "60 end B"]
    assert of(result, "start", "B").meta["admission"] == 0


@pytest.mark.req("ACT-USE-4")
def test_a_cancelled_submission_is_not_deferred_and_its_id_stays_used() -> None:
    result = outcome(
        DEFS, does("A", 1500, "nap"), does("B", 1500, "nap"), does("A", 1600, "nap"),
        commands=[{"t": 5, "cancel": "A"}, {"t": 6, "cancel": "A"}], epochs=2,
    )  # fmt: skip

    assert codes(result.epochs[0]) == {"A": "Cancelled"} | {"A": "Cancelled"}
    assert [one["id"] for one in result.epochs[0].deferred] == ["B"]
    assert complaints(result.epochs[0]) == [(6, "NotCancellable", "A")]


@pytest.mark.req("ACT-USE-4")
def test_a_process_hears_that_its_wish_was_cancelled() -> None:
    heard: list[Any] = []

    def patient() -> Any:
        heard.append((yield {"actor": "bo", "verb": "nap", "t": 50}))

    world = LiveWorld(CONFIG)
    world.run(patient(), "bo")
    world.cancel("bo-0", t=20)
    world.advance_to(100)

    assert heard == [{"rejected": "Cancelled", "t": 20}]


def test_the_first_version_does_not_cancel_what_is_to_come() -> None:
    world = FIRST.create(CONFIG)
    world.apply(Submit((does("A", 50, "nap"),)))
    world.apply(Request(commands=({"t": 5, "cancel": "A"},)))

    assert [str(event.code) for event in world.apply(Advance(10)).events] == ["NotCancellable"]  # type: ignore[union-attr]
    assert len(world.apply(Advance(100)).events) == 2


# Limits


@pytest.mark.req("ACT-LOCK-7", "ACT-PERF-3")
def test_the_lock_of_an_actor_counts_as_a_lock() -> None:
    wishes = [does(f"A{n}", n, "dig", actor=f"a{n}") for n in range(3)]

    few = day(DEFS, *wishes, options={"actor_exclusive": True, "limits": {"locks": 3}})
    narrow = day(DEFS, *wishes, options={"actor_exclusive": True, "limits": {"locks_each": 1}})
    free = day({"dig": lasting(5)}, *wishes, options={"actor_exclusive": True, "limits": {"locks_each": 1}})

    assert codes(few) == {"A2": "LimitExceeded"}
    assert sorted(few.locks) == ["actor:a0", "actor:a1", "pit"]
    assert codes(narrow) == dict.fromkeys(("A0", "A1", "A2"), "LimitExceeded")
    assert codes(free) == {}


@pytest.mark.req("ACT-LOCK-7", "ACT-RES-2")
def test_who_is_refused_for_the_lock_of_its_actor_reserves_nothing() -> None:
    defs = {"dig": lasting(5, resources=[{"name": "parts", "amount": 1}])}

    none = day(
        {**defs, "nap": lasting(5)}, does("N", 0, "nap", actor="bo"), does("A", 0, "dig"),
        options={"actor_exclusive": True, "limits": {"locks": 1}}, resources={"parts": 1},
    )  # fmt: skip

    assert codes(none) == {"A": "LimitExceeded"}
    assert none.resources == {"parts": {"available": 1, "reserved": 0}}


# What is told once, and what is forgotten


@pytest.mark.req("ACT-TIME-4")
def test_a_submission_for_later_is_deferred_in_the_epoch_in_which_it_came() -> None:
    result = outcome(DEFS, *(does(f"A{n}", n * 1440, "nap") for n in range(4)), epochs=3)

    assert [[one["id"] for one in epoch.deferred] for epoch in result.epochs] == [["A1", "A2", "A3"], [], []]


@pytest.mark.req("ACT-USE-6")
def test_ids_of_what_was_over_for_some_epochs_may_be_used_again() -> None:
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
def test_why_says_that_an_id_may_be_forgotten() -> None:
    world = World.create({**CONFIG, "options": {"remember_epochs": 0}})
    world.apply(Submit((does("A", 0, "nap"), does("B", 0, "fly"))))
    world.apply(Advance(1000))
    assert {world.why({"action": name}).code for name in "AB"} == {"over"}
    world.apply(Advance(1441))

    assert {world.why({"action": name}).code for name in "AB"} == {"unknown"}
    assert "forgotten after it was over for 0 epochs" in world.why({"action": "A"}).sentence
    assert World.create(CONFIG).why({"action": "A"}).sentence == "Nobody submitted A."


@pytest.mark.req("ACT-USE-6", "ACT-CARRY-3")
def test_what_is_to_be_forgotten_is_saved_and_carried() -> None:
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


# Journals of the first version


def test_the_first_version_passes_over_names_and_keeps_its_words() -> None:
    stiff = lasting(30, "pit", preempt=True, on_shortage="wait")
    world = FIRST.create({**CONFIG, "action_defs": {"dig": stiff}, "option": {}, "locks": {"pit": {"capacity": 2}}})
    world.apply(Submit((does("A", 0, "dig"), does("B", 0, "dig"), {"id": "C"})))
    events = world.apply(Advance(40)).events

    assert [event.t for event in events if isinstance(event, WORLD_EVENTS)] == [0, 30, 30]
    (rejection,) = world.apply(Submit(({"id": "D", "actor": "ann"},))).events
    assert rejection.message == "Object missing required field `verb`"  # type: ignore[union-attr]
    assert "trying" not in decode(world.state())  # type: ignore[operator]
