"""Params: free data of a submission, carried through events and questions; floats in them become exact decimals."""

from decimal import Decimal
from typing import Any

import pytest

from pendula.actions import Instance, LiveWorld
from pendula.kernel.canonical import encode
from tests.actions.worlds import EPOCH, day, does, lasting, of

DEFS = {"nap": lasting(10), "tell": lasting(5, may_trigger_event=True)}
CONFIG: dict[str, Any] = {"epoch": EPOCH, "action_defs": DEFS}


@pytest.mark.req("ACT-DATA-2")
def test_starts_and_ends_carry_the_params() -> None:
    params = {"tool": "saw", "speed": Decimal("0.5")}
    result = day(
        {"saw": lasting(10, interruptible=True)},
        does("A", 0, "saw", params=params),
        does("B", 0, "saw", params=None),
        interrupts=[{"t": 5, "target": "A", "priority": 9}],
    )

    metas = [
        of(result, kind, "A", segment).meta["params"] for kind, segment in (("start", 0), ("start", 1), ("end", 1))
    ]
    assert metas == [params] * 3
    assert "params" not in of(result, "start", "B").meta
    assert "params" not in of(result, "interrupt", "A").meta


@pytest.mark.req("ACT-DATA-2")
def test_every_question_to_user_code_carries_the_params() -> None:
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
def test_finite_floats_in_params_become_exact_decimals(as_instance: bool) -> None:
    params: Any = {"speed": 0.1, "deep": [1.0, {"x": 2.5e-3}]}
    submission = Instance("A", "ann", "nap", params=params, t=0) if as_instance else does("A", 0, "nap", params=params)

    stored = of(day(DEFS, submission, does("B", 0, "nap", mood=0.25)), "start", "A").meta["params"]

    assert encode(stored) == b'{"deep":[1,{"x":0.0025}],"speed":0.1}'
    assert stored["speed"] == Decimal("0.1")


@pytest.mark.req("ACT-DATA-2")
def test_a_float_outside_params_is_rejected_with_the_exact_form_to_write() -> None:
    (rejection,) = day(DEFS, does("A", 0, "nap", priority=0.5)).rejections

    assert rejection.message == "0.5 is a binary float, which is not exact: write Decimal('0.5'), at $.priority"
