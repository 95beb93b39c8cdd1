"""Dispatching: assignment, and new tasks for a truck on its way to rest."""

from functools import cache

import pytest

from pendula.fleet import compile_map
from pendula.fleet.compiler.samples import FL_STD, reference_hall
from pendula.fleet.contracts import Phase
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.scenarios import Run
from pendula.fleet.scenarios.model import Robot, Scenario
from pendula.fleet.tasks import TaskOrder, TaskSubmitted, TruckView, truck_views

OUT = TaskOrder("out", "WEST", "EAST", 0)


@cache
def hall() -> CompiledMap:
    return compile_map(reference_hall(), (FL_STD,))


def alone(*tasks: TaskOrder) -> Run:
    """One truck in the reference hall."""
    return resting(("P1",), *tasks)


def resting(parks: tuple[str, ...], *tasks: TaskOrder) -> Run:
    """Trucks of these rest nodes in the reference hall."""
    scenario = Scenario(
        name="hall",
        title="Trucks in a hall",
        source=reference_hall(),
        profiles=(FL_STD,),
        robots=tuple(Robot(f"R{number}", park) for number, park in enumerate(parks, 1)),
        tasks=tasks,
        duration_ms=600_000,
    )
    return Run(scenario, hall())


def views(run: Run) -> list[TruckView]:
    return truck_views(run.traffic.records, run.scenario.traffic, run.now_ms)


@cache
def goes_home_ms() -> int:
    """The time at which the truck is on its way to rest, after its task."""
    run = alone(OUT)
    while run.dispatch.drivers[0].phase is not Phase.TO_PARK:
        run.step()
    return run.now_ms + 3_000


@pytest.mark.campaign
@pytest.mark.req("FLT-TASK-10", "FLT-TASK-5")
def test_a_truck_on_its_way_to_rest_takes_a_task_and_leaves_the_way_at_a_node() -> None:
    run = alone(OUT, TaskOrder("back", "EAST", "WEST", goes_home_ms()))
    run.run(goes_home_ms() + 1_000)
    driver = run.dispatch.drivers[0]

    assert (driver.phase, driver.admitted, driver.node == driver.rest) == (Phase.TO_PICK, True, False)


@pytest.mark.campaign
@pytest.mark.req("FLT-TASK-10")
def test_a_truck_that_turned_round_on_its_way_to_rest_finishes_its_task_and_rests() -> None:
    run = alone(OUT, TaskOrder("back", "EAST", "WEST", goes_home_ms()))
    run.run()

    assert (run.dispatch.book.done, run.dispatch.is_over(run.now_ms), run.measures.violations) == (2, True, {})


@pytest.mark.req("FLT-TASK-10")
def test_a_truck_that_cannot_leave_its_way_to_rest_follows_it_and_returns_the_task() -> None:
    run = alone(OUT)
    run.run(goes_home_ms())
    run.dispatch.dispatch(run.now_ms, views(run), [TaskSubmitted(TaskOrder("back", "EAST", "WEST"))])
    driver = run.dispatch.drivers[0]
    # The route for the task never reaches traffic.
    waiting = driver.phase
    for late in (0, 3_000):
        run.dispatch.dispatch(run.now_ms + late, views(run))

    assert driver.route is not None
    assert (waiting, driver.phase, driver.task, driver.route.goal) == (
        Phase.TO_PICK,
        Phase.TO_PARK,
        None,
        driver.rest,
    )


@pytest.mark.campaign
@pytest.mark.req("FLT-LIVE-14")
def test_a_merely_promised_way_to_rest_causes_no_expensive_detour() -> None:
    first = TaskOrder("first", "WEST", "EAST", 0, ("R1",))
    unloads_ms = when_unloading(resting(("P3", "P4"), first))
    run = resting(("P3", "P4"), first, TaskOrder("next", "EAST", "WEST", unloads_ms, ("R2",)))
    run.run(unloads_ms + 1_000)
    first_driver, other = run.dispatch.drivers

    assert first_driver.phase is Phase.UNLOADING
    assert first_driver.route is not None
    assert other.route is not None
    edges = hall().network.edges
    promised = {edges[edge].key for edge in first_driver.route.onward}
    assert "B3->B2" in promised
    assert [edges[segment.edge].key for segment in other.route.segments] == ["P4->B2", "B2->B3", "B3->EAST"]


def when_unloading(run: Run) -> int:
    while run.dispatch.drivers[0].phase is not Phase.UNLOADING:
        run.step()
    return run.now_ms
