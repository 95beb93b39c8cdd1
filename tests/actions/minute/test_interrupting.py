"""Interrupts, preemption, cancelling, resuming, and the locks held meanwhile."""

from collections.abc import Iterable
from typing import Any

import pytest

from pendula.actions import Advance, Interrupted, InvalidSetting, LiveWorld, Submit, World
from pendula.actions.messages import WORLD_EVENTS
from pendula.actions.minute import interrupting
from pendula.actions.minute.world_state import WorldState
from tests.actions.worlds import (
    EPOCH,
    codes,
    day,
    diagnostic_rows,
    does,
    expected_lines,
    lasting,
    line,
    lines,
    of,
    outcome,
)

SOFT = lasting(30, "hall", interruptible=True)


def alarm(t: int, target: str, priority: int = 9, **more: object) -> dict[str, object]:
    return {"t": t, "target": target, "priority": priority, **more}


@pytest.mark.req("ACT-INT-2")
@pytest.mark.parametrize(("priority", "broken_off"), [(3, False), (4, False), (5, True)])
def test_only_a_strictly_higher_priority_interrupts(priority: int, broken_off: bool) -> None:
    result = day({"x": {**SOFT, "priority": 1}}, does("A", 0, "x", priority=4), interrupts=[alarm(5, "A", priority)])

    assert ("5 interrupt A" in lines(result)) is broken_off
    assert diagnostic_rows(result) == ([] if broken_off else [(5, "interrupt_ignored", "A")])


@pytest.mark.req("ACT-INT-2", "ACT-INT-7")
def test_an_uninterruptible_action_has_one_segment() -> None:
    result = day({"x": lasting(30)}, does("A", 0, "x"), interrupts=[alarm(t, "A", 1000) for t in range(30)])

    assert lines(result) == expected_lines("0 start A, 30 end A")
    assert len(diagnostic_rows(result)) == 30


@pytest.mark.req("ACT-INT-3")
def test_an_end_precedes_an_interrupt_of_the_same_minute() -> None:
    result = day({"x": SOFT}, does("A", 0, "x"), interrupts=[alarm(30, "A")])

    assert lines(result) == expected_lines("0 start A, 30 end A")
    assert diagnostic_rows(result) == [(30, "interrupt_ignored", "A")]


@pytest.mark.req("ACT-INT-3", "ACT-RES-3")
def test_an_interrupted_action_keeps_its_reservation_and_frees_its_locks() -> None:
    defs = {"x": {**SOFT, "resources": [{"name": "parts", "amount": 1}], "resume": "manual"}, "y": lasting(5, "hall")}

    result = day(defs, does("A", 0, "x"), does("B", 1, "y"), interrupts=[alarm(10, "A")], resources={"parts": 1})

    assert lines(result) == expected_lines("0 start A, 10 interrupt A, 10 start B, 15 end B")
    assert result.resources == {"parts": {"available": 0, "reserved": 1}}


@pytest.mark.req("ACT-EVT-1")
def test_an_action_is_interrupted_once_a_minute() -> None:
    result = day({"x": SOFT}, does("A", 0, "x"), interrupts=[alarm(10, "A", 1), alarm(10, "A", 9, hold_min=50)])

    assert lines(result) == expected_lines("0 start A, 10 interrupt A, 10 start A, 30 end A")
    assert diagnostic_rows(result) == [(10, "interrupt_ignored", "A")]


@pytest.mark.req("ACT-EVT-1")
def test_requests_of_a_minute_apply_in_the_admission_order_of_their_targets() -> None:
    defs = {"x": {**SOFT, "locks": []}}

    result = day(
        defs, does("A", 0, "x"), does("B", 0, "x"), interrupts=[alarm(5, "B"), alarm(5, "nobody"), alarm(5, "A", 0)]
    )

    assert diagnostic_rows(result) == [(5, "interrupt_ignored", "A"), (5, "interrupt_ignored", "nobody")]


