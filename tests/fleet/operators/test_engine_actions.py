"""What people do goes through the engine: into the journal, and what came of it out again."""

import pytest
from msgspec import to_builtins

from pendula.fleet.commands import Tick
from pendula.fleet.engine import FleetEngine, config_form
from pendula.fleet.events import OperatorAnswered
from pendula.fleet.operators import Action
from pendula.fleet.scenarios import Run, shipped
from tests.fleet.operators.test_desk import action


def answered(run: Run, *actions: Action) -> list[OperatorAnswered]:
    """What the engine says in a tick in which people act, and nobody reports."""
    now = run.now_ms + 100
    outcome = run.engine.apply(Tick(now, run._reports(), operator_actions=actions))
    return [one for one in outcome.events if isinstance(one, OperatorAnswered)]


def hall() -> Run:
    run = Run(shipped("hall"))
    run.run(20_000)
    return run


@pytest.mark.req("FLT-FAIL-11", "FLT-OBS-1")
def test_an_answer_says_who_acted_and_why() -> None:
    told = answered(hall(), action("PAUSE_ROBOT"))

    assert [(one.operator_id, one.reason, one.action, one.accepted) for one in told] == [
        ("operator-1", "floor cleaning", "PAUSE_ROBOT", True)
    ]


@pytest.mark.req("FLT-FAIL-11", "FLT-TASK-7")
def test_a_task_that_is_not_there_cannot_be_cancelled() -> None:
    told = answered(hall(), action("CANCEL_TASK", robot_id=None, task_id="T-nobody"))

    assert [(one.accepted, one.applied_tick) for one in told] == [(False, None)]


@pytest.mark.req("FLT-FAIL-11")
def test_a_desk_is_part_of_the_state_of_a_fleet() -> None:
    run = hall()
    first = answered(run, action("PAUSE_ROBOT"))
    again = FleetEngine.from_state(to_builtins(config_form(run.engine.config)), run.engine.state())
    assert again.state() == run.engine.state()
    outcome = again.apply(Tick(run.now_ms + 200, operator_actions=(action("PAUSE_ROBOT"),)))

    assert [one for one in outcome.events if isinstance(one, OperatorAnswered)] == first
