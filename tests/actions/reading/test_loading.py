"""A file is taken as it is, or refused as a whole with every fault; `check` also finds each single thing."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.actions import Code, InvalidCarryOver, InvalidEpoch, run_document
from pendula.actions.reading import accept, check, load, town, unknown_sections
from pendula.documents import Document, DocumentRefused, Format, from_value, read_bytes
from tests.actions.worlds import EPOCH, NEXT_EPOCH, document, does, lasting, outcome

GOOD = """\
epoch: {index: 0, start_at: 2025-07-01T00:00:00, end_at: 2025-07-02T00:00:00}
action_defs:
  clean: {base_duration_min: 60, effort: medium, interruptible: true, locks: [hall]}
actions_submitted:
  - {id: A1, actor: ann, verb: clean, submitted_at: 2025-07-01T08:05:00}
"""


def yaml(text: str) -> Document:
    return read_bytes(text.encode(), Format.YAML, "town.yaml")


def faults(read: Callable[[Document], object], given: Document) -> list[tuple[int, int, str, str]]:
    """Line, column, path and code of everything that is refused."""
    with pytest.raises(DocumentRefused) as refused:
        read(given)
    return [(fault.line, fault.column, fault.path, fault.code) for fault in refused.value.faults]


def codes(read: Callable[[Document], object], value: Any) -> list[tuple[str, str]]:
    return [(path, code) for _, _, path, code in faults(read, from_value(value))]


@pytest.mark.req("ACT-FILE-1")
@pytest.mark.req("ACT-DATA-7")
def test_yaml_and_json_are_the_same_document(tmp_path: Path) -> None:
    in_yaml, in_json = tmp_path / "day.yaml", tmp_path / "day.json"
    in_yaml.write_text(GOOD, encoding="utf-8")
    in_json.write_text(json.dumps(load(in_yaml)), encoding="utf-8")

    assert load(in_json) == load(in_yaml)
    assert run_document(load(in_json)).as_json() == run_document(load(in_yaml)).as_json()


@pytest.mark.req("ACT-FILE-3")
def test_times_stay_texts_and_decimals_exact() -> None:
    read = accept(yaml(GOOD + "resources: {parts: 0.1}\n"))

    assert read["actions_submitted"][0]["submitted_at"] == "2025-07-01T08:05:00"
    assert read["resources"]["parts"] == Decimal("0.1")


@pytest.mark.req("ACT-FILE-1")
def test_required_sections_are_missed_all_at_once() -> None:
    assert faults(accept, yaml("resources: {}\n")) == [
        (1, 1, f"$.{name}", "missing_field") for name in ("action_defs", "actions_submitted", "epoch")
    ]


def test_sections_of_the_wrong_kind_are_told_all_at_once_with_their_places() -> None:
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


def test_every_piece_that_no_world_can_be_made_of_is_told() -> None:
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
        ("$.world_state.modifiers[1]", "InvalidSetting"),
    ]


@pytest.mark.parametrize("value", [5, [], "text", None])
def test_what_is_no_object_is_refused(value: Any) -> None:
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


def test_the_length_of_an_epoch_is_judged_by_its_slots() -> None:
    short = {**EPOCH, "end_at": "2025-07-01T06:00:00"}

    assert accept(from_value({**document({}, options={"slots": 6}), "epoch": short}))
    assert codes(accept, {**document({}, options={"slots": 7}), "epoch": short}) == [("$.epoch", "InvalidEpoch")]
    assert codes(accept, {**document({}, options={"slots": "six"}), "epoch": short}) == [
        ("$.options.slots", "InvalidSetting")
    ]


@pytest.mark.req("ACT-CARRY-4")
@pytest.mark.parametrize("change", [{"digest": "0" * 64}, {"format": 2}, {"epoch": 5}, {"state": {}}])
def test_a_damaged_carry_refuses_the_file_with_its_own_code(change: dict[str, Any]) -> None:
    carry = {**outcome({"V": lasting(120, "gate")}, does("V", 1400)).carry, **change}

    with pytest.raises(InvalidCarryOver) as refused:
        accept(from_value({**document({}, carry=carry), "epoch": NEXT_EPOCH}))

    assert refused.value.code == "InvalidCarryOver"


def test_a_carry_is_not_blamed_for_the_epoch() -> None:
    carry = outcome({}).carry

    assert codes(accept, {**document({}, carry=carry), "epoch": 5}) == [("$.epoch", "InvalidEpoch")]


@pytest.mark.req("ACT-DATA-5")
@pytest.mark.req("ACT-FILE-2")
def test_single_faults_do_not_refuse_the_file() -> None:
    given = document({"clean": 5}, 17, does("A", 5, "clean"), interrupts=[5], commands=["x"], skills={"ann": 9})

    (epoch,) = run_document(accept(from_value(given))).epochs

    assert [one.code for one in epoch.rejections] == [Code.INVALID_ACTION, Code.INVALID_ACTION]
    assert [one.code for one in epoch.diagnostics] == [Code.INVALID_INTERRUPT, Code.INVALID_COMMAND]


WRONG = """\
epoch: {index: 0, start_at: 2025-07-01T00:00:00, end_at: 2025-07-02T00:00:00}
interupts: []
action_defs:
  clean: {base_duration_min: 0, effort: hihg, interruptible: true, locks: [shop, shopp], color: red}
  fix: {base_duration_min: 5, effort: low, interruptible: false, interrupts: [cleen], resources: [{name: a, amount: b}]}
  long: {base_duration_min: 525000, effort: high, interruptible: false}
