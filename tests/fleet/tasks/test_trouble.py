"""Effects on a task of failed trucks, operations that do not end, and withdrawals."""

import msgspec
import pytest

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.map.planner import OPEN, Closed, OnEdge
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.model import Truck
from pendula.fleet.saving import restore_tasks, saved_dispatch
from pendula.fleet.tasks import (
    Dispatch,
    DispatchParams,
    OperationDone,
    OperationFailed,
    TaskEvent,
    TasksRefused,
    TaskStream,
    TruckView,
)
from pendula.fleet.tasks.assignment import Ways
from pendula.fleet.tasks.book import Driver
from pendula.kernel.canonical import encode
from pendula.kernel.engine import Refusal
from tests.fleet.tasks.paper import NORTH_SOUTH, Paper, crossing, reason_of

ONE = (("R1", "E"),)


def under_way(phase: Phase, **more: object) -> Paper:
    """Two trucks; R1 has a task and is in a phase of it."""
    paper = Paper(params=DispatchParams(**more))  # type: ignore[arg-type]
    paper.slow = {"R1"} if phase is Phase.TO_PICK else set()
    paper.submit("T")
    paper.until(phase)
    return paper


@pytest.mark.req("FLT-TASK-7")
def test_a_truck_that_fails_before_it_loads_loses_its_task_to_another_one() -> None:
    paper = under_way(Phase.TO_PICK)
    paper.see("R1", ok=False, failed=True)
    paper.steps(2)

    assert ("READY", "ROBOT_FAILED") in paper.causes("T")
    assert (paper.task("R1"), paper.task("R2")) == (None, "T")


@pytest.mark.req("FLT-TASK-16")
@pytest.mark.parametrize("phase", [Phase.TO_DROP, Phase.UNLOADING])
def test_a_fault_while_loaded_holds_the_task_with_its_load_and_sends_no_other_truck(phase: Phase) -> None:
    paper = under_way(phase)
    paper.see("R1", ok=False, failed=True)
    paper.steps(20)
    task = paper.dispatch.book.open["T"]

    assert (task.state, task.loaded, task.cause) == (TaskState.HELD, True, "ROBOT_FAILED")
    assert (paper.task("R1"), paper.task("R2")) == ("T", None)
    assert "with its load on board" in reason_of(paper).message


@pytest.mark.req("FLT-TASK-16")
def test_a_truck_that_rejoins_continues_with_its_load() -> None:
    paper = under_way(Phase.TO_DROP)
    paper.see("R1", ok=False, failed=True)
    paper.steps(5)
    paper.see("R1", ok=True, failed=False)
    paper.steps(10)

    assert paper.state("T") is TaskState.DONE
    assert ("IN_PROGRESS", "ROBOT_RECOVERED") in paper.causes("T")


@pytest.mark.req("FLT-TASK-12", "FLT-TASK-16")
@pytest.mark.parametrize("phase", [Phase.LOADING, Phase.UNLOADING])
def test_an_operation_that_ends_while_its_truck_is_lost_counts_when_the_truck_rejoins(phase: Phase) -> None:
    paper = Paper(robots=ONE)
    paper.submit("T")
    paper.until(phase)
    paper.see("R1", ok=False, failed=True)
    paper.steps(3)
    held = paper.state("T")
    paper.see("R1", ok=True, failed=False)
    paper.steps(8)

    assert (held, paper.state("T")) == (TaskState.HELD, TaskState.DONE)


@pytest.mark.req("FLT-TASK-12")
def test_an_operation_ends_when_the_truck_reports_it_not_when_its_time_has_passed() -> None:
    paper = Paper(robots=ONE)
    paper.busy = {"R1"}
    paper.submit("T", pick_ms=100)
    paper.steps(100)
    waiting = paper.phase("R1")
    paper.busy = set()
    paper.steps(2)

    assert (waiting, paper.phase("R1")) == (Phase.LOADING, Phase.UNLOADING)


