"""A truck that was carried elsewhere stands until it is relocated, then continues its work from there."""

from decimal import Decimal

import pytest
from msgspec import structs

from pendula.fleet.contracts import AnchorPlace, OperatorAction, Phase
from pendula.fleet.scenarios import Run, Scenario, shipped
from pendula.fleet.simulator import FaultKind
from pendula.fleet.simulator.truck import Fault
from pendula.fleet.units import MILLION
from tests.campaigns import campaign_after

# A distance from the true place of the truck.
FAR_UM = 9_000_000


def one_task(at_ms: int = 0) -> Scenario:
    """One truck, and one task at a time."""
    scenario = shipped("task-held")
    tasks = tuple(structs.replace(task, at_ms=at_ms) for task in scenario.tasks)
    return structs.replace(scenario, tasks=tasks, events=(), actions=(), expect=(), duration_ms=400_000)


def carried(run: Run, phase: Phase) -> None:
    """Run until the truck is in a phase, and carry it elsewhere."""
    while run.dispatch.phase(0) is not phase or (phase is Phase.TO_PICK and run.world.trucks[0].v_um_s < 1_000_000):
        run.step()
    # Along the lane, and not towards the end at which it stands.
    x_um = -FAR_UM if phase is Phase.LOADING else FAR_UM
    run.world.start_fault(0, Fault(FaultKind.CARRIED, 1, x_um=x_um))
    for _ in range(60):
        run.step()


def relocate(run: Run) -> None:
    """An operator relocates the truck to its true place."""
    truck = run.world.trucks[0]
    place = AnchorPlace(run.site.network.edges[truck.edge].key, Decimal(truck.on_um) / MILLION)
    run.act(
        OperatorAction("1.0.0", "op-1", run.now_ms, "anna", "RELOCATE", "moved by hand", robotId="R1", anchor=place)
    )
    run.step()


@pytest.mark.req("FLT-FAIL-4", "FLT-FAIL-11")
@pytest.mark.parametrize("phase", [Phase.IDLE, Phase.TO_PICK, Phase.LOADING, Phase.UNLOADING])
def test_a_truck_that_was_carried_elsewhere_stands_until_it_is_relocated(phase: Phase) -> None:
    run = Run(one_task(20_000 if phase is Phase.IDLE else 0))
    carried(run, phase)

    assert run.why("R1").code == "STOP_POSE_JUMP"
    assert run.world.trucks[0].v_um_s == 0


@pytest.mark.req("FLT-FAIL-7", "FLT-FAIL-11", "FLT-TASK-16")
@pytest.mark.parametrize("phase", campaign_after(2, [Phase.IDLE, Phase.TO_PICK, Phase.LOADING, Phase.UNLOADING]))
def test_a_truck_continues_its_work_from_the_place_of_a_relocation(phase: Phase) -> None:
    run = Run(one_task(40_000 if phase is Phase.IDLE else 0))
    carried(run, phase)
    relocate(run)
    result = run.run()

    assert result.form["tasks"] == {"done": 1, "held": 0, "open": 0}
    assert run.outcome().stands_in == {"R1": "A"}
    assert [name for name, invariant in result.form["invariants"].items() if invariant["violations"]] == []


@pytest.mark.req("FLT-FAIL-7")
def test_an_idle_truck_that_was_carried_elsewhere_drives_home_after_its_relocation() -> None:
    run = Run(one_task(300_000))
    carried(run, Phase.IDLE)
    relocate(run)
    under_way = run.dispatch.phase(0)
    run.run(200_000)

    assert (under_way, run.dispatch.phase(0)) == (Phase.TO_PARK, Phase.IDLE)
    assert run.world.trucks[0].at_goal
