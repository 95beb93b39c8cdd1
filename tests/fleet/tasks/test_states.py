"""States of a task: transitions in the table happen, all others are errors."""

import pytest

from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.events import TaskMoved, task_events
from pendula.fleet.tasks.model import ALLOWED, OVER, DispatchStep, Transition, check
from tests.fleet.tasks.paper import NORTH_SOUTH, Paper

PAIRS = [(before, after) for before in (None, *TaskState) for after in TaskState]


@pytest.mark.req("FLT-TASK-13")
@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_transition_is_in_the_table_or_an_error(before: TaskState | None, after: TaskState) -> None:
    if after in ALLOWED[before]:
        check(before, after)
        return
    with pytest.raises(AssertionError, match="does not get from"):
        check(before, after)


@pytest.mark.req("FLT-TASK-13")
def test_the_table_allows_exactly_the_listed_transitions() -> None:
    onward = {
        None: "WAITING",
        "WAITING": "CANCELLED HELD READY",
        "READY": "ASSIGNED CANCELLED HELD PENDING_PREEMPT WAITING",
        "ASSIGNED": "CANCELLED HELD IN_PROGRESS READY",
        "PENDING_PREEMPT": "CANCELLED HELD IN_PROGRESS READY",
        "IN_PROGRESS": "CANCELLED DONE FAILED HELD READY",
        "HELD": "CANCELLED FAILED IN_PROGRESS READY",
        "DONE": "",
        "FAILED": "",
        "CANCELLED": "",
    }

    assert {before and before.value: " ".join(sorted(after)) for before, after in ALLOWED.items()} == onward


@pytest.mark.req("FLT-TASK-13")
def test_transitions_in_a_step_and_after_it_are_events_with_their_cause() -> None:
    early = Transition(100, "T-1", None, TaskState.WAITING, "SUBMITTED")
    later = Transition(100, "T-2", TaskState.ASSIGNED, TaskState.IN_PROGRESS, "ROUTE_ADMITTED", "R1")

    assert list(task_events(DispatchStep(transitions=(early,)), [later])) == [
        TaskMoved("T-1", None, TaskState.WAITING, "SUBMITTED", None),
        TaskMoved("T-2", TaskState.ASSIGNED, TaskState.IN_PROGRESS, "ROUTE_ADMITTED", "R1"),
    ]


@pytest.mark.req("FLT-TASK-13")
def test_every_state_of_the_contract_is_in_the_table_and_three_are_final() -> None:
    assert {*ALLOWED} == {None, *TaskState}
    assert {TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED} == OVER


@pytest.mark.req("FLT-TASK-13")
def test_a_task_cannot_leave_the_state_it_ended_in() -> None:
    paper = Paper()
    paper.submit("T")
    paper.steps(10)
    task = paper.dispatch.book.over[0]

    with pytest.raises(AssertionError, match="from DONE to READY"):
        paper.dispatch.book.move(task, TaskState.READY, paper.now_ms, "AGAIN")


@pytest.mark.req("FLT-TASK-13", "FLT-TASK-2")
def test_each_transition_of_a_task_has_its_cause() -> None:
    paper = Paper()
    paper.submit("T")
    paper.steps(10)

    assert paper.causes("T") == [
        ("WAITING", "SUBMITTED"),
        ("READY", "CONDITIONS_HOLD"),
        ("ASSIGNED", "NEAREST"),
        ("IN_PROGRESS", "ROUTE_ADMITTED"),
        ("DONE", "UNLOADED"),
    ]


@pytest.mark.req("FLT-TASK-2")
def test_a_truck_goes_through_the_phases_of_its_task_and_then_to_rest() -> None:
    paper = Paper()
    seen = [paper.phase("R1")]
    paper.submit("T")
    for _ in range(8):
        seen += [paper.phase("R1")] if paper.phase("R1") is not seen[-1] else []
        paper.step()

    order = (Phase.IDLE, Phase.TO_PICK, Phase.LOADING, Phase.TO_DROP, Phase.UNLOADING, Phase.TO_PARK, Phase.IDLE)
    assert tuple(seen) == order


@pytest.mark.req("FLT-PERF-7")
def test_memory_of_finished_tasks_does_not_grow() -> None:
    paper = Paper(NORTH_SOUTH)
    paper.steps(2_000)

    assert paper.dispatch.book.done > 200
    assert len(paper.dispatch.book.over) == 100