@pytest.mark.req("FLT-TASK-12")
def test_an_operation_past_its_timeout_is_a_fault_of_the_truck() -> None:
    paper = Paper(robots=ONE, params=DispatchParams(operation_timeout_ms=20_000))
    paper.busy = {"R1"}
    paper.submit("T")
    alerts = [alert for _ in range(230) for alert in paper.step().alerts]

    assert [(alert.code, alert.robot_id) for alert in alerts] == [("ROBOT_FAULT", "R1")]
    assert paper.dispatch.is_faulty(0)
    assert (paper.state("T"), paper.dispatch.why("T").code) == (TaskState.HELD, "OPERATION_TIMEOUT")
    assert reason_of(paper).message == (
        "task 'T' is held: R1 did not load within 20000 ms; it continues when the fault of R1 is cleared"
    )


@pytest.mark.req("FLT-TASK-12")
def test_a_truck_whose_fault_is_cleared_repeats_the_operation() -> None:
    paper = Paper(robots=ONE)
    paper.busy = {"R1"}
    paper.submit("T")
    paper.until(Phase.LOADING)
    paper.step(OperationFailed("R1", "nothing on the fork"))
    held = paper.state("T")
    paper.busy = set()
    paper._operating.clear()
    paper.dispatch.cleared("R1")
    kinds = [operation.kind for _ in range(6) for operation in paper.step().operations]

    assert (held, kinds) == (TaskState.HELD, ["LOAD", "UNLOAD"])


@pytest.mark.req("FLT-TASK-7")
@pytest.mark.parametrize("over", [OperationDone("R1", "T/LOAD"), OperationFailed("R1", "no pallet", "T/LOAD")])
def test_a_repeated_completion_does_not_complete_the_next_operation(over: TaskEvent) -> None:
    paper = Paper(robots=ONE)
    paper.busy = {"R1"}
    paper.submit("T")
    paper.until(Phase.LOADING)
    paper.step(OperationDone("R1", "T/LOAD"))
    paper.until(Phase.UNLOADING)
    refused = paper.step(over).refused

    assert [refusal.code for refusal in refused] == ["OPERATION_NOT_UNDER_WAY"]
    assert refused[0].message == "R1 is doing 'T/UNLOAD', not 'T/LOAD'"
    assert (paper.phase("R1"), paper.state("T")) == (Phase.UNLOADING, TaskState.IN_PROGRESS)


@pytest.mark.req("FLT-TASK-7", "FLT-TASK-12")
def test_a_repeated_operation_has_a_new_id_and_the_old_id_does_not_complete_it() -> None:
    paper = Paper(robots=ONE)
    paper.busy = {"R1"}
    paper.submit("T")
    paper.until(Phase.LOADING)
    paper.step(OperationFailed("R1", "nothing on the fork", "T/LOAD"))
    paper.dispatch.cleared("R1")
    again = [operation.operation_id for operation in paper.step().operations]
    paper.step(OperationDone("R1", "T/LOAD"))
    late = paper.phase("R1")
    paper.step(OperationDone("R1", "T/LOAD/2"))

    assert (again, late, paper.phase("R1")) == (["T/LOAD/2"], Phase.LOADING, Phase.TO_DROP)


@pytest.mark.req("FLT-TASK-7")
def test_the_replacement_of_a_removed_truck_loads_under_a_new_operation_id() -> None:
    paper = Paper()
    paper.busy = {"R1", "R2"}
    paper.submit("T")
    paper.step()
    first = next(operation.robot_id for operation in paper.dispatch.operations())
    paper.dispatch.removed(first)
    other = {"R1": "R2", "R2": "R1"}[first]
    paper.until(Phase.LOADING, other)

    assert [operation.operation_id for operation in paper.dispatch.operations()] == ["T/LOAD/2"]


@pytest.mark.req("FLT-TASK-12")
def test_an_operation_that_takes_as_long_as_its_timeout_is_refused() -> None:
    came = Paper(params=DispatchParams(operation_timeout_ms=5_000)).submit("T", pick_ms=5_000)

    assert [refusal.code for refusal in came.refused] == ["OPERATION_TOO_LONG"]
    with pytest.raises(TasksRefused, match="OPERATION_TOO_LONG"):
        Paper(TaskStream("S", ("N",), ("S",), drop_ms=200_000))


