"""Tasks of a scenario: those of its list when their time comes, and those that streams make."""

from pendula.fleet.scenarios.model import Scenario, ScenarioStream, ScenarioTask
from pendula.fleet.simulator.noise import Source
from pendula.kernel.rng import Pcg32, stream


class _Stream:
    """One stream; where it has several picks or drops, chance takes one."""

    def __init__(self, told: ScenarioStream, chance: Pcg32, trucks: int) -> None:
        self.told = told
        self.chance = chance
        self.most = told.max_concurrent or trucks
        self.made = 0
        self.open = 0

    def task(self, now_ms: int) -> ScenarioTask:
        told = self.told
        self.made += 1
        self.open += 1
        pick = told.pick_node_ids[self.chance.bounded(len(told.pick_node_ids))]
        drop = told.drop_node_ids[self.chance.bounded(len(told.drop_node_ids))]
        return ScenarioTask(
            task_id=f"{told.stream_id}-{self.made}",
            pick_node_id=pick,
            drop_node_id=drop,
            at_ms=now_ms,
            robot_ids=told.robot_ids,
            pick_ms=told.pick_ms,
            drop_ms=told.drop_ms,
            priority=told.priority,
        )


class TaskList:
    """What waits, and what became of the rest."""

    def __init__(self, scenario: Scenario, trucks: int) -> None:
        ordered = sorted(scenario.streams, key=lambda one: one.stream_id)
        self._streams = [
            _Stream(one, stream(scenario.seed, number, Source.TASKS), trucks) for number, one in enumerate(ordered)
        ]
        self._later = sorted(scenario.tasks, key=lambda one: (one.at_ms, one.task_id))
        self._waiting: list[ScenarioTask] = []
        self._of_stream: dict[str, _Stream] = {}
        self.running = 0
        self.done: list[tuple[int, ScenarioTask]] = []

    @property
    def open(self) -> int:
        """Tasks that are due and not done."""
        return len(self._waiting) + self.running

    def is_over(self, now_ms: int) -> bool:
        """Whether all is done and nothing more will come."""
        ended = all(one.told.last_ms is not None and one.told.last_ms < now_ms for one in self._streams)
        return ended and not self._later and not self.open

    def make(self, now_ms: int) -> None:
        """What is due; of every stream one task a step, so that those who take the oldest serve all streams in turn."""
        while self._later and self._later[0].at_ms <= now_ms:
            self._waiting.append(self._later.pop(0))
        for one in self._streams:
            if one.open < one.most and (one.told.last_ms is None or now_ms <= one.told.last_ms):
                task = one.task(now_ms)
                self._of_stream[task.task_id] = one
                self._waiting.append(task)

    def waiting(self) -> list[ScenarioTask]:
        """High priority first, then the oldest, then by id."""
        return sorted(self._waiting, key=lambda one: (-one.priority, one.at_ms, one.task_id))

    def take(self, task: ScenarioTask) -> None:
        self._waiting.remove(task)
        self.running += 1

    def give_back(self, task: ScenarioTask) -> None:
        self._waiting.append(task)
        self.running -= 1

    def finish(self, task: ScenarioTask, now_ms: int) -> None:
        self.running -= 1
        self.done.append((now_ms, task))
        made_by = self._of_stream.pop(task.task_id, None)
        if made_by is not None:
            made_by.open -= 1
