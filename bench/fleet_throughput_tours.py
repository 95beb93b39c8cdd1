"""The tasks that each truck did in a run, and the same tours once more: wrappers between a run and its engine."""

from collections import Counter
from dataclasses import dataclass, field

from msgspec.structs import replace

from pendula.fleet.commands import Commands
from pendula.fleet.contracts import TaskState
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import FleetEvent, TaskMoved
from pendula.fleet.tasks import TaskSubmitted
from pendula.fleet.tasks.model import TaskOrder
from pendula.kernel.engine import Outcome

# How many tasks of its tour a truck knows ahead, so that it takes the next one in its drop.
_AHEAD = 2


@dataclass(slots=True)
class TourRecorder:
    """Records every finished task: the tours of all trucks, and the end of the last task of each."""

    engine: FleetEngine
    done: dict[str, list[TaskOrder]] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)

    def apply(self, command: Commands) -> Outcome[FleetEvent]:
        outcome = self.engine.apply(command)
        for event in outcome.events:
            if isinstance(event, TaskMoved) and event.state is TaskState.DONE and event.robot_id is not None:
                task = self.engine.dispatch.book.find(event.task_id)
                assert task is not None, f"{event.task_id} is forgotten already"
                self.done.setdefault(event.robot_id, []).append(task.order)
                self.ended[event.robot_id] = command.now_ms
        return outcome

    def tours(self) -> dict[str, list[TaskOrder]]:
        """The tasks of every truck in the order in which it did them, as tasks that no other truck may take."""
        return {
            robot: [
                TaskOrder(
                    f"{robot}-{number:05}",
                    order.pick_node_id,
                    order.drop_node_id,
                    0,
                    (robot,),
                    order.pick_ms,
                    order.drop_ms,
                )
                for number, order in enumerate(orders)
            ]
            for robot, orders in sorted(self.done.items())
        }


class TourPlayer:
    """Gives every truck the tasks of its tour, one after the other, and records when it finishes."""

    def __init__(self, engine: FleetEngine, tours: dict[str, list[TaskOrder]]) -> None:
        self._heard = TourRecorder(engine)
        self._tours = tours
        self._given: Counter[str] = Counter()

    @property
    def ended(self) -> dict[str, int]:
        """The end of the last task of each truck that has finished."""
        done = self._heard.done
        return {robot: at for robot, at in self._heard.ended.items() if len(done[robot]) == len(self._tours[robot])}

    @property
    def is_busy(self) -> bool:
        return len(self.ended) < len(self._tours)

    def apply(self, command: Commands) -> Outcome[FleetEvent]:
        fresh = [TaskSubmitted(order) for robot in self._tours for order in self._due(robot)]
        return self._heard.apply(replace(command, task_events=(*command.task_events, *fresh)))

    def _due(self, robot: str) -> list[TaskOrder]:
        first = self._given[robot]
        upto = len(self._heard.done.get(robot, ())) + _AHEAD
        self._given[robot] = max(first, upto)
        return self._tours[robot][first:upto]
