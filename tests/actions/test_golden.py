"""The golden tables of the requirement document, one test each."""

from typing import Any

import pytest

from pendula.actions import Advance, Submit, World
from pendula.actions.runs.batch import config_of
from tests.actions.worlds import (
    EPOCH,
    codes,
    day,
    diagnostic_rows,
    document,
    does,
    expected_lines,
    lasting,
    line,
    lines,
    of,
    outcome,
)

STANDARD: dict[str, Any] = {
    "clean": lasting(60),
    "repair": lasting(45, "workshop", effort="high"),
    "radio": lasting(5, "radio", effort="low", may_trigger_event=True),
    "saw": lasting(40, "workshop"),
}
A1 = does("A1", "2025-07-01T08:05:00", "clean")
A2 = does("A2", "2025-07-01T08:10:00", "repair")
A3 = does("A3", "2025-07-01T08:12:00", "radio", knowledge=["msg-ally-1"])

LOCK_DEFS = {
    "W": lasting(30, "workshop"),
    "R": lasting(50, "radio"),
    "B": lasting(20, "workshop", "radio"),
    "C": lasting(10, "radio"),
    "D": lasting(10, "workshop"),
}
LOCK_ACTIONS = (does("W", 0), does("R", 0), does("B", 5), does("C", 6), does("D", 7))


@pytest.mark.req("ACT-LOCK-2", "ACT-LOCK-4")
def test_an_idle_lock_is_reserved_for_the_first_in_its_queue() -> None:
    result = day(LOCK_DEFS, *LOCK_ACTIONS)

    assert lines(result) == expected_lines(
        "0 start W, 0 start R, 30 end W, 50 end R, 50 start B, 70 end B, 70 start C, 70 start D, 80 end C, 80 end D"
    )


@pytest.mark.req("ACT-DATA-4", "ACT-LOCK-3")
def test_the_lock_table_shows_holders_and_queues_in_order() -> None:
    world = World.create(config_of(document(LOCK_DEFS)))
    world.apply(Submit(LOCK_ACTIONS))
    world.apply(Advance(10))

    assert world.current.locks.rows() == {
        "radio": {"held_by": "R", "queue": ["B", "C"]},
        "workshop": {"held_by": "W", "queue": ["B", "D"]},
    }


@pytest.mark.req("ACT-DUR-5", "ACT-EVT-5", "ACT-TIME-2")
def test_the_three_standard_examples() -> None:
    result = day(STANDARD, A1, A2, A3)

    assert [f"{line(event)} {event.at[11:16]}" for event in result.events] == expected_lines(
        "485 start A1 08:05, 490 start A2 08:10, 492 start A3 08:12, 497 end A3 08:17,"
        "497 visibility_change A3 08:17, 540 end A2 09:00, 545 end A1 09:05"
    )
    assert [of(result, "start", name).meta["d"] for name in ("A1", "A2", "A3")] == [60, 50, 5]
    assert of(result, "visibility_change", "A3").meta["knowledge"] == "msg-ally-1"


@pytest.mark.req("ACT-EVT-5")
def test_actions_without_knowledge_reveal_nothing() -> None:
    result = day(STANDARD, A1, A2, {**A3, "knowledge": []})

    assert len(result.events) == 6
    assert "visibility_change" not in " ".join(lines(result))


@pytest.mark.req("ACT-DATA-3")
def test_a_repair_waits_for_the_workshop() -> None:
    result = day(STANDARD, does("A0", "2025-07-01T08:00:00", "saw"), A2)

    assert lines(result) == expected_lines("480 start A0, 520 end A0, 520 start A2, 570 end A2")
    assert of(result, "start", "A2").meta["waited"] == 30
    assert of(result, "start", "A2").at == "2025-07-01T08:40:00"
    assert of(result, "end", "A2").at == "2025-07-01T09:30:00"


