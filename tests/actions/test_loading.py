"""A file is accepted unchanged, or refused as a whole with every fault."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.actions import Code, InvalidCarryOver, InvalidEpoch, InvalidSetting, run_document
from pendula.actions.checks import accept, check, load
from pendula.documents import DocumentRefused, from_value
from tests.actions.files import ALL_PATHS, BASE, ODD, changed, codes, faults, yaml
from tests.actions.worlds import EPOCH, NEXT_EPOCH, document, does, lasting, outcome

GOOD = """\
epoch: {index: 0, start_at: 2025-07-01T00:00:00, end_at: 2025-07-02T00:00:00}
action_defs:
  clean: {base_duration_min: 60, effort: medium, interruptible: true, locks: [hall]}
actions_submitted:
  - {id: A1, actor: ann, verb: clean, submitted_at: 2025-07-01T08:05:00}
"""


@pytest.mark.req("ACT-FILE-1")
@pytest.mark.req("ACT-DATA-7")
def test_yaml_and_json_are_the_same_document(tmp_path: Path) -> None:
    in_yaml, in_json = tmp_path / "day.yaml", tmp_path / "day.json"
    in_yaml.write_text(GOOD, encoding="utf-8")
    in_json.write_text(json.dumps(load(in_yaml)), encoding="utf-8")

    assert load(in_json) == load(in_yaml)
    assert run_document(load(in_json)).as_json() == run_document(load(in_yaml)).as_json()


@pytest.mark.req("ACT-FILE-3")
def test_times_stay_strings_and_decimals_exact() -> None:
    read = accept(yaml(GOOD + "resources: {parts: 0.1}\n"))

    assert read["actions_submitted"][0]["submitted_at"] == "2025-07-01T08:05:00"
    assert read["resources"]["parts"] == Decimal("0.1")


@pytest.mark.req("ACT-FILE-1")
def test_all_missing_sections_are_reported_at_once() -> None:
    assert faults(accept, yaml("resources: {}\n")) == [
        (1, 1, "$.action_defs", "missing_field"),
        (1, 1, "$.actions_submitted", "missing_field"),
        (1, 1, "$.epoch", "InvalidEpoch"),
    ]


def test_sections_of_the_wrong_type_are_all_listed_with_their_places() -> None:
    text = GOOD + "skills: 5\nresources: [1]\nworld_state: x\ninterrupts: {}\ncommands: 7\noptions: []\nepochs: 0\n"

    assert faults(check, yaml(text)) == faults(accept, yaml(text))
    assert faults(accept, yaml(text)) == [
        (6, 9, "$.skills", "invalid_field"),
        (7, 12, "$.resources", "invalid_field"),
        (8, 14, "$.world_state", "invalid_field"),
        (9, 13, "$.interrupts", "invalid_field"),
        (10, 11, "$.commands", "invalid_field"),
        (11, 10, "$.options", "invalid_field"),
        (12, 9, "$.epochs", "invalid_field"),
    ]


def test_every_invalid_piece_is_listed() -> None:
    given = document(
        {},
        resources={"good": 1, "bad": -1, "worse": "lots"},
        world_state={"modifiers": [{"name": "m", "factor": "x"}, {"factor": 1}], "knowledge": [{"id": ""}]},
        options={"slots": "many", "pc": 5, "actor_exclusive": True},
    )

    assert codes(accept, given) == [
        ("$.options.pc", "InvalidSetting"),
        ("$.options.slots", "InvalidSetting"),
        ("$.resources.bad", "InvalidSetting"),
        ("$.resources.worse", "InvalidSetting"),
        ("$.world_state.knowledge[0].id", "InvalidSetting"),
        ("$.world_state.modifiers[0].factor", "InvalidSetting"),
        ("$.world_state.modifiers[1].name", "InvalidSetting"),
    ]


@pytest.mark.parametrize("value", [5, [], "text", None])
def test_a_document_other_than_an_object_is_refused(value: Any) -> None:
    assert codes(accept, value) == codes(check, value) == [("$", "invalid_field")]


def test_null_is_an_empty_section() -> None:
    given = document({}, skills=None, resources=None, options=None, world_state=None, interrupts=None, epochs=None)

    assert accept(from_value({**given, "actions_submitted": None})) is not None


@pytest.mark.req("ACT-TIME-1")
@pytest.mark.parametrize(
    "epoch",
    [
        {**EPOCH, "end_at": "2025-07-01T23:59:00"},
        {**EPOCH, "end_at": "2025-07-02T00:00:00Z"},
        {**EPOCH, "start_at": "today"},
        {**EPOCH, "index": -1},
        5,
    ],
)
def test_a_bad_epoch_refuses_the_file_with_its_own_code(epoch: Any) -> None:
    with pytest.raises(InvalidEpoch) as refused:
        accept(from_value({**document({}), "epoch": epoch}))

    assert refused.value.code == "InvalidEpoch"
    assert isinstance(refused.value, DocumentRefused)


def test_the_length_of_an_epoch_is_checked_against_its_slots() -> None:
    short = {**EPOCH, "end_at": "2025-07-01T06:00:00"}

    assert accept(from_value({**document({}, options={"slots": 6}), "epoch": short}))
    assert codes(accept, {**document({}, options={"slots": 7}), "epoch": short}) == [("$.epoch", "InvalidEpoch")]
    assert codes(accept, {**document({}, options={"slots": "six"}), "epoch": short}) == [
        ("$.options.slots", "InvalidSetting")
    ]


@pytest.mark.req("ACT-CARRY-4")
@pytest.mark.parametrize("change", [{"digest": "0" * 64}, {"format": 3}, {"epoch": 5}, {"state": {}}])
def test_a_damaged_carry_refuses_the_file_with_its_own_code(change: dict[str, Any]) -> None:
    carry = {**outcome({"V": lasting(120, "gate")}, does("V", 1400)).carry, **change}

    with pytest.raises(InvalidCarryOver) as refused:
        accept(from_value({**document({}, carry=carry), "epoch": NEXT_EPOCH}))

    assert refused.value.code == "InvalidCarryOver"


def test_a_faulty_epoch_adds_no_fault_to_the_carry() -> None:
    carry = outcome({}).carry

    assert codes(accept, {**document({}, carry=carry), "epoch": 5}) == [("$.epoch", "InvalidEpoch")]


@pytest.mark.req("ACT-DATA-5")
@pytest.mark.req("ACT-FILE-2")
def test_single_faults_do_not_refuse_the_file() -> None:
    given = document({"clean": 5}, 17, does("A", 5, "clean"), interrupts=[5], commands=["x"], skills={"ann": 9})

    (epoch,) = run_document(accept(from_value(given))).epochs

    assert [rejection.code for rejection in epoch.rejections] == [Code.INVALID_ACTION, Code.INVALID_ACTION]
    assert [diagnostic.code for diagnostic in epoch.diagnostics] == [Code.INVALID_INTERRUPT, Code.INVALID_COMMAND]


@pytest.mark.req("ACT-DATA-7")
def test_unknown_names_refuse_the_file_with_the_nearest_known_name() -> None:
    definition = lasting(5, preempt=True, resources=[{"name": "parts", "amount": 1, "refunds": True}])
    given = document(
        {"clean": definition},
        comands=[],
        options={"actor_exlusive": True},
        skills={"ann": {"matrix": {}, "overide": {}}},
        skill_weights={"clean": {"bass": 1}},
        world_state={"modifier": [], "modifiers": [{"name": "rain", "factor": 1, "form": 5}]},
    )

    with pytest.raises(DocumentRefused) as refused:
        accept(from_value(given))

    assert sorted((fault.path, fault.code) for fault in refused.value.faults) == [
        ("$.action_defs.clean.preempt", "unknown_field"),
        ("$.action_defs.clean.resources[0].refunds", "unknown_field"),
        ("$.comands", "unknown_field"),
        ("$.options.actor_exlusive", "unknown_field"),
        ("$.skill_weights.clean.bass", "unknown_field"),
        ("$.skills.ann.overide", "unknown_field"),
        ("$.world_state.modifier", "unknown_field"),
        ("$.world_state.modifiers[0].form", "unknown_field"),
    ]
    assert all("did you mean" in fault.message for fault in refused.value.faults)


@pytest.mark.req("ACT-DATA-7")
@pytest.mark.parametrize(
    ("change", "meant"),
    [
        ({"options": {"actor_exlusive": True}}, "actor_exclusive"),
        ({"action_defs": {"x": lasting(5, preempt=True)}}, "preempts"),
        ({"comands": []}, "commands"),
        ({"world_state": {"modifier": []}}, "modifiers"),
        ({"epoch": {**EPOCH, "ends_at": 1}}, "end_at"),
        ({"skill_weights": {"x": {"bass": 1}}}, "base"),
    ],
)
def test_the_library_refuses_an_unknown_name(change: dict[str, Any], meant: str) -> None:
    with pytest.raises(InvalidSetting, match=rf"did you mean {meant}\?"):
        run_document({**document({"x": lasting(5)}), **change})


@given(st.lists(st.tuples(st.sampled_from(ALL_PATHS), ODD), min_size=1, max_size=3))
def test_an_accepted_document_can_be_run(changes: list[Any]) -> None:
    value: Any = BASE
    for path, new in changes:
        value = changed(value, path, new)

    try:
        accept(from_value(value))
    except DocumentRefused:
        return

    assert len(run_document(value).epochs) == 1
