"""Whole documents: the form of a file and of its result, what is refused, what is too large."""

from typing import Any

import pytest

from pendula.actions import Advance, InvalidSetting, Submit, World, run_document
from pendula.documents import Format, read_bytes
from pendula.kernel.canonical import decode, encode
from tests.actions.scenarios import Scenario, scenario
from tests.actions.worlds import EPOCH, day, document, does, lasting, lines, said

WALK = {"walk": lasting(10), "haul": lasting(10, "cart")}
GOOD = does("good", 7, "walk")
STILL_GOING = said("7 start good, 17 end good")
YAML = b"""
epoch: {index: 0, start_at: 2025-07-01T00:00:00, end_at: 2025-07-02T00:00:00}
action_defs:
  clean: {base_duration_min: 60, effort: medium, interruptible: true, resources: [{name: soap, amount: 0.1}]}
actions_submitted:
  - {id: A1, actor: ann, verb: clean, params: {at: 12:30, share: 0.1}, submitted_at: 2025-07-01T08:05:00}
resources: {soap: 0.3}
world_state: {modifiers: [{name: rain, factor: 1.1, from: 2025-07-01T08:00:00}]}
"""


@pytest.mark.req("ACT-FILE-1", "ACT-FILE-3", "ACT-DATA-7")
def test_yaml_times_and_decimals_are_read_exactly() -> None:
    value: Any = read_bytes(YAML, Format.YAML).value

    result = run_document(value).as_json()

    (epoch,) = result["epochs"]
    assert [(event["t"], event["type"]) for event in epoch["events"]] == [(485, "start"), (551, "end")]
    assert str(epoch["resources"]["soap"]["available"]) == "0.2"


@pytest.mark.req("ACT-FILE-2")
def test_the_output_has_the_promised_form() -> None:
    result = run_document(document(WALK, GOOD, interrupts=[{"t": 9, "target": "good", "priority": 3}])).as_json()

    assert set(result) == {"epochs", "carry"}
    (epoch,) = result["epochs"]
    assert set(epoch) == {
        "epoch", "events", "rejections", "deferred", "diagnostics", "locks", "resources", "carried_in",
    }  # fmt: skip
    assert epoch["epoch"] == EPOCH
    assert epoch["events"][0] == {
        "seq": 0,
        "type": "start",
        "action_id": "good",
        "t": 7,
        "at": "2025-07-01T00:07:00",
        "meta": {"segment": 0, "d": 10, "t_end": 17, "waited": 0, "admission": 0, "params": {}},
    }
    (diagnostic,) = epoch["diagnostics"]
    assert set(diagnostic) == {"code", "action_id", "t", "by", "message"}


@pytest.mark.req("ACT-FILE-4")
@pytest.mark.parametrize(
    "change",
    [
        {"actions_submitted": {}},
        {"interrupts": "now"},
        {"commands": 5},
        {"action_defs": []},
        {"skills": []},
        {"resources": {"parts": -1}},
        {"resources": {"parts": "NaN"}},
        {"resources": {"parts": "many"}},
        {"resources": {"parts": "1e5000"}},
        {"world_state": {"modifiers": {}}},
        {"world_state": {"modifiers": [{"name": "m", "factor": 1, "from": "soon"}]}},
        {"world_state": {"knowledge": [{"id": "k", "confidence": "NaN"}]}},
        {"options": {"actor_exclusive": "yes"}},
        {"options": {"confidence_threshold": "NaN"}},
        {"epochs": 0},
        {"epochs": True},
        {"epochs": "2"},
        {"epochs": 10**9},
    ],
)
def test_a_document_that_is_wrong_as_a_whole_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting) as refused:
        run_document({**document(WALK, GOOD), **change})

    assert refused.value.exit_code == 1


@pytest.mark.parametrize("t", [10**9, 10**12, 10**18, 10**30, -(10**12), -(10**30)])
def test_a_submission_for_a_distant_minute_disturbs_nobody(t: int) -> None:
    config = {"epoch": EPOCH, "action_defs": WALK}
    world = World.create(config)
    world.apply(Submit((does("A", t, "walk"), GOOD)))

    events = world.apply(Advance(100)).events

    assert "good" in {getattr(event, "action_id", None) for event in events}
    assert world.why({"action": "A"}).sentence
    assert World.from_state(config, world.state()).state() == world.state()


@pytest.mark.parametrize("amount", ["1e5000", "1e-5000", "0." + "3" * 3000])
def test_amounts_that_cannot_be_reckoned_with_reject_that_instance_alone(amount: str) -> None:
    defs = {**WALK, "make": lasting(1, resources=[{"name": "parts", "amount": amount, "produce": True}])}
    defs["use"] = lasting(1, resources=[{"name": "parts", "amount": amount}])

    result = day(defs, does("A", 0, "make"), does("B", 0, "use"), GOOD, resources={"parts": 3})

    assert lines(result)[-2:] == STILL_GOING


def test_the_whole_document_through_bytes_gives_the_same() -> None:
    case = scenario(11)
    case = Scenario({**case.document, "options": {**case.document["options"], "follow_ups": False}}, {})
    through_bytes: Any = decode(encode(case.document))

    assert encode(run_document(case.document).as_json()) == encode(run_document(through_bytes).as_json())