@pytest.mark.req("FLT-TASK-7")
def test_an_operator_can_withdraw_a_task_before_the_truck_loads() -> None:
    paper = under_way(Phase.TO_PICK)
    answer = paper.dispatch.withdraw("T", "operator-1")
    paper.see("R1", paused=True)
    paper.step()

    assert answer is None
    assert (paper.task("R1"), paper.task("R2")) == (None, "T")


@pytest.mark.req("FLT-TASK-7")
@pytest.mark.parametrize("phase", [Phase.LOADING, Phase.TO_DROP, Phase.UNLOADING])
@pytest.mark.parametrize("verb", ["withdraw", "hold", "cancel"])
def test_after_loading_has_begun_a_task_stays_with_its_truck(phase: Phase, verb: str) -> None:
    paper = under_way(phase)
    answer = getattr(paper.dispatch, verb)("T", "operator-1")

    assert isinstance(answer, Refusal)
    assert (answer.code, paper.task("R1")) == ("TASK_LOADED", "T")


def test_a_cancelled_task_ends_and_its_truck_goes_to_rest() -> None:
    paper = under_way(Phase.TO_PICK)
    paper.dispatch.cancel("T", "operator-1")
    paper.slow = set()
    paper.steps(10)

    assert paper.state("T") is TaskState.CANCELLED
    assert paper.dispatch.drivers[0].at_rest


def test_a_truck_at_rest_whose_task_is_cancelled_before_it_sets_out_stays_there() -> None:
    paper = Paper(robots=ONE)
    paper.unadmitted = {"R1"}
    paper.submit("T")
    paper.dispatch.cancel("T", "operator-1")
    paper.unadmitted = set()
    paper.steps(4)

    assert (paper.phase("R1"), paper.dispatch.drivers[0].at_rest) == (Phase.IDLE, True)


@pytest.mark.req("FLT-TASK-4")
def test_a_task_on_hold_is_not_assigned_until_it_is_resumed() -> None:
    paper = Paper()
    paper.see("R1", ok=False)
    paper.see("R2", ok=False)
    paper.submit("T")
    paper.dispatch.hold("T", "operator-1")
    paper.see("R1", ok=True)
    paper.steps(3)
    held, why = paper.state("T"), paper.dispatch.why("T")
    paper.dispatch.resume("T", "operator-1")
    paper.step()

    assert (held, why.code, paper.task("R1")) == (TaskState.HELD, "HELD", "T")


def test_a_held_task_with_its_load_can_be_cancelled_and_its_truck_gets_no_other() -> None:
    paper = under_way(Phase.TO_DROP)
    paper.see("R1", ok=False, failed=True)
    paper.step()
    paper.dispatch.cancel("T", "operator-1")
    paper.see("R1", ok=True, failed=False)
    paper.submit("T2")

    assert (paper.state("T"), paper.task("R1"), paper.task("R2")) == (TaskState.CANCELLED, None, "T2")


@pytest.mark.parametrize(("phase", "state"), [(Phase.TO_PICK, TaskState.READY), (Phase.TO_DROP, TaskState.FAILED)])
def test_the_task_of_a_removed_truck_fails_once_it_has_loaded(phase: Phase, state: TaskState) -> None:
    paper = under_way(phase)
    paper.dispatch.removed("R1")
    found = paper.dispatch.book.find("T")
    assert found is not None

    assert (found.state, found.cause) == (state, "ROBOT_REMOVED")


@pytest.mark.req("FLT-TASK-14")
@pytest.mark.parametrize("after", range(0, 30, 3))
def test_a_restored_dispatch_continues_identically(after: int) -> None:
    through, broken = Paper(NORTH_SOUTH), Paper(NORTH_SOUTH)
    for paper in (through, broken):
        paper.submit("T", "S", "N", priority=20)
        paper.steps(after)
    broken.transitions += broken.dispatch.take_transitions()
    form = encode(saved_dispatch(broken.dispatch))
    broken.dispatch = Paper(NORTH_SOUTH).dispatch
    restore_tasks(broken.dispatch, msgspec.json.decode(form))
    for paper in (through, broken):
        paper.steps(40)

    assert broken.transitions == through.transitions
    assert encode(saved_dispatch(broken.dispatch)) == encode(saved_dispatch(through.dispatch))