@pytest.mark.req("ACT-INT-4")
def test_a_held_action_is_in_no_queue_and_blocks_nothing() -> None:
    defs = {"x": SOFT, "y": lasting(20, "hall")}

    result = day(defs, does("A", 0, "x"), does("B", 12, "y"), interrupts=[alarm(10, "A", hold_min=5)])

    assert lines(result) == expected_lines("0 start A, 10 interrupt A, 12 start B, 32 end B, 32 start A, 52 end A")
    assert of(result, "start", "A", 1).meta["waited"] == 17


@pytest.mark.req("ACT-INT-4")
def test_a_resumed_action_precedes_later_submissions() -> None:
    defs = {"x": SOFT, "y": lasting(20, "hall")}

    result = day(defs, does("A", 0, "x"), does("B", 1, "y"), interrupts=[alarm(10, "A")])

    assert lines(result) == expected_lines("0 start A, 10 interrupt A, 10 start A, 30 end A, 30 start B, 50 end B")


@pytest.mark.req("ACT-INT-5")
def test_manual_resumption_needs_a_request() -> None:
    defs = {"x": {**SOFT, "resume": "manual"}, "y": lasting(20, "hall")}

    result = day(
        defs,
        does("A", 0, "x"),
        does("B", 40, "y"),
        interrupts=[alarm(10, "A", hold_min=3)],
        commands=[{"t": 5, "resume": "A"}, {"t": 50, "resume": "A"}, {"t": 51, "resume": "A"}],
    )

    assert lines(result) == expected_lines("0 start A, 10 interrupt A, 40 start B, 60 end B, 60 start A, 80 end A")
    assert of(result, "start", "A", 1).meta["waited"] == 10
    assert diagnostic_rows(result) == [(5, "NotResumable", "A"), (51, "NotResumable", "A")]


@pytest.mark.req("ACT-INT-5", "ACT-RES-3")
def test_a_dropped_action_ends_and_returns_its_reservations() -> None:
    defs = {"x": {**SOFT, "resume": "drop", "resources": [{"name": "parts", "amount": 2}]}}

    result = day(
        defs,
        does("A", 0, "x"),
        interrupts=[alarm(10, "A")],
        commands=[{"t": 11, "resume": "A"}, {"t": 11, "cancel": "A"}],
        resources={"parts": 2},
    )

    assert lines(result) == expected_lines("0 start A, 10 interrupt A")
    assert of(result, "interrupt", "A").meta["resume"] == "drop"
    assert result.resources == {"parts": {"available": 2, "reserved": 0}}
    assert diagnostic_rows(result) == [(11, "NotResumable", "A"), (11, "NotCancellable", "A")]


@pytest.mark.req("ACT-INT-6", "ACT-EVT-1")
def test_of_two_preempting_admissions_the_first_interrupts_and_the_stronger_starts() -> None:
    defs = {
        "x": SOFT,
        "weak": lasting(5, "hall", preempts=True, priority=2),
        "strong": lasting(5, "hall", preempts=True, priority=7),
    }

    result = day(defs, does("A", 0, "x"), does("W", 10, "weak"), does("S", 10, "strong"))

    assert of(result, "interrupt", "A").meta["by"] == "W"
    assert lines(result) == expected_lines(
        "0 start A, 10 interrupt A, 10 start S, 15 end S, 15 start W, 20 end W, 20 start A, 40 end A"
    )


@pytest.mark.req("ACT-INT-6")
def test_an_action_that_is_not_first_in_its_queues_interrupts_nothing() -> None:
    defs = {
        "x": {**SOFT, "priority": 3},
        "fixed": lasting(40, "bay"),
        "strong": lasting(5, "hall", "bay", preempts=True, priority=7),
        "weak": lasting(5, "hall", preempts=True, priority=5),
    }

    result = day(defs, does("A", 0, "x"), does("F", 0, "fixed"), does("S", 5, "strong"), does("W", 6, "weak"))

    assert diagnostic_rows(result) == [(5, "preempt_refused", "S"), (6, "preempt_refused", "W")]
    assert lines(result) == expected_lines(
        "0 start A, 0 start F, 30 end A, 40 end F, 40 start S, 45 end S, 45 start W, 50 end W"
    )


