"""Locks with a capacity, and queues of resources."""

from typing import Any

import pytest

from pendula.actions import InvalidSetting, LiveWorld, World
from pendula.kernel.canonical import decode
from tests.actions.worlds import (
    EPOCH,
    NEXT_EPOCH,
    codes,
    day,
    diagnostic_rows,
    does,
    expected_lines,
    lasting,
    lines,
    of,
    outcome,
)

HALL: dict[str, Any] = {"locks": {"hall": {"capacity": 2}}}


# Capacity


@pytest.mark.req("ACT-USE-1")
def test_a_lock_has_as_many_holders_as_its_capacity() -> None:
    result = day({"meet": lasting(10, "hall")}, *(does(f"A{n}", 0, "meet") for n in range(5)), **HALL)

    assert lines(result) == expected_lines(
        "0 start A0, 0 start A1, 10 end A0, 10 end A1, 10 start A2, 10 start A3, "
        "20 end A2, 20 end A3, 20 start A4, 30 end A4"
    )


@pytest.mark.req("ACT-USE-1", "ACT-LOCK-2", "ACT-LOCK-4")
def test_the_queue_of_a_shared_lock_has_no_overtaking() -> None:
    defs = {"meet": lasting(30, "hall"), "both": lasting(5, "hall", "desk"), "write": lasting(50, "desk")}
    result = day(defs, does("W", 0, "write"), does("A", 0, "meet"), does("B", 5, "both"), does("C", 6, "meet"), **HALL)

    # A place in the hall stays free: it is reserved for B, which waits for the desk.
    assert lines(result)[:4] == expected_lines("0 start W, 0 start A, 30 end A, 50 end W")
    assert lines(result)[4:6] == expected_lines("50 start B, 50 start C")


@pytest.mark.req("ACT-USE-1", "ACT-DATA-4")
def test_the_row_of_a_lock_for_several_lists_its_holders() -> None:
    long = {"meet": lasting(2000, "hall"), "dig": lasting(2000, "pit")}
    result = outcome(long, *(does(f"A{n}", 0, "meet") for n in range(3)), does("D", 0, "dig"), **HALL)

    assert result.epochs[0].locks == {
        "hall": {"held_by": ["A0", "A1"], "queue": ["A2"], "capacity": 2},
        "pit": {"held_by": "D", "queue": []},
    }
    carried = outcome(long, epoch=NEXT_EPOCH, carry=result.carry, **HALL).epochs[0]
    assert lines(carried) == expected_lines("560 end A0, 560 end A1, 560 end D, 560 start A2")


@pytest.mark.req("ACT-USE-1", "ACT-CARRY-4")
def test_a_carry_with_more_holders_than_places_is_refused() -> None:
    result = outcome({"meet": lasting(2000, "hall")}, does("A", 0, "meet"), does("B", 0, "meet"), **HALL)

    with pytest.raises(InvalidSetting.__mro__[1], match="holds_its_locks"):
        outcome({"meet": lasting(2000, "hall")}, epoch=NEXT_EPOCH, carry=result.carry)


@pytest.mark.req("ACT-USE-1", "ACT-INT-6")
def test_a_full_lock_loses_its_lowest_priority_holder_and_of_equals_the_latest() -> None:
    soft = lasting(60, "hall", interruptible=True)
    defs = {"meet": soft, "talk": {**soft, "priority": 2}, "fire": lasting(5, "hall", preempts=True, priority=5)}

    weakest = day(defs, does("M", 0, "meet"), does("T", 0, "talk"), does("F", 10, "fire"), **HALL)
    latest = day(defs, does("M", 0, "meet"), does("N", 0, "meet"), does("F", 10, "fire"), **HALL)
    hall = day(defs, does("M", 0, "meet"), does("F", 10, "fire"), **HALL)

    assert [line for line in lines(weakest) if "interrupt" in line] == ["10 interrupt M"]
    assert [line for line in lines(latest) if "interrupt" in line] == ["10 interrupt N"]
    assert lines(hall)[:2] == expected_lines("0 start M, 10 start F")


