"""Tasks in lines have the order of a full sort."""

from collections import Counter
from random import Random

import pytest

from pendula.fleet.tasks.book import Lines
from pendula.fleet.tasks.model import TaskOrder

NODES = ("N", "S", "E", "W")
MINUTE_MS = 60_000
Told = tuple[TaskOrder, int]


def drawn(random: Random, count: int) -> list[Told]:
    """Tasks of few places, within a time in which some are overtaken and some are not."""
    return [
        (
            TaskOrder(f"T{number:02}", random.choice(NODES), random.choice(NODES), priority=random.choice((10, 11))),
            random.randrange(0, 20 * MINUTE_MS, MINUTE_MS),
        )
        for number in range(count)
    ]


def by_the_rule(tasks: list[Told], calls: Counter[str], overtake_ms: int) -> list[str]:
    oldest = {one.priority: min(at for other, at in tasks if other.priority == one.priority) for one, _ in tasks}

    def key(told: Told) -> tuple[int, bool, int, int, int, str]:
        one, at = told
        late = at - oldest[one.priority] >= overtake_ms
        pick, drop = (0, 0) if late else (calls[one.pick_node_id], calls[one.drop_node_id])
        return -one.priority, late, pick, drop, at, one.task_id

    return [one.task_id for one, _ in sorted(tasks, key=key)]


@pytest.mark.req("FLT-TASK-5", "FLT-TASK-15", "FLT-TASK-14")
@pytest.mark.parametrize("overtake_ms", [0, 10 * MINUTE_MS])
@pytest.mark.parametrize("seed", range(30))
def test_lines_give_tasks_in_the_order_of_the_rule(seed: int, overtake_ms: int) -> None:
    random = Random(seed)
    tasks, lines = drawn(random, 30), Lines()
    for one in random.sample(tasks, len(tasks)):
        lines.join(*one)
    for one in random.sample(tasks, 8):
        lines.leave(*one)
        tasks.remove(one)
    calls = Counter({node: random.randrange(3) for node in NODES})
    whole = list(lines.in_turn(calls, set(), overtake_ms))
    tried = set(whole[: random.randrange(10)])
    left = [one for one in tasks if one[0].task_id not in tried]

    assert whole == by_the_rule(tasks, calls, overtake_ms)
    assert list(lines.in_turn(calls, tried, overtake_ms)) == by_the_rule(left, calls, overtake_ms)
