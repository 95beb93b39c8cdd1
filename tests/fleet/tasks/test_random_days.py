"""Random days on paper: trucks fail and rejoin, routes are refused, operators cancel, hold and clear. Nothing is
lost: in the end every task is finished or held with a reason, and every truck is at rest."""

from collections.abc import Callable
from random import Random

import msgspec
import pytest

from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.saving import restore_tasks, saved_dispatch
from pendula.fleet.tasks import OperationFailed, PriorityChanged, TaskEvent, TaskOrder, TaskStream, TaskSubmitted
from pendula.fleet.tasks.book import OPERATING
from pendula.fleet.tick import RefusedRoute
from pendula.kernel.canonical import encode
from tests.fleet.tasks.paper import Paper

SEEDS = [*range(40), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(40, 1_000))]
STREAM = TaskStream("S", ("N", "X"), ("S",), max_concurrent=3, last_ms=9_000)
ROBOTS = (("R1", "E"), ("R2", "W"))


class Day:
    """A paper fleet with random interventions."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.paper = Paper(STREAM, robots=ROBOTS)
        self.submitted = 0

    def trouble(self) -> list[TaskEvent]:
        """One random intervention, or none."""
        kinds: list[Callable[[str], list[TaskEvent]]] = [
            *(self._nothing,) * 6,
            self._task,
            self._fail,
            self._come_back,
            self._wait,
            self._admit,
            self._slow,
            self._fast,
            self._bad_operation,
            self._clear,
            self._operator_action,
            self._first,
        ]
        return self.random.choice(kinds)(self.random.choice(("R1", "R2")))

    def _nothing(self, _: str) -> list[TaskEvent]:
        return []

    def _task(self, _: str) -> list[TaskEvent]:
        self.submitted += 1
        pick, drop = self.random.sample("NSXEW", 2)
        return [TaskSubmitted(TaskOrder(f"T{self.submitted}", pick, drop, priority=self.random.randrange(3)))]

    def _fail(self, name: str) -> list[TaskEvent]:
        self.paper.see(name, ok=False, failed=True)
        return []

    def _come_back(self, name: str) -> list[TaskEvent]:
        self.paper.see(name, ok=not self._is_faulty(name), failed=self._is_faulty(name))
        return []

    def _is_faulty(self, name: str) -> bool:
        return self.paper.dispatch.is_faulty(self.paper.view(name).number)

    def _wait(self, name: str) -> list[TaskEvent]:
        self.paper.unadmitted.add(name)
        return []

    def _admit(self, name: str) -> list[TaskEvent]:
        self.paper.unadmitted.discard(name)
        return []

    def _slow(self, name: str) -> list[TaskEvent]:
        self.paper.slow.add(name)
        return []

    def _fast(self, name: str) -> list[TaskEvent]:
        self.paper.slow.discard(name)
        return []

    def _bad_operation(self, name: str) -> list[TaskEvent]:
        if self.paper.phase(name) not in OPERATING:
            return []
        return [OperationFailed(name, "nothing on the fork")]

    def _clear(self, name: str) -> list[TaskEvent]:
        self.paper.dispatch.cleared(name)
        return []

    def _operator_action(self, _: str) -> list[TaskEvent]:
        open_tasks = self.paper.dispatch.tasks()
        if open_tasks:
            task = self.random.choice(open_tasks)
            verb = self.random.choice(("cancel", "withdraw", "hold", "resume"))
            getattr(self.paper.dispatch, verb)(task.task_id, verb.upper())
        return []

    def _first(self, _: str) -> list[TaskEvent]:
        open_tasks = self.paper.dispatch.tasks()
        return [PriorityChanged(self.random.choice(open_tasks).task_id, 99)] if open_tasks else []

    def refusals(self) -> list[RefusedRoute]:
        """Routes that wait; some are refused for good, and traffic drops those."""
        refused = []
        for name in sorted(self.paper.pending):
            if name in self.paper.unadmitted and self.random.randrange(20) == 0:
                route = self.paper.pending.pop(name)
                refused.append(RefusedRoute(name, route.route_id, route.revision, "ROUTE_LEAVES_TOO_EARLY"))
        return refused

    def be_calm(self) -> None:
        """All faults end; loads of ended tasks are taken off by hand."""
        paper = self.paper
        paper.unadmitted.clear()
        paper.slow.clear()
        for name, _ in ROBOTS:
            paper.dispatch.cleared(name)
            load = paper.view(name).load and paper.task(name) is not None
            paper.see(name, ok=True, failed=False, load=load)
        paper.steps(200)


def spent(seed: int, broken_at: int | None = None) -> Day:
    """A day of four hundred steps with faults, and a calm evening; saved and restored at a step, if one is given."""
    day = Day(seed)
    for step in range(400):
        day.paper.step(*day.trouble(), refused=day.refusals())
        if step == broken_at:
            day.paper.transitions += day.paper.dispatch.take_transitions()
            form = encode(saved_dispatch(day.paper.dispatch))
            day.paper.dispatch = Paper(STREAM, robots=ROBOTS).dispatch
            restore_tasks(day.paper.dispatch, msgspec.json.decode(form))
    day.be_calm()
    return day


@pytest.mark.req("FLT-TASK-13")
@pytest.mark.parametrize("seed", SEEDS)
def test_after_any_fault_every_task_is_finished_or_held_with_a_reason_and_every_truck_rests(seed: int) -> None:
    dispatch = spent(seed).paper.dispatch
    left = [
        (task.task_id, task.state.value, task.cause) for task in dispatch.tasks() if task.state is not TaskState.HELD
    ]

    assert left == []
    assert all(dispatch.why(task.task_id).code for task in dispatch.tasks())
    assert [driver.robot_id for driver in dispatch.drivers if not driver.at_rest and driver.task is None] == []


@pytest.mark.req("FLT-TASK-7", "FLT-TASK-16")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_task_is_ever_with_two_trucks_and_no_goods_are_loaded_twice(seed: int) -> None:
    day = Day(seed)
    operations: list[tuple[str, str | None]] = []
    for _ in range(300):
        came = day.paper.step(*day.trouble(), refused=day.refusals())
        tasks = [driver.task.task_id for driver in day.paper.dispatch.drivers if driver.task is not None]
        assert len(tasks) == len({*tasks})
        operations += [
            (day.paper.task(operation.robot_id) or "", operation.robot_id)
            for operation in came.operations
            if operation.kind == "LOAD"
        ]

    assert len({task for task, _ in operations}) == len({*operations})


@pytest.mark.req("FLT-TASK-14")
@pytest.mark.parametrize("seed", SEEDS[:10])
def test_an_interrupted_and_restored_day_ends_like_an_uninterrupted_day(seed: int) -> None:
    whole, broken = spent(seed), spent(seed, broken_at=37 + seed)

    assert broken.paper.transitions == whole.paper.transitions
    assert whole.paper.phase("R1") is Phase.IDLE or whole.paper.task("R1") is not None