@pytest.mark.req("ACT-EVT-1", "ACT-INT-4")
def test_ends_interrupts_changes_and_starts_of_one_minute_are_ordered() -> None:
    defs = {
        "A": lasting(10, "x", may_trigger_event=True),
        "D": lasting(20, "y", interruptible=True),
        "B": lasting(4, "x"),
        "C": lasting(1, "x"),
    }
    alarm = {"t": 10, "target": "D", "priority": 1, "hold_min": 0}

    result = day(defs, does("A", 0, knowledge=["k1"]), does("D", 0), does("B", 3), does("C", 10), interrupts=[alarm])

    assert lines(result) == expected_lines(
        "0 start A, 0 start D, 10 end A, 10 interrupt D, 10 visibility_change A, 10 start D, 10 start B, 14 end B,"
        "14 start C, 15 end C, 20 end D"
    )
    assert of(result, "interrupt", "D").meta["d_rem"] == 10
    assert of(result, "start", "D", 1).meta["d"] == 10


HALL = {
    "A": lasting(60, "hall", interruptible=True),
    "B": lasting(10, "hall", preempts=True, priority=5),
    "W": lasting(15, "hall"),
}


@pytest.mark.req("ACT-INT-1", "ACT-INT-2", "ACT-INT-3", "ACT-INT-4")
def test_a_preempting_action_interrupts_the_holder_which_resumes_after_it() -> None:
    result = day(HALL, does("A", 0), does("B", 25))

    assert lines(result) == expected_lines("0 start A, 25 interrupt A, 25 start B, 35 end B, 35 start A, 70 end A")
    broken_off = of(result, "interrupt", "A").meta
    assert (broken_off["d_rem"], broken_off["by"], broken_off["resume"]) == (35, "B", "auto")
    assert of(result, "start", "A", 1).meta["d"] == 35


@pytest.mark.req("ACT-INT-4")
def test_a_waiting_action_stays_behind_an_interrupted_one() -> None:
    result = day(HALL, does("A", 0), does("W", 10), does("B", 25))

    assert lines(result) == expected_lines(
        "0 start A, 25 interrupt A, 25 start B, 35 end B, 35 start A, 70 end A, 70 start W, 85 end W"
    )


@pytest.mark.req("ACT-INT-2", "ACT-INT-6", "ACT-LOCK-3")
def test_equal_priority_never_preempts_but_precedes_normal_waiters() -> None:
    defs = {**HALL, "A": {**HALL["A"], "priority": 5}}

    result = day(defs, does("A", 0), does("W", 10), does("B", 25))

    assert lines(result) == expected_lines("0 start A, 60 end A, 60 start B, 70 end B, 70 start W, 85 end W")
    assert diagnostic_rows(result) == [(25, "preempt_refused", "B")]


@pytest.mark.req("ACT-INT-1", "ACT-INT-4")
def test_interrupts_nest() -> None:
    defs = {
        "A": HALL["A"],
        "B": lasting(20, "hall", preempts=True, priority=5, interruptible=True),
        "C": lasting(5, "hall", preempts=True, priority=9),
    }

    result = day(defs, does("A", 0), does("B", 10), does("C", 15))

    assert lines(result) == expected_lines(
        "0 start A, 10 interrupt A, 10 start B, 15 interrupt B, 15 start C, 20 end C, 20 start B, 35 end B,"
        "35 start A, 85 end A"
    )
    assert of(result, "interrupt", "A").meta["d_rem"] == 50
    assert of(result, "interrupt", "B").meta["d_rem"] == 15


@pytest.mark.req("ACT-INT-6")
def test_if_one_holder_cannot_yield_none_is_interrupted() -> None:
    defs = {
        "A": lasting(30, "x", interruptible=True),
        "N": lasting(40, "y"),
        "P": lasting(5, "x", "y", preempts=True, priority=9),
    }

    result = day(defs, does("A", 0), does("N", 0), does("P", 10))

    assert lines(result) == expected_lines("0 start A, 0 start N, 30 end A, 40 end N, 40 start P, 45 end P")
    assert diagnostic_rows(result) == [(10, "preempt_refused", "P")]


