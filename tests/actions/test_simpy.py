"""A world without interrupts has the starts and ends of the same processes in SimPy.

The model requests all locks of an action at once and awaits them together. It shares nothing with the engine but the
instances.
"""

from collections.abc import Generator
from typing import Any, NamedTuple

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from pendula.actions import Advance, End, Start, Submit, World

DAY = 1440
LOCKS = ("bay", "dock", "gate", "hall", "workshop")

Times = dict[str, tuple[int, int]]


class Request(NamedTuple):
    """A submitted action: its first minute, its duration, its locks."""

    t: int
    minutes: int
    locks: tuple[str, ...]


wanted = st.builds(
    Request,
    st.integers(0, 30),
    st.integers(1, 20),
    st.lists(st.sampled_from(LOCKS), unique=True, max_size=3).map(tuple),
)


def simpy_times(actions: list[Request]) -> Times:
    env = simpy.Environment()
    locks = {name: simpy.Resource(env) for name in LOCKS}
    times: Times = {}

    def process(number: int, action: Request) -> Generator[simpy.Event, Any, None]:
        yield env.timeout(action.t)
        requests = {name: locks[name].request() for name in action.locks}
        yield env.all_of(requests.values())
        start = int(env.now)
        yield env.timeout(action.minutes)
        for name, request in requests.items():
            locks[name].release(request)
        times[f"a{number}"] = (start, int(env.now))

    for number, action in enumerate(actions):
        env.process(process(number, action))
    env.run()
    return times


def our_times(actions: list[Request], queue: str) -> Times:
    world = World.create(
        {
            "epoch": {"index": 0, "start_at": "2025-07-01T00:00:00", "end_at": "2025-07-02T00:00:00"},
            "action_defs": {
                f"verb{number}": {
                    "base_duration_min": action.minutes,
                    "effort": "medium",
                    "interruptible": False,
                    "locks": list(action.locks),
                }
                for number, action in enumerate(actions)
            },
            "options": {"queue": queue},
        }
    )
    submissions = [
        {"id": f"a{number}", "actor": f"actor{number % 3}", "verb": f"verb{number}", "t": action.t}
        for number, action in enumerate(actions)
    ]
    world.apply(Submit(tuple(submissions)))
    started: dict[str, int] = {}
    ended: dict[str, int] = {}
    while world.next_due() is not None:
        for event in world.apply(Advance(world.now() + DAY)).events:
            if isinstance(event, Start):
                started[event.action_id] = event.epoch * DAY + event.t
            elif isinstance(event, End):
                ended[event.action_id] = event.epoch * DAY + event.t
    return {name: (start, ended[name]) for name, start in started.items()}


@pytest.mark.req("ACT-LOCK-2")
@pytest.mark.req("ACT-LOCK-4")
@pytest.mark.req("ACT-PERF-2")
@pytest.mark.parametrize("queue", ["buckets", "heap"])
@given(actions=st.lists(wanted, max_size=40))
def test_starts_and_ends_equal_those_of_simpy(queue: str, actions: list[Request]) -> None:
    assert our_times(actions, queue) == simpy_times(actions)


def test_many_actions_across_epochs_end_as_in_simpy() -> None:
    actions = [Request(n % 7, 1 + n % 90, (LOCKS[n % 5], LOCKS[(n + 1) % 5])[: 1 + n % 2]) for n in range(300)]

    ours = our_times(actions, "buckets")

    assert ours == simpy_times(actions)
    assert max(end for _, end in ours.values()) > DAY
