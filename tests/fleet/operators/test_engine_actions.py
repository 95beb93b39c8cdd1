"""What people do goes through the engine: into the journal, and what came of it out again."""

import pytest
from msgspec import UNSET

from pendula.fleet.commands import Tick
from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.engine import FleetEngine, config_form
from pendula.fleet.events import OperatorAnswered
from pendula.fleet.scenarios import Run, shipped
from tests.fleet.operators.test_desk import action


def answered(run: Run, *actions: OperatorAction) -> list[OperatorAnswered]:
    """What the engine says in a tick in which people act."""
    outcome = run.engine.apply(Tick(run.now_ms + 100, run.gateway.received().reports, operator_actions=actions))
    return [one for one in outcome.events if isinstance(one, OperatorAnswered)]


def hall() -> Run:
    run = Run(shipped("hall"))
    run.run(20_000)
    return run


@pytest.mark.req("FLT-FAIL-11", "FLT-OBS-1")
def test_an_answer_says_who_acted_and_why() -> None:
    told = answered(hall(), action("PAUSE_ROBOT"))

    assert [(one.action.operatorId, one.action.reason, one.answer.accepted) for one in told] == [
        ("operator-1", "floor cleaning", True)
    ]


@pytest.mark.req("FLT-FAIL-11", "FLT-TASK-7")
def test_a_task_that_is_not_there_cannot_be_cancelled() -> None:
    told = answered(hall(), action("CANCEL_TASK", robotId=UNSET, taskId="T-nobody"))

    assert [(one.answer.accepted, one.answer.appliedTick) for one in told] == [(False, None)]


@pytest.mark.req("FLT-FAIL-11")
def test_a_desk_is_part_of_the_state_of_a_fleet() -> None:
    run = hall()
    first = answered(run, action("PAUSE_ROBOT"))
    again = FleetEngine.from_state(config_form(run.engine.config), run.engine.state())
    assert again.state() == run.engine.state()
    outcome = again.apply(Tick(run.now_ms + 200, operator_actions=(action("PAUSE_ROBOT"),)))

    assert [one for one in outcome.events if isinstance(one, OperatorAnswered)] == first
