"""Our side of the benchmark of `actions`: the loads through the engine, epoch by epoch.

The user of a closed load answers `follow_up` with the next action of an actor, as the user of a process library writes
a generator. Log lines are those of `Logs`.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from bench.actions_loads import DAY, Closed, Open
from pendula.actions import Advance, End, Instance, LiveWorld, Logs, Start, Submit, World
from pendula.actions.messages import Event
from pendula.kernel.canonical import Json


class Plans:
    """Follow-ups: the next action of an actor whose action has ended."""

    def __init__(self, load: Closed) -> None:
        self._rest = {actor: iter(plan) for actor, plan in load.plans.items()}

    def firsts(self) -> tuple[Instance, ...]:
        return tuple(replace(next(rest), t=0) for rest in self._rest.values())

    def ask(self, _: str, question: Any) -> Any:
        for step in self._rest[question["actor"]]:
            return [step]
        return []


def created(load: Closed | Open, recording: bool) -> World:
    world = World.create(load.config)
    world.current.writer.recording = recording
    return world


def submit(world: World, load: Closed | Open) -> None:
    if isinstance(load, Closed):
        plans = Plans(load)
        world.outside = plans
        world.apply(Submit(plans.firsts()))
    else:
        world.apply(Submit(load.submissions))


def prepared(load: Closed | Open, recording: bool) -> World:
    """The world after the submissions, before the first minute."""
    world = created(load, recording)
    submit(world, load)
    return world


def lived_through(world: World, load: Closed | Open) -> None:
    submit(world, load)
    for _ in days(world):
        pass


def days(world: World) -> Iterator[tuple[Event, ...]]:
    """Epoch after epoch until no action is left."""
    while world.next_due() is not None:
        yield world.apply(Advance(world.now() + DAY)).events


def schedule(load: Closed | Open) -> None:
    """The schedule alone, no event kept."""
    lived_through(created(load, recording=False), load)


def events(load: Closed | Open) -> list[Event]:
    """Every event, in a list."""
    found: list[Event] = []
    for day in days(prepared(load, recording=True)):
        found += day
    return found


def logged(load: Closed | Open) -> tuple[list[Event], list[bytes]]:
    """Every event in a list, and its line of the world log."""
    world = prepared(load, recording=True)
    logs = Logs(world.header())
    found: list[Event] = []
    for day in days(world):
        logs.feed(day)
        found += day
    return found, logs.world


def processes(load: Closed) -> None:
    """The closed load as processes of the live form."""
    world = LiveWorld(load.config)
    for name, plan in load.plans.items():
        world.run(_actor(plan), name)
    while world.engine.next_due() is not None:
        world.advance_to(world.minute + DAY)


def _actor(plan: tuple[Instance, ...]) -> Generator[Mapping[str, Json], Mapping[str, Json], None]:
    for step in plan:
        yield {"actor": step.actor, "verb": step.verb}


def times(load: Closed | Open) -> dict[str, tuple[int, int]]:
    """Start and end of every action, in minutes of the run."""
    started: dict[str, int] = {}
    ended: dict[str, int] = {}
    for event in events(load):
        if isinstance(event, Start):
            started[event.action_id] = event.epoch * DAY + event.t
        elif isinstance(event, End):
            ended[event.action_id] = event.epoch * DAY + event.t
    return {action_id: (started[action_id], ended[action_id]) for action_id in sorted(ended)}
