"""Whole documents: the form of a file and of its result, refusals, limits."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pendula.actions import Advance, InvalidSetting, Submit, World, run, run_document, run_epochs
from pendula.documents import Format, read_bytes
from pendula.kernel.canonical import decode, encode
from tests.actions.scenarios import Scenario, scenario
from tests.actions.worlds import EPOCH, NEXT_EPOCH, day, document, does, expected_lines, lasting, line, lines

WALK = {"walk": lasting(10), "haul": lasting(10, "cart")}
GOOD = does("good", 7, "walk")
STILL_GOING = expected_lines("7 start good, 17 end good")
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
def test_the_output_has_the_documented_form() -> None:
    result = run_document(document(WALK, GOOD, interrupts=[{"t": 9, "target": "good", "priority": 3}])).as_json()

    assert set(result) == {"epochs", "carry"}
    (epoch,) = result["epochs"]
    assert set(epoch) == {
        "epoch", "events", "rejections", "deferred", "diagnostics", "locks", "resources", "carried_in", "places",
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
def test_a_document_of_the_wrong_form_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting) as refused:
        run_document({**document(WALK, GOOD), **change})

    assert refused.value.exit_code == 1


@pytest.mark.parametrize("t", [10**9, 10**12, 10**18, 10**30, -(10**12), -(10**30)])
def test_a_submission_for_a_distant_minute_has_no_effect_on_others(t: int) -> None:
    config = {"epoch": EPOCH, "action_defs": WALK}
    world = World.create(config)
    world.apply(Submit((does("A", t, "walk"), GOOD)))

    events = world.apply(Advance(100)).events

    assert "good" in {getattr(event, "action_id", None) for event in events}
    assert world.why({"action": "A"}).sentence
    assert World.from_state(config, world.state()).state() == world.state()


@pytest.mark.parametrize("amount", ["1e5000", "1e-5000", "0." + "3" * 3000])
def test_invalid_amounts_reject_that_instance_alone(amount: str) -> None:
    defs = {**WALK, "make": lasting(1, resources=[{"name": "parts", "amount": amount, "produce": True}])}
    defs["use"] = lasting(1, resources=[{"name": "parts", "amount": amount}])

    result = day(defs, does("A", 0, "make"), does("B", 0, "use"), GOOD, resources={"parts": 3})

    assert lines(result)[-2:] == STILL_GOING


def test_a_document_from_bytes_gives_the_same_result() -> None:
    case = scenario(11)
    case = Scenario({**case.document, "options": {**case.document["options"], "follow_ups": False}}, {})
    through_bytes: Any = decode(encode(case.document))

    assert encode(run_document(case.document).as_json()) == encode(run_document(through_bytes).as_json())


@pytest.mark.req("ACT-CARRY-4")
def test_one_epoch_gives_the_carry_for_the_next_as_plain_json() -> None:
    defs = {"watch": lasting(2000, "gate", resources=[{"name": "oil", "amount": "0.5", "refund": True}])}
    submission = does("A", 5, "watch", params={"depth": Decimal("0.1")}, hat=Decimal("1.5"))
    first = run(EPOCH, defs, [submission, does("B", 10, "watch")], resources={"oil": "1.25"})
    carry = json.loads(json.dumps(first.carry))
    second = run(NEXT_EPOCH, defs, [], carry=carry, resources={"oil": "1.25"})
    third: Any = {"index": 2, "start_at": "2025-07-03T00:00:00", "end_at": "2025-07-04T00:00:00"}

    assert first.as_json()["carry"] == first.carry
    assert [line(event) for event in second.events] == ["565 end A", "565 start B"]
    assert second.events[0].meta["params"] == {"depth": Decimal("0.1")}
    assert run(third, defs, [], carry=second.carry, resources={"oil": "1.25"}).carry is not None


@pytest.mark.req("ACT-LOG-1", "ACT-LOG-2")
def test_logs_are_part_of_a_result_on_request() -> None:
    submissions = [does("A", 5, "walk"), does("B", 1438, "walk")]

    alone = run(EPOCH, WALK, submissions, logs=True, options={"pc": "ann"})
    both = run_epochs(EPOCH, WALK, submissions, 2, logs=True, options={"pc": "ann"})

    assert alone.logs is not None
    assert both.logs is not None
    assert len(alone.logs.world) == 3
    assert [len(chunk) for chunk in both.logs.chunks] == [4, 2]
    assert len(both.as_json()["world_log"]) == 4
    assert len(alone.as_json()["pc_log"]) == 1
    assert run(EPOCH, WALK, submissions).logs is None
    assert "world_log" not in run(EPOCH, WALK, submissions).as_json()


@pytest.mark.req("ACT-USE-5")
def test_places_are_part_of_a_result() -> None:
    result = run(EPOCH, {"walk": lasting(5, place="park")}, [GOOD], world_state={"places": {"bo": "inn"}})

    assert result.places == {"ann": "park", "bo": "inn"}
    assert result.as_json()["places"] == result.places
