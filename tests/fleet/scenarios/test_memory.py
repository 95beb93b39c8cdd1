"""A run does not grow with the time it simulates."""

import gc
from types import FunctionType, MethodType, ModuleType

import pytest
from msgspec.structs import replace

from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.scenarios.model import Arrives
from pendula.fleet.tasks import TaskStream

MINUTE_MS = 60_000
# What is shared with everything else that runs in this process.
_SHARED = (type, ModuleType, FunctionType, MethodType)


def entries(root: object) -> int:
    """How many things can be got at from a run: entries of all that it keeps."""
    seen = {id(root)}
    todo = [root]
    while todo:
        for one in gc.get_referents(todo.pop()):
            if id(one) not in seen and not isinstance(one, _SHARED):
                seen.add(id(one))
                todo.append(one)
    return len(seen)


def patrolling() -> Run:
    """Two trucks that carry goods through one lane in opposite directions, for ever."""
    there = TaskStream("S-THERE", ("E1",), ("W2",), pick_ms=2_000, drop_ms=2_000, robot_ids=("R1",))
    back = TaskStream("S-BACK", ("W2",), ("E1",), pick_ms=2_000, drop_ms=2_000, robot_ids=("R2",))
    return Run(replace(shipped("patrol"), tasks=(), streams=(there, back), expect=()))


@pytest.mark.req("FLT-PERF-7")
def test_a_run_keeps_hardly_more_after_ten_minutes_than_after_five() -> None:
    run = patrolling()
    run.run(5 * MINUTE_MS)
    before, done = entries(run), run.dispatch.book.done

    run.run(10 * MINUTE_MS)

    assert run.dispatch.book.done > done > 0
    # Some of what is limited fills up yet: tasks that are over, shadows that were asked for. Ticks leave nothing.
    assert entries(run) - before < 1_000 < 5 * MINUTE_MS // 100


def test_where_trucks_were_is_kept_for_a_run_that_is_asked_for_it() -> None:
    patrol = shipped("patrol")
    arrives = Arrives(patrol.robots[0].robot_id, patrol.robots[0].park_node_id, MINUTE_MS)
    run = Run(replace(patrol, expect=(arrives,)))

    run.run(1_000)

    assert len(run.measures.places) == 10
