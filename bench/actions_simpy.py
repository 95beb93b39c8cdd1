"""SimPy's side of the benchmark of `actions`: the same loads as processes, as lean as SimPy allows.

Locks are resources of capacity 1. Several locks are requested at once and awaited with `AllOf`, one lock by itself.
Ends of one minute are taken by admission, as on our side: without that the two sides would give different schedules.
"""

from collections.abc import Callable, Generator
from datetime import datetime, timedelta
from typing import Any, Protocol

import simpy
from simpy.events import AllOf, Event, Timeout

from bench.actions_loads import DAY, START_AT, Closed, Open
from pendula.actions import Instance

Steps = Generator[Event, Any, None]
Minute = Any  # SimPy says int or float; there are no floats here
Dumps = Callable[[Any], Any]

SLOT = 60
AFTER_ALL_ELSE = 2  # SimPy's own priorities are 0 and 1


class Book(Protocol):
    """The record of a schedule."""

    def started(self, one: Instance, t: Minute, admission: int, joined: Minute, minutes: int, /) -> None: ...

    def ended(self, one: Instance, t: Minute, admission: int, /) -> None: ...


class Times:
    """Start and end of every action."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, int]] = {}

    def started(self, one: Instance, t: Minute, *_: Minute) -> None:
        self.found[one.id] = (t, -1)

    def ended(self, one: Instance, t: Minute, *_: Minute) -> None:
        self.found[one.id] = (self.found[one.id][0], t)


class Log:
    """A list of events with their meta, and a line for each."""

    def __init__(self, dumps: Dumps) -> None:
        self.events: list[dict[str, Any]] = []
        self.lines: list[Any] = []
        self._dumps = dumps
        self._start = datetime.fromisoformat(START_AT)
        self._at = (-1, "")

    def started(self, one: Instance, t: Minute, admission: int, joined: Minute, minutes: int) -> None:
        t_end = t + minutes - t // DAY * DAY
        meta = {"segment": 0, "d": minutes, "t_end": t_end, "waited": t - joined, "admission": admission}
        self._write("start", one, t, t // DAY, meta)

    def ended(self, one: Instance, t: Minute, admission: int) -> None:
        # The last minute of an epoch still belongs to it, for ends.
        self._write("end", one, t, (t - 1) // DAY, {"segment": 0, "admission": admission})

    def _write(self, kind: str, one: Instance, minute: int, epoch: int, meta: dict[str, int]) -> None:
        if self._at[0] != minute:
            self._at = (minute, (self._start + timedelta(minutes=minute)).isoformat())
        t = minute - epoch * DAY
        event = {
            "seq": len(self.events),
            "type": kind,
            "action_id": one.id,
            "t": t,
            "at": self._at[1],
            "epoch": epoch,
            "slot": min(t // SLOT, DAY // SLOT - 1),
            "actor": one.actor,
            "verb": one.verb,
            "pc": False,
            "meta": meta,
        }
        self.events.append(event)
        self.lines.append(self._dumps(event))


class Ending(Timeout):
    """A timeout that is ordered within a minute by the admission number of its action."""

    def __init__(self, env: simpy.Environment, delay: int, admission: int) -> None:
        # As in Timeout, which sets its fields itself, for speed; only the priority differs.
        self.env = env
        self.callbacks = []
        self._value = None
        self._delay = delay
        self._ok = True
        env.schedule(self, AFTER_ALL_ELSE + admission, delay)  # type: ignore[arg-type]


class Town:
    """The environment, its locks and the counter of admissions."""

    def __init__(self, load: Closed | Open) -> None:
        self.env = simpy.Environment()
        resources = [simpy.Resource(self.env) for _ in range(load.locks)]
        self.verbs = {
            name: (verb.minutes, [resources[lock] for lock in verb.locks]) for name, verb in load.verbs.items()
        }
        self.admitted = 0


def schedule(load: Closed | Open) -> None:
    _run(load, _bare_actor, _bare_action)


def from_one_source(load: Open) -> None:
    """The open load with one process that begins the others at their times: fewer timeouts, a smaller heap."""
    town = Town(load)
    town.env.process(_source(town, load))
    town.env.run()


def kept(load: Closed | Open, book: Book) -> None:
    def actor(town: Town, plan: tuple[Instance, ...]) -> Steps:
        return _actor(town, plan, book)

    def action(town: Town, one: Instance, delay: int) -> Steps:
        return _action(town, one, delay, book)

    _run(load, actor, action)


def _run(load: Closed | Open, actor: Callable[..., Steps], action: Callable[..., Steps]) -> None:
    town = Town(load)
    if isinstance(load, Closed):
        for plan in load.plans.values():
            town.env.process(actor(town, plan))
    else:
        for one in load.submissions:
            town.env.process(action(town, one, one.t))
    town.env.run()


def _bare_actor(town: Town, plan: tuple[Instance, ...]) -> Steps:
    env = town.env
    for one in plan:
        minutes, (lock,) = town.verbs[one.verb]
        admission = town.admitted
        town.admitted = admission + 1
        request = lock.request()
        yield request
        yield Ending(env, minutes, admission)
        lock.release(request)


def _actor(town: Town, plan: tuple[Instance, ...], book: Book) -> Steps:
    env = town.env
    for one in plan:
        minutes, (lock,) = town.verbs[one.verb]
        admission = town.admitted
        town.admitted = admission + 1
        joined = env.now
        request = lock.request()
        yield request
        book.started(one, env.now, admission, joined, minutes)
        yield Ending(env, minutes, admission)
        lock.release(request)
        book.ended(one, env.now, admission)


def _bare_action(town: Town, one: Instance, delay: int) -> Steps:
    env = town.env
    yield env.timeout(delay)
    minutes, locks = town.verbs[one.verb]
    if len(locks) == 1:
        request = locks[0].request()
        yield request
        yield env.timeout(minutes)
        locks[0].release(request)
        return
    requests = [lock.request() for lock in locks]
    if requests:
        yield AllOf(env, requests)
    yield env.timeout(minutes)
    for lock, request in zip(locks, requests, strict=True):
        lock.release(request)


def _action(town: Town, one: Instance, delay: int, book: Book) -> Steps:
    env = town.env
    yield env.timeout(delay)
    minutes, locks = town.verbs[one.verb]
    admission = town.admitted
    town.admitted = admission + 1
    joined = env.now
    requests = [lock.request() for lock in locks]
    if len(requests) == 1:
        yield requests[0]
    elif requests:
        yield AllOf(env, requests)
    book.started(one, env.now, admission, joined, minutes)
    yield env.timeout(minutes)
    for lock, request in zip(locks, requests, strict=True):
        lock.release(request)
    book.ended(one, env.now, admission)


def _source(town: Town, load: Open) -> Steps:
    env = town.env
    for one in load.submissions:
        assert one.t is not None
        if one.t > env.now:
            yield env.timeout(one.t - env.now)
        env.process(_bare_action(town, one, 0))