@pytest.mark.req("ACT-LOCK-3")
@pytest.mark.parametrize(
    ("priority", "starts"),
    [(0, ["0 start A", "30 start B", "60 start F"]), (1, ["0 start A", "30 start F", "35 start B"])],
)
def test_a_preempting_action_precedes_ordinary_ones_only_with_a_priority_above_0(
    priority: int, starts: list[str]
) -> None:
    defs = {"work": lasting(30, "hall"), "fire": lasting(5, "hall", preempts=True)}
    result = day(defs, does("A", 0, "work"), does("B", 5, "work"), does("F", 10, "fire", priority=priority))

    assert [row for row in lines(result) if "start" in row] == starts


@pytest.mark.req("ACT-INT-1")
def test_a_waiting_action_preempts_only_at_its_admission() -> None:
    defs = {
        "hard": lasting(10, "hall"),
        "x": SOFT,
        "loud": lasting(5, "hall", "bay", preempts=True, priority=9, interruptible=True),
        "bay": lasting(20, "bay", interruptible=False),
    }

    result = day(defs, does("B", 0, "bay"), does("A", 0, "x"), does("L", 5, "loud"))

    assert lines(result) == expected_lines("0 start B, 0 start A, 20 end B, 30 end A, 30 start L, 35 end L")


@pytest.mark.req("ACT-INT-6")
@pytest.mark.parametrize("named", ["*", ["soft", "firm"]])
def test_listed_verbs_are_interrupted_wherever_they_run(named: object) -> None:
    defs = {
        "soft": lasting(30, "garden", interruptible=True),
        "firm": lasting(30, "cellar"),
        "proud": lasting(30, "attic", interruptible=True, priority=9),
        "radio": lasting(5, "radio", preempts=True, priority=9, interrupts=named),
    }

    result = day(defs, does("F", 0, "firm"), does("S", 0, "soft"), does("P", 0, "proud"), does("R", 10, "radio"))

    assert of(result, "interrupt", "S").meta["by"] == "R"
    assert of(result, "start", "R").t == 10
    refusing = ["F", "P"] if named == "*" else ["F"]
    assert diagnostic_rows(result) == [(10, "interrupt_ignored", name) for name in refusing]


@pytest.mark.req("ACT-INT-6")
def test_with_an_empty_list_only_holders_of_its_locks_are_concerned() -> None:
    defs = {"soft": lasting(30, "garden", interruptible=True), "radio": lasting(5, preempts=True, priority=9)}

    result = day(defs, does("S", 0, "soft"), does("R", 10, "radio"))

    assert lines(result) == expected_lines("0 start S, 10 start R, 15 end R, 30 end S")


@pytest.mark.req("ACT-INT-6")
def test_if_one_holder_cannot_yield_listed_actions_are_not_interrupted() -> None:
    defs = {
        "firm": lasting(30, "radio"),
        "soft": lasting(30, "garden", interruptible=True),
        "radio": lasting(5, "radio", preempts=True, priority=9, interrupts="*"),
    }

    result = day(defs, does("F", 0, "firm"), does("S", 0, "soft"), does("R", 10, "radio"))

    assert "interrupt" not in " ".join(lines(result))
    assert diagnostic_rows(result) == [(10, "preempt_refused", "R")]


