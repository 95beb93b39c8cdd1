"""Every fault of a file is found, with its place and its code."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.actions import Code, run_document
from pendula.actions.checks import accept, check, town
from pendula.documents import DocumentRefused, from_value
from tests.actions.files import ALL_PATHS, BASE, ODD, changed, codes, faults, yaml
from tests.actions.worlds import NEXT_EPOCH, document, does, lasting, outcome

GOOD = """\
epoch: {index: 0, start_at: 2025-07-01T00:00:00, end_at: 2025-07-02T00:00:00}
action_defs:
  clean: {base_duration_min: 60, effort: medium, interruptible: true, locks: [hall]}
actions_submitted:
  - {id: A1, actor: ann, verb: clean, submitted_at: 2025-07-01T08:05:00}
"""


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
        (4, 30, "$.action_defs.clean.base_duration_min", "InvalidDuration"),
        (4, 41, "$.action_defs.clean.effort", "InvalidEffort"),
        (4, 82, "$.action_defs.clean.locks[1]", "UnknownLock"),
        (4, 90, "$.action_defs.clean.color", "unknown_field"),
        (5, 78, "$.action_defs.fix.interrupts", "InvalidSetting"),
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
        (19, 5, "$.actions_submitted[4].id", "InvalidAction"),
        (21, 5, "$.interrupts[0]", "InvalidInterrupt"),
        (22, 34, "$.interrupts[1].priority", "InvalidInterrupt"),
        (22, 37, "$.interrupts[1].colour", "InvalidInterrupt"),
        (23, 20, "$.interrupts[2].target", "interrupt_ignored"),
        (25, 5, "$.commands[0]", "InvalidCommand"),
        (26, 20, "$.commands[1].cancel", "NotCancellable"),
    ]


def test_a_run_refuses_members_without_effect_in_the_same_file() -> None:
    with pytest.raises(DocumentRefused) as refused:
        accept(yaml(WRONG))

    assert {fault.code for fault in refused.value.faults} == {"unknown_field", "InvalidSetting"}


def test_terminal_lines_end_with_the_code_and_a_suggestion() -> None:
    with pytest.raises(DocumentRefused) as refused:
        check(yaml(GOOD.replace("verb: clean", "verb: cleen")))

    assert refused.value.render() == (
        "town.yaml:5:32: $.actions_submitted[0].verb: "
        "there is no definition of 'cleen' (did you mean clean?) (UnknownVerb)"
    )


def test_ids_of_the_carry_count_as_used() -> None:
    defs = {"V": lasting(120, "gate")}
    carry = outcome(defs, does("V", 1400)).carry
    given = {**document(defs, does("V", 5), does("W", 6, "V"), carry=carry), "epoch": NEXT_EPOCH}
    given["interrupts"] = [{"t": 5, "target": "V", "priority": 1}]

    assert codes(check, given) == [("$.actions_submitted[0].id", "DuplicateActionId")]


def test_times_with_offsets_are_not_faults_of_an_unreadable_epoch() -> None:
    given = {**document({"V": lasting(5)}, does("V", "2025-07-01T08:00:00+02:00")), "epoch": {"index": 0}}

    assert {path for path, _ in codes(check, given)} == {"$.epoch.start_at", "$.epoch.end_at"}


def test_limits_of_a_definition_are_found() -> None:
    locks = [f"lock{number}" for number in range(65)]
    needs = [{"name": f"r{number}", "amount": 1} for number in range(33)]

    assert codes(check, document({"V": lasting(5, *locks), "W": lasting(5, resources=needs)})) == [
        ("$.action_defs.V.locks", "LimitExceeded"),
        ("$.action_defs.W.resources", "LimitExceeded"),
    ]


def test_the_example_is_sound() -> None:
    check(town())


DYNAMIC = {Code.INSUFFICIENT_RESOURCES, Code.CANNOT_ACQUIRE_LOCK, Code.CANCELLED}
MALFORMED = {Code.INVALID_INTERRUPT, Code.INVALID_COMMAND, Code.UNKNOWN_FIELDS}


@pytest.mark.req("ACT-DATA-5")
@given(st.lists(st.tuples(st.sampled_from(ALL_PATHS[1:]), ODD), min_size=1, max_size=3))
def test_a_file_that_passes_the_check_is_not_refused(changes: list[Any]) -> None:
    value = BASE
    for path, new in changes:
        value = changed(value, path, new)

    try:
        check(from_value(value))
    except DocumentRefused as refused:
        listed = [(fault.path, fault.code, fault.message) for fault in refused.faults]
        assert len(listed) == len(set(listed)), "no fault is listed twice"
        return

    (epoch,) = run_document(accept(from_value(value))).epochs
    assert {rejection.code for rejection in epoch.rejections} <= DYNAMIC
    assert {diagnostic.code for diagnostic in epoch.diagnostics}.isdisjoint(MALFORMED)
