"""Members of an export that a truck does not report itself."""

from types import SimpleNamespace
from typing import Any

import pytest

from pendula.fleet.contracts import TaskView
from pendula.fleet.runs.reading import tasks_of
from pendula.fleet.tick.snapshot import robot_state
from tests.fleet.tasks.test_assignment import on_its_way_to_rest
from tests.fleet.tick.troubled import Hall


@pytest.mark.req("FLT-TASK-10", "FLT-OBS-1")
def test_a_task_is_pending_until_its_truck_leaves_the_route_to_rest() -> None:
    paper = on_its_way_to_rest()
    engine: Any = SimpleNamespace(dispatch=paper.dispatch)
    before = tasks_of(engine, 0)
    paper.submit("T2")
    route = paper.dispatch.drivers[0].kept
    assert route is not None
    pending = tasks_of(engine, 0)
    paper.see("R1", at_um=route.segments[0].length_um)
    paper.step()

    assert (before, pending, tasks_of(engine, 0)) == ((None, None), (None, "T2"), ("T2", None))


@pytest.mark.req("FLT-TASK-10", "FLT-API-1")
def test_the_state_of_a_truck_names_the_task_that_is_pending() -> None:
    result = robot_state(Hall().record(), 100, None, "T2")

    assert result is not None
    assert isinstance(result.task, TaskView)
    assert (result.task.taskId, result.task.pendingTaskId) == (None, "T2")