@pytest.mark.req("ACT-INT-7")
def test_waiting_held_finished_and_unknown_actions_are_not_interrupted() -> None:
    defs = {"x": SOFT}

    result = day(
        defs,
        does("A", 0, "x"),
        does("B", 1, "x"),
        interrupts=[alarm(5, "B"), alarm(10, "A", hold_min=20), alarm(15, "A"), alarm(100, "A"), alarm(3, "C")],
    )

    assert diagnostic_rows(result) == [
        (3, "interrupt_ignored", "C"),
        (5, "interrupt_ignored", "B"),
        (15, "interrupt_ignored", "A"),
        (100, "interrupt_ignored", "A"),
    ]


# Cancelling


@pytest.mark.req("ACT-LOCK-8")
def test_a_cancelled_waiter_frees_its_place() -> None:
    defs = {"x": SOFT, "both": lasting(5, "hall", "bay"), "bay": lasting(5, "bay")}

    result = day(defs, does("A", 0, "x"), does("B", 1, "both"), does("C", 2, "bay"), commands=[{"t": 7, "cancel": "B"}])

    assert lines(result) == expected_lines("0 start A, 7 start C, 12 end C, 30 end A")


PART = {"x": lasting(30, "hall", resources=[{"name": "parts", "amount": 1}])}


@pytest.mark.req("ACT-LOCK-8", "ACT-RES-3")
def test_a_cancelled_runner_is_dropped() -> None:
    defs = {"x": {**PART["x"], "interruptible": True}}

    result = day(
        defs, does("A", 0, "x"), does("B", 10, "x"), commands=[{"t": 10, "cancel": "A"}], resources={"parts": 1}
    )

    assert lines(result) == expected_lines("0 start A, 10 interrupt A, 10 start B, 40 end B")
    assert of(result, "interrupt", "A").meta["resume"] == "drop"


@pytest.mark.req("ACT-LOCK-8")
def test_a_runner_that_cannot_be_interrupted_is_not_cancelled_without_force() -> None:
    result = day(PART, does("A", 0, "x"), commands=[{"t": 10, "cancel": "A"}], resources={"parts": 1})

    assert lines(result) == expected_lines("0 start A, 30 end A")
    assert diagnostic_rows(result) == [(10, "NotInterruptible", "A")]
    assert "cancel it with force" in result.diagnostics[0].message


@pytest.mark.req("ACT-LOCK-8", "ACT-RES-3")
def test_with_force_it_ends_and_returns_its_reservations() -> None:
    force = {"t": 10, "cancel": "A", "force": True}

    result = day(PART, does("A", 0, "x"), does("B", 10, "x"), commands=[force], resources={"parts": 1})

    assert lines(result) == expected_lines("0 start A, 10 end A, 10 start B, 40 end B")
    end = of(result, "end", "A").meta
    assert (end["segment"], end["forced"], end["d_rem"]) == (0, True, 20)


@pytest.mark.req("ACT-LOCK-8", "ACT-EVT-1")
def test_a_forced_end_is_sorted_by_admission_among_the_ends_of_its_minute() -> None:
    defs = {"long": lasting(30), "short": lasting(10, may_trigger_event=True)}
    force = {"t": 10, "cancel": "A", "force": True}

    result = day(defs, does("A", 0, "long"), does("B", 0, "short", knowledge=["k"]), commands=[force])

    assert lines(result) == expected_lines("0 start A, 0 start B, 10 end A, 10 end B, 10 visibility_change B")
    assert [event.seq for event in result.events] == [0, 1, 2, 3, 4]


@pytest.mark.req("ACT-LOCK-8")
def test_force_is_for_cancelling_alone() -> None:
    result = day(PART, commands=[{"t": 10, "resume": "A", "force": True}])

    assert [str(diagnostic.code) for diagnostic in result.diagnostics] == ["InvalidCommand"]


# Actions interrupted by a preempting one are held until it ends

ALONE = {
    "work": lasting(60, interruptible=True),
    "alarm": lasting(10, preempts=True, priority=5, interruptible=True, interrupts=["work"]),
    "siren": lasting(5, preempts=True, priority=9, interrupts=["alarm"]),
}