skills:
  ann: {clean: 7, fix: 2}
  bob: {matrix: {care: 2, haste: x}, override: {fix: 9}}
  cid: 3
skill_weights: {fix: {base: x}}
world_state: {modifiers: [{name: rain, factor: 11, verbs: [fixx]}]}
options: {strict_locks: [shop], actor_exlusive: true}
actions_submitted:
  - {id: A1, actor: ann, verb: fix, submitted_at: 2025-07-01T08:00:00}
  - {id: A1, actor: ann, verb: fixx, submitted_at: 2025-07-01T08:00:00Z}
  - {id: A2, actor: 5, verb: 7, submitted_at: yes}
  - {id: A3, actor: dan, verb: long, submitted_at: 2025-07-01T08:00:00, knowlege: [a], mood: 3}
  - {actor: dan, verb: long}
interrupts:
  - {t: -1, target: A1, priority: 9}
  - {t: 5, target: A1, priority: x, colour: 1}
  - {t: 5, target: A11, priority: 2}
commands:
  - {t: 5, cancel: A1, resume: A2}
  - {t: 5, cancel: B}
"""


@pytest.mark.req("ACT-DATA-5")
@pytest.mark.req("ACT-LOCK-1")
def test_check_lists_every_single_fault_with_place_and_code() -> None:
    assert faults(check, yaml(WRONG)) == [
        (2, 1, "$.interupts", "unknown_field"),
        (4, 10, "$.action_defs.clean", "InvalidDuration"),
        (4, 41, "$.action_defs.clean.effort", "InvalidEffort"),
        (4, 82, "$.action_defs.clean.locks[1]", "UnknownLock"),
        (4, 90, "$.action_defs.clean.color", "unknown_field"),
        (5, 79, "$.action_defs.fix.interrupts[0]", "UnknownVerb"),
        (5, 117, "$.action_defs.fix.resources[0].amount", "InvalidAction"),
        (8, 16, "$.skills.ann.clean", "InvalidSkillLevel"),
        (9, 24, "$.skills.bob.matrix.care", "InvalidMatrix"),
        (9, 34, "$.skills.bob.matrix.haste", "InvalidMatrix"),
        (9, 54, "$.skills.bob.override.fix", "InvalidSkillLevel"),
        (10, 8, "$.skills.cid", "InvalidSkillLevel"),
        (11, 22, "$.skill_weights.fix", "InvalidMatrix"),
        (12, 48, "$.world_state.modifiers[0].factor", "InvalidDuration"),
        (12, 60, "$.world_state.modifiers[0].verbs[0]", "UnknownVerb"),
        (13, 33, "$.options.actor_exlusive", "unknown_field"),
        (16, 10, "$.actions_submitted[1].id", "DuplicateActionId"),
        (16, 32, "$.actions_submitted[1].verb", "UnknownVerb"),
        (16, 52, "$.actions_submitted[1].submitted_at", "InvalidTimestamp"),
        (17, 21, "$.actions_submitted[2].actor", "InvalidAction"),
        (17, 30, "$.actions_submitted[2].verb", "InvalidAction"),
        (18, 32, "$.actions_submitted[3].verb", "InvalidDuration"),
        (18, 83, "$.actions_submitted[3].knowlege", "unknown_fields"),
        (19, 5, "$.actions_submitted[4]", "InvalidAction"),
        (19, 5, "$.actions_submitted[4]", "InvalidAction"),
        (21, 5, "$.interrupts[0]", "InvalidInterrupt"),
        (22, 5, "$.interrupts[1]", "InvalidInterrupt"),
        (22, 34, "$.interrupts[1].priority", "InvalidInterrupt"),
        (23, 20, "$.interrupts[2].target", "interrupt_ignored"),
        (25, 5, "$.commands[0]", "InvalidCommand"),
        (26, 20, "$.commands[1].cancel", "NotCancellable"),
    ]


def test_a_run_takes_the_same_file() -> None:
    assert accept(yaml(WRONG))["epoch"] == {**EPOCH}


def test_lines_for_a_terminal_end_with_the_code_and_say_what_may_be_meant() -> None:
    with pytest.raises(DocumentRefused) as refused:
        check(yaml(GOOD.replace("verb: clean", "verb: cleen")))

    assert refused.value.render() == (
        "town.yaml:5:32: $.actions_submitted[0].verb: "
        "there is no definition of 'cleen' (did you mean clean?) (UnknownVerb)"
    )


def test_ids_of_the_carry_are_used() -> None:
    defs = {"V": lasting(120, "gate")}
    carry = outcome(defs, does("V", 1400)).carry
    given = {**document(defs, does("V", 5), does("W", 6, "V"), carry=carry), "epoch": NEXT_EPOCH}
    given["interrupts"] = [{"t": 5, "target": "V", "priority": 1}]

    assert codes(check, given) == [("$.actions_submitted[0].id", "DuplicateActionId")]


def test_times_with_offsets_are_not_blamed_for_an_epoch_that_cannot_be_read() -> None:
    given = {**document({"V": lasting(5)}, does("V", "2025-07-01T08:00:00+02:00")), "epoch": {"index": 0}}

    assert {path for path, _ in codes(check, given)} == {"$.epoch"}


def test_limits_of_a_definition_are_found() -> None:
    locks = [f"lock{number}" for number in range(65)]
    needs = [{"name": f"r{number}", "amount": 1} for number in range(33)]

    assert codes(check, document({"V": lasting(5, *locks), "W": lasting(5, resources=needs)})) == [
        ("$.action_defs.V.locks", "LimitExceeded"),
        ("$.action_defs.W.resources", "LimitExceeded"),
    ]


def test_an_unknown_section_is_passed_over_by_a_run_and_told() -> None:
    given = document({}, comands=[], notes="for myself")

    assert accept(from_value(given))
    assert unknown_sections(given) == [
        "'comands' is not a section (did you mean commands?)",
        "'notes' is not a section",
    ]


def test_the_example_is_sound() -> None:
    check(town())


DYNAMIC = {Code.INSUFFICIENT_RESOURCES, Code.CANNOT_ACQUIRE_LOCK}
MALFORMED = {Code.INVALID_INTERRUPT, Code.INVALID_COMMAND, Code.UNKNOWN_FIELDS}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 5, -1, "x", [], {}, True, Decimal("0.5"), "2025-07-01T08:00:00", "2025-07-01T08:00:00Z"]
)


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for step, one in inner for found in paths(one, (*path, step)))]


def changed(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, list):
        return [changed(one, path[1:], new) if place == path[0] else one for place, one in enumerate(value)]
    if isinstance(value, dict):
        return {name: changed(one, path[1:], new) if name == path[0] else one for name, one in value.items()}
    return value  # an earlier change took this place away


BASE = document(
    {"clean": lasting(60, "hall", resources=[{"name": "soap", "amount": 1}]), "fix": lasting(30, skill="repair")},
    does("A1", "2025-07-01T08:00:00", "clean", knowledge=["k", {"id": "l", "to_scope": "pc"}]),
    does("A2", 500, "fix", visibility={"scope": "public", "visibility_to": ["bob"]}),
    skills={"ann": {"matrix": {"care": 1}, "override": {"clean": 2}}, "bob": {"clean": 3}},
    skill_weights={"repair": {"base": 1, "weights": {"care": 1}}},
    resources={"soap": 2},
    world_state={"modifiers": [{"name": "rain", "factor": 2, "from": 5, "verbs": ["clean"], "actors": ["ann"]}]},
    interrupts=[{"t": 490, "target": "A1", "priority": 5, "source": "bell", "hold_min": 3}],
    commands=[{"at": "2025-07-01T09:00:00", "cancel": "A2"}],
    options={"strict_locks": ["hall"], "pc": "ann", "allies": ["bob"]},
)
ALL_PATHS = paths(BASE)


@pytest.mark.req("ACT-DATA-5")
@given(st.lists(st.tuples(st.sampled_from(ALL_PATHS[1:]), ODD), min_size=1, max_size=3))
def test_what_check_finds_sound_is_neither_refused_nor_rejected_for_its_form(changes: list[Any]) -> None:
    value = BASE
    for path, new in changes:
        value = changed(value, path, new)

    try:
        check(from_value(value))
    except DocumentRefused as refused:
        told = [(fault.path, fault.code, fault.message) for fault in refused.faults]
        assert len(told) == len(set(told)), "nothing is told twice"
        return

    (epoch,) = run_document(accept(from_value(value))).epochs
    assert {one.code for one in epoch.rejections} <= DYNAMIC
    assert {one.code for one in epoch.diagnostics}.isdisjoint(MALFORMED)


@given(st.lists(st.tuples(st.sampled_from(ALL_PATHS), ODD), min_size=1, max_size=3))
def test_what_is_accepted_can_be_run(changes: list[Any]) -> None:
    value: Any = BASE
    for path, new in changes:
        value = changed(value, path, new)

    try:
        accept(from_value(value))
    except DocumentRefused:
        return

    assert len(run_document(value).epochs) == 1
