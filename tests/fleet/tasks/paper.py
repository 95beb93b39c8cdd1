"""Trucks on paper: each is at its goal one step later, so that tasks can be tested without traffic.

The map is a crossing of four arms: picks and drops in N and S, rest nodes in E and W, the middle is X.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec.structs import replace

from pendula.fleet import compile_map
from pendula.fleet.compiler import samples
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.map.planner import OPEN
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.model import Truck
from pendula.fleet.tasks import (
    Dispatch,
    DispatchParams,
    DispatchStep,
    OperationDone,
    TaskEvent,
    TaskOrder,
    TaskStream,
    TaskSubmitted,
    Transition,
    TruckView,
)
from pendula.fleet.tasks.assignment import TaskReason
from pendula.fleet.tick import RefusedRoute

TICK_MS = 100
# Trucks at rest look into the crossing.
YAW = {"E": 3_141_593, "W": 0}
NORTH_SOUTH = TaskStream("S", ("N",), ("S",), max_concurrent=2)


@cache
def crossing() -> CompiledMap:
    return compile_map(samples.plus_crossing(), (FL_STD,))


class Paper:
    """A dispatch and its trucks. Routes are admitted unless their truck is in `unadmitted`; a truck that has a route
    is at its goal in the next step, unless it is in `slow`: then it stays where it is."""

    def __init__(
        self,
        *streams: TaskStream,
        robots: Sequence[tuple[str, str]] = (("R1", "E"), ("R2", "W")),
        params: DispatchParams | None = None,
    ) -> None:
        trucks = [Truck(name, "FL-STD", park) for name, park in robots]
        closed = {name: OPEN for name, _ in robots}
        self.dispatch = Dispatch(crossing(), trucks, {"FL-STD": FL_STD}, closed, streams, params)
        self.views = [TruckView(number, name, yaw_urad=YAW.get(park, 0)) for number, (name, park) in enumerate(robots)]
        self.now_ms = 0
        self.unadmitted: set[str] = set()
        self.slow: set[str] = set()
        self.busy: set[str] = set()
        self.transitions: list[Transition] = []
        self.pending: dict[str, RoutePlan] = {}
        self._operating: set[str] = set()

    def step(self, *events: TaskEvent, refused: Sequence[RefusedRoute] = ()) -> DispatchStep:
        """One step; operations given in the last one are done, unless their truck is in `busy`."""
        done = sorted(self._operating - self.busy)
        self._operating -= {*done}
        for name in done:
            self.see(name, load=not self.view(name).load)
        came = self.dispatch.dispatch(self.now_ms, self.views, [*events, *map(OperationDone, done)])
        self.now_ms += TICK_MS
        self.transitions += came.transitions
        self._operating |= {operation.robot_id for operation in came.operations}
        self.pending |= {route.robot_id: route for route in came.routes}
        admitted = [self.pending.pop(name) for name in sorted(self.pending) if name not in self.unadmitted]
        self.dispatch.settled(admitted, refused)
        for route in admitted:
            self.see(route.robot_id, route_id=route.route_id, revision=route.revision, at_um=0, at_goal=False)
        for view in self.views:
            kept = self.dispatch.drivers[view.number].kept
            if kept is not None and view.robot_id not in self.slow:
                self.see(view.robot_id, at_um=kept.length_um, bound_um=kept.length_um, at_goal=True)
        return came

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def submit(self, task_id: str, pick: str = "N", drop: str = "S", **more: Any) -> DispatchStep:
        return self.step(TaskSubmitted(TaskOrder(task_id, pick, drop, **more)))

    def see(self, robot_id: str, **changes: Any) -> None:
        number = self.view(robot_id).number
        self.views[number] = replace(self.views[number], **changes)

    def view(self, robot_id: str) -> TruckView:
        return next(view for view in self.views if view.robot_id == robot_id)

    def phase(self, robot_id: str) -> Phase:
        return self.dispatch.phase(self.view(robot_id).number)

    def task(self, robot_id: str) -> str | None:
        task = self.dispatch.task_of(self.view(robot_id).number)
        return None if task is None else task.task_id

    def state(self, task_id: str) -> TaskState:
        found = self.dispatch.book.find(task_id)
        assert found is not None
        return found.state

    def causes(self, task_id: str) -> list[tuple[str, str]]:
        return [
            (transition.state.value, transition.cause)
            for transition in self.transitions
            if transition.task_id == task_id
        ]

    def until(self, phase: Phase, robot_id: str = "R1") -> None:
        """Steps until a truck is in a phase; at most fifty."""
        for _ in range(50):
            if self.phase(robot_id) is phase:
                return
            self.step()
        raise AssertionError(f"{robot_id} never came to {phase.value}: {self.transitions}")


def reason_of(paper: Paper, task_id: str = "T") -> TaskReason:
    reason = paper.dispatch.why(task_id)
    assert isinstance(reason, TaskReason)
    return reason
