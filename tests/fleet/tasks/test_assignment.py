"""Which truck takes which task: by priority, stations, age and id, and by the time to the pick."""

from dataclasses import replace

import pytest

from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.map.planner import Closed
from pendula.fleet.tasks import DispatchParams, DispatchStep, PriorityChanged, TaskOrder, TaskSubmitted
from pendula.fleet.tick import RefusedRoute
from tests.fleet.tasks.paper import NORTH_SOUTH, Paper, crossing, reason_of

ONE = (("R1", "E"),)


def submitted(*orders: TaskOrder) -> list[TaskSubmitted]:
    return [TaskSubmitted(order) for order in orders]


def first_taken(*orders: TaskOrder) -> str | None:
    """The task that the only truck takes first."""
    paper = Paper(robots=ONE)
    paper.step(*submitted(*orders))
    return paper.task("R1")


@pytest.mark.req("FLT-TASK-5")
def test_of_two_trucks_with_equal_arrival_times_the_first_by_name_takes_the_task() -> None:
    paper = Paper()
    paper.submit("T")
    task = paper.dispatch.book.open["T"]

    assert [eta for _, eta in task.candidates] == [task.eta_ms, task.eta_ms]
    assert (paper.task("R1"), paper.task("R2")) == ("T", None)


@pytest.mark.req("FLT-TASK-5")
def test_the_truck_with_the_earliest_arrival_at_the_pick_takes_the_task() -> None:
    paper = Paper()
    paper.submit("T", "W", "N")

    assert (paper.task("R1"), paper.task("R2")) == (None, "T")


@pytest.mark.req("FLT-TASK-5")
@pytest.mark.parametrize("seen", [{"ok": False}, {"paused": True}, {"load": True}])
def test_an_unhealthy_paused_or_loaded_truck_takes_no_task(seen: dict[str, bool]) -> None:
    paper = Paper()
    paper.see("R1", **seen)
    paper.submit("T")

    assert (paper.task("R1"), paper.task("R2")) == (None, "T")


@pytest.mark.req("FLT-TASK-5")
def test_the_highest_priority_is_served_first() -> None:
    assert first_taken(TaskOrder("A", "N", "S"), TaskOrder("B", "N", "S", priority=11)) == "B"


@pytest.mark.req("FLT-TASK-5")
def test_of_equal_priority_the_oldest_is_served_first() -> None:
    paper = Paper(robots=ONE)
    paper.see("R1", ok=False)
    paper.submit("B")
    paper.submit("A")
    paper.see("R1", ok=True)
    paper.step()

    assert paper.task("R1") == "B"


OVERTAKING = DispatchParams(overtake_ms=600_000)


def second_taken(
    first: TaskOrder, *orders: TaskOrder, later_ms: int = 0, params: DispatchParams = OVERTAKING
) -> str | None:
    """What R2 takes while R1 is on its way with a task; the last one is created later than the others."""
    paper = Paper(params=params)
    paper.see("R2", ok=False)
    paper.slow.add("R1")
    paper.step(*submitted(first))
    paper.step(*submitted(*orders[:-1]))
    paper.now_ms += later_ms
    paper.step(*submitted(orders[-1]))
    assert (paper.task("R1"), paper.task("R2")) == (first.task_id, None)
    paper.see("R2", ok=True)
    paper.step()
    return paper.task("R2")


@pytest.mark.req("FLT-TASK-5")
@pytest.mark.parametrize("name", ["2", "4"])
def test_without_overtaking_age_and_id_decide_regardless_of_trucks_on_the_way(name: str) -> None:
    orders = TaskOrder(name, "N", "S"), TaskOrder("3", "W", "S")

    assert second_taken(TaskOrder("1", "N", "S"), *orders, params=DispatchParams()) == name


@pytest.mark.req("FLT-TASK-5")
def test_without_overtaking_the_id_decides_between_tasks_of_equal_age() -> None:
    paper = Paper()
    paper.see("R2", ok=False)
    paper.slow.add("R1")
    paper.step(*submitted(TaskOrder("1", "N", "S")))
    paper.step(*submitted(TaskOrder("3", "W", "S"), TaskOrder("2", "N", "S")))
    paper.see("R2", ok=True)
    paper.step()

    assert (paper.task("R1"), paper.task("R2")) == ("1", "2")