@pytest.mark.req("FLT-PERF-1", "FLT-LIVE-9")
def test_a_task_that_a_failed_truck_blocks_for_all_is_cheap_to_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    paper = Paper(robots=[("R1", "E")])
    paper.submit("T1")
    paper.until(Phase.TO_PARK)
    paper.slow = {"R1"}
    paper.see("R1", at_um=0, bound_um=0, at_goal=False)
    # The pick can be reached, the drop cannot.
    edges = crossing().network.edges
    drop = crossing().node_number["S"]
    paper.dispatch.keep_off(Closed(frozenset(n for n, edge in enumerate(edges) if edge.end == drop), frozenset()))
    weighed: list[object] = []
    monkeypatch.setattr(Ways, "_keeping_off", lambda *_: weighed.append(None))
    paper.submit("T2")
    paper.steps(5)

    assert (paper.phase("R1"), paper.state("T2")) == (Phase.TO_PARK, TaskState.READY)
    assert weighed == []


@pytest.mark.req("FLT-TASK-16", "FLT-TASK-5")
@pytest.mark.parametrize(("phase", "state"), [(Phase.TO_PICK, TaskState.READY), (Phase.TO_DROP, TaskState.FAILED)])
def test_a_removed_truck_fails_its_loaded_task_and_gets_no_other(phase: Phase, state: TaskState) -> None:
    paper = under_way(phase)
    paper.slow = set()
    paper.dispatch.removed("R1")
    left = paper.state("T")
    paper.submit("U")
    paper.submit("V")
    paper.steps(30)

    assert left is state
    assert (paper.state("U"), paper.state("V")) == (TaskState.DONE, TaskState.DONE)
    assert paper.task("R1") is None
    assert {
        transition.robot_id
        for transition in paper.transitions
        if transition.task_id in "UV" and transition.state is TaskState.DONE
    } == {"R2"}


@pytest.mark.req("FLT-TASK-5", "FLT-TASK-12")
def test_a_truck_that_could_not_load_gets_no_task_before_its_fault_is_cleared() -> None:
    paper = under_way(Phase.LOADING)
    paper.busy = {"R1"}
    paper.step(OperationFailed("R1", "no pallet"))
    assert paper.dispatch.cancel("T", "operator-1") is None
    paper.slow = {"R2"}
    paper.submit("U")
    paper.submit("V")
    paper.steps(5)
    before = paper.task("R1")
    paper.dispatch.cleared("R1")
    paper.steps(2)

    assert (before, paper.task("R2"), paper.task("R1")) == (None, "U", "V")


@pytest.mark.req("FLT-TASK-6")
def test_a_truck_without_a_route_leaves_the_task_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    set_out = Ways.set_out

    def but_for_the_first(ways: Ways, driver: Driver, stops: tuple[int, ...], reason: str) -> RoutePlan | None:
        return None if driver.robot_id == "R1" else set_out(ways, driver, stops, reason)

    monkeypatch.setattr(Ways, "set_out", but_for_the_first)
    paper = Paper()
    paper.submit("T")

    assert (paper.task("R1"), paper.task("R2")) == (None, "T")


@pytest.mark.req("FLT-DCL-20")
def test_a_truck_that_starts_on_an_edge_drives_to_its_rest_node_even_if_that_is_the_next() -> None:
    site = crossing()
    edge = next(n for n, edge in enumerate(site.network.edges) if edge.end == site.node_number["E"])
    dispatch = Dispatch(
        site, [Truck("R1", "FL-STD", "E")], {"FL-STD": FL_STD}, {"R1": OPEN}, starts={"R1": OnEdge(edge, 1_000_000)}
    )

    assert [route.reason for route in dispatch.dispatch(0, [TruckView(0, "R1")]).routes] == ["PARKING"]
