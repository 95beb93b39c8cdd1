"""Commands from outside: instances and requests are checked one by one and queued for their minute."""

from collections.abc import Callable, Iterable

import msgspec

from pendula.actions.minute.follow_ups import queue_followers, reject_submission
from pendula.actions.minute.submissions import read_new
from pendula.actions.minute.waits import is_wait, start_wait
from pendula.actions.model import Instance
from pendula.actions.requests import read_requests
from pendula.actions.rules.validation import Fault
from pendula.actions.state.ranks import LATE, REQUESTED, SUBMITTED
from pendula.actions.state.world_state import WorldState
from pendula.kernel.canonical import Json


def submit(world: WorldState, raws: Iterable[object]) -> int:
    """Queue instances for their minute; returns how many were taken."""
    late: list[tuple[int, Instance]] = []
    taken = 0
    setting = world.setting
    now, latest = world.clock.minute, setting.latest
    push: Callable[[int, int, Instance], object] = world.queue.push
    if world.pending is not None or world.deferred is not None:
        push = world.schedule
    used = world.used_ids
    for raw in raws:
        if type(raw) is Instance and raw.params is None and type(raw.t) is int and raw.id not in used:
            # An Instance of Python code, which needs no check.
            used.add(raw.id)
            instance = raw
        else:
            if is_wait(raw):
                if (refused := start_wait(world, raw, now)) is not None:
                    reject_submission(world, raw, refused, now)
                else:
                    taken += 1
                continue
            read = read_new(world, raw, True)
            if isinstance(read, Fault):
                reject_submission(world, raw, read, now)
                continue
            instance = read
        minute = instance.t
        if minute is None or not now <= minute <= latest:
            when = setting.submitted(instance)
            if isinstance(when, Fault):
                reject_submission(world, instance, when, now)
                continue
            minute, micros = when
            if micros < setting.micros_of(now):
                late.append((micros, instance))
                continue
        push(minute, SUBMITTED, instance)
        taken += 1
    late.sort(key=lambda entry: entry[0])
    for _, instance in late:
        push(now, LATE, instance)
    queue_followers(world, now)
    return taken + len(late)


def request(world: WorldState, interrupts: Iterable[Json], commands: Iterable[Json]) -> None:
    """Queue interrupts, cancellations and resumptions; requests for the past apply now."""
    now = world.clock.minute
    for request in read_requests(interrupts, commands, world.setting):
        if isinstance(request, Fault):
            world.writer.diagnose(request.code, None, request.reason, request.facts)
        else:
            minute = max(request.minute, now)
            world.queue.push(minute, REQUESTED, msgspec.structs.replace(request, minute=minute))