@pytest.mark.req("ACT-INT-4", "ACT-INT-6")
def test_an_action_without_a_shared_lock_resumes_when_its_interrupter_ends() -> None:
    result = day(ALONE, does("A", 0, "work"), does("B", 20, "alarm"))

    assert lines(result) == expected_lines("0 start A, 20 interrupt A, 20 start B, 30 end B, 30 start A, 70 end A")
    assert of(result, "start", "A", 1).meta["waited"] == 0


@pytest.mark.req("ACT-INT-4")
def test_the_hold_of_a_definition_counts_from_the_end_of_the_cause() -> None:
    defs = {**ALONE, "alarm": {**ALONE["alarm"], "hold_min": 15}}

    result = day(defs, does("A", 0, "work"), does("B", 20, "alarm"))

    assert lines(result) == expected_lines("0 start A, 20 interrupt A, 20 start B, 30 end B, 45 start A, 85 end A")


@pytest.mark.req("ACT-INT-4")
def test_it_also_resumes_when_its_interrupter_is_interrupted() -> None:
    result = day(ALONE, does("A", 0, "work"), does("B", 20, "alarm"), does("C", 25, "siren"))

    assert lines(result) == expected_lines(
        "0 start A, 20 interrupt A, 20 start B, 25 interrupt B, 25 start A, 25 start C, 30 end C, 30 start B, 35 end B,"
        "65 end A"
    )


@pytest.mark.req("ACT-INT-4")
def test_it_also_resumes_when_its_interrupter_is_cancelled() -> None:
    result = day(ALONE, does("A", 0, "work"), does("B", 20, "alarm"), commands=[{"t": 25, "cancel": "B"}])

    assert lines(result) == expected_lines(
        "0 start A, 20 interrupt A, 20 start B, 25 interrupt B, 25 start A, 65 end A"
    )


@pytest.mark.req("ACT-INT-4", "ACT-CARRY-2")
def test_a_hold_lasts_over_midnight() -> None:
    first, second = outcome(ALONE, does("A", 1400, "work"), does("B", 1435, "alarm"), epochs=2).epochs

    assert lines(first) == expected_lines("1400 start A, 1435 interrupt A, 1435 start B")
    assert lines(second) == expected_lines("5 end B, 5 start A, 30 end A")


@pytest.mark.req("ACT-INT-4")
def test_why_names_the_cause_of_a_hold() -> None:
    world = live(ALONE)
    world.submit(does("A", 0, "work"), does("B", 20, "alarm"))
    world.advance_to(25)

    why = world.why("A")
    assert (why.code, why.facts["by"], why.facts["until"]) == ("held", "B", "2025-07-01T00:30:00")
    assert world.doing("ann")[0].until == 30


@pytest.mark.req("ACT-INT-6", "ACT-DATA-7")
@pytest.mark.parametrize("idle", [{"interrupts": ["work"]}, {"hold_min": 5}])
def test_preemption_options_are_refused_for_other_actions(idle: dict[str, Any]) -> None:
    (name,) = idle

    with pytest.raises(InvalidSetting, match=f"{name} has no effect without `preempts: true`") as refused:
        day({"work": lasting(5, **idle)})

    assert refused.value.details["path"] == f"$.action_defs.work.{name}"


@pytest.mark.req("ACT-LOCK-8")
def test_a_cancelled_action_does_not_return_when_its_hold_ends() -> None:
    result = day(
        {"x": SOFT}, does("A", 0, "x"), interrupts=[alarm(5, "A", hold_min=10)], commands=[{"t": 8, "cancel": "A"}]
    )

    assert lines(result) == expected_lines("0 start A, 5 interrupt A")
    assert diagnostic_rows(result) == []


