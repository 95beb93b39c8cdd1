"""Tasks in lines have the order of a full sort."""

from collections import Counter
from random import Random

import pytest

from pendula.fleet.tasks.book import Lines
from pendula.fleet.tasks.model import TaskOrder

NODES = ("N", "S", "E", "W")
MINUTE_MS = 60_000
Entry = tuple[TaskOrder, int]


def drawn(random: Random, count: int) -> list[Entry]:
    """Tasks of few places, within a time in which some are overtaken and some are not."""
    return [
        (
            TaskOrder(f"T{number:02}", random.choice(NODES), random.choice(NODES), priority=random.choice((10, 11))),
            random.randrange(0, 20 * MINUTE_MS, MINUTE_MS),
        )
        for number in range(count)
    ]


def by_the_rule(tasks: list[Entry], calls: Counter[str], overtake_ms: int) -> list[str]:
    oldest = {task.priority: min(at for other, at in tasks if other.priority == task.priority) for task, _ in tasks}

    def key(entry: Entry) -> tuple[int, bool, int, int, int, str]:
        order, at = entry
        late = at - oldest[order.priority] >= overtake_ms
        pick, drop = (0, 0) if late else (calls[order.pick_node_id], calls[order.drop_node_id])
        return -order.priority, late, pick, drop, at, order.task_id

    return [task.task_id for task, _ in sorted(tasks, key=key)]


@pytest.mark.req("FLT-TASK-5", "FLT-TASK-15", "FLT-TASK-14")
@pytest.mark.parametrize("overtake_ms", [0, 10 * MINUTE_MS])
@pytest.mark.parametrize("seed", range(30))
def test_lines_give_tasks_in_the_order_of_the_rule(seed: int, overtake_ms: int) -> None:
    random = Random(seed)
    tasks, lines = drawn(random, 30), Lines()
    for entry in random.sample(tasks, len(tasks)):
        lines.join(*entry)
    for entry in random.sample(tasks, 8):
        lines.leave(*entry)
        tasks.remove(entry)
    calls = Counter({node: random.randrange(3) for node in NODES})
    whole = list(lines.in_turn(calls, set(), overtake_ms))
    tried = set(whole[: random.randrange(10)])
    left = [task for task in tasks if task[0].task_id not in tried]

    assert whole == by_the_rule(tasks, calls, overtake_ms)
    assert list(lines.in_turn(calls, tried, overtake_ms)) == by_the_rule(left, calls, overtake_ms)