@pytest.mark.req("ACT-USE-1", "ACT-INT-6")
def test_an_interrupted_action_frees_a_place_in_each_of_its_locks() -> None:
    soft = {"interruptible": True}
    defs = {
        "both": lasting(60, "hall", "desk", **soft),
        "meet": lasting(60, "hall", **soft),
        "fire": lasting(5, "hall", "desk", preempts=True, priority=5),
    }
    result = day(defs, does("B", 0, "both"), does("M", 0, "meet"), does("F", 10, "fire"), **HALL)

    assert [line for line in lines(result) if "interrupt" in line] == ["10 interrupt B"]


@pytest.mark.req("ACT-USE-1", "ACT-INT-6")
def test_a_full_lock_without_a_yielding_holder_refuses_the_preemption() -> None:
    defs = {"meet": lasting(60, "hall"), "fire": lasting(5, "hall", preempts=True, priority=5)}
    result = day(defs, does("M", 0, "meet"), does("N", 0, "meet"), does("F", 10, "fire"), **HALL)

    assert diagnostic_rows(result) == [(10, "preempt_refused", "F")]


@pytest.mark.req("ACT-USE-1")
@pytest.mark.parametrize(
    "rule", [{"capacity": 0}, {"capacity": 1.5}, {"capacity": True}, {"capasity": 2}, 3, {"capacity": 10**7}]
)
def test_a_capacity_is_a_whole_number_from_one(rule: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"capacity|object"):
        day({"meet": lasting(5, "hall")}, locks={"hall": rule})


@pytest.mark.req("ACT-USE-1")
def test_why_names_the_holder_of_a_shared_lock_that_ends_first() -> None:
    world = LiveWorld({"epoch": EPOCH, "action_defs": {"meet": lasting(10, "hall")}, **HALL})
    world.submit(does("A", 0, "meet"), does("B", 3, "meet"), does("C", 4, "meet"))
    world.advance_to(5)

    assert (
        world.why("C").sentence
        == "C waits for hall: 2 of 2 places are taken, the first is free at 2025-07-01 00:10 when A ends."
    )


# Resources


def uses(minutes: int, amount: Any, *locks: str, **more: Any) -> dict[str, Any]:
    needs = [{"name": "parts", "amount": amount, **more.pop("need", {})}]
    return lasting(minutes, *locks, resources=needs, on_shortage="wait", **more)


MAKE = lasting(10, resources=[{"name": "parts", "amount": 2, "produce": True}])


@pytest.mark.req("ACT-USE-2")
def test_an_instance_waits_for_its_resources_and_starts_in_the_minute_they_are_there() -> None:
    result = day({"build": uses(5, 2), "make": MAKE}, does("B", 0, "build"), does("M", 3, "make"))

    assert lines(result) == expected_lines("3 start M, 13 end M, 13 start B, 18 end B")
    assert of(result, "start", "B").meta["waited"] == 13
    assert codes(result) == {}
    assert result.resources == {"parts": {"available": 0, "reserved": 0}}


@pytest.mark.req("ACT-USE-2", "ACT-RES-2")
def test_on_shortage_defaults_to_refuse() -> None:
    refuses = {**uses(5, 2), "on_shortage": "refuse"}

    assert codes(day({"build": refuses}, does("B", 0, "build"))) == {"B": "InsufficientResources"}
    del refuses["on_shortage"]
    assert codes(day({"build": refuses}, does("B", 0, "build"))) == {"B": "InsufficientResources"}


@pytest.mark.req("ACT-USE-2", "ACT-LOCK-4")
def test_the_queue_of_a_resource_has_no_overtaking() -> None:
    defs = {"large": uses(5, 3), "small": uses(5, 1), "make": MAKE}
    result = day(
        defs, does("L", 0, "large"), does("S", 1, "small"), does("M", 5, "make"), does("N", 30, "make"),
        resources={"parts": 1},
    )  # fmt: skip

    # One part stays available: it is reserved for L, which needs three; then two are left for S.
    assert lines(result) == expected_lines(
        "5 start M, 15 end M, 15 start L, 20 end L, 30 start N, 40 end N, 40 start S, 45 end S"
    )


