"""The loads of the benchmark of `actions`: the same verbs, actors, locks and times for every side, from a fixed seed.

*Closed*: every actor submits its next action when the last one ends. *Open*: all submissions are given with their
times. Verbs take their minutes at level 1 and medium effort, so that a peer needs no formula of durations.
"""

from random import Random
from typing import Any

from msgspec import Struct

from pendula.actions import Instance

DAY = 1440
VERBS = 200
LONGEST = 30
BUSY = 0.2
START_AT = "2025-07-01T00:00:00"

ACTORS, ACTIONS_EACH, CLOSED_LOCKS = 1000, 100, 50
SUBMISSIONS, OPEN_LOCKS = 100_000, 50


class Verb(Struct, frozen=True):
    """The part of a definition that a peer needs."""

    minutes: int
    locks: tuple[int, ...]


class Closed(Struct, frozen=True):
    """`plans`: the actions of each actor, in order."""

    config: dict[str, Any]
    locks: int
    verbs: dict[str, Verb]
    plans: dict[str, tuple[Instance, ...]]

    @property
    def actions(self) -> int:
        return sum(map(len, self.plans.values()))


class Open(Struct, frozen=True):
    """`submissions`: in the order of their minutes."""

    config: dict[str, Any]
    locks: int
    verbs: dict[str, Verb]
    submissions: tuple[Instance, ...]

    @property
    def actions(self) -> int:
        return len(self.submissions)


def closed(actors: int = ACTORS, each: int = ACTIONS_EACH, seed: int = 1) -> Closed:
    """One lock an action: 20 actors for each of 50 locks, which are hardly ever free."""
    draw = Random(seed)
    verbs = {f"verb-{n}": Verb(draw.randint(1, LONGEST), (n % CLOSED_LOCKS,)) for n in range(VERBS)}
    names = list(verbs)
    plans = {name: _plan(name, draw.choices(names, k=each)) for name in _actors(actors)}
    return Closed(_config(verbs), CLOSED_LOCKS, verbs, plans)


def opened(submissions: int = SUBMISSIONS, seed: int = 2, locks: int = OPEN_LOCKS) -> Open:
    """None to three locks an action; submissions come at the rate at which the locks are busy, not beyond it."""
    draw = Random(seed)
    verbs = _verbs(draw, locks)
    return Open(_config(verbs), locks, verbs, _submissions(draw, list(verbs), submissions, locks))


def everything(submissions: int = SUBMISSIONS, seed: int = 2) -> Open:
    """The open load with every feature in use: a tenth preempts, half needs resources, a third reveals."""
    plain = opened(submissions, seed)
    definitions = plain.config["action_defs"]
    for number, definition in enumerate(definitions.values()):
        definition |= {"interruptible": True, "may_trigger_event": number % 3 == 0}
        if number % 10 == 0:
            definition |= {"preempts": True, "priority": 1 + number % 7}
        if number % 2 == 0:
            definition["resources"] = [{"name": "parts", "amount": 1, "refund": number % 4 == 0}]
    config = {**plain.config, "resources": {"parts": submissions}, "options": {"pc": "actor-0"}}
    knowing = tuple(
        Instance(one.id, one.actor, one.verb, t=one.t, knowledge=(f"item-{number % 1000}",))
        for number, one in enumerate(plain.submissions)
    )
    return Open(config, OPEN_LOCKS, plain.verbs, knowing)


def crowd(actions: int, seed: int = 3) -> Open:
    """Actions that are all submitted for the first minute: a few run, the others wait."""
    draw = Random(seed)
    verbs = _verbs(draw, CLOSED_LOCKS)
    names = list(verbs)
    actors = _actors(ACTORS)
    submissions = tuple(Instance(f"a-{n}", draw.choice(actors), draw.choice(names), t=0) for n in range(actions))
    return Open(_config(verbs), CLOSED_LOCKS, verbs, submissions)


def alarms(running: int, alarms: int) -> Open:
    """Many actors work all day, and one naps; an alarm every minute interrupts only the nap."""
    definitions = {
        "work": _definition(500_000),
        "nap": _definition(500_000),
        "alarm": {**_definition(1), "preempts": True, "priority": 5, "interrupts": ["nap"]},
    }
    workers = [Instance(f"w-{n}", f"actor-{n}", "work", t=0) for n in range(running)]
    calls = [Instance(f"a-{n}", "caller", "alarm", t=1 + n) for n in range(alarms)]
    config = {**_config({}), "action_defs": definitions}
    return Open(config, 0, {}, (*workers, Instance("n", "napper", "nap", t=0), *calls))


def _definition(minutes: int) -> dict[str, Any]:
    return {"base_duration_min": minutes, "effort": "medium", "interruptible": True}


def _actors(count: int) -> list[str]:
    return [f"actor-{number}" for number in range(count)]


def _plan(actor: str, verbs: list[str]) -> tuple[Instance, ...]:
    return tuple(Instance(f"{actor}:{n}", actor, verb, process=actor) for n, verb in enumerate(verbs))


def _verbs(draw: Random, locks: int) -> dict[str, Verb]:
    """None to three locks a verb; every lock is named equally often, so that none is a bottleneck."""
    deck = [lock for _ in range(3) for lock in draw.sample(range(locks), locks)]
    verbs: dict[str, Verb] = {}
    for number in range(2 * locks):
        wanted = number % 4
        own, deck = deck[:wanted], deck[wanted:]
        verbs[f"verb-{number}"] = Verb(draw.randint(1, LONGEST), tuple(sorted(set(own))))
    return verbs


def _submissions(draw: Random, names: list[str], count: int, locks: int) -> tuple[Instance, ...]:
    # An action takes 15.5 minutes of 1.5 locks on average. Without overtaking, locks that are busy for more than a
    # quarter of the time would make queues grow forever.
    minutes = count * 15.5 * 1.5 / (locks * BUSY)
    times = sorted(draw.randrange(max(1, int(minutes))) for _ in range(count))
    actors = _actors(ACTORS)
    return tuple(Instance(f"a-{n}", draw.choice(actors), draw.choice(names), t=t) for n, t in enumerate(times))


def _config(verbs: dict[str, Verb]) -> dict[str, Any]:
    return {
        "epoch": {"index": 0, "start_at": START_AT, "end_at": "2025-07-02T00:00:00"},
        "action_defs": {
            name: {
                "base_duration_min": verb.minutes,
                "effort": "medium",
                "interruptible": False,
                "locks": [f"lock-{lock:03}" for lock in verb.locks],
            }
            for name, verb in verbs.items()
        },
    }