@pytest.mark.req("ACT-LOCK-8")
def test_a_hold_that_ends_in_the_minute_of_a_cancel_does_not_resume_the_action() -> None:
    result = day(
        {"x": SOFT}, does("A", 0, "x"), interrupts=[alarm(5, "A", hold_min=3)], commands=[{"t": 8, "cancel": "A"}]
    )

    assert lines(result) == expected_lines("0 start A, 5 interrupt A")


@pytest.mark.req("ACT-LOCK-8")
def test_a_suspended_action_can_be_cancelled() -> None:
    defs = {"x": {**SOFT, "resume": "manual", "resources": [{"name": "parts", "amount": 1}]}}

    result = day(
        defs,
        does("A", 0, "x"),
        interrupts=[alarm(5, "A")],
        commands=[{"t": 8, "cancel": "A"}, {"t": 9, "resume": "A"}],
        resources={"parts": 1},
    )

    assert lines(result) == expected_lines("0 start A, 5 interrupt A")
    assert diagnostic_rows(result) == [(9, "NotResumable", "A")]
    assert result.resources == {"parts": {"available": 1, "reserved": 0}}


@pytest.mark.req("ACT-LOCK-8")
@pytest.mark.parametrize("stage", ["running", "waiting"])
def test_an_action_cancelled_in_this_minute_cannot_be_cancelled_again(stage: str) -> None:
    target = "A" if stage == "running" else "B"

    result = day(
        {"x": SOFT},
        does("A", 0, "x"),
        does("B", 0, "x"),
        commands=[{"t": 5, "cancel": target}, {"t": 5, "cancel": target}],
    )

    assert diagnostic_rows(result) == [(5, "NotCancellable", target)]


@pytest.mark.req("ACT-LOCK-8")
def test_an_action_dropped_in_this_minute_cannot_be_cancelled() -> None:
    defs = {"x": {**SOFT, "resume": "drop", "resources": [{"name": "parts", "amount": 1}]}}

    result = day(
        defs, does("A", 0, "x"), interrupts=[alarm(5, "A")], commands=[{"t": 5, "cancel": "A"}], resources={"parts": 1}
    )

    assert diagnostic_rows(result) == [(5, "NotCancellable", "A")]
    assert result.resources == {"parts": {"available": 1, "reserved": 0}}


@pytest.mark.req("ACT-LOCK-7")
def test_an_exclusive_actor_does_one_action_at_a_time() -> None:
    defs = {"x": lasting(10), "y": lasting(5)}
    actions = (does("A", 0, "x"), does("B", 1, "y"), does("C", 2, "y", actor="bob"))

    free, exclusive = (day(defs, *actions, options={"actor_exclusive": choice}) for choice in (False, True))

    assert lines(free) == expected_lines("0 start A, 1 start B, 2 start C, 6 end B, 7 end C, 10 end A")
    assert lines(exclusive) == expected_lines("0 start A, 2 start C, 7 end C, 10 end A, 10 start B, 15 end B")
    assert "actor:ann" in exclusive.locks


@pytest.mark.req("ACT-LOCK-1")
def test_repeated_locks_count_once_and_are_sorted_by_code_point() -> None:
    defs = {"x": lasting(5, "é", "z", "Z", "a", "z"), "y": lasting(5, "z")}

    result = outcome(defs, does("A", 1438, "x"), does("B", 1438, "y"))

    (running,) = result.as_json()["carry"]["running"]
    assert running["locks"] == ["Z", "a", "z", "é"]
    assert result.epochs[0].locks["z"] == {"held_by": "A", "queue": ["B"]}


@pytest.mark.req("ACT-LOCK-6")
def test_a_resumed_segment_waits_although_its_verb_does_not() -> None:
    defs = {
        "dash": lasting(10, "hall", wait="fail", interruptible=True),
        "loud": lasting(5, "hall", preempts=True, priority=5),
    }

    result = day(defs, does("D", 0, "dash"), does("L", 4, "loud"))

    assert codes(result) == {}
    assert lines(result) == expected_lines("0 start D, 4 interrupt D, 4 start L, 9 end L, 9 start D, 15 end D")