@pytest.mark.req("ACT-USE-2", "ACT-LOCK-3")
def test_a_preempting_instance_is_first_in_the_queue_of_a_resource() -> None:
    defs = {"build": uses(5, 2), "fire": uses(5, 2, preempts=True, priority=5), "make": MAKE}
    result = day(defs, does("B", 0, "build"), does("F", 1, "fire"), does("M", 5, "make"), does("N", 30, "make"))

    assert [line for line in lines(result) if "start" in line and line[-1] in "BF"] == expected_lines(
        "15 start F, 40 start B"
    )


@pytest.mark.req("ACT-USE-2")
def test_a_returned_resource_goes_to_the_waiting() -> None:
    refund = uses(30, 1, need={"refund": True})
    defs = {"drill": refund, "soft": {**refund, "interruptible": True, "resume": "drop"}}
    ends = day(defs, does("A", 0, "drill"), does("B", 5, "drill"), resources={"parts": 1})
    dropped = day(
        defs, does("A", 0, "soft"), does("B", 5, "drill"), resources={"parts": 1},
        interrupts=[{"t": 9, "target": "A", "priority": 1}],
    )  # fmt: skip
    cancelled = day(
        defs, does("A", 0, "soft"), does("B", 5, "drill"), resources={"parts": 1}, commands=[{"t": 8, "cancel": "A"}]
    )

    assert "30 start B" in lines(ends)
    assert "9 start B" in lines(dropped)
    assert "8 start B" in lines(cancelled)


@pytest.mark.req("ACT-USE-2")
def test_an_action_that_leaves_the_queue_of_a_resource_returns_nothing() -> None:
    defs = {"large": uses(5, 9), "small": uses(5, 1)}
    result = day(
        defs, does("L", 0, "large"), does("S", 1, "small"), resources={"parts": 1}, commands=[{"t": 7, "cancel": "L"}]
    )

    assert lines(result) == expected_lines("7 start S, 12 end S")
    assert result.resources == {"parts": {"available": 0, "reserved": 0}}


@pytest.mark.req("ACT-USE-2", "ACT-INT-6")
def test_an_action_that_waits_for_resources_interrupts_nothing() -> None:
    defs = {"work": lasting(60, "hall", interruptible=True), "fire": uses(5, 2, "hall", preempts=True, priority=5)}
    result = day(defs, does("W", 0, "work"), does("F", 5, "fire"))

    assert lines(result) == expected_lines("0 start W, 60 end W")
    assert diagnostic_rows(result) == [(5, "preempt_refused", "F")]


@pytest.mark.req("ACT-USE-2", "ACT-LOCK-6")
def test_an_action_that_does_not_wait_for_locks_does_not_wait_for_resources() -> None:
    assert codes(day({"dash": uses(5, 2, wait="fail")}, does("D", 0, "dash"))) == {"D": "InsufficientResources"}


@pytest.mark.req("ACT-USE-2", "ACT-CARRY-2")
def test_waits_for_resources_are_saved_and_carried() -> None:
    defs = {"build": uses(5, 2), "make": MAKE}
    first = outcome(defs, does("B", 1000, "build"), does("M", 1435, "make"))
    second = outcome(defs, epoch=NEXT_EPOCH, carry=first.carry).epochs[0]
    world = LiveWorld({"epoch": EPOCH, "action_defs": defs})
    world.submit(does("B", 0, "build"), does("M", 3, "make"))
    world.advance_to(5)
    again = World.from_state(world.config, world.state())

    assert lines(second) == expected_lines("5 end M, 5 start B, 10 end B")
    assert of(second, "start", "B").meta["waited"] == 445
    assert again.state() == world.state()
    state: Any = decode(world.state())
    assert state["waiting_for_resources"] == ["B"]


@pytest.mark.req("ACT-USE-2")
def test_why_names_the_short_resource() -> None:
    world = LiveWorld({"epoch": EPOCH, "action_defs": {"build": uses(5, "2.5")}, "resources": {"parts": 1}})
    world.submit(does("A", 0, "build"), does("B", 0, "build"))
    world.advance_to(5)

    assert world.why("A").sentence == "A waits for parts, 2.5 needed and 1 available."
    assert world.why("B").sentence == "B waits for parts, 2.5 needed and 1 available; A is next in line."
    assert world.why("B").code == "waits_for_resources"