@pytest.mark.req("FLT-TASK-15")
def test_a_task_whose_pick_no_other_truck_approaches_is_served_first() -> None:
    assert second_taken(TaskOrder("1", "N", "S"), TaskOrder("2", "N", "S"), TaskOrder("3", "W", "S")) == "3"


@pytest.mark.req("FLT-TASK-15")
def test_of_tasks_of_one_pick_the_task_whose_drop_no_other_truck_approaches_is_served_first() -> None:
    assert second_taken(TaskOrder("1", "N", "S"), TaskOrder("2", "N", "S"), TaskOrder("3", "N", "W")) == "3"


@pytest.mark.req("FLT-TASK-15", "FLT-TASK-5")
def test_priority_counts_before_stations() -> None:
    orders = TaskOrder("2", "N", "S", priority=11), TaskOrder("3", "W", "S")

    assert second_taken(TaskOrder("1", "N", "S"), *orders) == "2"


@pytest.mark.req("FLT-TASK-5")
@pytest.mark.parametrize(("later_ms", "taken"), [(599_800, "3"), (599_900, "2")])
def test_no_task_is_overtaken_by_tasks_created_ten_minutes_later(later_ms: int, taken: str) -> None:
    orders = TaskOrder("2", "N", "S"), TaskOrder("3", "W", "S")

    assert second_taken(TaskOrder("1", "N", "S"), *orders, later_ms=later_ms) == taken


@pytest.mark.req("FLT-TASK-15")
def test_a_loaded_truck_is_no_longer_on_the_way_to_its_pick() -> None:
    paper = Paper(params=OVERTAKING)
    paper.see("R2", ok=False)
    paper.step(*submitted(TaskOrder("1", "N", "S")))
    while paper.dispatch.drivers[0].phase is not Phase.TO_DROP:
        paper.step()
    paper.busy.add("R1")
    paper.step(*submitted(TaskOrder("2", "S", "W"), TaskOrder("3", "N", "W")))
    paper.see("R2", ok=True)
    paper.step()

    assert paper.task("R2") == "3"


@pytest.mark.req("FLT-TASK-5")
def test_of_equal_age_the_first_by_id_is_served_first() -> None:
    assert first_taken(TaskOrder("B", "N", "S"), TaskOrder("A", "N", "S")) == "A"


def test_a_changed_priority_takes_effect_at_once() -> None:
    paper = Paper(robots=ONE)
    paper.step(*submitted(TaskOrder("A", "N", "S"), TaskOrder("B", "N", "S")), PriorityChanged("B", 99))

    assert paper.task("R1") == "B"


def test_the_priority_of_a_task_that_waits_for_a_truck_can_be_changed() -> None:
    paper = Paper(robots=ONE)
    paper.see("R1", ok=False)
    paper.step(*submitted(TaskOrder("A", "N", "S"), TaskOrder("B", "N", "S")))
    paper.see("R1", ok=True)
    paper.step(PriorityChanged("B", 99))

    assert paper.task("R1") == "B"


@pytest.mark.req("FLT-TASK-6")
def test_when_the_route_of_the_nearest_truck_is_refused_the_next_one_takes_the_task() -> None:
    paper = Paper()
    paper.unadmitted = {"R1"}
    given = paper.submit("T")
    paper.step(refused=[refusal(given)])
    paper.step()

    assert (paper.task("R1"), paper.task("R2")) == (None, "T")
    assert ("READY", "ROUTE_LEAVES_TOO_EARLY") in paper.causes("T")


def refusal(given: DispatchStep) -> RefusedRoute:
    route = given.routes[0]
    return RefusedRoute(route.robot_id, route.route_id, route.revision, "ROUTE_LEAVES_TOO_EARLY")