@pytest.mark.req("ACT-EVT-4")
def test_interrupts_and_starts_due_at_the_end_are_first_in_the_next_epoch() -> None:
    defs = {"x": lasting(100, "hall", interruptible=True), "y": lasting(5)}

    first, second = outcome(
        defs, does("A", 1400, "x"), does("B", 1440, "y"), interrupts=[alarm(1440, "A")], epochs=2
    ).epochs

    assert lines(first) == ["1400 start A"]
    assert lines(second) == expected_lines("0 interrupt A, 0 start A, 0 start B, 5 end B, 60 end A")
    assert second.as_json()["carried_in"] == [{"action_id": "A", "remaining": 60}]


@pytest.mark.req("ACT-RES-1", "ACT-RES-3")
def test_products_are_available_at_the_end_of_an_action() -> None:
    defs = {
        "bake": lasting(
            10, resources=[{"name": "flour", "amount": "0.3"}, {"name": "bread", "amount": 2, "produce": True}]
        ),
        "eat": lasting(1, resources=[{"name": "bread", "amount": 2}]),
    }

    result = day(defs, does("B", 0, "bake"), does("E", 9, "eat"), does("F", 10, "eat"), resources={"flour": "0.3"})

    assert codes(result) == {"E": "InsufficientResources"}
    assert lines(result) == expected_lines("0 start B, 10 end B, 10 start F, 11 end F")
    assert {name: row["available"] for name, row in result.resources.items()} == {"bread": 0, "flour": 0}


@pytest.mark.req("ACT-RES-2")
def test_if_one_resource_is_short_nothing_is_reserved() -> None:
    needs = [{"name": "wood", "amount": 1}, {"name": "nails", "amount": 5}, {"name": "nails", "amount": 5}]

    result = day({"x": lasting(5, resources=needs)}, does("A", 0, "x"), resources={"wood": 1, "nails": 9})

    assert codes(result) == {"A": "InsufficientResources"}
    assert "nails" in result.rejections[0].message
    assert "wood" not in result.rejections[0].message
    assert {name: row["available"] for name, row in result.resources.items()} == {"wood": 1, "nails": 9}


# Alarms for a minute that has already run

HALL = {
    "work": lasting(60, "hall", interruptible=True),
    "radio": lasting(10, "hall", preempts=True, priority=5, interruptible=True),
    "siren": lasting(2, "hall", preempts=True, priority=9),
}


def live(defs: dict[str, Any], **more: Any) -> LiveWorld:
    return LiveWorld({"epoch": EPOCH, "action_defs": defs, **more})


def event_lines(events: Iterable[object]) -> list[str]:
    return [line(event) for event in events if isinstance(event, WORLD_EVENTS)]


@pytest.mark.req("ACT-USE-7", "ACT-INT-6")
def test_an_alarm_of_the_present_minute_interrupts_actions_started_in_it() -> None:
    world = live(HALL)
    world.submit(does("A", 10, "work"))
    world.advance_to(10)
    world.submit(does("B", 10, "radio"))

    assert event_lines(world.advance_to(100)) == expected_lines(
        "10 interrupt A, 10 start B, 20 end B, 20 start A, 80 end A",
    )


@pytest.mark.req("ACT-USE-7", "ACT-EVT-1")
def test_a_second_start_within_a_minute_is_interrupted_in_the_next() -> None:
    world = live({**HALL, "call": lasting(1, preempts=True, priority=5, interrupts=["work"])})
    world.submit(does("A", 0, "work"))
    world.advance_to(10)
    world.submit(does("B", 10, "call"))
    assert event_lines(world.advance_to(10)) == expected_lines("10 interrupt A, 10 start B")
    world.cancel("B", force=True)
    assert event_lines(world.advance_to(10)) == expected_lines("10 end B, 10 start A")
    world.submit(does("C", 10, "siren"), does("D", 10, "call"))

    assert event_lines(world.advance_to(12)) == expected_lines(
        "10 start D, 11 end D, 11 interrupt A, 11 start C",
    )
    assert event_lines(world.advance_to(70)) == expected_lines("13 end C, 13 start A, 62 end A")