@pytest.mark.req("ACT-INT-1", "ACT-INT-4", "ACT-INT-7")
def test_an_alarm_interrupts_one_action_and_skips_an_uninterruptible_one() -> None:
    defs = {"A": HALL["A"], "N": lasting(60, "bay"), "K": lasting(5, "hall")}
    alarms = [{"t": 20, "target": name, "priority": 9, "hold_min": 15, "source": "alarm"} for name in ("A", "N")]

    result = day(defs, does("A", 0), does("N", 0), does("K", 22), interrupts=alarms)

    assert lines(result) == expected_lines(
        "0 start A, 0 start N, 20 interrupt A, 22 start K, 27 end K, 35 start A, 60 end N, 75 end A"
    )
    assert of(result, "interrupt", "A").meta["d_rem"] == 40
    assert of(result, "interrupt", "A").meta["by"] == "alarm"
    assert of(result, "start", "A", 1).meta["waited"] == 0
    assert diagnostic_rows(result) == [(20, "interrupt_ignored", "N")]


PARTS = {
    "X": lasting(10, resources=[{"name": "parts", "amount": 2}]),
    "Y": lasting(10, resources=[{"name": "parts", "amount": 2}]),
    "Z": lasting(10, resources=[{"name": "parts", "amount": 1}]),
}


@pytest.mark.req("ACT-RES-1", "ACT-RES-2", "ACT-RES-3")
def test_parts_are_reserved_at_admission_and_used_up_at_the_end() -> None:
    result = day(PARTS, does("X", 0), does("Y", 5), does("Z", 11), resources={"parts": 3})

    assert codes(result) == {"Y": "InsufficientResources"}
    assert "parts: 2 needed, 1 available" in result.rejections[0].message
    assert lines(result) == expected_lines("0 start X, 10 end X, 11 start Z, 21 end Z")
    assert result.resources == {"parts": {"available": 0, "reserved": 0}}


@pytest.mark.req("ACT-RES-3")
def test_refunded_parts_are_available_for_an_admission_of_the_same_minute() -> None:
    defs = {**PARTS, "X": lasting(10, resources=[{"name": "parts", "amount": 2, "refund": True}])}

    result = day(defs, does("X", 0), does("Y", 10), resources={"parts": 3})

    assert lines(result) == expected_lines("0 start X, 10 end X, 10 start Y, 20 end Y")


CARRIED = {"V": lasting(120, "gate"), "Y": lasting(40, "dock"), "X": lasting(30, "gate"), "Z": lasting(10, "dock")}
EVENING = (
    does("V", "2025-07-01T23:20:00"),
    does("Y", "2025-07-01T23:20:00"),
    does("X", "2025-07-01T23:30:00"),
    does("Z", "2025-07-01T23:35:00"),
)


@pytest.mark.req("ACT-CARRY-1", "ACT-CARRY-2", "ACT-EVT-4")
def test_running_and_waiting_actions_continue_the_next_day() -> None:
    first, second = outcome(CARRIED, *EVENING, epochs=2).epochs

    assert lines(first) == expected_lines("1400 start V, 1400 start Y, 1440 end Y")
    assert first.locks == {
        "dock": {"held_by": None, "queue": ["Z"]},
        "gate": {"held_by": "V", "queue": ["X"]},
    }
    assert second.as_json()["carried_in"] == [{"action_id": "V", "remaining": 80}]
    assert lines(second) == expected_lines("0 start Z, 10 end Z, 80 end V, 80 start X, 110 end X")


@pytest.mark.req("ACT-TIME-1")
def test_the_epoch_of_the_golden_tables_lasts_a_day() -> None:
    result = day({}).as_json()

    assert result["epoch"] == EPOCH
