"""Operator actions in the engine: written to the journal, and restored with their results."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from pendula.fleet.commands import Tick
from pendula.fleet.contracts import OperatorAction, TaskState
from pendula.fleet.engine import FleetEngine, config_form
from pendula.fleet.events import OperatorAnswered
from pendula.fleet.gateway import read_gateway
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.tasks.book import Task
from pendula.fleet.tick import phases
from tests.campaigns import campaign_after
from tests.fleet.tasks.test_inbox import action


def answered(run: Run, *actions: OperatorAction) -> list[OperatorAnswered]:
    """What the engine says in a tick in which people act."""
    reports = read_gateway(run.gateway.poll()).reports
    outcome = run.engine.apply(Tick(run.now_ms + 100, reports, operator_actions=actions))
    return [one for one in outcome.events if isinstance(one, OperatorAnswered)]


def hall() -> Run:
    run = Run(shipped("hall"))
    run.run(20_000)
    return run


@pytest.mark.req("FLT-FAIL-11", "FLT-OBS-1")
def test_a_result_names_the_operator_and_the_reason() -> None:
    result = answered(hall(), action("PAUSE_ROBOT"))

    assert [(one.action.operatorId, one.action.reason, one.answer.accepted) for one in result] == [
        ("operator-1", "floor cleaning", True)
    ]


@pytest.mark.req("FLT-FAIL-11", "FLT-TASK-7")
def test_an_unknown_task_cannot_be_cancelled() -> None:
    result = answered(hall(), action("CANCEL_TASK", robotId=UNSET, taskId="T-nobody"))

    assert [(one.answer.accepted, one.answer.appliedTick) for one in result] == [(False, None)]


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-16")
def test_an_action_of_a_failed_tick_is_applied_when_it_is_confirmed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = hall()
    answered(run, action("PAUSE_ROBOT", "op-0"))
    run.run(run.now_ms + 5_000)
    first = action("REMOVE_ROBOT", "op-1", physicallySecured=True)
    second = action("REMOVE_ROBOT", "op-2", physicallySecured=True, confirmationOf="op-1")

    def say(one: OperatorAction) -> list[str | None]:
        run.act(replace(one, ts=run.now_ms))
        run.step()
        return [answer.code for known, answer in run.engine.inbox.saved().answers if known.actionId == one.actionId]

    assert say(first) == ["CONFIRMATION_NEEDED"]
    with monkeypatch.context() as failing:
        failing.setattr(phases, "broken", lambda *_, **__: [("I-5", "R1 is in a lane and does not hold it")])
        assert say(second) == []
    assert say(second) == [None]


def task_of(run: Run, *states: TaskState) -> Task:
    """The first task that is in one of some states; the hall goes on until there is one."""
    while True:
        found = next((one for one in run.dispatch.tasks() if one.state in states), None)
        if found is not None:
            return found
        run.step()


def about(kind: str, task: Task, action_id: str = "op-1") -> OperatorAction:
    return action(kind, action_id, robotId=UNSET, taskId=task.task_id)


@pytest.mark.req("FLT-TASK-7", "FLT-TASK-13", "FLT-FAIL-11")
def test_a_withdrawn_task_is_offered_to_other_trucks_first() -> None:
    run = hall()
    task = task_of(run, TaskState.IN_PROGRESS)
    before = task.robot_id
    result = answered(run, about("WITHDRAW_TASK", task))
    after = task.state, task.cause, task.by
    for _ in range(50):
        run.step()

    assert [(one.answer.accepted, one.answer.code) for one in result] == [(True, None)]
    assert after == (TaskState.READY, "WITHDRAWN", "operator-1")
    assert task.state is TaskState.READY or task.robot_id != before


@pytest.mark.req("FLT-TASK-4", "FLT-TASK-13", "FLT-FAIL-11")
def test_a_held_task_waits_until_it_is_resumed() -> None:
    run = hall()
    task = task_of(run, TaskState.IN_PROGRESS)
    answered(run, about("HOLD_TASK", task))
    for _ in range(100):
        run.step()
    held = task.state, task.cause, task.by
    resumed = answered(run, about("RESUME_TASK", task, "op-2"))

    assert held == (TaskState.HELD, "HELD", "operator-1")
    assert [one.answer.message for one in resumed] == [f"Task {task.task_id} is resumed"]
    assert task.state in (TaskState.READY, TaskState.ASSIGNED, TaskState.PENDING_PREEMPT)


@pytest.mark.req("FLT-TASK-7", "FLT-FAIL-11")
@pytest.mark.parametrize("kind", campaign_after(1, ["WITHDRAW_TASK", "HOLD_TASK", "CANCEL_TASK"]))
def test_a_task_with_loaded_goods_stays_with_its_truck(kind: str) -> None:
    run = hall()
    while not any(one.loaded for one in run.dispatch.tasks()):
        run.step()
    loaded = next(one for one in run.dispatch.tasks() if one.loaded)
    result = answered(run, about(kind, loaded))

    assert [(one.answer.accepted, one.answer.code) for one in result] == [(False, "TASK_LOADED")]
    assert loaded.state is TaskState.IN_PROGRESS


@pytest.mark.req("FLT-FAIL-11")
@pytest.mark.parametrize(("kind", "code"), [("RESUME_TASK", "TASK_NOT_HELD"), ("WITHDRAW_TASK", "TASK_NOT_ASSIGNED")])
def test_an_impossible_action_on_a_task_is_refused_with_a_code(kind: str, code: str) -> None:
    run = hall()
    result = answered(run, about(kind, task_of(run, TaskState.READY, TaskState.WAITING)))

    assert [one.answer.code for one in result] == [code]


@pytest.mark.req("FLT-FAIL-11")
def test_the_inbox_is_part_of_the_state_of_a_fleet() -> None:
    run = hall()
    first = answered(run, action("PAUSE_ROBOT"))
    again = FleetEngine.from_state(config_form(run.engine.config), run.engine.state())
    assert again.state() == run.engine.state()
    outcome = again.apply(Tick(run.now_ms + 200, operator_actions=(action("PAUSE_ROBOT"),)))

    assert [one for one in outcome.events if isinstance(one, OperatorAnswered)] == first