@pytest.mark.req("FLT-TASK-6")
def test_a_truck_in_its_drop_without_admission_goes_to_rest_and_another_takes_the_task() -> None:
    paper = Paper(robots=ONE)
    paper.submit("T1")
    paper.until(Phase.UNLOADING)
    paper.unadmitted = {"R1"}
    paper.submit("T2")
    paper.steps(DispatchParams().patience_ms // 100 + 1)

    assert ("READY", "ROUTE_NOT_ADMITTED") in paper.causes("T2")


@pytest.mark.req("FLT-TASK-6")
def test_a_task_that_no_truck_can_take_delays_no_other_task() -> None:
    paper = Paper()
    paper.see("R1", ok=False)
    paper.step(*submitted(TaskOrder("A", "N", "S", robot_ids=("R1",)), TaskOrder("B", "N", "S")))

    assert (paper.state("A"), paper.task("R2")) == (TaskState.READY, "B")


@pytest.mark.req("FLT-PERF-1")
def test_a_step_assigns_a_limited_number_of_tasks_and_the_next_step_the_others() -> None:
    paper = Paper(params=DispatchParams(most_a_step=1))
    paper.step(*submitted(TaskOrder("A", "N", "S"), TaskOrder("B", "N", "S")))
    first = paper.task("R1"), paper.task("R2")
    paper.step()

    assert (first, paper.task("R2")) == (("A", None), "B")


@pytest.mark.req("FLT-TASK-7")
def test_an_assignment_is_kept_when_another_truck_comes_nearer() -> None:
    paper = Paper()
    paper.slow = {"R1", "R2"}
    paper.see("R2", ok=False)
    paper.submit("T", "W", "N")
    paper.see("R2", ok=True)
    paper.steps(20)

    assert (paper.task("R1"), paper.task("R2")) == ("T", None)


@pytest.mark.req("FLT-TASK-8")
@pytest.mark.req("FLT-API-5")
def test_a_truck_that_has_unloaded_takes_the_next_task_in_its_drop() -> None:
    paper = Paper(NORTH_SOUTH, robots=ONE)
    reasons = [route.reason for _ in range(60) for route in paper.step().routes]

    assert paper.dispatch.book.done > 5
    assert {*reasons} == {"TASK_ASSIGNED"}


@pytest.mark.req("FLT-TASK-8", "FLT-DCL-20")
def test_a_truck_without_a_next_task_drives_to_its_rest_node() -> None:
    paper = Paper(robots=ONE)
    paper.submit("T")
    paper.until(Phase.TO_PARK)
    driver = paper.dispatch.drivers[0]
    assert driver.route is not None
    goal = driver.route.goal
    paper.step()

    assert (goal, driver.at_rest) == (driver.rest, True)


@pytest.mark.req("FLT-TASK-10")
def test_a_task_assigned_on_the_way_to_rest_is_pending_until_the_truck_leaves_that_way() -> None:
    paper = on_its_way_to_rest()
    paper.submit("T2")
    route = paper.dispatch.drivers[0].kept
    assert route is not None
    paper.see("R1", at_um=3_000_000)
    paper.step()
    pending = paper.state("T2"), paper.phase("R1"), paper.dispatch.why("T2").code
    node_um = route.segments[0].length_um
    paper.see("R1", at_um=node_um)
    paper.step()

    assert pending == (TaskState.PENDING_PREEMPT, Phase.TO_PARK, "PENDING_PREEMPT")
    assert (paper.state("T2"), paper.phase("R1")) == (TaskState.IN_PROGRESS, Phase.TO_PICK)


def on_its_way_to_rest() -> Paper:
    """One truck, three metres behind its drop on its way to rest."""
    paper = Paper(robots=ONE)
    paper.submit("T1")
    paper.until(Phase.UNLOADING)
    paper.slow = {"R1"}
    paper.until(Phase.TO_PARK)
    paper.see("R1", at_um=3_000_000, bound_um=6_000_000)
    return paper


@pytest.mark.req("FLT-TASK-10")
def test_a_task_whose_pick_is_the_next_node_is_taken_up_when_the_truck_has_arrived_there() -> None:
    paper = on_its_way_to_rest()
    paper.submit("T2", "X", "N")
    route = paper.dispatch.drivers[0].kept
    assert route is not None
    paper.see("R1", at_um=route.length_um - 90_000, at_goal=True)
    paper.step()

    assert (paper.state("T2"), paper.phase("R1")) == (TaskState.IN_PROGRESS, Phase.LOADING)


@pytest.mark.req("FLT-TASK-10")
def test_a_truck_whose_way_to_rest_is_changed_while_a_task_is_not_admitted_still_gets_to_rest() -> None:
    paper = on_its_way_to_rest()
    paper.unadmitted = {"R1"}
    paper.submit("T2")
    driver = paper.dispatch.drivers[0]
    assert driver.kept is not None
    other = replace(driver.kept, revision=driver.kept.revision + 3)
    paper.dispatch.settled([other])
    paper.see("R1", route_id=other.route_id, revision=other.revision)
    paper.steps(DispatchParams().patience_ms // 100 + 1)
    again = paper.pending["R1"]
    paper.dispatch.settled([], [RefusedRoute("R1", again.route_id, again.revision, "ROUTE_STARTS_ELSEWHERE")])
    paper.pending.clear()
    paper.step()
    paper.see("R1", at_goal=True, ok=False)
    paper.step()

    assert again.revision > other.revision
    assert (driver.phase, driver.at_rest) == (Phase.IDLE, True)


@pytest.mark.req("FLT-TASK-10", "FLT-LIVE-10")
def test_a_truck_that_reaches_its_pick_on_an_old_route_finishes_a_task_that_was_not_admitted() -> None:
    paper = Paper(robots=ONE)
    paper.slow = {"R1"}
    paper.submit("T")
    # It fails on its way to the pick, loses the task, and is the nearest again while it follows its admitted route.
    paper.see("R1", failed=True, ok=False)
    paper.step()
    paper.unadmitted = {"R1"}
    paper.see("R1", failed=False, ok=True)
    paper.step()
    assert paper.state("T") is TaskState.PENDING_PREEMPT
    route = paper.dispatch.drivers[0].kept
    assert route is not None
    paper.see("R1", at_um=route.length_um, bound_um=route.length_um, at_goal=True)
    paper.steps(DispatchParams().patience_ms // 100 + 1)
    waited = paper.causes("T")[-1]
    paper.unadmitted, paper.slow = set(), set()
    paper.steps(20)

    assert waited == ("READY", "ROUTE_NOT_ADMITTED")
    assert (paper.state("T"), paper.dispatch.drivers[0].at_rest) == (TaskState.DONE, True)


@pytest.mark.req("FLT-TASK-14")
def test_the_order_in_which_events_come_changes_no_assignment() -> None:
    orders = [TaskOrder(f"T{k}", "N", "S", priority=k % 2) for k in range(4)]
    ways = []
    for events in (submitted(*orders), submitted(*reversed(orders))):
        paper = Paper()
        paper.step(*events)
        paper.steps(40)
        taken = [
            (transition.at_ms, transition.task_id, transition.robot_id)
            for transition in paper.transitions
            if transition.state is TaskState.ASSIGNED
        ]
        ways.append(taken)

    assert ways[0] == ways[1]


def test_why_names_the_trucks_that_are_not_free() -> None:
    paper = Paper()
    paper.slow = {"R1", "R2"}
    for name in ("T1", "T2", "T3"):
        paper.submit(name)
    why = reason_of(paper, "T3")

    assert (why.code, "none of R1, R2 is free" in why.message) == ("NO_FREE_TRUCK", True)


@pytest.mark.req("FLT-TASK-13", "FLT-LIVE-9")
def test_why_says_that_a_task_waits_for_trucks_that_have_failed() -> None:
    paper = Paper()
    for name in ("R1", "R2"):
        paper.see(name, ok=False, failed=True)
    # Their places are closed to all trucks, also to themselves.
    paper.dispatch.keep_off(Closed(edges=frozenset(range(len(crossing().network.edges)))))
    paper.submit("T")
    both = reason_of(paper)
    paper.see("R2", ok=True, failed=False)
    paper.step()
    reason = reason_of(paper)

    assert (both.code, both.message) == ("NO_FREE_TRUCK", "task 'T' waits until R1, R2 can drive again")
    assert reason.message == "task 'T' waits until R1 can drive again, and R2 cannot get there meanwhile"


@pytest.mark.req("FLT-LIVE-10")
def test_why_says_that_a_route_waits_for_a_starving_truck() -> None:
    paper = Paper()
    paper.unadmitted = {"R1"}
    paper.submit("T")
    plain = paper.dispatch.why("T").code
    paper.see("R2", starving=True)
    paper.step()

    assert (plain, paper.dispatch.why("T").code) == ("ROUTE_NOT_ADMITTED", "BARRED_BY_STARVATION")
