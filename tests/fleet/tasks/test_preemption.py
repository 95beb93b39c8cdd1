"""Preemption of parking: the aim of a truck changes at a node, never in the middle of an edge."""

from functools import cache

import pytest
from msgspec.structs import replace

from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.scenarios import Run, shipped
from tests.campaigns import campaign_after

SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 20))]


@cache
def driven(seed: int) -> tuple[Run, list[tuple[str, int, Phase, TaskState | None]]]:
    """The run to its end; per tick the true place of the truck, its phase and the state of its task."""
    site = None if seed == 0 else driven(0)[0].site
    run = Run(replace(shipped("preemption"), seed=seed), site)
    seen = []
    while not run.is_over and run.now_ms < run.scenario.duration_ms:
        run.step()
        truck = run.world.trucks[0]
        found = run.dispatch.book.find("T1")
        state = None if found is None else found.state
        seen.append((run.site.network.edges[truck.edge].key, truck.on_um, run.dispatch.phase(0), state))
    return run, seen


@pytest.mark.req("FLT-TEST-13", "FLT-TASK-10")
@pytest.mark.parametrize("seed", campaign_after(1, SEEDS))
def test_a_task_that_arrives_on_an_edge_lets_the_truck_drive_to_its_end(seed: int) -> None:
    run, seen = driven(seed)
    given = next(k for k, sample in enumerate(seen) if sample[3] is TaskState.PENDING_PREEMPT)
    turned = next(k for k, sample in enumerate(seen) if sample[0] == "C->B")
    length = run.site.network.edges[run.site.edge_number["B->C"]].path.length_um
    between = [on for edge, on, _, _ in seen[given:turned] if edge == "B->C"]

    assert seen[given][0] == "B->C"
    assert length // 4 < seen[given][1] < 3 * length // 4
    assert {edge for edge, _, _, _ in seen[given:turned]} == {"B->C"}
    assert between == sorted(between)
    assert between[-1] >= length - run.scenario.traffic.arrive_tol_um


@pytest.mark.req("FLT-TEST-13", "FLT-TASK-10")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_truck_goes_to_rest_until_the_node_and_to_the_pick_from_there(seed: int) -> None:
    run, seen = driven(seed)
    length = run.site.network.edges[run.site.edge_number["B->C"]].path.length_um
    pending = [sample for sample in seen if sample[3] is TaskState.PENDING_PREEMPT]
    first = next(sample for sample in seen if sample[3] is TaskState.IN_PROGRESS)

    assert {phase for _, _, phase, _ in pending} == {Phase.TO_PARK}
    assert first[2] is Phase.TO_PICK
    assert first[0] == "C->B" or first[1] >= length - 2 * run.scenario.traffic.arrive_tol_um


@pytest.mark.req("FLT-TEST-13")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_task_is_done_and_nothing_is_violated(seed: int) -> None:
    run, seen = driven(seed)

    assert (seen[-1][3], run.result().unmet, run.measures.violations) == (TaskState.DONE, (), {})