@pytest.mark.req("ACT-USE-7")
def test_a_request_interrupts_actions_started_in_its_minute_or_the_next() -> None:
    world = live(HALL)
    world.submit(does("A", 10, "work"))
    world.advance_to(10)
    for _ in range(2):
        world.interrupt("A", 9, source="bell")
        world.advance_to(10)

    assert event_lines(world.advance_to(200)) == expected_lines("11 interrupt A, 11 start A, 70 end A")


@pytest.mark.req("ACT-USE-7")
def test_a_preemption_deferred_to_the_next_minute_is_saved() -> None:
    world = live(HALL)
    world.submit(does("A", 0, "work"))
    world.advance_to(10)
    world.interrupt("A", 9)
    world.advance_to(10)
    world.submit(does("C", 10, "siren"))
    world.advance_to(10)
    again = World.from_state(world.config, world.state())

    assert again.state() == world.state()
    expected = expected_lines("11 interrupt A, 11 start C, 13 end C, 13 start A")
    assert event_lines(again.apply(Advance(20)).events) == event_lines(world.advance_to(20)) == expected
    assert again.why({"action": "A"}).code == "running"


def test_a_start_of_the_current_pass_can_be_undone_before_its_event() -> None:
    """A rejection in the pass of starts can trigger an alarm after other actions started."""

    def stubborn() -> Any:
        outcome = yield {"actor": "bo", "verb": "dash"}
        assert outcome["rejected"] == "CannotAcquireLock"
        yield {"actor": "bo", "verb": "siren"}

    defs = {**HALL, "work": {**HALL["work"], "locks": ["hall", "desk"]}, "dash": lasting(5, "desk", wait="fail")}
    world = live(defs)
    world.submit(does("A", 0, "work"))
    world.run(stubborn(), "bo")

    assert event_lines(world.advance_to(100)) == expected_lines("0 start bo-1, 2 end bo-1, 2 start A, 62 end A")


@pytest.mark.req("ACT-INT-2")
def test_a_refused_preemption_names_the_obstacle() -> None:
    stiff = {**HALL["work"], "interruptible": False}
    strong = {**HALL["work"], "priority": 7}

    for work, why in ((stiff, "it cannot be interrupted"), (strong, "its priority 7 is not below 5")):
        (one,) = day({**HALL, "work": work}, does("A", 0, "work"), does("B", 5, "radio")).diagnostics
        assert one.message == f"B waits: A does not yield, {why}"


@pytest.mark.req("ACT-PERF-1")
def test_a_preempting_admission_examines_only_conflicting_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    real = interrupting._refusal_facts

    def counted(action: Any, priority: int) -> Any:
        looked.append(action.instance.id)
        return real(action, priority)

    def fail(_: WorldState) -> Any:
        raise AssertionError("a minute must not scan all running actions")

    monkeypatch.setattr(interrupting, "_refusal_facts", counted)
    monkeypatch.setattr(WorldState, "running", fail)
    world = World.create(
        {
            "epoch": EPOCH,
            "action_defs": {
                "work": lasting(600, interruptible=True),
                "nap": lasting(600, interruptible=True),
                "radio": lasting(1, preempts=True, priority=5, interrupts=["nap"]),
            },
        }
    )
    world.apply(Submit((*(does(f"A{n}", 0, "work") for n in range(300)), does("N", 0, "nap"))))
    world.apply(Submit(tuple(does(f"B{n}", 10 + n, "radio") for n in range(100))))
    events = world.apply(Advance(200)).events

    assert sum(isinstance(event, Interrupted) for event in events) == 50  # the other half meets it held
    assert set(looked) == {"N"}
